/* Host side of band systems on the GPU: memory and copies. See band_gpu.h. */
#include "gpu/band/band_gpu.h"
#include "gpu/band/band_kernels.h"
#include "gpu/cuda_error.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct hk_band_gpu {
  struct hk_band_shape shape;
  int device;
  double *done, *residual; /* on the device, as the following */
  double *a, *b, *x;       /* NULL until a system on the host is solved */
  struct hk_band_outcome *outcome;
  cudaStream_t stream;
};

static uint64_t work_bytes(const struct hk_band_shape *s)
{
  return hk_band_vector(s) * (hk_band_kept(s) + 1) * sizeof(double);
}

static uint64_t own_bytes(const struct hk_band_shape *s)
{
  return (hk_band_matrix(s) + 2 * hk_band_vector(s)) * sizeof(double) + s->systems * sizeof(struct hk_band_outcome);
}

int hk_band_gpu_open(struct hk_band_gpu **out, const struct hk_band_shape *s, uint32_t device, char *error, size_t size)
{
  *out = NULL;
  if (!hk_band_is_sound(s) || !hk_band_is_thin(s)) {
    snprintf(error, size, "a band system has 1 or more equations and at most %u diagonals on a side", HK_BAND_THIN);
    return -EINVAL;
  }
  struct hk_band_gpu *g = calloc(1, sizeof *g);
  if (!g) {
    snprintf(error, size, "no memory");
    return -ENOMEM;
  }
  g->shape = *s;
  g->device = (int)device;
  cudaError_t failed = cudaSetDevice(g->device);
  if (!failed)
    failed = cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking);
  if (!failed)
    failed = cudaMalloc((void **)&g->done, work_bytes(s));
  if (failed) {
    hk_band_gpu_close(g);
    return hk_cuda_error(error, size, failed, "band systems need", work_bytes(s));
  }
  g->residual = g->done + hk_band_vector(s) * hk_band_kept(s);
  *out = g;
  return 0;
}

void hk_band_gpu_close(struct hk_band_gpu *g)
{
  if (!g)
    return;
  (void)cudaSetDevice(g->device);
  if (g->stream)
    (void)cudaStreamDestroy(g->stream);
  (void)cudaFree(g->done);
  (void)cudaFree(g->a);
  free(g);
}

/* Waits for all operations. Returns 0 or -EIO. */
static int band_gpu_done(struct hk_band_gpu *g, cudaError_t failed)
{
  const cudaError_t waited = cudaStreamSynchronize(g->stream);
  if (!failed && !waited)
    return 0;
  (void)cudaGetLastError();
  return -EIO;
}

int hk_band_gpu_solve_there(struct hk_band_gpu *g, const double *a, const double *b, double *x, struct hk_band_outcome *outcome)
{
  cudaError_t failed = cudaSetDevice(g->device);
  if (!failed)
    failed = hk_band_launch(&g->shape, a, b, x, outcome, g->done, g->residual, g->stream);
  return band_gpu_done(g, failed);
}

/* Allocates for arrays of the host. */
static cudaError_t band_gpu_make_room(struct hk_band_gpu *g)
{
  const struct hk_band_shape *s = &g->shape;
  if (g->a)
    return cudaSuccess;
  const cudaError_t failed = cudaMalloc((void **)&g->a, own_bytes(s));
  if (failed)
    return failed;
  g->b = g->a + hk_band_matrix(s);
  g->x = g->b + hk_band_vector(s);
  g->outcome = (struct hk_band_outcome *)(void *)(g->x + hk_band_vector(s));
  return cudaSuccess;
}

int hk_band_gpu_solve(struct hk_band_gpu *g, const double *a, const double *b, double *x, struct hk_band_outcome *outcome)
{
  const struct hk_band_shape *s = &g->shape;
  const size_t vector = hk_band_vector(s) * sizeof *b;
  cudaError_t failed = cudaSetDevice(g->device);
  if (!failed)
    failed = band_gpu_make_room(g);
  if (!failed)
    failed = cudaMemcpyAsync(g->a, a, hk_band_matrix(s) * sizeof *a, cudaMemcpyHostToDevice, g->stream);
  if (!failed)
    failed = cudaMemcpyAsync(g->b, b, vector, cudaMemcpyHostToDevice, g->stream);
  if (!failed)
    failed = hk_band_launch(s, g->a, g->b, g->x, g->outcome, g->done, g->residual, g->stream);
  if (!failed)
    failed = cudaMemcpyAsync(x, g->x, vector, cudaMemcpyDeviceToHost, g->stream);
  if (!failed)
    failed = cudaMemcpyAsync(outcome, g->outcome, s->systems * sizeof *outcome, cudaMemcpyDeviceToHost, g->stream);
  return band_gpu_done(g, failed);
}
