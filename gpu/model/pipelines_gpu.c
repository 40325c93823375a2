/* Host side of lines on the GPU: memory, layout, copies. See pipelines_gpu.h. */
#include "gpu/model/pipelines_gpu.h"
#include "gpu/cuda_error.h"
#include "gpu/model/pipes_kernels.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES 32u

struct hk_pipelines {
  const struct hk_model_plan *plan; /* the owner's */
  int device;
  struct hk_pipes_batch batch;
  char *memory; /* on the device: all that follows, and what the batch points to */
  struct hk_pipelines_line *line;
  double *seen, *staged; /* sensors, and two of each line; a state of the longest line */
  uint64_t *place;
  double *scale;
  uint64_t *first; /* on the host, as the following: of the batch */
  double *there;   /* all states in the layout of the device */
  double *see;     /* as seen */
  cudaStream_t stream;
};

static uint32_t groups_of(const struct hk_model_plan *plan)
{
  return (plan->lines + LANES - 1) / LANES;
}

static uint32_t seen_of(const struct hk_model_plan *plan)
{
  return plan->sensors + 2 * plan->lines;
}

/* Points of a group's longest line. */
static uint64_t points_of(const struct hk_model_plan *plan, uint32_t group)
{
  uint64_t most = 0;
  for (uint32_t i = group * LANES; i < plan->lines && i < (group + 1) * LANES; i++)
    most = hk_model_points(&plan->line[i]) > most ? hk_model_points(&plan->line[i]) : most;
  return most;
}

static uint64_t all_points(const struct hk_model_plan *plan)
{
  uint64_t points = 0;
  for (uint32_t g = 0; g < groups_of(plan); g++)
    points += points_of(plan, g);
  return points;
}

/* --- memory ------------------------------------------------------------------------------------------------------------- */

/* Allocates `bytes` bytes of the device's memory, after the first *at. */
static void *pipelines_gpu_take(char *memory, uint64_t *at, uint64_t bytes)
{
  void *from = memory ? memory + *at : NULL;
  *at += (bytes + 255) / 256 * 256;
  return from;
}

/* Gives all their places; memory NULL: only counts. Returns the bytes. */
static uint64_t pipelines_gpu_lay_out(struct hk_pipelines *p, const struct hk_model_plan *plan, char *memory, uint64_t points)
{
  const uint64_t numbers = points * LANES * sizeof(double);
  struct hk_pipes_batch *b = &p->batch;
  uint64_t at = 0;
  b->cells = pipelines_gpu_take(memory, &at, plan->lines * sizeof *b->cells);
  b->first = pipelines_gpu_take(memory, &at, groups_of(plan) * sizeof *b->first);
  b->impedance = pipelines_gpu_take(memory, &at, plan->lines * sizeof *b->impedance);
  b->cell = pipelines_gpu_take(memory, &at, 4 * numbers);
  b->state = pipelines_gpu_take(memory, &at, 2 * numbers);
  b->work = pipelines_gpu_take(memory, &at, 2 * (HK_PIPES_COLUMNS - 1) * numbers);
  p->line = pipelines_gpu_take(memory, &at, plan->lines * sizeof *p->line);
  p->seen = pipelines_gpu_take(memory, &at, seen_of(plan) * sizeof *p->seen);
  p->staged = pipelines_gpu_take(memory, &at, 2 * ((uint64_t)plan->longest + 1) * sizeof *p->staged);
  p->place = pipelines_gpu_take(memory, &at, seen_of(plan) * sizeof *p->place);
  p->scale = pipelines_gpu_take(memory, &at, seen_of(plan) * sizeof *p->scale);
  return at;
}

uint64_t hk_pipelines_gpu_bytes(const struct hk_model_plan *plan)
{
  struct hk_pipelines none = { 0 };
  return pipelines_gpu_lay_out(&none, plan, NULL, all_points(plan));
}

static void close_gpu(struct hk_pipelines *p)
{
  if (!p)
    return;
  (void)cudaSetDevice(p->device);
  if (p->stream)
    (void)cudaStreamDestroy(p->stream);
  (void)cudaFree(p->memory);
  (void)cudaFreeHost(p->see);
  free(p->first);
  free(p->there);
  free(p);
}

