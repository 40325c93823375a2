/* Sensors that are counters (`rate = yes`): their points become differences a second on the way into a batch. What was last seen
 * of each is not kept over a restart. Thread: the shard's. */
#ifndef HK_RATES_H
#define HK_RATES_H

#include "cpu/backend.h"

struct hk_shard;

struct hk_rates {       /* all zero: none */
  struct hk_rate *last; /* by slot of the shard; NULL: no sensor needed it yet */
  uint32_t n;
};

/* Turns the points of a batch whose slots are still the shard's. Without memory they are left out (NAN), which is told. */
void hk_rates_apply(struct hk_shard *shard, struct hk_batch *batch);
/* The slot is about to be another sensor's. */
void hk_rates_forget(struct hk_rates *rates, uint32_t within);
void hk_rates_free(struct hk_rates *rates);

#endif
