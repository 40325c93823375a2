/* Commit gate: a shard writes the points that it takes to its journal, and publishes their results once the points are on disk.
 *
 * A finished batch is held until all points that it may contain, and its events, are committed; so a crash undoes no published
 * score or event. Batches are published in the order in which they finished. Without a journal nothing is held.
 *
 * Thread: the shard's, unless stated otherwise. */
#ifndef HK_COMMIT_GATE_H
#define HK_COMMIT_GATE_H

#include "daemon/durable/durable.h"
#include "daemon/scoring/device.h"

/* Capacity for held batches: those of a device that was lost, and of its replacement. */
#define HK_HELD (2 * (HK_BATCHES_MOST + 1))

/* Used by commit_gate.c alone; all zero except the first two: no journal, no points taken. */
struct hk_commit_gate {
  struct hk_durable *durable;
  uint32_t shard;                     /* its number */
  struct hk_journal *_Atomic journal; /* NULL: none, or it is being replayed */
  atomic_uint_fast64_t position;      /* points taken from chunks, over all runs of the daemon */
  struct hk_delivery *held[HK_HELD];  /* ring of batches that have come back and are not published yet */
  uint32_t first, n;
};

/* After the restore: counts points from `position` on, and writes them to the journal from now on (NULL: none). Thread: main,
 * before any chunk comes. */
void hk_commit_gate_begin(struct hk_commit_gate *gate, uint64_t position, struct hk_journal *journal);
/* Takes a chunk: writes it to the journal, counts its points and advances feeds. */
void hk_commit_gate_take(struct hk_commit_gate *gate, const struct hk_chunk *chunk);
/* For a gateway, which has no journal (relay.h). hk_commit_gate_pass: takes a chunk and counts its points. hk_commit_gate_passed:
 * the broker has all of its points; advances feeds, for all shards: those that score get none of these points. */
void hk_commit_gate_pass(struct hk_commit_gate *gate, const struct hk_chunk *chunk);
void hk_commit_gate_passed(struct hk_commit_gate *gate, const struct hk_chunk *chunk);
/* Whether the journal has room for another chunk. */
bool hk_commit_gate_has_room(const struct hk_commit_gate *gate);
/* Whether a batch that has come back may not be published yet: then it is held, and hk_commit_gate_next returns it in its turn.
 */
bool hk_commit_gate_holds(struct hk_commit_gate *gate, struct hk_delivery *delivery);
/* The next held batch, if it may be published now; otherwise NULL. Its device, if it has one, stays in use until the caller
 * returns the batch, after publishing it. */
struct hk_delivery *hk_commit_gate_next(struct hk_commit_gate *gate);
/* Shutdown: held batches will not be published. */
void hk_commit_gate_drop(struct hk_commit_gate *gate);

/* Points taken so far. Thread: any. */
static inline uint64_t hk_commit_gate_position(const struct hk_commit_gate *gate)
{
  return gate->position;
}

/* Number of held batches. */
static inline uint32_t hk_commit_gate_held(const struct hk_commit_gate *gate)
{
  return gate->n;
}

#endif
