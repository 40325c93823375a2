#include "daemon/config/mqtt_rule.h"

#include "cpu/duration.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ll
#define DAY (86400 * SECOND)

/* Keys whose value is text. */
static const struct {
  const char *name;
  size_t at;
} texts[] = {
  { "url", offsetof(struct hk_mqtt_rule, url) },
  { "client_id", offsetof(struct hk_mqtt_rule, client_id) },
  { "user", offsetof(struct hk_mqtt_rule, user) },
  { "password_file", offsetof(struct hk_mqtt_rule, password) },
  { "ca", offsetof(struct hk_mqtt_rule, ca) },
  { "certificate", offsetof(struct hk_mqtt_rule, certificate) },
  { "key", offsetof(struct hk_mqtt_rule, key) },
  { "topics", offsetof(struct hk_mqtt_rule, topics) },
  { "sensor", offsetof(struct hk_mqtt_rule, sensor) },
  { "values", offsetof(struct hk_mqtt_rule, values) },
  { "time", offsetof(struct hk_mqtt_rule, time) },
  { "prefix", offsetof(struct hk_mqtt_rule, prefix) },
  { "discovery", offsetof(struct hk_mqtt_rule, discovery) },
};

void hk_mqtt_rule_begin(struct hk_mqtt_rule *r)
{
  r->qos = 1;
  r->session = 7 * DAY;
  memcpy(r->prefix, "hankeld", 8);
  memcpy(r->match, "*", 2);
  snprintf(r->client_id, sizeof r->client_id, "hankeld-%s", r->name);
}

static const char *take_text(char *out, const char *value)
{
  for (const char *p = value; *p; p++)
    if (iscntrl((unsigned char)*p))
      return "it holds a control character";
  if (value[0] == 0 || strlen(value) >= HK_MQTT_TEXT)
    return "1 to 255 bytes are needed";
  memset(out, 0, HK_MQTT_TEXT);
  memcpy(out, value, strlen(value));
  return NULL;
}

static const char *take_publish(uint32_t *out, const char *value)
{
  char text[HK_MQTT_TEXT], *rest = text;
  snprintf(text, sizeof text, "%s", value);
  *out = 0;
  for (char *one = strtok_r(text, ", ", &rest); one; one = strtok_r(NULL, ", ", &rest)) {
    if (strcmp(one, "events") != 0 && strcmp(one, "scores") != 0)
      return "not one or both of events, scores";
    *out |= one[0] == 'e' ? HK_MQTT_EVENTS : HK_MQTT_SCORES;
  }
  return *out ? NULL : "not one or both of events, scores";
}

/* *known: there is such a key. NULL, or what is wrong. */
static const char *take_other(struct hk_mqtt_rule *r, const char *name, const char *value, bool *known)
{
  if (strcmp(name, "version") == 0) {
    r->version = strcmp(value, "3.1.1") == 0 ? HK_MQTT_3 : HK_MQTT_5;
    return r->version == HK_MQTT_5 && strcmp(value, "5") != 0 ? "not 5 or 3.1.1" : NULL;
  }
  if (strcmp(name, "qos") == 0) {
    r->qos = value[0] == '1';
    return strcmp(value, "0") != 0 && strcmp(value, "1") != 0 ? "not 0 or 1" : NULL;
  }
  if (strcmp(name, "session") == 0)
    return hk_duration_parse(value, &r->session) != 0 || r->session < SECOND || r->session > 365 * DAY
               ? "not a duration from 1s to 365d"
               : NULL;
  if (strcmp(name, "insecure") == 0) {
    r->insecure = strcmp(value, "yes") == 0;
    return !r->insecure && strcmp(value, "no") != 0 ? "not yes or no" : NULL;
  }
  if (strcmp(name, "publish") == 0)
    return take_publish(&r->publish, value);
  if (strcmp(name, "min_score") == 0) {
    char *end;
    r->min_score = strtod(value, &end);
    return end == value || *end || !(r->min_score >= 0 && r->min_score <= 1) ? "not a number from 0 to 1" : NULL;
  }
  if (strcmp(name, "match") == 0) {
    if (value[0] == 0 || strlen(value) >= sizeof r->match)
      return "a glob of 1 to 512 bytes; * matches every sensor";
    memset(r->match, 0, sizeof r->match);
    memcpy(r->match, value, strlen(value));
    return NULL;
  }
  *known = false;
  return NULL;
}

int hk_mqtt_rule_key(struct hk_mqtt_rule *r, const char *name, const char *value, char *error, size_t size)
{
  const char *wrong = NULL;
  bool known = false;
  for (size_t i = 0; i < sizeof texts / sizeof *texts && !known; i++)
    if ((known = strcmp(texts[i].name, name) == 0))
      wrong = take_text((char *)r + texts[i].at, value);
  if (!known) {
    known = true;
    wrong = take_other(r, name, value, &known);
  }
  if (!known)
    snprintf(error, size, "[mqtt] has no key `%.64s`; hankeld.conf(5) lists them", name);
  else if (wrong)
    snprintf(error, size, "%s = %.64s: %s", name, value, wrong);
  return known && !wrong ? 0 : -EINVAL;
}

/* mqtt://HOST[:PORT] or mqtts://HOST[:PORT]; HOST may be [V6]. */
static const char *take_url(struct hk_mqtt_rule *r)
{
  static const char why[] = "needs url = mqtt://HOST, mqtts://HOST for TLS, or with a port, mqtt://HOST:1883";
  const bool plain = strncmp(r->url, "mqtt://", 7) == 0;
  if (!plain && strncmp(r->url, "mqtts://", 8) != 0)
    return why;
  const char *host = r->url + (plain ? 7 : 8), *end = host[0] == '[' ? strchr(host, ']') : host + strcspn(host, ":");
  if (!end || strpbrk(host, "/@?# "))
    return why;
  const char *port = host[0] == '[' ? end + 1 : end;
  host += host[0] == '[';
  if (end == host || (*port && *port != ':') || (*port && (port[1] == 0 || strspn(port + 1, "0123456789") != strlen(port + 1))))
    return why;
  const unsigned long number = *port ? strtoul(port + 1, NULL, 10) : plain ? 1883 : 8883;
  if (number == 0 || number > 65535)
    return "url: a port is a number from 1 to 65535";
  memset(r->host, 0, sizeof r->host);
  memcpy(r->host, host, (size_t)(end - host));
  r->port = (uint16_t)number;
  r->tls = !plain;
  return NULL;
}

static bool is_near(const char *host)
{
  return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

/* What is published goes under names that have no wildcards. */
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
  const char *why = take_url(r);
  const bool files = r->ca[0] || r->certificate[0] || r->key[0];
  if (!why && r->topics[0] == 0 && r->publish == 0)
    why = "needs topics = TOPIC, ... to subscribe to, or publish = events, scores, or both";
  if (!why && !r->tls && files)
    why = "ca, certificate and key are for url = mqtts://";
  if (!why && !r->certificate[0] != !r->key[0])
    why = "certificate and key are needed together";
  if (!why && r->password[0] && !r->user[0])
    why = "password_file needs user";
  if (!why && r->password[0] && !r->tls && !r->insecure && !is_near(r->host))
    why = "the password would go unencrypted, where everybody on the way can read it: take url = mqtts://, or insecure = yes";
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
