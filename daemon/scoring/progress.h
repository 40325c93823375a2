/* How far a shard has got, and for how long it has made no progress; see stall.h. */
#ifndef HK_SCORING_PROGRESS_H
#define HK_SCORING_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#define HK_STALL_WHY 512

/* Progress of a shard: as long as nothing in it changes, nothing was done. Sweeps do not count. */
struct hk_progress {
  uint64_t position, launched, tokens, steps, derived;
  uint32_t derivation, cursor, chained, slot, reload;
};

struct hk_stall {
  struct hk_progress progress; /* at the last check */
  _Atomic int64_t lasts;       /* ns */
  bool told;
  char why[HK_STALL_WHY]; /* under the shard's lock: the reason of the stall; "" while nothing stalls */
};

#endif
