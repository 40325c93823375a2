/* What is put on the streams for a batch: copies, grouping by sensor, a launch for each family of detectors, a sweep
 * or an export: see batch.h.
 *
 * Failure modes: a cudaError_t, of which the caller makes a status; a part of the batch may be on the device then. */
#include "gpu/backend/launch.h"
#include "gpu/backend/batch.h"
#include "gpu/backend/batch_kernels.h"
#include "gpu/backend/small_batch.h"

#include <cuda_runtime_api.h>
#include <string.h>

#define SMALL 16384  /* points of a batch of which nothing is copied */
#define LOOKED_AT 16 /* points worth looking at for each launch that may be spared */

static struct hk_cuda_columns launch_columns_of(const struct hk_cuda_batches *r, const struct hk_cuda_batch_place *p)
{
  const struct hk_cuda_batch_columns d = hk_cuda_batch_columns(p, r->room);
  return (struct hk_cuda_columns){
    .time = d.points.time,
    .value = d.points.value,
    .order = r->work.order,
    .score = p->small ? p->batch->score : d.score,
    .state = p->small ? p->batch->state : d.state,
    .event = p->batch->event,
    .n_events = &r->work.counters->events,
    .capacity = p->batch->capacity,
    .arrival = p->batch->arrival,
    .refused = &r->work.counters->refused,
  };
}

static cudaError_t copy_up(const struct hk_cuda_batches *r, const struct hk_cuda_batch_place *p)
{
  const struct hk_cuda_points to = hk_cuda_batch_columns(p, r->room).points;
  const struct hk_batch *batch = p->batch;
  cudaError_t failed = cudaMemcpyAsync(to.slot, batch->slot, batch->n * sizeof *to.slot, cudaMemcpyHostToDevice, r->up);
  if (!failed)
    failed = cudaMemcpyAsync(to.time, batch->time, batch->n * sizeof *to.time, cudaMemcpyHostToDevice, r->up);
  if (!failed)
    failed = cudaMemcpyAsync(to.value, batch->value, batch->n * sizeof *to.value, cudaMemcpyHostToDevice, r->up);
  if (!failed)
    failed = cudaEventRecord(p->up, r->up);
  if (!failed)
    failed = cudaStreamWaitEvent(r->main, p->up, 0);
  return failed;
}

static cudaError_t copy_down(const struct hk_cuda_batches *r, const struct hk_cuda_batch_place *p)
{
  const struct hk_cuda_batch_columns d = hk_cuda_batch_columns(p, r->room);
  const struct hk_batch *batch = p->batch;
  cudaError_t failed = cudaEventRecord(p->scored, r->main);
  if (!failed)
    failed = cudaStreamWaitEvent(r->down, p->scored, 0);
  if (!failed)
    failed = cudaMemcpyAsync(batch->score, d.score, batch->n * sizeof *d.score, cudaMemcpyDeviceToHost, r->down);
  if (!failed)
    failed = cudaMemcpyAsync(batch->state, d.state, batch->n, cudaMemcpyDeviceToHost, r->down);
  return failed;
}

static void part_add(struct hk_cuda_batches *r, uint32_t detector, uint32_t tasks)
{
  struct hk_cuda_batch_part *part = &r->parts[r->families.of[detector]];
  part->tasks += tasks;
  part->work += tasks * hk_family_work(&r->detectors[detector]);
}

/* What falls to each family: as many tasks as it has sensors, at most; where points are few for so many families, as points say.
 */
static void divide(struct hk_cuda_batches *r, const struct hk_batch *batch, const struct hk_cuda_small_batch *small)
{
  const struct hk_records *sensors = &r->records;
  memset(r->parts, 0, r->families.n * sizeof *r->parts);
  if (small->n > 0) {
    for (uint32_t t = 0; t < small->n; t++)
      part_add(r, small->detector[t], 1);
  } else if (r->families.n > 1 && batch->n / LOOKED_AT < r->families.n) {
    for (uint32_t i = 0; i < batch->n; i++) {
      const struct hk_cuda_slot *entry = hk_records_at(sensors, batch->slot[i]);
      if (entry)
        part_add(r, entry->detector, 1);
    }
  } else {
    for (uint32_t i = 0; i < sensors->n_active; i++)
      part_add(r, sensors->active[i], hk_records_most(sensors, sensors->active[i]));
  }
}

/* Blocks that a family is launched with. Few tasks get a warp each. */
static uint32_t launch_blocks_of(const struct hk_cuda_batches *r, uint32_t family, uint32_t points, bool small)
{
  const struct hk_cuda_family *f = &r->families.family[family];
  const uint32_t at_once = f->kernel->warps * (small ? 1 : f->kernel->side);
  const uint32_t tasks = r->parts[family].tasks < points ? r->parts[family].tasks : points;
  const uint32_t blocks = tasks / at_once + (tasks % at_once > 0);
  return blocks < f->resident ? blocks : f->resident;
}

