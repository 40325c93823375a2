/* Names of sensors from topics: the template of config/mqtt_topics.h. Pure functions; any thread. */
#ifndef HK_MQTT_NAMES_H
#define HK_MQTT_NAMES_H

#include "daemon/base/buffer.h"
#include "daemon/config/mqtt_topics.h"

/* Appends measurement and tags to `key` and the field to `field`, which stays empty if the template has none. text: a checked
 * template; of: the filter that the topic matches; shown: the value of {topic}. Returns NULL, or the topic's error, a static
 * string. */
const char *hk_mqtt_template_expand(const char *text, const struct hk_mqtt_topic *of, const char *topic, const char *shown,
                                    struct hk_buffer *key, struct hk_buffer *field);

#endif
