/* The kernels of neighbour graphs, of shifts, of novelty and of limits: see kernel.h. Each is one for all detectors of its kind.
 */
#include "gpu/backend/kernel.h"

extern const struct hk_cuda_kernel hk_cuda_graph_kernel, hk_cuda_shift_kernel, hk_cuda_novelty_kernel, hk_cuda_limit_kernel;

const struct hk_cuda_kernel *hk_graph_choose(const struct hk_detector *d, uint32_t *size)
{
  *size = hk_detector_span(d);
  return &hk_cuda_graph_kernel;
}

const struct hk_cuda_kernel *hk_shift_choose(const struct hk_detector *d, uint32_t *size)
{
  *size = d->window;
  return &hk_cuda_shift_kernel;
}

const struct hk_cuda_kernel *hk_novelty_choose(const struct hk_detector *d, uint32_t *size)
{
  *size = hk_novelty_lag_max(d);
  return &hk_cuda_novelty_kernel;
}

const struct hk_cuda_kernel *hk_limit_choose(const struct hk_detector *d, uint32_t *size)
{
  *size = d->window;
  return &hk_cuda_limit_kernel;
}
