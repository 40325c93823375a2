/* The host side of the CUDA backend.
 *
 * Happy path: submit tells the points of a batch apart by sensor, into the pinned memory of a free place in flight, and puts
 * copies up, one launch for each detector, copies down and an event on the one stream; a thread waits for that event, puts
 * the batch's events in order and calls ready; reap hands the batch out. All device work is in stream order, so batches
 * follow each other and so do the points of a sensor.
 *
 * Failure modes: what CUDA says of a batch becomes its status, -EIO, and a text for the log (hk_cuda_failure); so do all
 * later batches when the device is lost. Out of memory is found in open and add, and told with figures. */
#include "gpu/cuda.h"
#include "gpu/records.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define IN_FLIGHT 4
#define SCRATCH_MAX                                                                                                              \
  ((uint64_t)1 << 30) /* bytes of device memory for the blocks to work in; fewer blocks run when it is short                     \
                       */
#define TEXT 256

/* A place in flight. Owner: the shard's thread until submitted, the watching thread until finished. */
struct flight {
  struct hk_batch *batch;
  int status;
  char failure[TEXT];
  uint32_t capacity;     /* points that there is memory for */
  unsigned char *pinned; /* staging: see struct layout */
  unsigned char *device;
  cudaEvent_t finished;
};

struct cuda_backend {
  struct hk_backend backend;
  struct hk_detector *detectors;
  struct hk_cuda_plan *plans; /* one for each detector */
  uint32_t n_detectors;
  struct hk_records records;
  uint32_t sweep_slab, sweep_record; /* where the next sweep begins */
  cudaStream_t stream;
  unsigned char *scratch;
  uint64_t scratch_bytes;
  struct flight *flights;
  uint32_t in_flight;
  char failure[TEXT];
  void (*ready)(void *arg);
  void *ready_arg;
  pthread_t watcher;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t submitted, finished, reaped; /* batches so far; under lock */
  bool closing;                         /* under lock */
};

/* Where things lie in the memory of a flight with n points. Up to `columns` it is the same on host and device and goes up in
 * one copy. */
struct layout {
  size_t order, tasks, columns, time, value, score, state, end;
};

static struct layout layout_of(uint32_t n)
{
  struct layout l;
  l.order = 16; /* two counters of events: one goes up as zero, one comes down */
  l.tasks = (l.order + n * sizeof(uint32_t) + 15) & ~(size_t)15;
  l.columns = l.tasks + n * sizeof(struct hk_cuda_task);
  l.time = l.columns;
  l.value = l.time + n * sizeof(int64_t);
  l.score = l.value + n * sizeof(double);
  l.state = l.score + n * sizeof(float);
  l.end = l.state + n;
  return l;
}

static struct cuda_backend *from(struct hk_backend *b)
{
  return (struct cuda_backend *)b;
}

static cudaError_t flight_reserve(struct flight *f, uint32_t capacity)
{
  if (capacity <= f->capacity)
    return cudaSuccess;
  const struct layout l = layout_of(capacity);
  (void)cudaFreeHost(f->pinned);
  (void)cudaFree(f->device);
  f->pinned = f->device = NULL;
  f->capacity = 0;
  cudaError_t failed = cudaMallocHost((void **)&f->pinned, l.columns);
  if (!failed)
    failed = cudaMalloc((void **)&f->device, l.end);
  if (!failed)
    f->capacity = capacity;
  return failed;
}

static struct hk_cuda_columns columns_of(const struct flight *f, const struct layout *l)
{
  return (struct hk_cuda_columns){
    .time = (const int64_t *)(f->device + l->time),
    .value = (const double *)(f->device + l->value),
    .order = (const uint32_t *)(f->device + l->order),
    .score = (float *)(f->device + l->score),
    .state = f->device + l->state,
    .event = f->batch->event,
    .n_events = (uint32_t *)f->device,
    .capacity = f->batch->capacity,
    .arrival = f->batch->arrival,
  };
}

