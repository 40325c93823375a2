/* See web_lists.h. */
#include "daemon/server/web_lists.h"

#include "daemon/base/glob.h"
#include "daemon/durable/event_copy.h"
#include "daemon/incidents/feedback.h"
#include "daemon/publish/encode_results.h"
#include "daemon/sensors/maintenance.h"
#include "daemon/server/incident_watch.h"
#include "daemon/server/server.h"
#include "proto/wire/event_message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TOGETHER 4096u         /* slots examined under one lock */
#define LOOKED_MOST (1u << 18) /* slots, or events, examined for one answer */
#define PART_BYTES (1u << 20)  /* approximate size of an answer */

/* --- alerts ----------------------------------------------------------------------------------------------------------- */

static void web_lists_alert(struct hk_buffer *out, struct hk_string name, const struct hk_standing *s)
{
  const struct hk_event *e = &s->event;
  hk_buffer_print(out, "{\"sensor\":");
  hk_json_string(out, name.data, name.length);
  hk_buffer_print(out,
                  ",\"number\":%" PRIu32 ",\"channel\":\"%s\",\"time\":%" PRId64 ",\"from\":%" PRId64 ",\"instant\":%" PRId64,
                  e->number, hankel_channel_name(e->channel), e->time, e->from, e->instant);
  const float severity = hk_severity_told(e->severity);
  hk_buffer_print(out, ",\"severity\":%.3f,\"level\":\"%s\",\"score\":", (double)severity, hankel_severity_name(severity));
  hk_json_number(out, (double)e->score, 9);
  hk_buffer_print(out, ",\"margin\":");
  hk_json_number(out, (double)e->margin, 6);
  hk_buffer_print(out, ",\"before\":");
  hk_json_number(out, e->before, 17);
  hk_buffer_print(out, ",\"after\":");
  hk_json_number(out, e->after, 17);
  hk_buffer_print(out, ",\"spread_before\":");
  hk_json_number(out, (double)e->spread_before, 9);
  hk_buffer_print(out, ",\"spread_after\":");
  hk_json_number(out, (double)e->spread_after, 9);
  if (!(e->marks & HANKEL_MAINTENANCE))
    hk_buffer_print(out, ",\"maintenance\":false");
  hk_encode_remarks(out, e);
  if (s->acknowledged != 0) {
    hk_buffer_print(out, ",\"acknowledged\":%" PRId64 ",\"by\":", s->acknowledged);
    hk_json_string(out, s->by, strlen(s->by));
  }
  hk_buffer_put(out, "}", 1);
}

/* The keys of all standing alerts, with slots of the registry. */
static uint32_t web_lists_gather(struct hk_server *s, struct hk_standing_key *keys, uint32_t most)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->shards.n; i++) {
    const uint32_t end = n + hk_alerts_keys(s->shard[i].alerts, keys + n, most - n);
    for (; n < end; n++)
      keys[n].slot = hk_slot_outside(&s->shard[i], keys[n].slot);
  }
  return n;
}

/* Keeps the keys whose sensors' names match; returns their number. */
static uint32_t matching(struct hk_registry *registry, const struct hk_glob *glob, struct hk_standing_key *keys, uint32_t n)
{
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n;) {
    hk_registry_read(registry);
    for (const uint32_t end = n - i < TOGETHER ? n : i + TOGETHER; i < end; i++) {
      const bool there = hk_registry_holds(registry, keys[i].slot); /* it may have gone meanwhile */
      const struct hk_string name = there ? hk_registry_name(registry, keys[i].slot) : (struct hk_string){ NULL, 0 };
      if (there && hk_glob_match(glob, name.data, name.length))
        keys[kept++] = keys[i];
    }
    hk_registry_read_end(registry);
  }
  return kept;
}

