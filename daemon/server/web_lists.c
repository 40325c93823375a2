/* See web_lists.h. */
#include "daemon/server/web_lists.h"

#include "daemon/base/glob.h"
#include "daemon/publish/encode_results.h"
#include "daemon/server/incident_watch.h"
#include "daemon/server/server.h"
#include "proto/wire/event_message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TOGETHER 4096u         /* slots that are looked at under one lock */
#define LOOKED_MOST (1u << 18) /* slots, or events, that are looked at for one answer */
#define PART_BYTES (1u << 20)  /* of an answer, more or less */

/* --- alerts ----------------------------------------------------------------------------------------------------------- */

static void alert(struct hk_buffer *out, struct hk_string name, const struct hk_standing *s)
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
  hk_buffer_print(out, ",\"maintenance\":%s", e->marks & HANKEL_MAINTENANCE ? "true" : "false");
  if (s->acknowledged != 0) {
    hk_buffer_print(out, ",\"acknowledged\":%" PRId64 ",\"by\":", s->acknowledged);
    hk_json_string(out, s->by, strlen(s->by));
  }
  hk_buffer_put(out, "}", 1);
}

/* The keys of all that stand, their slots as the registry has them. */
static uint32_t gather(struct hk_server *s, struct hk_standing_key *keys, uint32_t most)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->shards.n; i++) {
    const uint32_t end = n + hk_alerts_keys(s->shard[i].alerts, keys + n, most - n);
    for (; n < end; n++)
      keys[n].slot = hk_slot_outside(&s->shard[i], keys[n].slot);
  }
  return n;
}

/* Keeps those whose sensors' names match; returns how many. */
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

/* The alert that stands at a sensor, as far as it still does. */
static bool show(struct hk_server *s, uint32_t slot, bool first, struct hk_buffer *out)
{
  struct hk_registry *registry = s->shards.registry;
  struct hk_standing standing;
  if (!hk_alerts_copy(s->shard[slot % s->shards.n].alerts, slot / s->shards.n, &standing))
    return false;
  hk_registry_read(registry);
  const bool there = hk_registry_holds(registry, slot);
  if (there) {
    hk_buffer_print(out, "%s", first ? "" : ",");
    alert(out, hk_registry_name(registry, slot), &standing);
  }
  hk_registry_read_end(registry);
  return there;
}

int hk_list_alerts(void *arg, const struct hk_web_part *part, struct hk_buffer *out)
{
  struct hk_server *s = arg;
  struct hk_glob *glob = NULL;
  struct hk_alerts_sum sum;
  uint32_t shown = 0;
  (void)hk_server_alerts(s, NULL, 0, &sum);
  struct hk_standing_key *keys = malloc((sum.standing + 1) * sizeof *keys);
  const int status = keys ? hk_glob_new(&glob, part->glob, strlen(part->glob)) : -ENOMEM;
  if (status == 0) {
    const uint32_t n = matching(s->shards.registry, glob, keys, gather(s, keys, sum.standing));
    qsort(keys, n, sizeof *keys, hk_standing_order);
    hk_buffer_print(out, "{\"standing\":%" PRIu32 ",\"acknowledged\":%" PRIu32 ",\"alerts\":[", sum.standing, sum.acknowledged);
    for (uint32_t i = 0; i < n && shown < part->limit; i++)
      shown += show(s, keys[i].slot, shown == 0, out);
    hk_buffer_print(out, "]}\n");
  }
  hk_glob_free(glob);
  free(keys);
  return status;
}

void hk_list_incidents(void *arg, struct hk_buffer *out)
{
  const struct hk_server *s = arg;
  if (!hk_watch_incidents(s->incidents, out))
    hk_buffer_print(out, "{\"made\":false,\"standing\":0,\"incidents\":[],\"over\":[]}\n");
}

/* --- events ----------------------------------------------------------------------------------------------------------- */

struct events {
  struct hk_buffer *out;
  const struct hk_glob *glob;
  uint32_t n;
};

static void event(void *arg, const struct hk_logged *l)
{
  struct events *e = arg;
  if (!hk_glob_match(e->glob, l->name.data, l->name.length))
    return;
  if (e->n++ > 0)
    hk_buffer_put(e->out, ",", 1);
  hk_encode_logged(e->out, HK_PROTOCOL_TEXT, l, 1,
                   HANKEL_EVENTS | HANKEL_POSITIONS | HANKEL_DETAILS | HANKEL_NOTES | HANKEL_INCIDENTS);
}

int hk_list_events(void *arg, const struct hk_web_part *part, struct hk_buffer *out)
{
  struct hk_server *s = arg;
  struct hk_eventlog *log = s->shards.events;
  struct hk_glob *glob;
  if (!log)
    return -ENOTSUP;
  const int status = hk_glob_new(&glob, part->glob, strlen(part->glob));
  if (status != 0)
    return status;
  const uint64_t shown = hk_eventlog_shown(log), first = hk_eventlog_first(log);
  struct hk_eventlog_cursor cursor = { .next = part->after < shown ? part->after + 1 : shown + 1 };
  struct events e = { out, glob, 0 };
  uint32_t looked = 0, read = 1;
  hk_buffer_print(out, "{\"events\":[");
  while (read > 0 && e.n < part->limit && looked < LOOKED_MOST && out->size < PART_BYTES) {
    const uint32_t left = part->limit - e.n;
    read = hk_eventlog_read(log, &cursor, shown, left < HK_LOGGED_FRAME ? left : HK_LOGGED_FRAME, event, &e);
    looked += read;
  }
  hk_buffer_print(out, "],\"position\":%" PRIu64 ",\"first\":%" PRIu64 ",\"last\":%" PRIu64 ",\"missed\":%" PRIu64 "}\n",
                  cursor.next - 1, first, shown, cursor.missed);
  hk_glob_free(glob);
  return 0;
}