/* --- what never changes ------------------------------------------------------------------------------------------------- */

static uint64_t state_place(const struct hk_pipelines *p, uint32_t line, uint64_t at)
{
  return hk_pipes_place(p->first[line / LANES], line, at, 2);
}

static cudaError_t up(const struct hk_pipelines *p, const void *there, const void *here, size_t bytes)
{
  return cudaMemcpyAsync((void *)(uintptr_t)there, here, bytes, cudaMemcpyHostToDevice, p->stream);
}

/* Cells, side by side. */
static cudaError_t put_cells(const struct hk_pipelines *p)
{
  const struct hk_model_plan *plan = p->plan;
  const uint64_t numbers = 4 * p->batch.points * LANES;
  double *cell = calloc(numbers, sizeof *cell);
  if (!cell)
    return cudaErrorMemoryAllocation;
  for (uint32_t i = 0; i < plan->lines; i++)
    for (uint32_t j = 0; j < plan->line[i].cells; j++) {
      const struct hk_pipeline_cell *is = &plan->cell[plan->line[i].cell + j];
      const double number[] = { is->wave, is->push, is->friction, is->lift };
      for (uint32_t k = 0; k < 4; k++)
        cell[hk_pipes_place(p->first[i / LANES], i, 4 * (uint64_t)j + k, 4)] = number[k];
    }
  const cudaError_t failed = up(p, p->batch.cell, cell, numbers * sizeof *cell);
  free(cell); /* the copy of what is not pinned has begun with a copy */
  return failed;
}

/* By line, and where sensors and ends are. */
static cudaError_t put_lines(const struct hk_pipelines *p)
{
  const struct hk_model_plan *plan = p->plan;
  const uint32_t n = seen_of(plan);
  uint32_t *cells = malloc(plan->lines * sizeof *cells);
  double *impedance = malloc(plan->lines * sizeof *impedance), *scale = malloc(n * sizeof *scale);
  uint64_t *place = malloc(n * sizeof *place);
  cudaError_t failed = cells && impedance && scale && place ? cudaSuccess : cudaErrorMemoryAllocation;
  for (uint32_t i = 0; !failed && i < plan->sensors; i++) {
    const struct hk_model_sensor *s = &plan->sensor[i];
    place[i] = state_place(p, s->line, 2 * (uint64_t)s->point + s->flow);
    scale[i] = s->flow ? 1 : plan->line[s->line].impedance;
  }
  for (uint32_t i = 0; !failed && i < plan->lines; i++) {
    cells[i] = plan->line[i].cells;
    impedance[i] = plan->line[i].impedance;
    place[plan->sensors + 2 * i] = state_place(p, i, 1);
    place[plan->sensors + 2 * i + 1] = state_place(p, i, 2 * (uint64_t)cells[i] + 1);
    scale[plan->sensors + 2 * i] = scale[plan->sensors + 2 * i + 1] = 1;
  }
  failed = failed ? failed : up(p, p->batch.cells, cells, plan->lines * sizeof *cells);
  failed = failed ? failed : up(p, p->batch.impedance, impedance, plan->lines * sizeof *impedance);
  failed = failed ? failed : up(p, p->batch.first, p->first, groups_of(plan) * sizeof *p->first);
  failed = failed ? failed : up(p, p->place, place, n * sizeof *place);
  failed = failed ? failed : up(p, p->scale, scale, n * sizeof *scale);
  const cudaError_t waited = cudaStreamSynchronize(p->stream);
  free(cells);
  free(impedance);
  free(scale);
  free(place);
  return failed ? failed : waited;
}

/* --- life --------------------------------------------------------------------------------------------------------------- */

static bool make_host(struct hk_pipelines *p)
{
  uint64_t points = 0;
  p->first = malloc(groups_of(p->plan) * sizeof *p->first);
  for (uint32_t g = 0; p->first && g < groups_of(p->plan); g++) {
    p->first[g] = points;
    points += points_of(p->plan, g);
  }
  p->batch.lines = p->plan->lines;
  p->batch.points = points;
  p->there = malloc(2 * points * LANES * sizeof *p->there);
  return p->first && p->there;
}

