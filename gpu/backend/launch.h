/* Launches the kernels of a batch. */
#ifndef HK_LAUNCH_H
#define HK_LAUNCH_H

#include "gpu/backend/batch.h"

/* Puts a batch on the streams; there must be room for it, and hk_cuda_batches_ready must have been called. Returns 0 or a
 * cudaError_t: then parts of the batch may be on the streams. */
int hk_cuda_batches_launch(struct hk_cuda_batches *r, struct hk_cuda_batch_place *place, struct hk_batch *batch, uint64_t number);

#endif
