/* Which kernel of IKA-SST a detector is scored by: see ika.h. */
#include "gpu/ika.h"

#define WARP 32u

extern const struct hk_ika_variant hk_ika_8_2, hk_ika_16_2, hk_ika_12_4, hk_ika_16_4, hk_ika_20_4, hk_ika_12_8, hk_ika_28_4,
    hk_ika_16_8, hk_ika_20_8, hk_ika_24_8, hk_ika_28_8, hk_ika_16_16, hk_ika_20_16, hk_ika_24_16, hk_ika_28_16, hk_ika_16_32,
    hk_ika_20_32, hk_ika_24_32, hk_ika_28_32, hk_ika_32_32;

/* By the number of elements that they hold. */
static const struct hk_ika_variant *const variants[] = {
  &hk_ika_8_2,   &hk_ika_16_2,  &hk_ika_12_4,  &hk_ika_16_4,  &hk_ika_20_4,  &hk_ika_12_8,  &hk_ika_28_4,
  &hk_ika_16_8,  &hk_ika_20_8,  &hk_ika_24_8,  &hk_ika_28_8,  &hk_ika_16_16, &hk_ika_20_16, &hk_ika_24_16,
  &hk_ika_28_16, &hk_ika_16_32, &hk_ika_20_32, &hk_ika_24_32, &hk_ika_28_32, &hk_ika_32_32,
};

/* Steps of the longer iteration: rows of T, and vectors of the basis. */
static uint32_t steps_most(const struct hk_detector *d)
{
  const bool power = d->present == HK_PRESENT_POWER;
  const uint32_t steps = power || d->operator_ == HK_OPERATOR_GRAM ? d->products / 2 : d->products;
  const uint32_t present = power || steps < d->window ? steps : d->window;
  return present > d->krylov ? present : d->krylov;
}

/* The fewest elements that hold a vector. */
static const struct hk_ika_variant *variant_of(const struct hk_detector *d)
{
  uint32_t i = 0;
  while (variants[i]->rows * variants[i]->lanes < d->window)
    i++;
  return variants[i];
}

int hk_ika_plan(const struct hk_detector *d, struct hk_cuda_plan *plan)
{
  const struct hk_ika_variant *v = variant_of(d);
  const uint32_t order = steps_most(d);
  plan->threads = v->warps * WARP;
  plan->shared = v->warps * v->floats(order) * (uint32_t)sizeof(float);
  plan->scratch = v->warps * v->scratch(order);
  return hk_cuda_plan_resident(v->resident, plan);
}

int hk_ika_score(struct CUstream_st *stream, const struct hk_detector *d, const struct hk_cuda_plan *plan, void *scratch,
                 const struct hk_cuda_task *tasks, const uint32_t *n_tasks, uint32_t most, const struct hk_cuda_columns *columns)
{
  const struct hk_ika_variant *v = variant_of(d);
  const uint32_t sensors = v->warps * WARP / v->lanes, blocks = (most + sensors - 1) / sensors; /* side by side in a block */
  return v->launch(stream, blocks < plan->resident ? blocks : plan->resident, plan->shared, steps_most(d), d, scratch, tasks,
                   n_tasks, columns);
}
