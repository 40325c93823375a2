/* Slots, slabs and tasks: see records.h.
 *
 * A slot remembers its task of the batch last looked through; nothing is cleared between batches, because a stale memory
 * shows itself: that task is of another slot (Briggs and Torczon, "An efficient representation for sparse sets", 1993).
 *
 * Failure modes: no room on the device or under the limit is HK_FULL and changes nothing; a bad batch is -EINVAL and changes
 * nothing that matters. */
#include "gpu/records.h"
#include "cpu/state.h"

#include <assert.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static_assert(sizeof(struct hk_cuda_record) + 12 + 15 <= 256, "a sensor takes at most 4 (span + w) + 256 bytes");

#define SLAB_LEAST (256 * 1024u)      /* bytes of a detector's first slabs; */
#define SLAB_SHARE 64                 /* later ones are this part of what there is already, */
#define SLAB_MOST (64 * 1024 * 1024u) /* up to this: at most 2 % are idle, and a sweep has few slabs to go through */
#define SPARE (64 * 1024 * 1024u)     /* bytes of device memory left alone: batches and the driver need some */

struct hk_cuda_pool {
  struct hk_cuda_record **free; /* records given back; room for all records of the detector */
  uint32_t n_free;
  uint32_t records;  /* in all slabs */
  uint32_t slab;     /* the newest one, when records > 0 */
  uint32_t in_batch; /* sensors in the batch being looked through, then where its next task goes */
};

/* Records in the next slab of a detector that has so many. */
static uint32_t records_of_slab(const struct hk_detector *d, uint64_t records)
{
  const uint64_t record = hk_cuda_record_bytes(d), share = records * record / SLAB_SHARE;
  return (uint32_t)((share < SLAB_LEAST ? SLAB_LEAST : share > SLAB_MOST ? SLAB_MOST : share) / record);
}

