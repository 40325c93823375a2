#include "daemon/notify/message.h"

#include "daemon/base/limit_sentence.h"
#include "daemon/base/novelty_sentence.h"
#include "daemon/sensors/limit_shown.h"
#include "daemon/sensors/novelty_shown.h"
#include "proto/hankel.h"
#include "proto/wire/name.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LISTED 10 /* sensors that a message to people names */

static bool is_over(const struct hk_notice *n)
{
  return n->logged.event.kind == HK_EVENT_CLEARED;
}

static bool is_incident(const struct hk_notice *n)
{
  return n->change.id != 0;
}

size_t hk_message_prefix(struct hk_string name)
{
  size_t i = 0;
  while (i < name.length && name.data[i] != '/' && name.data[i] != '.')
    i++;
  return i;
}

/* Text from outside as text for people: what would act on a reader's terminal, or is no UTF-8, is left out of it. Returns the
 * bytes; out has room for as many as there are, and a 0. */
static size_t shown(struct hk_string text, char *out)
{
  size_t used = 0;
  for (size_t i = 0, step; i < text.length; i += step) {
    uint32_t code;
    step = hk_text_character(text.data + i, text.length - i, &code);
    if (code == HK_SHOWN_AS_IT_IS) {
      memcpy(out + used, text.data + i, step);
      used += step;
    } else {
      out[used++] = '?';
    }
  }
  out[used] = 0;
  return used;
}

static void name_of(const struct hk_notice *n, char out[HK_NAME_MAX + 1])
{
  (void)shown(n->logged.name, out);
}

/* One alert in one sentence. */
static void sentence(FILE *out, const struct hk_notice *n)
{
  const struct hk_event *e = &n->logged.event;
  char name[HK_NAME_MAX + 1], when[HK_TIMESTAMP_SIZE];
  name_of(n, name);
  hk_timestamp_format(e->instant, when);
  fprintf(out, "%s: ", name);
  if (n->test)
    fputs("this is a test: ", out);
  if (is_over(n))
    fputs("over: ", out);
  const struct hankel_event said = { .time = e->time,
                                     .from = e->from,
                                     .before = e->before,
                                     .after = e->after,
                                     .spread_before = e->spread_before,
                                     .novelty = hk_novelty_shown(e),
                                     .limit = hk_limit_shown(e) };
  if (said.novelty.kind != HANKEL_NO_NOVELTY && !is_over(n)) {
    hk_novelty_sentence(out, &said);
  } else if (said.limit.blocks > 0 && !is_over(n)) {
    hk_limit_sentence(out, &said);
  } else if (said.limit.blocks > 0) {
    fprintf(out, "the limit %.6g is not near any more", said.limit.limit);
  } else {
    fprintf(out, "level went from %.6g to %.6g at %s UTC", e->before, e->after, when);
  }
  fprintf(out, " (%s, %.3g times its threshold", hankel_channel_name(e->channel), (double)e->margin);
  if (e->severity > 0)
    fprintf(out, ", severity %.1f, %s", (double)e->severity, hankel_severity_name(e->severity));
  if (e->held > 0)
    fprintf(out, ", %" PRIu32 " held back before", e->held);
  fputs(n->again ? ", stands still)" : ")", out);
}

static char *sentence_text(const struct hk_notice *n)
{
  char *text = NULL;
  size_t size;
  if (is_incident(n)) {
    if ((text = malloc(n->change.text.length + 1)) != NULL)
      (void)shown(n->change.text, text);
    return text;
  }
  FILE *out = open_memstream(&text, &size);
  if (!out)
    return NULL;
  sentence(out, n);
  if (fclose(out) != 0) {
    free(text);
    return NULL;
  }
  return text;
}

static void time_text(int64_t ns, char out[HK_TIME_TEXT_MAX])
{
  hk_time_text(ns / 1000000000, out);
}

static cJSON *number(double x)
{
  return isfinite(x) ? cJSON_CreateNumber(x) : cJSON_CreateNull();
}

static void key_text(char *out, size_t size, const struct hk_told_of *w, const struct hk_notice *n)
{
  snprintf(out, size, "%016" PRIx64 "-%" PRIu64, w->id, n->logged.position);
}

/* --- webhook ----------------------------------------------------------------------------------------------------------- */

