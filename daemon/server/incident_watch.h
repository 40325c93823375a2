/* Incident watch: a thread that follows the event log, makes incidents of the alerts, and logs those that fit into the budget.
 *
 * It reads what is shown, in the order of the log, whatever shard it comes from. A tick is judged once the log has had nothing of
 * it for SETTLE (incident_watch.c): then all shards are taken to be past it; an alert that comes later counts as of the next
 * tick. Alerts of one tick come in an order of their own (ticks.h).
 *
 * Its state is a file of the state folder: the place in the log, what waits, and the incidents. It is written before a message is
 * given, so that no message is given twice; after a crash the events behind it are read from the log again.
 *
 * Thread: main, but for hk_watch_status and hk_watch_incidents: any. */
#ifndef HK_INCIDENT_WATCH_H
#define HK_INCIDENT_WATCH_H

#include "daemon/base/buffer.h"
#include "daemon/base/log.h"
#include "daemon/durable/durable.h"
#include "daemon/sensors/registry.h"

struct hk_incident_watch;

struct hk_watch_status {
  uint64_t events, told, updates, merged, withheld, unlisted;
  uint32_t open, members, told_today, withheld_today;
  double budget, gravest_today;
  uint64_t position; /* of the last event that was read */
};

/* Takes up the state, and begins. Durable has an event log; it, the registry and the log outlive this. 0, -ENOMEM, or what
 * pthread_create says. A state that cannot be read is told, and begun anew. */
int hk_watch_start(struct hk_incident_watch **out, const struct hk_incidents_rule *rule, struct hk_durable *durable,
                   struct hk_registry *registry, struct hk_log *log);
/* Another budget from now on. watch: NULL is fine. */
void hk_watch_budget(struct hk_incident_watch *watch, double a_day);
/* watch NULL: all zero. */
struct hk_watch_status hk_watch_status(struct hk_incident_watch *watch);
/* Appends what stands and what was lately over, as an object of JSON. False: watch is NULL. Thread: any. */
bool hk_watch_incidents(struct hk_incident_watch *watch, struct hk_buffer *out);
/* Writes the state and ends. True: it is freed; false: it hangs, and all that it uses must stay. NULL is fine. */
bool hk_watch_stop(struct hk_incident_watch *watch);

#endif
