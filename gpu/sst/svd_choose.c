/* Which kernel of SVD-SST a detector is scored by: see kernel.h. */
#include "gpu/backend/kernel.h"

extern const struct hk_cuda_kernel hk_svd_2, hk_svd_4, hk_svd_6, hk_svd_8, hk_svd_10, hk_svd_16, hk_svd_32;

/* By the width they hold; the last holds any. */
static const struct hk_cuda_kernel *const kernels[] = { &hk_svd_2,  &hk_svd_4,  &hk_svd_6, &hk_svd_8,
                                                        &hk_svd_10, &hk_svd_16, &hk_svd_32 };

const struct hk_cuda_kernel *hk_svd_choose(const struct hk_detector *d, uint32_t *size)
{
  const struct hk_cuda_kernel *const *kernel = kernels;
  while ((*kernel)->window < d->window)
    kernel++;
  *size = d->window;
  return *kernel;
}
