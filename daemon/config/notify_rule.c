#include "daemon/config/notify_rule.h"

#include "proto/hankel.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ll
#define RATE_MOST 6000
#define RATE_MACHINES 60 /* messages per minute, for receivers that are programs */
#define RATE_PEOPLE 6
#define LONGEST (30ll * 86400 * SECOND)

const char *const hk_notify_type_words[] = { "webhook", "alertmanager", "slack", "email", "teams",
                                             "syslog",  "pagerduty",    "mqtt",  NULL };
#define TYPES "webhook, alertmanager, slack, email, teams, syslog, pagerduty, mqtt"
static const char *const group_words[] = { "all", "prefix", "sensor", "machine", NULL };
static const char pagerduty[] = "https://events.pagerduty.com/v2/enqueue";
static const char *const about_words[] = { "alerts", "incidents", NULL };
static const char *const channel_words[] = { "", "score", "change", "shift", "group", "novelty", "limit", NULL };

static const char time_wrong[] = "not a duration such as 30s, 5m or 2h (at most 30 days)";
static const char severity_wrong[] = "not a number from 0 to 40";

static const struct hk_section_key keys[] = {
#define TAKES(what, field) HK_TAKES(what, struct hk_notify_rule, field)
  { "type", TAKES(WORD, type), .wrong = "not one of " TYPES, .words = hk_notify_type_words },
  { "url", TAKES(TEXT, url) },
  { "server", TAKES(TEXT, server) },
  { "from", TAKES(TEXT, from) },
  { "to", TAKES(TEXT, to) },
  { "user", TAKES(TEXT, user) },
  { "secret_file", TAKES(TEXT, secret) },
  { "page", TAKES(TEXT, page) },
  { "template", TAKES(OTHER, template) }, /* hk_notify_rule_key takes these two; here they are for suggestions */
  { "template_file", TAKES(OTHER, template) },
  { "ca", TAKES(TEXT, tls.ca) },
  { "certificate", TAKES(TEXT, tls.certificate) },
  { "key", TAKES(TEXT, tls.key) },
  { "topic", TAKES(TEXT, mqtt.topic) },
  { "client_id", TAKES(TEXT, mqtt.client) },
  { "mqtt_version", TAKES(WORD, mqtt.version), .wrong = "not 5 or 3.1.1", .words = hk_mqtt_version_words },
  { "match", TAKES(GLOB, match) },
  { "channel", TAKES(WORDS, channels), .wrong = "not some of score, change, shift, group, novelty, limit",
    .words = channel_words },
  { "about", TAKES(FLAG, about.incidents), .wrong = "not alerts or incidents", .words = about_words },
  { "section", TAKES(GLOB, about.section) },
  { "group_by", TAKES(WORD, group), .wrong = "not one of all, prefix, sensor, machine", .words = group_words },
  { "min_severity", TAKES(NUMBER, min_severity), .wrong = severity_wrong, .max = 40 },
  { "resolved", TAKES(FLAG, resolved), .wrong = "not yes or no", .words = hk_yes_words },
  { "rate", TAKES(WHOLE, rate), .wrong = "not a whole number of messages a minute from 1 to 6000", .min = 1, .max = RATE_MOST },
  { "after", TAKES(DURATION, after), .wrong = time_wrong, .max = LONGEST },
  { "gather", TAKES(DURATION, gather), .wrong = time_wrong, .max = LONGEST },
  { "repeat", TAKES(DURATION, repeat), .wrong = time_wrong, .max = LONGEST, .off = true },
  { "give_up", TAKES(DURATION, give_up), .wrong = time_wrong, .max = LONGEST },
  { "timeout", TAKES(DURATION, timeout), .wrong = time_wrong, .max = LONGEST },
  { "quiet", TAKES(OTHER, quiet), .take = hk_notify_quiet_hours },
  { "quiet_zone", TAKES(OTHER, quiet), .take = hk_notify_quiet_zone },
  { "quiet_severity", TAKES(NUMBER, quiet.severity), .wrong = severity_wrong, .max = 40 },
#undef TAKES
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
  memcpy(r->match, "*", 2);
}

int hk_notify_rule_key(struct hk_notify_rule *r, const char *name, const char *value, char *error, size_t size)
{
  if (strncmp(name, "template", 8) == 0 && r->template.text[0]) {
    snprintf(error, size, "%.64s: template or template_file, and not both", name);
    return -EINVAL;
  }
  if (strcmp(name, "template") == 0)
    return hk_notify_template_take(&r->template, value, error, size) ? 0 : -EINVAL;
  if (strcmp(name, "template_file") == 0)
    return hk_notify_template_read(&r->template, value, error, size) ? 0 : -EINVAL;
  return hk_section_key_set("notify", keys, sizeof keys / sizeof *keys, r, name, value, error, size);
}

static bool notify_rule_begins(const char *text, const char *with)
{
  return strncmp(text, with, strlen(with)) == 0;
}

static bool is_http(const char *url)
{
  return notify_rule_begins(url, "http://") || notify_rule_begins(url, "https://");
}

bool hk_notify_for_people(const struct hk_notify_rule *r)
{
  return r->type == HK_NOTIFY_SLACK || r->type == HK_NOTIFY_EMAIL || r->type == HK_NOTIFY_TEAMS || r->type == HK_NOTIFY_PAGERDUTY;
}

