/* The folder that all scorers of a cluster see ([cluster] state = shared:DIR): what each holder of a partition has left of its
 * sensors, for the next.
 *
 *     DIR/NAME-PARTITIONS/PARTITION/epoch-NUMBER.hkp/shard-N/snapshot-NUMBER.hks
 *
 * An epoch is one holding. Whoever gets a partition makes the next one, and writes there alone: so a holder that has lost its
 * lease and does not know writes into its own, and there are no locks. It restores the newest epoch in which all shards of its
 * holder have a good snapshot, and begins where that has read the log up to. Epochs before that go.
 *
 * Thread: the cluster's. */
#ifndef HK_CLUSTER_STATE_H
#define HK_CLUSTER_STATE_H

#include "daemon/bridge/cluster_internal.h"
#include "daemon/scoring/held_partitions.h"

struct hk_cluster_taken {
  uint64_t epoch;            /* ours */
  uint64_t from;             /* that was restored; 0: none */
  uint64_t at;               /* how far that has read the log, in points as cluster_part.h counts them */
  int folder[HK_SHARDS_MAX]; /* of our epoch; the caller's */
  uint32_t sensors, anew, gone;
};

/* Opens, or makes, the folder of the cluster. *out is closed with close. 0, or a negative errno with why. */
int hk_cluster_state_open(const struct hk_cluster *c, int *out, char why[HK_ENGINE_WHY]);
/* Restores a partition into the shards, and makes its next epoch. 0, or a negative errno with why: what was restored until then
 * has to leave (HK_PARTITION_LEAVE). */
int hk_cluster_state_take(struct hk_cluster *c, int state, uint32_t partition, struct hk_cluster_taken *out,
                          char why[HK_ENGINE_WHY]);
/* Gives up a partition, or makes it held: what HK_PARTITION_LEAVE and HK_PARTITION_HOLD say, of every shard. */
int hk_cluster_state_order(struct hk_cluster *c, const struct hk_partition_order *order, const int *folder);

#endif
