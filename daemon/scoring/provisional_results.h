/* Provisional scores of a shard's young sensors (cpu/provisional/provisional.h): made of the batches that have come back.
 * Snapshots contain them. Thread: the shard's. */
#ifndef HK_PROVISIONAL_RESULTS_H
#define HK_PROVISIONAL_RESULTS_H

#include "cpu/provisional/provisional.h"

struct hk_shard;

/* Completes a batch whose slots are still the shard's. Without memory its points stay in state warming, which is logged. */
void hk_provisional_apply(struct hk_shard *shard, struct hk_batch *batch);
/* Continues from what a snapshot has of a sensor. Returns 0, -EBADMSG (damaged) or -ENOMEM. */
int hk_provisional_go_on(struct hk_shard *shard, uint32_t within, const void *saved, size_t size);
/* The slot is about to be given to another sensor. */
void hk_provisional_drop(struct hk_shard *shard, uint32_t within);

#endif
