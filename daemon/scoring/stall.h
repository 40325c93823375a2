/* Stall: a shard that has something to do, and gets no further with it.
 *
 * Its thread runs, so its beat says that all is well; but chunks wait, or sensors are to be forgotten, or a reload, and each
 * waits for something that does not come. That is a fault of the daemon; a restart mends it. What is in flight is the device's
 * matter (device_timeout, hk_shard_stalled), and what waits for the disk that of the journal (journal_wait): such time does not
 * count, nor does time in which the thread did not run.
 *
 * Thread: the shard's, but for what says otherwise. */
#ifndef HK_STALL_H
#define HK_STALL_H

#include "daemon/scoring/shard.h"

/* Looks whether anything was done in the last `since` ns. What lasts as long as `stall` of hk_shards is logged, once. */
void hk_stall_look(struct hk_shard *shard, int64_t since);
/* Says what waits for what. Returns whether anything is to be done. */
bool hk_stall_why(const struct hk_shard *shard, char why[HK_STALL_WHY]);

/* For any thread: for how many ns the shard has got no further, and what waits for what, if it has stalled; else 0 and "". */
int64_t hk_stall_lasts(struct hk_shard *shard, char why[HK_STALL_WHY]);

#endif
