/* A message of a cluster's log of scores: results of some sensors, from one machine to all others; PROTOCOL.md (Messages between
 * machines) describes it. It consists of a PING frame with the number of its writer, a NAMES frame and a SCORES frame. Thread:
 * any. */
#ifndef HK_SCORE_MESSAGE_H
#define HK_SCORE_MESSAGE_H

#include "proto/wire/message.h"
#include "proto/wire/scores.h"

#define HK_SCORE_MESSAGE_MAX 1024u /* results, and names, in a message */
/* Enough bytes for any message. */
#define HK_SCORE_MESSAGE_BYTES ((size_t)HK_SCORE_MESSAGE_MAX * (6 + HK_NAME_MAX + 40) + 4096)

/* Columns of results. */
struct hk_score_columns {
  uint32_t n;          /* at least 1 */
  const int64_t *time; /* ns */
  const double *value;
  const uint64_t *sequence; /* NULL: unknown */
  const uint32_t *number;   /* of the sensor among the names, from 0 */
  const float *score;
  const uint8_t *state; /* enum hankel_state */
};

/* Appends a message. Returns as the writers of message.h; on error nothing is appended. */
int hk_score_message_write(struct hk_writer *w, uint64_t writer, uint32_t n, const struct hk_string *names,
                           const struct hk_score_columns *columns);

/* A read message: views into its data. */
struct hk_score_message {
  uint64_t writer;
  struct hk_list names;    /* walk it with hk_names_next; the names are not validated, and number i has handle i */
  struct hk_scores scores; /* with values; each handle is less than names.n, and each state is one */
};
/* Reads a message that fills the data. Returns 0; or -EBADMSG, and *why describes the error. */
int hk_score_message_read(const void *data, size_t size, struct hk_score_message *out, const char **why);

#endif
