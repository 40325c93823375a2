/* Filling: the chunks that a loop is filling, one for each shard, and the functions that put points into them.
 *
 * Sensor `slot` is in shard slot % shards, there at place slot / shards. With one shard, points are decoded directly into its
 * chunk; with several, into a piece that fits into the L1 cache, and from there into the chunks. Thread: the loop's. */
#ifndef HK_CHUNK_FILL_H
#define HK_CHUNK_FILL_H

#include "daemon/intake/chunk.h"
#include "daemon/intake/decode_points.h"
#include "proto/wire/columns.h"

struct hk_filling {
  uint32_t shards;                       /* 1..HK_SHARDS_MAX */
  struct hk_chunk *chunk[HK_SHARDS_MAX]; /* each with room for at least one point */
  /* replaces the full chunk[shard] by one with room; the caller of the functions below has checked that there are enough */
  struct hk_chunk *(*full)(void *arg, uint32_t shard);
  void *arg;
};

/* Decodes the points of a payload from number `first` on. */
struct hk_decoded hk_fill_points(struct hk_filling *filling, struct hk_source *source, const struct hk_decoder *decoder,
                                 const struct hk_points *points, uint32_t first);
/* Returns the number of points that fit into the chunk of every shard. */
uint32_t hk_fill_room(const struct hk_filling *filling);
/* Hands over chunks in which n points do not fit; n is at most HK_CHUNK_POINTS. */
void hk_fill_make_room(struct hk_filling *filling, uint32_t n);
/* Sends a feed's position to all shards; there must be room (hk_chunk_pool_room). */
void hk_fill_mark(struct hk_filling *filling, struct hk_feed *feed, uint64_t upto);
/* Puts in n points whose slots are known. */
void hk_fill_slots(struct hk_filling *filling, struct hk_source *source, uint32_t n, const struct hk_columns *from);

#endif
