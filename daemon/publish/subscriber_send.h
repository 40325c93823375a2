/* Sends to one subscriber, with notices of what it did not get. Thread: its loop's. */
#ifndef HK_SUBSCRIBER_SEND_H
#define HK_SUBSCRIBER_SEND_H

#include "daemon/publish/send_queue.h"
#include "daemon/publish/subscriber.h"

/* Sends bytes (copied) to a subscriber's connection, after all earlier bytes. Returns 0 or a negative errno. */
int hk_send(struct hk_subscriber *subscriber, const void *data, size_t size);
/* Sends TLS records unchanged. Returns 0 or a negative errno. */
int hk_send_records(struct hk_subscriber *subscriber, const void *data, size_t size);
/* As hk_send, for a subscription's results and events: sends a due gap notice first. Returns 0 or a negative errno: not sent. */
int hk_send_events(struct hk_subscriber *subscriber, const void *data, size_t size);
/* Makes the gap notice, if one is due. NULL: none is, or no memory. The caller sets gap_results and gap_events to 0 once it is
 * sent. */
struct hk_message *hk_gap_message(struct hk_subscriber *subscriber);
/* Sends the gap notice, if one is due and fewer than `room` bytes wait in the queue. */
void hk_send_gap(struct hk_subscriber *subscriber, size_t room);
/* Whether the subscriber's queue has not shrunk for `stuck` ns although it is not empty. Called regularly. */
bool hk_subscriber_stuck(struct hk_subscriber *subscriber, int64_t now, int64_t stuck);

#endif
