/* What planning a kernel asks of the device, whichever algorithm it is for. */
#ifndef HK_SCORE_PLAN_H
#define HK_SCORE_PLAN_H

#include "gpu/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Lets blocks of a kernel have up to `most` bytes of shared memory, and tells how many with `shared` bytes fit a multiprocessor.
 * 0 or a cudaError_t. Detectors share kernels, so `most` is what the device allows, not what one of them needs. */
typedef int hk_cuda_fit(uint32_t most, uint32_t shared, uint32_t *blocks);

/* Sets plan->resident, from plan->shared. 0 or a cudaError_t. */
int hk_cuda_plan_resident(hk_cuda_fit *fit, struct hk_cuda_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
