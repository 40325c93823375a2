/* Lane: the rings between one loop and one shard. Points go one way, in chunks; results and emptied chunks come back.
 *
 * A lane carries a token like a chunk: no chunk after it has handles of the sensors that the loop was asked to forget. */
#ifndef HK_LANE_H
#define HK_LANE_H

#include "daemon/base/ring.h"
#include "daemon/base/wake.h"
#include "daemon/intake/chunk.h"

struct hk_delivery;

struct hk_lane {
  struct hk_ring sealed;     /* struct hk_chunk: loop to shard */
  struct hk_ring emptied;    /* struct hk_chunk: shard to loop */
  struct hk_ring deliveries; /* struct hk_delivery: shard to loop; has room for all that can exist at a time */
  struct hk_wake *loop, *shard;
  const atomic_uint *subscriptions; /* number of subscribers of the loop; 0: it gets no results */
  struct hk_chunk token;            /* has no points; only its address is used */
  uint64_t tokens;                  /* the shard's: tokens that it has received */
};

#define HK_LANE_DELIVERIES 128 /* most at a time */
#define HK_LANE_TOKENS 8       /* most at a time */

/* Allocates rings for this number of chunks. lane: zeroed. 0 or -ENOMEM. */
static inline int hk_lane_open(struct hk_lane *lane, uint32_t chunks)
{
  int status = hk_ring_init(&lane->sealed, chunks + HK_LANE_TOKENS);
  if (status == 0)
    status = hk_ring_init(&lane->emptied, chunks);
  return status != 0 ? status : hk_ring_init(&lane->deliveries, HK_LANE_DELIVERIES);
}

static inline void hk_lane_close(struct hk_lane *lane)
{
  hk_ring_free(&lane->sealed);
  hk_ring_free(&lane->emptied);
  hk_ring_free(&lane->deliveries);
}

#endif
