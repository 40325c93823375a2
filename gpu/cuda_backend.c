/* The host side of the CUDA backend.
 *
 * Happy path: submit looks at no point. It puts the batch's columns on the stream `up`; on the stream `main`, the grouping by
 * sensor, a launch for each detector that has sensors, and the answer; on the stream `down`, scores and states. So copies of one
 * batch run while another is scored, and all work on sensors is in the order of `main`, where batches follow each other. Of a
 * small batch nothing is copied: the kernels read and write the batch's own pinned memory. A thread waits for the oldest batch in
 * flight, puts its events in order and calls ready; reap hands the batch out.
 *
 * Failure modes: what CUDA says of a batch becomes its status, -EIO, and a text for the log (hk_cuda_failure). After that the
 * device is not used again: all later batches come back at once with the same status. A batch that is bad comes back with
 * -EINVAL. A device that never answers is left to itself by close, with all memory that it may still write to. Out of memory is
 * found in open, add and submit, and told with figures. */
#include "gpu/cuda.h"
#include "gpu/records.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define IN_FLIGHT 4
#define SCRATCH_MAX ((uint64_t)1 << 30) /* bytes of device memory for the blocks to work in; fewer blocks run when it is short   \
                                         */
#define TEXT 320
#define SIDES 8        /* streams on which detectors are scored next to each other */
#define LOOKED_AT 64   /* of batches so small, only the detectors of their points are launched */
#define SPIN_NS 200000 /* a small batch is waited for without sleep for so long */
#define HUNG_SECONDS 5 /* close gives a device up that has not finished its batches by then */

/* A place in flight. Owner: the shard's thread until submitted, the watching thread until finished. */
struct flight {
  struct hk_batch *batch;
  uint64_t number; /* of the batch, from 1 */
  int status;
  char failure[TEXT];
  bool small;                    /* nothing is copied */
  bool broken;                   /* its work could not be put on the streams as a whole */
  struct hk_cuda_answer *answer; /* pinned */
  unsigned char *device;         /* columns for `room` points */
  cudaEvent_t up, scored, finished;
};

struct cuda_backend {
  struct hk_backend backend;
  struct hk_detector *detectors;
  struct hk_cuda_plan *plans; /* one for each detector */
  uint32_t n_detectors;
  struct hk_records records;
  uint32_t sweep_slab, sweep_record; /* where the next sweep begins */
  cudaStream_t main, up, down, side[SIDES];
  cudaEvent_t fork, joined[SIDES];
  unsigned char *scratch;
  struct hk_cuda_work work;
  uint32_t room;         /* points that flights and work have memory for */
  uint64_t tasks;        /* room for */
  uint32_t *launched;    /* detectors to be launched for a batch; room for all */
  uint64_t *launched_by; /* by detector: number of the batch that it was last launched for */
  struct flight *flights;
  struct hk_cuda_answer *answers; /* of the flights, side by side */
  uint32_t in_flight;
  char failure[TEXT];
  void (*ready)(void *arg);
  void *ready_arg;
  pthread_t watcher;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t submitted, reaped; /* batches so far; under lock */
  _Atomic uint64_t finished;  /* changed under lock */
  /* under lock: close was called; the watching thread is busy with a batch that the device is done with; it has ended; the
   * device did not answer in time, and what it may write to is left to it */
  bool closing, finishing, ended, hung;
  _Atomic bool lost; /* the device failed: it is not used again */
  char loss[TEXT];   /* how; written before `lost` is set */
};

static struct cuda_backend *from(struct hk_backend *b)
{
  return (struct cuda_backend *)b;
}

/* The device failed on a batch, which gets a status. */
static void lose(struct cuda_backend *c, struct flight *f, const char *doing, cudaError_t failed)
{
  f->status = -EIO;
  snprintf(f->failure, TEXT,
           "CUDA, %s a batch of %u points: %s (%s). The GPU is not used again: start the program anew for that; the kernel's "
           "log (dmesg, Xid) may say more",
           doing, f->batch->n, cudaGetErrorString(failed), cudaGetErrorName(failed));
  pthread_mutex_lock(&c->lock);
  if (!c->lost)
    memcpy(c->loss, f->failure, TEXT);
  c->lost = true;
  pthread_mutex_unlock(&c->lock);
}

/* Columns of a flight on the device, for `room` points, a multiple of 16. */
struct device_columns {
  int64_t *time;
  double *value;
  uint32_t *slot;
  float *score;
  uint8_t *state;
};

