/* The folder that all scorers of a cluster share ([cluster] state = shared:DIR): each holder of a partition leaves the state of
 * its sensors there for the next.
 *
 *     DIR/NAME-PARTITIONS/PARTITION/epoch-NUMBER.hkp/shard-N/snapshot-NUMBER.hks
 *
 * An epoch is one holding. Each new holder of a partition makes the next epoch, and writes only there: so a holder that has lost
 * its lease without knowing writes into its own epoch, and no locks are needed. The new holder restores the newest epoch in which
 * all shards of its holder have a good snapshot, and continues at the position up to which that has read the log. Older epochs
 * are removed.
 *
 * Thread: the cluster's. */
#ifndef HK_CLUSTER_STATE_H
#define HK_CLUSTER_STATE_H

#include "daemon/bridge/cluster_internal.h"
#include "daemon/scoring/held_partitions.h"

struct hk_cluster_taken {
  uint64_t epoch;            /* the new one */
  uint64_t from;             /* the restored one; 0: none */
  uint64_t at;               /* how far the restored one has read the log, in points as cluster_part.h counts them */
  int folder[HK_SHARDS_MAX]; /* of the new epoch; the caller's */
  uint32_t sensors, anew, gone;
};

/* Opens, or makes, the folder of the cluster. The caller closes *out with close. Returns 0, or a negative errno with why. */
int hk_cluster_state_open(const struct hk_cluster *c, int *out, char why[HK_ENGINE_WHY]);
/* Restores a partition into the shards, and makes its next epoch. Returns 0, or a negative errno with why: what was restored by
 * then has to leave (HK_PARTITION_LEAVE). */
int hk_cluster_state_take(struct hk_cluster *c, int state, uint32_t partition, struct hk_cluster_taken *out,
                          char why[HK_ENGINE_WHY]);
/* Removes the folder of an epoch that was made, and could not be held; one that has a snapshot stays. */
void hk_cluster_state_drop(struct hk_cluster *c, int state, uint32_t partition, uint64_t epoch);
/* Gives up a partition, or holds it: orders HK_PARTITION_LEAVE or HK_PARTITION_HOLD on every shard. */
int hk_cluster_state_order(struct hk_cluster *c, const struct hk_partition_order *order, const int *folder);

#endif