static cudaError_t launch_points(struct cuda_backend *c, struct flight *f, const struct layout *l)
{
  const struct hk_batch *batch = f->batch;
  const struct hk_cuda_columns columns = columns_of(f, l);
  cudaError_t failed =
      cudaMemcpyAsync(f->device + l->time, batch->time, batch->n * sizeof *batch->time, cudaMemcpyHostToDevice, c->stream);
  if (!failed)
    failed =
        cudaMemcpyAsync(f->device + l->value, batch->value, batch->n * sizeof *batch->value, cudaMemcpyHostToDevice, c->stream);
  for (uint32_t i = 0; i < c->records.n_groups && !failed; i++) {
    const struct hk_cuda_group *group = &c->records.groups[i];
    const struct hk_cuda_plan *plan = &c->plans[group->detector];
    const uint64_t room = c->scratch_bytes / plan->scratch;
    const struct hk_cuda_task *tasks = (const struct hk_cuda_task *)(f->device + l->tasks) + group->first;
    failed = (cudaError_t)hk_cuda_score(c->stream, &c->detectors[group->detector], plan,
                                        room < plan->resident ? (uint32_t)room : plan->resident, c->scratch, tasks, group->n,
                                        &columns);
  }
  if (!failed)
    failed = cudaMemcpyAsync(batch->score, columns.score, batch->n * sizeof *batch->score, cudaMemcpyDeviceToHost, c->stream);
  if (!failed)
    failed = cudaMemcpyAsync(batch->state, columns.state, batch->n, cudaMemcpyDeviceToHost, c->stream);
  return failed;
}

/* Sweeps as many records as the batch surely has room for, as a sensor may give two notices; the next sweep goes on there. So
 * which notices come does not depend on the order in which the device writes them. */
static cudaError_t launch_sweep(struct cuda_backend *c, struct flight *f, const struct layout *l)
{
  const struct hk_cuda_columns columns = columns_of(f, l);
  uint64_t left = 0;
  for (uint32_t i = 0; i < c->records.n_slabs; i++)
    left += c->records.slabs[i].used;
  if (left > f->batch->capacity / 2)
    left = f->batch->capacity / 2;
  cudaError_t failed = cudaSuccess;
  while (left > 0 && !failed) {
    const struct hk_cuda_slab *slab = &c->records.slabs[c->sweep_slab];
    const struct hk_detector *d = &c->detectors[slab->detector];
    const uint32_t rest = slab->used - c->sweep_record, n = left < rest ? (uint32_t)left : rest;
    if (n > 0)
      failed = (cudaError_t)hk_cuda_sweep(c->stream, d, slab->base + c->sweep_record * hk_cuda_record_bytes(d), n, f->batch->idle,
                                          &columns);
    left -= n;
    c->sweep_record += n;
    if (c->sweep_record == slab->used) {
      c->sweep_slab = (c->sweep_slab + 1) % c->records.n_slabs;
      c->sweep_record = 0;
    }
  }
  return failed;
}

static int backend_submit(struct hk_backend *b, struct hk_batch *batch)
{
  struct cuda_backend *c = from(b);
  pthread_mutex_lock(&c->lock);
  const bool full = c->submitted - c->reaped == c->in_flight;
  pthread_mutex_unlock(&c->lock);
  if (full)
    return HK_AGAIN;
  const bool points = batch->kind == HK_BATCH_POINTS;
  if (batch->backend != b || (!points && batch->kind != HK_BATCH_SWEEP) || (points && batch->n > batch->capacity))
    return -EINVAL;                                            /* the device writes events into the batch's own memory */
  struct flight *f = &c->flights[c->submitted % c->in_flight]; /* only this thread moves `submitted` */
  const struct layout l = layout_of(points ? batch->n : 0);
  cudaError_t failed = flight_reserve(f, batch->capacity);
  int64_t tasks = 0;
  if (points && !failed) {
    tasks = hk_records_tasks(&c->records, batch, (struct hk_cuda_task *)(f->pinned + l.tasks), (uint32_t *)(f->pinned + l.order));
    if (tasks < 0)
      return (int)tasks;
  }
  f->batch = batch;
  if (!failed) {
    memset(f->pinned, 0, l.order);
    const size_t bytes = points ? l.tasks + (size_t)tasks * sizeof(struct hk_cuda_task) : l.order;
    failed = cudaMemcpyAsync(f->device, f->pinned, bytes, cudaMemcpyHostToDevice, c->stream);
  }
  if (!failed && (tasks > 0 || !points))
    failed = points ? launch_points(c, f, &l) : launch_sweep(c, f, &l);
  if (!failed)
    failed = cudaMemcpyAsync(f->pinned + sizeof(uint32_t), f->device, sizeof(uint32_t), cudaMemcpyDeviceToHost, c->stream);
  if (!failed)
    failed = cudaEventRecord(f->finished, c->stream);
  f->status = failed ? -EIO : 0;
  if (failed) {
    snprintf(f->failure, sizeof f->failure, "CUDA, starting a batch of %u points: %s", batch->n, cudaGetErrorString(failed));
    (void)cudaStreamSynchronize(c->stream); /* nothing may still write to what the caller gets back */
  }
  pthread_mutex_lock(&c->lock);
  c->submitted++;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
  return 0;
}