#define POINT_BYTES (sizeof(int64_t) + sizeof(double) + sizeof(uint32_t) + sizeof(float) + 1)

static struct device_columns device_columns(const struct flight *f, uint32_t room)
{
  struct device_columns d = { .time = (int64_t *)f->device };
  d.value = (double *)(d.time + room);
  d.slot = (uint32_t *)(d.value + room);
  d.score = (float *)(d.slot + room);
  d.state = (uint8_t *)(d.score + room);
  return d;
}

/* Makes room for batches of so many points; none is on the device. 0, or -ENOMEM with a text. */
static int room_make(struct cuda_backend *c, uint32_t points)
{
  const uint32_t room = (points + 15) & ~15u;
  cudaError_t failed = cudaSuccess;
  c->room = 0;
  for (uint32_t i = 0; i < c->in_flight; i++) {
    (void)cudaFree(c->flights[i].device);
    c->flights[i].device = NULL;
  }
  (void)cudaFree(c->work.next);
  (void)cudaFree(c->work.order);
  c->work.next = c->work.order = NULL;
  for (uint32_t i = 0; i < c->in_flight && !failed; i++)
    failed = cudaMalloc((void **)&c->flights[i].device, room * POINT_BYTES);
  if (!failed)
    failed = cudaMalloc((void **)&c->work.next, room * sizeof *c->work.next);
  if (!failed)
    failed = cudaMalloc((void **)&c->work.order, room * sizeof *c->work.order);
  if (!failed) {
    c->room = room;
    return 0;
  }
  size_t left = 0, all = 0;
  (void)cudaMemGetInfo(&left, &all);
  snprintf(c->failure, TEXT, "CUDA, memory for %u batches of %u points (%llu bytes): %s; %zu of %zu on the device are free",
           c->in_flight, points, (unsigned long long)room * (c->in_flight * POINT_BYTES + 2 * sizeof(uint32_t)),
           cudaGetErrorString(failed), left, all);
  (void)cudaGetLastError();
  return failed == cudaErrorMemoryAllocation ? -ENOMEM : -EIO;
}

/* Brings lists of tasks and what the device knows of sensors up to date. Batches in flight may use the old tasks: memory is
 * taken and given back in the order of the stream. */
static cudaError_t tasks_make(struct cuda_backend *c)
{
  const int64_t tasks = hk_records_lists(&c->records, c->room);
  if (tasks < 0)
    return (cudaError_t)-tasks;
  if ((uint64_t)tasks <= c->tasks)
    return cudaSuccess;
  cudaError_t failed = c->work.tasks ? cudaFreeAsync(c->work.tasks, c->main) : cudaSuccess;
  c->work.tasks = NULL;
  c->tasks = 0;
  const uint64_t some = (uint64_t)tasks + (uint64_t)tasks / 2;
  if (!failed)
    failed = cudaMallocAsync((void **)&c->work.tasks, some * sizeof *c->work.tasks, c->main);
  if (!failed)
    c->tasks = some;
  return failed;
}

/* Which detectors are to be launched: those that have sensors; of a few points, theirs. Returns how many. */
static uint32_t choose(struct cuda_backend *c, const struct flight *f)
{
  const struct hk_records *r = &c->records;
  const struct hk_batch *batch = f->batch;
  if (batch->n > LOOKED_AT || r->n_active < 2) {
    memcpy(c->launched, r->active, r->n_active * sizeof *r->active);
    return r->n_active;
  }
  uint32_t n = 0;
  for (uint32_t i = 0; i < batch->n; i++) {
    const struct hk_cuda_slot *entry = hk_records_at(r, batch->slot[i]);
    if (entry && c->launched_by[entry->detector] != f->number) {
      c->launched_by[entry->detector] = f->number;
      c->launched[n++] = entry->detector;
    }
  }
  return n;
}

static cudaError_t launch_detector(struct cuda_backend *c, cudaStream_t stream, uint32_t detector, uint32_t points,
                                   const struct hk_cuda_columns *columns)
{
  const uint32_t sensors = hk_records_most(&c->records, detector);
  return (cudaError_t)hk_cuda_score(stream, &c->detectors[detector], &c->plans[detector], c->scratch,
                                    c->work.tasks + hk_records_list(&c->records, detector), c->work.n_tasks + detector,
                                    points < sensors ? points : sensors, columns);
}

