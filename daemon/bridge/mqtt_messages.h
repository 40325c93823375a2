/* Published messages: topics of sensors, a sensor's state after an event, and its discovery message for Home Assistant. Pure
 * functions; any thread. */
#ifndef HK_MQTT_MESSAGES_H
#define HK_MQTT_MESSAGES_H

#include "daemon/base/buffer.h"

#include <cjson/cJSON.h>

/* Appends PREFIX/KIND/SENSOR, followed by a 0. Characters that a topic cannot have are encoded as in URLs: + # % as %2B %23 %25.
 * */
void hk_mqtt_topic_of(struct hk_buffer *out, const char *prefix, const char *kind, const char *sensor);
/* Appends the state of a sensor after an event, an object of the text protocol: {"sensor":...,"state":"alert","id":...}. False:
 * the event changes no state. */
bool hk_mqtt_state_of(struct hk_buffer *out, const cJSON *event);
/* Appends the topic, followed by a 0, and the payload that make the sensor a binary sensor of Home Assistant, which is on while
 * an alert stands. name: of the section. */
void hk_mqtt_discovery_of(struct hk_buffer *topic, struct hk_buffer *out, const char *discovery, const char *name,
                          const char *prefix, const char *sensor);

#endif
