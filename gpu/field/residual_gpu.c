/* Host side of the graph residual on the GPU: memory, copies, the order of launches. See residual_gpu.h.
 *
 * All columns lie in one piece of device memory, each from a multiple of 256 bytes on. */
#include "gpu/field/residual_gpu.h"
#include "gpu/cuda.h"
#include "gpu/cuda_error.h"
#include "gpu/desk.h"
#include "gpu/field/correlate_gpu.h"
#include "gpu/field/residual_kernels.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define ALIGNMENT 256u
#define DESK_NODE 32u /* bytes for each node: x and r, or r and the columns copied with it */

struct hk_residual_gpu {
  struct hk_residual columns; /* whose memory is the device's */
  struct hk_residual_column column[HK_RESIDUAL_COLUMNS];
  char *memory;
  double *x, *r; /* a row, on the device */
  struct hk_desk desk;
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

static void residual_gpu_lay_out(struct hk_residual_gpu *g)
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
  hk_residual_columns(&host->rule, g->column);
  cudaError_t failed = (cudaError_t)hk_desk_open(&g->desk, (int)device, (size_t)host->room * DESK_NODE);
  if (!failed)
    failed = cudaMalloc((void **)&g->memory, bytes);
  if (failed) {
    hk_residual_gpu_close(g);
    return hk_cuda_error(error, size, failed, "a field needs", bytes);
  }
  residual_gpu_lay_out(g);
  if (hk_residual_gpu_write(g, host) != 0) {
    hk_residual_gpu_close(g);
    return hk_cuda_error(error, size, cudaErrorUnknown, "a field needs", bytes);
  }
  *out = g;
  return 0;
}

void hk_residual_gpu_close(struct hk_residual_gpu *g)
{
  if (!g)
    return;
  hk_desk_close(&g->desk, g->memory);
  free(g);
}

/* Launches the passes of one row. */
static cudaError_t residual_gpu_launch(struct hk_residual_gpu *g, const double *x, double *r)
{
  const struct hk_residual *f = &g->columns;
  const bool refit = ++g->columns.rows % f->rule.refit == 0;
  int failed = hk_residual_launch_standardise(f, x, r, g->desk.stream);
  if (!failed)
    failed = hk_residual_launch_show(f, x, r, g->desk.stream);
  if (!failed)
    failed = hk_residual_launch_predict(f, x, r, g->desk.stream);
  if (!failed)
    failed = hk_residual_launch_learn(f, x, r, g->desk.stream);
  if (!failed && refit)
    failed = hk_residual_launch_refit(f, x, r, g->desk.stream);
  return (cudaError_t)failed;
}

const struct hk_residual *hk_residual_gpu_columns(const struct hk_residual_gpu *g)
{
  return &g->columns;
}

int hk_residual_gpu_rows(struct hk_residual_gpu *g, const double *x, double *r, uint32_t n)
{
  const size_t room = g->columns.room, bytes = room * sizeof *x;
  cudaError_t failed = cudaSetDevice(g->desk.device);
  for (uint32_t row = 0; !failed && row < n; row++) {
    failed = cudaMemcpyAsync(g->x, x + row * room, bytes, cudaMemcpyHostToDevice, g->desk.stream);
    if (!failed)
      failed = residual_gpu_launch(g, g->x, g->r);
    if (!failed)
      failed = cudaMemcpyAsync(r + row * room, g->r, bytes, cudaMemcpyDeviceToHost, g->desk.stream);
  }
  return hk_desk_wait(&g->desk, (int)failed);
}

int hk_residual_gpu_rows_there(struct hk_residual_gpu *g, const double *x, double *r, uint32_t n)
{
  const size_t room = g->columns.room;
  cudaError_t failed = cudaSetDevice(g->desk.device);
  for (uint32_t row = 0; !failed && row < n; row++)
    failed = residual_gpu_launch(g, x + row * room, r + row * room);
  return hk_desk_wait(&g->desk, (int)failed);
}

