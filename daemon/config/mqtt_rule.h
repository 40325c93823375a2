/* [mqtt NAME] of the configuration: a broker, its subscriptions and the names of their sensors, and what is published there.
 * Thread: any. */
#ifndef HK_MQTT_RULE_H
#define HK_MQTT_RULE_H

#include "daemon/base/limits.h"
#include "daemon/config/broker_address.h"
#include "daemon/config/mqtt_topics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hk_mqtt_version { HK_MQTT_5, HK_MQTT_3 };
extern const char *const hk_mqtt_version_words[]; /* by number; the table ends with NULL */

/* What is published; added up. */
enum hk_mqtt_publish { HK_MQTT_EVENTS = 1, HK_MQTT_SCORES = 2 };

/* Zeroed, then hk_mqtt_rule_begin: so that equal rules are equal bytes. */
struct hk_mqtt_rule {
  char name[HK_CONFIG_NAME_MAX]; /* letters, digits, - and _: it is part of names of files and of client ids */
  char url[HK_SECTION_TEXT];     /* as written */
  struct hk_broker_address address;
  char client_id[HK_SECTION_TEXT];
  char user[HK_SECTION_TEXT], password[HK_SECTION_TEXT];                        /* password: path of a file; "": none */
  char ca[HK_SECTION_TEXT], certificate[HK_SECTION_TEXT], key[HK_SECTION_TEXT]; /* paths; "": none */
  bool insecure;                                                                /* the password may go unencrypted */
  uint32_t version;                                                             /* enum hk_mqtt_version */
  uint32_t qos;                                                                 /* of subscriptions: 0 or 1 */
  int64_t session;                                                              /* ns that the broker keeps what waits for us */
  char topics[HK_SECTION_TEXT];                                                 /* "": nothing is subscribed to */
  char sensor[HK_SECTION_TEXT];                                                 /* template of the names */
  char values[HK_SECTION_TEXT];    /* paths of keys in JSON, with commas; "": every number */
  char time[HK_SECTION_TEXT];      /* path of the key that has the time; "": of arrival */
  uint32_t publish;                /* enum hk_mqtt_publish, added up; 0: nothing */
  char prefix[HK_SECTION_TEXT];    /* of topics that are published */
  char match[HK_SECTION_GLOB];     /* of names of sensors that are published */
  double min_score;                /* of scores that are, 0..1 */
  char discovery[HK_SECTION_TEXT]; /* prefix of Home Assistant's discovery; "": none */
};

struct hk_mqtt_rules {
  struct hk_mqtt_rule *rule;
  uint32_t n;
};

/* Defaults. name: fits. */
void hk_mqtt_rule_begin(struct hk_mqtt_rule *rule);
/* Sets a key. 0, or -EINVAL with a message. */
int hk_mqtt_rule_key(struct hk_mqtt_rule *rule, const char *name, const char *value, char *error, size_t size);
/* What can only be said of a whole rule; sets what follows from the other keys. 0, or -EINVAL with a message. */
int hk_mqtt_rule_finish(struct hk_mqtt_rule *rule, char *error, size_t size);

/* The next two sections that ask one broker for the same topic, with a line that says what comes of it. False: none. *at: 0 for
 * the first. */
bool hk_mqtt_rules_meet(const struct hk_mqtt_rules *rules, uint32_t *at, char *line, size_t size);

#endif
