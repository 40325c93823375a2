/* Slots, slabs and chains: see sensor_store.h.
 *
 * The slot table is reserved as a whole and touched as slots are bound. A slot remembers the last point that a batch had for it;
 * nothing is cleared between batches, because an outdated value is recognised: it does not refer to an earlier point of this
 * batch with the same slot (Briggs and Torczon, "An efficient representation for sparse sets", 1993).
 *
 * Errors: -ENOMEM, out of memory, changes nothing; -EINVAL, a malformed batch, has no lasting effect. */
#include "cpu/backend/sensor_store.h"
#include "cpu/graph/graph.h"
#include "cpu/limit/limit.h"
#include "cpu/novelty/novelty.h"
#include "cpu/shift/shift.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLAB_BYTES (256 * 1024u)
#define ALIGNMENT 16u

struct hk_slot {
  struct hk_sensor *_Atomic sensor; /* NULL = free; a sweep may read it while the shard binds */
  uint32_t last;                    /* index of the sensor's latest point in the last examined batch */
  uint32_t count;                   /* its points in that batch */
};

struct slab {
  struct slab *next;
  uint64_t unused; /* keeps the records 16-byte aligned */
};

/* A free record. */
struct spare {
  struct spare *next;
};

struct hk_pool {
  struct slab *slabs;
  struct spare *spare; /* freed records */
  uint32_t fresh;      /* records of the newest slab that were never allocated */
  uint32_t bound;      /* sensors */
  uint32_t in_batch;   /* number of sensors in the batch being examined, then the place of its next chain */
};