static bool put_limit(cJSON *alert, const struct hankel_limit *l)
{
  char reached[HK_TIME_TEXT_MAX], earliest[HK_TIME_TEXT_MAX], latest[HK_TIME_TEXT_MAX];
  cJSON *o = cJSON_AddObjectToObject(alert, "limit");
  time_text(l->reached, reached);
  time_text(l->earliest, earliest);
  time_text(l->latest, latest);
  return o && cJSON_AddItemToObject(o, "limit", number(l->limit)) &&
         cJSON_AddItemToObject(o, "slope", number((double)l->slope)) && cJSON_AddStringToObject(o, "earliest", earliest) &&
         cJSON_AddStringToObject(o, "reached", reached) &&
         (l->latest == INT64_MAX ? cJSON_AddNullToObject(o, "latest") : cJSON_AddStringToObject(o, "latest", latest)) &&
         cJSON_AddNumberToObject(o, "blocks", l->blocks);
}

/* What only events of some channels have to say. */
static bool put_note(cJSON *alert, const struct hk_event *e)
{
  const struct hankel_limit limit = hk_limit_shown(e);
  if (limit.blocks > 0)
    return put_limit(alert, &limit);
  if (hk_novelty_shown(e).kind == HANKEL_NO_NOVELTY)
    return true;
  cJSON *o = cJSON_AddObjectToObject(alert, "novelty");
  return o && cJSON_AddStringToObject(o, "kind", hankel_novelty_name(e->novelty.channel)) &&
         cJSON_AddItemToObject(o, "low", number(e->novelty.low)) && cJSON_AddItemToObject(o, "high", number(e->novelty.high)) &&
         cJSON_AddNumberToObject(o, "compared", e->novelty.compared) && cJSON_AddNumberToObject(o, "reach", e->novelty.reach);
}

static bool put_incident(cJSON *list, const struct hk_told_of *w, const struct hk_notice *n)
{
  const struct hk_logged_incident *i = &n->change;
  char key[64], when[HK_TIME_TEXT_MAX], since[HK_TIME_TEXT_MAX];
  cJSON *a = cJSON_CreateObject(), *about = cJSON_ParseWithLength(i->about.data, i->about.length);
  if (!a || !cJSON_AddItemToArray(list, a)) {
    cJSON_Delete(about);
    return false;
  }
  key_text(key, sizeof key, w, n);
  time_text(i->time, when);
  time_text(i->since, since);
  char *text = sentence_text(n);
  const bool good =
      text && about && cJSON_AddItemToObject(a, "about", about) && cJSON_AddStringToObject(a, "key", key) &&
      cJSON_AddStringToObject(a, "status", is_over(n) ? "resolved" : "firing") && cJSON_AddBoolToObject(a, "again", n->again) &&
      cJSON_AddNumberToObject(a, "incident", (double)i->id) &&
      cJSON_AddStringToObject(a, "kind", hankel_incident_name(i->kind)) &&
      cJSON_AddNumberToObject(a, "position", (double)i->position) && cJSON_AddStringToObject(a, "time", when) &&
      cJSON_AddStringToObject(a, "since", since) && cJSON_AddNumberToObject(a, "sensors", i->count) &&
      cJSON_AddItemToObject(a, "rank", number(i->rank)) && cJSON_AddItemToObject(a, "severity", number(i->severity)) &&
      cJSON_AddStringToObject(a, "level", hankel_severity_name((float)i->severity)) && cJSON_AddStringToObject(a, "text", text);
  free(text);
  return good;
}

static bool put_alert(cJSON *list, const struct hk_told_of *w, const struct hk_notice *n)
{
  const struct hk_event *e = &n->logged.event;
  char key[64], name[HK_NAME_MAX + 1], id[HK_NAME_MAX + 16], when[HK_TIME_TEXT_MAX], since[HK_TIME_TEXT_MAX];
  cJSON *a = cJSON_CreateObject();
  if (!a || !cJSON_AddItemToArray(list, a))
    return false;
  key_text(key, sizeof key, w, n);
  name_of(n, name);
  snprintf(id, sizeof id, "%s:%" PRIu32, name, e->number);
  time_text(e->time, when);
  time_text(e->instant, since);
  char *text = sentence_text(n);
  const bool good =
      text && cJSON_AddStringToObject(a, "key", key) &&
      cJSON_AddStringToObject(a, "status", is_over(n) ? "resolved" : "firing") && cJSON_AddBoolToObject(a, "again", n->again) &&
      cJSON_AddStringToObject(a, "id", id) && cJSON_AddStringToObject(a, "sensor", name) &&
      cJSON_AddNumberToObject(a, "position", (double)n->logged.position) && cJSON_AddStringToObject(a, "time", when) &&
      cJSON_AddStringToObject(a, "since", since) && cJSON_AddStringToObject(a, "channel", hankel_channel_name(e->channel)) &&
      cJSON_AddItemToObject(a, "severity", number((double)e->severity)) &&
      cJSON_AddStringToObject(a, "level", hankel_severity_name(e->severity)) &&
      cJSON_AddItemToObject(a, "before", number(e->before)) && cJSON_AddItemToObject(a, "after", number(e->after)) &&
      cJSON_AddItemToObject(a, "score", number((double)e->score)) &&
      cJSON_AddItemToObject(a, "margin", number((double)e->margin)) && put_note(a, e) &&
      (!n->test || cJSON_AddTrueToObject(a, "test")) && cJSON_AddStringToObject(a, "text", text);
  free(text);
  return good;
}

