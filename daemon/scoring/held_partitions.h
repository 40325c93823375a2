/* Partitions that a scorer of a cluster holds at present ([cluster] state), within one shard. A partition comes with the state of
 * its sensors, which another machine has left in the shared folder, and goes with it:
 *
 *     cluster's thread: SENSORS, MACHINES, COUNTERS... -> HOLD -> points        a partition comes
 *                       points end -> a snapshot -> LEAVE                       and goes
 *
 * The shard carries out an order between two turns when nothing is in flight. Sensors of a partition that goes are forgotten, and
 * nothing is published about that: their alerts go on elsewhere.
 *
 * The saver makes a snapshot of each held partition in a folder of the partition's epoch. An epoch is one holding by one machine.
 * The next holder makes another folder, so a machine that does not know that it has lost the partition disturbs no other.
 *
 * Thread: as each function says. */
#ifndef HK_HELD_PARTITIONS_H
#define HK_HELD_PARTITIONS_H

#include "daemon/scoring/partition_order.h"
#include "daemon/scoring/shard.h"

struct hk_partitions;

/* Makes the partitions of a shard; config: in force at first. Returns 0 and *out, or -ENOMEM. Thread: main. */
int hk_partitions_new(struct hk_partitions **out, const struct hk_config *config, uint32_t slots);
void hk_partitions_free(struct hk_partitions *partitions); /* NULL is allowed */

/* Gives an order and waits until the shard has carried it out. stops: called every 0.1 s; true: stop waiting. Returns 0,
 * order->status, or -ECANCELED. Thread: the cluster's. */
int hk_partitions_ask(struct hk_shard *shard, struct hk_partition_order *order, bool (*stops)(void *arg), void *arg);

/* Thread: the shard's, from here on except the last. Carries out the order, if it can now. Returns whether there was one. */
bool hk_shard_take_partitions(struct hk_shard *shard);
/* Whether an order waits: nothing may be launched before it. */
bool hk_shard_partitions_wait(const struct hk_shard *shard);
/* The partition of a sensor of the shard. slot: the registry's. */
uint32_t hk_shard_partition(struct hk_shard *shard, uint32_t slot);
/* Copies the held partitions, with folders that are the caller's. Returns their number, -ENOMEM or -EMFILE. *out: to free. */
int32_t hk_partitions_copy(struct hk_partitions *partitions, struct hk_held_partition **out);
/* Whether a partition is still held as in `held`. Thread: any. */
bool hk_partitions_hold(struct hk_partitions *partitions, const struct hk_held_partition *held);

#endif
