/* Incident watch: the thread of the incident maker, which follows the event log and logs changes of incidents.
 *
 * A tick is complete once the data of all shards with sensors have passed it, and all events logged by then were read; or, if the
 * data stand still, once no point waits to be scored and the log has had no event for SETTLE (incident_watch.c). Later events
 * count for the next tick.
 *
 * Its state is a file of the state folder, written from time to time; later decisions are repeated from the log.
 *
 * Thread: main, unless stated otherwise; hk_watch_status and hk_watch_incidents: any. */
#ifndef HK_INCIDENT_WATCH_H
#define HK_INCIDENT_WATCH_H

#include "daemon/base/buffer.h"
#include "daemon/base/log.h"
#include "daemon/bridge/cluster.h"
#include "daemon/durable/durable.h"
#include "daemon/sensors/registry.h"
#include "daemon/server/incident_clock.h"
#include "daemon/server/incident_counts.h"
#include "daemon/server/incident_word.h"

struct hk_incident_watch;

struct hk_watch_status {
  struct hk_watch_counts all; /* of all sections: sums, and the gravest of the latest day */
  struct hk_watch_section {
    struct hk_watch_counts counts;
    char name[HK_INCIDENTS_NAME];
    bool gone; /* the configuration no longer has it: its incidents end */
  } section[2 * HK_INCIDENTS_MOST];
  uint32_t n;
  uint64_t position; /* of the last read event */
};

/* Restores the state, and starts the thread. events: the event log, durable's or a copy of a
 * cluster's; it, durable, the registry and the log outlive the watch.
 * Returns 0, -ENOMEM, or pthread_create's error. A state that cannot be read is logged, and replaced by an empty one. */
int hk_watch_start(struct hk_incident_watch **out, const struct hk_incidents_sections *rules,
                   const struct hk_watch_source *source, struct hk_durable *durable, struct hk_eventlog *events,
                   struct hk_registry *registry, struct hk_log *log);
/* Has the watch ask other machines of the cluster for their sensors, so that incidents count those of all. mail: is stopped
 * before the watch, and outlives it; NULL is allowed, as is watch. */
void hk_watch_ask(struct hk_incident_watch *watch, struct hk_cluster *mail);
/* Hands a mark to the watch, with one of its two references; without a watch it is released, with the outcome -ENOTSUP. Thread:
 * any. */
void hk_watch_say(struct hk_incident_watch *watch, struct hk_incident_word *word);
/* Appends the marks in force, JSON objects separated by commas. watch: may be NULL. Thread: any. */
void hk_watch_feedback(struct hk_incident_watch *watch, struct hk_buffer *out);
/* Changes the budgets of the sections that the watch was started with. watch: may be NULL. */
void hk_watch_budget(struct hk_incident_watch *watch, const struct hk_incidents_sections *rules);
/* The watch's status; watch NULL: all zero. */
void hk_watch_status(struct hk_incident_watch *watch, struct hk_watch_status *out);
/* Appends open and recently closed incidents, as a JSON object. False: watch is NULL. Thread: any. */
bool hk_watch_incidents(struct hk_incident_watch *watch, struct hk_buffer *out);
/* Writes the state and stops. True: the watch is freed; false: it hangs, and all that it uses must stay. NULL is allowed. */
bool hk_watch_stop(struct hk_incident_watch *watch);

#endif
