/* The way of a batch through a backend on the host: see engine.h. Errors occur in submit (a malformed batch, no place) or in add
 * (no memory); an accepted batch always returns with status 0. */
#include "cpu/backend/engine.h"
#include "cpu/backend/state_size.h"
#include "cpu/lapack.h"
#include "cpu/rules/state.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(struct hk_chain) + 2 * sizeof(uint32_t) <= HK_BATCH_WORK, "the work column holds the chains");
static_assert(sizeof(struct hk_image) <= HK_BATCH_WORK, "and the images");

/* Images are states in the format of cpu/rules/state.h, made by the worker threads. */
static void export_some(struct hk_engine *e, struct hk_batch *batch, uint32_t from, uint32_t to)
{
  struct hk_image *image = batch->work;
  for (uint32_t i = from; i < to; i++) {
    if (image[i].size == 0)
      continue;
    struct hk_sensor *sensor = image[i].record;
    const int64_t size =
        e->kind->export_(sensor, hk_sensor_detector(&e->sensors, sensor), (char *)batch->bulk + image[i].at, image[i].size);
    image[i].size = (uint32_t)size; /* at most the planned size */
  }
}

/* Assigns the place of each image. Returns 0, or -EINVAL: they do not fit. */
static int plan_export(const struct hk_engine *e, struct hk_batch *batch)
{
  struct hk_image *image = batch->work;
  uint64_t at = 0;
  if (batch->n > batch->capacity)
    return -EINVAL;
  for (uint32_t i = 0; i < batch->n; i++) {
    struct hk_sensor *sensor = hk_sensors_at(&e->sensors, batch->slot[i]);
    const uint64_t most = sensor ? hk_engine_image_most(hk_sensor_detector(&e->sensors, sensor)) : 0;
    image[i] = (struct hk_image){ at, (uint32_t)most, sensor ? sensor->detector : 0, sensor };
    at += most;
    if (at > batch->bulk_size)
      return -EINVAL;
  }
  return 0;
}

/* The pieces of a batch of points, or of an export, are its sensors; a sweep is one piece. */
static void engine_run(void *owner, uint32_t worker, const struct hk_job *job, uint32_t from, uint32_t to)
{
  struct hk_engine *e = owner;
  if (job->batch->kind == HK_BATCH_SWEEP)
    hk_sensors_sweep(&e->sensors, job->batch);
  else if (job->batch->kind == HK_BATCH_EXPORT)
    export_some(e, job->batch, from, to < job->batch->n ? to : job->batch->n);
  else
    e->kind->run(e->worker[worker], e->sensors.detectors, job->batch, job->chains.chain + from, job->chains.next,
                 to < job->chains.n ? to - from : job->chains.n - from);
}

static void engine_finish(void *owner, const struct hk_job *job)
{
  (void)owner;
  struct hk_batch *batch = job->batch;
  if (batch->kind != HK_BATCH_POINTS)
    return;
  batch->n_events = 0;
  for (uint32_t i = 0; i < batch->n; i++) {
    if (job->chains.next[i] == HK_CHAIN_EVENT)
      batch->event[batch->n_events++] = batch->event[i];
  }
}

/* workers: NULL is allowed. */
static void workers_free(const struct hk_engine *e, void **workers)
{
  for (uint32_t i = 0; workers && i < e->threads; i++)
    e->kind->worker_free(workers[i]);
  free(workers);
}

/* Loads what the detectors of a table are computed with. 0, or -ELIBACC with a message. */
static int engine_load(const struct hk_engine_kind *kind, const struct hk_detector *detectors, uint32_t n, char *error,
                       size_t size)
{
  bool lapack = kind->lapack;
  for (uint32_t i = 0; i < n && !lapack; i++)
    lapack = detectors[i].algorithm == HK_ALGORITHM_SVD;
  char why[HK_LIBRARY_WHY];
  const int status = lapack ? hk_lapack_load(why, sizeof why) : 0;
  if (status != 0)
    snprintf(error, size, "%s: %s", kind->lapack ? "backend = reference" : "algorithm = svd", why);
  return status;
}

int hk_engine_open(struct hk_backend **out, const struct hk_backend_ops *ops, const struct hk_engine_kind *kind,
                   const struct hk_backend_config *config, uint32_t threads, char *error, size_t size)
{
  struct hk_engine *e = calloc(1, sizeof *e);
  if (!e) {
    snprintf(error, size, "no memory for a backend");
    return -ENOMEM;
  }
  e->backend.ops = ops;
  e->kind = kind;
  e->threads = threads;
  int status = hk_sensors_open(&e->sensors, config, kind->sample_size, error, size);
  if (status == 0)
    status = engine_load(kind, e->sensors.detectors, e->sensors.n_detectors, error, size);
  e->worker = calloc(threads, sizeof *e->worker);
  if (status == 0 && !e->worker) {
    snprintf(error, size, "no memory for %u threads", threads);
    status = -ENOMEM;
  }
  for (uint32_t i = 0; i < threads && status == 0; i++) {
    status = kind->worker_new(&e->worker[i], e->sensors.detectors, e->sensors.n_detectors);
    if (status < 0)
      snprintf(error, size, "no memory for the work space of thread %u of %u", i + 1, threads);
  }
  const struct hk_queue_work work = { e, engine_run, engine_finish };
  if (status == 0)
    status = hk_queue_open(&e->queue, &work, threads, config->in_flight, config->ready, config->ready_arg, error, size);
  if (status < 0) {
    hk_engine_close(&e->backend);
    return status;
  }
  *out = &e->backend;
  return 0;
}

