/* A build without nvcc: there is no GPU. */
#include "gpu/cuda.h"
#include "gpu/field/residual_gpu.h"
#include "gpu/no_cuda.h"

#include <errno.h>
#include <stddef.h>

int hk_residual_gpu_open(struct hk_residual_gpu **out, const struct hk_residual *host, uint32_t device, char *error, size_t size)
{
  (void)host, (void)device;
  *out = NULL;
  return hk_no_cuda(error, size);
}

void hk_residual_gpu_close(struct hk_residual_gpu *g)
{
  (void)g;
}

int hk_residual_gpu_rows(struct hk_residual_gpu *g, const double *x, double *r, uint32_t n)
{
  (void)g, (void)x, (void)r, (void)n;
  return -ENODEV;
}

int hk_residual_gpu_write(struct hk_residual_gpu *g, const struct hk_residual *host)
{
  (void)g, (void)host;
  return -ENODEV;
}

int hk_residual_gpu_read(struct hk_residual_gpu *g, struct hk_residual *host)
{
  (void)g, (void)host;
  return -ENODEV;
}

static int residual_none_open(void **out, const void *host, uint32_t number, char *error, size_t size)
{
  struct hk_residual_gpu *g;
  *out = NULL;
  return hk_residual_gpu_open(&g, host, number, error, size);
}

/* Only `open` is ever called, because it always fails. */
const struct hk_offload_kind hk_cuda_residual = { .open = residual_none_open };
