/* Ticks: events of one time of the data come to incidents together and in one order, by sensor, channel and instant, however they
 * came here. So what is decided does not hang on how threads took turns.
 *
 * An event that comes behind its tick counts as of the tick that is next. For each event it is told to which incident it belongs:
 * the end of an alert belongs to that of its beginning.
 *
 * Thread: one at a time. */
#ifndef HK_TICKS_H
#define HK_TICKS_H

#include "daemon/incidents/alert_incidents.h"
#include "daemon/incidents/incidents.h"

struct hk_ticks;

struct hk_tick_event {
  uint64_t position; /* in the log; 0: it is in none */
  uint64_t alert;    /* whose it is, of all sensors'; 0: none that ends */
  int64_t time, instant;
  double severity;
  uint32_t channel;
  bool ends;             /* the alert; severity and instant mean nothing */
  struct hk_string name; /* of the sensor */
};

/* The event of this position belongs to this incident. */
typedef void hk_tick_joined(void *arg, uint64_t position, uint64_t incident);

/* incidents stays the caller's, and outlives it. joined: called from within hk_ticks_reach; may be NULL. 0 or -ENOMEM. */
int hk_ticks_new(struct hk_ticks **out, struct hk_incidents *incidents, hk_tick_joined *joined, void *arg);
void hk_ticks_free(struct hk_ticks *ticks); /* NULL is fine; what waits is dropped */

/* An event. It waits until the data are behind its time. 0; -ENOMEM: it is lost. */
int hk_ticks_event(struct hk_ticks *ticks, const struct hk_tick_event *event);
/* No event of a time before this (ns) comes any more: those that wait are told to the incidents, which judge; but none whose
 * position is behind `seen`. Returns how many of them were lost there for lack of room. */
uint32_t hk_ticks_reach(struct hk_ticks *ticks, int64_t time, uint64_t seen);
/* The same of all that wait; then all incidents are closed. For the end of a recording. */
uint32_t hk_ticks_finish(struct hk_ticks *ticks);
/* Incidents are parts of others now, and so are their alerts. merges: as of hk_merges_sort. */
void hk_ticks_merged(struct hk_ticks *ticks, const struct hk_incident_merge *merges, uint32_t n);

/* How many events wait; the time of the latest of them, INT64_MIN where none does; the least of their positions, UINT64_MAX where
 * none does. */
uint32_t hk_ticks_waiting(const struct hk_ticks *ticks);
int64_t hk_ticks_newest(const struct hk_ticks *ticks);
uint64_t hk_ticks_first(const struct hk_ticks *ticks);

/* The image of what waits, and of the alerts that stand, for restarts, appended to out; and from one, behind what waits. 0;
 * -EBADMSG: it is damaged; -ENOMEM. */
void hk_ticks_write(const struct hk_ticks *ticks, struct hk_buffer *out);
int hk_ticks_read(struct hk_ticks *ticks, const char *image, size_t size);

#endif
