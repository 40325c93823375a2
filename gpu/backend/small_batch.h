/* Groups the points of small batches by sensor on the host, which takes less time than starting a kernel. */
#ifndef HK_SMALL_BATCH_H
#define HK_SMALL_BATCH_H

#include "gpu/backend/records.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills in the tasks of a batch of 1 to HK_CUDA_SMALL_BATCH points. Returns false if the batch is malformed (an unbound slot, too
 * many points of a sensor) or has more points: then the device groups it. Thread: the shard's. */
bool hk_small_batch_make(struct hk_cuda_small_batch *small, const struct hk_records *records, const struct hk_batch *batch);

#ifdef __cplusplus
}
#endif
#endif
