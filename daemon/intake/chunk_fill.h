/* Fill: the chunks that a loop is filling, one a shard, and how points get into them.
 *
 * Sensor `slot` is in shard slot % shards, there at place slot / shards. Where there is one shard, points are decoded straight
 * into its chunk; where there are several, into a piece that stays in the nearest cache, and from there to where they belong.
 * Thread: the loop's. */
#ifndef HK_CHUNK_FILL_H
#define HK_CHUNK_FILL_H

#include "daemon/intake/chunk.h"
#include "daemon/intake/decode_points.h"
#include "proto/wire/columns.h"

struct hk_filling {
  uint32_t shards;                       /* 1..HK_SHARDS_MAX */
  struct hk_chunk *chunk[HK_SHARDS_MAX]; /* each with room for a point at least */
  /* chunk[shard] is full: takes it, and gives one with room. Whoever hands points over has looked whether there are enough of
   * them. */
  struct hk_chunk *(*full)(void *arg, uint32_t shard);
  void *arg;
};

/* Decodes the points of a payload from number `first` on. */
struct hk_decoded hk_fill_points(struct hk_filling *filling, struct hk_source *source, const struct hk_decoder *decoder,
                                 const struct hk_points *points, uint32_t first);
/* Points that fit into the chunk of every shard. */
uint32_t hk_fill_room(const struct hk_filling *filling);
/* Tells all shards how far a feed is; there is room for that (hk_chunk_pool_room). */
void hk_fill_mark(struct hk_filling *filling, struct hk_feed *feed, uint64_t upto);
/* Puts in n points that have their slots already. */
void hk_fill_slots(struct hk_filling *filling, struct hk_source *source, uint32_t n, const struct hk_columns *from);

#endif