/* Detectors that need no scratch memory run next to each other on the side streams, then the others in turn on `main`. */
static cudaError_t launch_scores(struct cuda_backend *c, const struct flight *f, const struct hk_cuda_columns *columns)
{
  const uint32_t n = choose(c, f);
  uint32_t aside = 0;
  for (uint32_t i = 0; i < n; i++)
    aside += c->plans[c->launched[i]].scratch == 0;
  aside = n > 1 ? aside : 0;
  const uint32_t sides = aside < SIDES ? aside : SIDES;
  cudaError_t failed = sides > 0 ? cudaEventRecord(c->fork, c->main) : cudaSuccess;
  for (uint32_t i = 0; i < sides && !failed; i++)
    failed = cudaStreamWaitEvent(c->side[i], c->fork, 0);
  for (uint32_t i = 0, side = 0; i < n && !failed; i++) {
    const bool here = aside == 0 || c->plans[c->launched[i]].scratch > 0;
    failed = launch_detector(c, here ? c->main : c->side[side++ % SIDES], c->launched[i], f->batch->n, columns);
  }
  for (uint32_t i = 0; i < sides && !failed; i++) {
    failed = cudaEventRecord(c->joined[i], c->side[i]);
    if (!failed)
      failed = cudaStreamWaitEvent(c->main, c->joined[i], 0);
  }
  return failed;
}

static struct hk_cuda_columns columns_of(const struct cuda_backend *c, const struct flight *f)
{
  const struct device_columns d = device_columns(f, c->room);
  return (struct hk_cuda_columns){
    .time = d.time,
    .value = d.value,
    .order = c->work.order,
    .score = f->small ? f->batch->score : d.score,
    .state = f->small ? f->batch->state : d.state,
    .event = f->batch->event,
    .n_events = &c->work.counters->events,
    .capacity = f->batch->capacity,
    .arrival = f->batch->arrival,
    .refused = &c->work.counters->refused,
  };
}

static cudaError_t copy_up(const struct cuda_backend *c, const struct flight *f)
{
  const struct device_columns d = device_columns(f, c->room);
  const struct hk_batch *batch = f->batch;
  cudaError_t failed = cudaMemcpyAsync(d.slot, batch->slot, batch->n * sizeof *d.slot, cudaMemcpyHostToDevice, c->up);
  if (!failed)
    failed = cudaMemcpyAsync(d.time, batch->time, batch->n * sizeof *d.time, cudaMemcpyHostToDevice, c->up);
  if (!failed)
    failed = cudaMemcpyAsync(d.value, batch->value, batch->n * sizeof *d.value, cudaMemcpyHostToDevice, c->up);
  if (!failed)
    failed = cudaEventRecord(f->up, c->up);
  if (!failed)
    failed = cudaStreamWaitEvent(c->main, f->up, 0);
  return failed;
}

static cudaError_t copy_down(const struct cuda_backend *c, const struct flight *f)
{
  const struct device_columns d = device_columns(f, c->room);
  const struct hk_batch *batch = f->batch;
  cudaError_t failed = cudaEventRecord(f->scored, c->main);
  if (!failed)
    failed = cudaStreamWaitEvent(c->down, f->scored, 0);
  if (!failed)
    failed = cudaMemcpyAsync(batch->score, d.score, batch->n * sizeof *d.score, cudaMemcpyDeviceToHost, c->down);
  if (!failed)
    failed = cudaMemcpyAsync(batch->state, d.state, batch->n, cudaMemcpyDeviceToHost, c->down);
  return failed;
}

static cudaError_t launch_points(struct cuda_backend *c, const struct flight *f)
{
  const struct device_columns d = device_columns(f, c->room);
  const struct hk_cuda_columns columns = columns_of(c, f);
  cudaError_t failed = f->small ? cudaSuccess : copy_up(c, f);
  if (!failed)
    failed = tasks_make(c);
  if (!failed)
    failed = (cudaError_t)(f->small ? hk_cuda_group_small(c->main, &c->records.directory, &c->work, f->batch, d.time, d.value)
                                    : hk_cuda_group(c->main, &c->records.directory, &c->work, d.slot, f->batch->n));
  return failed ? failed : launch_scores(c, f, &columns);
}

/* Sweeps as many records as the batch surely has room for, as a sensor may give two notices; the next sweep goes on there. So
 * which notices come does not depend on the order in which the device writes them. */