int hk_records_open(struct hk_records *r)
{
  r->pools = calloc(r->n_detectors, sizeof *r->pools);
  r->groups = calloc(r->n_detectors, sizeof *r->groups);
  r->slots = mmap(NULL, r->max * sizeof *r->slots, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (r->slots == MAP_FAILED)
    r->slots = NULL;
  return r->pools && r->groups && r->slots ? 0 : -ENOMEM;
}

void hk_records_close(struct hk_records *r)
{
  for (uint32_t i = 0; i < r->n_slabs; i++)
    (void)cudaFree(r->slabs[i].base); /* a device that fails here has failed before */
  for (uint32_t i = 0; r->pools && i < r->n_detectors; i++)
    free(r->pools[i].free);
  if (r->slots)
    munmap(r->slots, r->max * sizeof *r->slots);
  free(r->slabs);
  free(r->pools);
  free(r->groups);
  free(r->draft);
  *r = (struct hk_records){ 0 };
}

uint64_t hk_records_need(const struct hk_records *r, uint32_t detector, uint64_t sensors)
{
  if (detector >= r->n_detectors)
    return 0;
  const struct hk_detector *d = &r->detectors[detector];
  uint64_t records = 0;
  while (records < sensors)
    records += records_of_slab(d, records);
  return records * hk_cuda_record_bytes(d);
}

/* One more slab for a detector. */
static int slab_add(struct hk_records *r, uint32_t detector, char *error, size_t size)
{
  struct hk_cuda_pool *pool = &r->pools[detector];
  const uint64_t record = hk_cuda_record_bytes(&r->detectors[detector]);
  const uint32_t records = records_of_slab(&r->detectors[detector], pool->records);
  const uint64_t bytes = records * record;
  if (r->limit && (bytes > r->limit || r->memory > r->limit - bytes)) {
    snprintf(error, size, "%llu more bytes for sensors of detector %u (%llu each) do not fit: %llu of %llu are taken",
             (unsigned long long)bytes, detector, (unsigned long long)record, (unsigned long long)r->memory,
             (unsigned long long)r->limit);
    return HK_FULL;
  }
  size_t left = 0, all = 0;
  void *base = NULL;
  cudaError_t failed = cudaMemGetInfo(&left, &all);
  if (!failed)
    failed = left < bytes + SPARE ? cudaErrorMemoryAllocation : cudaMalloc(&base, bytes);
  if (!failed)
    failed = cudaMemsetAsync(base, 0, bytes, r->stream);
  if (failed) {
    snprintf(error, size, "%llu more bytes for sensors of detector %u (%llu each): %s; %zu of %zu on the device are free",
             (unsigned long long)bytes, detector, (unsigned long long)record, cudaGetErrorString(failed), left, all);
    (void)cudaGetLastError(); /* said; must not be taken for the next call's */
    (void)cudaFree(base);
    return failed == cudaErrorMemoryAllocation ? HK_FULL : -EIO;
  }
  struct hk_cuda_slab *slabs = realloc(r->slabs, (r->n_slabs + 1) * sizeof *slabs);
  if (slabs)
    r->slabs = slabs;
  struct hk_cuda_record **list = realloc(pool->free, (pool->records + records) * sizeof(struct hk_cuda_record *));
  if (list)
    pool->free = list;
  if (!slabs || !list) {
    snprintf(error, size, "no memory on the host for %u more sensors", records);
    (void)cudaFree(base);
    return -ENOMEM;
  }
  slabs[r->n_slabs] = (struct hk_cuda_slab){ .base = base, .detector = detector, .records = records };
  pool->slab = r->n_slabs++;
  pool->records += records;
  r->memory += bytes;
  return 0;
}

int hk_records_add(struct hk_records *r, uint32_t slot, uint32_t detector, uint64_t seed, char *error, size_t size)
{
  if (slot >= r->max) {
    snprintf(error, size, "slot %u: there is room for %u sensors", slot, r->max);
    return HK_FULL;
  }
  if (detector >= r->n_detectors) {
    snprintf(error, size, "detector %u: there are %u", detector, r->n_detectors);
    return -EINVAL;
  }
  if (r->slots[slot].record) {
    snprintf(error, size, "slot %u is bound already", slot);
    return -EEXIST;
  }
  struct hk_cuda_pool *pool = &r->pools[detector];
  if (pool->n_free == 0 && (pool->records == 0 || r->slabs[pool->slab].used == r->slabs[pool->slab].records)) {
    const int full = slab_add(r, detector, error, size);
    if (full)
      return full;
  }
  struct hk_cuda_record *record;
  if (pool->n_free > 0) {
    record = pool->free[--pool->n_free];
  } else {
    struct hk_cuda_slab *slab = &r->slabs[pool->slab];
    record = (struct hk_cuda_record *)(slab->base + slab->used++ * hk_cuda_record_bytes(&r->detectors[detector]));
  }
  r->slots[slot] =
      (struct hk_cuda_slot){ .record = record, .seed = seed, .task = UINT32_MAX, .detector = (uint16_t)detector, .fresh = 1 };
  return 0;
}

int hk_records_remove(struct hk_records *r, uint32_t slot)
{
  struct hk_cuda_slot *entry = hk_records_at(r, slot);
  if (!entry)
    return 0;
  struct hk_cuda_record *record = entry->record;
  struct hk_cuda_pool *pool = &r->pools[entry->detector];
  pool->free[pool->n_free++] = record;
  entry->record = NULL;
  return (int)cudaMemsetAsync(record, 0, sizeof *record, r->stream);
}

struct hk_cuda_slot *hk_records_at(const struct hk_records *r, uint32_t slot)
{
  return slot < r->max && r->slots[slot].record ? &r->slots[slot] : NULL;
}

/* Copies a record from or to the device, behind what is in flight. */
static int record_copy(struct hk_records *r, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, char *error,
                       size_t size)
{
  cudaError_t failed = cudaMemcpyAsync(to, from, bytes, kind, r->stream);
  if (!failed)
    failed = cudaStreamSynchronize(r->stream);
  if (!failed)
    return 0;
  snprintf(error, size, "CUDA, copying a sensor's state: %s", cudaGetErrorString(failed));
  return -EIO;
}

/* A record on the host, as on the device: 0 and *out (the caller frees it), or a negative errno. */
static int record_fetch(struct hk_records *r, const struct hk_cuda_slot *entry, struct hk_cuda_record **out, char *error,
                        size_t size)
{
  const struct hk_detector *d = &r->detectors[entry->detector];
  struct hk_cuda_record *record = calloc(1, hk_cuda_record_bytes(d));
  if (!record)
    return -ENOMEM;
  int status = 0;
  if (!entry->fresh)
    status = record_copy(r, record, entry->record, hk_cuda_record_bytes(d), cudaMemcpyDeviceToHost, error, size);
  else
    record->window.seed = entry->seed;
  if (status) {
    free(record);
    return status;
  }
  if (!record->window.started) { /* the device sets the feedback vector when the window begins */
    float *feedback = hk_cuda_feedback(record);
    double sum = 0;
    for (uint32_t i = 0; i < d->window; i++)
      sum += hk_random_element(entry->seed, i) * hk_random_element(entry->seed, i);
    for (uint32_t i = 0; i < d->window; i++)
      feedback[i] = (float)(hk_random_element(entry->seed, i) / sqrt(sum));
  }
  *out = record;
  return 0;
}

int64_t hk_records_export(struct hk_records *r, uint32_t slot, void *state, size_t size, char *error, size_t error_size)
{
  const struct hk_cuda_slot *entry = hk_records_at(r, slot);
  if (!entry)
    return -ENOENT;
  const struct hk_detector *d = &r->detectors[entry->detector];
  struct hk_cuda_record *record;
  const int status = record_fetch(r, entry, &record, error, error_size);
  if (status)
    return status;
  const size_t bytes = hk_state_size(d, record->window.count);
  if (bytes <= size)
    hk_state_write(state, d, &record->window, &record->alert, hk_cuda_ring(record, d), hk_cuda_feedback(record));
  free(record);
  return (int64_t)bytes;
}

int hk_records_import(struct hk_records *r, uint32_t slot, const void *state, size_t size, char *error, size_t error_size)
{
  struct hk_cuda_slot *entry = hk_records_at(r, slot);
  if (!entry)
    return -ENOENT;
  const struct hk_detector *d = &r->detectors[entry->detector];
  const size_t bytes = hk_cuda_record_bytes(d);
  struct hk_cuda_record *record = calloc(1, bytes);
  if (!record)
    return -ENOMEM;
  record->slot = slot;
  int status = hk_state_read(state, size, d, &record->window, &record->alert, hk_cuda_ring(record, d), hk_cuda_feedback(record));
  if (!status)
    status = record_copy(r, entry->record, record, bytes, cudaMemcpyHostToDevice, error, error_size);
  if (!status)
    entry->fresh = 0;
  free(record);
  return status;
}

/* First pass: a task for each sensor in order of appearance, its points counted, and each detector's sensors counted (a
 * group's n). Returns the number of tasks or -EINVAL. */
static int64_t count_points(struct hk_records *r, const struct hk_batch *batch)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < batch->n; i++) {
    struct hk_cuda_slot *entry = hk_records_at(r, batch->slot[i]);
    if (!entry)
      return -EINVAL;
    if (entry->task >= n || r->draft[entry->task].slot != batch->slot[i]) {
      entry->task = n;
      r->draft[n++] =
          (struct hk_cuda_task){ .record = entry->record, .seed = entry->seed, .slot = batch->slot[i], .fresh = entry->fresh };
      if (r->pools[entry->detector].in_batch++ == 0)
        r->groups[r->n_groups++].detector = entry->detector;
    }
    if (++r->draft[entry->task].count > HK_BATCH_PER_SENSOR)
      return -EINVAL;
  }
  return n;
}

