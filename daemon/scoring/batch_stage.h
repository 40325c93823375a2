/* Stage: where a shard makes batches out of chunks.
 *
 * begin -> take a chunk, or a part of it -> ... -> the batch is full, or there is no chunk
 *
 * Points go into a batch in the order in which they come, but at most HK_BATCH_PER_SENSOR of one sensor. What one sensor has
 * beyond that is put aside in a chain of its own, in order, and goes first into the next batches; so it delays nobody else, and
 * every point is moved at most twice. As long as no sensor has too many, a chunk is copied column by column, after one look at
 * each point's slot.
 *
 * Memory is taken at the start; what is not touched is only address space. Thread: the shard's. */
#ifndef HK_STAGE_H
#define HK_STAGE_H

#include "daemon/base/counters.h"
#include "daemon/intake/chunk.h"
#include "daemon/scoring/delivery.h"

struct hk_stage;

/* A chunk, and how far it has been taken. */
struct hk_cursor {
  struct hk_chunk *chunk; /* NULL: none */
  uint32_t at;            /* points taken */
  uint32_t run, of_run;   /* the run of the next point, and the points of it that were taken */
};

/* chained: points that chains hold at most; slots are below n_slots; barred: counts points of slots that are barred. 0 and *out,
 * or -ENOMEM. */
int hk_stage_new(struct hk_stage **out, uint32_t chained, uint32_t n_slots, hk_counter *barred);
/* Points that are still in chains are done with that. NULL is fine. */
void hk_stage_free(struct hk_stage *stage);

/* Begins a batch of at most `most` points with what chains hold. slots: below which all slots are. others: there are chunks,
 * which are to get half of it. The sources of the points are told in the delivery's runs. */
void hk_stage_begin(struct hk_stage *stage, struct hk_delivery *delivery, uint32_t most, uint32_t slots, bool others);
/* Moves points into the batch that was begun. True when all of the chunk was taken: it is empty then, and the cursor's no more.
 */
bool hk_stage_take(struct hk_stage *stage, struct hk_cursor *cursor);
/* Whether the batch that was begun has room. */
bool hk_stage_room(const struct hk_stage *stage);

/* Points in chains. */
uint32_t hk_stage_chained(const struct hk_stage *stage);
/* The time (ns) of the earliest of them, or a time before that; INT64_MAX: there is none. */
int64_t hk_stage_earliest(const struct hk_stage *stage);
/* Whether a sensor has points in a chain. */
bool hk_stage_has(const struct hk_stage *stage, uint32_t slot);

/* Points of these slots are dropped and counted, those that wait in chains and those that come, until unbar; once at a time. The
 * slots are the registry's, whose n-th one is the n / shards-th here; they are the caller's and stay where they are. */
void hk_stage_bar(struct hk_stage *stage, const uint32_t *slots, uint32_t n, uint32_t shards);
void hk_stage_unbar(struct hk_stage *stage);

#endif