/* Copies all columns to or from the device. */
static int copy(struct hk_residual_gpu *g, const struct hk_residual *host, bool up)
{
  int status = 0;
  for (uint32_t c = 0; status == 0 && c < HK_RESIDUAL_COLUMNS; c++) {
    const struct hk_residual_column *column = &g->column[c];
    const size_t bytes = column->bytes * column->numbers * g->columns.room;
    void *here = hk_residual_get(host, column), *there = hk_residual_get(&g->columns, column);
    status = up ? hk_desk_up(&g->desk, there, here, bytes) : hk_desk_down(&g->desk, here, there, bytes);
  }
  return status;
}

int hk_residual_gpu_write(struct hk_residual_gpu *g, const struct hk_residual *host)
{
  g->columns.rows = host->rows;
  return copy(g, host, true);
}

int hk_residual_gpu_read(struct hk_residual_gpu *g, struct hk_residual *host)
{
  host->rows = g->columns.rows;
  return copy(g, host, false);
}

/* --- for fields (cpu/field/offload.h) ---------------------------------------------------------------------------------- */

static int residual_gpu_device_open(void **out, const void *host, uint32_t number, char *error, size_t size)
{
  struct hk_residual_gpu *g;
  const int status = hk_residual_gpu_open(&g, host, number, error, size);
  if (status == 0)
    *out = g;
  return status;
}

static void residual_gpu_device_close(void *columns)
{
  hk_residual_gpu_close(columns);
}

/* What comes with a row goes down behind r, each from a whole column of the row on. */
static int residual_gpu_device_row(void *columns, void *of, int64_t row, const double *x, double *r, char *error, size_t size)
{
  struct hk_residual_gpu *g = columns;
  struct hk_residual *host = of;
  const struct hk_residual *f = &g->columns;
  const size_t n = f->room, wide = n * sizeof(double), narrow = n * sizeof(float);
  const struct {
    void *here;
    const void *there;
  } more[] = { { host->now.z, f->now.z }, { host->now.off, f->now.off }, { host->errors, f->errors }, { host->error, f->error } };
  const uint32_t n_more = sizeof more / sizeof *more;
  cudaError_t failed = cudaSetDevice(g->desk.device);
  (void)row;
  memcpy(g->desk.memory, x, wide);
  if (!failed)
    failed = cudaMemcpyAsync(g->x, g->desk.memory, wide, cudaMemcpyHostToDevice, g->desk.stream);
  if (!failed)
    failed = residual_gpu_launch(g, g->x, g->r);
  if (!failed)
    failed = cudaMemcpyAsync(g->desk.memory, g->r, wide, cudaMemcpyDeviceToHost, g->desk.stream);
  for (uint32_t k = 0; !failed && k < n_more; k++)
    failed = cudaMemcpyAsync(g->desk.memory + wide + k * narrow, more[k].there, narrow, cudaMemcpyDeviceToHost, g->desk.stream);
  const int status = hk_desk_wait(&g->desk, (int)failed);
  if (status != 0)
    return hk_desk_tell(status, error, size);
  memcpy(r, g->desk.memory, wide);
  for (uint32_t k = 0; k < n_more; k++)
    memcpy(more[k].here, g->desk.memory + wide + k * narrow, narrow);
  host->rows = f->rows;
  return 0;
}

static int residual_gpu_device_read(void *columns, void *host, char *error, size_t size)
{
  return hk_desk_tell(copy(columns, host, false), error, size);
}

static int residual_gpu_device_write(void *columns, const void *host, char *error, size_t size)
{
  return hk_desk_tell(hk_residual_gpu_write(columns, host), error, size);
}

const struct hk_offload_kind hk_cuda_residual = { residual_gpu_device_open, residual_gpu_device_close, residual_gpu_device_row,
                                                  residual_gpu_device_read, residual_gpu_device_write, hk_correlate_gpu };
