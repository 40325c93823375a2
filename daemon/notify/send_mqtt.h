/* Publishes a message's pieces at an MQTT broker, by libmosquitto. Thread: the receiver's. */
#ifndef HK_NOTIFY_SEND_MQTT_H
#define HK_NOTIFY_SEND_MQTT_H

#include "daemon/config/notify_rule.h"
#include "daemon/notify/sending.h"

#include <stdatomic.h>

/* Connects to the rule's server, publishes all pieces with QoS 1, waits until each is acknowledged, and disconnects. password: of
 * the rule's user, or NULL; quit: as hk_sender_new. HK_SENT: the broker has taken all of them. */
enum hk_sent hk_send_mqtt(const struct hk_notify_rule *rule, const char *password, const struct hk_notify_message *message,
                          const atomic_bool *quit, struct hk_answer *answer);

#endif
