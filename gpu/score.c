/* Which kernels score a detector. */
#include "gpu/ika.h"
#include "gpu/svd.h"

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
