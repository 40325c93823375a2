/* Memory, streams and launches: see road.h.
 *
 * Failure modes: out of memory is told with figures; of what else CUDA says the caller makes a status. */
#include "gpu/road.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define SCRATCH_MAX ((uint64_t)3 << 30) /* bytes for blocks to work in; fewer blocks run when it is short */
#define SMALL 16384                     /* points of a batch of which nothing is copied */
#define LOOKED_AT 16                    /* points worth looking at for each launch that may be spared */
#define PAUSE_NS 30000                  /* between two looks whether a batch is done, after HK_ROAD_SPIN_NS */

/* 0, or a negative errno for what CUDA said, with a message. */
static int refuse(cudaError_t failed, const char *what, char *error, size_t size)
{
  if (!failed)
    return 0;
  snprintf(error, size, "CUDA, %s: %s", what, /* CUDA's own words are of versions, also where there is no driver at all */
           failed == cudaErrorInsufficientDriver ? "no NVIDIA driver, or one older than this build needs"
                                                 : cudaGetErrorString(failed));
  (void)cudaGetLastError();
  switch (failed) {
  case cudaErrorMemoryAllocation:
    return -ENOMEM;
  case cudaErrorNoDevice:
  case cudaErrorInsufficientDriver:
  case cudaErrorNoKernelImageForDevice:
  case cudaErrorUnsupportedPtxVersion:
  case cudaErrorDevicesUnavailable:
  case cudaErrorSystemNotReady:
    return -ENODEV;
  default:
    return -EIO;
  }
}

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
  return refuse(failed, "getting ready for a batch", error, size);
}

/* Which detectors are to be launched: those that have sensors; where points are few for so many, those of the points. Returns how
 * many. */
static uint32_t choose(struct hk_road *r, const struct hk_road_place *p)
{
  const struct hk_records *sensors = &r->records;
  const struct hk_batch *batch = p->batch;
  if (sensors->n_active < 2 || batch->n / LOOKED_AT >= sensors->n_active) {
    memcpy(r->launched, sensors->active, sensors->n_active * sizeof *sensors->active);
    return sensors->n_active;
  }
  uint32_t n = 0;
  for (uint32_t i = 0; i < batch->n; i++) {
    const struct hk_cuda_slot *entry = hk_records_at(sensors, batch->slot[i]);
    if (entry && r->launched_by[entry->detector] != p->number) {
      r->launched_by[entry->detector] = p->number;
      r->launched[n++] = entry->detector;
    }
  }
  return n;
}

static cudaError_t launch_detector(struct hk_road *r, cudaStream_t stream, uint32_t part, uint32_t detector, uint32_t points,
                                   const struct hk_cuda_columns *columns)
{
  const uint32_t sensors = hk_records_most(&r->records, detector);
  return (cudaError_t)hk_cuda_score(stream, &r->detectors[detector], &r->plans[detector], r->scratch + part * r->scratch_part,
                                    r->work.tasks + hk_records_list(&r->records, detector), r->work.n_tasks + detector,
                                    points < sensors ? points : sensors, columns);
}