static size_t record_size(const struct hk_sensors *s, uint32_t detector)
{
  const struct hk_detector *d = &s->detectors[detector];
  const size_t ring = hk_detector_span(d) * s->sample_size;
  const size_t behind = d->algorithm == HK_ALGORITHM_GRAPH     ? hk_graph_size(d, s->sample_size)
                        : d->algorithm == HK_ALGORITHM_SHIFT   ? hk_shift_bytes(d, s->sample_size)
                        : d->algorithm == HK_ALGORITHM_NOVELTY ? hk_novelty_bytes(d, s->sample_size)
                        : d->algorithm == HK_ALGORITHM_LIMIT   ? hk_limit_bytes(s->sample_size)
                                                               : d->window * s->sample_size;
  const size_t bytes = sizeof(struct hk_sensor) + ring + behind;
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint32_t sensor_store_records_of_slab(const struct hk_sensors *s, uint32_t detector)
{
  const size_t records = (SLAB_BYTES - sizeof(struct slab)) / record_size(s, detector);
  return records > 0 ? (uint32_t)records : 1;
}

static size_t slab_size(const struct hk_sensors *s, uint32_t detector)
{
  return sizeof(struct slab) + sensor_store_records_of_slab(s, detector) * record_size(s, detector);
}

int hk_sensors_open(struct hk_sensors *s, const struct hk_backend_config *config, size_t sample_size, char *error, size_t size)
{
  *s = (struct hk_sensors){ .n_detectors = config->n_detectors,
                            .room = config->max_detectors > config->n_detectors ? config->max_detectors : config->n_detectors,
                            .max = config->max_sensors,
                            .sample_size = sample_size,
                            .limit = config->memory };
  if (s->n_detectors < 1 || s->room > 65535 || s->max < 1) {
    snprintf(error, size, "%u detectors and %u sensors: 1 to 65535 detectors and at least 1 sensor are needed",
             config->n_detectors, config->max_sensors);
    return -EINVAL;
  }
  const size_t table = s->max * sizeof *s->slots;
  s->detectors = calloc(s->room, sizeof *s->detectors);
  s->pools = calloc(s->room, sizeof *s->pools);
  s->touched = calloc(s->room, sizeof *s->touched);
  s->slots = mmap(NULL, table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (s->slots == MAP_FAILED)
    s->slots = NULL;
  if (!s->detectors || !s->pools || !s->touched || !s->slots) {
    hk_sensors_close(s);
    snprintf(error, size, "no memory for a table of %u sensors (%zu bytes of address space)", config->max_sensors, table);
    return -ENOMEM;
  }
  memcpy(s->detectors, config->detectors, s->n_detectors * sizeof *s->detectors);
  return 0;
}

/* Gives the pages of a slab back. free() would keep them resident, and the next slab, which begins elsewhere, touches others. */
static void slab_give_back(struct slab *slab, size_t bytes)
{
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  const uintptr_t first = ((uintptr_t)slab + page - 1) & -page, end = ((uintptr_t)slab + bytes) & -page;
  if (first < end)
    (void)madvise((void *)first, end - first, MADV_DONTNEED); /* if it fails, they stay resident */
}

/* Frees the slabs of a detector, of `bytes` each; returns their number. */
static uint64_t slabs_free(struct hk_pool *pool, size_t bytes)
{
  uint64_t n = 0;
  for (struct slab *slab = pool->slabs, *next; slab; slab = next, n++) {
    next = slab->next;
    slab_give_back(slab, bytes);
    free(slab);
  }
  *pool = (struct hk_pool){ 0 };
  return n;
}

void hk_sensors_close(struct hk_sensors *s)
{
  for (uint32_t i = 0; s->pools && i < s->n_detectors; i++)
    (void)slabs_free(&s->pools[i], 0);
  if (s->slots)
    munmap(s->slots, s->max * sizeof *s->slots);
  free(s->touched);
  free(s->pools);
  free(s->detectors);
  *s = (struct hk_sensors){ 0 };
}

void hk_sensors_define(struct hk_sensors *s, uint32_t number, const struct hk_detector *d)
{
  if (number >= s->n_detectors)
    s->n_detectors = number + 1;
  if (s->detectors[number].window > 0) {
    const size_t bytes = slab_size(s, number);
    s->memory -= slabs_free(&s->pools[number], bytes) * bytes;
  }
  s->detectors[number] = d ? *d : (struct hk_detector){ 0 };
}

uint32_t hk_sensors_bound(const struct hk_sensors *s, uint32_t detector)
{
  return detector < s->n_detectors ? s->pools[detector].bound : 0;
}

/* Whether a detector number is defined. */
static bool defined(const struct hk_sensors *s, uint32_t detector)
{
  return detector < s->n_detectors && s->detectors[detector].window > 0;
}

uint64_t hk_sensors_need(const struct hk_sensors *s, uint32_t detector, uint64_t sensors)
{
  if (!defined(s, detector))
    return 0;
  const uint64_t of_slab = sensor_store_records_of_slab(s, detector), slabs = sensors / of_slab + (sensors % of_slab != 0);
  return slabs * slab_size(s, detector);
}

/* Takes a free record: a freed one, or the next fresh one. NULL: a new slab is needed. */
static struct hk_sensor *record_take(struct hk_sensors *s, uint32_t detector)
{
  struct hk_pool *pool = &s->pools[detector];
  if (pool->spare) {
    struct spare *record = pool->spare;
    pool->spare = record->next;
    return (struct hk_sensor *)record;
  }
  if (pool->fresh == 0)
    return NULL;
  return (struct hk_sensor *)((char *)(pool->slabs + 1) + --pool->fresh * record_size(s, detector));
}

int hk_sensors_add(struct hk_sensors *s, uint32_t slot, uint32_t detector, uint64_t seed, struct hk_sensor **out)
{
  if (slot >= s->max)
    return HK_FULL;
  if (!defined(s, detector))
    return -EINVAL;
  if (hk_sensors_at(s, slot))
    return -EEXIST;
  struct hk_sensor *record = record_take(s, detector);
  if (!record) {
    const size_t bytes = slab_size(s, detector);
    if (s->limit && (bytes > s->limit || s->memory > s->limit - bytes))
      return HK_FULL;
    struct slab *slab = malloc(bytes);
    if (!slab)
      return -ENOMEM;
    slab->next = s->pools[detector].slabs;
    s->pools[detector].slabs = slab;
    s->pools[detector].fresh = sensor_store_records_of_slab(s, detector);
    s->memory += bytes;
    record = record_take(s, detector);
  }
  *record = (struct hk_sensor){ .detector = detector, .slot = slot, .window.seed = seed };
  s->pools[detector].bound++;
  *out = record;
  return 0;
}

void hk_sensors_show(struct hk_sensors *s, struct hk_sensor *sensor)
{
  atomic_store_explicit(&s->slots[sensor->slot].sensor, sensor, memory_order_release);
  if (sensor->slot >= atomic_load_explicit(&s->high, memory_order_relaxed))
    atomic_store_explicit(&s->high, sensor->slot + 1, memory_order_release);
}

void hk_sensors_remove(struct hk_sensors *s, uint32_t slot)
{
  struct hk_sensor *sensor = hk_sensors_at(s, slot);
  if (!sensor)
    return;
  struct hk_pool *pool = &s->pools[sensor->detector];
  atomic_store_explicit(&s->slots[slot].sensor, NULL, memory_order_release);
  struct spare *record = (struct spare *)sensor;
  record->next = pool->spare;
  pool->spare = record;
  pool->bound--;
}

struct hk_sensor *hk_sensors_at(const struct hk_sensors *s, uint32_t slot)
{
  return slot < s->max ? atomic_load_explicit(&s->slots[slot].sensor, memory_order_acquire) : NULL;
}

/* First pass: links each sensor's points and counts its points and each detector's sensors. heads: first point of each
 * sensor, in order of appearance. Returns their number, or -EINVAL. */
static int64_t link_points(struct hk_sensors *s, const struct hk_batch *batch, uint32_t *next, uint32_t *heads)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < batch->n; i++) {
    const uint32_t slot = batch->slot[i];
    const struct hk_sensor *sensor = hk_sensors_at(s, slot);
    if (!sensor)
      return -EINVAL;
    struct hk_slot *entry = &s->slots[slot];
    next[i] = HK_CHAIN_END;
    if (entry->last < i && batch->slot[entry->last] == slot) {
      if (++entry->count > HK_BATCH_PER_SENSOR)
        return -EINVAL;
      next[entry->last] = i;
    } else {
      entry->count = 1;
      heads[n++] = i;
      if (s->pools[sensor->detector].in_batch++ == 0)
        s->touched[s->n_touched++] = sensor->detector;
    }
    entry->last = i;
  }
  return n;
}

