/* Batches of few points, told apart by sensor on the host: that takes less time than a kernel of its own would to start. */
#ifndef HK_SMALL_BATCH_H
#define HK_SMALL_BATCH_H

#include "gpu/backend/records.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills in the tasks of a batch of 1 to HK_CUDA_FEW points. False when it is a bad one (a slot that is not bound, too many points
 * of one sensor) or has more points: the device will see to it. Thread: the shard's. */
bool hk_few_make(struct hk_cuda_few *few, const struct hk_records *records, const struct hk_batch *batch);

#ifdef __cplusplus
}
#endif
#endif
