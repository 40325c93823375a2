/* Host side of wide bands on the GPU: memory, and the order of the kernels. See wide_gpu.h. */
#include "gpu/band/wide_gpu.h"
#include "gpu/band/wide_panel.h"
#include "gpu/band/wide_plan.h"
#include "gpu/band/wide_product.h"
#include "gpu/band/wide_update.h"
#include "gpu/band/wide_whole.h"
#include "gpu/cuda_error.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* The columns of the next block are computed first, on a stream of their own; the rest on the other. */
struct hk_band_wide {
  struct hk_wide_plan parted, whole; /* the same if there is one segment */
  const struct hk_wide_plan *used;   /* of the present factors; NULL: none */
  struct hk_wide_matrix matrix;      /* of those, in device memory */
  int device;
  double *numbers;                        /* on the device, as the following */
  double *largest, *residual, *a, *b, *x; /* a, b, x: NULL until they are needed */
  struct hk_wide_segment *segments;       /* of both plans */
  struct hk_wide_sums *sums;
  cudaStream_t ahead, rest;
  cudaEvent_t panel_done, rest_done;
};

static size_t wide_gpu_larger(size_t a, size_t b)
{
  return a > b ? a : b;
}

/* --- memory ------------------------------------------------------------------------------------------------------------- */

#define SEGMENT_BYTES (2 * (HK_WIDE_SEGMENTS + 1) * sizeof(struct hk_wide_segment))

static uint64_t wide_gpu_bytes_of(const struct hk_wide_plan *parted, const struct hk_wide_plan *whole, uint32_t n)
{
  return (wide_gpu_larger(parted->numbers, whole->numbers) + 2 * (size_t)n) * sizeof(double) + SEGMENT_BYTES +
         sizeof(struct hk_wide_sums);
}

static void make_plans(struct hk_wide_plan *parted, struct hk_wide_plan *whole, const struct hk_band_shape *s,
                       const struct hk_band_wide_way *way, bool clusters)
{
  const struct hk_band_wide_way alone = { 1, way ? way->block : 0 };
  hk_wide_plan_make(parted, s, way, clusters);
  hk_wide_plan_make(whole, s, &alone, clusters);
}

uint64_t hk_band_wide_bytes(const struct hk_band_shape *s, const struct hk_band_wide_way *way)
{
  struct hk_wide_plan parted, whole;
  make_plans(&parted, &whole, s, way, true);
  return wide_gpu_bytes_of(&parted, &whole, s->n);
}

static int wide_gpu_refuse(char *error, size_t size, const char *why)
{
  snprintf(error, size, "%s", why);
  return -EINVAL;
}

static int check_shape(const struct hk_band_shape *s, const struct hk_band_wide_way *way, char *error, size_t size)
{
  const uint32_t block = way && way->block ? way->block : HK_WIDE_PANEL;
  if (!hk_band_is_sound(s) || s->systems != 1 || s->below > HK_BAND_WIDE_MAX || s->above > HK_BAND_WIDE_MAX) {
    snprintf(error, size, "a wide band on a GPU is one system with 1 or more equations and at most %u diagonals on a side",
             HK_BAND_WIDE_MAX);
    return -EINVAL;
  }
  if (block < HK_WIDE_PANEL || block > HK_WIDE_BLOCK_MAX || (block & (block - 1)))
    return wide_gpu_refuse(error, size, "a block has 32, 64, 128, 256 or 512 columns");
  return 0;
}

/* Copies from the host in the order of the stream. (cudaMemcpy returns when such bytes are staged, and our streams do not wait
 * until they are there.) */
static cudaError_t wide_gpu_up(struct hk_band_wide *w, void *there, const void *from, size_t bytes)
{
  return cudaMemcpyAsync(there, from, bytes, cudaMemcpyHostToDevice, w->rest);
}

