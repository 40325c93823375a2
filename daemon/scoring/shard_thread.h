/* The life of a shard. Thread: main. */
#ifndef HK_SHARD_THREAD_H
#define HK_SHARD_THREAD_H

#include "daemon/scoring/shard.h"

/* Opens the backend that the configuration names; `auto` is the GPU where there is one, else the CPU. shard: zeroed; `lanes` has
 * one for each loop. 0, or a negative errno with a message. */
int hk_shard_open(struct hk_shard *shard, struct hk_shards *all, uint32_t number, struct hk_lane *lanes, char *error,
                  size_t size);
/* Starts the thread. beat: ms between two beats. 0 or a negative errno. */
int hk_shard_start(struct hk_shard *shard, uint64_t beat);
/* Stops the thread. Loops must have stopped before; afterwards, the contents of the lanes are to be released. False: it hangs. */
bool hk_shard_stop(struct hk_shard *shard);
/* Waits for batches in flight, drops them, and frees everything. False: an abandoned device hangs, and the process can only end
 * with _exit. */
bool hk_shard_close(struct hk_shard *shard);

#endif
