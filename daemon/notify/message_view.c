#include "daemon/notify/message_view.h"
#include "daemon/base/novelty_sentence.h"

#include "daemon/sensors/event_sentence.h"
#include "daemon/sensors/limit_shown.h"
#include "daemon/sensors/novelty_shown.h"
#include "proto/hankel.h"
#include "proto/wire/name.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes external text safe for people: removes characters that act on a terminal, and bytes that are not UTF-8. Returns the
 * number of bytes; out has room for as many as the text has, and a 0. */
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

void hk_view_name(const struct hk_notice *n, char out[HK_NAME_MAX + 1])
{
  (void)shown(n->logged.name, out);
}

void hk_view_time(int64_t ns, char out[HK_TIME_TEXT_MAX])
{
  hk_time_text(ns / 1000000000, out);
}

void hk_view_key(char *out, size_t size, const struct hk_told_of *w, const struct hk_notice *n)
{
  snprintf(out, size, "%016" PRIx64 "-%" PRIu64, w->id, n->logged.position);
}

/* --- sentences ---------------------------------------------------------------------------------------------------------- */

/* The change, and since when. */
static void put_what(FILE *out, const struct hk_notice *n)
{
  const struct hk_event *e = &n->logged.event;
  char near[HK_NAME_MAX + 1] = "", since[HK_TIMESTAMP_SIZE];
  if (e->kind == HK_EVENT_RAISED && n->logged.by.length <= HK_NAME_MAX)
    (void)shown(n->logged.by, near);
  hk_event_sentence(out, e, near);
  if (hk_event_says_no_instant(e)) {
    hk_timestamp_say(e->instant, since);
    fprintf(out, "; since %s UTC", since);
  }
}

static void put_how_sure(FILE *out, const struct hk_notice *n)
{
  const struct hk_event *e = &n->logged.event;
  fprintf(out, "%s, %.3g times its threshold", hankel_channel_name(e->channel), (double)e->margin);
  if (e->severity > 0)
    fprintf(out, ", severity %.1f, %s", (double)e->severity, hankel_severity_name(e->severity));
  if (e->held > 0)
    fprintf(out, ", %" PRIu32 " held back before", e->held);
}

/* One alert in one sentence. */
static void put_sentence(FILE *out, const struct hk_notice *n)
{
  char name[HK_NAME_MAX + 1];
  hk_view_name(n, name);
  fprintf(out, "%s: %s%s", name, n->test ? "this is a test: " : "", hk_notice_over(n) ? "over: " : "");
  put_what(out, n);
  fputs(" (", out);
  put_how_sure(out, n);
  fputs(n->again ? ", stands still)" : ")", out);
}

static void put_incident_text(FILE *out, const struct hk_notice *n)
{
  char *text = malloc(n->change.text.length + 1);
  if (text)
    (void)shown(n->change.text, text);
  fputs(text ? text : "an incident", out);
  free(text);
}

static bool add_text(cJSON *object, const char *key, void (*put)(FILE *out, const struct hk_notice *n), const struct hk_notice *n)
{
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  if (!out)
    return false;
  put(out, n);
  const bool good = fclose(out) == 0 && cJSON_AddStringToObject(object, key, text);
  free(text);
  return good;
}

/* --- parts of objects --------------------------------------------------------------------------------------------------- */

static cJSON *message_view_number(double x)
{
  return isfinite(x) ? cJSON_CreateNumber(x) : cJSON_CreateNull();
}

static bool add_time(cJSON *object, const char *key, int64_t ns)
{
  char text[HK_TIME_TEXT_MAX];
  hk_view_time(ns, text);
  return cJSON_AddStringToObject(object, key, text) != NULL;
}

/* The page, and the page of the sensor if there is only one; nothing if there is no page. */
static bool add_link(cJSON *object, const struct hk_notify_rule *r, const char *sensor)
{
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";
  char link[sizeof r->page + sizeof "#sensor/" + 3 * HK_NAME_MAX];
  if (!r->page[0])
    return true;
  size_t used = (size_t)snprintf(link, sizeof link, "%s", r->page);
  if (sensor && !strchr(r->page, '#')) {
    used += (size_t)snprintf(link + used, sizeof link - used, "#sensor/");
    for (const char *p = sensor; *p; p++)
      used += (size_t)snprintf(link + used, sizeof link - used, strchr(plain, *p) ? "%c" : "%%%02X", (unsigned char)*p);
  }
  return cJSON_AddStringToObject(object, "link", link) != NULL;
}

