/* Score log: the last scores of all sensors of a shard together, for display. What the batches bring is appended as it comes,
 * column by column, to blocks, of which the oldest is used again when all are full: so the road pays for a copy of what it has at
 * hand, and nothing for a sensor. Whoever wants one sensor's scores looks through all that there are (a block in some 30 us).
 *
 * Scores of the time before the start are not there, but those that are computed anew from a journal.
 *
 * Thread: the shard's, except hk_score_log_read: any. */
#ifndef HK_SCORE_LOG_H
#define HK_SCORE_LOG_H

#include "cpu/backend.h"

#define HK_SCORE_BLOCK (1u << 16)                      /* points */
#define HK_SCORE_BLOCK_BYTES (1u << 20)                /* that it takes */
#define HK_SCORE_LOG_LEAST (4u * HK_SCORE_BLOCK_BYTES) /* of a log */

struct hk_score_log;

struct hk_scored {
  int64_t time; /* ns, of the point */
  float score;
};

/* A log that takes as many bytes, or HK_SCORE_LOG_LEAST; they are there when they are used first. NULL: no memory. */
struct hk_score_log *hk_score_log_new(uint64_t bytes);
void hk_score_log_free(struct hk_score_log *log); /* NULL is allowed */

/* Appends what a batch brought; slots: within the shard. */
void hk_score_log_put(struct hk_score_log *log, const struct hk_batch *batch);
/* The slot is about to be another sensor's: what was appended of it is no longer read. */
void hk_score_log_forget(struct hk_score_log *log, uint32_t slot);

/* The newest scores of a slot, at most `most`, oldest first; points without a score are left out. Returns how many. */
uint32_t hk_score_log_read(struct hk_score_log *log, uint32_t slot, struct hk_scored *out, uint32_t most);

#endif