/* Allocates, and copies the plans' segments. */
static cudaError_t wide_gpu_set_up(struct hk_band_wide *w)
{
  const uint32_t n = w->matrix.n;
  const size_t numbers = wide_gpu_larger(w->parted.numbers, w->whole.numbers);
  int least = 0, most = 0;
  cudaError_t failed = cudaDeviceGetStreamPriorityRange(&least, &most);
  if (!failed)
    failed = cudaStreamCreateWithPriority(&w->ahead, cudaStreamNonBlocking, most);
  if (!failed)
    failed = cudaStreamCreateWithFlags(&w->rest, cudaStreamNonBlocking);
  if (!failed)
    failed = cudaEventCreateWithFlags(&w->panel_done, cudaEventDisableTiming);
  if (!failed)
    failed = cudaEventCreateWithFlags(&w->rest_done, cudaEventDisableTiming);
  if (!failed)
    failed = cudaMalloc((void **)&w->numbers, wide_gpu_bytes_of(&w->parted, &w->whole, n));
  if (failed)
    return failed;
  w->largest = w->numbers + numbers;
  w->residual = w->largest + n;
  w->sums = (struct hk_wide_sums *)(void *)(w->residual + n);
  w->segments = (struct hk_wide_segment *)(void *)(w->sums + 1);
  hk_wide_plan_place(&w->parted, w->numbers, w->segments);
  hk_wide_plan_place(&w->whole, w->numbers, w->segments + HK_WIDE_SEGMENTS + 1);
  failed = wide_gpu_up(w, w->segments, w->parted.segment, SEGMENT_BYTES / 2);
  return failed ? failed : wide_gpu_up(w, w->segments + HK_WIDE_SEGMENTS + 1, w->whole.segment, SEGMENT_BYTES / 2);
}

int hk_band_wide_open(struct hk_band_wide **out, const struct hk_band_shape *s, const struct hk_band_wide_way *way,
                      uint32_t device, char *error, size_t size)
{
  *out = NULL;
  const int wrong = check_shape(s, way, error, size);
  if (wrong)
    return wrong;
  struct hk_band_wide *w = calloc(1, sizeof *w);
  if (!w) {
    snprintf(error, size, "no memory");
    return -ENOMEM;
  }
  w->device = (int)device;
  w->matrix = (struct hk_wide_matrix){ .n = s->n, .below = s->below, .above = s->above };
  bool clusters = false;
  cudaError_t failed = cudaSetDevice(w->device);
  if (!failed)
    failed = (cudaError_t)hk_wide_has_clusters(&clusters);
  if (!failed && hk_wide_panel_blocks(s->below, clusters) == 0) {
    hk_band_wide_close(w);
    return wide_gpu_refuse(error, size,
                           "this GPU, or this build, has no clusters of thread blocks, which so many diagonals need");
  }
  if (!failed) {
    make_plans(&w->parted, &w->whole, s, way, clusters);
    failed = wide_gpu_set_up(w);
  }
  if (failed) {
    hk_band_wide_close(w);
    return hk_cuda_error(error, size, failed, "a wide band system needs", hk_band_wide_bytes(s, way));
  }
  *out = w;
  return 0;
}

void hk_band_wide_close(struct hk_band_wide *w)
{
  if (!w)
    return;
  (void)cudaSetDevice(w->device);
  if (w->ahead)
    (void)cudaStreamDestroy(w->ahead);
  if (w->rest)
    (void)cudaStreamDestroy(w->rest);
  if (w->panel_done)
    (void)cudaEventDestroy(w->panel_done);
  if (w->rest_done)
    (void)cudaEventDestroy(w->rest_done);
  (void)cudaFree(w->numbers);
  (void)cudaFree(w->a);
  free(w);
}

/* --- factors ------------------------------------------------------------------------------------------------------------ */

/* Factorises the block from `row` on: its panels, each followed by the other columns of the block. */
static int factorise_block(struct hk_band_wide *w, const struct hk_wide_layout *l, uint32_t block, uint32_t row)
{
  int failed = 0;
  for (uint32_t at = row; !failed && at < row + block && at < l->longest; at += HK_WIDE_PANEL) {
    const struct hk_wide_step step = { at, HK_WIDE_PANEL, row, at - row, at + HK_WIDE_PANEL, row + block, HK_WIDE_OWN };
    failed = hk_wide_panel(l, at, w->ahead);
    if (!failed && l->border)
      failed = hk_wide_border(l, at, w->ahead);
    if (!failed && block > HK_WIDE_PANEL)
      failed = hk_wide_sides(l, &step, w->ahead);
    if (!failed && block > HK_WIDE_PANEL)
      failed = hk_wide_product(l, &step, w->ahead);
  }
  return failed;
}