static bool add_limit(cJSON *alert, const struct hankel_limit *l)
{
  cJSON *o = cJSON_AddObjectToObject(alert, "limit");
  return o && cJSON_AddItemToObject(o, "limit", message_view_number(l->limit)) &&
         cJSON_AddItemToObject(o, "slope", message_view_number((double)l->slope)) && add_time(o, "earliest", l->earliest) &&
         add_time(o, "reached", l->reached) &&
         (l->latest == INT64_MAX ? cJSON_AddNullToObject(o, "latest") != NULL : add_time(o, "latest", l->latest)) &&
         cJSON_AddNumberToObject(o, "blocks", l->blocks);
}

/* Members of events of some channels only. */
static bool add_note(cJSON *alert, const struct hk_event *e)
{
  const struct hankel_limit limit = hk_limit_shown(e);
  if (limit.blocks > 0)
    return add_limit(alert, &limit);
  if (hk_novelty_shown(e).kind == HANKEL_NO_NOVELTY)
    return true;
  cJSON *o = cJSON_AddObjectToObject(alert, "novelty");
  return o && cJSON_AddStringToObject(o, "kind", hankel_novelty_name(e->novelty.channel)) &&
         cJSON_AddItemToObject(o, "expected", message_view_number(e->before)) &&
         cJSON_AddItemToObject(o, "tolerance", message_view_number((double)e->spread_before)) &&
         add_time(o, "nearest", e->novelty.nearest) && add_time(o, "oldest", e->novelty.oldest) &&
         cJSON_AddItemToObject(o, "low", message_view_number(e->novelty.low)) &&
         cJSON_AddItemToObject(o, "high", message_view_number(e->novelty.high)) &&
         cJSON_AddNumberToObject(o, "compared", e->novelty.compared) && cJSON_AddNumberToObject(o, "reach", e->novelty.reach);
}

/* Members that alerts and incidents share. */
static bool add_common(cJSON *a, const struct hk_told_of *w, const struct hk_notice *n)
{
  char key[64];
  hk_view_key(key, sizeof key, w, n);
  return cJSON_AddStringToObject(a, "key", key) &&
         cJSON_AddStringToObject(a, "status", hk_notice_over(n) ? "resolved" : "firing") &&
         cJSON_AddBoolToObject(a, "over", hk_notice_over(n)) && cJSON_AddBoolToObject(a, "again", n->again) &&
         cJSON_AddNumberToObject(a, "position", (double)n->logged.position);
}

/* The object of an incident: as it is, since times have more digits than cJSON's numbers, or for templates in its parts. */
static bool add_about(cJSON *a, const struct hk_notify_rule *r, struct hk_string text)
{
  cJSON *about = cJSON_ParseWithLength(text.data, text.length);
  if (!about)
    return true;
  if (!r->template.text[0]) {
    char *copy = strndup(text.data, text.length);
    cJSON_Delete(about);
    about = copy ? cJSON_CreateRaw(copy) : NULL;
    free(copy);
  }
  if (about && cJSON_AddItemToObject(a, "about", about))
    return true;
  cJSON_Delete(about);
  return false;
}

/* Nothing if it has no name. */
static bool add_section(cJSON *a, struct hk_string section)
{
  char name[HK_SECTION_MOST + 1];
  memcpy(name, section.data, section.length);
  name[section.length] = 0;
  return section.length == 0 || cJSON_AddStringToObject(a, "section", name);
}

