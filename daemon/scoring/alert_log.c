/* Events of a shard on their way into the event log, from which subscribers get them (event_follower.h). */
#include "daemon/scoring/alert_log.h"
#include "daemon/durable/commit_thread.h"
#include "daemon/scoring/field_rows.h"
#include "daemon/scoring/groups.h"
#include "daemon/scoring/provisional_results.h"
#include "daemon/scoring/rates.h"
#include "daemon/scoring/shard.h"
#include "daemon/scoring/survey.h"

#include "daemon/base/novelty_sentence.h"
#include "daemon/durable/durable.h"
#include "daemon/sensors/companions.h"
#include "daemon/sensors/event_sentence.h"
#include "daemon/sensors/maintenance.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALERT_LINES 50 /* in the log, per ten seconds */
#define ORPHANS 256    /* number of events examined at a time */

/* The name of the sensor from which a field's derived sensor is derived. False: it is no derived sensor of a field. */
static bool of_field(const struct hk_registry *registry, uint32_t slot, struct hk_string *member)
{
  const struct hk_string name = hk_registry_name(registry, slot);
  const char *mark = memrchr(name.data, HK_DERIVED_MARK, name.length);
  if (!mark || !hk_registry_detector_of(registry, hk_registry_detector(registry, slot))->residual)
    return false;
  *member = (struct hk_string){ name.data, (size_t)(mark - name.data) };
  return true;
}

/* Whether an event raises the alert of a change that a focus has found. */
static bool raises_focus(const struct hk_event *e)
{
  return e->kind == HK_EVENT_RAISED && (e->marks & HANKEL_TRAVELS);
}

/* The sensor to blame for an alert of a field's derived sensor, or the sensor where a focus has found a change; of a name that is
 * too long only the end. */
static struct hk_string blamed(const struct hk_shard *s, const struct hk_delivery *p, const struct hk_event *e,
                               char name[HK_NAME_MAX])
{
  const bool focus = raises_focus(e), secondary = (e->marks & HANKEL_SECONDARY) && e->kind == HK_EVENT_RAISED && p->batch;
  if (!focus && !secondary)
    return (struct hk_string){ "", 0 };
  struct hk_string of = focus ? hk_fields_nearest(s->machines.fields, e->slot, e->after, name)
                              : hk_fields_blamed(s->machines.fields, e->slot, p->batch->value[e->index], name);
  while (of.length > HK_WHO_MAX || (of.length > 0 && ((unsigned char)of.data[0] & 0xc0) == 0x80)) {
    of.data++;
    of.length--;
  }
  return of;
}

/* Whether a sensor is in maintenance at a time. A window for a sensor also covers its companions and derived sensors, and one for
 * a machine all its series. */
static bool in_maintenance(struct hk_shard *s, uint32_t slot, int64_t time)
{
  struct hk_registry *registry = s->all->registry;
  struct hk_string member;
  char room[HK_NAME_MAX];
  hk_registry_read(registry);
  const bool covered = hk_maintenance_covers(s->all->maintenance, hk_registry_name(registry, slot), time) ||
                       hk_maintenance_covers(s->all->maintenance, hk_registry_shared_name(registry, slot, room), time) ||
                       (of_field(registry, slot, &member) && hk_maintenance_covers(s->all->maintenance, member, time));
  hk_registry_read_end(registry);
  return covered;
}

bool hk_shard_pass_event(struct hk_shard *s, struct hk_event *e)
{
  if (!hk_alerts_pass(s->alerts, e, s->config->flaps.limit, s->config->flaps.within)) {
    hk_count(&s->counters.held_back, e->kind == HK_EVENT_RAISED);
    return false;
  }
  hk_count(&s->counters.flapping, e->kind == HK_EVENT_FLAPPING);
  if ((e->kind == HK_EVENT_RAISED || e->kind == HK_EVENT_FLAPPING) && in_maintenance(s, hk_slot_outside(s, e->slot), e->time))
    e->marks |= HANKEL_MAINTENANCE;
  return true;
}

