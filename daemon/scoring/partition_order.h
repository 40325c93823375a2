/* What the thread of a cluster orders of a shard: to take the state of a partition, to hold it, to leave it (held_partitions.h).
 */
#ifndef HK_PARTITION_ORDER_H
#define HK_PARTITION_ORDER_H

#include "daemon/durable/snapshot_read.h"

/* A held partition. */
struct hk_held_partition {
  uint32_t partition;
  uint64_t epoch;
  int folder;                      /* where this shard's snapshots go */
  uint64_t base;                   /* position of its feed when it came */
  char feed[HK_FEED_NAME_MAX + 1]; /* its name */
};

enum hk_partition_what {
  HK_PARTITION_SENSORS,  /* of the section `part`: those whose slots are the shard's get their state */
  HK_PARTITION_MACHINES, /* likewise */
  HK_PARTITION_COUNTERS,
  HK_PARTITION_PROVISIONAL,
  HK_PARTITION_LATEST, /* of the section END: how far its data were */
  HK_PARTITION_HOLD,   /* the state is complete: the partition is in snapshots from now on */
  HK_PARTITION_LEAVE   /* its sensors are forgotten */
};

/* An order to a shard; owner: the caller. */
struct hk_partition_order {
  enum hk_partition_what what;
  const struct hk_snapshot_part *part;
  char *const *detectors; /* names, by the file's numbers */
  uint32_t n_detectors;
  uint32_t *map, slots; /* `slots` of them, by the file's slots: the registry's, or UINT32_MAX */
  struct hk_held_partition held;
  /* out */
  int status;                   /* 0, or a negative errno: -EBADMSG: the file's layout is wrong */
  uint32_t sensors, anew, gone; /* incremented: restored ones; of these, those that start over; those that no detector matches */
};

#endif