/* Events come from the device in no order: by point, and notices by sensor. */
static int event_order(const void *a, const void *b)
{
  const struct hk_event *x = a, *y = b;
  if (x->index != y->index)
    return x->index < y->index ? -1 : 1;
  if (x->slot != y->slot)
    return x->slot < y->slot ? -1 : 1;
  return (x->kind > y->kind) - (x->kind < y->kind);
}

static void flight_finish(struct flight *f)
{
  struct hk_batch *batch = f->batch;
  if (!f->status) {
    const cudaError_t failed = cudaEventSynchronize(f->finished);
    if (failed) {
      f->status = -EIO;
      snprintf(f->failure, sizeof f->failure, "CUDA, on a batch of %u points: %s", batch->n, cudaGetErrorString(failed));
    }
  }
  batch->status = f->status;
  batch->n_events = 0;
  if (!f->status) {
    const uint32_t events = ((const uint32_t *)f->pinned)[1];
    batch->n_events = events < batch->capacity ? events : batch->capacity;
    qsort(batch->event, batch->n_events, sizeof *batch->event, event_order);
  }
}

/* Finishes batches as the device gets done with them. Ends once nothing is in flight and close has been called. */
static void *watch(void *arg)
{
  struct cuda_backend *c = arg;
  pthread_mutex_lock(&c->lock);
  for (;;) {
    while (c->finished == c->submitted && !c->closing)
      pthread_cond_wait(&c->changed, &c->lock);
    if (c->finished == c->submitted)
      break;
    struct flight *f = &c->flights[c->finished % c->in_flight];
    pthread_mutex_unlock(&c->lock);
    flight_finish(f);
    pthread_mutex_lock(&c->lock);
    c->finished++;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (c->ready)
      c->ready(c->ready_arg);
    pthread_mutex_lock(&c->lock);
  }
  pthread_mutex_unlock(&c->lock);
  return NULL;
}

static struct hk_batch *backend_reap(struct hk_backend *b)
{
  struct cuda_backend *c = from(b);
  struct hk_batch *batch = NULL;
  pthread_mutex_lock(&c->lock);
  if (c->reaped < c->finished) {
    const struct flight *f = &c->flights[c->reaped++ % c->in_flight];
    batch = f->batch;
    if (f->status)
      memcpy(c->failure, f->failure, sizeof c->failure);
  }
  pthread_mutex_unlock(&c->lock);
  return batch;
}

static void backend_wait(struct hk_backend *b)
{
  struct cuda_backend *c = from(b);
  pthread_mutex_lock(&c->lock);
  while (c->reaped == c->finished && c->finished < c->submitted)
    pthread_cond_wait(&c->changed, &c->lock);
  pthread_mutex_unlock(&c->lock);
}

static uint64_t backend_need(const struct hk_backend *b, uint32_t detector, uint64_t sensors)
{
  return hk_records_need(&((const struct cuda_backend *)b)->records, detector, sensors);
}

