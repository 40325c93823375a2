/* Restores the state of sensors that come with a partition (held_partitions.h). Thread: the shard's. */
#ifndef HK_PARTITION_IMPORT_H
#define HK_PARTITION_IMPORT_H

#include "daemon/scoring/partition_order.h"

struct hk_shard;

/* Restores the shard's sensors of a section of a snapshot (HK_PARTITION_SENSORS, _MACHINES, _COUNTERS). Nothing may be in
 * flight. */
void hk_partition_import(struct hk_shard *shard, struct hk_partition_order *order);

#endif
