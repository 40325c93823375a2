/* Reach: how far the data of a shard have come, in time of the data, for incidents (server/progress.h).
 *
 *     hk_reach_restore -> hk_reach_take, hk_reach_before..., hk_reach_pass of each batch -> a snapshot has `latest`
 *
 * A point is late if points that arrived before it are later. So what is behind in a batch depends on the order of arrival,
 * not on where batches begin: in one burst, data that are ahead and late ones are told apart.
 *
 * Times are ns since the epoch; 0: unknown. Thread: the shard's, unless stated otherwise. */
#ifndef HK_REACH_H
#define HK_REACH_H

#include "cpu/backend.h"

#include <stdint.h>

struct hk_reach {
  int64_t latest;          /* the latest point that went into a batch; at most the clock */
  int64_t chained;         /* the latest that went into one before the first of the points that are in chains */
  int64_t offset;          /* for hk_wall_forward */
  _Atomic int64_t reached; /* any thread: all points before it are scored, and their events are logged */
  _Atomic int64_t rests;   /* any thread: monotonic, `rested`; 0: a point waits here, or its events are not logged yet */
  int64_t rested;          /* monotonic: when points were scored last that were not all late or rejected; or the start */
};

/* Of a batch. */
struct hk_batch_reach {
  int64_t reached; /* no point of the shard with an earlier time is scored after the batch */
  int64_t before;  /* the latest that was taken before the batch, and the first `looked` of its points */
  int64_t chained; /* the latest that was taken before its points that come from chains, */
  uint32_t n;      /* which are so many, the first */
  uint32_t looked;
  int64_t most; /* points ahead of it count as of it: their clock is wrong, but their data go on */
};

/* The data of before the start had come so far. Thread: main, before the shard runs. */
void hk_reach_restore(struct hk_reach *reach, int64_t latest);
/* The data of a partition that comes had come so far where they were before. That counts only until the shard has data: they may
 * be behind those of another shard, and say so themselves. */
void hk_reach_learn(struct hk_reach *reach, int64_t latest);
/* A batch was filled. unchained, held_at: as of hk_stage_unchained and hk_stage_held_at; to_come: no point that waits is before
 * it. */
void hk_reach_take(struct hk_reach *reach, struct hk_batch_reach *of, const struct hk_batch *batch, uint32_t unchained,
                   uint32_t held_at, int64_t to_come);
/* How far the data were when a point of the batch arrived. index: in ascending order from call to call; not below batch->n: of no
 * point, how far they are. batch: NULL: there is none. */
int64_t hk_reach_before(const struct hk_reach *reach, struct hk_batch_reach *of, const struct hk_batch *batch, uint32_t index);
/* The events of a batch of points are logged. */
void hk_reach_pass(struct hk_reach *reach, const struct hk_batch_reach *of);

#endif