static cJSON *make_webhook(const struct hk_message *m, const struct hk_notify_rule *r, const struct hk_told_of *w)
{
  cJSON *o = cJSON_CreateObject();
  bool good = o && cJSON_AddNumberToObject(o, "version", 1) && cJSON_AddStringToObject(o, "key", m->key) &&
              cJSON_AddStringToObject(o, "receiver", r->name) && cJSON_AddNumberToObject(o, "events", w->n);
  if (good && r->page[0])
    good = cJSON_AddStringToObject(o, "page", r->page) != NULL;
  cJSON *list = good ? cJSON_AddArrayToObject(o, "alerts") : NULL;
  good = list != NULL;
  for (uint32_t i = 0; i < w->n && good; i++)
    good = (is_incident(w->notice[i]) ? put_incident : put_alert)(list, w, w->notice[i]);
  if (!good)
    cJSON_Delete(o);
  return good ? o : NULL;
}

/* --- alertmanager ------------------------------------------------------------------------------------------------------- */

static bool put_labelled(cJSON *list, const struct hk_notify_rule *r, const struct hk_told_of *w, const struct hk_notice *n)
{
  const struct hk_event *e = &n->logged.event;
  const int64_t lasts = r->repeat > 0 ? 5 * r->repeat : 365 * 86400ll * 1000000000; /* unless it is told again */
  char name[HK_NAME_MAX + 1], begins[HK_TIME_TEXT_MAX], ends[HK_TIME_TEXT_MAX], count[16];
  cJSON *a = cJSON_CreateObject();
  if (!a || !cJSON_AddItemToArray(list, a))
    return false;
  name_of(n, name);
  snprintf(count, sizeof count, "%" PRIu32, e->number);
  time_text(e->instant < w->now ? e->instant : w->now, begins);
  time_text(is_over(n) ? w->now : w->now + lasts, ends);
  char *text = sentence_text(n);
  cJSON *labels = cJSON_AddObjectToObject(a, "labels"), *notes = cJSON_AddObjectToObject(a, "annotations");
  const bool good =
      text && labels && notes && cJSON_AddStringToObject(labels, "alertname", "hankeld") &&
      (is_incident(n) ? cJSON_AddStringToObject(labels, "incident", count) != NULL
                      : cJSON_AddStringToObject(labels, "sensor", name) && cJSON_AddStringToObject(labels, "number", count) &&
                            cJSON_AddStringToObject(labels, "channel", hankel_channel_name(e->channel))) &&
      cJSON_AddStringToObject(notes, "summary", text) &&
      cJSON_AddStringToObject(notes, "level", hankel_severity_name(e->severity)) &&
      cJSON_AddStringToObject(a, "startsAt", begins) && cJSON_AddStringToObject(a, "endsAt", ends) &&
      (!r->page[0] || cJSON_AddStringToObject(a, "generatorURL", r->page));
  free(text);
  return good;
}

static cJSON *make_alertmanager(const struct hk_notify_rule *r, const struct hk_told_of *w)
{
  cJSON *list = cJSON_CreateArray();
  bool good = list != NULL;
  for (uint32_t i = 0; i < w->n && good; i++)
    good = put_labelled(list, r, w, w->notice[i]);
  if (!good)
    cJSON_Delete(list);
  return good ? list : NULL;
}

/* --- for people --------------------------------------------------------------------------------------------------------- */

static int graver(const void *a, const void *b)
{
  const struct hk_notice *const *x = a, *const *y = b;
  if (is_over(*x) != is_over(*y))
    return is_over(*x) ? 1 : -1;
  const float s = (*x)->logged.event.severity, t = (*y)->logged.event.severity;
  return s > t ? -1 : s < t ? 1 : (*x)->logged.position < (*y)->logged.position ? -1 : 1;
}

