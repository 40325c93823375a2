#include "daemon/config/notify_rule.h"

#include "cpu/duration.h"
#include "daemon/config/daemon_keys.h"
#include "proto/hankel.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ll
#define RATE_MOST 6000
#define RATE_MACHINES 60 /* messages a minute, of those that programs read */
#define RATE_PEOPLE 6
#define LONGEST (30ll * 86400 * SECOND)

const char *const hk_notify_type_words[] = { "webhook", "alertmanager", "slack", "email", "teams",
                                             "syslog",  "pagerduty",    "mqtt",  NULL };
#define TYPES "webhook, alertmanager, slack, email, teams, syslog, pagerduty, mqtt"
static const char *const group_words[] = { "all", "prefix", "sensor", "machine", NULL };
static const char pagerduty[] = "https://events.pagerduty.com/v2/enqueue";
static const char *const about_words[] = { "alerts", "incidents", NULL };
static const char *const channel_words[] = { "none", "score", "change", "shift", "group", "novelty", "limit", NULL };
static const char *const yes_words[] = { "no", "yes", NULL };

/* Keys whose value is text, or a time. */
static const struct {
  const char *name;
  size_t at;
} texts[] = {
  { "url", offsetof(struct hk_notify_rule, url) },       { "server", offsetof(struct hk_notify_rule, server) },
  { "from", offsetof(struct hk_notify_rule, from) },     { "to", offsetof(struct hk_notify_rule, to) },
  { "user", offsetof(struct hk_notify_rule, user) },     { "secret_file", offsetof(struct hk_notify_rule, secret) },
  { "page", offsetof(struct hk_notify_rule, page) },     { "ca", offsetof(struct hk_notify_rule, tls.ca) },
  { "key", offsetof(struct hk_notify_rule, tls.key) }, { "certificate", offsetof(struct hk_notify_rule, tls.certificate) },
  { "topic", offsetof(struct hk_notify_rule, mqtt.topic) }, { "client_id", offsetof(struct hk_notify_rule, mqtt.client) },
}, times[] = {
  { "after", offsetof(struct hk_notify_rule, after) },   { "gather", offsetof(struct hk_notify_rule, gather) },
  { "repeat", offsetof(struct hk_notify_rule, repeat) }, { "give_up", offsetof(struct hk_notify_rule, give_up) },
  { "timeout", offsetof(struct hk_notify_rule, timeout) },
};

void hk_notify_rule_begin(struct hk_notify_rule *r)
{
  r->type = UINT32_MAX;
  r->channels = ~0u;
  r->gather = SECOND;
  r->repeat = -1;
  r->give_up = 3600 * SECOND;
  r->timeout = 10 * SECOND;
  r->resolved = true;
  r->quiet.severity = HANKEL_SEVERE;
  memcpy(r->quiet.zone, "local", sizeof "local");
  r->mqtt.version = 5;
  memcpy(r->match, "*", 2);
}

/* A value goes into headers and URLs: nothing that would end a line there. */
static const char *take_text(char *out, const char *value)
{
  for (const char *p = value; *p; p++)
    if ((unsigned char)*p < 0x20 || *p == 0x7f)
      return "it holds a control character";
  if (value[0] == 0 || strlen(value) >= HK_NOTIFY_TEXT)
    return "1 to 255 bytes are needed";
  memset(out, 0, HK_NOTIFY_TEXT);
  memcpy(out, value, strlen(value));
  return NULL;
}

static const char *take_time(int64_t *out, const char *name, const char *value)
{
  const bool off = strcmp(name, "repeat") == 0 && strcmp(value, "off") == 0;
  if (off)
    *out = 0;
  else if (hk_duration_parse(value, out) != 0 || *out < 0 || *out > LONGEST)
    return "not a duration such as 30s, 5m or 2h (at most 30 days)";
  return NULL;
}

static const char *take_channels(uint32_t *out, const char *value)
{
  char text[HK_NOTIFY_TEXT], *rest = text;
  uint32_t word;
  snprintf(text, sizeof text, "%s", value);
  *out = 0;
  for (char *one = strtok_r(text, ", ", &rest); one; one = strtok_r(NULL, ", ", &rest)) {
    if (hk_word_find(channel_words, one, &word) != 0 || word == 0)
      return "not some of score, change, shift, group, novelty, limit";
    *out |= 1u << word;
  }
  return *out ? NULL : "not some of score, change, shift, group, novelty, limit";
}

static const char *take_number(double *out, const char *value, double least, double most)
{
  char *end;
  *out = strtod(value, &end);
  return end == value || *end || !(*out >= least && *out <= most) ? "not a number within its limits" : NULL;
}