bool hk_notify_secret_url(const struct hk_notify_rule *r)
{
  return (r->type == HK_NOTIFY_SLACK || r->type == HK_NOTIFY_TEAMS) && r->secret[0];
}

static const char *look_at_email(const struct hk_notify_rule *r)
{
  if (!notify_rule_begins(r->server, "smtp://") && !notify_rule_begins(r->server, "smtps://"))
    return "type = email needs server = smtp://HOST:PORT, or smtps://";
  if (!strchr(r->from, '@') || !strchr(r->to, '@') || strpbrk(r->from, "<>\", ") || strpbrk(r->to, "<>\""))
    return "type = email needs from = ADDRESS and to = ADDRESS, or several with commas between them";
  if (r->user[0] && !r->secret[0])
    return "user needs secret_file, with the password";
  return r->url[0] ? "url is for the other types; email has server" : NULL;
}

/* Offset of the port in SCHEME://HOST:PORT, with one of two schemes; NULL: another format. */
static const char *port_of(const char *server, const char *plain, const char *secure)
{
  const char *host = strstr(server, "://"), *port = host ? strrchr(host + 3, ':') : NULL;
  if ((!notify_rule_begins(server, plain) && !notify_rule_begins(server, secure)) || !port || port == host + 3 ||
      strpbrk(host + 3, "/@? "))
    return NULL;
  const long number = strtol(port + 1, NULL, 10);
  return port[1] && strspn(port + 1, "0123456789") == strlen(port + 1) && number > 0 && number < 65536 ? port + 1 : NULL;
}

static const char *look_at_syslog(const struct hk_notify_rule *r)
{
  if (!port_of(r->server, "tcp://", "tls://"))
    return "type = syslog needs server = tcp://HOST:PORT, or tls://";
  return r->url[0] || r->from[0] || r->to[0] || r->user[0] || r->secret[0]
             ? "type = syslog takes server, and no url, user, secret_file, certificate or key"
             : NULL;
}

static const char *look_at_mqtt(struct hk_notify_rule *r)
{
  if (!hk_broker_address_parse(&hk_scheme_mqtt, r->server, &r->mqtt.address))
    return "type = mqtt needs server = mqtt://HOST:PORT, or mqtts://";
  if (!r->mqtt.topic[0] || strpbrk(r->mqtt.topic, "+#") || r->mqtt.topic[0] == '$')
    return "type = mqtt needs topic = TOPIC, the first levels of all topics, without + and #";
  if (r->user[0] && !r->secret[0])
    return "user needs secret_file, with the password";
  if (r->secret[0] && !r->user[0])
    return "secret_file of type = mqtt is the password of user = NAME";
  if (r->user[0] && !r->mqtt.address.tls && !hk_broker_address_is_here(&r->mqtt.address))
    return "user needs mqtts://: a password is not sent unencrypted";
#ifndef HK_HAVE_MQTT
  return "type = mqtt needs a hankeld that is built with libmosquitto; this one is not (meson option mqtt)";
#else
  return r->url[0] || r->from[0] || r->to[0] ? "url, from and to are for the other types; mqtt has server and topic" : NULL;
#endif
}

/* Types that get HTTP POST requests. */
static const char *notify_rule_look_at_http(struct hk_notify_rule *r)
{
  if (r->server[0] || r->from[0] || r->to[0] || r->user[0])
    return "server, from, to and user are for type = email, and some of them for syslog and mqtt";
  if (r->type == HK_NOTIFY_PAGERDUTY) {
    if (!r->secret[0])
      return "type = pagerduty needs secret_file, with the integration key of a service (Events API v2)";
    if (!r->about.incidents && r->group != HK_NOTIFY_ALL)
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
  if (r->type != HK_NOTIFY_MQTT && (r->mqtt.topic[0] || r->mqtt.client[0] || r->mqtt.version != HK_MQTT_5))
    return "topic, client_id and mqtt_version are for type = mqtt";
  if (!r->tls.certificate[0] != !r->tls.key[0])
    return "certificate and key belong together";
  return r->type == HK_NOTIFY_EMAIL    ? look_at_email(r)
         : r->type == HK_NOTIFY_SYSLOG ? look_at_syslog(r)
         : r->type == HK_NOTIFY_MQTT   ? look_at_mqtt(r)
                                       : notify_rule_look_at_http(r);
}

int hk_notify_rule_finish(struct hk_notify_rule *r, char *error, size_t size)
{
  const char *why = look_at_type(r);
  if (!why && r->page[0] && !is_http(r->page))
    why = "page is a URL, http://... or https://...";
  if (!why && (r->timeout < SECOND / 10 || r->give_up < SECOND || (r->repeat > 0 && r->repeat < SECOND)))
    why = "timeout is at least 100ms, give_up 1s, repeat 1s or off";
  if (!why && r->about.section[0] && !r->about.incidents)
    why = "section is of about = incidents: the sections [incidents NAME] that it is about";
  if (r->rate == 0)
    r->rate = hk_notify_for_people(r) ? RATE_PEOPLE : RATE_MACHINES;
  if (r->repeat < 0) /* the Alertmanager takes an alert for resolved if it is not repeated */
    r->repeat = r->type == HK_NOTIFY_ALERTMANAGER ? 60 * SECOND : 0;
  if (why)
    snprintf(error, size, "%s", why);
  return why || !hk_notify_template_fits(&r->template, r->about.incidents, error, size) ? -EINVAL : 0;
}
