#include "daemon/config/mqtt_rule.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define SECOND 1000000000ll
#define DAY (86400 * SECOND)

const char *const hk_mqtt_version_words[] = { "5", "3.1.1", NULL };
static const char *const qualities[] = { "0", "1", NULL };
static const char *const published[] = { "events", "scores", NULL }; /* enum hk_mqtt_publish */

static const struct hk_section_key keys[] = {
#define TAKES(what, field) HK_TAKES(what, struct hk_mqtt_rule, field)
  { "url", TAKES(TEXT, url) },
  { "client_id", TAKES(TEXT, client_id) },
  { "user", TAKES(TEXT, user) },
  { "password_file", TAKES(TEXT, password) },
  { "ca", TAKES(TEXT, ca) },
  { "certificate", TAKES(TEXT, certificate) },
  { "key", TAKES(TEXT, key) },
  { "insecure", TAKES(FLAG, insecure), .wrong = "not yes or no", .words = hk_yes_words },
  { "version", TAKES(WORD, version), .wrong = "not 5 or 3.1.1", .words = hk_mqtt_version_words },
  { "qos", TAKES(WORD, qos), .wrong = "not 0 or 1", .words = qualities },
  { "session", TAKES(DURATION, session), .wrong = "not a duration from 1s to 365d", .min = SECOND, .max = 365.0 * DAY },
  { "topics", TAKES(TEXT, topics) },
  { "sensor", TAKES(TEXT, sensor) },
  { "values", TAKES(TEXT, values) },
  { "time", TAKES(TEXT, time) },
  { "publish", TAKES(WORDS, publish), .wrong = "not one or both of events, scores", .words = published },
  { "prefix", TAKES(TEXT, prefix) },
  { "match", TAKES(GLOB, match) },
  { "min_score", TAKES(NUMBER, min_score), .wrong = "not a number from 0 to 1", .min = 0, .max = 1 },
  { "discovery", TAKES(TEXT, discovery) },
#undef TAKES
};

void hk_mqtt_rule_begin(struct hk_mqtt_rule *r)
{
  r->qos = 1;
  r->session = 7 * DAY;
  memcpy(r->prefix, "hankeld", 8);
  memcpy(r->match, "*", 2);
  snprintf(r->client_id, sizeof r->client_id, "hankeld-%s", r->name);
}

int hk_mqtt_rule_key(struct hk_mqtt_rule *r, const char *name, const char *value, char *error, size_t size)
{
  return hk_section_key_set("mqtt", keys, sizeof keys / sizeof *keys, r, name, value, error, size);
}

/* Names of published topics have no wildcards. */
static bool is_prefix(const char *text)
{
  const size_t length = strlen(text);
  return length > 0 && length < 128 && !strpbrk(text, "+#") && text[0] != '/' && text[0] != '$' && text[length - 1] != '/';
}

static int check_topics(struct hk_mqtt_rule *r, char *error, size_t size)
{
  struct hk_mqtt_topics topics;
  if (r->topics[0] == 0)
    return 0;
  int status = hk_mqtt_topics_parse(r->topics, &topics, error, size);
  if (status == 0 && r->sensor[0] == 0)
    snprintf(r->sensor, sizeof r->sensor, "%s", hk_mqtt_topics_have(&topics, "sensor", 6) ? "{sensor}" : "{topic}");
  if (status == 0)
    status = hk_mqtt_template_check(r->sensor, &topics, error, size);
  return status;
}

int hk_mqtt_rule_finish(struct hk_mqtt_rule *r, char *error, size_t size)
{
  const char *why = NULL;
  const bool files = r->ca[0] || r->certificate[0] || r->key[0];
  if (!hk_broker_address_parse(&hk_scheme_mqtt, r->url, &r->address))
    why = "needs url = mqtt://HOST, or mqtts://HOST for TLS; a port from 1 to 65535 may follow, as in mqtt://HOST:1883";
  if (!why && r->topics[0] == 0 && r->publish == 0)
    why = "needs topics = TOPIC, ... to subscribe to, or publish = events, scores, or both";
  if (!why && !r->address.tls && files)
    why = "ca, certificate and key are for url = mqtts://";
  if (!why && !r->certificate[0] != !r->key[0])
    why = "certificate and key are needed together";
  if (!why && r->password[0] && !r->user[0])
    why = "password_file needs user";
  if (!why && r->password[0] && !r->address.tls && !r->insecure && !hk_broker_address_is_here(&r->address))
    why = "the password would be sent unencrypted: use url = mqtts://, or insecure = yes";
  if (!why && strlen(r->client_id) > 100)
    why = "client_id has at most 100 bytes";
  if (!why && !is_prefix(r->prefix))
    why = "prefix is a topic of at most 127 bytes, without + and #, and with no / at its ends";
  if (!why && r->min_score > 0 && !(r->publish & HK_MQTT_SCORES))
    why = "min_score is for publish = scores";
  if (!why && r->discovery[0] && (!is_prefix(r->discovery) || !(r->publish & HK_MQTT_EVENTS)))
    why = "discovery is a topic such as homeassistant, and needs publish = events";
  if (why) {
    snprintf(error, size, "%s", why);
    return -EINVAL;
  }
  return check_topics(r, error, size);
}

/* The first topic of `b` that `a` subscribes to, too; NULL: none. Both have passed hk_mqtt_topics_parse. */
static const struct hk_mqtt_topic *find_common(const struct hk_mqtt_topics *a, const struct hk_mqtt_topics *b)
{
  for (uint32_t i = 0; i < b->n; i++)
    for (uint32_t k = 0; k < a->n; k++)
      if (strcmp(a->topic[k].filter, b->topic[i].filter) == 0)
        return &b->topic[i];
  return NULL;
}

bool hk_mqtt_rules_meet(const struct hk_mqtt_rules *rules, uint32_t *at, char *line, size_t size)
{
  for (; *at < rules->n * rules->n; ++*at) {
    const struct hk_mqtt_rule *a = &rules->rule[*at % rules->n], *b = &rules->rule[*at / rules->n];
    struct hk_mqtt_topics of_a = { 0 }, of_b = { 0 };
    if (a >= b || !a->topics[0] || !b->topics[0] || strcmp(a->address.host, b->address.host) != 0 ||
        a->address.port != b->address.port || hk_mqtt_topics_parse(a->topics, &of_a, line, size) != 0 ||
        hk_mqtt_topics_parse(b->topics, &of_b, line, size) != 0)
      continue;
    const struct hk_mqtt_topic *both = find_common(&of_a, &of_b);
    const bool shared = both && both->match > 0, alike = strcmp(a->sensor, b->sensor) == 0 && strcmp(a->values, b->values) == 0;
    if (!both || (!shared && !alike)) /* each may take other values from the same messages */
      continue;
    snprintf(
        line, size, "[mqtt %s] and [mqtt %s] subscribe to the same topic of one broker, %s: %s", a->name, b->name, both->filter,
        shared
            ? "each gets some messages of a sensor, and points that the other has overtaken are late; divide the topics instead"
            : "every message comes twice, and the second copy is late; leave the topic to one of them");
    ++*at;
    return true;
  }
  return false;
}
