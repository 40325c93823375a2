/* Host side of the graph residual on the GPU: memory, copies, the order of launches. See residual_gpu.h.
 *
 * All columns lie in one piece of device memory, each from a multiple of 256 bytes on. Copies go by way of `desk`, memory of the
 * host that the device reaches by itself: a copy from or to any other memory is one that the calling thread cannot give up
 * waiting for. */
#include "gpu/field/residual_gpu.h"
#include "gpu/cuda.h"
#include "gpu/cuda_error.h"
#include "gpu/field/residual_kernels.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ALIGNMENT 256u
#define PATIENCE 5    /* s that the device may need for any operation; then it counts as hung */
#define DESK_NODE 32u /* bytes for each node: x and r, or r and the columns copied with it */
#define DESK_LEAST (4u << 20)

struct hk_residual_gpu {
  struct hk_residual columns; /* whose memory is the device's */
  struct hk_residual_column column[HK_RESIDUAL_COLUMNS];
  int device;
  char *memory;
  double *x, *r; /* a row, on the device */
  char *desk;    /* desk_size bytes of the host */
  size_t desk_size;
  bool hangs; /* its memory is not freed */
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
  g->device = (int)device;
  hk_residual_columns(&host->rule, g->column);
  cudaError_t failed = cudaSetDevice(g->device);
  if (!failed)
    failed = cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking);
  if (!failed)
    failed = cudaMalloc((void **)&g->memory, bytes);
  g->desk_size = (size_t)host->room * DESK_NODE > DESK_LEAST ? (size_t)host->room * DESK_NODE : DESK_LEAST;
  if (!failed)
    failed = cudaMallocHost((void **)&g->desk, g->desk_size);
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
  if (!g->hangs) {
    (void)cudaSetDevice(g->device);
    if (g->stream)
      (void)cudaStreamDestroy(g->stream);
    (void)cudaFree(g->memory);
    (void)cudaFreeHost(g->desk);
  }
  free(g);
}

static int64_t residual_gpu_now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Waits for all operations. Returns 0, -ETIMEDOUT or -EIO. */
static int residual_gpu_done(struct hk_residual_gpu *g, cudaError_t failed)
{
  const int64_t begin = residual_gpu_now();
  cudaError_t waited;
  while ((waited = cudaStreamQuery(g->stream)) == cudaErrorNotReady) {
    const int64_t took = residual_gpu_now() - begin;
    g->hangs = took > PATIENCE * (int64_t)1000000000;
    if (g->hangs)
      return -ETIMEDOUT;
    if (took > 2000000)
      usleep(50);
  }
  if (!failed && !waited)
    return 0;
  (void)cudaGetLastError();
  return -EIO;
}

/* Launches the passes of one row. */
static cudaError_t residual_gpu_launch(struct hk_residual_gpu *g, const double *x, double *r)
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
      failed = residual_gpu_launch(g, g->x, g->r);
    if (!failed)
      failed = cudaMemcpyAsync(r + row * room, g->r, bytes, cudaMemcpyDeviceToHost, g->stream);
  }
  return residual_gpu_done(g, failed);
}

int hk_residual_gpu_rows_there(struct hk_residual_gpu *g, const double *x, double *r, uint32_t n)
{
  const size_t room = g->columns.room;
  cudaError_t failed = cudaSetDevice(g->device);
  for (uint32_t row = 0; !failed && row < n; row++)
    failed = residual_gpu_launch(g, x + row * room, r + row * room);
  return residual_gpu_done(g, failed);
}

/* Copies some bytes to or from the device by way of the desk. */
static int copy_piece(struct hk_residual_gpu *g, char *there, char *here, size_t bytes, bool up)
{
  int status = 0;
  for (size_t at = 0, n; status == 0 && at < bytes; at += n) {
    n = bytes - at < g->desk_size ? bytes - at : g->desk_size;
    if (up)
      memcpy(g->desk, here + at, n);
    status = residual_gpu_done(g, up ? cudaMemcpyAsync(there + at, g->desk, n, cudaMemcpyHostToDevice, g->stream)
                                     : cudaMemcpyAsync(g->desk, there + at, n, cudaMemcpyDeviceToHost, g->stream));
    if (!up && status == 0)
      memcpy(here + at, g->desk, n);
  }
  return status;
}

/* Copies all columns to or from the device. */
static int copy(struct hk_residual_gpu *g, const struct hk_residual *host, bool up)
{
  int status = residual_gpu_done(g, cudaSetDevice(g->device));
  for (uint32_t c = 0; status == 0 && c < HK_RESIDUAL_COLUMNS; c++) {
    const struct hk_residual_column *column = &g->column[c];
    status = copy_piece(g, hk_residual_get(&g->columns, column), hk_residual_get(host, column),
                        column->bytes * column->numbers * g->columns.room, up);
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

static int residual_gpu_tell(int status, char *error, size_t size)
{
  if (status == -ETIMEDOUT)
    snprintf(error, size, "the GPU has not answered for %d s", PATIENCE);
  else if (status != 0)
    snprintf(error, size, "the GPU failed");
  return status;
}

static int residual_gpu_device_open(void **out, const struct hk_residual *host, uint32_t number, char *error, size_t size)
{
  struct hk_residual_gpu *g;
  const int status = hk_residual_gpu_open(&g, host, number, error, size);
  if (status == 0)
    *out = g;
  return status;
}

static void device_close(void *columns)
{
  hk_residual_gpu_close(columns);
}

/* What comes with a row goes down behind r, each from a whole column of the row on. */
static int device_row(void *columns, const struct hk_residual *host, const double *x, double *r, char *error, size_t size)
{
  struct hk_residual_gpu *g = columns;
  const struct hk_residual *f = &g->columns;
  const size_t n = f->room, wide = n * sizeof(double), narrow = n * sizeof(float);
  const struct {
    void *here;
    const void *there;
  } more[] = { { host->now.z, f->now.z }, { host->now.off, f->now.off }, { host->errors, f->errors }, { host->error, f->error } };
  const uint32_t n_more = sizeof more / sizeof *more;
  cudaError_t failed = cudaSetDevice(g->device);
  memcpy(g->desk, x, wide);
  if (!failed)
    failed = cudaMemcpyAsync(g->x, g->desk, wide, cudaMemcpyHostToDevice, g->stream);
  if (!failed)
    failed = residual_gpu_launch(g, g->x, g->r);
  if (!failed)
    failed = cudaMemcpyAsync(g->desk, g->r, wide, cudaMemcpyDeviceToHost, g->stream);
  for (uint32_t k = 0; !failed && k < n_more; k++)
    failed = cudaMemcpyAsync(g->desk + wide + k * narrow, more[k].there, narrow, cudaMemcpyDeviceToHost, g->stream);
  const int status = residual_gpu_done(g, failed);
  if (status != 0)
    return residual_gpu_tell(status, error, size);
  memcpy(r, g->desk, wide);
  for (uint32_t k = 0; k < n_more; k++)
    memcpy(more[k].here, g->desk + wide + k * narrow, narrow);
  return 0;
}

static int device_read(void *columns, const struct hk_residual *host, char *error, size_t size)
{
  return residual_gpu_tell(copy(columns, host, false), error, size);
}

static int device_write(void *columns, const struct hk_residual *host, char *error, size_t size)
{
  return residual_gpu_tell(hk_residual_gpu_write(columns, host), error, size);
}

const struct hk_residual_kind hk_cuda_residual = { residual_gpu_device_open, device_close, device_row, device_read,
                                                   device_write };
