/* Recovery: at the start, what the journals hold goes the ordinary road again, from chunks to the backend, before any listener is
 * served.
 *
 *     (a snapshot is restored) -> hk_recover -> hk_durable_begin, and shards write their journals
 *
 * Shards run, loops do not. The same points in the same order give the same windows, baselines and alerts, bit for bit, however
 * they are cut into batches; nobody subscribes yet. Records of several shards are done in the order of what happened to sensors.
 *
 * What is damaged is left out and told: a crash leaves the end of the last file, which nobody was told of; anything else is a
 * loss.
 *
 * Thread: main. */
#ifndef HK_RECOVER_H
#define HK_RECOVER_H

#include "daemon/durable/durable.h"
#include "daemon/intake/chunk_pool.h"
#include "daemon/scoring/shard.h"

/* What a snapshot has restored. All zero: there was none. */
struct hk_restored {
  uint32_t shards;              /* that there were; 0: no snapshot */
  uint64_t from[HK_SHARDS_MAX]; /* of each of them: the position from which on its journal is needed */
  uint64_t *skip; /* by slot of the registry: points at positions before are in the state of its sensor; NULL: none is */
  uint64_t order[HK_SHARDS_MAX]; /* of each: of the last change of a sensor that is in it for sure */
  bool damaged;                  /* there are snapshots that are, perhaps newer ones */
};

struct hk_recovery {
  struct hk_durable *durable;
  struct hk_registry *registry;
  struct hk_shard *shard;       /* as many as there are now */
  struct hk_chunk_pool *pool;   /* of loop 0, which does not run */
  struct hk_counters *counters; /* of loop 0 */
  uint32_t max_sensors;
  const struct hk_restored *restored;

  bool other_shards; /* out: there were not as many as now */
  bool hole;         /* out: a journal has one, of a time when durability was lost, and it was not back at the end */
  uint64_t points, skipped, unknown; /* out: replayed; that were in the snapshot; of sensors that could not be restored */
  uint64_t lost;                     /* out: that are missing for damage */
  uint64_t position[HK_SHARDS_MAX];  /* out: at which the shards go on */
};

/* Replays what there is. 0, or a negative errno with a message. */
int hk_recover(struct hk_recovery *recovery, char *error, size_t size);

#endif
