/* The CUDA backend: batches in flight and what becomes of them. batch.c puts them on the device.
 *
 * Happy path: submit looks at no point and puts a batch on the device's streams; a thread waits for the oldest batch in flight,
 * puts its events in order and calls ready; reap hands the batch out.
 *
 * Failure modes: what CUDA says of a batch becomes its status, -EIO, and a text for the log (hk_cuda_failure). After that the
 * device is not used again: all later batches come back at once with the same status. A batch that is bad comes back with
 * -EINVAL. A device that never answers is left to itself by close, with all memory that it may still write to. Out of memory is
 * found in open, add and submit, and told with figures. */
#include "cpu/monotonic.h"
#include "gpu/backend/batch.h"
#include "gpu/backend/launch.h"
#include "gpu/cuda.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define IN_FLIGHT 4
#define TEXT 320
#define HUNG_SECONDS 5 /* after this time close abandons a device that has not finished its batches */

/* A place in flight; one for each place of `batches`. Owner: the shard's thread until submitted, the watching thread until
 * finished. */
struct flight {
  struct hk_batch *batch;
  int status;
  bool broken; /* only a part of its work could be put on the streams */
  char failure[TEXT];
};

struct cuda_backend {
  struct hk_backend backend;
  struct hk_cuda_batches batches;
  struct flight *flights;
  uint32_t in_flight;
  char failure[TEXT];
  void (*ready)(void *arg);
  void *ready_arg;
  pthread_t watcher;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t submitted, reaped; /* batches so far; under lock */
  _Atomic uint64_t finished;  /* changed under lock */
  uint64_t overdue;           /* 1 + the number of finished batches at the last timeout; under lock */
  /* under lock: close was called; the watching thread is busy with a batch that the device is done with; the device was given up
   * as hung, and what it may write to is left to it */
  bool closing, finishing, hung;
  _Atomic bool lost; /* the device failed, and is not used again */
  char loss[TEXT];   /* description of the failure; written before `lost` is set */
};

static struct cuda_backend *from(struct hk_backend *b)
{
  return (struct cuda_backend *)b;
}

/* CUDA calls of this thread are for the backend's device from now on. A device that cannot be had any more is told by the calls
 * that follow. */
static struct cuda_backend *enter(struct hk_backend *b)
{
  struct cuda_backend *c = from(b);
  (void)cudaSetDevice((int)c->batches.device);
  return c;
}

/* The device failed on a batch: reports the failure for this batch and all later ones. */
static void cuda_backend_lose(struct cuda_backend *c, struct flight *f)
{
  f->status = -EIO;
  pthread_mutex_lock(&c->lock);
  if (!c->lost)
    memcpy(c->loss, f->failure, TEXT);
  c->lost = true;
  pthread_mutex_unlock(&c->lock);
}

static void cuda_backend_say(struct flight *f, const char *doing, cudaError_t failed)
{
  snprintf(f->failure, TEXT,
           "CUDA, %s a batch of %u points: %s (%s). The GPU is not used again until the program restarts; the kernel's "
           "log (dmesg, Xid) may say more",
           doing, f->batch->n, cudaGetErrorString(failed), cudaGetErrorName(failed));
}

