/* Topics of [mqtt NAME], and the names of their sensors.
 *
 * A topic is a filter of MQTT in which a level {WORD} means `+` and names that level: plant/{line}/+/temperature. The template of
 * a sensor's name is text in which {WORD} is replaced by the level of that name, {1}, {2}... by the first, second... level, and
 * {topic} by the topic as received. A blank in it separates measurement (with tags) and field of the line protocol; without a
 * blank the field is `value`, which names omit. Levels are escaped as in the line protocol. Thread: any. */
#ifndef HK_MQTT_TOPICS_H
#define HK_MQTT_TOPICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_MQTT_TOPICS_MAX 32u
#define HK_MQTT_CAPTURES_MAX 8u
#define HK_MQTT_WORD 32 /* bytes of a capture's name, with the 0 */

struct hk_mqtt_topic {
  char filter[256]; /* the subscription, ends with 0 */
  uint32_t match;   /* offset of the filter that topics match: after $share/GROUP/ */
  uint32_t n_captures;
  struct hk_mqtt_capture {
    char word[HK_MQTT_WORD];
    uint32_t level; /* from 0, of `match` */
  } capture[HK_MQTT_CAPTURES_MAX];
};

struct hk_mqtt_topics {
  uint32_t n;
  struct hk_mqtt_topic topic[HK_MQTT_TOPICS_MAX];
};

/* Parses a list separated by commas. Returns 0, or -EINVAL with a message. */
int hk_mqtt_topics_parse(const char *text, struct hk_mqtt_topics *out, char *error, size_t size);
/* Whether every topic has a capture of this name. */
bool hk_mqtt_topics_have(const struct hk_mqtt_topics *topics, const char *word, size_t length);
/* The first topic whose filter matches; NULL: none. */
const struct hk_mqtt_topic *hk_mqtt_topics_find(const struct hk_mqtt_topics *topics, const char *topic);

/* Checks a template. Returns 0, or -EINVAL with a message: it is invalid, or names a level that some topic lacks. */
int hk_mqtt_template_check(const char *text, const struct hk_mqtt_topics *topics, char *error, size_t size);

#endif
