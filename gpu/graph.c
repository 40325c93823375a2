/* The kernels of neighbour graphs and of shifts: see family.h. Either is one for all detectors of its kind. */
#include "gpu/family.h"

extern const struct hk_cuda_kernel hk_cuda_graph_kernel, hk_cuda_shift_kernel;

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
