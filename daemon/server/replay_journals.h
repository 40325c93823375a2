/* Recovery: at the start, the journals' points go the usual way again, from chunks to the backend, before any listener is served.
 *
 *     (a snapshot is restored) -> hk_recover -> hk_durable_begin, and shards write their journals
 *
 * Shards run, loops do not. The same points in the same order give the same windows, baselines and alerts, bit for bit, however
 * they are cut into batches; there are no subscribers yet. Records of several shards are replayed in the order of the sensors'
 * changes.
 *
 * Damaged records are skipped and logged. A crash leaves a torn end of the last file, which was neither acknowledged nor
 * published; any other damage is a loss.
 *
 * Thread: main. */
#ifndef HK_REPLAY_JOURNALS_H
#define HK_REPLAY_JOURNALS_H

#include "daemon/durable/durable.h"
#include "daemon/intake/chunk_pool.h"
#include "daemon/scoring/shard.h"

/* The result of restoring snapshots. All zero: there was none. */
struct hk_restored {
  uint32_t shards;              /* former shards; 0: no snapshot */
  uint64_t from[HK_SHARDS_MAX]; /* of each: the position from which its journal is needed */
  uint64_t *skip; /* by slot of the registry: the sensor's state contains points before this position; NULL: no points */
  uint64_t order[HK_SHARDS_MAX]; /* of each: the last change of a sensor that the snapshot certainly contains */
  bool damaged;                  /* a snapshot is damaged, perhaps one that is newer than the restored ones */
};

struct hk_recovery {
  struct hk_durable *durable;
  struct hk_registry *registry;
  struct hk_shard *shard;       /* the present shards */
  struct hk_chunk_pool *pool;   /* of loop 0, which does not run */
  struct hk_counters *counters; /* of loop 0 */
  uint32_t max_sensors;
  const struct hk_restored *restored;

  bool other_shards; /* out: the former number of shards was different */
  bool hole;         /* out: a journal has a gap from a loss of durability that had not ended */
  uint64_t points, skipped,
      unknown;   /* out: replayed points; points that were in the snapshot; points of sensors that could not be restored */
  uint64_t lost; /* out: points that damage has lost */
  uint64_t position[HK_SHARDS_MAX]; /* out: where the shards continue */
};

/* Replays all journals. Returns 0, or a negative errno with a message. */
int hk_recover(struct hk_recovery *recovery, char *error, size_t size);

#endif
