/* How far a shard is with the points that it makes of a chunk; derived_points.h makes them. Thread: the shard's. */
#ifndef HK_DERIVATION_H
#define HK_DERIVATION_H

#include "daemon/intake/chunk.h"

#include <stdbool.h>

struct hk_derivation {
  struct hk_chunk *from; /* the chunk of whose points more are to be made; NULL: none */
  struct hk_chunk *made; /* ours: a piece */
  uint32_t at;           /* points of `from` that were dealt with */
  uint32_t run, of_run;  /* and the place of the next one in its runs */
  bool grouped, fielded; /* its points go into machines of groups, of fields, too */
  bool making;           /* not all points derived from the last point of a field are made yet */
  int64_t until;         /* when this turn has had enough of it; 0: nothing was made in it */
  bool rests;            /* it has: the rest of the chunk is for the next turns */
  bool any;              /* points were made of the chunk that the shard is taking, or was the last time; or went into machines */
};

/* A turn of the shard begins. */
static inline void hk_derive_turn(struct hk_derivation *d)
{
  d->until = 0;
  d->rests = false;
}

#endif
