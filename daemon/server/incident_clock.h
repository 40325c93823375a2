/* Incident clock: how far the data are by which incidents are made, once their events are read from the log.
 *
 *     hk_clock_ask -> the log is read -> hk_clock_take
 *
 * Ticks are complete once the data of all shards have passed them. Ends of incidents do not wait for data that do not come.
 *
 * Thread: the incident watch's. */
#ifndef HK_INCIDENT_CLOCK_H
#define HK_INCIDENT_CLOCK_H

#include "daemon/config/incidents_rule.h"
#include "daemon/durable/event_log.h"

/* The progress of the data; called from the watch's thread. */
struct hk_watch_source {
  int64_t (*reached)(void *arg, uint64_t shards); /* as hk_progress_ticks, */
  int64_t (*ends)(void *arg, int64_t silence);    /* and hk_progress_ends */
  bool (*idle)(void *arg);                        /* whether no point waits to be scored */
  void (*answered)(void *arg);                    /* a mark was answered: wakes the threads that wait for it */
  void *arg;
  uint32_t shards;
  bool scores; /* this machine scores its sensors: it is no gateway */
};

struct hk_incident_clock {
  const struct hk_watch_source *source;
  struct hk_eventlog *events;
  int64_t silence;     /* ns: for how long no data come when ends do not wait for them */
  bool asked;          /* the following are known: */
  int64_t ticks, ends; /* ns, time of data; 0: unknown */
  uint64_t position;   /* up to which the log has the events of before */
};

/* source and events outlive the clock. */
void hk_clock_begin(struct hk_incident_clock *clock, const struct hk_watch_source *source,
                    const struct hk_incidents_sections *rules, struct hk_eventlog *events);
/* Asks, unless what was asked before still waits for the log. shards: a bit for each that has sensors. */
void hk_clock_ask(struct hk_incident_clock *clock, uint64_t shards);
/* The log is read up to a position. True: it has all events of before *ticks, by which ticks are complete, and *ends, by which
 * incidents end (ns, time of data; 0: unknown). */
bool hk_clock_take(struct hk_incident_clock *clock, uint64_t position, int64_t *ticks, int64_t *ends);
/* Forgets what was asked. */
void hk_clock_forget(struct hk_incident_clock *clock);

#endif
