/* Which kernel of IKA-SST a detector is scored by: see kernel.h. */
#include "gpu/backend/kernel.h"

extern const struct hk_cuda_kernel hk_ika_8_2, hk_ika_16_2, hk_ika_12_4, hk_ika_16_4, hk_ika_20_4, hk_ika_24_4, hk_ika_28_4,
    hk_ika_16_8, hk_ika_20_8, hk_ika_24_8, hk_ika_28_8, hk_ika_32_8, hk_ika_40_8, hk_ika_24_16, hk_ika_28_16, hk_ika_32_16,
    hk_ika_24_32, hk_ika_32_32;

/* By the number of elements that they hold. */
static const struct hk_cuda_kernel *const kernels[] = {
  &hk_ika_8_2,  &hk_ika_16_2,  &hk_ika_12_4,  &hk_ika_16_4,  &hk_ika_20_4,  &hk_ika_24_4,
  &hk_ika_28_4, &hk_ika_16_8,  &hk_ika_20_8,  &hk_ika_24_8,  &hk_ika_28_8,  &hk_ika_32_8,
  &hk_ika_40_8, &hk_ika_24_16, &hk_ika_28_16, &hk_ika_32_16, &hk_ika_24_32, &hk_ika_32_32,
};

/* Steps of the longer iteration: rows of T, and vectors of the basis. */
static uint32_t steps_most(const struct hk_detector *d)
{
  const bool power = d->present == HK_PRESENT_POWER;
  const uint32_t steps = power || d->operator_ == HK_OPERATOR_GRAM ? d->products / 2 : d->products;
  const uint32_t present = power || steps < d->window ? steps : d->window;
  return present > d->krylov ? present : d->krylov;
}

const struct hk_cuda_kernel *hk_ika_choose(const struct hk_detector *d, uint32_t *size)
{
  const struct hk_cuda_kernel *const *kernel = kernels;
  while ((*kernel)->window < d->window)
    kernel++;
  *size = steps_most(d);
  return *kernel;
}