/* Appends the alert of a sensor, if it still stands. */
static bool web_lists_show(struct hk_server *s, uint32_t slot, bool first, struct hk_buffer *out)
{
  struct hk_registry *registry = s->shards.registry;
  struct hk_standing standing;
  if (!hk_alerts_copy(s->shard[slot % s->shards.n].alerts, slot / s->shards.n, &standing))
    return false;
  hk_registry_read(registry);
  const bool there = hk_registry_holds(registry, slot);
  if (there) {
    hk_buffer_print(out, "%s", first ? "" : ",");
    web_lists_alert(out, hk_registry_name(registry, slot), &standing);
  }
  hk_registry_read_end(registry);
  return there;
}

/* --- alerts of a cluster ----------------------------------------------------------------------------------------------- */

struct shared_alert {
  struct hk_standing_key key; /* slot: its place in the list */
  struct hk_standing standing;
  size_t name; /* offset in `names` */
  uint32_t name_size;
};

struct shared_alerts {
  const struct hk_glob *glob;
  struct shared_alert *list;
  uint32_t n;
  struct hk_buffer names;
};

static void take_shared(void *arg, const struct hk_logged *l)
{
  struct shared_alerts *a = arg;
  struct shared_alert *one = &a->list[a->n];
  if (!hk_glob_match(a->glob, l->name.data, l->name.length))
    return;
  *one = (struct shared_alert){ .standing.event = l->event, .name = a->names.size, .name_size = (uint32_t)l->name.length };
  one->standing.event.slot = a->n;
  hk_buffer_put(&a->names, l->name.data, l->name.length);
  a->n += !a->names.failed;
}

static int shared_by_key(const void *left, const void *right)
{
  const struct shared_alert *a = left, *b = right;
  return hk_standing_order(&a->key, &b->key);
}

/* The standing alerts of all machines, by the log that they share. */
static int list_shared(struct hk_eventlog *log, const struct hk_web_part *part, struct hk_buffer *out)
{
  struct shared_alerts a = { 0 };
  struct hk_glob *glob = NULL;
  struct hk_eventlog_cursor cursor = { 0 };
  uint32_t acknowledged;
  const uint32_t most = hk_copy_standing(log, NULL, 0, &acknowledged);
  uint64_t *positions = malloc((most + 1) * sizeof *positions);
  a.list = malloc((most + 1) * sizeof *a.list);
  const int status = positions && a.list ? hk_glob_new(&glob, part->glob, strlen(part->glob)) : -ENOMEM;
  a.glob = glob;
  const uint32_t standing = status == 0 ? hk_copy_standing(log, positions, most, &acknowledged) : 0;
  for (uint32_t i = 0; i < standing && i < most; i++) {
    cursor.next = positions[i];
    (void)hk_eventlog_read(log, &cursor, positions[i], 1, take_shared, &a);
  }
  for (uint32_t i = 0; i < a.n; i++) {
    struct hk_standing *s = &a.list[i].standing;
    const struct hk_string name = { a.names.data + a.list[i].name, a.list[i].name_size };
    (void)hk_copy_noted(log, name, s->event.number, s->by, &s->acknowledged);
    a.list[i].key = hk_standing_key(s);
  }
  if (a.n > 1)
    qsort(a.list, a.n, sizeof *a.list, shared_by_key);
  if (status == 0)
    hk_buffer_print(out, "{\"standing\":%" PRIu32 ",\"acknowledged\":%" PRIu32 ",\"alerts\":[", standing, acknowledged);
  for (uint32_t i = 0; i < a.n && i < part->limit; i++) {
    hk_buffer_print(out, "%s", i > 0 ? "," : "");
    web_lists_alert(out, (struct hk_string){ a.names.data + a.list[i].name, a.list[i].name_size }, &a.list[i].standing);
  }
  if (status == 0)
    hk_buffer_print(out, "]}\n");
  hk_glob_free(glob);
  hk_buffer_free(&a.names);
  free(positions);
  free(a.list);
  return status;
}

