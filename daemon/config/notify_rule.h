/* [notify NAME] of the configuration: a receiver of alerts, and which alerts it gets. Thread: any. */
#ifndef HK_NOTIFY_RULE_H
#define HK_NOTIFY_RULE_H

#include "daemon/base/limits.h"
#include "daemon/config/mqtt_rule.h"
#include "daemon/config/notify_quiet.h"
#include "daemon/config/notify_template.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hk_notify_type {
  HK_NOTIFY_WEBHOOK,
  HK_NOTIFY_ALERTMANAGER,
  HK_NOTIFY_SLACK,
  HK_NOTIFY_EMAIL,
  HK_NOTIFY_TEAMS,
  HK_NOTIFY_SYSLOG,
  HK_NOTIFY_PAGERDUTY,
  HK_NOTIFY_MQTT
};
/* What one message contains: all waiting alerts; those of sensors with the same name up to the first / or .; those of one sensor;
 * those of one machine of a [group NAME], and for sensors without a machine those of the prefix. */
enum hk_notify_group { HK_NOTIFY_ALL, HK_NOTIFY_PREFIX, HK_NOTIFY_SENSOR, HK_NOTIFY_MACHINE };

/* Paths of files for TLS connections; "": the machine's trusted authorities, and no certificate of its own. */
struct hk_notify_tls {
  char ca[HK_SECTION_TEXT], certificate[HK_SECTION_TEXT], key[HK_SECTION_TEXT];
};
struct hk_notify_mqtt {
  char topic[HK_SECTION_TEXT];  /* prefix of the topics of alerts */
  char client[HK_SECTION_TEXT]; /* client id; "": hankeld-NAME- and a unique part */
  uint32_t version;             /* enum hk_mqtt_version */
  struct hk_broker_address address;
};

/* To zero before hk_notify_rule_begin, so that equal rules have equal bytes. */
struct hk_notify_rule {
  char name[HK_CONFIG_NAME_MAX]; /* letters, digits, - and _, since names of files contain it */
  char url[HK_SECTION_TEXT];
  char server[HK_SECTION_TEXT];                    /* email, syslog, mqtt */
  char from[HK_SECTION_TEXT], to[HK_SECTION_TEXT]; /* email */
  char user[HK_SECTION_TEXT];                      /* email, mqtt */
  char
      secret[HK_SECTION_TEXT]; /* path of a file: token, password, key of a pagerduty, or the URL of a slack or teams; "": none */
  char page[HK_SECTION_TEXT];  /* URL that messages link to; "": none */
  char match[HK_SECTION_GLOB]; /* glob for names of sensors */
  uint32_t type, group;        /* enum hk_notify_type, hk_notify_group */
  uint32_t channels;           /* bit 1 << enum hk_channel */
  uint32_t rate;               /* maximum messages per minute, 1..6000 */
  double min_severity;
  int64_t after;   /* ns that an alert must have stood */
  int64_t gather;  /* ns that events are gathered for one message */
  int64_t repeat;  /* ns after which standing alerts are sent again; 0: never */
  int64_t give_up; /* ns after which a message that cannot be delivered is set aside */
  int64_t timeout; /* maximum duration of one attempt, ns */
  bool resolved;   /* ends are sent, too */
  struct {
    bool incidents;                /* each message is about one incident, instead of alerts, */
    char section[HK_SECTION_GLOB]; /* of a section whose name this glob matches; "": of any */
  } about;
  struct hk_notify_quiet quiet;
  struct hk_notify_template template; /* replaces the type's own text */
  struct hk_notify_tls tls;
  struct hk_notify_mqtt mqtt;
};

extern const char *const hk_notify_type_words[]; /* by number; the table ends with NULL */

/* Sets defaults that do not depend on the type. name: fits. */
void hk_notify_rule_begin(struct hk_notify_rule *rule);
/* Whether people read the messages. */
bool hk_notify_for_people(const struct hk_notify_rule *rule);
/* Whether the receiver's URL itself is a secret. */
bool hk_notify_secret_url(const struct hk_notify_rule *rule);
/* Sets a key. Returns 0, or -EINVAL with a message. */
int hk_notify_rule_key(struct hk_notify_rule *rule, const char *name, const char *value, char *error, size_t size);
/* Checks the whole rule; sets values that follow from the type. Returns 0, or -EINVAL with a message. */
int hk_notify_rule_finish(struct hk_notify_rule *rule, char *error, size_t size);

#endif