static cudaError_t launch_sweep(struct cuda_backend *c, const struct flight *f)
{
  const struct hk_cuda_columns columns = columns_of(c, f);
  struct hk_records *r = &c->records;
  uint64_t left = 0;
  for (uint32_t i = 0; i < r->n_slabs; i++)
    left += r->slabs[i].used;
  if (left > f->batch->capacity / 2)
    left = f->batch->capacity / 2;
  cudaError_t failed = (cudaError_t)hk_commands_send(&r->commands);
  while (left > 0 && !failed) {
    const struct hk_cuda_slab *slab = &r->slabs[c->sweep_slab];
    const struct hk_detector *d = &c->detectors[slab->detector];
    const uint32_t rest = slab->used - c->sweep_record, n = left < rest ? (uint32_t)left : rest;
    if (n > 0)
      failed = (cudaError_t)hk_cuda_sweep(c->main, d, &r->directory, slab->base + c->sweep_record * hk_cuda_record_bytes(d), n,
                                          f->batch->idle, &columns);
    left -= n;
    c->sweep_record += n;
    if (c->sweep_record == slab->used) {
      c->sweep_slab = (c->sweep_slab + 1) % r->n_slabs;
      c->sweep_record = 0;
    }
  }
  return failed;
}

/* Puts a batch on the streams. */
static cudaError_t launch(struct cuda_backend *c, struct flight *f)
{
  const bool points = f->batch->kind == HK_BATCH_POINTS;
  hk_records_touch(&c->records);
  cudaError_t failed = !points ? launch_sweep(c, f) : f->batch->n > 0 ? launch_points(c, f) : cudaSuccess;
  if (!failed)
    failed = (cudaError_t)hk_cuda_finish(c->main, &c->work, c->n_detectors, f->answer, f->number);
  if (!failed && !f->small)
    failed = copy_down(c, f);
  if (!failed)
    failed = cudaEventRecord(f->finished, f->small ? c->main : c->down);
  return failed;
}