/* Several detectors run next to each other on side streams, as many as there are parts of scratch memory for. */
static cudaError_t launch_scores(struct hk_road *r, const struct hk_road_place *p, const struct hk_cuda_columns *columns)
{
  const uint32_t n = choose(r, p), parts = n < r->scratch_parts ? n : r->scratch_parts, sides = parts > 1 ? parts : 0;
  cudaError_t failed = sides > 0 ? cudaEventRecord(r->fork, r->main) : cudaSuccess;
  for (uint32_t i = 0; i < sides && !failed; i++)
    failed = cudaStreamWaitEvent(r->side[i], r->fork, 0);
  for (uint32_t i = 0; i < n && !failed; i++)
    failed = launch_detector(r, sides > 0 ? r->side[i % sides] : r->main, sides > 0 ? i % sides : 0, r->launched[i], p->batch->n,
                             columns);
  for (uint32_t i = 0; i < sides && !failed; i++) {
    failed = cudaEventRecord(r->joined[i], r->side[i]);
    if (!failed)
      failed = cudaStreamWaitEvent(r->main, r->joined[i], 0);
  }
  return failed;
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

static cudaError_t launch_points(struct hk_road *r, const struct hk_road_place *p)
{
  const struct hk_cuda_points points = device_columns(p, r->room).points;
  const struct hk_cuda_points from = { p->batch->slot, p->batch->time, p->batch->value };
  const struct hk_cuda_columns columns = columns_of(r, p);
  cudaError_t failed = p->small ? cudaSuccess : copy_up(r, p);
  if (!failed)
    failed = (cudaError_t)hk_cuda_group(r->main, &r->records.directory, &r->work, p->small ? &from : NULL, &points, p->batch->n);
  return failed ? failed : launch_scores(r, p, &columns);
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

int hk_road_launch(struct hk_road *r, struct hk_road_place *p, struct hk_batch *batch, uint64_t number)
{
  const bool points = batch->kind == HK_BATCH_POINTS;
  p->batch = batch;
  p->number = number;
  p->small = !points || batch->n <= SMALL;
  hk_records_touch(&r->records);
  cudaError_t failed = !points ? launch_sweep(r, p) : batch->n > 0 ? launch_points(r, p) : cudaSuccess;
  if (!failed)
    failed = (cudaError_t)hk_cuda_finish(r->main, &r->work, r->n_detectors, p->answer, number);
  if (!failed && !p->small)
    failed = copy_down(r, p);
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
  if (atomic_load_explicit((const _Atomic uint64_t *)&p->answer->done, memory_order_acquire) == p->number)
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

/* Plans every detector and takes the memory that blocks work in: enough for as many blocks as the device holds, and for as many
 * detectors side by side as there are side streams, within SCRATCH_MAX and an eighth of what is free; and at least for one. */
static int scratch_take(struct hk_road *r, char *error, size_t size)
{
  size_t left = 0, all = 0;
  int status = refuse(cudaMemGetInfo(&left, &all), "memory of the device", error, size);
  const uint64_t most = left / 8 < SCRATCH_MAX ? left / 8 : SCRATCH_MAX;
  uint64_t scratch = 0;
  for (uint32_t i = 0; i < r->n_detectors && !status; i++) {
    struct hk_cuda_plan *plan = &r->plans[i];
    status = refuse((cudaError_t)hk_cuda_plan(&r->detectors[i], plan), "preparing the kernels", error, size);
    if (!status && plan->resident == 0) {
      snprintf(error, size, "CUDA: detector %u (window %u) needs %u bytes of shared memory a block, more than this GPU has", i,
               r->detectors[i].window, plan->shared);
      status = -ENODEV;
    }
    if (status)
      return status;
    uint64_t bytes = plan->resident * plan->scratch;
    bytes = bytes < most ? bytes : most;
    bytes = bytes > plan->scratch ? bytes : plan->scratch;
    scratch = bytes > scratch ? bytes : scratch;
  }
  for (uint32_t i = 0; i < r->n_detectors && !status; i++) {
    struct hk_cuda_plan *plan = &r->plans[i];
    if (plan->scratch > 0 && plan->resident > scratch / plan->scratch)
      plan->resident = (uint32_t)(scratch / plan->scratch);
  }
  r->scratch_part = scratch;
  r->scratch_parts = r->n_detectors < HK_ROAD_SIDES ? r->n_detectors : HK_ROAD_SIDES;
  while (r->scratch_parts > 1 && r->scratch_parts * scratch > most)
    r->scratch_parts--;
  scratch *= r->scratch_parts;
  if (!status && scratch > 0 && cudaMalloc((void **)&r->scratch, scratch)) {
    snprintf(error, size, "CUDA: the detectors need %llu bytes on the device to work in, and %zu of %zu are free",
             (unsigned long long)scratch, left, all);
    (void)cudaGetLastError();
    status = -ENOMEM;
  }
  return status;
}

static cudaError_t streams_make(struct hk_road *r)
{
  cudaStream_t *const streams[] = { &r->main, &r->up, &r->down };
  cudaError_t failed = cudaEventCreateWithFlags(&r->fork, cudaEventDisableTiming);
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
    failed = cudaMalloc((void **)&work->n_tasks, r->n_detectors * sizeof *work->n_tasks);
  if (!failed)
    failed = cudaMemsetAsync(work->counters, 0, sizeof *work->counters, r->main);
  if (!failed)
    failed = cudaMemsetAsync(work->n_tasks, 0, r->n_detectors * sizeof *work->n_tasks, r->main);
  for (uint32_t i = 0; i < r->n_places && !failed; i++) {
    r->places[i].answer = &r->answers[i];
    r->answers[i] = (struct hk_cuda_answer){ 0 };
  }
  return failed;
}

int hk_road_open(struct hk_road *r, const struct hk_backend_config *config, uint32_t places, char *error, size_t size)
{
  r->n_detectors = config->n_detectors;
  r->n_places = places;
  r->detectors = calloc(r->n_detectors, sizeof *r->detectors);
  r->plans = calloc(r->n_detectors, sizeof *r->plans);
  r->launched = calloc(r->n_detectors, sizeof *r->launched);
  r->launched_by = calloc(r->n_detectors, sizeof *r->launched_by);
  r->places = calloc(places, sizeof *r->places);
  if (!r->detectors || !r->plans || !r->launched || !r->launched_by || !r->places) {
    snprintf(error, size, "no memory for %u detectors", r->n_detectors);
    return -ENOMEM;
  }
  memcpy(r->detectors, config->detectors, r->n_detectors * sizeof *r->detectors);
  r->device = config->device;
  int count = 0, status = refuse(cudaGetDeviceCount(&count), "looking for a GPU", error, size);
  if (!status && r->device >= (uint32_t)count) {
    snprintf(error, size, "GPU number %u: there are %d, counted from 0", r->device, count);
    return -ENODEV;
  }
  if (!status)
    status = refuse(cudaSetDevice((int)r->device), "opening the GPU", error, size);
  if (!status)
    status = refuse(streams_make(r), "making streams", error, size);
  if (!status)
    status = refuse((cudaError_t)hk_cuda_road_load(), "loading the kernels", error, size);
  if (!status)
    status = scratch_take(r, error, size);
  if (!status)
    status = refuse(counters_make(r), "making counters", error, size);
  r->records = (struct hk_records){ .detectors = r->detectors,
                                    .n_detectors = r->n_detectors,
                                    .max = config->max_sensors,
                                    .limit = config->memory,
                                    .stream = r->main };
  return status ? status : hk_records_open(&r->records, error, size);
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
  (void)cudaFree(r->scratch);
  (void)cudaFreeHost(r->answers);
  hk_records_close(&r->records);
  for (uint32_t i = 0; i < HK_ROAD_SIDES; i++) {
    event_free(r->joined[i]);
    stream_free(r->side[i]);
  }
  event_free(r->fork);
  stream_free(r->main);
  stream_free(r->up);
  stream_free(r->down);
  free(r->launched);
  free(r->launched_by);
  free(r->places);
  free(r->plans);
  free(r->detectors);
}
