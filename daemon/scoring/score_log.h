/* Score log: the last scores of all sensors of a shard together, for display. The scores of each batch are appended, column by
 * column, to blocks; when all blocks are full, the oldest is reused. So the hot path pays for one copy of data at hand, and no
 * work per sensor. A reader of one sensor's scores scans all blocks (some 30 us each).
 *
 * Scores from before the start are not included, except those that are recomputed from a journal.
 *
 * Thread: the shard's, except hk_score_log_read: any. */
#ifndef HK_SCORE_LOG_H
#define HK_SCORE_LOG_H

#include "cpu/backend.h"

#define HK_SCORE_BLOCK (1u << 16)                      /* points */
#define HK_SCORE_BLOCK_BYTES (1u << 20)                /* size of a block */
#define HK_SCORE_LOG_LEAST (4u * HK_SCORE_BLOCK_BYTES) /* minimum size of a log */

struct hk_score_log;

struct hk_scored {
  int64_t time; /* ns, of the point */
  float score;
};

/* Makes a log of `bytes`, or at least HK_SCORE_LOG_LEAST; memory is committed on first use. NULL: no memory. */
struct hk_score_log *hk_score_log_new(uint64_t bytes);
void hk_score_log_free(struct hk_score_log *log); /* NULL is allowed */

/* Appends the scores of a batch; slots: within the shard. */
void hk_score_log_put(struct hk_score_log *log, const struct hk_batch *batch);
/* The slot is about to be given to another sensor: its earlier scores are no longer read. */
void hk_score_log_forget(struct hk_score_log *log, uint32_t slot);

/* Reads at most `most` newest scores of a slot, oldest first, without points that have no score. Returns their number. */
uint32_t hk_score_log_read(struct hk_score_log *log, uint32_t slot, struct hk_scored *out, uint32_t most);

#endif
