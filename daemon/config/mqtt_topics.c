#include "daemon/config/mqtt_topics.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_word(const char *text, size_t length)
{
  bool good = length > 0 && length < HK_MQTT_WORD;
  for (size_t i = 0; i < length && good; i++)
    good = isalnum((unsigned char)text[i]) || text[i] == '_' || text[i] == '-';
  return good;
}

/* Parses a level of a topic: appends its part of the subscription. Returns NULL, or what is wrong. */
static const char *take_level(struct hk_mqtt_topic *t, const char *level, size_t length, uint32_t number, bool last)
{
  char *end = t->filter + strlen(t->filter);
  const bool braced = length > 0 && level[0] == '{';
  if (!braced) {
    const bool wild = memchr(level, '+', length) || memchr(level, '#', length);
    if (wild && length != 1)
      return "+ and # stand for whole levels";
    if (wild && level[0] == '#' && !last)
      return "# stands for the last levels";
    if (memchr(level, '{', length) || memchr(level, '}', length))
      return "{WORD} stands for a whole level";
    memcpy(end, level, length);
    return NULL;
  }
  if (level[length - 1] != '}' || !is_word(level + 1, length - 2) || strspn(level + 1, "0123456789") == length - 2)
    return "a level in braces has a name of letters, digits, - and _, and not of digits alone: {line}";
  if (t->n_captures == HK_MQTT_CAPTURES_MAX)
    return "it has over 8 levels in braces";
  struct hk_mqtt_capture *c = &t->capture[t->n_captures];
  snprintf(c->word, sizeof c->word, "%.*s", (int)(length - 2), level + 1);
  for (uint32_t i = 0; i < t->n_captures; i++)
    if (strcmp(t->capture[i].word, c->word) == 0)
      return "two of its levels have the same name";
  if (strcmp(c->word, "topic") == 0)
    return "{topic} is the whole topic, and no name of a level";
  c->level = number;
  t->n_captures++;
  *end = '+';
  return NULL;
}

/* Parses a topic. text: length bytes. Returns NULL, or what is wrong. */
static const char *take_topic(struct hk_mqtt_topic *t, const char *text, size_t length)
{
  static const char share[] = "$share/";
  const char *at = text, *stop = text + length;
  if (length == 0 || length >= sizeof t->filter)
    return "it is empty, or too long";
  if (length > sizeof share - 1 && memcmp(text, share, sizeof share - 1) == 0) {
    const char *slash = memchr(text + sizeof share - 1, '/', length - (sizeof share - 1));
    if (!slash || slash == text + sizeof share - 1 || slash + 1 == stop)
      return "a shared subscription is $share/GROUP/TOPIC";
    at = slash + 1;
    memcpy(t->filter, text, (size_t)(at - text));
    t->match = (uint32_t)(at - text);
  }
  for (uint32_t number = 0;; number++) {
    const char *slash = memchr(at, '/', (size_t)(stop - at)), *end = slash ? slash : stop;
    const char *wrong = take_level(t, at, (size_t)(end - at), number, !slash);
    if (wrong)
      return wrong;
    if (!slash)
      return NULL;
    t->filter[strlen(t->filter)] = '/';
    at = slash + 1;
  }
}

int hk_mqtt_topics_parse(const char *text, struct hk_mqtt_topics *out, char *error, size_t size)
{
  const char *at = text;
  *out = (struct hk_mqtt_topics){ 0 };
  for (;;) {
    size_t length = strcspn(at, ",");
    const char *next = at[length] ? at + length + 1 : NULL;
    while (length > 0 && *at == ' ') {
      at++;
      length--;
    }
    while (length > 0 && at[length - 1] == ' ')
      length--;
    const char *wrong = out->n == HK_MQTT_TOPICS_MAX ? "there are over 32; use another section for the rest"
                                                     : take_topic(&out->topic[out->n], at, length);
    if (wrong) {
      snprintf(error, size, "topics: `%.*s`: %s", (int)(length < 100 ? length : 100), at, wrong);
      return -EINVAL;
    }
    out->n++;
    if (!next)
      return 0;
    at = next;
  }
}

bool hk_mqtt_topics_have(const struct hk_mqtt_topics *topics, const char *word, size_t length)
{
  bool all = topics->n > 0;
  for (uint32_t i = 0; i < topics->n; i++) {
    bool has = false;
    for (uint32_t k = 0; k < topics->topic[i].n_captures; k++)
      has |= strlen(topics->topic[i].capture[k].word) == length && memcmp(topics->topic[i].capture[k].word, word, length) == 0;
    all &= has;
  }
  return all;
}

/* The rules of MQTT: + matches one level, # all following levels and the one above; at the beginning neither matches a level
 * with $. */
static bool matches(const char *filter, const char *topic)
{
  if (topic[0] == '$' && (filter[0] == '+' || filter[0] == '#'))
    return false;
  for (;;) {
    const size_t f = strcspn(filter, "/"), t = strcspn(topic, "/");
    if (f == 1 && filter[0] == '#')
      return true;
    if (!(f == 1 && filter[0] == '+') && (f != t || memcmp(filter, topic, f) != 0))
      return false;
    if (!filter[f])
      return !topic[t];
    if (!topic[t])
      return strcmp(filter + f, "/#") == 0;
    filter += f + 1;
    topic += t + 1;
  }
}

const struct hk_mqtt_topic *hk_mqtt_topics_find(const struct hk_mqtt_topics *topics, const char *topic)
{
  for (uint32_t i = 0; i < topics->n; i++)
    if (matches(topics->topic[i].filter + topics->topic[i].match, topic))
      return &topics->topic[i];
  return NULL;
}

int hk_mqtt_template_check(const char *text, const struct hk_mqtt_topics *topics, char *error, size_t size)
{
  const char *blank = strchr(text, ' '), *wrong = NULL;
  if (text[0] == 0 || text[0] == ' ' || text[0] == '#' || text[0] == ',' || text[0] == '\\')
    wrong = "a name cannot begin with a blank, #, comma or \\";
  else if (blank && (strchr(blank + 1, ' ') || blank[1] == 0))
    wrong = "it has at most one blank, between measurement and field: {line} temperature";
  for (const char *at = text; !wrong && *at; at++) {
    const size_t length = *at == '{' ? strcspn(at + 1, "}") : 0;
    if (*at == '}' || (*at == '{' && at[1 + length] != '}'))
      wrong = "a brace is not closed or not opened";
    if (wrong || *at != '{')
      continue;
    const char *word = at + 1;
    const bool number = length > 0 && length < 3 && strspn(word, "0123456789") == length && word[0] != '0';
    if (!number && !(length == 5 && memcmp(word, "topic", 5) == 0) && !hk_mqtt_topics_have(topics, word, length)) {
      snprintf(error, size,
               "sensor = %.64s: {%.*s} is not {topic}, {1} and so on for a level by its number, or the name of a level "
               "that every one of `topics` has",
               text, (int)(length < HK_MQTT_WORD ? length : HK_MQTT_WORD), word);
      return -EINVAL;
    }
    at += length + 1;
  }
  if (wrong)
    snprintf(error, size, "sensor = %.64s: %s", text, wrong);
  return wrong ? -EINVAL : 0;
}
