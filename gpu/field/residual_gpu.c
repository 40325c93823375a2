/* The host's side of the graph residual on the GPU: memory, copies, the order of launches. See residual_gpu.h.
 *
 * All columns lie in one piece of device memory, each from a multiple of 256 bytes on. */
#include "gpu/field/residual_gpu.h"
#include "gpu/field/residual_kernels.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define ALIGNMENT 256u

struct hk_residual_gpu {
  struct hk_residual columns; /* whose memory is the device's */
  struct hk_residual_column column[HK_RESIDUAL_COLUMNS];
  int device;
  char *memory;
  double *x, *r; /* a row, on the device */
  cudaStream_t stream;
};

static uint64_t column_bytes(const struct hk_residual_column *c, uint32_t room)
{
  return ((uint64_t)c->bytes * c->numbers * room + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

uint64_t hk_residual_gpu_bytes(const struct hk_residual_rule *rule, uint32_t room)
{
  struct hk_residual_column column[HK_RESIDUAL_COLUMNS];
  const struct hk_residual_column row = { 0, sizeof(double), 1 };
  uint64_t bytes = 2 * column_bytes(&row, room);
  hk_residual_columns(rule, column);
  for (uint32_t c = 0; c < HK_RESIDUAL_COLUMNS; c++)
    bytes += column_bytes(&column[c], room);
  return bytes;
}

static void lay_out(struct hk_residual_gpu *g)
{
  const uint32_t room = g->columns.room;
  const struct hk_residual_column row = { 0, sizeof(double), 1 };
  char *at = g->memory;
  for (uint32_t c = 0; c < HK_RESIDUAL_COLUMNS; c++) {
    hk_residual_set(&g->columns, &g->column[c], at);
    at += column_bytes(&g->column[c], room);
  }
  g->x = (double *)(void *)at;
  g->r = (double *)(void *)(at + column_bytes(&row, room));
}

static int say(char *error, size_t size, cudaError_t failed, uint64_t bytes)
{
  (void)cudaGetLastError();
  if (failed == cudaErrorMemoryAllocation) {
    snprintf(error, size, "a field needs %llu bytes on the GPU, which are not free there", (unsigned long long)bytes);
    return -ENOMEM;
  }
  snprintf(error, size, "CUDA: %s", cudaGetErrorString(failed));
  return failed == cudaErrorNoDevice || failed == cudaErrorInsufficientDriver || failed == cudaErrorInvalidDevice ||
                 failed == cudaErrorNoKernelImageForDevice
             ? -ENODEV
             : -EIO;
}

int hk_residual_gpu_open(struct hk_residual_gpu **out, const struct hk_residual *host, uint32_t device, char *error, size_t size)
{
  const uint64_t bytes = hk_residual_gpu_bytes(&host->rule, host->room);
  struct hk_residual_gpu *g = calloc(1, sizeof *g);
  *out = NULL;
  if (!g) {
    snprintf(error, size, "no memory");
    return -ENOMEM;
  }
  g->columns = (struct hk_residual){ .rule = host->rule, .room = host->room };
  g->device = (int)device;
  hk_residual_columns(&host->rule, g->column);
  cudaError_t failed = cudaSetDevice(g->device);
  if (!failed)
    failed = cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking);
  if (!failed)
    failed = cudaMalloc((void **)&g->memory, bytes);
  if (failed) {
    hk_residual_gpu_close(g);
    return say(error, size, failed, bytes);
  }
  lay_out(g);
  if (hk_residual_gpu_write(g, host) != 0) {
    hk_residual_gpu_close(g);
    return say(error, size, cudaErrorUnknown, bytes);
  }
  *out = g;
  return 0;
}

void hk_residual_gpu_close(struct hk_residual_gpu *g)
{
  if (!g)
    return;
  (void)cudaSetDevice(g->device);
  if (g->stream)
    (void)cudaStreamDestroy(g->stream);
  (void)cudaFree(g->memory);
  free(g);
}

/* Waits for all that was begun. 0 or -EIO. */
static int done(struct hk_residual_gpu *g, cudaError_t failed)
{
  const cudaError_t waited = cudaStreamSynchronize(g->stream);
  if (!failed && !waited)
    return 0;
  (void)cudaGetLastError();
  return -EIO;
}

/* One row. */
static cudaError_t launch(struct hk_residual_gpu *g, const double *x, double *r)
{
  const struct hk_residual *f = &g->columns;
  const bool refit = ++g->columns.rows % f->rule.refit == 0;
  int failed = hk_residual_launch_standardise(f, x, r, g->stream);
  if (!failed)
    failed = hk_residual_launch_show(f, x, r, g->stream);
  if (!failed)
    failed = hk_residual_launch_predict(f, x, r, g->stream);
  if (!failed)
    failed = hk_residual_launch_learn(f, x, r, g->stream);
  if (!failed && refit)
    failed = hk_residual_launch_refit(f, x, r, g->stream);
  return (cudaError_t)failed;
}

const struct hk_residual *hk_residual_gpu_columns(const struct hk_residual_gpu *g)
{
  return &g->columns;
}

int hk_residual_gpu_rows(struct hk_residual_gpu *g, const double *x, double *r, uint32_t n)
{
  const size_t room = g->columns.room, bytes = room * sizeof *x;
  cudaError_t failed = cudaSetDevice(g->device);
  for (uint32_t row = 0; !failed && row < n; row++) {
    failed = cudaMemcpyAsync(g->x, x + row * room, bytes, cudaMemcpyHostToDevice, g->stream);
    if (!failed)
      failed = launch(g, g->x, g->r);
    if (!failed)
      failed = cudaMemcpyAsync(r + row * room, g->r, bytes, cudaMemcpyDeviceToHost, g->stream);
  }
  return done(g, failed);
}

int hk_residual_gpu_rows_there(struct hk_residual_gpu *g, const double *x, double *r, uint32_t n)
{
  const size_t room = g->columns.room;
  cudaError_t failed = cudaSetDevice(g->device);
  for (uint32_t row = 0; !failed && row < n; row++)
    failed = launch(g, x + row * room, r + row * room);
  return done(g, failed);
}

/* All columns, one way or the other. */
static int copy(struct hk_residual_gpu *g, const struct hk_residual *host, enum cudaMemcpyKind kind)
{
  cudaError_t failed = cudaSetDevice(g->device);
  for (uint32_t c = 0; !failed && c < HK_RESIDUAL_COLUMNS; c++) {
    const struct hk_residual_column *column = &g->column[c];
    void *there = hk_residual_get(&g->columns, column), *here = hk_residual_get(host, column);
    const bool up = kind == cudaMemcpyHostToDevice;
    failed =
        cudaMemcpyAsync(up ? there : here, up ? here : there, column->bytes * column->numbers * g->columns.room, kind, g->stream);
  }
  return done(g, failed);
}

int hk_residual_gpu_write(struct hk_residual_gpu *g, const struct hk_residual *host)
{
  g->columns.rows = host->rows;
  return copy(g, host, cudaMemcpyHostToDevice);
}

int hk_residual_gpu_read(struct hk_residual_gpu *g, struct hk_residual *host)
{
  host->rows = g->columns.rows;
  return copy(g, host, cudaMemcpyDeviceToHost);
}
