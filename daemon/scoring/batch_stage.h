/* Stage: where a shard makes batches out of chunks.
 *
 * begin -> take a chunk, or a part of it -> ... -> the batch is full, or there is no chunk
 *
 * Points go into a batch in the order of their arrival, but at most HK_BATCH_PER_SENSOR of one sensor. A sensor's further points
 * wait in a chain of its own, in order, and go first into the next batches; so they delay no other sensor, and each point is
 * moved at most twice. While no sensor has too many points, a chunk is copied column by column, after one read of each point's
 * slot.
 *
 * Memory is reserved at the start; unused memory is only address space. Thread: the shard's. */
#ifndef HK_BATCH_STAGE_H
#define HK_BATCH_STAGE_H

#include "daemon/base/counters.h"
#include "daemon/intake/chunk.h"
#include "daemon/scoring/delivery.h"

struct hk_stage;

/* A chunk, and how many of its points have been taken. */
struct hk_cursor {
  struct hk_chunk *chunk; /* NULL: none */
  uint32_t at;            /* points taken */
  uint32_t run, of_run;   /* the run of the next point, and the number of its points that were taken */
};

/* chained: maximum number of points in chains; slots are below n_slots; barred: counts points of barred slots. Returns 0 and
 * *out, or -ENOMEM. */
int hk_stage_new(struct hk_stage **out, uint32_t chained, uint32_t n_slots, hk_counter *barred);
/* Points in chains are released to their sources. NULL is allowed. */
void hk_stage_free(struct hk_stage *stage);

/* Begins a batch of at most `most` points with the points of chains. slots: bound of all slots. others: chunks wait, and get half
 * of the batch. The delivery's runs have the sources of the points. */
void hk_stage_begin(struct hk_stage *stage, struct hk_delivery *delivery, uint32_t most, uint32_t slots, bool others);
/* Moves points into the current batch. True if the whole chunk was taken: it is then empty, and no longer the cursor's. */
bool hk_stage_take(struct hk_stage *stage, struct hk_cursor *cursor);
/* Whether the current batch has room. */
bool hk_stage_room(const struct hk_stage *stage);

/* Of the current batch: number of points that come from chains, its first; and of points that it had when the first of those
 * that are in chains now was put into one, UINT32_MAX: that was in another batch. */
uint32_t hk_stage_unchained(const struct hk_stage *stage);
uint32_t hk_stage_held_at(const struct hk_stage *stage);

/* Points in chains. */
uint32_t hk_stage_chained(const struct hk_stage *stage);
/* The time (ns) of the earliest point in a chain, or an earlier time; INT64_MAX: no point. */
int64_t hk_stage_earliest(const struct hk_stage *stage);
/* Whether a sensor has points in a chain. */
bool hk_stage_has(const struct hk_stage *stage, uint32_t slot);

/* Drops and counts points of these slots, in chains or new, until unbar; not nested. The slots are the registry's: slot n of the
 * registry is slot n / shards here. The caller keeps the array valid. */
void hk_stage_bar(struct hk_stage *stage, const uint32_t *slots, uint32_t n, uint32_t shards);
void hk_stage_unbar(struct hk_stage *stage);

#endif
