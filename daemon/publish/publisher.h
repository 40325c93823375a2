/* Publisher: sends results and events to subscribers.
 *
 * A subscription is a view (view.h). Equal subscriptions share one: its results are selected and encoded once, and the bytes are
 * sent to all of them, in pieces that stay in the cache from the encoding to the last copy into a socket. Bytes that a socket
 * does not take at once wait in the subscriber's queue.
 *
 * The queue is bounded. While it is full, results are dropped and counted, and a gap notice takes their place; events have a
 * quarter more room, so that they are kept longest. Nothing ever waits for a subscriber.
 *
 * A publisher keeps nothing of a batch, and no name. Thread: its loop's; the registry's names are read under its lock. */
#ifndef HK_PUBLISHER_H
#define HK_PUBLISHER_H

#include "cpu/backend.h"
#include "daemon/base/counters.h"
#include "daemon/config/config.h"
#include "daemon/publish/subscriber_send.h"
#include "daemon/publish/view.h"
#include "daemon/sensors/registry.h"

struct hk_publisher;

/* log: the event log; NULL: none, and events come with the batches. Returns 0 or a negative errno. */
int hk_publisher_new(struct hk_publisher **out, const struct hk_config *config, struct hk_registry *registry,
                     struct hk_eventlog *log, struct hk_counters *counters);
/* Applies the limits of another configuration. */
void hk_publisher_adopt(struct hk_publisher *publisher, const struct hk_config *config);
void hk_publisher_free(struct hk_publisher *publisher); /* NULL is allowed; no subscriber may be left */

/* Subscribes, replacing the earlier subscription; with HANKEL_POSITIONS the events after wanted->since are sent first. Returns
 * 0, -ENOSPC: too many different subscriptions, -EINVAL: glob, -ENOMEM; on error nothing changes. */
int hk_subscribe(struct hk_publisher *publisher, struct hk_subscriber *subscriber, const struct hk_wanted *wanted);
/* Ends the subscription, if there is one, and frees the subscriber's memory. */
void hk_unsubscribe(struct hk_publisher *publisher, struct hk_subscriber *subscriber);

/* Position of the last event that the subscriber knows, once it has subscribed; HANKEL_NOW: no log. */
uint64_t hk_subscribed_since(const struct hk_publisher *publisher, const struct hk_subscriber *subscriber);

/* Sends the results and events of a batch, or the notices of a sweep. sequence: number of each point within its sensor; NULL:
 * unknown. by: who acknowledged the events' alerts; "": other kinds of events. */
void hk_publish(struct hk_publisher *publisher, const struct hk_batch *batch, const uint64_t *sequence, struct hk_string by);
/* Sends the log's events that are published and not sent yet. True: there are more, for another turn. */
bool hk_publish_events(struct hk_publisher *publisher);
/* As hk_publish_events, a part to one subscriber. */
bool hk_publish_events_to(struct hk_publisher *publisher, struct hk_subscriber *subscriber);
/* A batch of points has no results: counts them as dropped for their subscribers. */
void hk_publish_dropped(struct hk_publisher *publisher, const struct hk_batch *batch);
/* A slot is about to be freed: forgets its name. Call once for each evicted sensor, before the slot is reused. */
void hk_publisher_forget(struct hk_publisher *publisher, uint32_t slot);

uint32_t hk_publisher_views(const struct hk_publisher *publisher);

#endif
