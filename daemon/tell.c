/* Events of a shard on their way into the event log, from which subscribers get them (follow.h). */
#include "daemon/shard.h"

#include "daemon/durable/durable.h"
#include "daemon/maintenance.h"

/* Whether somebody works on a sensor at a time. What is said of a sensor is said of its companions, too. */
static bool in_maintenance(struct hk_shard *s, uint32_t slot, int64_t time)
{
  struct hk_registry *registry = s->all->registry;
  hk_registry_read(registry);
  const uint32_t primary = hk_registry_primary(registry, slot);
  const bool covered = hk_maintenance_covers(s->all->maintenance, hk_registry_name(registry, slot), time) ||
                       (primary != slot && hk_maintenance_covers(s->all->maintenance, hk_registry_name(registry, primary), time));
  hk_registry_read_end(registry);
  return covered;
}

bool hk_shard_pass_event(struct hk_shard *s, struct hk_event *e)
{
  if (!hk_alerts_pass(s->alerts, e, s->config->flap_limit, s->config->flap_within)) {
    hk_count(&s->counters.held_back, e->kind == HK_EVENT_RAISED);
    return false;
  }
  hk_count(&s->counters.flapping, e->kind == HK_EVENT_FLAPPING);
  if ((e->kind == HK_EVENT_RAISED || e->kind == HK_EVENT_FLAPPING) && in_maintenance(s, hk_slot_outside(s, e->slot), e->time))
    e->marks |= HANKEL_MAINTENANCE;
  return true;
}

bool hk_shard_log_event(struct hk_shard *s, struct hk_parcel *p, const struct hk_event *e, struct hk_string by)
{
  struct hk_eventlog *log = s->all->events;
  struct hk_registry *registry = s->all->registry;
  const uint32_t slot = hk_slot_outside(s, e->slot);
  if (!log || !hk_eventlog_takes(e->kind))
    return false;
  hk_registry_read(registry);
  const uint64_t position = hk_eventlog_append(log, hk_registry_handles(registry)[slot], hk_registry_name(registry, slot),
                                               hk_alerts_sequence(s->alerts, e->slot), e, by);
  hk_registry_read_end(registry);
  if (position > 0)
    p->events = position;
  hk_durable_nudge(s->all->durable);
  return true;
}

/* Ends the alert that stands at a sensor, if one does, without a point that says so. */
static void end_alert(struct hk_shard *s, uint32_t within)
{
  struct hk_parcel nobody = { 0 };
  struct hk_event cleared;
  if (!hk_alerts_clear(s->alerts, within, &cleared))
    return;
  (void)hk_alerts_note(s->alerts, &cleared); /* an end asks for no memory */
  (void)hk_shard_log_event(s, &nobody, &cleared, hk_string(""));
}

void hk_shard_forget_replayed(struct hk_shard *s, uint32_t slot)
{
  end_alert(s, hk_slot_within(s->all, slot));
  hk_alerts_forget(s->alerts, hk_slot_within(s->all, slot));
  hk_groups_forget(s->groups, hk_slot_within(s->all, slot));
}

/* An alert that stands was acknowledged in the run before. */
static void acknowledged_before(struct hk_shard *s, uint32_t slot)
{
  const struct hk_registry *registry = s->all->registry;
  struct hk_logged l;
  struct hk_event told;
  if (hk_eventlog_noted(s->all->events, hk_registry_handle(registry, slot), hk_registry_name(registry, slot), &l))
    (void)hk_alerts_acknowledge(s->alerts, hk_slot_within(s->all, slot), l.event.number, l.by, l.event.time, &told);
}

void hk_shard_events_replayed(struct hk_shard *s)
{
  struct hk_registry *registry = s->all->registry;
  struct hk_event ended;
  hk_registry_read(registry);
  for (uint32_t slot = s->number; s->all->events && slot < hk_registry_slots(registry); slot += s->all->n) {
    if (!hk_registry_holds(registry, slot))
      continue;
    const uint32_t within = hk_slot_within(s->all, slot), handle = hk_registry_handle(registry, slot);
    const uint64_t reached = hk_eventlog_reached(s->all->events, handle, hk_registry_name(registry, slot));
    if (reached <= hk_alerts_sequence(s->alerts, within))
      continue;
    hk_alerts_reach(s->alerts, within, reached);
    (void)hk_alerts_clear(s->alerts, within, &ended); /* as was told then */
  }
  for (uint32_t slot = s->number; s->all->events && slot < hk_registry_slots(registry); slot += s->all->n)
    if (hk_registry_holds(registry, slot))
      acknowledged_before(s, slot);
  hk_registry_read_end(registry);
}
