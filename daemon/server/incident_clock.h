/* Incident clock: how far the data are by which incidents are made.
 *
 *     hk_clock_look -> hk_clock_mark -> hk_clock_passed -> the log is read: it has all events of before
 *
 * Ticks are complete once the data of all shards of this machine have passed them. Incidents end by the data of all machines of a
 * cluster, but do not wait for data that do not come.
 *
 * Thread: the incident watch's. */
#ifndef HK_INCIDENT_CLOCK_H
#define HK_INCIDENT_CLOCK_H

#include "daemon/config/incidents_rule.h"
#include "daemon/durable/event_log.h"
#include "daemon/server/distant_progress.h"

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
  struct hk_distant_progress *distant; /* NULL: the log is no copy of a shared one */
  int64_t silence;                     /* ns: for how long no data come when ends do not wait for them */
  int64_t ticks, ends; /* ns, time of data: ticks before it are complete, and incidents over by it end; 0: unknown */
  bool marked;         /* they stay so until the log has passed: */
  uint64_t mark;
  int64_t marked_at; /* ns, monotonic: the last one */
};

/* source and events outlive the clock. ready(arg): there may be something new. 0 or -ENOMEM. */
int hk_clock_begin(struct hk_incident_clock *clock, const struct hk_watch_source *source,
                   const struct hk_incidents_sections *rules, struct hk_eventlog *events, void (*ready)(void *arg), void *arg);
void hk_clock_finish(struct hk_incident_clock *clock);

/* Looks how far the data are, unless a mark is waited for. shards: a bit for each that has sensors. mail: to ask other machines
 * by; NULL: none. open: there are incidents that could end. */
void hk_clock_look(struct hk_incident_clock *clock, uint64_t shards, struct hk_cluster *mail, bool open);
/* Marks the log, if it is not marked; a shared one at most once a second. */
void hk_clock_mark(struct hk_incident_clock *clock);
/* Whether the log has passed the mark, which is forgotten then: `ticks` and `ends` hold once it is read. */
bool hk_clock_passed(struct hk_incident_clock *clock);
/* Forgets the mark, and what other machines were asked. */
void hk_clock_forget(struct hk_incident_clock *clock);

#endif
