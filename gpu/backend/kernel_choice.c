/* Which kernels score which detectors: see kernel_choice.h.
 *
 * Failure modes: too little memory for the blocks to work in is told with figures, also shared memory that this GPU does not
 * have. */
#include "gpu/backend/kernel_choice.h"
#include "gpu/cuda_error.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SCRATCH_MAX ((uint64_t)3 << 30) /* bytes for blocks to work in; fewer blocks run when it is short */
#define ALIGNED 256u                    /* where a family's part begins */

int hk_cuda_refuse(int failed, const char *what, char *error, size_t size)
{
  if (!failed)
    return 0;
  snprintf(error, size, "CUDA, %s: %s", what, hk_cuda_words(failed));
  (void)cudaGetLastError();
  return hk_cuda_code(failed);
}

static const struct hk_cuda_kernel *kernel_choice_choose(const struct hk_detector *d, uint32_t *size)
{
  switch (d->algorithm) {
  case HK_ALGORITHM_GRAPH:
    return hk_graph_choose(d, size);
  case HK_ALGORITHM_SHIFT:
    return hk_shift_choose(d, size);
  case HK_ALGORITHM_NOVELTY:
    return hk_novelty_choose(d, size);
  case HK_ALGORITHM_LIMIT:
    return hk_limit_choose(d, size);
  case HK_ALGORITHM_SVD:
    return hk_svd_choose(d, size);
  default:
    return hk_ika_choose(d, size);
  }
}

double hk_family_work(const struct hk_detector *d)
{
  const double w = d->window;
  if (d->algorithm == HK_ALGORITHM_GRAPH)
    return 500.0 * d->resident;
  if (d->algorithm == HK_ALGORITHM_SHIFT)
    return 1000.0 * (w + HK_SHIFT_HISTORY);
  if (d->algorithm == HK_ALGORITHM_NOVELTY)
    return 20.0 * d->resident;
  if (d->algorithm == HK_ALGORITHM_LIMIT)
    return 1000; /* as cheap as any: most points only go into their block */
  const uint32_t past = d->krylov * (d->operator_ == HK_OPERATOR_GRAM ? 2 : 1);
  /* as measured: products of svd grow with w^2, those of ika by transforms */
  return d->algorithm == HK_ALGORITHM_SVD ? 10 * d->rank * w * (w + 256) : 0.24 * (d->products + past) * w * (w + 1000);
}

/* The widest first: their scores take longest. */
static int by_width(const void *a, const void *b)
{
  const struct hk_cuda_family *x = a, *y = b;
  return (x->kernel->window < y->kernel->window) - (x->kernel->window > y->kernel->window);
}

/* Sorts detectors into families; members: room for all. */
static void kernel_choice_sort(struct hk_families *f, const struct hk_detector *detectors, uint32_t n, uint16_t *members)
{
  for (uint32_t i = 0; i < n; i++) {
    uint32_t size, at = 0;
    if (detectors[i].window == 0)
      continue;
    const struct hk_cuda_kernel *kernel = kernel_choice_choose(&detectors[i], &size);
    while (at < f->n && f->family[at].kernel != kernel)
      at++;
    f->n += at == f->n;
    f->family[at].kernel = kernel;
    f->family[at].size = size > f->family[at].size ? size : f->family[at].size;
  }
  qsort(f->family, f->n, sizeof *f->family, by_width);
  uint32_t sorted = 0;
  for (uint32_t at = 0; at < f->n; at++) {
    struct hk_cuda_family *family = &f->family[at];
    family->first = sorted;
    for (uint32_t i = 0; i < n; i++) {
      uint32_t size;
      if (detectors[i].window == 0 || kernel_choice_choose(&detectors[i], &size) != family->kernel)
        continue;
      f->of[i] = (uint16_t)at;
      members[sorted++] = (uint16_t)i;
    }
    family->n = sorted - family->first;
  }
}

