/* Ticks: events of one time of the data come to incidents together and in one order, by sensor, channel and instant, however they
 * came here. So what is decided does not hang on how threads took turns.
 *
 * An event that comes behind its tick counts as of the tick that is next.
 *
 * Thread: one at a time. */
#ifndef HK_TICKS_H
#define HK_TICKS_H

#include "daemon/incidents/incidents.h"

struct hk_ticks;

/* incidents stays the caller's, and outlives it. 0 or -ENOMEM. */
int hk_ticks_new(struct hk_ticks **out, struct hk_incidents *incidents);
void hk_ticks_free(struct hk_ticks *ticks); /* NULL is fine; what waits is dropped */

/* An event, as of hk_incidents_event. It waits until the data are behind its time. 0; -ENOMEM: it is lost. */
int hk_ticks_event(struct hk_ticks *ticks, int64_t time, struct hk_string name, uint32_t channel, double severity,
                   int64_t instant);
/* No event of a time before this (ns) comes any more: those that wait are told to the incidents, which judge. Returns how many of
 * them were lost there for want of room. */
uint32_t hk_ticks_reach(struct hk_ticks *ticks, int64_t time);
/* The same of all that wait; then all incidents are closed. For the end of a recording. */
uint32_t hk_ticks_finish(struct hk_ticks *ticks);

/* How many events wait, and the time of the latest of them; INT64_MIN where none does. */
uint32_t hk_ticks_waiting(const struct hk_ticks *ticks);
int64_t hk_ticks_newest(const struct hk_ticks *ticks);

/* The image of what waits, for restarts, appended to out; and from one, behind what waits. 0; -EBADMSG: it is damaged; -ENOMEM.
 */
void hk_ticks_write(const struct hk_ticks *ticks, struct hk_buffer *out);
int hk_ticks_read(struct hk_ticks *ticks, const char *image, size_t size);

#endif