static bool add_incident(cJSON *a, const struct hk_notify_rule *r, const struct hk_notice *n)
{
  const struct hk_logged_incident *i = &n->change;
  return add_about(a, r, i->about) && cJSON_AddNumberToObject(a, "incident", (double)i->id) &&
         cJSON_AddStringToObject(a, "kind", hankel_incident_name(i->kind)) && add_time(a, "time", i->time) &&
         add_time(a, "since", i->since) && cJSON_AddNumberToObject(a, "sensors", i->count) &&
         cJSON_AddItemToObject(a, "rank", message_view_number(i->rank)) &&
         cJSON_AddItemToObject(a, "severity", message_view_number(i->severity)) &&
         cJSON_AddStringToObject(a, "level", hankel_severity_name((float)i->severity)) && add_link(a, r, NULL) &&
         add_section(a, i->section) && add_text(a, "text", put_incident_text, n);
}

static bool add_alert(cJSON *a, const struct hk_notify_rule *r, const struct hk_notice *n)
{
  const struct hk_event *e = &n->logged.event;
  char name[HK_NAME_MAX + 1], id[HK_NAME_MAX + 16];
  hk_view_name(n, name);
  snprintf(id, sizeof id, "%s:%" PRIu32, name, e->number);
  return cJSON_AddStringToObject(a, "id", id) && cJSON_AddStringToObject(a, "sensor", name) &&
         cJSON_AddNumberToObject(a, "number", e->number) && add_time(a, "time", e->time) && add_time(a, "since", e->instant) &&
         cJSON_AddStringToObject(a, "channel", hankel_channel_name(e->channel)) &&
         cJSON_AddItemToObject(a, "severity", message_view_number((double)e->severity)) &&
         cJSON_AddStringToObject(a, "level", hankel_severity_name(e->severity)) &&
         cJSON_AddItemToObject(a, "before", message_view_number(e->before)) &&
         cJSON_AddItemToObject(a, "after", message_view_number(e->after)) &&
         cJSON_AddItemToObject(a, "score", message_view_number((double)e->score)) &&
         cJSON_AddItemToObject(a, "margin", message_view_number((double)e->margin)) && add_note(a, e) &&
         (!n->test || cJSON_AddTrueToObject(a, "test")) && add_link(a, r, name) && add_text(a, "what", put_what, n) &&
         add_text(a, "how_sure", put_how_sure, n) && add_text(a, "text", put_sentence, n);
}

/* One alert, or one change of an incident. */
static cJSON *view_notice(const struct hk_notify_rule *r, const struct hk_told_of *w, const struct hk_notice *n)
{
  cJSON *a = cJSON_CreateObject();
  if (a && add_common(a, w, n) && (hk_notice_incident(n) ? add_incident : add_alert)(a, r, n))
    return a;
  cJSON_Delete(a);
  return NULL;
}

/* --- the message -------------------------------------------------------------------------------------------------------- */

struct counts {
  uint32_t firing, over, sensors; /* sensors of standing alerts, or of all if none stands; or incidents */
};

static int message_view_by_name(const void *a, const void *b)
{
  const struct hk_string *x = a, *y = b;
  const int order = memcmp(x->data, y->data, x->length < y->length ? x->length : y->length);
  return order ? order : x->length < y->length ? -1 : x->length > y->length;
}

static bool message_view_count(const struct hk_told_of *w, struct counts *c)
{
  struct hk_string *names = malloc(w->n * sizeof *names);
  uint32_t n = 0;
  *c = (struct counts){ 0 };
  if (!names)
    return false;
  for (uint32_t i = 0; i < w->n; i++)
    c->over += hk_notice_over(w->notice[i]);
  c->firing = w->n - c->over;
  for (uint32_t i = 0; i < w->n; i++)
    if (c->firing == 0 || !hk_notice_over(w->notice[i]))
      names[n++] = w->notice[i]->logged.name;
  qsort(names, n, sizeof *names, message_view_by_name);
  for (uint32_t i = 0; i < n; i++)
    c->sensors += i == 0 || message_view_by_name(&names[i - 1], &names[i]) != 0;
  free(names);
  return true;
}

