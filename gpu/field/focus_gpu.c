/* Host side of focus on the GPU: memory, tables, copies. See focus_gpu.h.
 *
 * Everything lies in one piece of device memory, each from a multiple of 256 bytes on. The lags of 32 views that are neighbours
 * lie interleaved, so that the threads of a warp read them together. What comes back of a row, `most`, values and blamed, lies
 * together. */
#include "gpu/field/focus_gpu.h"
#include "gpu/cuda.h"
#include "gpu/cuda_error.h"
#include "gpu/desk.h"
#include "gpu/field/focus_kernels.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES 32u
#define WHOLE_ADDS (1u << 22) /* of a call: up to so many one launch is faster than four */
#define FOUND_SIZE 256u       /* bytes before the first row's values: what was found in all rows */
_Static_assert(HK_FOCUS_AT_ONCE * sizeof(struct hk_focus_most) <= FOUND_SIZE, "");

struct hk_focus_gpu {
  struct hk_focus_rows there; /* in the memory of the device */
  char *memory;
  size_t lags; /* interleaved */
  struct hk_desk desk;
};

/* --- layout ------------------------------------------------------------------------------------------------------------- */

static uint64_t views_of(const struct hk_focus *f)
{
  return (uint64_t)f->aims * f->n * f->places;
}

/* Number of interleaved lags, with those of the lanes that have none. */
static size_t count_lags(const struct hk_focus *f)
{
  const uint64_t views = views_of(f);
  size_t lags = 0;
  for (uint64_t group = 0; group < views; group += LANES) {
    uint32_t most = 0;
    for (uint64_t v = group; v < views && v < group + LANES; v++)
      most = f->view[v].n > most ? f->view[v].n : most;
    lags += (size_t)LANES * most;
  }
  return lags;
}

/* Fills the tables of the device. */
static void interleave(const struct hk_focus *f, struct hk_focus_view *view, uint16_t *lag)
{
  const uint64_t views = views_of(f);
  size_t from = 0;
  for (uint64_t group = 0; group < views; group += LANES) {
    uint32_t most = 0;
    for (uint64_t v = group; v < views && v < group + LANES; v++) {
      view[v] = f->view[v];
      view[v].at = (uint32_t)(from + v % LANES);
      for (uint32_t k = 0; k < view[v].n; k++)
        lag[view[v].at + (size_t)k * LANES] = f->lag[f->view[v].at + (size_t)k * f->step];
      most = view[v].n > most ? view[v].n : most;
    }
    from += (size_t)LANES * most;
  }
}

/* Takes bytes of the device's memory after the first *at; memory NULL: only counts them. */
static void *focus_gpu_take(char *memory, uint64_t *at, uint64_t bytes)
{
  void *from = memory ? memory + *at : NULL;
  *at += (bytes + 255) / 256 * 256;
  return from;
}

/* Bytes of what comes back of all rows. */
static uint64_t back_bytes(const struct hk_focus *f, uint32_t rows)
{
  return FOUND_SIZE + (uint64_t)rows * 2 * f->wide * sizeof(float);
}

/* Gives all columns and tables their places; memory NULL: only counts. Returns the bytes. */
static uint64_t focus_gpu_lay_out(struct hk_focus_rows *to, const struct hk_focus *f, size_t lags, char *memory)
{
  const uint64_t places = (uint64_t)f->n * f->places, n = f->n, rows = HK_FOCUS_AT_ONCE;
  uint64_t at = 0;
  to->f.view = focus_gpu_take(memory, &at, views_of(f) * sizeof *f->view);
  to->f.lag = focus_gpu_take(memory, &at, lags * sizeof *f->lag);
  to->f.near = focus_gpu_take(memory, &at, n * sizeof *f->near);
  to->f.sample = focus_gpu_take(memory, &at, (uint64_t)f->wide * f->past * sizeof *f->sample);
  to->f.change = focus_gpu_take(memory, &at, (uint64_t)f->wide * f->room * sizeof *f->change);
  to->f.held = focus_gpu_take(memory, &at, (uint64_t)f->wide * f->room * sizeof *f->held);
  to->f.error = focus_gpu_take(memory, &at, n * sizeof *f->error);
  to->f.errors = focus_gpu_take(memory, &at, n * sizeof *f->errors);
  to->f.peak = focus_gpu_take(memory, &at, n * sizeof *f->peak);
  to->f.now.strength = focus_gpu_take(memory, &at, rows * places * sizeof *f->now.strength);
  to->f.now.aimed = focus_gpu_take(memory, &at, rows * places * sizeof *f->now.aimed);
  to->f.now.top = focus_gpu_take(memory, &at, rows * n * sizeof *f->now.top);
  to->f.now.top_at = focus_gpu_take(memory, &at, rows * n * sizeof *f->now.top_at);
  to->x = focus_gpu_take(memory, &at, rows * n * sizeof *to->x);
  char *back = focus_gpu_take(memory, &at, back_bytes(f, HK_FOCUS_AT_ONCE));
  to->most = (struct hk_focus_most *)(void *)back;
  to->f.now.value = back ? (float *)(void *)(back + FOUND_SIZE) : NULL;
  to->f.now.blamed = back ? (uint32_t *)(void *)(back + FOUND_SIZE) + f->wide : NULL;
  to->apart = 2 * (size_t)f->wide;
  return at;
}