static int backend_add(struct hk_backend *b, uint32_t slot, uint32_t detector, uint64_t seed)
{
  struct cuda_backend *c = from(b);
  return hk_records_add(&c->records, slot, detector, seed, c->failure, sizeof c->failure);
}

static void backend_remove(struct hk_backend *b, uint32_t slot)
{
  struct cuda_backend *c = from(b);
  const cudaError_t failed = (cudaError_t)hk_records_remove(&c->records, slot);
  if (failed)
    snprintf(c->failure, sizeof c->failure, "CUDA, removing the sensor of slot %u: %s", slot, cudaGetErrorString(failed));
}

static int64_t backend_export(struct hk_backend *b, uint32_t slot, void *state, size_t size)
{
  struct cuda_backend *c = from(b);
  return hk_records_export(&c->records, slot, state, size, c->failure, sizeof c->failure);
}

static int backend_import(struct hk_backend *b, uint32_t slot, const void *state, size_t size)
{
  struct cuda_backend *c = from(b);
  return hk_records_import(&c->records, slot, state, size, c->failure, sizeof c->failure);
}

static void *backend_alloc(struct hk_backend *b, size_t bytes)
{
  struct cuda_backend *c = from(b);
  void *memory = NULL;
  const cudaError_t failed = cudaMallocHost(&memory, bytes);
  if (!failed)
    return memory;
  snprintf(c->failure, sizeof c->failure, "CUDA, %zu bytes of pinned memory: %s", bytes, cudaGetErrorString(failed));
  (void)cudaGetLastError(); /* said; must not be taken for the next call's */
  return NULL;
}

static void backend_free(struct hk_backend *b, void *memory)
{
  (void)b;
  (void)cudaFreeHost(memory); /* fails only when the device is lost, and then the process has lost the memory too */
}

static void backend_close(struct hk_backend *b);

static const struct hk_backend_ops operations = {
  .name = "cuda",
  .need = backend_need,
  .add = backend_add,
  .remove = backend_remove,
  .submit = backend_submit,
  .reap = backend_reap,
  .wait = backend_wait,
  .export_ = backend_export,
  .import_ = backend_import,
  .alloc = backend_alloc,
  .free = backend_free,
  .close = backend_close,
};

const char *hk_cuda_failure(struct hk_backend *b)
{
  return from(b)->failure;
}

static void release(struct cuda_backend *c)
{
  for (uint32_t i = 0; c->flights && i < c->in_flight; i++) {
    (void)cudaFreeHost(c->flights[i].pinned);
    (void)cudaFree(c->flights[i].device);
    if (c->flights[i].finished)
      (void)cudaEventDestroy(c->flights[i].finished);
  }
  (void)cudaFree(c->scratch);
  hk_records_close(&c->records);
  if (c->stream)
    (void)cudaStreamDestroy(c->stream);
  free(c->flights);
  free(c->plans);
  free(c->detectors);
  free(c);
}

static void backend_close(struct hk_backend *b)
{
  struct cuda_backend *c = from(b);
  pthread_mutex_lock(&c->lock);
  c->closing = true;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
  pthread_join(c->watcher, NULL);
  (void)cudaStreamSynchronize(c->stream);
  pthread_cond_destroy(&c->changed);
  pthread_mutex_destroy(&c->lock);
  release(c);
}

