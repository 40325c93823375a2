/* The table is ck's hash set of sensors. The arrays by slot have room for max_sensors from the start, so that other threads
 * can read them at any time: their pages are committed as slots are used. */
#include "daemon/sensors/registry_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static void *table_malloc(size_t size)
{
  return malloc(size);
}

static void table_free(void *memory, size_t size, bool defer)
{
  (void)size;
  (void)defer; /* changed under the write lock: no other thread reads the old table */
  free(memory);
}

static const char *registry_name_of(const struct hk_registry_entry *e)
{
  return e->slot == HK_REGISTRY_KEY ? ((const struct hk_registry_key *)(const void *)e)->name
                                    : ((const struct hk_registry_sensor *)(const void *)e)->text;
}

/* ck passes the seed as a number: it is the address of the secret. */
unsigned long hk_registry_hash(const void *entry, unsigned long seed)
{
  const struct hk_registry_entry *e = entry;
  return XXH3_64bits_withSecret(registry_name_of(e), e->length, (const void *)seed, XXH3_SECRET_SIZE_MIN + 56);
}

static bool registry_same(const void *a, const void *b)
{
  const struct hk_registry_entry *x = a, *y = b;
  return x->length == y->length && memcmp(registry_name_of(x), registry_name_of(y), x->length) == 0;
}

