/* Which kernel of SVD-SST a detector is scored by, and how it is laid out on the device. */
#include "gpu/svd.h"

#define LANES 32u

extern const struct hk_svd_variant hk_svd_2, hk_svd_4, hk_svd_6, hk_svd_8, hk_svd_10, hk_svd_16, hk_svd_32;

/* By the width they hold; the last holds any. */
static const struct hk_svd_variant *const variants[] = { &hk_svd_2,  &hk_svd_4,  &hk_svd_6, &hk_svd_8,
                                                         &hk_svd_10, &hk_svd_16, &hk_svd_32 };

static const struct hk_svd_variant *choose(const struct hk_detector *d)
{
  const struct hk_svd_variant *const *v = variants;
  while ((*v)->rows * LANES < d->window)
    v++;
  return *v;
}

int hk_svd_plan(const struct hk_detector *d, struct hk_cuda_plan *plan)
{
  const struct hk_svd_variant *v = choose(d);
  plan->threads = LANES;
  plan->shared = v->shared(d->window);
  plan->scratch = v->scratch(d->window);
  return hk_cuda_plan_resident(v->resident, plan);
}

int hk_svd_score(struct CUstream_st *stream, const struct hk_detector *d, const struct hk_cuda_plan *plan, void *scratch,
                 const struct hk_cuda_task *tasks, const uint32_t *n_tasks, uint32_t most, const struct hk_cuda_columns *columns)
{
  return choose(d)->launch(stream, most < plan->resident ? most : plan->resident, d, plan, scratch, tasks, n_tasks, columns);
}