/* What the kernels need on this device, and how many blocks it holds; limit: of these at most, 0 = all. */
static int plan(struct hk_families *f, uint32_t limit, char *error, size_t size)
{
  int device, processors, most;
  cudaError_t failed = cudaGetDevice(&device);
  if (!failed)
    failed = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (!failed)
    failed = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  for (uint32_t i = 0; i < f->n && !failed; i++) {
    struct hk_cuda_family *family = &f->family[i];
    uint32_t blocks = 0;
    family->shared = family->kernel->shared(family->size);
    failed = (cudaError_t)family->kernel->fit((uint32_t)most, family->shared, &blocks);
    family->resident = (uint32_t)processors * blocks;
    if (limit > 0 && limit < family->resident)
      family->resident = limit;
    if (!failed && blocks == 0) {
      snprintf(error, size, "CUDA: detectors of windows up to %u need %u bytes of shared memory a block, more than this GPU has",
               family->kernel->window, family->shared);
      return -ENODEV;
    }
  }
  return hk_cuda_refuse((int)failed, "preparing the kernels", error, size);
}

/* Takes the memory that blocks work in: for as many as the device holds, where they all fit into SCRATCH_MAX and an eighth of
 * what is free; else each family gets as much as the others, and enough for one block. */
static int scratch_take(struct hk_families *f, char *error, size_t size)
{
  size_t left = 0, all = 0;
  const int status = hk_cuda_refuse((int)cudaMemGetInfo(&left, &all), "memory of the device", error, size);
  if (status)
    return status;
  const uint64_t most = left / 8 < SCRATCH_MAX ? left / 8 : SCRATCH_MAX;
  uint64_t wanted = 0, taken = 0;
  for (uint32_t i = 0; i < f->n; i++)
    wanted += f->family[i].resident * f->family[i].kernel->scratch(f->family[i].size);
  for (uint32_t i = 0; i < f->n; i++) {
    struct hk_cuda_family *family = &f->family[i];
    const uint64_t each = family->kernel->scratch(family->size), fit = wanted > most ? most / f->n / each : family->resident;
    if (fit < family->resident)
      family->resident = fit > 0 ? (uint32_t)fit : 1;
    taken += (family->resident * each + ALIGNED - 1) / ALIGNED * ALIGNED;
  }
  if (cudaMalloc((void **)&f->scratch, taken)) {
    snprintf(error, size, "CUDA: the detectors need %llu bytes on the device to work in, and %zu of %zu are free",
             (unsigned long long)taken, left, all);
    (void)cudaGetLastError();
    return -ENOMEM;
  }
  unsigned char *at = f->scratch;
  for (uint32_t i = 0; i < f->n; i++) {
    struct hk_cuda_family *family = &f->family[i];
    family->scratch = at;
    at += (family->resident * family->kernel->scratch(family->size) + ALIGNED - 1) / ALIGNED * ALIGNED;
  }
  return 0;
}

int hk_families_open(struct hk_families *f, const struct hk_detector *detectors, uint32_t n, uint32_t blocks, char *error,
                     size_t size)
{
  f->family = calloc(n, sizeof *f->family);
  f->of = calloc(n, sizeof *f->of);
  uint16_t *members = calloc(n, sizeof *members);
  int status = 0;
  if (!f->family || !f->of || !members) {
    snprintf(error, size, "no memory for %u detectors", n);
    status = -ENOMEM;
  } else {
    kernel_choice_sort(f, detectors, n, members);
    status = plan(f, blocks, error, size);
  }
  if (!status)
    status = scratch_take(f, error, size);
  if (!status) {
    cudaError_t failed = cudaMalloc((void **)&f->detectors, n * sizeof *detectors);
    if (!failed)
      failed = cudaMalloc((void **)&f->members, n * sizeof *members);
    if (!failed)
      failed = cudaMemcpy(f->detectors, detectors, n * sizeof *detectors, cudaMemcpyHostToDevice);
    if (!failed)
      failed = cudaMemcpy(f->members, members, n * sizeof *members, cudaMemcpyHostToDevice);
    if (!failed) /* the last bytes of a copy from such memory may be under way still */
      failed = cudaStreamSynchronize(cudaStreamLegacy);
    status = hk_cuda_refuse((int)failed, "telling the device its detectors", error, size);
  }
  free(members);
  return status;
}

void hk_families_close(struct hk_families *f)
{
  (void)cudaFree(f->detectors); /* a device that fails here has failed before */
  (void)cudaFree(f->members);
  (void)cudaFree(f->scratch);
  free(f->of);
  free(f->family);
  *f = (struct hk_families){ 0 };
}
