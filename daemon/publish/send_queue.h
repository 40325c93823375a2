/* Outgoing: messages to subscribers' sockets. Subscribers can share a message. If nothing waits for a socket, a message is
 * written at once, so that it can be reused while its memory is still in the cache. Thread: the loop's. */
#ifndef HK_SEND_QUEUE_H
#define HK_SEND_QUEUE_H

#include "daemon/base/buffer.h"

#include <stddef.h>
#include <stdint.h>

#define HK_SEND_QUEUE_PARTS 4 /* messages in one write: names, gap, results, events */

struct hk_subscriber;
struct hk_write;

struct hk_message {
  uint32_t references;
  struct hk_buffer bytes;
  struct hk_send_queue *home; /* receives it when the last reference is released; NULL: it is freed */
  struct hk_message *next;
};

/* Unused messages and write requests, for reuse. Zero-initialise, then set most_spare. */
struct hk_send_queue {
  struct hk_message *spare;
  size_t spare_bytes, most_spare; /* bytes of the unused messages, and their limit */
  struct hk_write *writes;
  uint32_t n_writes;
};
/* Frees them. No message may still be in use. */
void hk_send_queue_free(struct hk_send_queue *queue);

/* Creates an empty message; home may be NULL. Returns NULL if out of memory. */
struct hk_message *hk_message_new(struct hk_send_queue *home);
void hk_message_release(struct hk_message *message); /* NULL is allowed */

/* Writes or queues messages to a subscriber; NULL entries are skipped. home: source of unused requests, may be NULL. Returns
 * 0, or -ENOMEM (no memory for a message or its request) or another negative errno; on error nothing was sent. Over TLS, if a
 * record cannot be sent after encryption, the peer ends the connection. Sends nothing, without an error, to a peer that cannot
 * receive (handshake incomplete, or TLS ended). reply: its bytes, if it is a reply; otherwise 0. */
int hk_send_queue_send(struct hk_send_queue *home, struct hk_subscriber *subscriber, struct hk_message *const *messages,
                       unsigned n, size_t reply);
/* As hk_send_queue_send, for bytes that must not be encrypted, or already are. */
int hk_send_queue_put(struct hk_send_queue *home, struct hk_subscriber *subscriber, struct hk_message *const *messages,
                      unsigned n, size_t reply);

#endif
