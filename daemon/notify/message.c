/* Messages to each type of receiver. Receivers that get one message an alert are in message_each.c. */
#include "daemon/notify/message.h"

#include "daemon/notify/message_each.h"
#include "daemon/notify/message_text.h"
#include "daemon/notify/message_view.h"
#include "proto/hankel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SUMMARY_MOST 1024 /* bytes; PagerDuty truncates a longer one */

/* Writes the body of a message for one type of receiver. False: no memory. */
typedef bool maker(struct hk_notify_message *m, const struct hk_notify_rule *r, const struct hk_told_of *w, const cJSON *view);

/* Takes over object. NULL: it could not be made. */
static bool put_object(struct hk_notify_message *m, cJSON *object)
{
  char *printed = object ? cJSON_PrintUnformatted(object) : NULL;
  if (printed)
    hk_buffer_put(&m->body, printed, strlen(printed));
  cJSON_free(printed);
  cJSON_Delete(object);
  return printed != NULL;
}

static bool make_webhook(struct hk_notify_message *m, const struct hk_notify_rule *r, const struct hk_told_of *w,
                         const cJSON *view)
{
  (void)w;
  char *text = r->template.text[0] ? hk_text_message(r, view, "{{headline}}\n") : cJSON_PrintUnformatted(view);
  if (text && r->template.text[0] && !hk_text_is_json(text))
    m->content_type = "text/plain; charset=utf-8";
  if (text)
    hk_buffer_put(&m->body, text, strlen(text));
  free(text);
  return text != NULL;
}

static bool make_slack(struct hk_notify_message *m, const struct hk_notify_rule *r, const struct hk_told_of *w, const cJSON *view)
{
  (void)w;
  char *text = hk_text_message(r, view, hk_text_for_people);
  cJSON *o = cJSON_CreateObject();
  const bool good = text && o && cJSON_AddStringToObject(o, "text", text);
  free(text);
  return put_object(m, o) && good;
}

/* --- teams -------------------------------------------------------------------------------------------------------------- */

static bool put_text_block(cJSON *body, char *line, bool first)
{
  cJSON *block = cJSON_CreateObject();
  return block && cJSON_AddItemToArray(body, block) && cJSON_AddStringToObject(block, "type", "TextBlock") &&
         cJSON_AddStringToObject(block, "text", line) && cJSON_AddTrueToObject(block, "wrap") &&
         (!first || cJSON_AddStringToObject(block, "weight", "Bolder"));
}

/* The link of the message; NULL: none. */
static const char *link_of(const cJSON *view)
{
  return cJSON_GetStringValue(cJSON_GetObjectItem(view, "link"));
}

static bool put_button(cJSON *card, const char *link)
{
  cJSON *actions = cJSON_AddArrayToObject(card, "actions"), *open = cJSON_CreateObject();
  return actions && open && cJSON_AddItemToArray(actions, open) && cJSON_AddStringToObject(open, "type", "Action.OpenUrl") &&
         cJSON_AddStringToObject(open, "title", "Open") && cJSON_AddStringToObject(open, "url", link);
}

/* A message with one adaptive card, a block a line. */
static bool make_teams(struct hk_notify_message *m, const struct hk_notify_rule *r, const struct hk_told_of *w, const cJSON *view)
{
  (void)w;
  char *text = hk_text_message(r, view, hk_text_without_link), *rest = text;
  cJSON *o = cJSON_CreateObject(), *list = o ? cJSON_AddArrayToObject(o, "attachments") : NULL;
  cJSON *one = list ? cJSON_CreateObject() : NULL;
  bool good = text && one && cJSON_AddItemToArray(list, one);
  cJSON *card = good ? cJSON_AddObjectToObject(one, "content") : NULL, *body = card ? cJSON_AddArrayToObject(card, "body") : NULL;
  good = body && cJSON_AddStringToObject(o, "type", "message") &&
         cJSON_AddStringToObject(one, "contentType", "application/vnd.microsoft.card.adaptive") &&
         cJSON_AddStringToObject(card, "$schema", "http://adaptivecards.io/schemas/adaptive-card.json") &&
         cJSON_AddStringToObject(card, "type", "AdaptiveCard") && cJSON_AddStringToObject(card, "version", "1.4");
  bool first = true;
  for (char *line = text; good && line && (line = strtok_r(first ? text : NULL, "\n", &rest)) != NULL; first = false)
    good = put_text_block(body, line, first);
  if (good && link_of(view))
    good = put_button(card, link_of(view));
  free(text);
  return put_object(m, o) && good;
}

/* --- email -------------------------------------------------------------------------------------------------------------- */

static bool make_mail(struct hk_notify_message *m, const struct hk_notify_rule *r, const struct hk_told_of *w, const cJSON *view)
{
  const time_t seconds = (time_t)(w->now / 1000000000);
  char date[64], *text = hk_text_message(r, view, hk_text_for_people);
  struct tm tm;
  if (!text)
    return false;
  gmtime_r(&seconds, &tm);
  strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S +0000", &tm);
  snprintf(m->subject, sizeof m->subject, "[hankeld] %.*s", (int)strcspn(text, "\r\n"), text);
  for (char *p = m->subject; *p; p++)
    if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
      *p = '?';
  hk_buffer_print(
      &m->body,
      "Date: %s\r\nFrom: %s\r\nTo: %s\r\nSubject: %s\r\nMessage-ID: <%s@hankeld>\r\nAuto-Submitted: auto-generated\r\n"
      "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n",
      date, r->from, r->to, m->subject, m->key);
  for (const char *p = text; *p; p++)
    if (*p == '\n')
      hk_buffer_put(&m->body, "\r\n", 2);
    else if (*p != '\r')
      hk_buffer_put(&m->body, p, 1);
  free(text);
  return true;
}