void hk_engine_close(struct hk_backend *b)
{
  struct hk_engine *e = (struct hk_engine *)b;
  hk_queue_close(e->queue);
  workers_free(e, e->worker);
  hk_sensors_close(&e->sensors);
  free(e);
}

uint64_t hk_engine_need(const struct hk_backend *b, uint32_t detector, uint64_t sensors)
{
  return hk_sensors_need(&((const struct hk_engine *)b)->sensors, detector, sensors);
}

int hk_engine_add(struct hk_backend *b, uint32_t slot, uint32_t detector, uint64_t seed)
{
  struct hk_engine *e = (struct hk_engine *)b;
  struct hk_sensor *sensor;
  const int status = hk_sensors_add(&e->sensors, slot, detector, seed, &sensor);
  if (status != 0)
    return status;
  e->kind->reset(sensor, hk_sensor_detector(&e->sensors, sensor));
  hk_sensors_show(&e->sensors, sensor);
  return 0;
}

/* Makes the work space of all threads for the detectors of a table. NULL: out of memory. */
static void **workers_new(const struct hk_engine *e, const struct hk_detector *detectors, uint32_t n_detectors)
{
  void **workers = calloc(e->threads, sizeof *workers);
  bool all = workers != NULL;
  for (uint32_t i = 0; i < e->threads && all; i++)
    all = e->kind->worker_new(&workers[i], detectors, n_detectors) == 0;
  if (!all)
    workers_free(e, workers);
  return all ? workers : NULL;
}

int hk_engine_define(struct hk_backend *b, const struct hk_definition *definitions, uint32_t n, char *error, size_t size)
{
  struct hk_engine *e = (struct hk_engine *)b;
  uint32_t n_after;
  const int status = hk_definitions_check(definitions, n, e->sensors.n_detectors, e->sensors.room, &n_after, error, size);
  if (status != 0)
    return status;
  bool busy = !hk_queue_idle(e->queue);
  for (uint32_t i = 0; i < n; i++)
    busy |= hk_sensors_bound(&e->sensors, definitions[i].number) > 0;
  if (busy) {
    snprintf(error, size, "a detector is in use");
    return -EBUSY;
  }
  struct hk_detector *table = calloc(n_after, sizeof *table);
  void **workers = NULL;
  int loaded = 0;
  if (table) {
    memcpy(table, e->sensors.detectors, e->sensors.n_detectors * sizeof *table);
    for (uint32_t i = 0; i < n; i++)
      table[definitions[i].number] = definitions[i].detector ? *definitions[i].detector : (struct hk_detector){ 0 };
    loaded = engine_load(e->kind, table, n_after, error, size);
    workers = loaded == 0 ? workers_new(e, table, n_after) : NULL;
  }
  free(table);
  if (loaded != 0)
    return loaded;
  if (!workers) {
    snprintf(error, size, "no memory for the work space of %u threads", e->threads);
    return -ENOMEM;
  }
  workers_free(e, e->worker);
  e->worker = workers;
  for (uint32_t i = 0; i < n; i++)
    hk_sensors_define(&e->sensors, definitions[i].number, definitions[i].detector);
  return 0;
}

void hk_engine_limit(struct hk_backend *b, uint64_t memory)
{
  ((struct hk_engine *)b)->sensors.limit = memory;
}

void hk_engine_remove(struct hk_backend *b, uint32_t slot)
{
  hk_sensors_remove(&((struct hk_engine *)b)->sensors, slot);
}

int hk_engine_submit(struct hk_backend *b, struct hk_batch *batch)
{
  struct hk_engine *e = (struct hk_engine *)b;
  if (hk_queue_full(e->queue))
    return HK_AGAIN;
  struct hk_job job = { .batch = batch };
  if (batch->kind == HK_BATCH_POINTS) {
    const int status = hk_sensors_chains(&e->sensors, batch, &job.chains);
    if (status < 0)
      return status;
  }
  if (batch->kind == HK_BATCH_EXPORT) {
    const int status = plan_export(e, batch);
    if (status < 0)
      return status;
    job.pieces = batch->n;
  } else {
    job.pieces = job.chains.n;
  }
  job.pieces += job.pieces == 0; /* a sweep, or an empty batch, passes through the queue as one piece */
  batch->status = 0;
  batch->n_events = 0;
  hk_queue_submit(e->queue, &job);
  return 0;
}

struct hk_batch *hk_engine_reap(struct hk_backend *b)
{
  return hk_queue_reap(((struct hk_engine *)b)->queue);
}

void hk_engine_wait(struct hk_backend *b)
{
  hk_queue_wait(((struct hk_engine *)b)->queue);
}

int64_t hk_engine_export(struct hk_backend *b, uint32_t slot, void *state, size_t size)
{
  struct hk_engine *e = (struct hk_engine *)b;
  struct hk_sensor *sensor = hk_sensors_at(&e->sensors, slot);
  return sensor ? e->kind->export_(sensor, hk_sensor_detector(&e->sensors, sensor), state, size) : -ENOENT;
}

uint64_t hk_engine_image_most(const struct hk_detector *d)
{
  return (hk_state_most(d) + 7) / 8 * 8;
}

const void *hk_engine_state_of(void *image, const struct hk_detector *d, void *room, size_t *size)
{
  (void)d;
  (void)room;
  (void)size;
  return image;
}

void *hk_engine_alloc(struct hk_backend *b, size_t bytes)
{
  (void)b;
  return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

void hk_engine_free(struct hk_backend *b, void *memory)
{
  (void)b;
  free(memory);
}
