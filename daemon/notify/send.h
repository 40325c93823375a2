/* Send: one message to one receiver, by libcurl or libmosquitto; waits for the answer. Thread: the receiver's. */
#ifndef HK_NOTIFY_SEND_H
#define HK_NOTIFY_SEND_H

#include "daemon/base/buffer.h"
#include "daemon/config/notify_rule.h"

#include <stdatomic.h>

#define HK_ANSWER_MOST 256

enum hk_sent { HK_SENT, HK_SENT_LATER, HK_SENT_NEVER }; /* delivered; failed for the moment; refused permanently */

/* A piece of a message of MQTT: its topic and payload, within the body. */
struct hk_notify_message_piece {
  size_t topic, topic_length, payload, payload_length;
  bool retain;
};

/* A formatted message. */
struct hk_notify_message {
  struct hk_buffer body;
  struct hk_notify_message_piece *piece; /* mqtt: n_pieces of them */
  uint32_t n_pieces;
  const char *content_type; /* of the posted body */
  char key[96];
  char subject[160]; /* email */
  uint32_t events;   /* position of its last event in the log */
};

struct hk_answer {
  int64_t retry_after;       /* ns; 0: the answer has no Retry-After */
  char text[HK_ANSWER_MOST]; /* the answer, or the error: one line */
};

struct hk_sender;

/* quit: aborts an attempt once it is true; NULL: never. 0 or -ENOMEM. */
int hk_sender_new(struct hk_sender **out, const atomic_bool *quit);
void hk_sender_free(struct hk_sender *sender); /* NULL is allowed */
/* Reads the rule's secret, sends, and waits up to its timeout. */
enum hk_sent hk_sender_send(struct hk_sender *sender, const struct hk_notify_rule *rule, const struct hk_notify_message *message,
                            struct hk_answer *answer);
#endif
