/* Follow: events from the event log to subscribers, on the thread of their loop.
 *
 * Where there is an event log, events come to subscribers from it and from nowhere else. Each subscriber has its own place there,
 * from which it goes on whenever more is shown and its queue has room. So one that begins with the past (`since`) comes into the
 * present without a seam, and one that reads slowly falls behind and loses nothing, as long as the log has it; what it has not
 * any more is counted as left out, and the gap notice stands where it would have been. */
#ifndef HK_FOLLOW_H
#define HK_FOLLOW_H

#include "daemon/base/counters.h"
#include "daemon/durable/event_log.h"
#include "daemon/publish/view.h"

struct hk_subscriber;
struct hk_follower;

/* log, views, counters and *queue must outlive it: bytes that a subscriber's queue may have when more is put in. 0 or -ENOMEM. */
int hk_follower_new(struct hk_follower **out, struct hk_eventlog *log, struct hk_views *views, struct hk_counters *counters,
                    const size_t *queue);
void hk_follower_free(struct hk_follower *follower); /* NULL is fine */

/* A subscriber's place: behind the last event that it knows, `since`, or HANKEL_NOW. Returns the position of the event before
 * that place. A position that the log never had means that the events behind it were lost with another log: nobody knows how
 * many. */
uint64_t hk_follow_from(struct hk_follower *follower, struct hk_subscriber *subscriber, uint64_t since);
/* Sends what is shown and was not sent, to all, or to one, as far as queues have room. True: there is more to be sent to somebody
 * who has room, in another turn. */
bool hk_follow_all(struct hk_follower *follower);
bool hk_follow_one(struct hk_follower *follower, struct hk_subscriber *subscriber);
/* Whether a subscriber has been sent the events up to a position, if it wants any. */
bool hk_follower_told(const struct hk_subscriber *subscriber, uint64_t position);

#endif
