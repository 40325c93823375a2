/* Slots, slabs and states: see records.h.
 *
 * Failure modes: no room on the device or under the limit is HK_FULL and changes nothing; a device that fails is -EIO, said in
 * words. */
#include "gpu/backend/records.h"
#include "cpu/backend/state_size.h"
#include "gpu/backend/batch_kernels.h"
#include "gpu/backend/record_state.h"

#include <assert.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static_assert(sizeof(struct hk_cuda_record) % 16 == 0, "what follows begins at a multiple of 16 bytes");
static_assert(sizeof(struct hk_cuda_record) + 12 + 15 + HK_CUDA_SLOT_BYTES <= 256,
              "a sensor takes at most 4 (span + w) + 256 bytes");

#define SLAB_LEAST (256 * 1024u)       /* bytes of a detector's first slabs; */
#define SLAB_SHARE 64                  /* later ones are this part of what there is already, */
#define SLAB_MOST (256 * 1024 * 1024u) /* up to this: at most 2 % are idle, and a sweep has few slabs to go through */
#define SPARE (64 * 1024 * 1024u)      /* bytes of device memory left free for batches and the driver */
#define FETCH_MOST 4096u               /* records fetched at once, */
#define FETCH_BYTES (4u << 20)         /* and their bytes */

struct hk_cuda_pool {
  struct hk_cuda_record **free; /* freed records; room for all records of the detector */
  uint32_t n_free;
  uint32_t records; /* in all slabs */
  uint32_t slab;    /* the newest one, when records > 0 */
  uint32_t sensors; /* bound */
  uint32_t active;  /* where in `active`, when sensors > 0 */
  uint32_t list, list_size;
};

/* Number of records in the next slab of a detector with `records` records. */
static uint32_t records_records_of_slab(const struct hk_detector *d, uint64_t records)
{
  const uint64_t record = hk_cuda_record_bytes(d), share = records * record / SLAB_SHARE;
  const uint64_t records_fit = (share < SLAB_LEAST ? SLAB_LEAST : share > SLAB_MOST ? SLAB_MOST : share) / record;
  return records_fit > 0 ? (uint32_t)records_fit : 1;
}

static int directory_open(struct hk_records *r)
{
  struct hk_cuda_directory *d = &r->directory;
  d->max = r->max;
  d->n_detectors = r->n_detectors;
  cudaError_t failed = cudaMalloc((void **)&d->record, r->max * sizeof(struct hk_cuda_record *));
  if (!failed)
    failed = cudaMalloc((void **)&d->detector, r->max * sizeof *d->detector);
  if (!failed)
    failed = cudaMalloc((void **)&d->last, r->max * sizeof *d->last);
  if (!failed)
    failed = cudaMalloc((void **)&d->list, r->max_detectors * sizeof *d->list);
  if (!failed)
    failed = cudaMemsetAsync(d->record, 0, r->max * sizeof(struct hk_cuda_record *), r->stream);
  if (!failed)
    failed = cudaMemsetAsync(d->detector, 0, r->max * sizeof *d->detector, r->stream);
  if (!failed)
    failed = cudaMemsetAsync(d->last, 0xff, r->max * sizeof *d->last, r->stream); /* HK_CUDA_NONE */
  if (!failed)
    failed = cudaMemsetAsync(d->list, 0, r->max_detectors * sizeof *d->list, r->stream);
  return (int)failed;
}

