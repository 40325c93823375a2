/* Outgoing: messages on their way to subscribers' sockets. A message is bytes that several may share; a socket that has nothing
 * waiting is written to at once, so that the message is free again for the next one while its memory is still in the cache.
 * Thread: the loop's. */
#ifndef HK_OUTGOING_H
#define HK_OUTGOING_H

#include "daemon/base/buffer.h"

#include <stddef.h>
#include <stdint.h>

#define HK_OUTGOING_PARTS 4 /* messages in one write: names, gap, results, events */

struct hk_subscriber;
struct hk_write;

struct hk_message {
  uint32_t references;
  struct hk_buffer bytes;
  struct hk_outgoing *home; /* keeps it when the last reference is gone; NULL: it is freed */
  struct hk_message *next;
};

/* Unused messages and requests. All zero except most_spare. */
struct hk_outgoing {
  struct hk_message *spare;
  size_t spare_bytes, most_spare; /* that messages hold, and may */
  struct hk_write *writes;
  uint32_t n_writes;
};
/* No message of it may be on its way. */
void hk_outgoing_free(struct hk_outgoing *outgoing);

/* An empty message; home may be NULL. NULL: no memory. */
struct hk_message *hk_message_new(struct hk_outgoing *home);
void hk_message_release(struct hk_message *message); /* NULL is allowed */

/* Writes, or queues, messages to a subscriber; NULL among them: none. home: source of spare requests, may be NULL. 0, or
 * -ENOMEM (a message could not be made, or there is no request for it) or another negative errno; then nothing was sent. Over TLS
 * a record that could not be sent after encryption makes the other side end the connection. Nothing is sent, without an error, to
 * a peer that cannot receive (no handshake yet, or it is over). reply: bytes, if it is a reply; otherwise 0. */
int hk_outgoing_send(struct hk_outgoing *home, struct hk_subscriber *subscriber, struct hk_message *const *messages, unsigned n,
                     size_t reply);
/* As above, for bytes that are not to be encrypted, or are already. */
int hk_outgoing_put(struct hk_outgoing *home, struct hk_subscriber *subscriber, struct hk_message *const *messages, unsigned n,
                    size_t reply);

#endif
