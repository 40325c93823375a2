#include "daemon/bridge/mqtt_names.h"

#include "daemon/intake/sample_lines.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Level number `level`, from 0; false: there are fewer. */
static bool mqtt_names_level_of(const char *topic, unsigned long level, const char **begin, size_t *length)
{
  for (; level > 0; level--) {
    topic = strchr(topic, '/');
    if (!topic)
      return false;
    topic++;
  }
  *begin = topic;
  *length = strcspn(topic, "/");
  return true;
}

const char *hk_mqtt_template_expand(const char *text, const struct hk_mqtt_topic *of, const char *topic, const char *shown,
                                    struct hk_buffer *key, struct hk_buffer *field)
{
  struct hk_buffer *out = key;
  const char *special = ", ";
  for (const char *at = text; *at; at++) {
    if (*at == ' ') {
      out = field;
      special = ",= ";
      continue;
    }
    if (*at != '{') {
      if (*at == ',')
        special = ",= ";
      hk_buffer_put(out, at, 1);
      continue;
    }
    const size_t length = strcspn(at + 1, "}");
    const char *what = shown;
    size_t size = strlen(shown);
    if (strncmp(at, "{topic}", 7) != 0) {
      unsigned long level = isdigit((unsigned char)at[1]) ? strtoul(at + 1, NULL, 10) - 1 : 0;
      for (uint32_t i = 0; i < of->n_captures && !isdigit((unsigned char)at[1]); i++)
        if (strlen(of->capture[i].word) == length && memcmp(of->capture[i].word, at + 1, length) == 0)
          level = of->capture[i].level;
      if (!mqtt_names_level_of(topic, level, &what, &size))
        return "the topic has fewer levels than `sensor` names";
    }
    if (size == 0)
      return "a level of the topic that `sensor` names is empty";
    hk_sample_lines_escape(out, what, size, special);
    at += length + 1;
  }
  return NULL;
}