static int backend_submit(struct hk_backend *b, struct hk_batch *batch)
{
  struct cuda_backend *c = enter(b);
  pthread_mutex_lock(&c->lock);
  const bool full = c->submitted - c->reaped == c->in_flight, busy = c->finished < c->submitted;
  pthread_mutex_unlock(&c->lock);
  if (full)
    return HK_AGAIN;
  const bool points = batch->kind == HK_BATCH_POINTS, sweep = batch->kind == HK_BATCH_SWEEP;
  const bool images = batch->kind == HK_BATCH_EXPORT;
  uint64_t bytes = 0;
  if (batch->backend != b || !(points || sweep || images) || (!sweep && batch->n > batch->capacity))
    return -EINVAL; /* the device writes into the batch's own memory */
  if (images && hk_records_plan(&c->batches.records, batch, &bytes) != 0)
    return -EINVAL;
  const bool larger = (points && batch->capacity > c->batches.room) || bytes > c->batches.images_size;
  if (larger && busy && !c->lost)
    return HK_AGAIN;                                  /* memory is enlarged only while no batch is on the device */
  const uint32_t place = c->submitted % c->in_flight; /* only this thread moves `submitted` */
  c->batches.places[place].images = bytes;
  struct flight *f = &c->flights[place];
  f->batch = batch;
  f->status = 0;
  f->broken = false;
  if (c->lost) {
    f->status = -EIO;
    memcpy(f->failure, c->loss, TEXT);
  } else {
    if (larger)
      f->status = points ? hk_cuda_batches_room(&c->batches, batch->capacity, f->failure, TEXT)
                         : hk_cuda_batches_images(&c->batches, batch->bulk_size, f->failure, TEXT);
    if (!f->status)
      f->status = hk_cuda_batches_ready(&c->batches, f->failure, TEXT);
    if (!f->status) {
      const cudaError_t failed =
          (cudaError_t)hk_cuda_batches_launch(&c->batches, &c->batches.places[place], batch, c->submitted + 1);
      f->broken = failed != cudaSuccess;
      if (failed)
        cuda_backend_say(f, "starting", failed);
    }
    if (f->broken || (f->status && f->status != -ENOMEM))
      cuda_backend_lose(c, f);
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

/* Waits until the device has finished a flight. */
static cudaError_t flight_await(struct cuda_backend *c, const struct flight *f)
{
  if (f->broken)
    hk_cuda_batches_drain(&c->batches); /* nothing may write to the batch after its return to the caller */
  return f->status ? cudaSuccess : (cudaError_t)hk_cuda_batches_await(&c->batches, &c->batches.places[f - c->flights]);
}

static void flight_finish(struct cuda_backend *c, struct flight *f, cudaError_t failed)
{
  struct hk_batch *batch = f->batch;
  const uint64_t answer = *c->batches.places[f - c->flights].answer;
  batch->n_events = 0;
  if (failed) {
    cuda_backend_say(f, "on", failed);
    cuda_backend_lose(c, f);
  }
  if (!f->status && hk_cuda_refused(answer)) {
    f->status = -EINVAL;
    snprintf(f->failure, TEXT, "a batch of %u points %s: nothing of it was scored", batch->n,
             hk_cuda_refused(answer) == HK_CUDA_UNBOUND ? "names a slot that is not bound" : "has too many points of one sensor");
  }
  batch->status = f->status;
  if (!f->status) {
    batch->n_events = hk_cuda_events(answer) < batch->capacity ? hk_cuda_events(answer) : batch->capacity;
    qsort(batch->event, batch->n_events, sizeof *batch->event, event_order);
  }
}

/* Finishes batches in the order of the device. Ends when no batch is in flight and close was called. */
static void *watch(void *arg)
{
  struct cuda_backend *c = enter(arg);
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
    if (c->hung) /* too late: the batch was returned to its owner */
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
  const int64_t end = hk_monotonic() + HK_CUDA_SPIN_NS;
  pthread_mutex_lock(&c->lock);
  const bool due = c->reaped == c->finished && c->finished < c->submitted;
  pthread_mutex_unlock(&c->lock);
  while (due && c->finished == c->reaped && hk_monotonic() < end)
    continue;
  pthread_mutex_lock(&c->lock);
  while (c->reaped == c->finished && c->finished < c->submitted)
    pthread_cond_wait(&c->changed, &c->lock);
  pthread_mutex_unlock(&c->lock);
}

/* Waits until nothing is in flight; not for ever, and not a second time when no batch has come back since. Returns whether that
 * is so. Under lock. */
static bool calm(struct cuda_backend *c)
{
  const struct timespec until = hk_monotonic_limit(HUNG_SECONDS * 1000000000ll);
  int late = c->overdue == c->finished + 1 ? ETIMEDOUT : 0;
  while (c->finished < c->submitted && (!late || c->finishing))
    late = pthread_cond_timedwait(&c->changed, &c->lock, &until);
  if (c->finished < c->submitted)
    c->overdue = c->finished + 1;
  return c->finished == c->submitted;
}

static uint64_t backend_need(const struct hk_backend *b, uint32_t detector, uint64_t sensors)
{
  return hk_records_need(&((const struct cuda_backend *)b)->batches.records, detector, sensors);
}

static int backend_add(struct hk_backend *b, uint32_t slot, uint32_t detector, uint64_t seed)
{
  struct cuda_backend *c = enter(b);
  return hk_records_add(&c->batches.records, slot, detector, seed, c->failure, sizeof c->failure);
}

static int backend_define(struct hk_backend *b, const struct hk_definition *definitions, uint32_t n, char *error, size_t size)
{
  struct cuda_backend *c = enter(b);
  pthread_mutex_lock(&c->lock);
  const bool busy = c->submitted != c->reaped;
  pthread_mutex_unlock(&c->lock);
  if (busy) {
    snprintf(error, size, "a batch is in flight");
    return -EBUSY;
  }
  return hk_cuda_batches_define(&c->batches, definitions, n, error, size);
}

static void backend_limit(struct hk_backend *b, uint64_t memory)
{
  from(b)->batches.records.limit = memory;
}

static void backend_remove(struct hk_backend *b, uint32_t slot)
{
  struct cuda_backend *c = enter(b);
  (void)hk_records_remove(&c->batches.records, slot, c->failure, sizeof c->failure); /* the next batch reports it, too */
}

static int64_t backend_export(struct hk_backend *b, uint32_t slot, void *state, size_t size)
{
  struct cuda_backend *c = enter(b);
  return hk_records_export(&c->batches.records, slot, state, size, c->failure, sizeof c->failure);
}

static int backend_import(struct hk_backend *b, uint32_t slot, const void *state, size_t size)
{
  struct cuda_backend *c = enter(b);
  return hk_records_import(&c->batches.records, slot, state, size, c->failure, sizeof c->failure);
}

static void *backend_alloc(struct hk_backend *b, size_t bytes)
{
  struct cuda_backend *c = enter(b);
  void *memory = NULL;
  const cudaError_t failed = cudaMallocHost(&memory, bytes);
  if (!failed)
    return memory;
  snprintf(c->failure, sizeof c->failure, "CUDA, %zu bytes of pinned memory: %s", bytes, cudaGetErrorString(failed));
  (void)cudaGetLastError(); /* said; must not be taken for the next call's */
  return NULL;
}

static bool in_use(const struct hk_batch *batch, const void *memory)
{
  return batch->time == memory || (batch->kind == HK_BATCH_EXPORT && batch->bulk == memory);
}

static void backend_free(struct hk_backend *b, void *memory)
{
  struct cuda_backend *c = enter(b);
  pthread_mutex_lock(&c->lock);
  const bool well = calm(c); /* freeing pinned memory waits for the device */
  for (uint64_t i = c->finished; !well && i < c->submitted; i++)
    c->hung = c->hung || in_use(c->flights[i % c->in_flight].batch, memory); /* the caller has abandoned the device */
  pthread_mutex_unlock(&c->lock);
  if (well)
    (void)cudaFreeHost(memory); /* fails only when the device is lost, and then the process has lost the memory too */
}

static void backend_close(struct hk_backend *b);

static const struct hk_backend_ops operations = {
  .name = "cuda",
  .need = backend_need,
  .add = backend_add,
  .define = backend_define,
  .limit = backend_limit,
  .remove = backend_remove,
  .submit = backend_submit,
  .reap = backend_reap,
  .wait = backend_wait,
  .export_ = backend_export,
  .import_ = backend_import,
  .image_most = hk_records_image_most,
  .state_of = hk_records_state_of,
  .alloc = backend_alloc,
  .free = backend_free,
  .close = backend_close,
};

const char *hk_cuda_failure(struct hk_backend *b)
{
  return from(b)->failure;
}

static void backend_close(struct hk_backend *b)
{
  struct cuda_backend *c = enter(b);
  pthread_mutex_lock(&c->lock);
  c->closing = true;
  pthread_cond_broadcast(&c->changed);
  c->hung = !calm(c) || c->hung;
  pthread_mutex_unlock(&c->lock);
  if (c->hung) {
    /* The thread and all memory are kept: the device may still access them. */
    fprintf(stderr,
            "hankeld: the GPU has not finished its work for %d s: it is left to itself, its memory is lost to this process\n",
            HUNG_SECONDS);
    (void)pthread_detach(c->watcher);
    return;
  }
  pthread_join(c->watcher, NULL);
  hk_cuda_batches_drain(&c->batches);
  pthread_cond_destroy(&c->changed);
  pthread_mutex_destroy(&c->lock);
  hk_cuda_batches_close(&c->batches);
  free(c->flights);
  free(c);
}

/* Starts the watching thread, and initialises what it shares with the shard's thread. Returns 0 or a negative errno. */
static int watcher_start(struct cuda_backend *c)
{
  pthread_mutex_init(&c->lock, NULL);
  hk_monotonic_condition(&c->changed);
  const int status = -pthread_create(&c->watcher, NULL, watch, c);
  if (status) {
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
  } else {
    (void)pthread_setname_np(c->watcher, "gpu watch"); /* for top and debuggers */
  }
  return status;
}

uint32_t hk_cuda_devices(void)
{
  int count = 0;
  const cudaError_t failed = cudaGetDeviceCount(&count);
  (void)cudaGetLastError(); /* must not be taken for the next call's */
  return failed ? 0 : (uint32_t)count;
}

int hk_cuda_open(struct hk_backend **out, const struct hk_backend_config *config, char *error, size_t size)
{
  *out = NULL;
  if (config->n_detectors < 1 || config->n_detectors > 65535 || config->max_detectors > 65535 || config->max_sensors < 1) {
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
  c->in_flight = config->in_flight ? config->in_flight : IN_FLIGHT;
  c->ready = config->ready;
  c->ready_arg = config->ready_arg;
  c->flights = calloc(c->in_flight, sizeof *c->flights);
  int status = -ENOMEM;
  if (c->flights)
    status = hk_cuda_batches_open(&c->batches, config, c->in_flight, error, size);
  else
    snprintf(error, size, "no memory for %u batches in flight", c->in_flight);
  if (!status) {
    status = watcher_start(c);
    if (status)
      snprintf(error, size, "no thread for the CUDA backend: %s", strerror(-status));
  }
  if (status) {
    hk_cuda_batches_close(&c->batches);
    free(c->flights);
    free(c);
    return status;
  }
  *out = &c->backend;
  return 0;
}
