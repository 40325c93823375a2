/* Follower: sends events of the event log to subscribers, on the thread of their loop.
 *
 * With an event log, subscribers get events from the log only. Each subscriber has its own place there, from which it continues
 * whenever more events are published and its queue has room. So a subscriber that starts in the past (`since`) reaches the
 * present without a gap, and a slow one loses nothing, as long as the log has it. Events that the log no longer has are counted
 * as dropped, and a gap notice takes their place. */
#ifndef HK_EVENT_FOLLOWER_H
#define HK_EVENT_FOLLOWER_H

#include "daemon/base/counters.h"
#include "daemon/durable/event_log.h"
#include "daemon/publish/view.h"

struct hk_subscriber;
struct hk_follower;

/* log, views, counters and queue must outlive the follower. *queue: most bytes in a subscriber's queue for which more is
 * appended. Returns 0 or -ENOMEM. */
int hk_follower_new(struct hk_follower **out, struct hk_eventlog *log, struct hk_views *views, struct hk_counters *counters,
                    const size_t *queue);
void hk_follower_free(struct hk_follower *follower); /* NULL is allowed */

/* Sets a subscriber's place: after the last event that it knows, `since`, or HANKEL_NOW. Returns the position of the event before
 * that place. A position that the log never had belongs to another log: the number of lost events is unknown. */
uint64_t hk_follower_place(struct hk_follower *follower, struct hk_subscriber *subscriber, uint64_t since);
/* Sends published events that were not sent yet, to all subscribers or to one, as far as queues have room. True: there are more
 * for a subscriber with room, in another turn. */
bool hk_follower_send_all(struct hk_follower *follower);
bool hk_follower_send_one(struct hk_follower *follower, struct hk_subscriber *subscriber);
/* Whether a subscriber has been sent the events up to a position, if it wants any. */
bool hk_follower_told(const struct hk_subscriber *subscriber, uint64_t position);

#endif