int64_t hk_records_tasks(struct hk_records *r, const struct hk_batch *batch, struct hk_cuda_task *tasks, uint32_t *order)
{
  if (batch->n > r->n_draft) {
    struct hk_cuda_task *draft = realloc(r->draft, batch->capacity * sizeof *draft);
    if (!draft)
      return -ENOMEM;
    r->draft = draft;
    r->n_draft = batch->capacity;
  }
  r->n_groups = 0;
  const int64_t n = count_points(r, batch);
  uint32_t place = 0;
  for (uint32_t i = 0; i < r->n_groups; i++) {
    struct hk_cuda_group *group = &r->groups[i];
    struct hk_cuda_pool *pool = &r->pools[group->detector];
    group->first = place;
    group->n = pool->in_batch;
    pool->in_batch = 0;
    place += group->n;
  }
  if (n < 0)
    return n;
  /* Second pass: tasks of a detector side by side. Third: the order of the points. */
  for (uint32_t i = 0; i < r->n_groups; i++)
    r->pools[r->groups[i].detector].in_batch = r->groups[i].first;
  for (int64_t i = 0; i < n; i++) {
    struct hk_cuda_slot *entry = &r->slots[r->draft[i].slot];
    entry->task = r->pools[entry->detector].in_batch++;
    entry->fresh = 0;
    tasks[entry->task] = r->draft[i];
  }
  for (uint32_t i = 0; i < r->n_groups; i++)
    r->pools[r->groups[i].detector].in_batch = 0;
  uint32_t first = 0;
  for (int64_t i = 0; i < n; i++) {
    tasks[i].first = first;
    first += tasks[i].count;
    tasks[i].count = 0;
  }
  for (uint32_t i = 0; i < batch->n; i++) {
    struct hk_cuda_task *task = &tasks[r->slots[batch->slot[i]].task];
    order[task->first + task->count++] = i;
  }
  return n;
}
