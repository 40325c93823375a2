/* Memory, streams and launches: see road.h.
 *
 * Failure modes: out of memory is told with figures; of what else CUDA says the caller makes a status. */
#include "gpu/road.h"
#include "gpu/few.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define SMALL 16384    /* points of a batch of which nothing is copied */
#define LOOKED_AT 16   /* points worth looking at for each launch that may be spared */
#define PAUSE_NS 30000 /* between two looks whether a batch is done, after HK_ROAD_SPIN_NS */

/* Columns of a place on the device, for `room` points, a multiple of 16. */
struct device_columns {
  struct hk_cuda_points points;
  float *score;
  uint8_t *state;
};

#define POINT_BYTES (sizeof(int64_t) + sizeof(double) + sizeof(uint32_t) + sizeof(float) + 1)

static struct device_columns device_columns(const struct hk_road_place *p, uint32_t room)
{
  struct device_columns d;
  d.points.time = (int64_t *)p->device;
  d.points.value = (double *)(d.points.time + room);
  d.points.slot = (uint32_t *)(d.points.value + room);
  d.score = (float *)(d.points.slot + room);
  d.state = (uint8_t *)(d.score + room);
  return d;
}

int hk_road_room(struct hk_road *r, uint32_t points, char *error, size_t size)
{
  const uint32_t room = (points + 15) & ~15u;
  cudaError_t failed = cudaSuccess;
  r->room = 0;
  for (uint32_t i = 0; i < r->n_places; i++) {
    (void)cudaFree(r->places[i].device);
    r->places[i].device = NULL;
  }
  (void)cudaFree(r->work.next);
  (void)cudaFree(r->work.order);
  r->work.next = r->work.order = NULL;
  for (uint32_t i = 0; i < r->n_places && !failed; i++) {
    failed = cudaMalloc((void **)&r->places[i].device, room * POINT_BYTES);
    if (!failed) /* columns of a refused batch are copied back as they are */
      failed = cudaMemsetAsync(r->places[i].device, 0, room * POINT_BYTES, r->up);
  }
  if (!failed)
    failed = cudaMalloc((void **)&r->work.next, room * sizeof *r->work.next);
  if (!failed)
    failed = cudaMalloc((void **)&r->work.order, room * sizeof *r->work.order);
  if (!failed)
    failed = cudaStreamSynchronize(r->up);
  if (!failed) {
    r->room = room;
    return 0;
  }
  size_t left = 0, all = 0;
  (void)cudaMemGetInfo(&left, &all);
  snprintf(error, size, "CUDA, memory for %u batches of %u points (%llu bytes): %s; %zu of %zu on the device are free",
           r->n_places, points, (unsigned long long)room * (r->n_places * POINT_BYTES + 2 * sizeof(uint32_t)),
           cudaGetErrorString(failed), left, all);
  (void)cudaGetLastError(); /* said; must not be taken for the next call's */
  return failed == cudaErrorMemoryAllocation ? -ENOMEM : -EIO;
}

int hk_road_images(struct hk_road *r, uint64_t bytes, char *error, size_t size)
{
  (void)cudaFree(r->images);
  r->images = NULL;
  r->images_size = 0;
  const cudaError_t failed = cudaMalloc((void **)&r->images, bytes);
  if (!failed)
    r->images_size = bytes;
  return hk_cuda_refuse((int)failed, "memory for an export", error, size);
}

/* Batches in flight may use the old tasks: memory is taken and given back in the order of the stream. */
int hk_road_ready(struct hk_road *r, char *error, size_t size)
{
  const int64_t tasks = hk_records_lists(&r->records, r->room);
  cudaError_t failed = tasks < 0 ? (cudaError_t)-tasks : cudaSuccess;
  if (!failed && (uint64_t)tasks <= r->tasks)
    return 0;
  const uint64_t some = (uint64_t)tasks + (uint64_t)tasks / 2;
  if (!failed && r->work.tasks)
    failed = cudaFreeAsync(r->work.tasks, r->main);
  r->work.tasks = NULL;
  r->tasks = 0;
  if (!failed)
    failed = cudaMallocAsync((void **)&r->work.tasks, some * sizeof *r->work.tasks, r->main);
  if (!failed)
    r->tasks = some;
  return hk_cuda_refuse((int)failed, "getting ready for a batch", error, size);
}