static int backend_submit(struct hk_backend *b, struct hk_batch *batch)
{
  struct cuda_backend *c = from(b);
  pthread_mutex_lock(&c->lock);
  const bool full = c->submitted - c->reaped == c->in_flight, busy = c->finished < c->submitted;
  pthread_mutex_unlock(&c->lock);
  if (full)
    return HK_AGAIN;
  const bool points = batch->kind == HK_BATCH_POINTS;
  if (batch->backend != b || (!points && batch->kind != HK_BATCH_SWEEP) || (points && batch->n > batch->capacity))
    return -EINVAL; /* the device writes into the batch's own memory */
  if (points && batch->capacity > c->room && busy && !c->lost)
    return HK_AGAIN;                                           /* its room is made while the device has none in work */
  struct flight *f = &c->flights[c->submitted % c->in_flight]; /* only this thread moves `submitted` */
  f->batch = batch;
  f->number = c->submitted + 1;
  f->small = !points || batch->n <= HK_CUDA_SMALL;
  f->status = 0;
  f->broken = false;
  if (c->lost) {
    f->status = -EIO;
    memcpy(f->failure, c->loss, TEXT);
  } else if (points && batch->capacity > c->room) {
    f->status = room_make(c, batch->capacity);
    memcpy(f->failure, c->failure, TEXT);
  }
  if (!f->status) {
    const cudaError_t failed = launch(c, f);
    if (failed)
      lose(c, f, "starting", failed);
    f->broken = failed != cudaSuccess;
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

static int64_t now_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* Waits without sleep, for a short time. Returns whether *word has come to be at least `number`. */
static bool spin(const _Atomic uint64_t *word, uint64_t number)
{
  for (const int64_t end = now_ns() + SPIN_NS; atomic_load_explicit(word, memory_order_acquire) < number;) {
    if (now_ns() > end)
      return false;
  }
  return true;
}

/* Waits until the device is done with a flight. */
static cudaError_t flight_await(struct cuda_backend *c, const struct flight *f)
{
  if (f->broken) { /* some of it may be under way, and nothing may write to what the caller gets back */
    (void)cudaStreamSynchronize(c->up);
    (void)cudaStreamSynchronize(c->main);
    (void)cudaStreamSynchronize(c->down);
    return cudaSuccess;
  }
  if (f->status || (f->small && spin((const _Atomic uint64_t *)&f->answer->done, f->number)))
    return cudaSuccess;
  return cudaEventSynchronize(f->finished);
}

static void flight_finish(struct cuda_backend *c, struct flight *f, cudaError_t failed)
{
  struct hk_batch *batch = f->batch;
  batch->n_events = 0;
  if (failed)
    lose(c, f, "on", failed);
  if (!f->status && f->answer->refused) {
    f->status = -EINVAL;
    snprintf(f->failure, TEXT, "a batch of %u points %s: nothing of it was scored", batch->n,
             f->answer->refused == HK_CUDA_UNBOUND ? "names a slot that is not bound" : "has too many points of one sensor");
  }
  batch->status = f->status;
  if (!f->status) {
    batch->n_events = f->answer->events < batch->capacity ? f->answer->events : batch->capacity;
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
    const cudaError_t failed = flight_await(c, f);
    pthread_mutex_lock(&c->lock);
    if (c->hung) /* too late: the batch is no longer ours */
      break;
    c->finishing = true;
    pthread_mutex_unlock(&c->lock);
    flight_finish(c, f, failed);
    pthread_mutex_lock(&c->lock);
    c->finishing = false;
    c->finished++;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (c->ready)
      c->ready(c->ready_arg);
    pthread_mutex_lock(&c->lock);
  }
  c->ended = true;
  pthread_cond_broadcast(&c->changed);
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
  const bool due = c->reaped == c->finished && c->finished < c->submitted;
  const bool soon = due && c->flights[c->finished % c->in_flight].small;
  pthread_mutex_unlock(&c->lock);
  if (soon && spin(&c->finished, c->reaped + 1))
    return;
  pthread_mutex_lock(&c->lock);
  while (c->reaped == c->finished && c->finished < c->submitted)
    pthread_cond_wait(&c->changed, &c->lock);
  pthread_mutex_unlock(&c->lock);
}

/* Waits until nothing is in flight (and, with `end`, the watching thread has ended) or the device must be taken for hung. Returns
 * whether all is well. Under lock. */
static bool calm(struct cuda_backend *c, bool end)
{
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += HUNG_SECONDS;
  int late = 0;
  while (!c->hung && (c->finished < c->submitted || (end && !c->ended)) && (!late || c->finishing))
    late = pthread_cond_timedwait(&c->changed, &c->lock, &until);
  c->hung = c->hung || c->finished < c->submitted;
  return !c->hung;
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
  (void)hk_records_remove(&c->records, slot, c->failure, sizeof c->failure); /* the next batch hears of it, too */
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
  struct cuda_backend *c = from(b);
  pthread_mutex_lock(&c->lock);
  const bool well = calm(c, false); /* giving pinned memory back waits for the device */
  pthread_mutex_unlock(&c->lock);
  if (well)
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

static void release(struct cuda_backend *c)
{
  for (uint32_t i = 0; c->flights && i < c->in_flight; i++) {
    (void)cudaFree(c->flights[i].device);
    event_free(c->flights[i].up);
    event_free(c->flights[i].scored);
    event_free(c->flights[i].finished);
  }
  if (c->work.tasks)
    (void)cudaFreeAsync(c->work.tasks, c->main);
  (void)cudaFree(c->work.counters);
  (void)cudaFree(c->work.n_tasks);
  (void)cudaFree(c->work.next);
  (void)cudaFree(c->work.order);
  (void)cudaFree(c->scratch);
  (void)cudaFreeHost(c->answers);
  hk_records_close(&c->records);
  for (uint32_t i = 0; i < SIDES; i++) {
    event_free(c->joined[i]);
    stream_free(c->side[i]);
  }
  event_free(c->fork);
  stream_free(c->main);
  stream_free(c->up);
  stream_free(c->down);
  free(c->launched);
  free(c->launched_by);
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
  const bool well = calm(c, true);
  pthread_mutex_unlock(&c->lock);
  if (!well) {
    /* The thread and all memory stay: the device may come back to them. */
    fprintf(stderr,
            "hankeld: the GPU has not finished its work for %d s: it is left to itself, its memory is lost to this process\n",
            HUNG_SECONDS);
    (void)pthread_detach(c->watcher);
    return;
  }
  pthread_join(c->watcher, NULL);
  (void)cudaStreamSynchronize(c->main);
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
  uint64_t scratch = 0;
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
    scratch = bytes > scratch ? bytes : scratch;
  }
  for (uint32_t i = 0; i < c->n_detectors && !status; i++) {
    struct hk_cuda_plan *plan = &c->plans[i];
    if (plan->scratch > 0 && plan->resident > scratch / plan->scratch)
      plan->resident = (uint32_t)(scratch / plan->scratch);
  }
  if (!status && scratch > 0 && cudaMalloc((void **)&c->scratch, scratch)) {
    snprintf(error, size, "CUDA: the detectors need %llu bytes on the device to work in, and %zu of %zu are free",
             (unsigned long long)scratch, left, all);
    (void)cudaGetLastError();
    status = -ENOMEM;
  }
  return status;
}

static cudaError_t streams_make(struct cuda_backend *c)
{
  cudaStream_t *const streams[] = { &c->main, &c->up, &c->down };
  cudaError_t failed = cudaEventCreateWithFlags(&c->fork, cudaEventDisableTiming);
  for (uint32_t i = 0; i < 3 && !failed; i++)
    failed = cudaStreamCreateWithFlags(streams[i], cudaStreamNonBlocking);
  for (uint32_t i = 0; i < SIDES && !failed; i++) {
    failed = cudaStreamCreateWithFlags(&c->side[i], cudaStreamNonBlocking);
    if (!failed)
      failed = cudaEventCreateWithFlags(&c->joined[i], cudaEventDisableTiming);
  }
  for (uint32_t i = 0; i < c->in_flight && !failed; i++) {
    struct flight *f = &c->flights[i];
    failed = cudaEventCreateWithFlags(&f->up, cudaEventDisableTiming);
    if (!failed)
      failed = cudaEventCreateWithFlags(&f->scored, cudaEventDisableTiming);
    if (!failed)
      failed = cudaEventCreateWithFlags(&f->finished, cudaEventBlockingSync | cudaEventDisableTiming);
  }
  return failed;
}

static cudaError_t counters_make(struct cuda_backend *c)
{
  struct hk_cuda_work *work = &c->work;
  cudaError_t failed = cudaMallocHost((void **)&c->answers, c->in_flight * sizeof *c->answers);
  if (!failed)
    failed = cudaMalloc((void **)&work->counters, sizeof *work->counters);
  if (!failed)
    failed = cudaMalloc((void **)&work->n_tasks, c->n_detectors * sizeof *work->n_tasks);
  if (!failed)
    failed = cudaMemsetAsync(work->counters, 0, sizeof *work->counters, c->main);
  if (!failed)
    failed = cudaMemsetAsync(work->n_tasks, 0, c->n_detectors * sizeof *work->n_tasks, c->main);
  for (uint32_t i = 0; i < c->in_flight && !failed; i++) {
    c->flights[i].answer = &c->answers[i];
    c->answers[i] = (struct hk_cuda_answer){ 0 };
  }
  return failed;
}

/* Takes everything but the thread. What was taken is released by the caller when this fails. */
static int prepare(struct cuda_backend *c, const struct hk_backend_config *config, char *error, size_t size)
{
  int count = 0, status = refuse(cudaGetDeviceCount(&count), "looking for a GPU", error, size);
  if (!status)
    status = refuse(count > 0 ? cudaSetDevice(0) : cudaErrorNoDevice, "opening the GPU", error, size);
  if (!status)
    status = refuse(streams_make(c), "making streams", error, size);
  if (!status)
    status = refuse((cudaError_t)hk_cuda_road_load(), "loading the kernels", error, size);
  if (!status)
    status = scratch_take(c, error, size);
  if (!status)
    status = refuse(counters_make(c), "making counters", error, size);
  c->records = (struct hk_records){ .detectors = c->detectors,
                                    .n_detectors = c->n_detectors,
                                    .max = config->max_sensors,
                                    .limit = config->memory,
                                    .stream = c->main };
  return status ? status : hk_records_open(&c->records, error, size);
}

/* The watching thread, and what it shares with the shard's. 0 or a negative errno. */
static int watcher_start(struct cuda_backend *c)
{
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->changed, &clock);
  pthread_condattr_destroy(&clock);
  const int status = -pthread_create(&c->watcher, NULL, watch, c);
  if (status) {
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
  }
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
  c->launched = calloc(c->n_detectors, sizeof *c->launched);
  c->launched_by = calloc(c->n_detectors, sizeof *c->launched_by);
  c->flights = calloc(c->in_flight, sizeof *c->flights);
  int status = c->detectors && c->plans && c->launched && c->launched_by && c->flights ? 0 : -ENOMEM;
  if (status) {
    snprintf(error, size, "no memory for %u detectors", c->n_detectors);
  } else {
    memcpy(c->detectors, config->detectors, c->n_detectors * sizeof *c->detectors);
    status = prepare(c, config, error, size);
  }
  if (!status) {
    status = watcher_start(c);
    if (status)
      snprintf(error, size, "no thread for the CUDA backend: %s", strerror(-status));
  }
  if (status) {
    release(c);
    return status;
  }
  *out = &c->backend;
  return 0;
}