/* 0, or a negative errno for what CUDA said, with a message. */
static int refuse(cudaError_t failed, const char *what, char *error, size_t size)
{
  if (!failed)
    return 0;
  snprintf(error, size, "CUDA, %s: %s", what, cudaGetErrorString(failed));
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

/* Plans every detector and takes the memory that blocks work in: enough for as many blocks as the device holds, within
 * SCRATCH_MAX and an eighth of what is free, and at least for one. */
static int scratch_take(struct cuda_backend *c, char *error, size_t size)
{
  size_t left = 0, all = 0;
  int status = refuse(cudaMemGetInfo(&left, &all), "memory of the device", error, size);
  const uint64_t most = left / 8 < SCRATCH_MAX ? left / 8 : SCRATCH_MAX;
  for (uint32_t i = 0; i < c->n_detectors && !status; i++) {
    struct hk_cuda_plan *plan = &c->plans[i];
    status = refuse((cudaError_t)hk_cuda_plan(&c->detectors[i], plan), "preparing the kernels", error, size);
    if (!status && plan->resident == 0) {
      snprintf(error, size, "CUDA: detector %u (window %u) needs %u bytes of shared memory a block, more than this GPU has", i,
               c->detectors[i].window, plan->shared);
      status = -ENODEV;
    }
    if (status)
      return status;
    uint64_t bytes = plan->resident * plan->scratch;
    bytes = bytes < most ? bytes : most;
    bytes = bytes > plan->scratch ? bytes : plan->scratch;
    c->scratch_bytes = bytes > c->scratch_bytes ? bytes : c->scratch_bytes;
  }
  if (!status && cudaMalloc((void **)&c->scratch, c->scratch_bytes)) {
    snprintf(error, size, "CUDA: the detectors need %llu bytes on the device to work in, and %zu of %zu are free",
             (unsigned long long)c->scratch_bytes, left, all);
    (void)cudaGetLastError();
    status = -ENOMEM;
  }
  return status;
}

/* Takes everything but the thread. What was taken is released by the caller when this fails. */
static int prepare(struct cuda_backend *c, const struct hk_backend_config *config, char *error, size_t size)
{
  int count = 0, status = refuse(cudaGetDeviceCount(&count), "looking for a GPU", error, size);
  if (!status)
    status = refuse(count > 0 ? cudaSetDevice(0) : cudaErrorNoDevice, "opening the GPU", error, size);
  if (!status)
    status = refuse(cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking), "making a stream", error, size);
  if (!status)
    status = scratch_take(c, error, size);
  for (uint32_t i = 0; i < c->in_flight && !status; i++)
    status = refuse(cudaEventCreateWithFlags(&c->flights[i].finished, cudaEventBlockingSync | cudaEventDisableTiming),
                    "making an event", error, size);
  if (status)
    return status;
  c->records = (struct hk_records){ .detectors = c->detectors,
                                    .n_detectors = c->n_detectors,
                                    .max = config->max_sensors,
                                    .limit = config->memory,
                                    .stream = c->stream };
  status = hk_records_open(&c->records);
  if (status)
    snprintf(error, size, "no memory for a table of %u sensors", config->max_sensors);
  return status;
}

int hk_cuda_open(struct hk_backend **out, const struct hk_backend_config *config, char *error, size_t size)
{
  *out = NULL;
  if (config->n_detectors < 1 || config->n_detectors > 65535 || config->max_sensors < 1) {
    snprintf(error, size, "%u detectors and %u sensors: 1 to 65535 detectors and at least 1 sensor are needed",
             config->n_detectors, config->max_sensors);
    return -EINVAL;
  }
  struct cuda_backend *c = calloc(1, sizeof *c);
  if (!c) {
    snprintf(error, size, "no memory for the CUDA backend");
    return -ENOMEM;
  }
  c->backend.ops = &operations;
  c->n_detectors = config->n_detectors;
  c->in_flight = config->in_flight ? config->in_flight : IN_FLIGHT;
  c->ready = config->ready;
  c->ready_arg = config->ready_arg;
  c->detectors = calloc(c->n_detectors, sizeof *c->detectors);
  c->plans = calloc(c->n_detectors, sizeof *c->plans);
  c->flights = calloc(c->in_flight, sizeof *c->flights);
  int status = c->detectors && c->plans && c->flights ? 0 : -ENOMEM;
  if (status) {
    snprintf(error, size, "no memory for %u detectors", c->n_detectors);
  } else {
    memcpy(c->detectors, config->detectors, c->n_detectors * sizeof *c->detectors);
    status = prepare(c, config, error, size);
  }
  if (status) {
    release(c);
    return status;
  }
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->changed, NULL);
  status = -pthread_create(&c->watcher, NULL, watch, c);
  if (status) {
    snprintf(error, size, "no thread for the CUDA backend: %s", strerror(-status));
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    release(c);
    return status;
  }
  *out = &c->backend;
  return 0;
}