static struct hk_cuda_columns columns_of(const struct hk_road *r, const struct hk_road_place *p)
{
  const struct device_columns d = device_columns(p, r->room);
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

static cudaError_t copy_up(const struct hk_road *r, const struct hk_road_place *p)
{
  const struct hk_cuda_points to = device_columns(p, r->room).points;
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

static cudaError_t copy_down(const struct hk_road *r, const struct hk_road_place *p)
{
  const struct device_columns d = device_columns(p, r->room);
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

static void part_add(struct hk_road *r, uint32_t detector, uint32_t tasks)
{
  struct hk_road_part *part = &r->parts[r->families.of[detector]];
  part->tasks += tasks;
  part->work += tasks * hk_family_work(&r->detectors[detector]);
}

/* What falls to each family: as many tasks as it has sensors, at most; where points are few for so many families, as points say.
 */
static void divide(struct hk_road *r, const struct hk_batch *batch, const struct hk_cuda_few *few)
{
  const struct hk_records *sensors = &r->records;
  memset(r->parts, 0, r->families.n * sizeof *r->parts);
  if (few->n > 0) {
    for (uint32_t t = 0; t < few->n; t++)
      part_add(r, few->detector[t], 1);
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
static uint32_t blocks_of(const struct hk_road *r, uint32_t family, uint32_t points, bool few)
{
  const struct hk_cuda_family *f = &r->families.family[family];
  const uint32_t at_once = f->kernel->warps * (few ? 1 : f->kernel->side);
  const uint32_t tasks = r->parts[family].tasks < points ? r->parts[family].tasks : points;
  const uint32_t blocks = tasks / at_once + (tasks % at_once > 0);
  return blocks < f->resident ? blocks : f->resident;
}

/* Sets the warps among which each family shares out its tasks: all that the device has, if all families find room on it side by
 * side; else in proportion to their work, so that they end together. */
static void apportion(struct hk_road *r, uint32_t points)
{
  double work = 0, load = 0, tasks = 0;
  for (uint32_t i = 0; i < r->families.n; i++) {
    const struct hk_cuda_family *f = &r->families.family[i];
    const struct hk_road_part *part = &r->parts[i];
    work += part->work;
    tasks += part->tasks;
    load += (double)part->tasks / f->kernel->side / (f->resident * f->kernel->warps);
  }
  load *= points < tasks ? points / tasks : 1;
  for (uint32_t i = 0; i < r->families.n; i++) {
    const struct hk_cuda_family *f = &r->families.family[i];
    const double warps = f->resident * f->kernel->warps * (load <= 1 ? 1 : r->parts[i].work / work);
    r->parts[i].warps = warps < 1 ? 1 : (uint32_t)warps;
  }
}

/* Launches a family; all: the launch but for what is the family's own. */
static cudaError_t launch_family(const struct hk_road *r, cudaStream_t stream, uint32_t number, uint32_t points,
                                 const struct hk_cuda_few *few, struct hk_cuda_launch *all)
{
  const struct hk_cuda_family *f = &r->families.family[number];
  all->family = number;
  all->members = r->families.members + f->first;
  all->n_members = f->n;
  all->size = f->size;
  all->scratch = f->scratch;
  all->warps = r->parts[number].warps;
  all->few.n = 0;
  for (uint32_t t = 0; t < few->n; t++) {
    if (r->families.of[few->detector[t]] != number)
      continue;
    all->few.task[all->few.n] = few->task[t];
    all->few.detector[all->few.n++] = few->detector[t];
  }
  return (cudaError_t)f->kernel->launch(stream, blocks_of(r, number, points, few->n > 0), f->shared, all);
}

/* A launch for each family, next to each other on side streams where there are several. few: none (n = 0), or the tasks. */
static cudaError_t launch_scores(struct hk_road *r, const struct hk_road_place *p, const struct hk_cuda_few *few)
{
  const uint32_t points = p->batch->n;
  struct hk_cuda_launch all = {
    .detectors = r->families.detectors,
    .list = r->records.directory.list,
    .work = r->work,
    .columns = columns_of(r, p),
    .end = { .answer = p->answer,
             .number = p->number,
             .n_detectors = few->n > 0 ? 0 : r->n_detectors,
             .n_families = r->families.n },
  };
  if (few->n > 0) {
    memcpy(all.few.order, few->order, points * sizeof *few->order);
    memcpy(all.few.time, few->time, points * sizeof *few->time);
    memcpy(all.few.value, few->value, points * sizeof *few->value);
  }
  uint32_t n = 0;
  divide(r, p->batch, few);
  apportion(r, points);
  for (uint32_t i = 0; i < r->families.n; i++) {
    all.end.blocks += blocks_of(r, i, points, few->n > 0);
    n += r->parts[i].tasks > 0;
  }
  if (n == 0) /* no slot is bound: the batch was refused */
    return (cudaError_t)hk_cuda_finish(r->main, &r->work, &all.end);
  const uint32_t sides = n < 2 ? 0 : n < HK_ROAD_SIDES ? n : HK_ROAD_SIDES;
  cudaError_t failed = sides > 0 ? cudaEventRecord(r->fork, r->main) : cudaSuccess;
  for (uint32_t i = 0; i < sides && !failed; i++)
    failed = cudaStreamWaitEvent(r->side[i], r->fork, 0);
  for (uint32_t i = 0, next = 0; i < r->families.n && !failed; i++)
    if (r->parts[i].tasks > 0)
      failed = launch_family(r, sides > 0 ? r->side[next++ % sides] : r->main, i, points, few, &all);
  for (uint32_t i = 0; i < sides && !failed; i++) {
    failed = cudaEventRecord(r->joined[i], r->side[i]);
    if (!failed)
      failed = cudaStreamWaitEvent(r->main, r->joined[i], 0);
  }
  return failed;
}

static cudaError_t launch_points(struct hk_road *r, const struct hk_road_place *p)
{
  const struct hk_cuda_points points = device_columns(p, r->room).points;
  const struct hk_cuda_points from = { p->batch->slot, p->batch->time, p->batch->value };
  struct hk_cuda_few few;
  if (hk_few_make(&few, &r->records, p->batch))
    return launch_scores(r, p, &few);
  cudaError_t failed = p->small ? cudaSuccess : copy_up(r, p);
  if (!failed)
    failed = (cudaError_t)hk_cuda_group(r->main, &r->records.directory, &r->work, p->small ? &from : NULL, &points, p->batch->n);
  few.n = 0;
  return failed ? failed : launch_scores(r, p, &few);
}

/* Sweeps as many records as the batch surely has room for, as a sensor may give two notices; the next sweep goes on there. So
 * which notices come does not depend on the order in which the device writes them. */
static cudaError_t launch_sweep(struct hk_road *r, const struct hk_road_place *p)
{
  const struct hk_cuda_columns columns = columns_of(r, p);
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
static cudaError_t launch_export(const struct hk_road *r, const struct hk_road_place *p)
{
  if (p->images == 0)
    return cudaSuccess;
  const cudaError_t failed = cudaStreamWaitEvent(r->main, r->images_free, 0);
  return failed ? failed : (cudaError_t)hk_cuda_fetch(r->main, p->batch->work, p->batch->n, r->images);
}

static cudaError_t copy_images_down(const struct hk_road *r, const struct hk_road_place *p)
{
  cudaError_t failed = cudaEventRecord(p->scored, r->main);
  if (!failed)
    failed = cudaStreamWaitEvent(r->down, p->scored, 0);
  if (!failed && p->images > 0)
    failed = cudaMemcpyAsync(p->batch->bulk, r->images, p->images, cudaMemcpyDeviceToHost, r->down);
  return failed ? failed : cudaEventRecord(r->images_free, r->down);
}

/* The end of a batch that has no scores. */
static cudaError_t launch_end(const struct hk_road *r, const struct hk_road_place *p)
{
  const struct hk_cuda_end end = { .answer = p->answer, .number = p->number };
  return (cudaError_t)hk_cuda_finish(r->main, &r->work, &end);
}

int hk_road_launch(struct hk_road *r, struct hk_road_place *p, struct hk_batch *batch, uint64_t number)
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
    failed = launch_sweep(r, p);
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

/* 0 when the device is done with a batch, cudaErrorNotReady when it is not, or how it failed. A small batch is done when its last
 * word is there, which costs nothing to look for; whether the device has failed is asked only when it comes late. */
static cudaError_t place_state(const struct hk_road *r, const struct hk_road_place *p, bool late)
{
  if (!p->small)
    return cudaEventQuery(p->finished);
  if (hk_cuda_answered(atomic_load_explicit((const _Atomic uint64_t *)p->answer, memory_order_acquire)) == (uint32_t)p->number)
    return cudaSuccess;
  const cudaError_t state = late ? cudaStreamQuery(r->main) : cudaErrorNotReady;
  return state ? state : cudaErrorNotReady;
}

int hk_road_await(const struct hk_road *r, const struct hk_road_place *p)
{
  const struct timespec pause = { 0, PAUSE_NS };
  const int64_t end = hk_cuda_clock() + HK_ROAD_SPIN_NS;
  for (bool late = false;; late = hk_cuda_clock() > end) {
    if (late)
      nanosleep(&pause, NULL);
    const cudaError_t state = place_state(r, p, late);
    if (state != cudaErrorNotReady)
      return (int)state;
  }
}

void hk_road_drain(const struct hk_road *r)
{
  (void)cudaStreamSynchronize(r->up);
  (void)cudaStreamSynchronize(r->main);
  (void)cudaStreamSynchronize(r->down);
}

static cudaError_t streams_make(struct hk_road *r)
{
  cudaStream_t *const streams[] = { &r->main, &r->up, &r->down };
  cudaError_t failed = cudaEventCreateWithFlags(&r->fork, cudaEventDisableTiming);
  if (!failed)
    failed = cudaEventCreateWithFlags(&r->images_free, cudaEventDisableTiming);
  for (uint32_t i = 0; i < 3 && !failed; i++)
    failed = cudaStreamCreateWithFlags(streams[i], cudaStreamNonBlocking);
  for (uint32_t i = 0; i < HK_ROAD_SIDES && !failed; i++) {
    failed = cudaStreamCreateWithFlags(&r->side[i], cudaStreamNonBlocking);
    if (!failed)
      failed = cudaEventCreateWithFlags(&r->joined[i], cudaEventDisableTiming);
  }
  for (uint32_t i = 0; i < r->n_places && !failed; i++) {
    struct hk_road_place *p = &r->places[i];
    failed = cudaEventCreateWithFlags(&p->up, cudaEventDisableTiming);
    if (!failed)
      failed = cudaEventCreateWithFlags(&p->scored, cudaEventDisableTiming);
    if (!failed)
      failed = cudaEventCreateWithFlags(&p->finished, cudaEventDisableTiming);
  }
  return failed;
}

static cudaError_t counters_make(struct hk_road *r)
{
  struct hk_cuda_work *work = &r->work;
  cudaError_t failed = cudaMallocHost((void **)&r->answers, r->n_places * sizeof *r->answers);
  if (!failed)
    failed = cudaMalloc((void **)&work->counters, sizeof *work->counters);
  if (!failed)
    failed = cudaMalloc((void **)&work->n_tasks, r->max_detectors * sizeof *work->n_tasks);
  if (!failed)
    failed = cudaMalloc((void **)&work->taken, r->max_detectors * sizeof *work->taken); /* families are fewer */
  if (!failed)
    failed = cudaMemsetAsync(work->taken, 0, r->max_detectors * sizeof *work->taken, r->main);
  if (!failed)
    failed = cudaMemsetAsync(work->counters, 0, sizeof *work->counters, r->main);
  if (!failed)
    failed = cudaMemsetAsync(work->n_tasks, 0, r->max_detectors * sizeof *work->n_tasks, r->main);
  for (uint32_t i = 0; i < r->n_places && !failed; i++) {
    r->places[i].answer = &r->answers[i];
    r->answers[i] = 0;
  }
  return failed;
}

int hk_road_open(struct hk_road *r, const struct hk_backend_config *config, uint32_t places, char *error, size_t size)
{
  r->n_detectors = config->n_detectors;
  r->max_detectors = config->max_detectors > r->n_detectors ? config->max_detectors : r->n_detectors;
  r->n_places = places;
  r->detectors = calloc(r->max_detectors, sizeof *r->detectors);
  r->parts = calloc(r->max_detectors, sizeof *r->parts);
  r->places = calloc(places, sizeof *r->places);
  if (!r->detectors || !r->parts || !r->places) {
    snprintf(error, size, "no memory for %u detectors", r->n_detectors);
    return -ENOMEM;
  }
  memcpy(r->detectors, config->detectors, r->n_detectors * sizeof *r->detectors);
  r->device = config->device;
  int count = 0, status = hk_cuda_refuse((int)cudaGetDeviceCount(&count), "looking for a GPU", error, size);
  if (!status && r->device >= (uint32_t)count) {
    snprintf(error, size, "GPU number %u: there are %d, counted from 0", r->device, count);
    return -ENODEV;
  }
  if (!status)
    status = hk_cuda_refuse((int)cudaSetDevice((int)r->device), "opening the GPU", error, size);
  if (!status)
    status = hk_cuda_refuse((int)streams_make(r), "making streams", error, size);
  if (!status)
    status = hk_cuda_refuse(hk_cuda_road_load(), "loading the kernels", error, size);
  if (!status)
    status = hk_families_open(&r->families, r->detectors, r->n_detectors, error, size);
  if (!status)
    status = hk_cuda_refuse((int)counters_make(r), "making counters", error, size);
  r->records = (struct hk_records){ .detectors = r->detectors,
                                    .n_detectors = r->n_detectors,
                                    .max_detectors = r->max_detectors,
                                    .max = config->max_sensors,
                                    .limit = config->memory,
                                    .stream = r->main };
  return status ? status : hk_records_open(&r->records, error, size);
}

int hk_road_define(struct hk_road *r, const struct hk_definition *definitions, uint32_t n, char *error, size_t size)
{
  uint32_t n_after;
  int status = hk_definitions_check(definitions, n, r->n_detectors, r->max_detectors, &n_after, error, size);
  for (uint32_t i = 0; i < n && status == 0; i++)
    if (definitions[i].number < r->n_detectors && hk_records_most(&r->records, definitions[i].number) > 0) {
      snprintf(error, size, "a detector is in use");
      status = -EBUSY;
    }
  if (status)
    return status;
  struct hk_detector *table = calloc(n_after, sizeof *table);
  if (!table) {
    snprintf(error, size, "no memory for %u detectors", n_after);
    return -ENOMEM;
  }
  memcpy(table, r->detectors, r->n_detectors * sizeof *table);
  for (uint32_t i = 0; i < n; i++)
    table[definitions[i].number] = definitions[i].detector ? *definitions[i].detector : (struct hk_detector){ 0 };
  struct hk_families families = { 0 };
  status = hk_families_open(&families, table, n_after, error, size);
  if (status) {
    hk_families_close(&families);
    free(table);
    return status;
  }
  for (uint32_t i = 0; i < n; i++)
    hk_records_clear(&r->records, definitions[i].number); /* by what the number meant before */
  hk_families_close(&r->families);
  r->families = families;
  memcpy(r->detectors, table, n_after * sizeof *table);
  r->n_detectors = r->records.n_detectors = r->records.directory.n_detectors = n_after;
  r->sweep_slab = r->sweep_record = 0;
  free(table);
  return 0;
}

static void event_free(cudaEvent_t event)
{
  if (event)
    (void)cudaEventDestroy(event);
}

static void stream_free(cudaStream_t stream)
{
  if (stream)
    (void)cudaStreamDestroy(stream);
}

/* A device that fails in here has failed before, and was heard. */
void hk_road_close(struct hk_road *r)
{
  for (uint32_t i = 0; r->places && i < r->n_places; i++) {
    (void)cudaFree(r->places[i].device);
    event_free(r->places[i].up);
    event_free(r->places[i].scored);
    event_free(r->places[i].finished);
  }
  if (r->work.tasks)
    (void)cudaFreeAsync(r->work.tasks, r->main);
  (void)cudaFree(r->work.counters);
  (void)cudaFree(r->work.n_tasks);
  (void)cudaFree(r->work.next);
  (void)cudaFree(r->work.order);
  (void)cudaFree(r->work.taken);
  hk_families_close(&r->families);
  (void)cudaFreeHost(r->answers);
  hk_records_close(&r->records);
  for (uint32_t i = 0; i < HK_ROAD_SIDES; i++) {
    event_free(r->joined[i]);
    stream_free(r->side[i]);
  }
  (void)cudaFree(r->images);
  event_free(r->images_free);
  event_free(r->fork);
  stream_free(r->main);
  stream_free(r->up);
  stream_free(r->down);
  free(r->parts);
  free(r->places);
  free(r->detectors);
  (void)cudaGetLastError(); /* what could not be freed must not be taken for another backend's next call */
}
