/* Memory and streams, and waiting for them: see batch.h. launch.c puts batches on them.
 *
 * Failure modes: out of memory is told with figures; of what else CUDA says the caller makes a status. */
#include "gpu/backend/batch.h"
#include "cpu/monotonic.h"
#include "gpu/backend/batch_kernels.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PAUSE_NS 30000 /* between two looks whether a batch is done, after HK_CUDA_SPIN_NS */

int hk_cuda_batches_room(struct hk_cuda_batches *r, uint32_t points, char *error, size_t size)
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
    failed = cudaMalloc((void **)&r->places[i].device, room * HK_CUDA_POINT_BYTES);
    if (!failed) /* columns of a refused batch are copied back as they are */
      failed = cudaMemsetAsync(r->places[i].device, 0, room * HK_CUDA_POINT_BYTES, r->up);
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
           r->n_places, points, (unsigned long long)room * (r->n_places * HK_CUDA_POINT_BYTES + 2 * sizeof(uint32_t)),
           cudaGetErrorString(failed), left, all);
  (void)cudaGetLastError(); /* said; must not be taken for the next call's */
  return failed == cudaErrorMemoryAllocation ? -ENOMEM : -EIO;
}

int hk_cuda_batches_images(struct hk_cuda_batches *r, uint64_t bytes, char *error, size_t size)
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
int hk_cuda_batches_ready(struct hk_cuda_batches *r, char *error, size_t size)
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

/* 0 when the device is done with a batch, cudaErrorNotReady when it is not, or how it failed. A small batch is done when its last
 * word is there, which costs nothing to look for; whether the device has failed is asked only when it comes late. */
static cudaError_t place_state(const struct hk_cuda_batches *r, const struct hk_cuda_batch_place *p, bool late)
{
  if (!p->small)
    return cudaEventQuery(p->finished);
  if (hk_cuda_answered(atomic_load_explicit((const _Atomic uint64_t *)p->answer, memory_order_acquire)) == (uint32_t)p->number)
    return cudaSuccess;
  const cudaError_t state = late ? cudaStreamQuery(r->main) : cudaErrorNotReady;
  return state ? state : cudaErrorNotReady;
}

int hk_cuda_batches_await(const struct hk_cuda_batches *r, const struct hk_cuda_batch_place *p)
{
  const struct timespec pause = { 0, PAUSE_NS };
  const int64_t end = hk_monotonic() + HK_CUDA_SPIN_NS;
  for (bool late = false;; late = hk_monotonic() > end) {
    if (late)
      nanosleep(&pause, NULL);
    const cudaError_t state = place_state(r, p, late);
    if (state != cudaErrorNotReady)
      return (int)state;
  }
}

void hk_cuda_batches_drain(const struct hk_cuda_batches *r)
{
  (void)cudaStreamSynchronize(r->up);
  (void)cudaStreamSynchronize(r->main);
  (void)cudaStreamSynchronize(r->down);
}

static cudaError_t streams_make(struct hk_cuda_batches *r)
{
  cudaStream_t *const streams[] = { &r->main, &r->up, &r->down };
  cudaError_t failed = cudaEventCreateWithFlags(&r->fork, cudaEventDisableTiming);
  if (!failed)
    failed = cudaEventCreateWithFlags(&r->images_free, cudaEventDisableTiming);
  for (uint32_t i = 0; i < 3 && !failed; i++)
    failed = cudaStreamCreateWithFlags(streams[i], cudaStreamNonBlocking);
  for (uint32_t i = 0; i < HK_CUDA_SIDE_STREAMS && !failed; i++) {
    failed = cudaStreamCreateWithFlags(&r->side[i], cudaStreamNonBlocking);
    if (!failed)
      failed = cudaEventCreateWithFlags(&r->joined[i], cudaEventDisableTiming);
  }
  for (uint32_t i = 0; i < r->n_places && !failed; i++) {
    struct hk_cuda_batch_place *p = &r->places[i];
    failed = cudaEventCreateWithFlags(&p->up, cudaEventDisableTiming);
    if (!failed)
      failed = cudaEventCreateWithFlags(&p->scored, cudaEventDisableTiming);
    if (!failed)
      failed = cudaEventCreateWithFlags(&p->finished, cudaEventDisableTiming);
  }
  return failed;
}

static cudaError_t counters_make(struct hk_cuda_batches *r)
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

int hk_cuda_batches_open(struct hk_cuda_batches *r, const struct hk_backend_config *config, uint32_t places, char *error,
                         size_t size)
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
  r->blocks = config->blocks;
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
    status = hk_families_open(&r->families, r->detectors, r->n_detectors, r->blocks, error, size);
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

int hk_cuda_batches_define(struct hk_cuda_batches *r, const struct hk_definition *definitions, uint32_t n, char *error,
                           size_t size)
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
  status = hk_families_open(&families, table, n_after, r->blocks, error, size);
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
void hk_cuda_batches_close(struct hk_cuda_batches *r)
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
  for (uint32_t i = 0; i < HK_CUDA_SIDE_STREAMS; i++) {
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
