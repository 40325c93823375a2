#include "daemon/server/incident_fleet.h"

#include "daemon/sensors/companions.h"

void hk_fleet_know(struct hk_incidents *all, const struct hk_registry *registry, struct hk_string name)
{
  char room[HK_NAME_MAX];
  const struct hk_string machine = { room, hk_registry_machine_of(registry, name, room) };
  (void)hk_incidents_learn(all, name, &machine, machine.length > 0);
}

bool hk_fleet_event(struct hk_registry *registry, const struct hk_logged *l, struct hk_fleet_event *out)
{
  const struct hk_event *e = &l->event;
  const bool ends = e->kind == HK_EVENT_CLEARED;
  if ((e->kind != HK_EVENT_RAISED && e->kind != HK_EVENT_CORRECTED && !ends) ||
      e->marks & (HANKEL_MAINTENANCE | HANKEL_PROVISIONAL)) /* work on a machine teaches nothing about it */
    return false;
  const struct hk_string name = hk_registry_shared_name_of(registry, l->name, out->name);
  out->event = (struct hk_tick_event){ .position = l->position,
                                       .alert = (uint64_t)l->handle << 32 | e->number,
                                       .time = e->time,
                                       .instant = e->instant,
                                       .reached = l->reached,
                                       .severity = (double)e->severity,
                                       .channel = e->channel,
                                       .ends = ends,
                                       .name = name,
                                       .what = { out->what, ends ? 0 : hk_event_said(e, "", out->what) } };
  return true;
}