/* Rounds of the device's warps that a family's tasks take if it has the device to itself. */
static double rounds_of(const struct hk_cuda_batches *r, uint32_t family)
{
  const struct hk_cuda_family *f = &r->families.family[family];
  return (double)r->parts[family].tasks / f->kernel->side / (f->resident * f->kernel->warps);
}

/* Sets the warps among which each family shares out its tasks: all that the device has, if all families find room on it side by
 * side, or if the family fills it alone, because then the others wait; else in proportion to their work, so that they end
 * together. */
static void apportion(struct hk_cuda_batches *r, uint32_t points)
{
  double work = 0, load = 0, tasks = 0;
  for (uint32_t i = 0; i < r->families.n; i++) {
    work += r->parts[i].work;
    tasks += r->parts[i].tasks;
    load += rounds_of(r, i);
  }
  const double here = points < tasks ? points / tasks : 1; /* share of the tasks that have points */
  for (uint32_t i = 0; i < r->families.n; i++) {
    const struct hk_cuda_family *f = &r->families.family[i];
    const bool all = load * here <= 1 || rounds_of(r, i) * here >= 1;
    const double warps = f->resident * f->kernel->warps * (all ? 1 : r->parts[i].work / work);
    r->parts[i].warps = warps < 1 ? 1 : (uint32_t)warps;
  }
}

/* Launches a family; all: the launch but for what is the family's own. */
static cudaError_t launch_family(const struct hk_cuda_batches *r, cudaStream_t stream, uint32_t number, uint32_t points,
                                 const struct hk_cuda_small_batch *small, struct hk_cuda_launch *all)
{
  const struct hk_cuda_family *f = &r->families.family[number];
  all->family = number;
  all->members = r->families.members + f->first;
  all->n_members = f->n;
  all->size = f->size;
  all->scratch = f->scratch;
  all->warps = r->parts[number].warps;
  all->points = points;
  all->tasks = r->parts[number].tasks;
  all->small.n = 0;
  for (uint32_t t = 0; t < small->n; t++) {
    if (r->families.of[small->detector[t]] != number)
      continue;
    all->small.task[all->small.n] = small->task[t];
    all->small.detector[all->small.n++] = small->detector[t];
  }
  return (cudaError_t)f->kernel->launch(stream, launch_blocks_of(r, number, points, small->n > 0), f->shared, all);
}

/* A launch for each family, next to each other on side streams where there are several. small: none (n = 0), or the tasks. */
static cudaError_t launch_scores(struct hk_cuda_batches *r, const struct hk_cuda_batch_place *p,
                                 const struct hk_cuda_small_batch *small)
{
  const uint32_t points = p->batch->n;
  struct hk_cuda_launch all = {
    .detectors = r->families.detectors,
    .list = r->records.directory.list,
    .work = r->work,
    .columns = launch_columns_of(r, p),
    .end = { .answer = p->answer,
             .number = p->number,
             .n_detectors = small->n > 0 ? 0 : r->n_detectors,
             .n_families = r->families.n },
  };
  if (small->n > 0) {
    memcpy(all.small.order, small->order, points * sizeof *small->order);
    memcpy(all.small.time, small->time, points * sizeof *small->time);
    memcpy(all.small.value, small->value, points * sizeof *small->value);
  }
  uint32_t n = 0;
  divide(r, p->batch, small);
  apportion(r, points);
  for (uint32_t i = 0; i < r->families.n; i++) {
    all.end.blocks += launch_blocks_of(r, i, points, small->n > 0);
    n += r->parts[i].tasks > 0;
  }
  if (n == 0) /* no slot is bound: the batch was refused */
    return (cudaError_t)hk_cuda_finish(r->main, &r->work, &all.end);
  const uint32_t sides = n < 2 ? 0 : n < HK_CUDA_SIDE_STREAMS ? n : HK_CUDA_SIDE_STREAMS;
  cudaError_t failed = sides > 0 ? cudaEventRecord(r->fork, r->main) : cudaSuccess;
  for (uint32_t i = 0; i < sides && !failed; i++)
    failed = cudaStreamWaitEvent(r->side[i], r->fork, 0);
  for (uint32_t i = 0, next = 0; i < r->families.n && !failed; i++)
    if (r->parts[i].tasks > 0)
      failed = launch_family(r, sides > 0 ? r->side[next++ % sides] : r->main, i, points, small, &all);
  for (uint32_t i = 0; i < sides && !failed; i++) {
    failed = cudaEventRecord(r->joined[i], r->side[i]);
    if (!failed)
      failed = cudaStreamWaitEvent(r->main, r->joined[i], 0);
  }
  return failed;
}