uint64_t hk_focus_gpu_bytes(const struct hk_focus_line *line)
{
  struct hk_focus_rows none = { 0 };
  return focus_gpu_lay_out(&none, &line->f, count_lags(&line->f), NULL);
}

/* --- life --------------------------------------------------------------------------------------------------------------- */

/* Copies the tables up. Returns 0, -ENOMEM, -ETIMEDOUT or -EIO. */
static int put_tables(struct hk_focus_gpu *g, const struct hk_focus *f)
{
  const size_t views = views_of(f);
  struct hk_focus_view *view = malloc(views * sizeof *view);
  uint16_t *lag = calloc(g->lags + 1, sizeof *lag);
  int status = view && lag ? 0 : -ENOMEM;
  if (status == 0) {
    interleave(f, view, lag);
    status = hk_desk_up(&g->desk, (void *)(uintptr_t)g->there.f.view, view, views * sizeof *view);
  }
  if (status == 0)
    status = hk_desk_up(&g->desk, (void *)(uintptr_t)g->there.f.lag, lag, g->lags * sizeof *lag);
  if (status == 0)
    status = hk_desk_up(&g->desk, (void *)(uintptr_t)g->there.f.near, f->near, f->n * sizeof *f->near);
  free(view);
  free(lag);
  return status;
}

/* How many blocks may wait for each other: one on each multiprocessor; none, if the device cannot launch such. */
static cudaError_t count_blocks(struct hk_focus_rows *rows, int device)
{
  int can = 0, processors = 0;
  cudaError_t failed = cudaDeviceGetAttribute(&can, cudaDevAttrCooperativeLaunch, device);
  if (!failed)
    failed = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  rows->blocks = can ? (uint32_t)processors : 0;
  return failed;
}

int hk_focus_gpu_open(struct hk_focus_gpu **out, const struct hk_focus_line *line, uint32_t device, char *error, size_t size)
{
  const struct hk_focus *f = &line->f;
  const uint64_t x = (uint64_t)HK_FOCUS_AT_ONCE * f->n * sizeof(double), back = back_bytes(f, HK_FOCUS_AT_ONCE);
  struct hk_focus_gpu *g = calloc(1, sizeof *g);
  *out = NULL;
  if (!g) {
    snprintf(error, size, "no memory");
    return -ENOMEM;
  }
  g->lags = count_lags(f);
  g->there.f = *f;
  g->there.f.step = LANES;
  const uint64_t bytes = focus_gpu_lay_out(&g->there, f, g->lags, NULL);
  cudaError_t failed =
      g->lags > UINT32_MAX ? cudaErrorMemoryAllocation : (cudaError_t)hk_desk_open(&g->desk, (int)device, x > back ? x : back);
  if (!failed)
    failed = count_blocks(&g->there, (int)device);
  if (!failed)
    failed = cudaMalloc((void **)&g->memory, bytes);
  if (!failed)
    focus_gpu_lay_out(&g->there, f, g->lags, g->memory);
  if (!failed && (put_tables(g, f) != 0 || hk_focus_gpu_write(g, line) != 0))
    failed = cudaErrorUnknown;
  if (failed) {
    hk_focus_gpu_close(g);
    return hk_cuda_error(error, size, failed, "a line needs", bytes);
  }
  *out = g;
  return 0;
}