static void headline(FILE *out, const struct hk_told_of *w)
{
  uint32_t over = 0;
  for (uint32_t i = 0; i < w->n; i++)
    over += is_over(w->notice[i]);
  if (w->prefix[0])
    fprintf(out, "%s: ", w->prefix);
  if (over < w->n)
    fprintf(out, "%u %s%s%s", w->n - over, is_incident(w->notice[0]) ? "incident" : "alert", w->n - over == 1 ? "" : "s",
            w->again ? " stand still" : "");
  if (over > 0)
    fprintf(out, "%s%u over", over < w->n ? ", " : "", over);
}

/* In plain text: one sentence, or how many and the gravest of them. */
static char *people_text(const struct hk_notify_rule *r, const struct hk_told_of *w)
{
  char *text = NULL;
  size_t size;
  const struct hk_notice **sorted = malloc(w->n * sizeof *sorted);
  FILE *out = sorted ? open_memstream(&text, &size) : NULL;
  if (!out) {
    free(sorted);
    return NULL;
  }
  memcpy(sorted, w->notice, w->n * sizeof *sorted);
  qsort(sorted, w->n, sizeof *sorted, graver);
  if (w->n > 1) {
    headline(out, w);
    fputc('\n', out);
  }
  bool good = true;
  for (uint32_t i = 0; i < w->n && i < LISTED; i++) {
    char *line = sentence_text(sorted[i]);
    good &= line && fprintf(out, "%s\n", line) > 0;
    free(line);
  }
  if (w->n > LISTED)
    fprintf(out, "and %u more\n", w->n - LISTED);
  if (r->page[0])
    fprintf(out, "%s\n", r->page);
  free(sorted);
  if (fclose(out) != 0 || !good) {
    free(text);
    return NULL;
  }
  return text;
}

static cJSON *make_slack(const char *text)
{
  cJSON *o = cJSON_CreateObject();
  char *escaped = NULL;
  size_t size;
  FILE *out = open_memstream(&escaped, &size);
  for (const char *p = text; out && *p; p++) /* a name must not be a link or a mention */
    fputs(*p == '&' ? "&amp;" : *p == '<' ? "&lt;" : *p == '>' ? "&gt;" : (const char[]){ *p, 0 }, out);
  const bool good = out && fclose(out) == 0 && o && cJSON_AddStringToObject(o, "text", escaped);
  free(escaped);
  if (!good)
    cJSON_Delete(o);
  return good ? o : NULL;
}

/* A line in Markdown that says what it says and nothing else. */
static char *without_markdown(const char *line, size_t length)
{
  char *text = malloc(2 * length + 1), *at = text;
  for (size_t i = 0; text && i < length; i++) {
    if (strchr("\\`*_{}[]()<>#+-!|~", line[i]))
      *at++ = '\\';
    *at++ = line[i];
  }
  if (text)
    *at = 0;
  return text;
}

static bool put_text_block(cJSON *body, const char *line, size_t length, bool first)
{
  cJSON *block = cJSON_CreateObject();
  char *text = without_markdown(line, length);
  const bool good = block && cJSON_AddItemToArray(body, block) && text && cJSON_AddStringToObject(block, "type", "TextBlock") &&
                    cJSON_AddStringToObject(block, "text", text) && cJSON_AddTrueToObject(block, "wrap") &&
                    (!first || cJSON_AddStringToObject(block, "weight", "Bolder"));
  free(text);
  return good;
}

/* A message with one adaptive card, a block a line. */
static cJSON *make_teams(const struct hk_notify_rule *r, const char *text)
{
  cJSON *o = cJSON_CreateObject(), *list = o ? cJSON_AddArrayToObject(o, "attachments") : NULL, *one = cJSON_CreateObject();
  bool good = list && one && cJSON_AddItemToArray(list, one);
  if (!good)
    cJSON_Delete(one);
  cJSON *card = good ? cJSON_AddObjectToObject(one, "content") : NULL, *body = card ? cJSON_AddArrayToObject(card, "body") : NULL;
  good = body && cJSON_AddStringToObject(o, "type", "message") &&
         cJSON_AddStringToObject(one, "contentType", "application/vnd.microsoft.card.adaptive") &&
         cJSON_AddStringToObject(card, "$schema", "http://adaptivecards.io/schemas/adaptive-card.json") &&
         cJSON_AddStringToObject(card, "type", "AdaptiveCard") && cJSON_AddStringToObject(card, "version", "1.4");
  for (const char *line = text; good && *line;) {
    const size_t length = strcspn(line, "\n");
    if (length > 0 && (r->page[0] == 0 || strncmp(line, r->page, length) != 0))
      good = put_text_block(body, line, length, line == text);
    line += length + (line[length] == '\n');
  }
  if (good && r->page[0]) {
    cJSON *actions = cJSON_AddArrayToObject(card, "actions"), *open = cJSON_CreateObject();
    good = actions && open && cJSON_AddItemToArray(actions, open) && cJSON_AddStringToObject(open, "type", "Action.OpenUrl") &&
           cJSON_AddStringToObject(open, "title", "Open") && cJSON_AddStringToObject(open, "url", r->page);
  }
  if (!good)
    cJSON_Delete(o);
  return good ? o : NULL;
}

