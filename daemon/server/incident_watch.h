/* Incident watch: the thread of the incident maker, which follows the event log and logs what becomes of incidents.
 *
 * A tick is over once the data of all shards that have sensors are past it, and all that they have logged by then was read; or,
 * where the data stand still, once nothing waits to be scored and the log has had nothing of it for SETTLE (incident_watch.c).
 * What comes later all the same counts as of the next tick.
 *
 * Its state is a file of the state folder, written now and then: what came since is decided again from the log.
 *
 * Thread: main, but for what says otherwise; hk_watch_status and hk_watch_incidents: any. */
#ifndef HK_INCIDENT_WATCH_H
#define HK_INCIDENT_WATCH_H

#include "daemon/base/buffer.h"
#include "daemon/base/log.h"
#include "daemon/durable/durable.h"
#include "daemon/sensors/registry.h"
#include "daemon/server/incident_word.h"

struct hk_incident_watch;

struct hk_watch_status {
  uint64_t events, told, updates, merged, withheld, unlisted;
  uint32_t open, members, told_today, withheld_today;
  double budget, gravest_today;
  uint64_t position; /* of the last event that was read */
};

/* Where the data are; called from the watch's thread. */
struct hk_watch_source {
  int64_t (*reached)(void *arg, uint64_t shards); /* ns: the data of all of these shards, a bit each, are not before it; 0: of
                                                     some nobody knows */
  bool (*idle)(void *arg);                        /* nothing waits to be scored */
  void (*answered)(void *arg);                    /* a word was: whoever waits looks again */
  void *arg;
  uint32_t shards;
};

/* Takes up the state, and begins. Durable has an event log; it, the registry and the log outlive this. 0, -ENOMEM, or what
 * pthread_create says. A state that cannot be read is told, and begun anew. */
int hk_watch_start(struct hk_incident_watch **out, const struct hk_incidents_rule *rule, const struct hk_watch_source *source,
                   struct hk_durable *durable, struct hk_registry *registry, struct hk_log *log);
/* Hands a word to the watch; it was made for two, and is released where watch is NULL, with the outcome -ENOTSUP. Thread: any. */
void hk_watch_say(struct hk_incident_watch *watch, struct hk_incident_word *word);
/* Appends what is in force of what was said, objects of JSON with commas between them. watch: NULL is fine. Thread: any. */
void hk_watch_feedback(struct hk_incident_watch *watch, struct hk_buffer *out);
/* Another budget from now on. watch: NULL is fine. */
void hk_watch_budget(struct hk_incident_watch *watch, double a_day);
/* watch NULL: all zero. */
struct hk_watch_status hk_watch_status(struct hk_incident_watch *watch);
/* Appends what stands and what was lately over, as an object of JSON. False: watch is NULL. Thread: any. */
bool hk_watch_incidents(struct hk_incident_watch *watch, struct hk_buffer *out);
/* Writes the state and ends. True: it is freed; false: it hangs, and all that it uses must stay. NULL is fine. */
bool hk_watch_stop(struct hk_incident_watch *watch);

#endif