void hk_focus_gpu_close(struct hk_focus_gpu *g)
{
  if (!g)
    return;
  hk_desk_close(&g->desk, g->memory);
  free(g);
}

/* --- rows --------------------------------------------------------------------------------------------------------------- */

/* Whether the device reaches memory of the host by itself. */
static bool is_locked(const void *memory)
{
  struct cudaPointerAttributes is;
  if (cudaPointerGetAttributes(&is, memory) == cudaSuccess)
    return is.type == cudaMemoryTypeHost;
  (void)cudaGetLastError();
  return false;
}

/* Whether the rows are so little work that one launch is sooner done than four. */
static bool is_whole(const struct hk_focus_gpu *g)
{
  return g->there.blocks > 0 && g->there.rows * g->lags <= WHOLE_ADDS;
}

/* The values of rows in memory that the device reaches. */
static const double *locked(struct hk_focus_gpu *g, const double *x, size_t bytes)
{
  if (!x || is_locked(x))
    return x;
  memcpy(g->desk.memory, x, bytes);
  return (const double *)(const void *)g->desk.memory;
}

/* Copies rows up, computes them and copies the results down, unless x is NULL. */
static cudaError_t launch_with_copies(struct hk_focus_gpu *g, const double *x, size_t bytes)
{
  struct hk_focus_rows *rows = &g->there;
  cudaError_t failed = x ? cudaMemcpyAsync(rows->x, x, bytes, cudaMemcpyHostToDevice, g->desk.stream) : cudaSuccess;
  if (!failed)
    failed = (cudaError_t)hk_focus_launch(rows, g->desk.stream);
  if (x && !failed)
    failed =
        cudaMemcpyAsync(g->desk.memory, rows->most, back_bytes(&rows->f, rows->rows), cudaMemcpyDeviceToHost, g->desk.stream);
  return failed;
}

/* The same by one launch. The values are read before the results are written, so they may lie in the same memory. */
static cudaError_t launch_whole(struct hk_focus_gpu *g, const double *x)
{
  struct hk_focus_rows *rows = &g->there;
  rows->from = x;
  rows->to = x ? (uint64_t *)(void *)g->desk.memory : NULL;
  rows->back = back_bytes(&rows->f, rows->rows) / sizeof *rows->to;
  return (cudaError_t)hk_focus_launch_whole(rows, g->desk.stream);
}

int hk_focus_gpu_begin(struct hk_focus_gpu *g, int64_t row, const double *x, uint32_t rows)
{
  struct hk_focus *f = &g->there.f;
  const size_t bytes = (size_t)rows * f->n * sizeof *x;
  cudaError_t failed = cudaSetDevice(g->desk.device);
  g->there.row = row;
  g->there.rows = rows;
  x = locked(g, x, bytes);
  if (!failed)
    failed = is_whole(g) ? launch_whole(g, x) : launch_with_copies(g, x, bytes);
  f->any = true;
  f->row = row + rows - 1;
  return failed ? -EIO : 0;
}

int hk_focus_gpu_wait(struct hk_focus_gpu *g)
{
  return hk_desk_wait(&g->desk, 0);
}

int hk_focus_gpu_row(struct hk_focus_gpu *g, uint32_t k, struct hk_focus_gpu_row *out)
{
  const struct hk_focus *f = &g->there.f;
  const float *value = (const float *)(const void *)(g->desk.memory + FOUND_SIZE) + k * g->there.apart;
  struct hk_focus_most most;
  memcpy(&most, g->desk.memory + k * sizeof most, sizeof most);
  *out = (struct hk_focus_gpu_row){ value,
                                    (const uint32_t *)(const void *)(value + f->wide),
                                    { (float)NAN, HK_FOCUS_NONE, HK_FOCUS_NONE } };
  const uint32_t bits = most.strongest - 1;
  if (most.strongest > 0)
    memcpy(&out->find.strongest, &bits, sizeof bits);
  if (most.sensor == 0)
    return 0;
  out->find.sensor = UINT32_MAX - (uint32_t)most.sensor;
  const uint32_t *at = f->now.top_at + (size_t)k * f->n + out->find.sensor;
  cudaError_t failed = cudaSetDevice(g->desk.device);
  if (!failed) /* into the end of the first piece, which is not in use */
    failed = cudaMemcpyAsync(g->desk.memory + FOUND_SIZE - sizeof *at, at, sizeof *at, cudaMemcpyDeviceToHost, g->desk.stream);
  const int status = hk_desk_wait(&g->desk, (int)failed);
  memcpy(&out->find.at, g->desk.memory + FOUND_SIZE - sizeof *at, sizeof *at);
  return status;
}