static int step_on(const struct hk_wide_layout *l, const struct hk_wide_step *step, cudaStream_t stream)
{
  const int failed = hk_wide_sides(l, step, stream);
  return failed ? failed : hk_wide_product(l, step, stream);
}

/* The right sides are columns, too. */
static int factorise(struct hk_band_wide *w, const struct hk_wide_layout *l, uint32_t block)
{
  int failed = (int)cudaEventRecord(w->rest_done, w->rest);
  if (!failed)
    failed = (int)cudaStreamWaitEvent(w->ahead, w->rest_done, 0);
  for (uint32_t row = 0; !failed && row < l->longest; row += block) {
    const uint32_t end = row + block + l->reach, second = row + 2 * block < end ? row + 2 * block : end;
    const struct hk_wide_step next = { row, block, 0, 0, row + block, second, HK_WIDE_NONE_MORE },
                              rest = { row, block, 0, 0, second, end, HK_WIDE_ALL };
    failed = factorise_block(w, l, block, row);
    if (!failed)
      failed = (int)cudaEventRecord(w->panel_done, w->ahead);
    if (!failed)
      failed = (int)cudaStreamWaitEvent(w->ahead, w->rest_done, 0); /* of the block before */
    if (!failed)
      failed = step_on(l, &next, w->ahead);
    if (!failed)
      failed = (int)cudaStreamWaitEvent(w->rest, w->panel_done, 0);
    if (!failed)
      failed = step_on(l, &rest, w->rest);
    if (!failed)
      failed = (int)cudaEventRecord(w->rest_done, w->rest);
  }
  if (!failed)
    failed = (int)cudaEventRecord(w->panel_done, w->ahead);
  return failed ? failed : (int)cudaStreamWaitEvent(w->rest, w->panel_done, 0);
}

static const struct hk_wide_layout *separators_of(const struct hk_wide_plan *p)
{
  return p->whole.segments ? &p->whole : NULL;
}

/* Factorises the matrix by a plan, with the right side `b`. */
static int factorise_all(struct hk_band_wide *w, const struct hk_wide_plan *p, const double *b)
{
  int failed = (int)cudaMemsetAsync(w->numbers, 0, p->numbers * sizeof *w->numbers, w->rest);
  w->used = p;
  if (!failed)
    failed = hk_wide_spread(&p->parts, &w->matrix, w->rest);
  if (!failed)
    failed = hk_wide_spread_right(&p->parts, b, w->rest);
  if (!failed)
    failed = factorise(w, &p->parts, p->block);
  if (!failed && p->whole.segments)
    failed = hk_wide_join(&p->parts, &p->whole, &w->matrix, w->rest);
  if (!failed && p->whole.segments)
    failed = hk_wide_join_right(&p->parts, &p->whole, b, w->rest);
  if (!failed && p->whole.segments)
    failed = factorise(w, &p->whole, p->whole_block);
  return failed ? failed : hk_wide_find_singular(&p->parts, separators_of(p), w->largest, HK_BAND_PIVOT, w->sums, w->rest);
}

/* --- solutions ---------------------------------------------------------------------------------------------------------- */

/* Eliminates the right side in `columns`. */
static int forward(struct hk_band_wide *w, const struct hk_wide_layout *l, uint32_t block)
{
  int failed = 0;
  for (uint32_t row = 0; !failed && row < l->longest; row += block) {
    const struct hk_wide_step step = { row, block, 0, 0, 0, 0, HK_WIDE_RIGHT };
    failed = step_on(l, &step, w->rest);
  }
  return failed;
}

static int forward_all(struct hk_band_wide *w, const double *b)
{
  const struct hk_wide_plan *p = w->used;
  int failed = hk_wide_spread_right(&p->parts, b, w->rest);
  if (!failed)
    failed = forward(w, &p->parts, p->block);
  if (!failed && p->whole.segments)
    failed = hk_wide_join_right(&p->parts, &p->whole, b, w->rest);
  return failed || !p->whole.segments ? failed : forward(w, &p->whole, p->whole_block);
}

