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
#define DESK_NODE 12u /* bytes for each node: x, or r and z; and `out` of the field */

struct hk_residual_gpu {
  struct hk_residual_resident field; /* whose memory is the device's */
  struct hk_residual_column column[HK_RESIDUAL_COLUMNS];
  char *memory;
  double *x, *r; /* a row, on the device */
  struct hk_desk desk;
};

static uint64_t aligned(uint64_t bytes)
{
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Those of a row have room for the nodes that many look at behind them. */
static uint64_t column_bytes(const struct hk_residual_column *c, uint32_t number, uint32_t room)
{
  return aligned((uint64_t)c->bytes * c->numbers * (room + (number < HK_RESIDUAL_STATE ? 0 : HK_RESIDUAL_HOT)));
}

/* Places memory of the device in order. NULL: it is only counted. */
static char *residual_gpu_place(char *memory, uint64_t *at, uint64_t bytes)
{
  char *const here = memory ? memory + *at : NULL;
  *at += aligned(bytes);
  return here;
}

/* Places everything, except for the columns that the host has, too. Returns the bytes. */
static uint64_t residual_gpu_place_own(struct hk_residual_gpu *g, const struct hk_residual_rule *rule, uint64_t room,
                                       char *memory)
{
  const uint64_t q = rule->neighbours;
  struct hk_residual_resident *t = &g->field;
  uint64_t at = 0;
  g->x = (double *)(void *)residual_gpu_place(memory, &at, room * sizeof *g->x);
  g->r = (double *)(void *)residual_gpu_place(memory, &at, room * sizeof *g->r);
  t->link = (uint32_t *)(void *)residual_gpu_place(memory, &at, (q + 3) / 4 * 3 * room * sizeof *t->link);
  t->slice = (struct hk_residual_slice *)(void *)residual_gpu_place(memory, &at, room / HK_RESIDUAL_LANES * sizeof *t->slice);
  t->shown = (float *)(void *)residual_gpu_place(memory, &at, HK_RESIDUAL_WAITING * room * sizeof *t->shown);
  t->taught = (float *)(void *)residual_gpu_place(memory, &at, HK_RESIDUAL_WAITING * room * sizeof *t->taught);
  t->told = (struct hk_residual_told *)(void *)residual_gpu_place(
      memory, &at, HK_RESIDUAL_WAITING * room / HK_RESIDUAL_LANES * sizeof *t->told);
  t->history = (struct float4 *)(void *)residual_gpu_place(memory, &at, HK_RESIDUAL_WAITING * room * sizeof(float));
  t->lookers = (uint32_t *)(void *)residual_gpu_place(memory, &at, room * sizeof *t->lookers);
  t->out = (uint32_t *)(void *)residual_gpu_place(memory, &at, sizeof *t->out);
  t->census = (uint32_t *)(void *)residual_gpu_place(memory, &at, HK_RESIDUAL_CENSUS * sizeof *t->census);
  return at;
}

uint64_t hk_residual_gpu_bytes(const struct hk_residual_rule *rule, uint32_t room)
{
  struct hk_residual_column column[HK_RESIDUAL_COLUMNS];
  uint64_t bytes = residual_gpu_place_own(&(struct hk_residual_gpu){ .memory = NULL }, rule, room, NULL);
  hk_residual_columns(rule, column);
  for (uint32_t c = 0; c < HK_RESIDUAL_COLUMNS; c++)
    bytes += column_bytes(&column[c], c, room);
  return bytes;
}

static void residual_gpu_lay_out(struct hk_residual_gpu *g)
{
  struct hk_residual *f = &g->field.of;
  char *at = g->memory + residual_gpu_place_own(g, &f->rule, f->room, g->memory);
  for (uint32_t c = 0; c < HK_RESIDUAL_COLUMNS; c++) {
    hk_residual_set(f, &g->column[c], at);
    at += column_bytes(&g->column[c], c, f->room);
  }
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
  g->field.of = (struct hk_residual){ .rule = host->rule, .room = host->room };
  hk_residual_columns(&host->rule, g->column);
  cudaError_t failed = (cudaError_t)hk_desk_open(&g->desk, (int)device, (size_t)host->room * DESK_NODE + sizeof(uint32_t));
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

/* Adds the waiting rows to the sums. */
static cudaError_t residual_gpu_sum(struct hk_residual_gpu *g)
{
  int failed = 0;
  if (g->field.waiting > 0)
    failed = hk_residual_launch_turn(&g->field, NULL, NULL, g->desk.stream);
  if (!failed && g->field.waiting > 0)
    failed = hk_residual_launch_sum(&g->field, NULL, NULL, g->desk.stream);
  g->field.waiting = 0;
  return (cudaError_t)failed;
}

/* Launches the passes of one row. */
static cudaError_t residual_gpu_launch(struct hk_residual_gpu *g, const double *x, double *r)
{
  struct hk_residual_resident *t = &g->field;
  const bool refit = ++t->of.rows % t->of.rule.refit == 0;
  int failed = hk_residual_launch_standardise(t, x, r, g->desk.stream);
  if (!failed)
    failed = hk_residual_launch_show(t, x, r, g->desk.stream);
  if (!failed)
    failed = hk_residual_launch_predict(t, x, r, g->desk.stream);
  if (!failed)
    failed = hk_residual_launch_learn(t, x, r, g->desk.stream);
  if (!failed && (++t->waiting == HK_RESIDUAL_WAITING || refit))
    failed = (int)residual_gpu_sum(g);
  if (!failed && refit)
    failed = hk_residual_launch_refit(t, x, r, g->desk.stream);
  return (cudaError_t)failed;
}

const struct hk_residual_resident *hk_residual_gpu_field(const struct hk_residual_gpu *g)
{
  return &g->field;
}

int hk_residual_gpu_rows(struct hk_residual_gpu *g, const double *x, double *r, uint32_t n)
{
  const size_t room = g->field.of.room, bytes = room * sizeof *x;
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
  const size_t room = g->field.of.room;
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
    const size_t bytes = column->bytes * column->numbers * g->field.of.room;
    void *here = hk_residual_get(host, column), *there = hk_residual_get(&g->field.of, column);
    status = up ? hk_desk_up(&g->desk, there, here, bytes) : hk_desk_down(&g->desk, here, there, bytes);
  }
  return status;
}

#define OFTEN 16u /* blocks keep the nodes that many look at where these are at least one neighbour in so many */

/* Packs the neighbours. */
static int residual_gpu_pack(struct hk_residual_gpu *g)
{
  struct hk_residual_resident *t = &g->field;
  uint32_t census[HK_RESIDUAL_CENSUS];
  int status = hk_desk_wait(&g->desk, hk_residual_launch_pack(t, NULL, NULL, g->desk.stream));
  if (status == 0)
    status = hk_desk_down(&g->desk, census, t->census, sizeof census);
  if (status != 0)
    return status;
  const uint64_t often = census[HK_RESIDUAL_HOT_STEPS + 1];
  t->n_hot = often * OFTEN >= (uint64_t)t->of.room * t->of.rule.neighbours ? census[HK_RESIDUAL_HOT_STEPS] : 0;
  return 0;
}

int hk_residual_gpu_write(struct hk_residual_gpu *g, const struct hk_residual *host)
{
  const int status = copy(g, host, true);
  g->field.of.rows = host->rows;
  g->field.waiting = 0;
  return status != 0 ? status : residual_gpu_pack(g);
}

int hk_residual_gpu_read(struct hk_residual_gpu *g, struct hk_residual *host)
{
  const int failed = (int)cudaSetDevice(g->desk.device),
            status = hk_desk_wait(&g->desk, failed ? failed : (int)residual_gpu_sum(g));
  host->rows = g->field.of.rows;
  return status != 0 ? status : copy(g, host, false);
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

/* What comes with a row goes down behind r. */
static int residual_gpu_device_row(void *columns, void *of, int64_t row, const double *x, double *r, char *error, size_t size)
{
  struct hk_residual_gpu *g = columns;
  struct hk_residual *host = of;
  const struct hk_residual *f = &g->field.of;
  const size_t n = f->room, wide = n * sizeof *r, narrow = host->shows ? n * sizeof *f->now.z : 0;
  cudaError_t failed = cudaSetDevice(g->desk.device);
  (void)row;
  memcpy(g->desk.memory, x, wide);
  if (!failed)
    failed = cudaMemcpyAsync(g->x, g->desk.memory, wide, cudaMemcpyHostToDevice, g->desk.stream);
  if (!failed)
    failed = residual_gpu_launch(g, g->x, g->r);
  if (!failed)
    failed = cudaMemcpyAsync(g->desk.memory, g->r, wide, cudaMemcpyDeviceToHost, g->desk.stream);
  if (!failed && narrow > 0)
    failed = cudaMemcpyAsync(g->desk.memory + wide, f->now.z, narrow, cudaMemcpyDeviceToHost, g->desk.stream);
  if (!failed)
    failed =
        cudaMemcpyAsync(g->desk.memory + wide + narrow, g->field.out, sizeof host->out, cudaMemcpyDeviceToHost, g->desk.stream);
  const int status = hk_desk_wait(&g->desk, (int)failed);
  if (status != 0)
    return hk_desk_tell(status, error, size);
  memcpy(r, g->desk.memory, wide);
  memcpy(host->now.z, g->desk.memory + wide, narrow);
  memcpy(&host->out, g->desk.memory + wide + narrow, sizeof host->out);
  host->rows = f->rows;
  return 0;
}

static int residual_gpu_device_read(void *columns, void *host, char *error, size_t size)
{
  return hk_desk_tell(hk_residual_gpu_read(columns, host), error, size);
}

static int residual_gpu_device_write(void *columns, const void *host, char *error, size_t size)
{
  return hk_desk_tell(hk_residual_gpu_write(columns, host), error, size);
}

const struct hk_offload_kind hk_cuda_residual = { residual_gpu_device_open, residual_gpu_device_close, residual_gpu_device_row,
                                                  residual_gpu_device_read, residual_gpu_device_write, hk_correlate_gpu };
