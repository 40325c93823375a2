/* Topics of [mqtt NAME], and how sensors are called by them.
 *
 * A topic is a filter of MQTT in which a level {WORD} stands for `+` and gives it a name: plant/{line}/+/temperature. The
 * template of a sensor's name is text in which {WORD} stands for the level of that name, {1}, {2}... for the first, second...
 * level, and {topic} for the topic as it came. One blank in it divides what are measurement (with tags) and field in the line
 * protocol; without one the field is `value`, which names leave out. What a level brings is escaped as there. Thread: any. */
#ifndef HK_MQTT_TOPICS_H
#define HK_MQTT_TOPICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_MQTT_TOPICS_MAX 32u
#define HK_MQTT_CAPTURES_MAX 8u
#define HK_MQTT_WORD 32 /* bytes of a capture's name, with the 0 */

struct hk_mqtt_topic {
  char filter[256]; /* what is subscribed to, ends with 0 */
  uint32_t match;   /* where in it the filter begins that topics match: behind $share/GROUP/ */
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

/* Reads a list with commas. 0, or -EINVAL with a message. */
int hk_mqtt_topics_parse(const char *text, struct hk_mqtt_topics *out, char *error, size_t size);
/* Whether every topic has a capture of this name. */
bool hk_mqtt_topics_have(const struct hk_mqtt_topics *topics, const char *word, size_t length);
/* The first whose filter a topic matches; NULL: none. */
const struct hk_mqtt_topic *hk_mqtt_topics_find(const struct hk_mqtt_topics *topics, const char *topic);

/* 0, or -EINVAL with a message: a template that is none, or that asks for what not every topic has. */
int hk_mqtt_template_check(const char *text, const struct hk_mqtt_topics *topics, char *error, size_t size);

#endif