static cudaError_t launch_points(struct hk_cuda_batches *r, const struct hk_cuda_batch_place *p)
{
  const struct hk_cuda_points points = hk_cuda_batch_columns(p, r->room).points;
  const struct hk_cuda_points from = { p->batch->slot, p->batch->time, p->batch->value };
  struct hk_cuda_small_batch small;
  if (hk_small_batch_make(&small, &r->records, p->batch))
    return launch_scores(r, p, &small);
  cudaError_t failed = p->small ? cudaSuccess : copy_up(r, p);
  if (!failed)
    failed = (cudaError_t)hk_cuda_group(r->main, &r->records.directory, &r->work, p->small ? &from : NULL, &points, p->batch->n);
  small.n = 0;
  return failed ? failed : launch_scores(r, p, &small);
}

/* Sweeps as many records as the batch surely has room for, as a sensor may give two notices; the next sweep goes on there. So
 * which notices come does not depend on the order in which the device writes them. */
static cudaError_t launch_launch_sweep(struct hk_cuda_batches *r, const struct hk_cuda_batch_place *p)
{
  const struct hk_cuda_columns columns = launch_columns_of(r, p);
  struct hk_records *sensors = &r->records;
  uint64_t left = 0;
  for (uint32_t i = 0; i < sensors->n_slabs; i++)
    left += sensors->slabs[i].used;
  if (left > p->batch->capacity / 2)
    left = p->batch->capacity / 2;
  cudaError_t failed = cudaSuccess;
  while (left > 0 && !failed) {
    const struct hk_cuda_slab *slab = &sensors->slabs[r->sweep_slab];
    const struct hk_detector *d = &r->detectors[slab->detector];
    const uint32_t rest = slab->used - r->sweep_record, n = left < rest ? (uint32_t)left : rest;
    if (n > 0)
      failed = (cudaError_t)hk_cuda_sweep(r->main, d, &sensors->directory, slab->base + r->sweep_record * hk_cuda_record_bytes(d),
                                          n, p->batch->idle, &columns);
    left -= n;
    r->sweep_record += n;
    if (r->sweep_record == slab->used) {
      r->sweep_slab = (r->sweep_slab + 1) % sensors->n_slabs;
      r->sweep_record = 0;
    }
  }
  return failed;
}

/* Packs the images on `main`, between the batches before and after, and copies them down next to whatever follows; the next
 * export waits for that copy. */
static cudaError_t launch_export(const struct hk_cuda_batches *r, const struct hk_cuda_batch_place *p)
{
  if (p->images == 0)
    return cudaSuccess;
  const cudaError_t failed = cudaStreamWaitEvent(r->main, r->images_free, 0);
  return failed ? failed : (cudaError_t)hk_cuda_fetch(r->main, p->batch->work, p->batch->n, r->images);
}

static cudaError_t copy_images_down(const struct hk_cuda_batches *r, const struct hk_cuda_batch_place *p)
{
  cudaError_t failed = cudaEventRecord(p->scored, r->main);
  if (!failed)
    failed = cudaStreamWaitEvent(r->down, p->scored, 0);
  if (!failed && p->images > 0)
    failed = cudaMemcpyAsync(p->batch->bulk, r->images, p->images, cudaMemcpyDeviceToHost, r->down);
  return failed ? failed : cudaEventRecord(r->images_free, r->down);
}

/* The end of a batch that has no scores. */
static cudaError_t launch_end(const struct hk_cuda_batches *r, const struct hk_cuda_batch_place *p)
{
  const struct hk_cuda_end end = { .answer = p->answer, .number = p->number };
  return (cudaError_t)hk_cuda_finish(r->main, &r->work, &end);
}

int hk_cuda_batches_launch(struct hk_cuda_batches *r, struct hk_cuda_batch_place *p, struct hk_batch *batch, uint64_t number)
{
  const bool points = batch->kind == HK_BATCH_POINTS, images = batch->kind == HK_BATCH_EXPORT;
  cudaError_t failed = cudaSuccess;
  p->batch = batch;
  p->number = number;
  p->small = !images && (!points || batch->n <= SMALL);
  hk_records_touch(&r->records);
  if (images)
    failed = launch_export(r, p);
  else if (!points)
    failed = launch_launch_sweep(r, p);
  else if (batch->n > 0)
    failed = launch_points(r, p);
  if (!failed && (!points || batch->n == 0))
    failed = launch_end(r, p);
  if (!failed && !p->small)
    failed = images ? copy_images_down(r, p) : copy_down(r, p);
  if (!failed && !p->small)
    failed = cudaEventRecord(p->finished, r->down);
  return (int)failed;
}