/* *known: there is such a key. NULL, or what is wrong. */
static const char *take_other(struct hk_notify_rule *r, const char *name, const char *value, bool *known)
{
  uint32_t word;
  double number;
  if (strcmp(name, "type") == 0)
    return hk_word_find(hk_notify_type_words, value, &r->type) != 0 ? "not one of " TYPES : NULL;
  if (strcmp(name, "group_by") == 0)
    return hk_word_find(group_words, value, &r->group) != 0 ? "not one of all, prefix, sensor, machine" : NULL;
  if (strcmp(name, "about") == 0) {
    if (hk_word_find(about_words, value, &word) != 0)
      return "not alerts or incidents";
    r->incidents = word == 1;
    return NULL;
  }
  if (strcmp(name, "channel") == 0)
    return take_channels(&r->channels, value);
  if (strcmp(name, "min_severity") == 0)
    return take_number(&r->min_severity, value, 0, 40) ? "not a number from 0 to 40" : NULL;
  if (strcmp(name, "resolved") == 0) {
    if (hk_word_find(yes_words, value, &word) != 0)
      return "not yes or no";
    r->resolved = word == 1;
    return NULL;
  }
  if (strcmp(name, "rate") == 0) {
    if (take_number(&number, value, 1, RATE_MOST) || number != (uint32_t)number)
      return "not a whole number of messages a minute from 1 to 6000";
    r->rate = (uint32_t)number;
    return NULL;
  }
  if (strcmp(name, "mqtt_version") == 0) {
    r->mqtt.version = strcmp(value, "5") == 0 ? 5 : 3;
    return r->mqtt.version == 3 && strcmp(value, "3.1.1") != 0 ? "not 5 or 3.1.1" : NULL;
  }
  if (strcmp(name, "match") == 0) {
    if (value[0] == 0 || strlen(value) >= sizeof r->match)
      return "a glob of 1 to 512 bytes; * matches every sensor";
    memset(r->match, 0, sizeof r->match);
    memcpy(r->match, value, strlen(value));
    return NULL;
  }
  return hk_notify_quiet_key(&r->quiet, name, value, known);
}

int hk_notify_rule_key(struct hk_notify_rule *r, const char *name, const char *value, char *error, size_t size)
{
  const char *wrong = NULL;
  bool known = false;
  if (strncmp(name, "template", 8) == 0 && r->template.text[0]) {
    snprintf(error, size, "%.64s: template or template_file, and not both", name);
    return -EINVAL;
  }
  if (strcmp(name, "template") == 0)
    return hk_notify_template_take(&r->template, value, error, size) ? 0 : -EINVAL;
  if (strcmp(name, "template_file") == 0)
    return hk_notify_template_read(&r->template, value, error, size) ? 0 : -EINVAL;
  for (size_t i = 0; i < sizeof texts / sizeof *texts && !known; i++)
    if ((known = strcmp(texts[i].name, name) == 0))
      wrong = take_text((char *)r + texts[i].at, value);
  for (size_t i = 0; i < sizeof times / sizeof *times && !known; i++)
    if ((known = strcmp(times[i].name, name) == 0))
      wrong = take_time((int64_t *)(void *)((char *)r + times[i].at), name, value);
  if (!known) {
    known = true;
    wrong = take_other(r, name, value, &known);
  }
  if (!known)
    snprintf(error, size, "[notify] has no key `%.64s`; hankeld.conf(5) lists them", name);
  else if (wrong)
    snprintf(error, size, "%s = %.64s: %s", name, value, wrong);
  return known && !wrong ? 0 : -EINVAL;
}

static bool begins(const char *text, const char *with)
{
  return strncmp(text, with, strlen(with)) == 0;
}

static bool is_http(const char *url)
{
  return begins(url, "http://") || begins(url, "https://");
}

bool hk_notify_for_people(const struct hk_notify_rule *r)
{
  return r->type == HK_NOTIFY_SLACK || r->type == HK_NOTIFY_EMAIL || r->type == HK_NOTIFY_TEAMS || r->type == HK_NOTIFY_PAGERDUTY;
}

bool hk_notify_one_by_one(const struct hk_notify_rule *r)
{
  return r->type == HK_NOTIFY_ALERTMANAGER || r->type == HK_NOTIFY_SYSLOG || r->type == HK_NOTIFY_MQTT;
}

bool hk_notify_secret_url(const struct hk_notify_rule *r)
{
  return (r->type == HK_NOTIFY_SLACK || r->type == HK_NOTIFY_TEAMS) && r->secret[0];
}

static const char *look_at_email(const struct hk_notify_rule *r)
{
  if (!begins(r->server, "smtp://") && !begins(r->server, "smtps://"))
    return "type = email needs server = smtp://HOST:PORT, or smtps://";
  if (!strchr(r->from, '@') || !strchr(r->to, '@') || strpbrk(r->from, "<>\", ") || strpbrk(r->to, "<>\""))
    return "type = email needs from = ADDRESS and to = ADDRESS, or several with commas between them";
  if (r->user[0] && !r->secret[0])
    return "user needs secret_file, with the password";
  return r->url[0] ? "url is for the other types; email has server" : NULL;
}