/* Counts, if one sentence is not enough. */
static bool add_headline(cJSON *o, const struct hk_told_of *w, const struct counts *c)
{
  const bool incidents = hk_notice_incident(w->notice[0]); /* an incident may have several changes */
  const uint32_t firing = incidents && c->firing > 0 ? c->sensors : c->firing;
  char text[HK_NAME_MAX + 160];
  size_t used = 0;
  text[0] = 0;
  if (w->group[0]) {
    used = shown(hk_string(w->group), text);
    used += (size_t)snprintf(text + used, sizeof text - used, ": ");
  }
  if (c->firing > 0) {
    used += (size_t)snprintf(text + used, sizeof text - used, "%u %s%s", firing, incidents ? "incident" : "alert",
                             firing == 1 ? "" : "s");
    if (!incidents && c->firing > 1)
      used += (size_t)snprintf(text + used, sizeof text - used, " of %u sensor%s", c->sensors, c->sensors == 1 ? "" : "s");
    if (w->again)
      used += (size_t)snprintf(text + used, sizeof text - used, " stand still");
  }
  if (c->over > 0)
    snprintf(text + used, sizeof text - used, "%s%u over", c->firing > 0 ? ", " : "", c->over);
  return cJSON_AddStringToObject(o, "headline", text) != NULL;
}

static int message_view_graver(const void *a, const void *b)
{
  const struct hk_notice *const *x = a, *const *y = b;
  if (hk_notice_over(*x) != hk_notice_over(*y))
    return hk_notice_over(*x) ? 1 : -1;
  const float s = (*x)->logged.event.severity, t = (*y)->logged.event.severity;
  return s > t ? -1 : s < t ? 1 : (*x)->logged.position < (*y)->logged.position ? -1 : 1;
}

const struct hk_notice *hk_view_gravest(const struct hk_told_of *w)
{
  const struct hk_notice **best = &w->notice[0];
  for (uint32_t i = 1; i < w->n; i++)
    if (message_view_graver(&w->notice[i], best) < 0)
      best = &w->notice[i];
  return *best;
}

static bool add_list(cJSON *o, const struct hk_notify_rule *r, const struct hk_told_of *w)
{
  const bool people = hk_notify_for_people(r);
  const struct hk_notice **sorted = malloc(w->n * sizeof *sorted);
  const uint32_t n = people && w->n > HK_LISTED ? HK_LISTED : w->n;
  cJSON *list = cJSON_AddArrayToObject(o, "alerts");
  bool good = sorted && list;
  if (good) {
    memcpy(sorted, w->notice, w->n * sizeof *sorted);
    if (people)
      qsort(sorted, w->n, sizeof *sorted, message_view_graver);
  }
  for (uint32_t i = 0; i < n && good; i++) {
    cJSON *one = view_notice(r, w, sorted[i]);
    good = one && cJSON_AddItemToArray(list, one);
  }
  free(sorted);
  return good;
}

cJSON *hk_view_message(const struct hk_notify_rule *r, const struct hk_told_of *w, const char *key)
{
  const bool people = hk_notify_for_people(r);
  struct counts c = { 0 };
  char name[HK_NAME_MAX + 1], group[HK_NAME_MAX + 1];
  cJSON *o = cJSON_CreateObject();
  bool good = o && message_view_count(w, &c);
  hk_view_name(hk_view_gravest(w), name);
  (void)shown(hk_string(w->group), group);
  const bool one = c.sensors == 1 && !hk_notice_incident(w->notice[0]);
  good = good && cJSON_AddNumberToObject(o, "version", 1) && cJSON_AddStringToObject(o, "key", key) &&
         cJSON_AddStringToObject(o, "receiver", r->name) && cJSON_AddNumberToObject(o, "events", w->n) &&
         cJSON_AddNumberToObject(o, "firing", c.firing) && cJSON_AddNumberToObject(o, "resolved", c.over) &&
         cJSON_AddNumberToObject(o, "sensors", c.sensors) && cJSON_AddBoolToObject(o, "again", w->again > 0) &&
         cJSON_AddStringToObject(o, "group", group) && add_headline(o, w, &c) && cJSON_AddBoolToObject(o, "several", w->n > 1) &&
         cJSON_AddNumberToObject(o, "more", people && w->n > HK_LISTED ? w->n - HK_LISTED : 0) &&
         (!r->page[0] || cJSON_AddStringToObject(o, "page", r->page)) && add_link(o, r, one ? name : NULL) && add_list(o, r, w);
  if (!good)
    cJSON_Delete(o);
  return good ? o : NULL;
}
