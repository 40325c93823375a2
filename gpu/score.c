/* Which kernels score a detector. */
#include "gpu/score.h"
#include "gpu/ika.h"
#include "gpu/svd.h"

#include <cuda_runtime_api.h>

int hk_cuda_plan_resident(hk_cuda_fit *fit, struct hk_cuda_plan *plan)
{
  int device, processors, most;
  uint32_t blocks = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (!error)
    error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (!error)
    error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (!error)
    error = (cudaError_t)fit((uint32_t)most, plan->shared, &blocks);
  if (!error)
    plan->resident = (uint32_t)processors * blocks;
  return (int)error;
}

int hk_cuda_plan(const struct hk_detector *d, struct hk_cuda_plan *plan)
{
  return d->algorithm == HK_ALGORITHM_SVD ? hk_svd_plan(d, plan) : hk_ika_plan(d, plan);
}

int hk_cuda_score(struct CUstream_st *stream, const struct hk_detector *d, const struct hk_cuda_plan *plan, void *scratch,
                  const struct hk_cuda_task *tasks, const uint32_t *n_tasks, uint32_t most, const struct hk_cuda_columns *columns)
{
  return d->algorithm == HK_ALGORITHM_SVD ? hk_svd_score(stream, d, plan, scratch, tasks, n_tasks, most, columns)
                                          : hk_ika_score(stream, d, plan, scratch, tasks, n_tasks, most, columns);
}
