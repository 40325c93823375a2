/* Commit gate: points that a shard takes go into its journal, and their results come out once those are on the disk.
 *
 * A batch that came back is held until all points that it may hold are committed, and the events that came of it, too; so nobody
 * has seen a score or an event that a crash takes back. Batches are shown in the order in which they came back. With no journal
 * nothing is held.
 *
 * Thread: the shard's, but for what says otherwise. */
#ifndef HK_COMMIT_GATE_H
#define HK_COMMIT_GATE_H

#include "daemon/durable/durable.h"
#include "daemon/scoring/device.h"

/* Batches that wait to be shown: those of a device that was lost, and of the next. */
#define HK_HELD (2 * (HK_BATCHES_MOST + 1))

/* Reached into by commit_gate.c alone; all zero but for the first two: no journal, nothing taken yet. */
struct hk_commit_gate {
  struct hk_durable *durable;
  uint32_t shard;                     /* its number */
  struct hk_journal *_Atomic journal; /* NULL: there is none, or it is being replayed */
  atomic_uint_fast64_t position;      /* points taken from chunks, since ever */
  struct hk_delivery *held[HK_HELD];  /* ring of batches that have come back and are not shown yet */
  uint32_t first, n;
};

/* What was restored is in: points are counted from `position` on and go into the journal from now on (NULL: there is none).
 * Thread: main, while no chunk comes. */
void hk_gate_begin(struct hk_commit_gate *gate, uint64_t position, struct hk_journal *journal);
/* A chunk is taken: it goes into the journal, its points count, and feeds are told. */
void hk_gate_take(struct hk_commit_gate *gate, const struct hk_chunk *chunk);
/* Whether the journal has room for another chunk. */
bool hk_gate_has_room(const struct hk_commit_gate *gate);
/* Whether a batch that has come back is not to be shown yet: then it is held, and hk_gate_next has it in its turn. */
bool hk_gate_holds(struct hk_commit_gate *gate, struct hk_delivery *delivery);
/* The next of those that were held, if it may be shown now; else NULL. Its device, if it has one, is lent once more for it until
 * the caller, who has shown it, says otherwise. */
struct hk_delivery *hk_gate_next(struct hk_commit_gate *gate);
/* The end: nobody will see those that are held. */
void hk_gate_drop(struct hk_commit_gate *gate);

/* Points taken so far. Thread: any. */
static inline uint64_t hk_gate_position(const struct hk_commit_gate *gate)
{
  return gate->position;
}

/* Batches that are held. */
static inline uint32_t hk_gate_held(const struct hk_commit_gate *gate)
{
  return gate->n;
}

#endif