int hk_list_alerts(void *arg, const struct hk_web_part *part, struct hk_buffer *out)
{
  struct hk_server *s = arg;
  if (hk_eventlog_shared(s->shards.events))
    return list_shared(s->shards.events, part, out);
  struct hk_glob *glob = NULL;
  struct hk_alerts_sum sum;
  uint32_t shown = 0;
  (void)hk_server_alerts(s, NULL, 0, &sum);
  struct hk_standing_key *keys = malloc((sum.standing + 1) * sizeof *keys);
  const int status = keys ? hk_glob_new(&glob, part->glob, strlen(part->glob)) : -ENOMEM;
  if (status == 0) {
    const uint32_t n = matching(s->shards.registry, glob, keys, web_lists_gather(s, keys, sum.standing));
    qsort(keys, n, sizeof *keys, hk_standing_order);
    hk_buffer_print(out, "{\"standing\":%" PRIu32 ",\"acknowledged\":%" PRIu32 ",\"alerts\":[", sum.standing, sum.acknowledged);
    for (uint32_t i = 0; i < n && shown < part->limit; i++)
      shown += web_lists_show(s, keys[i].slot, shown == 0, out);
    hk_buffer_print(out, "]}\n");
  }
  hk_glob_free(glob);
  free(keys);
  return status;
}

/* --- lists of other rooms ----------------------------------------------------------------------------------------------- */

void hk_list_incidents(void *arg, struct hk_buffer *out)
{
  const struct hk_server *s = arg;
  if (!hk_watch_incidents(s->incidents, out))
    hk_buffer_print(out, "{\"made\":false,\"standing\":0,\"incidents\":[],\"over\":[]}\n");
}

void hk_list_feedback(void *arg, struct hk_buffer *out)
{
  const struct hk_server *s = arg;
  hk_buffer_print(out, "{\"feedback\":[");
  hk_watch_feedback(s->incidents, out);
  hk_buffer_print(out, "]}\n");
}

void hk_list_maintenance(void *arg, struct hk_buffer *out)
{
  const struct hk_server *s = arg;
  hk_buffer_print(out, "{\"maintenance\":");
  hk_maintenance_show(s->shards.maintenance, hk_wall(), out);
  hk_buffer_print(out, "}\n");
}

/* --- events ----------------------------------------------------------------------------------------------------------- */

/* A list of events of the log. */
struct listing {
  struct hk_buffer *out;
  const struct hk_glob *glob;
  uint32_t n;
};

/* Whether a record about sensors with these names, each followed by a 0, is wanted. */
static bool about(const struct listing *l, struct hk_string names)
{
  bool is = false;
  for (size_t at = 0, n; at < names.length && !is; at += n + 1) {
    n = strlen(names.data + at);
    is = hk_glob_match(l->glob, names.data + at, n);
  }
  return is;
}

static void begin_one(struct listing *l)
{
  if (l->n++ > 0)
    hk_buffer_put(l->out, ",", 1);
}

static void event(void *arg, const struct hk_logged *l)
{
  struct listing *e = arg;
  if (!hk_glob_match(e->glob, l->name.data, l->name.length))
    return;
  begin_one(e);
  hk_encode_logged(e->out, HK_PROTOCOL_TEXT, l, 1,
                   HANKEL_EVENTS | HANKEL_POSITIONS | HANKEL_DETAILS | HANKEL_NOTES | HANKEL_INCIDENTS);
}