/* Writes a line to the daemon's log. Replayed events were logged before. by: of a raised alert that travels the nearest sensor,
 * of another raised one the sensor to blame, of an acknowledged one the person. */
static void say(struct hk_shard *s, const struct hk_event *e, struct hk_string by)
{
  static const char *const kinds[] = {
    [HK_EVENT_RAISED] = "raised", [HK_EVENT_CLEARED] = "cleared", [HK_EVENT_ACKNOWLEDGED] = "acknowledged"
  };
  struct hk_registry *registry = s->all->registry;
  char name[HK_NAME_MAX + 1], near[HK_NAME_MAX + 1] = "", said[HK_EVENT_SAID], since[HK_TIMESTAMP_SIZE + 16] = "",
                                                 margin[48] = "", severity[48] = "";
  if (s->replaying || e->kind >= sizeof kinds / sizeof *kinds || !kinds[e->kind] ||
      hk_log_some_spent(s->all->log, &s->quotas.alerts, ALERT_LINES, HK_LOG_NOTICE))
    return;
  hk_registry_read(registry);
  const struct hk_string sensor = hk_registry_name(registry, hk_slot_outside(s, e->slot));
  snprintf(name, sizeof name, "%.*s", (int)sensor.length, sensor.data);
  hk_registry_read_end(registry);
  const bool raised = e->kind == HK_EVENT_RAISED, travels = e->marks & HANKEL_TRAVELS;
  if (raised && travels) {
    snprintf(near, sizeof near, "%.*s", (int)by.length, by.data);
    by.length = 0;
  }
  if (hk_event_said(e, near, said) == 0)
    strcpy(said, "no memory to say more");
  if (hk_event_says_no_instant(e)) {
    char instant[HK_TIMESTAMP_SIZE];
    hk_timestamp_say(e->instant, instant);
    snprintf(since, sizeof since, "; since %s UTC", instant);
  }
  if (e->channel != HK_CHANNEL_LIMIT)
    snprintf(margin, sizeof margin, ", %s%.2f times its threshold", raised ? "" : "at most ", (double)e->margin);
  if (e->severity > 0)
    snprintf(severity, sizeof severity, ", severity %.1f (%s)", (double)e->severity, hankel_severity_name(e->severity));
  hk_log_some(s->all->log, &s->quotas.alerts, ALERT_LINES, HK_LOG_NOTICE, "alerts",
              "alert %.300s:%" PRIu32 " %s (%s): %s%s%s%s%s%s%s%.*s", name, e->number, kinds[e->kind],
              travels ? "focus" : hankel_channel_name(e->channel), said, since, margin, severity,
              e->marks & HANKEL_MAINTENANCE ? ", in maintenance" : "",
              e->marks & HANKEL_PROVISIONAL ? ", provisional"
              : e->marks & HANKEL_SECONDARY ? ", secondary"
                                            : "",
              by.length > 0 ? ", by " : "", (int)by.length, by.data);
}

/* How far the data of other sensors were already, of an event that begins or joins an incident, if that decides on its end; else
 * 0, since hankelds of before cannot read an event that says it. */
static int64_t reached_by_others(const struct hk_shard *s, struct hk_delivery *p, const struct hk_event *e)
{
  const struct hk_incidents_sections *sections = &s->all->config->incidents;
  const bool begins = e->kind == HK_EVENT_RAISED || e->kind == HK_EVENT_CORRECTED;
  const int64_t reached = begins ? hk_reach_before(&s->taking.reach, &p->reach, p->batch, e->index) : 0;
  if (!begins || reached <= e->time)
    return 0;
  const uint64_t by = (uint64_t)reached - (uint64_t)e->time;
  for (uint32_t i = 0; i < sections->n; i++)
    if (by > HK_INCIDENTS_LATE * (uint64_t)sections->of[i].interval)
      return reached;
  return 0;
}