int hk_records_open(struct hk_records *r, char *error, size_t size)
{
  r->pools = calloc(r->max_detectors, sizeof *r->pools);
  r->active = calloc(r->max_detectors, sizeof *r->active);
  r->slots = mmap(NULL, r->max * sizeof *r->slots, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (r->slots == MAP_FAILED)
    r->slots = NULL;
  if (!r->pools || !r->active || !r->slots) {
    snprintf(error, size, "no memory for a table of %u sensors", r->max);
    return -ENOMEM;
  }
  cudaError_t failed = (cudaError_t)directory_open(r);
  r->commands = (struct hk_commands){ .directory = &r->directory, .stream = r->stream };
  if (!failed)
    failed = (cudaError_t)hk_commands_open(&r->commands);
  if (!failed)
    failed = cudaMallocHost((void **)&r->fetched.memory, FETCH_MOST * sizeof(struct hk_image) + FETCH_BYTES);
  if (!failed)
    failed = cudaEventCreateWithFlags(&r->fetched.done, cudaEventDisableTiming);
  if (!failed)
    return 0;
  snprintf(error, size, "CUDA, tables for %u sensors (%llu bytes on the device): %s", r->max,
           (unsigned long long)r->max * HK_CUDA_SLOT_BYTES, cudaGetErrorString(failed));
  (void)cudaGetLastError(); /* said; must not be taken for the next call's */
  return failed == cudaErrorMemoryAllocation ? -ENOMEM : -EIO;
}

/* A device that fails here has failed before, which was reported. */
void hk_records_close(struct hk_records *r)
{
  for (uint32_t i = 0; i < r->n_slabs; i++)
    (void)cudaFree(r->slabs[i].base);
  for (uint32_t i = 0; r->pools && i < r->n_detectors; i++)
    free(r->pools[i].free);
  hk_commands_close(&r->commands);
  (void)cudaFreeHost(r->fetched.memory);
  if (r->fetched.done)
    (void)cudaEventDestroy(r->fetched.done);
  (void)cudaFree(r->directory.record);
  (void)cudaFree(r->directory.detector);
  (void)cudaFree(r->directory.last);
  (void)cudaFree(r->directory.list);
  if (r->slots)
    munmap(r->slots, r->max * sizeof *r->slots);
  free(r->slabs);
  free(r->pools);
  free(r->active);
  *r = (struct hk_records){ 0 };
}

uint64_t hk_records_need(const struct hk_records *r, uint32_t detector, uint64_t sensors)
{
  if (detector >= r->n_detectors || r->detectors[detector].window == 0)
    return 0;
  const struct hk_detector *d = &r->detectors[detector];
  uint64_t records = 0;
  while (records < sensors)
    records += records_records_of_slab(d, records);
  return records * hk_cuda_record_bytes(d);
}

/* Adds a slab for a detector. */
static int slab_add(struct hk_records *r, uint32_t detector, char *error, size_t size)
{
  struct hk_cuda_pool *pool = &r->pools[detector];
  const uint64_t record = hk_cuda_record_bytes(&r->detectors[detector]);
  const uint32_t records = records_records_of_slab(&r->detectors[detector], pool->records);
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
  r->grown = true;
  return 0;
}

void hk_records_clear(struct hk_records *r, uint32_t detector)
{
  struct hk_cuda_pool *pool = &r->pools[detector];
  uint32_t kept = 0;
  for (uint32_t i = 0; i < r->n_slabs; i++) {
    const struct hk_cuda_slab slab = r->slabs[i];
    if (slab.detector == detector) {
      r->memory -= slab.records * hk_cuda_record_bytes(&r->detectors[detector]);
      (void)cudaFree(slab.base); /* waits until the device no longer uses it; a device that fails here has failed before */
      continue;
    }
    if (r->pools[slab.detector].slab == i)
      r->pools[slab.detector].slab = kept;
    r->slabs[kept++] = slab;
  }
  r->n_slabs = kept;
  free(pool->free);
  *pool = (struct hk_cuda_pool){ .list = pool->list, .list_size = pool->list_size };
  hk_records_touch(r);
}

/* Sends the binding of a slot to the device. image: as in hk_commands_put. */
static int command_put(struct hk_records *r, uint32_t slot, struct hk_cuda_slot *entry, uint64_t seed, uint32_t bytes,
                       void **image, char *error, size_t size)
{
  struct hk_cuda_command *command;
  const cudaError_t failed = (cudaError_t)hk_commands_put(&r->commands, slot, &entry->command, bytes, &command, image);
  if (failed) {
    snprintf(error, size, "CUDA, sending changes of sensors: %s", cudaGetErrorString(failed));
    return -EIO;
  }
  command->record = entry->record;
  command->seed = seed;
  command->detector = entry->detector;
  hk_records_touch(r);
  return 0;
}

int hk_records_add(struct hk_records *r, uint32_t slot, uint32_t detector, uint64_t seed, char *error, size_t size)
{
  if (slot >= r->max) {
    snprintf(error, size, "slot %u: there is room for %u sensors", slot, r->max);
    return HK_FULL;
  }
  if (detector >= r->n_detectors || r->detectors[detector].window == 0) {
    snprintf(error, size, "detector %u: there is none of that number", detector);
    return -EINVAL;
  }
  struct hk_cuda_slot *entry = &r->slots[slot];
  if (entry->record) {
    snprintf(error, size, "slot %u is bound already", slot);
    return -EEXIST;
  }
  struct hk_cuda_pool *pool = &r->pools[detector];
  if (pool->n_free == 0 && (pool->records == 0 || r->slabs[pool->slab].used == r->slabs[pool->slab].records)) {
    const int full = slab_add(r, detector, error, size);
    if (full)
      return full;
  }
  struct hk_cuda_slab *slab = &r->slabs[pool->slab];
  const bool fresh = pool->n_free == 0;
  entry->detector = (uint16_t)detector;
  entry->record =
      !fresh ? pool->free[pool->n_free - 1] : (void *)(slab->base + slab->used * hk_cuda_record_bytes(&r->detectors[detector]));
  void *image;
  const int status = command_put(r, slot, entry, seed, 0, &image, error, size);
  if (status) {
    entry->record = NULL;
    return status;
  }
  slab->used += fresh;
  pool->n_free -= !fresh;
  if (pool->sensors++ == 0) {
    pool->active = r->n_active;
    r->active[r->n_active++] = detector;
    r->grown = true;
  }
  return 0;
}

int hk_records_remove(struct hk_records *r, uint32_t slot, char *error, size_t size)
{
  struct hk_cuda_slot *entry = hk_records_at(r, slot);
  if (!entry)
    return 0;
  struct hk_cuda_pool *pool = &r->pools[entry->detector];
  pool->free[pool->n_free++] = entry->record;
  entry->record = NULL;
  if (--pool->sensors == 0) {
    r->active[pool->active] = r->active[--r->n_active];
    r->pools[r->active[pool->active]].active = pool->active;
  }
  void *image;
  return command_put(r, slot, entry, 0, 0, &image, error, size);
}

struct hk_cuda_slot *hk_records_at(const struct hk_records *r, uint32_t slot)
{
  return slot < r->max && r->slots[slot].record ? &r->slots[slot] : NULL;
}

uint32_t hk_records_most(const struct hk_records *r, uint32_t detector)
{
  return r->pools[detector].sensors;
}

/* A longer list is a new one, twice as long as the old where that may be needed, so all together take at most twice of what they
 * must. */
static int list_make(struct hk_records *r, uint32_t detector)
{
  struct hk_cuda_pool *pool = &r->pools[detector];
  const uint32_t must = pool->records < r->room ? pool->records : r->room;
  if (must <= pool->list_size)
    return 0;
  const uint32_t twice = 2 * pool->list_size < r->room ? 2 * pool->list_size : r->room, size = must > twice ? must : twice;
  struct hk_cuda_command *command;
  uint32_t known = 0;
  void *image;
  const int failed = hk_commands_put(&r->commands, HK_CUDA_NONE, &known, 0, &command, &image);
  if (failed)
    return failed;
  command->detector = (uint16_t)detector;
  command->seed = pool->list = (uint32_t)r->list_end;
  pool->list_size = size;
  r->list_end += size;
  return 0;
}

int64_t hk_records_lists(struct hk_records *r, uint32_t room)
{
  int failed = 0;
  if (room > r->room || r->grown) {
    r->room = room > r->room ? room : r->room;
    r->grown = false;
    for (uint32_t i = 0; i < r->n_active && !failed; i++)
      failed = list_make(r, r->active[i]);
  }
  if (!failed)
    failed = hk_commands_send(&r->commands);
  return failed ? -(int64_t)failed : (int64_t)r->list_end;
}

void hk_records_touch(struct hk_records *r)
{
  r->fetched.n = 0;
}

/* Fetches the record of a bound slot and, when slots are asked for in turn, those of the slots after it. */
static cudaError_t records_fetch(struct hk_records *r, uint32_t slot)
{
  struct hk_cuda_fetched *f = &r->fetched;
  const uint32_t bytes = (uint32_t)hk_cuda_record_bytes(&r->detectors[r->slots[slot].detector]);
  const uint32_t fit = FETCH_BYTES / bytes < FETCH_MOST ? FETCH_BYTES / bytes : FETCH_MOST, most = slot == f->next ? fit : 1;
  struct hk_image *list = (struct hk_image *)f->memory;
  uint32_t n = 0;
  for (; n < most && slot + n < r->max; n++) {
    const struct hk_cuda_slot *entry = hk_records_at(r, slot + n);
    if (!entry || entry->detector != r->slots[slot].detector)
      break;
    list[n] = (struct hk_image){ (uint64_t)n * bytes, bytes, entry->detector, entry->record };
  }
  f->n = 0;
  int failed = hk_commands_send(&r->commands);
  if (!failed)
    failed = hk_cuda_fetch(r->stream, list, n, list + FETCH_MOST);
  if (!failed)
    failed = (int)cudaEventRecord(f->done, r->stream);
  if (!failed)
    failed = hk_cuda_await(f->done, HK_CUDA_PATIENCE);
  if (!failed) {
    f->first = slot;
    f->n = n;
  }
  return (cudaError_t)failed;
}

uint64_t hk_records_image_most(const struct hk_detector *d)
{
  return hk_cuda_record_bytes(d);
}

int hk_records_plan(const struct hk_records *r, struct hk_batch *batch, uint64_t *bytes)
{
  struct hk_image *image = batch->work;
  *bytes = 0;
  for (uint32_t i = 0; i < batch->n; i++) {
    const struct hk_cuda_slot *entry = hk_records_at(r, batch->slot[i]);
    const uint64_t size = entry ? hk_cuda_record_bytes(&r->detectors[entry->detector]) : 0;
    image[i] = entry ? (struct hk_image){ *bytes, (uint32_t)size, entry->detector, entry->record } : (struct hk_image){ 0 };
    *bytes += size;
    if (*bytes > batch->bulk_size)
      return -EINVAL;
  }
  return 0;
}

const void *hk_records_state_of(void *image, const struct hk_detector *d, void *room, size_t *size)
{
  *size = hk_cuda_record_export(image, d, room, hk_state_most(d));
  return room;
}

int64_t hk_records_export(struct hk_records *r, uint32_t slot, void *state, size_t size, char *error, size_t error_size)
{
  const struct hk_cuda_slot *entry = hk_records_at(r, slot);
  if (!entry)
    return -ENOENT;
  const struct hk_detector *d = &r->detectors[entry->detector];
  struct hk_cuda_fetched *f = &r->fetched;
  if (slot < f->first || slot - f->first >= f->n) {
    const cudaError_t failed = records_fetch(r, slot);
    if (failed) {
      snprintf(error, error_size, "CUDA, copying a sensor's state: %s", cudaGetErrorString(failed));
      return -EIO;
    }
  }
  f->next = slot + 1;
  unsigned char *at = f->memory + FETCH_MOST * sizeof(struct hk_image);
  struct hk_cuda_record *record = (struct hk_cuda_record *)(at + (slot - f->first) * hk_cuda_record_bytes(d));
  return (int64_t)hk_cuda_record_export(record, d, state, size);
}

int hk_records_import(struct hk_records *r, uint32_t slot, const void *state, size_t size, char *error, size_t error_size)
{
  struct hk_cuda_slot *entry = hk_records_at(r, slot);
  if (!entry)
    return -ENOENT;
  const struct hk_detector *d = &r->detectors[entry->detector];
  const uint32_t bytes = (uint32_t)hk_cuda_record_bytes(d);
  struct hk_cuda_record *record = calloc(1, bytes);
  if (!record)
    return -ENOMEM;
  record->slot = slot;
  int status = hk_cuda_record_import(record, d, state, size);
  void *image;
  if (!status)
    status = command_put(r, slot, entry, 0, bytes, &image, error, error_size);
  if (!status)
    memcpy(image, record, bytes);
  free(record);
  return status;
}
