/* [mqtt NAME] of the configuration: a broker, its subscriptions and the names of their sensors, and what is published to it.
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

/* What is published; bits. */
enum hk_mqtt_publish { HK_MQTT_EVENTS = 1, HK_MQTT_SCORES = 2 };

/* To zero before hk_mqtt_rule_begin, so that equal rules have equal bytes. */
struct hk_mqtt_rule {
  char name[HK_CONFIG_NAME_MAX]; /* letters, digits, - and _, since names of files and client ids contain it */
  char url[HK_SECTION_TEXT];     /* as written */
  struct hk_broker_address address;
  char client_id[HK_SECTION_TEXT];
  char user[HK_SECTION_TEXT], password[HK_SECTION_TEXT];                        /* password: path of a file; "": none */
  char ca[HK_SECTION_TEXT], certificate[HK_SECTION_TEXT], key[HK_SECTION_TEXT]; /* paths; "": none */
  bool insecure;                                                                /* the password may go unencrypted */
  uint32_t version;                                                             /* enum hk_mqtt_version */
  uint32_t qos;                                                                 /* of subscriptions: 0 or 1 */
  int64_t session;                                                              /* ns that the broker keeps messages for us */
  char topics[HK_SECTION_TEXT];                                                 /* "": no subscription */
  char sensor[HK_SECTION_TEXT];                                                 /* template of the names */
  char values[HK_SECTION_TEXT];    /* paths of keys in JSON, separated by commas; "": every number */
  char time[HK_SECTION_TEXT];      /* path of the key that has the time; "": time of arrival */
  uint32_t publish;                /* enum hk_mqtt_publish, bits; 0: nothing */
  char prefix[HK_SECTION_TEXT];    /* of published topics */
  char match[HK_SECTION_GLOB];     /* glob for names of published sensors */
  double min_score;                /* minimum of published scores, 0..1 */
  char discovery[HK_SECTION_TEXT]; /* prefix of Home Assistant's discovery; "": none */
};

struct hk_mqtt_rules {
  struct hk_mqtt_rule *rule;
  uint32_t n;
};

/* Sets defaults. name: fits. */
void hk_mqtt_rule_begin(struct hk_mqtt_rule *rule);
/* Sets a key. Returns 0, or -EINVAL with a message. */
int hk_mqtt_rule_key(struct hk_mqtt_rule *rule, const char *name, const char *value, char *error, size_t size);
/* Checks the whole rule; sets values that follow from other keys. Returns 0, or -EINVAL with a message. */
int hk_mqtt_rule_finish(struct hk_mqtt_rule *rule, char *error, size_t size);

/* Finds the next two sections that subscribe to the same topic of one broker, with a line that explains the effect. False: none.
 * *at: 0 for the first. */
bool hk_mqtt_rules_meet(const struct hk_mqtt_rules *rules, uint32_t *at, char *line, size_t size);

#endif