static void make_mail(struct hk_message *m, const struct hk_notify_rule *r, const struct hk_told_of *w, const char *text)
{
  const time_t seconds = (time_t)(w->now / 1000000000);
  struct tm tm;
  char date[64];
  gmtime_r(&seconds, &tm);
  strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S +0000", &tm);
  snprintf(m->subject, sizeof m->subject, "[hankeld] %.*s", (int)strcspn(text, "\n"), text);
  for (char *p = m->subject; *p; p++)
    if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
      *p = '?';
  hk_buffer_print(
      &m->body,
      "Date: %s\r\nFrom: %s\r\nTo: %s\r\nSubject: %s\r\nMessage-ID: <%s@hankeld>\r\nAuto-Submitted: auto-generated\r\n"
      "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n",
      date, r->from, r->to, m->subject, m->key);
  for (const char *p = text; *p; p++)
    hk_buffer_put(&m->body, *p == '\n' ? "\r\n" : p, *p == '\n' ? 2 : 1);
}

/* --- syslog ------------------------------------------------------------------------------------------------------------- */

#define DAEMON 24 /* facility */
#define WARNING 4
#define NOTICE 5

/* A message of RFC 5424 for each alert, its length in front (RFC 6587, 5425). */
static void make_syslog(struct hk_message *m, const struct hk_told_of *w)
{
  char host[64 + 1] = "-", when[HK_TIME_TEXT_MAX];
  if (gethostname(host, sizeof host - 1) != 0 || host[0] == 0 || strpbrk(host, " \t"))
    snprintf(host, sizeof host, "-");
  time_text(w->now, when);
  for (uint32_t i = 0; i < w->n; i++) {
    const struct hk_notice *n = w->notice[i];
    char head[160], *text = sentence_text(n);
    const int length =
        snprintf(head, sizeof head, "<%d>1 %s %s hankeld - %s - ", DAEMON + (is_over(n) ? NOTICE : WARNING), when, host,
                 is_over(n)       ? "over"
                 : is_incident(n) ? "incident"
                                  : "alert");
    hk_buffer_print(&m->body, "%zu %s", (size_t)length + (text ? strlen(text) : 0), head);
    hk_buffer_put(&m->body, text ? text : "", text ? strlen(text) : 0);
    m->body.failed |= !text;
    free(text);
  }
}

/* --- all of them -------------------------------------------------------------------------------------------------------- */

int hk_message_make(struct hk_message *m, const struct hk_notify_rule *r, const struct hk_told_of *w)
{
  const struct hk_notice *first = w->notice[0], *last = w->notice[w->n - 1];
  size_t used;
  key_text(m->key, sizeof m->key, w, first);
  used = strlen(m->key);
  if (w->n > 1)
    used += (size_t)snprintf(m->key + used, sizeof m->key - used, "-%" PRIu64, last->logged.position);
  if (w->again > 0)
    snprintf(m->key + used, sizeof m->key - used, "-again-%" PRIu64, w->again);
  m->events = w->n;
  const bool people = hk_notify_for_people(r);
  char *text = people ? people_text(r, w) : NULL;
  cJSON *json = NULL;
  if (r->type == HK_NOTIFY_WEBHOOK)
    json = make_webhook(m, r, w);
  else if (r->type == HK_NOTIFY_ALERTMANAGER)
    json = make_alertmanager(r, w);
  else if (text && r->type == HK_NOTIFY_SLACK)
    json = make_slack(text);
  else if (r->type == HK_NOTIFY_SYSLOG)
    make_syslog(m, w);
  else if (text && r->type == HK_NOTIFY_TEAMS)
    json = make_teams(r, text);
  else if (text)
    make_mail(m, r, w, text);
  char *printed = json ? cJSON_PrintUnformatted(json) : NULL;
  if (printed)
    hk_buffer_put(&m->body, printed, strlen(printed));
  cJSON_free(printed);
  cJSON_Delete(json);
  free(text);
  return m->body.failed || m->body.size == 0 ? -ENOMEM : 0;
}
