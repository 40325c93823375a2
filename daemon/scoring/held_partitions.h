/* Partitions that a scorer of a cluster holds for now ([cluster] state), as far as one shard is concerned. They come with the
 * state of their sensors, which another machine has left in the shared folder, and go with it:
 *
 *     cluster's thread: SENSORS, MACHINES, COUNTERS... -> HOLD -> points        a partition comes
 *                       points end -> a snapshot -> LEAVE                       and goes
 *
 * What is asked is done by the shard between two turns when nothing is in flight. Sensors of a partition that goes are forgotten
 * without a word: their alerts go on elsewhere.
 *
 * The saver makes a snapshot of each partition that is held: in a folder of its own, that of the partition's epoch. An epoch is
 * one holding, by one machine: whoever comes next makes another folder, so one that does not know that it holds the partition no
 * more disturbs nobody.
 *
 * Thread: as each function says. */
#ifndef HK_HELD_PARTITIONS_H
#define HK_HELD_PARTITIONS_H

#include "daemon/durable/snapshot_read.h"
#include "daemon/scoring/shard.h"

struct hk_partitions;

/* A partition that is held. */
struct hk_held_partition {
  uint32_t partition;
  uint64_t epoch;
  int folder;                      /* where this shard's snapshots go */
  uint64_t base;                   /* how far its feed was when it came */
  char feed[HK_FEED_NAME_MAX + 1]; /* its name */
};

enum hk_partition_what {
  HK_PARTITION_SENSORS,  /* of the section `part`: those whose slots are the shard's get their state */
  HK_PARTITION_MACHINES, /* likewise */
  HK_PARTITION_COUNTERS,
  HK_PARTITION_HOLD, /* all is there: the partition is in snapshots from now on */
  HK_PARTITION_LEAVE /* its sensors are forgotten */
};

/* What is asked of a shard; the caller's. */
struct hk_partition_order {
  enum hk_partition_what what;
  const struct hk_snapshot_part *part;
  char *const *detectors; /* names, by the file's numbers */
  uint32_t n_detectors;
  uint32_t *map, slots; /* by the file's slots, so many: the registry's, or UINT32_MAX */
  struct hk_held_partition held;
  /* out */
  int status;                   /* 0, or a negative errno: -EBADMSG: the file's layout is wrong */
  uint32_t sensors, anew, gone; /* added to: that were restored; of these, that start over; that no detector matches */
};

/* Of a shard; config: in force at first. 0 and *out, or -ENOMEM. Thread: main. */
int hk_partitions_new(struct hk_partitions **out, const struct hk_config *config, uint32_t slots);
void hk_partitions_free(struct hk_partitions *partitions); /* NULL is allowed */

/* Waits until the shard has done it. stops: asked every 0.1 s; true: it is not waited for any longer. 0, order->status, or
 * -ECANCELED. Thread: the cluster's. */
int hk_partitions_ask(struct hk_shard *shard, struct hk_partition_order *order, bool (*stops)(void *arg), void *arg);

/* Thread: the shard's, from here on but for the last. Does what was asked, if it can now. True when there was anything. */
bool hk_shard_take_partitions(struct hk_shard *shard);
/* Whether it waits: nothing is to be launched before. */
bool hk_shard_partitions_wait(const struct hk_shard *shard);
/* The partition of a sensor of the shard. slot: the registry's. */
uint32_t hk_shard_partition(struct hk_shard *shard, uint32_t slot);
/* Copies what is held, with folders that are the caller's; returns how many, or -ENOMEM or -EMFILE. *out: freed with free. */
int32_t hk_partitions_copy(struct hk_partitions *partitions, struct hk_held_partition **out);
/* Whether a partition is still held as it was then. Thread: any. */
bool hk_partitions_hold(struct hk_partitions *partitions, const struct hk_held_partition *held);

#endif