static int back(struct hk_band_wide *w, const struct hk_wide_layout *l)
{
  int failed = 0;
  for (uint32_t block = 0; !failed && block * HK_WIDE_PANEL < l->longest; block++)
    failed = hk_wide_back(l, block, w->rest);
  return failed;
}

/* Computes x from the eliminated right sides, and writes it or adds to it; then the residual and its sums. */
static int back_all(struct hk_band_wide *w, const double *b, double *x, bool add)
{
  const struct hk_wide_plan *p = w->used;
  int failed = 0;
  if (p->whole.segments) {
    failed = back(w, &p->whole);
    if (!failed)
      failed = hk_wide_part(&p->parts, &p->whole, w->rest);
  }
  if (!failed)
    failed = back(w, &p->parts);
  if (!failed)
    failed = hk_wide_gather(&p->parts, separators_of(p), x, add, w->rest);
  if (!failed)
    failed = (int)cudaMemsetAsync(w->sums, 0, offsetof(struct hk_wide_sums, singular), w->rest);
  return failed ? failed : hk_wide_residual(&w->matrix, b, x, w->residual, w->sums, w->rest);
}

/* Waits for the sums of a solution, which determine the outcome. */
static int wide_gpu_judge(struct hk_band_wide *w, struct hk_band_outcome *o)
{
  struct hk_wide_sums sums;
  int failed = (int)cudaMemcpyAsync(&sums, w->sums, sizeof sums, cudaMemcpyDeviceToHost, w->rest);
  if (!failed)
    failed = (int)cudaStreamSynchronize(w->rest);
  if (failed)
    return failed;
  o->error = sums.residual > 0 ? sums.residual / (sums.matrix * sums.solution + sums.right) : isnan(sums.residual) ? INFINITY : 0;
  o->singular = sums.singular < w->matrix.n ? sums.singular : 0;
  o->status = sums.singular < w->matrix.n ? -EDOM : o->error <= HK_BAND_ERROR ? 0 : -ERANGE;
  return 0;
}

/* Judges x, and refines it once if its error is too large. */
static int refine(struct hk_band_wide *w, const double *b, double *x, struct hk_band_outcome *o)
{
  int failed = wide_gpu_judge(w, o);
  if (failed || o->status != -ERANGE || !isfinite(o->error))
    return failed;
  o->refined = 1;
  failed = forward_all(w, w->residual);
  if (!failed)
    failed = back_all(w, b, x, true);
  return failed ? failed : wide_gpu_judge(w, o);
}

static int solve_by(struct hk_band_wide *w, const struct hk_wide_plan *p, const double *b, double *x, struct hk_band_outcome *o)
{
  *o = (struct hk_band_outcome){ .whole = p == &w->whole && w->parted.parts.segments > 1 };
  int failed = (int)cudaMemsetAsync(&w->sums->singular, 0xff, sizeof w->sums->singular, w->rest);
  if (!failed)
    failed = factorise_all(w, p, b);
  if (!failed)
    failed = back_all(w, b, x, false);
  return failed ? failed : refine(w, b, x, o);
}

static int ended(struct hk_band_wide *w, int failed)
{
  const cudaError_t waited = cudaStreamSynchronize(w->rest), ahead = cudaStreamSynchronize(w->ahead);
  if (!failed && !waited && !ahead)
    return 0;
  w->used = NULL;
  (void)cudaGetLastError();
  return failed == cudaErrorMemoryAllocation ? -ENOMEM : -EIO;
}

int hk_band_wide_solve_there(struct hk_band_wide *w, const double *a, const double *b, double *x, struct hk_band_outcome *o)
{
  int failed = (int)cudaSetDevice(w->device);
  w->matrix.a = a;
  if (!failed)
    failed = hk_wide_largest(&w->matrix, w->largest, w->rest);
  if (!failed)
    failed = solve_by(w, &w->parted, b, x, o);
  if (!failed && o->status != 0 && w->parted.parts.segments > 1)
    failed = solve_by(w, &w->whole, b, x, o);
  return ended(w, failed);
}

