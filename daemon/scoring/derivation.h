/* How far a shard has derived points from a chunk; derived_points.h derives them. Thread: the shard's. */
#ifndef HK_DERIVATION_H
#define HK_DERIVATION_H

#include "daemon/intake/chunk.h"

#include <stdbool.h>

struct hk_derivation {
  struct hk_chunk *from;           /* the chunk from whose points more are to be derived; NULL: none */
  struct hk_chunk *made;           /* a piece of derived points; owned */
  uint32_t at;                     /* number of points of `from` that are processed */
  uint32_t run, of_run;            /* the place of the next point in the runs of `from` */
  bool grouped, seconded, fielded; /* its points also go into machines of groups, of second groups, or of fields */
  bool making;                     /* not all points derived from the last point of a field are made yet */
  int64_t until;                   /* when this turn stops deriving; 0: nothing was derived in this turn */
  bool rests;                      /* this turn has stopped: the rest of the chunk is left to the next turns */
  bool any;                        /* points were derived from, or went into machines from, the shard's current or last chunk */
};

/* A turn of the shard begins. */
static inline void hk_derive_turn(struct hk_derivation *d)
{
  d->until = 0;
  d->rests = false;
}

#endif