/* Readers come continuously: a writer must not wait for a moment without readers. */
static void lock_init(pthread_rwlock_t *lock)
{
  pthread_rwlockattr_t fair;
  pthread_rwlockattr_init(&fair);
  pthread_rwlockattr_setkind_np(&fair, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(lock, &fair);
  pthread_rwlockattr_destroy(&fair);
}

int hk_registry_new(struct hk_registry **out, const struct hk_config *config, uint32_t n_shards)
{
  int status = -ENOMEM;
  struct hk_registry *r = calloc(1, sizeof *r);
  if (!r)
    return -ENOMEM;
  lock_init(&r->lock);
  r->config = config;
  r->n_shards = n_shards;
  r->max_sensors = config->max_sensors;
  r->device = calloc(n_shards, sizeof(struct hk_slot_binding *));
  r->slot.sensor = calloc(config->max_sensors, sizeof(struct hk_registry_sensor *));
  r->slot.lookup = calloc((size_t)config->max_sensors + 1, sizeof *r->slot.lookup);
  r->slot.handle = calloc(config->max_sensors, sizeof *r->slot.handle);
  r->slot.generation = calloc(config->max_sensors, sizeof *r->slot.generation);
  r->slot.companion = calloc(config->max_sensors, sizeof *r->slot.companion);
  r->slot.part = calloc(n_shards, sizeof *r->slot.part);
  r->slot.free_slot = calloc(config->max_sensors, sizeof *r->slot.free_slot);
  if (!r->device || !r->slot.sensor || !r->slot.lookup || !r->slot.handle || !r->slot.generation || !r->slot.companion ||
      !r->slot.part || !r->slot.free_slot)
    goto failed;
  for (uint32_t i = 0, at = 0; i < n_shards; at += r->slot.part[i++].capacity)
    r->slot.part[i] =
        (struct hk_registry_part){ .free_slot = r->slot.free_slot + at,
                                   .capacity = config->max_sensors / n_shards + (i < config->max_sensors % n_shards) };
  atomic_init(&r->slot.lookup[0], HK_NO_HANDLE);
  for (uint32_t i = 0; i < config->n_detectors; i++) {
    status = hk_registry_define(r, config->detectors[i].number, &config->detectors[i]);
    if (status != 0)
      goto failed;
  }
  status = hk_sections_new(&r->sections, config);
  if (status != 0)
    goto failed;
  if (getrandom(r->secret, sizeof r->secret, 0) != (ssize_t)sizeof r->secret ||
      getrandom(&r->owners.key, sizeof r->owners.key, 0) != (ssize_t)sizeof r->owners.key) {
    status = -EIO;
    goto failed;
  }
  r->memory = (struct ck_malloc){ .malloc = table_malloc, .free = table_free };
  if (!ck_hs_init(&r->table, CK_HS_MODE_SPMC | CK_HS_MODE_OBJECT, hk_registry_hash, registry_same, &r->memory, 1024,
                  (unsigned long)r->secret)) {
    status = -ENOMEM;
    goto failed;
  }
  *out = r;
  return 0;
failed:
  hk_registry_free(r);
  return status;
}

void hk_registry_free(struct hk_registry *r)
{
  if (!r)
    return;
  hk_sections_release(r->sections);
  for (uint32_t i = 0; i < HK_DETECTORS_MAX; i++)
    free(r->by_number[i]);
  for (uint32_t i = 0; i < r->slots; i++)
    free(r->slot.sensor[i]);
  if (r->table.map)
    ck_hs_destroy(&r->table);
  hk_owners_free(&r->owners);
  free(r->device);
  free(r->slot.sensor);
  free(r->slot.lookup);
  free(r->slot.handle);
  free(r->slot.generation);
  free(r->slot.companion);
  free(r->slot.part);
  free(r->slot.free_slot);
  pthread_rwlock_destroy(&r->lock);
  free(r);
}

struct hk_handles hk_registry_lookup(const struct hk_registry *r)
{
  return (struct hk_handles){ r->slot.lookup, r->max_sensors };
}

uint32_t hk_registry_handle(const struct hk_registry *r, uint32_t slot)
{
  const uint32_t handle = atomic_load_explicit(&r->slot.lookup[slot], memory_order_relaxed);
  return handle == HK_REGISTRY_DERIVED ? r->slot.handle[slot] : handle;
}

struct hk_string hk_registry_name(const struct hk_registry *r, uint32_t slot)
{
  const struct hk_registry_sensor *s = hk_registry_at(r, slot);
  return (struct hk_string){ s->text, s->entry.length };
}

uint32_t hk_registry_detector(const struct hk_registry *r, uint32_t slot)
{
  return hk_registry_at(r, slot)->entry.detector;
}

const struct hk_config_detector *hk_registry_detector_of(const struct hk_registry *r, uint32_t number)
{
  return atomic_load_explicit(&r->by_number[number], memory_order_acquire);
}

uint32_t hk_registry_detectors(struct hk_registry *r, struct hk_detector *out)
{
  uint32_t n = 0;
  pthread_rwlock_rdlock(&r->lock);
  for (uint32_t i = 0; i < HK_DETECTORS_MAX; i++) {
    const struct hk_config_detector *d = hk_registry_detector_of(r, i);
    out[i] = d ? d->detector : (struct hk_detector){ 0 };
    n = d ? i + 1 : n;
  }
  pthread_rwlock_unlock(&r->lock);
  return n;
}

int hk_registry_define(struct hk_registry *r, uint32_t number, const struct hk_config_detector *detector)
{
  struct hk_config_detector *copy = detector ? malloc(sizeof *copy) : NULL;
  if (detector && !copy)
    return -ENOMEM;
  if (copy)
    *copy = *detector;
  pthread_rwlock_wrlock(&r->lock);
  struct hk_config_detector *before = atomic_exchange_explicit(&r->by_number[number], copy, memory_order_acq_rel);
  pthread_rwlock_unlock(&r->lock);
  free(before);
  return 0;
}

void hk_registry_adopt(struct hk_registry *r, const struct hk_config *config, struct hk_sections *sections)
{
  pthread_rwlock_wrlock(&r->lock);
  struct hk_sections *before = r->sections;
  r->config = config;
  r->sections = hk_sections_hold(sections);
  pthread_rwlock_unlock(&r->lock);
  hk_sections_release(before);
}

bool hk_registry_holds(const struct hk_registry *r, uint32_t slot)
{
  if (slot >= r->slots)
    return false;
  const uint32_t handle = atomic_load_explicit(&r->slot.lookup[slot], memory_order_acquire);
  return handle == HK_REGISTRY_DERIVED ||
         (handle != HK_NO_HANDLE && (handle & 0xffffff) == slot); /* 0 while its first sensor is being added */
}

const uint32_t *hk_registry_handles(const struct hk_registry *r)
{
  return r->slot.handle;
}

uint64_t hk_registry_added(const struct hk_registry *r)
{
  return r->added;
}

int hk_registry_find(struct hk_registry *r, const char *name, size_t length, uint32_t *slot)
{
  const struct hk_registry_key key = { { HK_REGISTRY_KEY, (uint16_t)length, 0 }, name };
  const struct hk_registry_sensor *found =
      length <= HK_NAME_MAX ? hk_registry_look(r, &key, CK_HS_HASH(&r->table, hk_registry_hash, &key)) : NULL;
  if (!found)
    return HK_UNKNOWN;
  *slot = found->entry.slot;
  return 0;
}

bool hk_registry_is(const struct hk_registry *r, uint32_t slot, const char *name, size_t length)
{
  const struct hk_registry_sensor *s =
      hk_registry_holds(r, slot) ? hk_registry_at(r, slot) : NULL; /* retired ones have names, too */
  return s && s->entry.length == length && memcmp(s->text, name, length) == 0;
}

void hk_registry_read(struct hk_registry *r)
{
  pthread_rwlock_rdlock(&r->lock);
}

void hk_registry_read_end(struct hk_registry *r)
{
  pthread_rwlock_unlock(&r->lock);
}

const char *hk_registry_full(struct hk_registry *r, char out[HK_REGISTRY_FULL_MAX])
{
  pthread_rwlock_rdlock(&r->lock);
  memcpy(out, r->full, sizeof r->full);
  pthread_rwlock_unlock(&r->lock);
  return out;
}

void hk_registry_on_failure(struct hk_registry *r,
                            void (*failed)(void *arg, uint32_t shard, const struct hk_slot_binding *device, const char *why),
                            void *arg)
{
  r->hooks.failed = failed;
  r->hooks.failed_arg = arg;
}

uint32_t hk_registry_count(const struct hk_registry *r)
{
  return r->count;
}

uint32_t hk_registry_count_of(const struct hk_registry *r, uint32_t detector)
{
  return r->of_detector[detector];
}

uint32_t hk_registry_slots(const struct hk_registry *r)
{
  return r->slots;
}

uint64_t hk_registry_owner(const struct hk_registry *r, uint32_t slot)
{
  return hk_registry_at(r, slot)->owner;
}

bool hk_registry_spent(const struct hk_registry *r, uint64_t owner)
{
  const uint32_t most = r->config->max_sensors_per_peer;
  return owner != 0 && most > 0 && hk_owners_count(&r->owners, owner) >= most;
}

void hk_registry_on_change(struct hk_registry *r, hk_registry_hook *hook, void *arg)
{
  r->hooks.hook = hook;
  r->hooks.hook_arg = arg;
}

bool hk_registry_generation(const struct hk_registry *r, uint32_t slot, uint8_t *generation)
{
  if (slot >= r->max_sensors || !hk_registry_at(r, slot))
    return false;
  *generation = r->slot.generation[slot];
  return true;
}

uint32_t hk_registry_count_derived(const struct hk_registry *r)
{
  return atomic_load_explicit(&r->n_derived, memory_order_acquire);
}

uint32_t hk_registry_lacking(const struct hk_registry *r)
{
  return r->lacking;
}
