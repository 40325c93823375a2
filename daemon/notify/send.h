/* Send: one message to one receiver, by libcurl or libmosquitto; waits for the answer. Thread: the receiver's. */
#ifndef HK_NOTIFY_SEND_H
#define HK_NOTIFY_SEND_H

#include "daemon/base/buffer.h"
#include "daemon/config/notify_rule.h"

#include <stdatomic.h>

#define HK_ANSWER_MOST 256

enum hk_sent { HK_SENT, HK_SENT_LATER, HK_SENT_NEVER }; /* taken; not now; and it never will be */

/* One of the pieces that a message is sent in: of its body the topic and what is published there. */
struct hk_message_piece {
  size_t topic, topic_length, payload, payload_length;
  bool retain;
};

/* A message as it goes out. */
struct hk_message {
  struct hk_buffer body;
  struct hk_message_piece *piece; /* mqtt: n_pieces of them */
  uint32_t n_pieces;
  const char *content_type; /* of what is posted */
  char key[96];
  char subject[160]; /* email */
  uint32_t events;   /* of the log, that it tells of */
};

struct hk_answer {
  int64_t retry_after;       /* ns; 0: it does not say */
  char text[HK_ANSWER_MOST]; /* what was answered, or what went wrong: one line */
};

struct hk_sender;

/* quit: a try in flight is broken off once it is true; NULL: never. 0 or -ENOMEM. */
int hk_sender_new(struct hk_sender **out, const atomic_bool *quit);
void hk_sender_free(struct hk_sender *sender); /* NULL is fine */
/* Reads the rule's secret, sends, and waits up to its timeout. */
enum hk_sent hk_sender_send(struct hk_sender *sender, const struct hk_notify_rule *rule, const struct hk_message *message,
                            struct hk_answer *answer);
#endif
