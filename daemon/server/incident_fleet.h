/* The fleet of incidents: its sensors, with the machines that they belong to, and their events. Each section [incidents NAME] has
 * one.
 *
 * Thread: the incident maker's, between hk_registry_read and hk_registry_read_end. */
#ifndef HK_INCIDENT_FLEET_H
#define HK_INCIDENT_FLEET_H

#include "daemon/durable/event_records.h"
#include "daemon/incidents/ticks.h"
#include "daemon/sensors/event_sentence.h"
#include "daemon/sensors/registry.h"

/* Adds a sensor, or the series of a machine, to the fleet, below its machine ([group NAME]): press#3. Without memory it is not
 * added: an alert of it adds it, or is counted as lost. */
void hk_fleet_know(struct hk_incidents *incidents, const struct hk_registry *registry, struct hk_string name);

/* An event, and the room for what it refers to. */
struct hk_fleet_event {
  struct hk_tick_event event;
  char name[HK_NAME_MAX], what[HK_EVENT_SAID];
};
/* Makes an event of a fleet of a logged one. False: it is none. */
bool hk_fleet_event(struct hk_registry *registry, const struct hk_logged *logged, struct hk_fleet_event *out);

#endif
