/* A message as it is sent, and what came of it. */
#ifndef HK_NOTIFY_SENDING_H
#define HK_NOTIFY_SENDING_H

#include "daemon/base/buffer.h"

#include <stdbool.h>
#include <stdint.h>

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
  uint32_t events;   /* number of events that it is about */
};

struct hk_answer {
  int64_t retry_after;       /* ns; 0: the answer has no Retry-After */
  char text[HK_ANSWER_MOST]; /* the answer, or the error: one line */
};

#endif