int hk_sensors_chains(struct hk_sensors *s, const struct hk_batch *batch, struct hk_chains *out)
{
  if (batch->n > batch->capacity || batch->n >= HK_CHAIN_EVENT)
    return -EINVAL;
  out->chain = batch->work;
  out->next = (uint32_t *)(out->chain + batch->capacity);
  uint32_t *heads = out->next + batch->capacity;
  s->n_touched = 0;
  const int64_t n = link_points(s, batch, out->next, heads);
  /* Second pass: makes the sensors of a detector contiguous, so that they can be scored in groups. */
  uint32_t place = 0;
  for (uint32_t i = 0; i < s->n_touched; i++) {
    struct hk_pool *pool = &s->pools[s->touched[i]];
    const uint32_t sensors = pool->in_batch;
    pool->in_batch = place;
    place += sensors;
  }
  for (int64_t i = 0; i < n; i++) {
    struct hk_sensor *sensor = hk_sensors_at(s, batch->slot[heads[i]]);
    out->chain[s->pools[sensor->detector].in_batch++] = (struct hk_chain){ sensor, heads[i] };
  }
  for (uint32_t i = 0; i < s->n_touched; i++)
    s->pools[s->touched[i]].in_batch = 0;
  if (n < 0)
    return (int)n;
  out->n = (uint32_t)n;
  return 0;
}

static void notice(struct hk_batch *batch, const struct hk_sensor *sensor, enum hk_event_kind kind)
{
  batch->event[batch->n_events++] =
      (struct hk_event){ .index = UINT32_MAX, .slot = sensor->slot, .kind = (uint8_t)kind, .time = sensor->window.last_time };
}

void hk_sensors_sweep(struct hk_sensors *s, struct hk_batch *batch)
{
  const uint32_t high = atomic_load_explicit(&s->high, memory_order_acquire);
  uint32_t slot = s->sweep_from < high ? s->sweep_from : 0;
  batch->n_events = 0;
  /* a sensor may have two notices at once: stale and idle */
  for (uint32_t i = 0; i < high && batch->n_events + 2 <= batch->capacity; i++) {
    struct hk_sensor *sensor = hk_sensors_at(s, slot);
    slot = slot + 1 == high ? 0 : slot + 1;
    if (!sensor)
      continue;
    const int change = hk_window_sweep(&sensor->window, hk_sensor_detector(s, sensor), batch->arrival);
    if (change)
      notice(batch, sensor, change > 0 ? HK_EVENT_STALE : HK_EVENT_BACK);
    if (!sensor->window.started && sensor->window.seen == 0)
      sensor->window.seen = batch->arrival; /* a sensor that never gets a point must not keep its slot forever */
    if (batch->idle > 0 && batch->arrival - sensor->window.seen > batch->idle)
      notice(batch, sensor, HK_EVENT_IDLE);
  }
  s->sweep_from = slot;
}
