/* Fuzz target: messages of an MQTT broker. The input is the keys `topics`, `sensor`, `values` and `time`, the topic and the
 * payload, with a 0 after each but the last. Names and values make lines that are parsed into the same names and values, or are
 * refused. */
#include "daemon/bridge/mqtt_names.h"
#include "daemon/bridge/mqtt_payload.h"
#include "daemon/intake/sample_lines.h"
#include "proto/line/line.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
  if (!good)
    abort();
}

static void take(void *arg, const char *path, double value)
{
  static struct hk_line l = { .unit = 1 };
  const struct hk_buffer *key = arg;
  struct hk_buffer line = { 0 };
  require(isfinite(value));
  hk_buffer_put(&line, key->data, key->size);
  hk_buffer_put(&line, " ", 1);
  hk_sample_lines_escape(&line, path, strlen(path), ",= ");
  hk_buffer_print(&line, "=%.17g 7", value);
  require(!line.failed && !memchr(line.data, '\n', line.size));
  hk_line_parse(&l, line.data, line.size);
  require(l.error || l.n == 0 || (l.n == 1 && l.timed && l.time == 7 && l.points[0].value == value));
  hk_buffer_free(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  char *text[5] = { 0 }, error[512];
  struct hk_mqtt_topics topics;
  struct hk_buffer key = { 0 }, field = { 0 };
  size_t n = 0;
  for (const uint8_t *end; n < 5 && (end = memchr(data, 0, size)); n++) {
    text[n] = strdup((const char *)data);
    size -= (size_t)(end + 1 - data);
    data = end + 1;
  }
  const struct hk_mqtt_topic *of = NULL;
  bool odd = false; /* no key of a configuration holds a control character */
  for (size_t i = 0; i < n && i < 4; i++)
    for (const char *c = text[i]; *c; c++)
      odd |= iscntrl((unsigned char)*c);
  if (n == 5 && !odd && hk_mqtt_topics_parse(text[0], &topics, error, sizeof error) == 0 &&
      hk_mqtt_template_check(text[1], &topics, error, sizeof error) == 0)
    of = hk_mqtt_topics_find(&topics, text[4]);
  if (of && !hk_mqtt_template_expand(text[1], of, text[4], text[4], &key, &field)) {
    const struct hk_mqtt_wanted wanted = { text[2], text[3], false };
    char *copy = malloc(size > 0 ? size : 1); /* its own piece of memory, so that ASan sees one byte too many */
    bool timed;
    int64_t time;
    memcpy(copy, data, size);
    require(!key.failed && !field.failed);
    (void)hk_mqtt_payload_read(&wanted, copy, size, &timed, &time, take, &key);
    free(copy);
  }
  hk_buffer_free(&key);
  hk_buffer_free(&field);
  for (size_t i = 0; i < n; i++)
    free(text[i]);
  return 0;
}
