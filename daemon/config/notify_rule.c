#include "daemon/config/notify_rule.h"

#include "cpu/duration.h"
#include "daemon/config/daemon_keys.h"

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

const char *const hk_notify_type_words[] = { "webhook", "alertmanager", "slack", "email", "teams", "syslog", NULL };
static const char *const group_words[] = { "all", "prefix", "sensor", NULL };
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
  { "page", offsetof(struct hk_notify_rule, page) },
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
    return hk_word_find(hk_notify_type_words, value, &r->type) != 0
               ? "not one of webhook, alertmanager, slack, email, teams, syslog"
               : NULL;
  if (strcmp(name, "group_by") == 0)
    return hk_word_find(group_words, value, &r->group) != 0 ? "not one of all, prefix, sensor" : NULL;
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

int hk_notify_rule_key(struct hk_notify_rule *r, const char *name, const char *value, char *error, size_t size)
{
  const char *wrong = NULL;
  bool known = false;
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

static bool is_http(const char *url)
{
  return strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
}

static const char *look_at_email(const struct hk_notify_rule *r)
{
  if (strncmp(r->server, "smtp://", 7) != 0 && strncmp(r->server, "smtps://", 8) != 0)
    return "type = email needs server = smtp://HOST:PORT, or smtps://";
  if (!strchr(r->from, '@') || !strchr(r->to, '@') || strpbrk(r->from, "<>\", ") || strpbrk(r->to, "<>\""))
    return "type = email needs from = ADDRESS and to = ADDRESS, or several with commas between them";
  if (r->user[0] && !r->secret[0])
    return "user needs secret_file, with the password";
  return r->url[0] ? "url is for the other types; email has server" : NULL;
}

bool hk_notify_for_people(const struct hk_notify_rule *r)
{
  return r->type == HK_NOTIFY_SLACK || r->type == HK_NOTIFY_EMAIL || r->type == HK_NOTIFY_TEAMS;
}

bool hk_notify_secret_url(const struct hk_notify_rule *r)
{
  return (r->type == HK_NOTIFY_SLACK || r->type == HK_NOTIFY_TEAMS) && r->secret[0];
}

static const char *look_at_syslog(const struct hk_notify_rule *r)
{
  const char *host = strstr(r->server, "://"), *port = host ? strrchr(host + 3, ':') : NULL;
  const bool known = strncmp(r->server, "tcp://", 6) == 0 || strncmp(r->server, "tls://", 6) == 0;
  if (!known || !port || port[1] == 0 || strspn(port + 1, "0123456789") != strlen(port + 1) || strpbrk(host + 3, "/@? "))
    return "type = syslog needs server = tcp://HOST:PORT, or tls://";
  return r->url[0] || r->from[0] || r->to[0] || r->user[0] || r->secret[0] ? "type = syslog has server, and nothing to show it"
                                                                           : NULL;
}

int hk_notify_rule_finish(struct hk_notify_rule *r, char *error, size_t size)
{
  const char *why = NULL;
  if (r->type == UINT32_MAX)
    why = "needs type = webhook, alertmanager, slack, email, teams or syslog";
  else if (r->type == HK_NOTIFY_EMAIL)
    why = look_at_email(r);
  else if (r->type == HK_NOTIFY_SYSLOG)
    why = look_at_syslog(r);
  else if (r->server[0] || r->from[0] || r->to[0] || r->user[0])
    why = "server, from, to and user are for type = email";
  else if (hk_notify_secret_url(r) && r->url[0])
    why = "type = slack or teams has url, or secret_file with the URL in it, and not both";
  else if (!is_http(r->url) && !hk_notify_secret_url(r))
    why = "needs url = http://... or https://...";
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
  return why ? -EINVAL : 0;
}
