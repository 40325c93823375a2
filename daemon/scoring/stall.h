/* Stall: a shard that has work, and makes no progress.
 *
 * Its thread runs, so its beat looks healthy; but chunks, evictions or a reload wait for something that does not come. That is a
 * bug of the daemon; a restart helps. Time that batches are in flight belongs to the device (device_timeout, hk_shard_stalled),
 * and waits for the disk to the journal (journal_wait): such time does not count, nor does time in which the thread did not run.
 *
 * Thread: the shard's, unless stated otherwise. */
#ifndef HK_STALL_H
#define HK_STALL_H

#include "daemon/scoring/shard.h"

/* Checks whether anything was done in the last `since` ns. A stall as long as `stall` of hk_shards is logged, once. */
void hk_stall_look(struct hk_shard *shard, int64_t since);

/* For any thread: for how many ns the shard has made no progress, and the reason, if it has stalled; otherwise 0 and "". */
int64_t hk_stall_lasts(struct hk_shard *shard, char why[HK_STALL_WHY]);

#endif
