/* A build without nvcc: there is no GPU. */
#include "gpu/band/band_gpu.h"
#include "gpu/no_cuda.h"

#include <errno.h>

int hk_band_gpu_open(struct hk_band_gpu **out, const struct hk_band_shape *shape, uint32_t device, char *error, size_t size)
{
  (void)shape, (void)device;
  *out = NULL;
  return hk_no_cuda(error, size);
}

void hk_band_gpu_close(struct hk_band_gpu *g)
{
  (void)g;
}

int hk_band_gpu_solve(struct hk_band_gpu *g, const double *a, const double *b, double *x, struct hk_band_outcome *outcome)
{
  (void)g, (void)a, (void)b, (void)x, (void)outcome;
  return -ENODEV;
}