int hk_band_wide_solve_with_there(struct hk_band_wide *w, const double *b, double *x, struct hk_band_outcome *o)
{
  if (!w->used)
    return -EINVAL;
  *o = (struct hk_band_outcome){ .whole = w->used == &w->whole && w->parted.parts.segments > 1 };
  int failed = (int)cudaSetDevice(w->device);
  if (!failed)
    failed = forward_all(w, b);
  if (!failed)
    failed = back_all(w, b, x, false);
  return ended(w, failed ? failed : refine(w, b, x, o));
}

/* --- from the host ------------------------------------------------------------------------------------------------------ */

static int wide_gpu_make_room(struct hk_band_wide *w)
{
  const struct hk_wide_matrix *m = &w->matrix;
  const size_t numbers = m->n * ((size_t)m->below + 1 + m->above);
  if (w->a)
    return 0;
  const int failed = (int)cudaMalloc((void **)&w->a, (numbers + 2 * (size_t)m->n) * sizeof *w->a);
  if (failed) {
    w->a = NULL;
    return failed;
  }
  w->b = w->a + numbers;
  w->x = w->b + m->n;
  return 0;
}

static int copied(struct hk_band_wide *w, double *x, int status)
{
  if (status == 0 && cudaMemcpy(x, w->x, w->matrix.n * sizeof *x, cudaMemcpyDeviceToHost) != cudaSuccess)
    return ended(w, cudaErrorUnknown);
  return status;
}

int hk_band_wide_solve(struct hk_band_wide *w, const double *a, const double *b, double *x, struct hk_band_outcome *o)
{
  const struct hk_wide_matrix *m = &w->matrix;
  int failed = (int)cudaSetDevice(w->device);
  if (!failed)
    failed = wide_gpu_make_room(w);
  if (!failed)
    failed = (int)wide_gpu_up(w, w->a, a, m->n * ((size_t)m->below + 1 + m->above) * sizeof *a);
  if (!failed)
    failed = (int)wide_gpu_up(w, w->b, b, m->n * sizeof *b);
  return failed ? ended(w, failed) : copied(w, x, hk_band_wide_solve_there(w, w->a, w->b, w->x, o));
}

int hk_band_wide_solve_with(struct hk_band_wide *w, const double *b, double *x, struct hk_band_outcome *o)
{
  int failed = (int)cudaSetDevice(w->device);
  if (!failed)
    failed = wide_gpu_make_room(w);
  if (!failed)
    failed = (int)wide_gpu_up(w, w->b, b, w->matrix.n * sizeof *b);
  return failed ? ended(w, failed) : copied(w, x, hk_band_wide_solve_with_there(w, w->b, w->x, o));
}

/* --- pivots ------------------------------------------------------------------------------------------------------------- */

/* Exchanges the rows of a panel. */
static void exchange_rows(const struct hk_wide_exchange *e, uint32_t *row, uint32_t width)
{
  uint32_t pivot[HK_WIDE_PANEL];
  for (uint32_t i = 0; i < width; i++)
    pivot[i] = row[e->from[i]];
  for (uint32_t i = 0; i < width; i++)
    if (e->to[i] != HK_WIDE_NONE)
      row[e->to[i]] = row[i];
  for (uint32_t i = 0; i < width; i++)
    row[i] = pivot[i];
}

int hk_band_wide_pivots(const struct hk_band_wide *w, uint32_t *row)
{
  const uint32_t n = w->matrix.n, panels = (n + HK_WIDE_PANEL - 1) / HK_WIDE_PANEL;
  if (!w->used || w->used->parts.segments != 1)
    return -EINVAL;
  struct hk_wide_exchange *e = malloc(panels * sizeof *e);
  if (!e)
    return -ENOMEM;
  cudaError_t failed = cudaSetDevice(w->device);
  if (!failed)
    failed = cudaMemcpy(e, w->used->segment[0].exchange, panels * sizeof *e, cudaMemcpyDeviceToHost);
  for (uint32_t i = 0; i < n; i++)
    row[i] = i;
  for (uint32_t k = 0; k < panels && !failed; k++)
    exchange_rows(&e[k], row + (size_t)k * HK_WIDE_PANEL,
                  n - k * HK_WIDE_PANEL < HK_WIDE_PANEL ? n - k * HK_WIDE_PANEL : HK_WIDE_PANEL);
  free(e);
  return failed ? -EIO : 0;
}