/* Where a port begins in SCHEME://HOST:PORT, of one of two schemes; NULL: it is something else. */
static const char *port_of(const char *server, const char *plain, const char *secure)
{
  const char *host = strstr(server, "://"), *port = host ? strrchr(host + 3, ':') : NULL;
  if ((!begins(server, plain) && !begins(server, secure)) || !port || port == host + 3 || strpbrk(host + 3, "/@? "))
    return NULL;
  const long number = strtol(port + 1, NULL, 10);
  return port[1] && strspn(port + 1, "0123456789") == strlen(port + 1) && number > 0 && number < 65536 ? port + 1 : NULL;
}

static const char *look_at_syslog(const struct hk_notify_rule *r)
{
  if (!port_of(r->server, "tcp://", "tls://"))
    return "type = syslog needs server = tcp://HOST:PORT, or tls://";
  return r->url[0] || r->from[0] || r->to[0] || r->user[0] || r->secret[0] ? "type = syslog has server, and nothing to show it"
                                                                           : NULL;
}

/* SCHEME://HOST:PORT whose host is this machine */
static bool is_here(const char *server)
{
  const char *host = strstr(server, "://") + 3;
  return begins(host, "localhost:") || begins(host, "[::1]:") ||
         (begins(host, "127.") && host[strspn(host, "0123456789.")] == ':');
}

static const char *look_at_mqtt(const struct hk_notify_rule *r)
{
  if (!port_of(r->server, "mqtt://", "mqtts://"))
    return "type = mqtt needs server = mqtt://HOST:PORT, or mqtts://";
  if (!r->mqtt.topic[0] || strpbrk(r->mqtt.topic, "+#") || r->mqtt.topic[0] == '$')
    return "type = mqtt needs topic = TOPIC, what those of alerts begin with, without + and #";
  if (r->user[0] && !r->secret[0])
    return "user needs secret_file, with the password";
  if (r->secret[0] && !r->user[0])
    return "secret_file of type = mqtt is the password of user = NAME";
  if (r->user[0] && begins(r->server, "mqtt://") && !is_here(r->server))
    return "user needs mqtts://, for a password does not travel in clear";
#ifndef HK_HAVE_MQTT
  return "type = mqtt needs a hankeld that is built with libmosquitto; this one is not (meson option mqtt)";
#else
  return r->url[0] || r->from[0] || r->to[0] ? "url, from and to are for the other types; mqtt has server and topic" : NULL;
#endif
}

/* Those that are posted to. */
static const char *look_at_http(struct hk_notify_rule *r)
{
  if (r->server[0] || r->from[0] || r->to[0] || r->user[0])
    return "server, from, to and user are for type = email, and some of them for syslog and mqtt";
  if (r->type == HK_NOTIFY_PAGERDUTY) {
    if (!r->secret[0])
      return "type = pagerduty needs secret_file, with the integration key of a service (Events API v2)";
    if (!r->incidents && r->group != HK_NOTIFY_ALL)
      return "type = pagerduty has one incident there while any alert stands (group_by = all), or one for each of about = "
             "incidents";
    if (!r->url[0])
      memcpy(r->url, pagerduty, sizeof pagerduty);
  }
  if (hk_notify_secret_url(r) && r->url[0])
    return "type = slack or teams has url, or secret_file with the URL in it, and not both";
  return !is_http(r->url) && !hk_notify_secret_url(r) ? "needs url = http://... or https://..." : NULL;
}

static const char *look_at_type(struct hk_notify_rule *r)
{
  if (r->type == UINT32_MAX)
    return "needs type, one of " TYPES;
  if (r->type != HK_NOTIFY_MQTT && (r->mqtt.topic[0] || r->mqtt.client[0] || r->mqtt.version != 5))
    return "topic, client_id and mqtt_version are for type = mqtt";
  if (!r->tls.certificate[0] != !r->tls.key[0])
    return "certificate and key belong together";
  return r->type == HK_NOTIFY_EMAIL    ? look_at_email(r)
         : r->type == HK_NOTIFY_SYSLOG ? look_at_syslog(r)
         : r->type == HK_NOTIFY_MQTT   ? look_at_mqtt(r)
                                       : look_at_http(r);
}

int hk_notify_rule_finish(struct hk_notify_rule *r, char *error, size_t size)
{
  const char *why = look_at_type(r);
  if (!why && r->page[0] && !is_http(r->page))
    why = "page is a URL, http://... or https://...";
  if (!why && (r->timeout < SECOND / 10 || r->give_up < SECOND || (r->repeat > 0 && r->repeat < SECOND)))
    why = "timeout is at least 100ms, give_up 1s, repeat 1s or off";
  if (r->rate == 0)
    r->rate = hk_notify_for_people(r) ? RATE_PEOPLE : RATE_MACHINES;
  if (r->repeat < 0) /* the Alertmanager takes an alert for over that it does not hear of */
    r->repeat = r->type == HK_NOTIFY_ALERTMANAGER ? 60 * SECOND : 0;
  if (why)
    snprintf(error, size, "%s", why);
  return why || !hk_notify_template_fits(&r->template, r->incidents, error, size) ? -EINVAL : 0;
}
