/* Ticks: passes the events of one time of the data to incidents together, ordered by sensor, channel and instant, whatever their
 * order of arrival. So decisions do not depend on the timing of threads.
 *
 * A late event counts as of the next tick. Each event gets its incident: the end of an alert has that of its beginning.
 *
 * Thread: one at a time. */
#ifndef HK_TICKS_H
#define HK_TICKS_H

#include "daemon/incidents/alert_incidents.h"
#include "daemon/incidents/incidents.h"

struct hk_ticks;

struct hk_tick_event {
  uint64_t position; /* in the log; 0: it is in none */
  uint64_t alert;    /* the alert's number among all sensors'; 0: none that ends */
  int64_t time, instant;
  int64_t reached; /* ns: as of hk_incidents_hear */
  double severity;
  uint32_t channel;
  bool ends;             /* the end of the alert; severity and instant are unused */
  struct hk_string name; /* of the sensor */
  struct hk_string what; /* what it says to people, at most HK_INCIDENT_SAID bytes; may be empty */
};

/* The event of this position belongs to this incident. */
typedef void hk_tick_joined(void *arg, uint64_t position, uint64_t incident);

/* incidents stays the caller's, and outlives it. joined: called from within hk_ticks_reach; may be NULL. 0 or -ENOMEM. */
int hk_ticks_new(struct hk_ticks **out, struct hk_incidents *incidents, hk_tick_joined *joined, void *arg);
void hk_ticks_free(struct hk_ticks *ticks); /* NULL is allowed; waiting events are dropped */

/* Adds an event, which waits until the data have passed its time. 0; -ENOMEM: it is lost. */
int hk_ticks_event(struct hk_ticks *ticks, const struct hk_tick_event *event);
/* The data have passed this time (ns): passes waiting events before it to the incidents, which judge them, except those whose
 * position is after `seen`. Returns how many were lost there for lack of room. */
uint32_t hk_ticks_reach(struct hk_ticks *ticks, int64_t time, uint64_t seen);
/* The same for all waiting events; then closes all incidents. For the end of a recording. */
uint32_t hk_ticks_finish(struct hk_ticks *ticks);
/* Drops waiting events up to a position: they were judged elsewhere. */
void hk_ticks_drop(struct hk_ticks *ticks, uint64_t upto);
/* Passes waiting events to another, those whose positions its owner names. False: no memory for one, which is lost. */
typedef bool hk_tick_named(void *arg, uint64_t position);
bool hk_ticks_pass(struct hk_ticks *ticks, struct hk_ticks *to, hk_tick_named *named, void *arg);
/* Incidents were merged: updates their alerts. merges: as of hk_merges_sort. */
void hk_ticks_merged(struct hk_ticks *ticks, const struct hk_incident_merge *merges, uint32_t n);

/* The number of waiting events; the time of the latest, INT64_MIN if none waits, and of the earliest, INT64_MAX; the least of
 * their positions, UINT64_MAX if none waits. */
uint32_t hk_ticks_waiting(const struct hk_ticks *ticks);
int64_t hk_ticks_newest(const struct hk_ticks *ticks);
int64_t hk_ticks_earliest(const struct hk_ticks *ticks);
uint64_t hk_ticks_first(const struct hk_ticks *ticks);

/* Appends the image of waiting events and standing alerts to out, for restarts; restores from an image, after the waiting events.
 * 0; -EBADMSG: it is damaged; -ENOMEM. */
void hk_ticks_write(const struct hk_ticks *ticks, struct hk_buffer *out);
int hk_ticks_read(struct hk_ticks *ticks, const char *image, size_t size);

#endif
