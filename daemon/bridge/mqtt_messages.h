/* Messages that are published: topics of sensors, the state of one after an event, and what Home Assistant wants to know of it.
 * Pure functions; any thread. */
#ifndef HK_MQTT_MESSAGES_H
#define HK_MQTT_MESSAGES_H

#include "daemon/base/buffer.h"

#include <cjson/cJSON.h>

/* PREFIX/KIND/SENSOR, with a 0 behind it. What can be in no topic that is published is written as in URLs: + # % as %2B %23 %25.
 */
void hk_mqtt_topic_of(struct hk_buffer *out, const char *prefix, const char *kind, const char *sensor);
/* The state of a sensor behind an event, which is an object of the text protocol: {"sensor":...,"state":"alert","id":...}. False:
 * the event changes no state. */
bool hk_mqtt_state_of(struct hk_buffer *out, const cJSON *event);
/* The topic, with a 0 behind it, and the payload by which Home Assistant learns of a sensor as a binary sensor that is on while
 * an alert stands. name: of the section. */
void hk_mqtt_discovery_of(struct hk_buffer *topic, struct hk_buffer *out, const char *discovery, const char *name,
                          const char *prefix, const char *sensor);

#endif
