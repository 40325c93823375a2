/* Sensors that are counters (`rate = yes`, or found by `auto`): their points become differences per second on the way into a
 * batch. Snapshots contain the rate of each with its state. Thread: the shard's. */
#ifndef HK_RATES_H
#define HK_RATES_H

#include "cpu/backend.h"
#include "cpu/rules/rate.h"

struct hk_rates; /* shard_parts.h */
struct hk_shard;

/* Converts the points of a batch whose slots are still the shard's. Without memory they become NAN, which is logged. */
void hk_rates_apply(struct hk_shard *shard, struct hk_batch *batch);
/* The rate of a sensor. */
struct hk_rate hk_rates_of(const struct hk_rates *rates, uint32_t within);
/* Continues from a rate. Returns 0 or -ENOMEM. To call before the shard's thread runs. */
int hk_rates_restore(struct hk_shard *shard, uint32_t within, const struct hk_rate *rate);
/* The slot is about to be given to another sensor. */
void hk_rates_forget(struct hk_rates *rates, uint32_t within);
void hk_rates_free(struct hk_rates *rates);

#endif