/* Lists the visited records, as an object with the member `name` and the position in the log. Returns 0 or a negative errno. */
static int list_log(struct hk_server *s, const struct hk_web_part *part, const char *name, const struct hk_eventlog_visit *visit,
                    struct hk_buffer *out)
{
  struct hk_eventlog *log = s->shards.events;
  struct hk_glob *glob;
  if (!log)
    return -ENOTSUP;
  const int status = hk_glob_new(&glob, part->glob, strlen(part->glob));
  if (status != 0)
    return status;
  const uint64_t shown = hk_eventlog_shown(log), first = hk_eventlog_first(log);
  struct hk_eventlog_cursor cursor = { .next = part->after < shown ? part->after + 1 : shown + 1 };
  struct listing l = { out, glob, 0 };
  uint32_t looked = 0, read = 1;
  hk_buffer_print(out, "{\"%s\":[", name);
  while (read > 0 && l.n < part->limit && looked < LOOKED_MOST && out->size < PART_BYTES) {
    const uint32_t left = part->limit - l.n;
    read = hk_eventlog_visit(log, &cursor, shown, left < HK_LOGGED_FRAME ? left : HK_LOGGED_FRAME, visit, &l);
    looked += read;
  }
  hk_buffer_print(out, "],\"position\":%" PRIu64 ",\"first\":%" PRIu64 ",\"last\":%" PRIu64 ",\"missed\":%" PRIu64 "}\n",
                  cursor.next - 1, first, shown, cursor.missed);
  hk_glob_free(glob);
  return 0;
}

int hk_list_events(void *arg, const struct hk_web_part *part, struct hk_buffer *out)
{
  static const struct hk_eventlog_visit events = { .event = event };
  return list_log(arg, part, "events", &events, out);
}

/* --- operators' statements --------------------------------------------------------------------------------------------- */

/* Begins an operator's statement. */
static void begin_told(struct listing *l, const char *what, uint64_t position, int64_t time)
{
  begin_one(l);
  hk_buffer_print(l->out, "{\"told\":\"%s\",\"position\":%" PRIu64 ",\"time\":%" PRId64, what, position, time);
}

static void web_lists_member(struct hk_buffer *out, const char *name, struct hk_string text)
{
  if (text.length == 0)
    return;
  hk_buffer_print(out, ",\"%s\":", name);
  hk_json_string(out, text.data, text.length);
}

static void acknowledged(void *arg, const struct hk_logged *e)
{
  struct listing *l = arg;
  if (e->event.kind != HK_EVENT_ACKNOWLEDGED || !hk_glob_match(l->glob, e->name.data, e->name.length))
    return;
  begin_told(l, "acknowledged", e->position, e->event.time);
  web_lists_member(l->out, "sensor", e->name);
  web_lists_member(l->out, "by", e->by);
  hk_buffer_print(l->out, ",\"number\":%" PRIu32 "}", e->event.number);
}

static void said(void *arg, const struct hk_logged_incident *i)
{
  struct listing *l = arg;
  if (i->kind < HANKEL_INCIDENT_EXPECTED || !about(l, i->sensors))
    return;
  begin_told(l, hk_feedback_word(i->kind - HANKEL_INCIDENT_EXPECTED + HK_FEEDBACK_EXPECTED), i->position, i->time);
  web_lists_member(l->out, "sensor", hk_string(i->sensors.data));
  web_lists_member(l->out, "text", i->text);
  hk_buffer_print(l->out, ",\"incident\":%" PRIu64 "}", i->id);
}

/* Omitted if there is a glob: the sensors of a former maintenance window are unknown. */
static void web_lists_operated(void *arg, const struct hk_logged_operation *o)
{
  static const char *const words[] = { "", "maintenance", "maintenance ended", "reloaded", "reload refused" };
  struct listing *l = arg;
  begin_told(l, words[o->kind], o->position, o->time);
  web_lists_member(l->out, "match", o->subject);
  web_lists_member(l->out, "by", o->by);
  web_lists_member(l->out, "text", o->text);
  if (o->kind == HK_LOGGED_MAINTENANCE && o->until < INT64_MAX)
    hk_buffer_print(l->out, ",\"until\":%" PRId64, o->until);
  hk_buffer_put(l->out, "}", 1);
}

int hk_list_told(void *arg, const struct hk_web_part *part, struct hk_buffer *out)
{
  static const struct hk_eventlog_visit told = { .event = acknowledged, .incident = said, .operation = web_lists_operated };
  return list_log(arg, part, "told", &told, out);
}
