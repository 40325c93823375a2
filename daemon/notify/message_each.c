#include "daemon/notify/message_each.h"

#include "daemon/notify/message_text.h"
#include "proto/hankel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The view's list has the alerts in the order of the message. */
static const cJSON *first_of(const cJSON *view)
{
  const cJSON *list = cJSON_GetObjectItem(view, "alerts");
  return list ? list->child : NULL;
}

/* --- alertmanager -------------------------------------------------------------------------------------------------------- */

static bool put_labelled(cJSON *list, const struct hk_notify_rule *r, const struct hk_told_of *w, const struct hk_notice *n,
                         const cJSON *view, const cJSON *alert)
{
  const struct hk_event *e = &n->logged.event;
  const int64_t lasts = r->repeat > 0 ? 5 * r->repeat : 365 * 86400ll * 1000000000; /* unless it is repeated */
  char name[HK_NAME_MAX + 1], begins[HK_TIME_TEXT_MAX], ends[HK_TIME_TEXT_MAX], count[16];
  const char *link = cJSON_GetStringValue(cJSON_GetObjectItem(alert, "link"));
  cJSON *a = cJSON_CreateObject();
  if (!a || !cJSON_AddItemToArray(list, a))
    return false;
  hk_view_name(n, name);
  snprintf(count, sizeof count, "%" PRIu32, e->number);
  hk_view_time(e->instant < w->now ? e->instant : w->now, begins);
  hk_view_time(hk_notice_over(n) ? w->now : w->now + lasts, ends);
  char *text = hk_text_notice(r, view, alert, hk_text_of_alert);
  cJSON *labels = cJSON_AddObjectToObject(a, "labels"), *notes = cJSON_AddObjectToObject(a, "annotations");
  const bool good = text && labels && notes && cJSON_AddStringToObject(labels, "alertname", "hankeld") &&
                    (hk_notice_incident(n)
                         ? cJSON_AddStringToObject(labels, "incident", count) != NULL
                         : cJSON_AddStringToObject(labels, "sensor", name) && cJSON_AddStringToObject(labels, "number", count) &&
                               cJSON_AddStringToObject(labels, "channel", hankel_channel_name(e->channel))) &&
                    cJSON_AddStringToObject(notes, "summary", text) &&
                    cJSON_AddStringToObject(notes, "level", hankel_severity_name(e->severity)) &&
                    cJSON_AddStringToObject(a, "startsAt", begins) && cJSON_AddStringToObject(a, "endsAt", ends) &&
                    (!link || cJSON_AddStringToObject(a, "generatorURL", link));
  free(text);
  return good;
}

bool hk_make_alertmanager(struct hk_notify_message *m, const struct hk_notify_rule *r, const struct hk_told_of *w,
                          const cJSON *view)
{
  cJSON *list = cJSON_CreateArray();
  const cJSON *alert = first_of(view);
  bool good = list != NULL;
  for (uint32_t i = 0; i < w->n && good; i++, alert = alert->next)
    good = alert && put_labelled(list, r, w, w->notice[i], view, alert);
  char *printed = good ? cJSON_PrintUnformatted(list) : NULL;
  if (printed)
    hk_buffer_put(&m->body, printed, strlen(printed));
  cJSON_free(printed);
  cJSON_Delete(list);
  return printed != NULL;
}

/* --- syslog -------------------------------------------------------------------------------------------------------------- */

#define DAEMON 24 /* facility */
#define WARNING 4
#define NOTICE 5

/* A message of RFC 5424 for each alert, its length in front (RFC 6587, 5425). */
bool hk_make_syslog(struct hk_notify_message *m, const struct hk_notify_rule *r, const struct hk_told_of *w, const cJSON *view)
{
  char host[64 + 1] = "-", when[HK_TIME_TEXT_MAX];
  const cJSON *alert = first_of(view);
  bool good = true;
  if (gethostname(host, sizeof host - 1) != 0 || host[0] == 0 || strpbrk(host, " \t"))
    snprintf(host, sizeof host, "-");
  hk_view_time(w->now, when);
  for (uint32_t i = 0; i < w->n && good; i++, alert = alert->next) {
    const struct hk_notice *n = w->notice[i];
    char head[160], *text = alert ? hk_text_notice(r, view, alert, hk_text_of_alert) : NULL;
    const int length =
        snprintf(head, sizeof head, "<%d>1 %s %s hankeld - %s - ", DAEMON + (hk_notice_over(n) ? NOTICE : WARNING), when, host,
                 hk_notice_over(n)       ? "over"
                 : hk_notice_incident(n) ? "incident"
                                         : "alert");
    good = text != NULL;
    for (char *p = text; good && *p; p++) /* a line of a log */
      *p = (unsigned char)*p < 0x20 ? ' ' : *p;
    if (good)
      hk_buffer_print(&m->body, "%zu %s", (size_t)length + strlen(text), head);
    if (good)
      hk_buffer_put(&m->body, text, strlen(text));
    free(text);
  }
  return good;
}

/* --- mqtt ---------------------------------------------------------------------------------------------------------------- */

/* A name as levels of a topic: + and # would be wildcards there. */
static void put_topic(struct hk_buffer *out, const char *name)
{
  for (const char *p = name; *p; p++)
    if (*p == '+' || *p == '#' || *p == '%')
      hk_buffer_print(out, "%%%02X", (unsigned)*p);
    else
      hk_buffer_put(out, p, 1);
}

/* The topic and payload of each alert; in the body one line each, for people. */
static void put_piece(struct hk_notify_message *m, const struct hk_notify_rule *r, const struct hk_notice *n, const char *payload,
                      bool retain)
{
  struct hk_notify_message_piece *p = &m->piece[m->n_pieces++];
  char name[HK_NAME_MAX + 1];
  hk_view_name(n, name);
  p->retain = retain;
  p->topic = m->body.size;
  hk_buffer_print(&m->body, "%s/", r->mqtt.topic);
  if (hk_notice_incident(n))
    hk_buffer_print(&m->body, "incident/%" PRIu64, n->change.id);
  else
    put_topic(&m->body, name);
  if (!hk_notice_incident(n))
    hk_buffer_print(&m->body, "/%" PRIu32, n->logged.event.number);
  p->topic_length = m->body.size - p->topic;
  hk_buffer_put(&m->body, "\t", 1);
  p->payload = m->body.size;
  p->payload_length = strlen(payload);
  hk_buffer_put(&m->body, payload, p->payload_length);
  hk_buffer_put(&m->body, "\n", 1);
}

/* Each alert has a topic of its own, and is retained while it stands. Its end is published, and then the topic is emptied, so
 * that the broker retains standing alerts only. */
bool hk_make_mqtt(struct hk_notify_message *m, const struct hk_notify_rule *r, const struct hk_told_of *w, const cJSON *view)
{
  const cJSON *alert = first_of(view);
  bool good = (m->piece = calloc(2 * (size_t)w->n, sizeof *m->piece)) != NULL;
  for (uint32_t i = 0; i < w->n && good; i++, alert = alert->next) {
    const struct hk_notice *n = w->notice[i];
    char *text = !alert                ? NULL
                 : r->template.text[0] ? hk_text_notice(r, view, alert, hk_text_of_alert)
                                       : cJSON_PrintUnformatted(alert);
    good = text != NULL;
    if (good)
      put_piece(m, r, n, text, !hk_notice_over(n) && !n->test);
    if (good && hk_notice_over(n))
      put_piece(m, r, n, "", true);
    free(text);
  }
  return good;
}