bool hk_shard_log_event(struct hk_shard *s, struct hk_delivery *p, const struct hk_event *e, struct hk_string by)
{
  struct hk_eventlog *log = s->all->events;
  struct hk_registry *registry = s->all->registry;
  const uint32_t slot = hk_slot_outside(s, e->slot);
  char name[HK_NAME_MAX];
  by = by.length > 0 ? by : blamed(s, p, e, name);
  say(s, e, by);
  if (!log || !hk_eventlog_takes(e->kind))
    return false;
  hk_registry_read(registry);
  const uint64_t position = hk_eventlog_append(log, hk_registry_handles(registry)[slot], hk_registry_name(registry, slot),
                                               hk_alerts_sequence(s->alerts, e->slot), e, by, reached_by_others(s, p, e));
  hk_registry_read_end(registry);
  if (position > 0)
    p->events = position;
  hk_durable_nudge(s->all->durable);
  return true;
}

/* Publishes the end of an alert that no point causes. */
static void tell_end(struct hk_shard *s, const struct hk_event *cleared)
{
  struct hk_delivery nobody = { 0 };
  (void)hk_alerts_note(s->alerts, cleared); /* an end needs no memory */
  (void)hk_shard_log_event(s, &nobody, cleared, hk_string(""));
}

/* Ends the standing alert of a sensor, if it has one, without a point that causes this. */
static void alert_log_end(struct hk_shard *s, uint32_t within)
{
  struct hk_event cleared;
  if (hk_alerts_clear(s->alerts, within, &cleared))
    tell_end(s, &cleared);
}

void hk_shard_forget_replayed(struct hk_shard *s, uint32_t slot)
{
  alert_log_end(s, hk_slot_within(s->all, slot));
  hk_alerts_forget(s->alerts, hk_slot_within(s->all, slot));
  hk_groups_forget(s->machines.groups, hk_slot_within(s->all, slot));
  hk_groups_forget(s->machines.seconds, hk_slot_within(s->all, slot));
  hk_groups_forget(s->machines.fields, hk_slot_within(s->all, slot));
  hk_rates_forget(&s->rates, hk_slot_within(s->all, slot));
  hk_provisional_drop(s, hk_slot_within(s->all, slot));
  hk_scores_forget(s, hk_slot_within(s->all, slot));
}

/* Restores the acknowledgement of a standing alert from the previous run. */
static void acknowledged_before(struct hk_shard *s, uint32_t slot)
{
  const struct hk_registry *registry = s->all->registry;
  struct hk_logged l;
  struct hk_event told;
  char before[HK_WHO_MAX + 1];
  if (hk_eventlog_noted(s->all->events, hk_registry_handle(registry, slot), hk_registry_name(registry, slot), &l))
    (void)hk_alerts_acknowledge(s->alerts, hk_slot_within(s->all, slot), l.event.number, l.by, l.event.time, &told, before);
}

/* Continues the numbers of alerts after this one, in the backend, too. */
static void go_on_numbering(struct hk_shard *s, uint32_t slot, uint32_t number)
{
  struct hk_registry *registry = s->all->registry;
  const struct hk_config_detector *d = hk_registry_detector_of(registry, hk_registry_detector(registry, slot));
  int status = 0;
  pthread_mutex_lock(&s->lock);
  if (s->device) { /* a lost device has left the numbers to hk_alerts */
    pthread_mutex_lock(&s->device->calls);
    status = hk_device_carry_number(s->device->backend, &d->detector, hk_slot_within(s->all, slot), number);
    pthread_mutex_unlock(&s->device->calls);
  }
  pthread_mutex_unlock(&s->lock);
  if (status != 0)
    hk_log(s->all->log, HK_LOG_WARNING, "alert numbers start again from 1: %s", strerror(-status));
}

static void take_event(void *arg, const struct hk_logged *l)
{
  struct hk_event *e = arg;
  *e = l->event;
}

/* Whether the sensor's alert with this number stands. */
static bool stands(const struct hk_shard *s, uint32_t within, uint32_t number)
{
  struct hk_alerts_memory m;
  hk_alerts_get(s->alerts, within, &m);
  return m.stands && m.standing.event.number == number;
}

/* The log has more events of a sensor than were restored and replayed: their points are lost. The last published event
 * determines the standing alert. */
