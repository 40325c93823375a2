/* Progress of the partitions of a scorer, for hk_cluster_parts. Thread: the cluster's. */
#ifndef HK_CLUSTER_PROGRESS_H
#define HK_CLUSTER_PROGRESS_H

#include "daemon/bridge/cluster_internal.h"

/* The partition is scored here from now on. epoch: 0: not by a lease; next: offset of the next expected message. */
void hk_cluster_begins(struct hk_cluster *c, uint32_t partition, uint64_t epoch, uint64_t next);
void hk_cluster_leaves(struct hk_cluster *c, uint32_t partition);
/* Sets how far the partition was read. lag: ns for which the last message had waited; 0: no message waits. */
void hk_cluster_reached(struct hk_cluster *c, uint32_t partition, uint64_t next, int64_t lag);
/* The next message is of a later version of the protocol than this hankeld reads: the partition waits. */
void hk_cluster_needs(struct hk_cluster *c, uint32_t partition, uint8_t version);

#endif
