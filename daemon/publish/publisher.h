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
#include "daemon/publish/event_follower.h"
#include "daemon/publish/names_sent.h"
#include "daemon/publish/send_queue.h"
#include "daemon/publish/view.h"
#include "daemon/sensors/registry.h"

#include <uv.h>

struct hk_publisher;

/* A subscriber: part of a connection, zero-initialised. */
struct hk_subscriber {
  uv_stream_t *stream;
  /* Encrypts bytes and appends the TLS records to `records`. Returns 0, or a negative errno: -EPIPE if the connection has
   * ended. NULL: no TLS. */
  int (*seal)(void *arg, const void *data, size_t size, struct hk_buffer *records);
  void *seal_arg;
  void (*wrote)(struct hk_subscriber *subscriber, int status); /* a write has succeeded or failed */
  struct hk_view *view;                                        /* NULL: not subscribed */
  struct hk_subscriber *next, *previous;                       /* list of the view's subscribers */
  uint64_t gap_results, gap_events;                            /* dropped since the last gap notice */
  struct hk_eventlog_cursor events;                            /* with an event log: its position there */
  struct hk_names_sent names_sent;                             /* binary: slots whose names were sent */
  uint64_t settled; /* number of sensors ever added whose names were sent or are no longer needed */
  size_t replies;   /* bytes of hk_send that are not sent yet */
  size_t queued;    /* bytes in the queue at the last check of progress */
  int64_t progress; /* ns: when the queue was last seen empty or shrinking */
};

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

/* Sends bytes (copied) to a subscriber's connection, after all earlier bytes. Returns 0 or a negative errno. */
int hk_send(struct hk_subscriber *subscriber, const void *data, size_t size);
/* Sends TLS records unchanged. Returns 0 or a negative errno. */
int hk_send_records(struct hk_subscriber *subscriber, const void *data, size_t size);
/* As hk_send, for a subscription's results and events: sends a due gap notice first. Returns 0 or a negative errno: not sent. */
int hk_send_events(struct hk_subscriber *subscriber, const void *data, size_t size);
/* Sends the gap notice, if one is due and fewer than `room` bytes wait in the queue. */
void hk_send_gap(struct hk_subscriber *subscriber, size_t room);
/* Whether the subscriber's queue has not shrunk for `stuck` ns although it is not empty. Called regularly. */
bool hk_subscriber_stuck(struct hk_subscriber *subscriber, int64_t now, int64_t stuck);

uint32_t hk_publisher_views(const struct hk_publisher *publisher);

#endif