static void go_on_behind(struct hk_shard *s, uint32_t slot, const struct hk_eventlog_past *past)
{
  const uint32_t within = hk_slot_within(s->all, slot);
  struct hk_eventlog_cursor cursor = { .next = past->open };
  struct hk_event event;
  if (past->number > hk_alerts_number(s->alerts, within))
    go_on_numbering(s, slot, past->number);
  hk_alerts_reach(s->alerts, within, past->sequence, past->number);
  atomic_fetch_or(&s->all->durable->health.wants_snapshot,
                  (uint64_t)1 << s->number); /* the journal alone would not restore that */
  if (past->open > 0 && stands(s, within, past->number))
    return;
  (void)hk_alerts_clear(s->alerts, within, &event); /* as published then */
  if (past->open == 0 || hk_eventlog_read(s->all->events, &cursor, past->open, 1, take_event, &event) == 0)
    return;
  event.kind = HK_EVENT_CLEARED;
  event.slot = within;
  tell_end(s, &event);
}

void hk_shard_events_replayed(struct hk_shard *s)
{
  struct hk_registry *registry = s->all->registry;
  for (uint32_t slot = s->number; s->all->events && slot < hk_registry_slots(registry); slot += s->all->n) {
    const uint32_t within = hk_slot_within(s->all, slot);
    if (!hk_registry_holds(registry, slot))
      continue;
    hk_registry_read(registry);
    const struct hk_eventlog_past past =
        hk_eventlog_past(s->all->events, hk_registry_handle(registry, slot), hk_registry_name(registry, slot));
    hk_registry_read_end(registry);
    /* Sequences alone do not decide: the end of an alert of a sensor that starts over may have the sequence of a logged
     * correction. */
    const bool lost = past.open > 0 && !stands(s, within, past.number);
    if (lost || past.sequence > hk_alerts_sequence(s->alerts, within))
      go_on_behind(s, slot, &past);
    hk_registry_read(registry);
    acknowledged_before(s, slot);
    hk_registry_read_end(registry);
  }
}

/* --- sensors that are gone ------------------------------------------------------------------------------------------- */

struct orphan {
  struct hk_logged last; /* the last event of its alert */
  char name[HK_NAME_MAX];
};

struct orphans {
  struct hk_shards *all;
  struct orphan list[ORPHANS];
  uint32_t n;
};

/* Whether an event of the log is the last one of an alert whose sensor no longer exists. */
static void look_for_sensor(void *arg, const struct hk_logged *l)
{
  struct orphans *o = arg;
  struct hk_registry *registry = o->all->registry;
  uint32_t slot;
  if (hk_eventlog_past(o->all->events, l->handle, l->name).open != l->position)
    return;
  if (hk_registry_find(registry, l->name.data, l->name.length, &slot) == 0 && hk_registry_handle(registry, slot) == l->handle)
    return;
  struct orphan *found = &o->list[o->n++];
  found->last = *l;
  found->last.name.data = memcpy(found->name, l->name.data, l->name.length);
}

int hk_shards_clear_orphans(struct hk_shards *all)
{
  struct hk_eventlog_cursor cursor = { .next = hk_eventlog_first(all->events) };
  struct orphans *o = calloc(1, sizeof *o);
  uint32_t seen = 1;
  if (!o)
    return -ENOMEM;
  o->all = all;
  for (const uint64_t last = hk_eventlog_shown(all->events); seen > 0;) {
    o->n = 0;
    hk_registry_read(all->registry);
    seen = hk_eventlog_read(all->events, &cursor, last, ORPHANS, look_for_sensor, o);
    hk_registry_read_end(all->registry);
    for (uint32_t i = 0; i < o->n; i++) {
      struct hk_logged *l = &o->list[i].last;
      const uint64_t reached = hk_eventlog_past(all->events, l->handle, l->name).sequence;
      l->event.kind = HK_EVENT_CLEARED;
      (void)hk_eventlog_append(all->events, l->handle, l->name, reached + 1, &l->event, hk_string(""), 0);
    }
  }
  free(o);
  return 0;
}