/* --- columns ------------------------------------------------------------------------------------------------------------ */

/* Copies all columns that a row goes on from, up or down. */
static int focus_gpu_copy(struct hk_focus_gpu *g, const struct hk_focus *host, bool up)
{
  const struct hk_focus *there = &g->there.f;
  const size_t n = host->n, samples = (size_t)host->wide * host->past, changes = (size_t)host->wide * host->room;
  const struct {
    void *here, *there;
    size_t bytes;
  } column[] = { { host->sample, there->sample, samples * sizeof *host->sample },
                 { host->change, there->change, changes * sizeof *host->change },
                 { host->held, there->held, changes * sizeof *host->held },
                 { host->error, there->error, n * sizeof *host->error },
                 { host->errors, there->errors, n * sizeof *host->errors },
                 { host->peak, there->peak, n * sizeof *host->peak } };
  int status = 0;
  for (size_t c = 0; status == 0 && c < sizeof column / sizeof *column; c++)
    status = up ? hk_desk_up(&g->desk, column[c].there, column[c].here, column[c].bytes)
                : hk_desk_down(&g->desk, column[c].here, column[c].there, column[c].bytes);
  return status;
}

int hk_focus_gpu_write(struct hk_focus_gpu *g, const struct hk_focus_line *line)
{
  g->there.f.any = line->f.any;
  g->there.f.row = line->f.row;
  return focus_gpu_copy(g, &line->f, true);
}

int hk_focus_gpu_read(struct hk_focus_gpu *g, struct hk_focus_line *line)
{
  const int status = focus_gpu_copy(g, &line->f, false);
  line->f.any = g->there.f.any;
  line->f.row = g->there.f.row;
  return status;
}

/* --- for fields (cpu/field/offload.h) ----------------------------------------------------------------------------------- */

static int focus_gpu_device_open(void **out, const void *line, uint32_t number, char *error, size_t size)
{
  struct hk_focus_gpu *g;
  const int status = hk_focus_gpu_open(&g, line, number, error, size);
  if (status == 0)
    *out = g;
  return status;
}

static void focus_gpu_device_close(void *columns)
{
  hk_focus_gpu_close(columns);
}

static int focus_gpu_device_row(void *columns, void *host, int64_t row, const double *x, double *r, char *error, size_t size)
{
  struct hk_focus_gpu *g = columns;
  struct hk_focus_line *line = host;
  struct hk_focus_gpu_row out;
  (void)r;
  int status = hk_focus_gpu_begin(g, row, x, 1);
  if (status == 0)
    status = hk_focus_gpu_wait(g);
  if (status == 0)
    status = hk_focus_gpu_row(g, 0, &out);
  if (status != 0)
    return hk_desk_tell(status, error, size);
  memcpy(line->f.now.value, out.value, line->f.n * sizeof *out.value);
  memcpy(line->f.now.blamed, out.blamed, line->f.n * sizeof *out.blamed);
  hk_focus_conclude(line, row, &out.find);
  return 0;
}

static int focus_gpu_device_read(void *columns, void *line, char *error, size_t size)
{
  return hk_desk_tell(hk_focus_gpu_read(columns, line), error, size);
}

static int focus_gpu_device_write(void *columns, const void *line, char *error, size_t size)
{
  return hk_desk_tell(hk_focus_gpu_write(columns, line), error, size);
}

const struct hk_offload_kind hk_cuda_focus = { focus_gpu_device_open, focus_gpu_device_close, focus_gpu_device_row,
                                               focus_gpu_device_read, focus_gpu_device_write, NULL };
