/* Pool: a loop's chunks for the shards: open ones, which are being filled, and empty ones.
 *
 * A chunk is sealed, that is, handed to its shard, when it is full, or at the end of the loop's turn if few chunks of this loop
 * wait for the shard. So chunks grow under load, and a lone point does not wait. All chunks are made at the start; when none is
 * empty, there is no room, and sources wait. Thread: the loop's. */
#ifndef HK_CHUNK_POOL_H
#define HK_CHUNK_POOL_H

#include "daemon/intake/chunk_fill.h"
#include "daemon/intake/lane.h"

struct hk_chunk_pool {
  struct hk_filling filling;
  struct hk_lane *lanes[HK_SHARDS_MAX];
  uint32_t tokens_due[HK_SHARDS_MAX]; /* to be sent after the chunk is sealed */
  struct hk_chunk **empty;            /* a stack */
  uint32_t n_empty;
};

/* lanes: to each shard, `stride` apart; their rings and `loop` are set. loop: its number. points: least capacity, for any
 * distribution over the shards. 0 or -ENOMEM. */
int hk_chunk_pool_open(struct hk_chunk_pool *pool, struct hk_lane *lanes, uint32_t n_shards, uint32_t stride, uint32_t loop,
                       uint32_t points);
/* Frees chunks, also those in the lanes; points in them count as finished. Shards have stopped. */
void hk_chunk_pool_close(struct hk_chunk_pool *pool);
/* Returns the number of chunks of a pool with this capacity. */
uint32_t hk_chunk_pool_chunks(uint32_t points, uint32_t n_shards);

/* Returns the number of points, for any shards, that can be put in, followed by a mark of a feed. */
uint32_t hk_chunk_pool_room(struct hk_chunk_pool *pool);
/* At the end of a turn: seals chunks that are due. True: no open chunk has points. */
bool hk_chunk_pool_seal(struct hk_chunk_pool *pool);
/* Whether an empty chunk has come back. */
bool hk_chunk_pool_returned(const struct hk_chunk_pool *pool);
/* Sends a token to a shard, after all points that were put in before. */
void hk_chunk_pool_token(struct hk_chunk_pool *pool, uint32_t shard);

#endif