static int open_gpu(struct hk_pipelines **out, const struct hk_model_plan *plan, uint32_t number, char *error, size_t size)
{
  struct hk_pipelines *p = calloc(1, sizeof *p);
  if (p) {
    p->plan = plan;
    p->device = (int)number;
  }
  if (!p || !make_host(p)) {
    snprintf(error, size, "out of memory");
    close_gpu(p);
    return -ENOMEM;
  }
  const uint64_t bytes = hk_pipelines_gpu_bytes(plan);
  cudaError_t failed = cudaSetDevice(p->device);
  failed = failed ? failed : cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking);
  failed = failed ? failed : cudaMallocHost((void **)&p->see, seen_of(plan) * sizeof *p->see);
  failed = failed ? failed : cudaMalloc((void **)&p->memory, bytes);
  if (!failed) {
    (void)pipelines_gpu_lay_out(p, plan, p->memory, p->batch.points);
    failed = cudaMemsetAsync(p->batch.state, 0, 2 * p->batch.points * LANES * sizeof(double), p->stream);
  }
  failed = failed ? failed : put_cells(p);
  failed = failed ? failed : put_lines(p);
  if (failed) {
    close_gpu(p);
    return hk_cuda_error(error, size, failed, "its lines need", bytes);
  }
  *out = p;
  return 0;
}

/* --- from step to step -------------------------------------------------------------------------------------------------- */

/* Waits for all operations. Returns 0 or -EIO. */
static int pipelines_gpu_done(const struct hk_pipelines *p, cudaError_t failed)
{
  const cudaError_t waited = cudaStreamSynchronize(p->stream);
  if (!failed && !waited)
    return 0;
  (void)cudaGetLastError();
  return -EIO;
}

static int step_gpu(struct hk_pipelines *p, struct hk_pipelines_line *line, double dt, const struct hk_pipelines_seen *seen)
{
  const struct hk_model_plan *plan = p->plan;
  const size_t lines = plan->lines * sizeof *line;
  cudaError_t failed = cudaSetDevice(p->device);
  failed = failed ? failed : up(p, p->line, line, lines);
  failed = failed ? failed : (cudaError_t)hk_pipes_launch_step(&p->batch, p->line, dt, p->stream);
  failed =
      failed ? failed : (cudaError_t)hk_pipes_launch_see(p->batch.state, p->place, p->scale, p->seen, seen_of(plan), p->stream);
  failed = failed ? failed : cudaMemcpyAsync(line, p->line, lines, cudaMemcpyDeviceToHost, p->stream);
  failed = failed ? failed : cudaMemcpyAsync(p->see, p->seen, seen_of(plan) * sizeof *p->see, cudaMemcpyDeviceToHost, p->stream);
  if (pipelines_gpu_done(p, failed) != 0)
    return -EIO;
  memcpy(seen->value, p->see, plan->sensors * sizeof *p->see);
  memcpy(seen->flow, p->see + plan->sensors, 2 * (size_t)plan->lines * sizeof *p->see);
  return 0;
}

static int put_gpu(struct hk_pipelines *p, uint32_t line, const double *state)
{
  const uint32_t n = 2 * hk_model_points(&p->plan->line[line]);
  cudaError_t failed = cudaSetDevice(p->device);
  failed = failed ? failed : up(p, p->staged, state, n * sizeof *state);
  failed = failed ? failed : (cudaError_t)hk_pipes_launch_put(p->batch.state, state_place(p, line, 0), p->staged, n, p->stream);
  return pipelines_gpu_done(p, failed);
}

static int get_gpu(struct hk_pipelines *p, double *state)
{
  cudaError_t failed = cudaSetDevice(p->device);
  failed = failed ? failed
                  : cudaMemcpyAsync(p->there, p->batch.state, 2 * p->batch.points * LANES * sizeof *p->there,
                                    cudaMemcpyDeviceToHost, p->stream);
  if (pipelines_gpu_done(p, failed) != 0)
    return -EIO;
  for (uint32_t i = 0; i < p->plan->lines; i++)
    for (uint32_t k = 0; k < 2 * hk_model_points(&p->plan->line[i]); k++)
      *state++ = p->there[state_place(p, i, k)];
  return 0;
}

const struct hk_pipelines_kind hk_pipelines_gpu = { open_gpu, close_gpu, step_gpu, put_gpu, get_gpu, NULL, true };