/* --- pagerduty: Events API v2; sending adds the service's key, because bodies are kept in files ------------- */

static const char *paging_severity(float severity)
{
  return severity >= HANKEL_SEVERE ? "critical" : severity > 0 && !(severity >= HANKEL_WARNING) ? "info" : "warning";
}

/* The first line of a text, cut at a character where there is no more room. */
static void first_line(char *out, size_t size, const char *text)
{
  size_t length = strcspn(text, "\r\n");
  if (length >= size)
    for (length = size - 1; length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80; length--) {
    }
  memcpy(out, text, length);
  out[length] = 0;
}

static bool put_payload(cJSON *o, const struct hk_told_of *w, const cJSON *view, const char *text)
{
  const struct hk_notice *n = hk_view_gravest(w);
  const bool incident = hk_notice_incident(n);
  char summary[SUMMARY_MOST + 1], name[HK_NAME_MAX + 1], since[HK_TIME_TEXT_MAX];
  cJSON *payload = cJSON_AddObjectToObject(o, "payload"),
        *details = payload ? cJSON_AddObjectToObject(payload, "custom_details") : NULL;
  const cJSON *events = cJSON_GetObjectItem(view, "events");
  first_line(summary, sizeof summary, text);
  hk_view_name(n, name);
  hk_view_time(n->logged.event.instant, since);
  return details && cJSON_AddStringToObject(payload, "summary", summary) && cJSON_AddStringToObject(payload, "source", name) &&
         cJSON_AddStringToObject(payload, "severity", paging_severity(n->logged.event.severity)) &&
         cJSON_AddStringToObject(payload, "timestamp", since) &&
         (incident || cJSON_AddStringToObject(payload, "class", hankel_channel_name(n->logged.event.channel))) &&
         cJSON_AddStringToObject(details, "text", text) &&
         cJSON_AddNumberToObject(details, "events", events ? events->valuedouble : 0);
}

static bool put_paged_link(cJSON *o, const char *link)
{
  if (!link)
    return true;
  cJSON *links = cJSON_AddArrayToObject(o, "links"), *one = cJSON_CreateObject();
  return links && one && cJSON_AddItemToArray(links, one) && cJSON_AddStringToObject(one, "href", link) &&
         cJSON_AddStringToObject(one, "text", "hankeld") && cJSON_AddStringToObject(o, "client_url", link);
}

static bool make_page(struct hk_notify_message *m, const struct hk_notify_rule *r, const struct hk_told_of *w, const cJSON *view)
{
  static const char *const actions[] = { "trigger", "acknowledge", "resolve" };
  char dedup[64];
  const uint64_t incident = w->notice[0]->change.id;
  size_t used = (size_t)snprintf(dedup, sizeof dedup, "hankeld-%016" PRIx64, w->id);
  if (incident != 0)
    snprintf(dedup + used, sizeof dedup - used, "-incident-%" PRIu64, incident);
  char *text = w->paging == HK_PAGE_TRIGGER ? hk_text_message(r, view, hk_text_for_people) : NULL;
  cJSON *o = cJSON_CreateObject();
  const bool good = o && cJSON_AddStringToObject(o, "event_action", actions[w->paging]) &&
                    cJSON_AddStringToObject(o, "dedup_key", dedup) && cJSON_AddStringToObject(o, "client", "hankeld") &&
                    (w->paging != HK_PAGE_TRIGGER || (text && put_payload(o, w, view, text) && put_paged_link(o, link_of(view))));
  free(text);
  return put_object(m, o) && good;
}

/* --- all of them -------------------------------------------------------------------------------------------------------- */

static void make_key(struct hk_notify_message *m, const struct hk_told_of *w)
{
  const struct hk_notice *first = w->notice[0], *last = w->notice[w->n - 1];
  static const char *const paging[] = { "", "-acknowledge", "-resolve" };
  hk_view_key(m->key, sizeof m->key, w, first);
  size_t used = strlen(m->key);
  if (w->n > 1)
    used += (size_t)snprintf(m->key + used, sizeof m->key - used, "-%" PRIu64, last->logged.position);
  if (w->again > 0)
    used += (size_t)snprintf(m->key + used, sizeof m->key - used, "-again-%" PRIu64, w->again);
  snprintf(m->key + used, sizeof m->key - used, "%s", paging[w->paging]);
}

int hk_message_make(struct hk_notify_message *m, const struct hk_notify_rule *r, const struct hk_told_of *w)
{
  static maker *const makers[] = {
    [HK_NOTIFY_WEBHOOK] = make_webhook, [HK_NOTIFY_ALERTMANAGER] = hk_make_alertmanager,
    [HK_NOTIFY_SLACK] = make_slack,     [HK_NOTIFY_EMAIL] = make_mail,
    [HK_NOTIFY_TEAMS] = make_teams,     [HK_NOTIFY_SYSLOG] = hk_make_syslog,
    [HK_NOTIFY_PAGERDUTY] = make_page,  [HK_NOTIFY_MQTT] = hk_make_mqtt,
  };
  make_key(m, w);
  m->events = w->n;
  m->content_type = "application/json";
  cJSON *view = hk_view_message(r, w, m->key);
  const bool made = view && makers[r->type](m, r, w, view);
  cJSON_Delete(view);
  return !made || m->body.failed || m->body.size == 0 ? -ENOMEM : 0;
}

void hk_message_free(struct hk_notify_message *m)
{
  hk_buffer_free(&m->body);
  free(m->piece);
  *m = (struct hk_notify_message){ 0 };
}
