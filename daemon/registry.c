/* The table is ck's hash set of sensors. The arrays by slot have room for max_sensors from the start, so that others can read
 * them at any time: their pages come as slots are used. */
#include "daemon/registry.h"

#include <ck_hs.h>
#include <ck_malloc.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#define KEY UINT32_MAX /* the slot of a key */

/* What the table holds are sensors; what is looked for is a key. Both begin with this. */
struct entry {
  uint32_t slot;
  uint16_t length;
  uint16_t detector;
};

struct sensor {
  struct entry entry;
  char text[]; /* the name, with a 0 */
};

struct key {
  struct entry entry;
  const char *name;
};

struct hk_registry {
  pthread_rwlock_t lock; /* of all below that is not atomic; held for writing while a sensor comes or goes */
  const struct hk_config *config;
  struct hk_device **device; /* of each shard; NULL: there is none (any more) */
  uint32_t n_shards, max_sensors;
  struct hk_sections *sections;                                   /* of new names */
  struct hk_config_detector *_Atomic by_number[HK_DETECTORS_MAX]; /* what numbers mean; NULL: nothing */
  atomic_uint of_detector[HK_DETECTORS_MAX];                      /* sensors of each */
  ck_hs_t table;
  struct ck_malloc memory;
  uint8_t secret[XXH3_SECRET_SIZE_MIN + 56];
  atomic_uint count;
  atomic_uint_fast64_t added;     /* sensors, ever */
  atomic_uint slots;              /* ever used */
  uint32_t taken;                 /* slots in use, with those of retired sensors */
  struct sensor *_Atomic *sensor; /* by slot; NULL when free */
  atomic_uint *lookup;            /* by slot, max_sensors + 1 of them: see struct hk_handles */
  uint32_t *handle;               /* by slot; holds until the sensor is released */
  uint8_t *generation;            /* by slot */
  uint32_t *free_slot;            /* a stack */
  uint32_t n_free;
  uint32_t removed;                /* since the table was last rebuilt */
  char full[HK_REGISTRY_FULL_MAX]; /* see hk_registry_full */
  void (*failed)(void *arg, uint32_t shard, const struct hk_device *device, const char *why); /* may be NULL */
  void *failed_arg;
  hk_registry_hook *hook; /* may be NULL */
  void *hook_arg;
  bool restoring; /* free slots are found when that is over */
};

static void *table_malloc(size_t size)
{
  return malloc(size);
}

static void table_free(void *memory, size_t size, bool defer)
{
  (void)size;
  (void)defer; /* changed under the lock for writing: nobody else reads the old table */
  free(memory);
}

static const char *name_of(const struct entry *e)
{
  return e->slot == KEY ? ((const struct key *)(const void *)e)->name : ((const struct sensor *)(const void *)e)->text;
}

/* ck hands the seed through as a number: it is the address of the secret. */
static unsigned long hash(const void *entry, unsigned long seed)
{
  const struct entry *e = entry;
  return XXH3_64bits_withSecret(name_of(e), e->length, (const void *)seed, XXH3_SECRET_SIZE_MIN + 56);
}

static bool same(const void *a, const void *b)
{
  const struct entry *x = a, *y = b;
  return x->length == y->length && memcmp(name_of(x), name_of(y), x->length) == 0;
}

/* Readers come all the time: whoever wants to write must not wait until there happens to be none. */
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
  r->device = calloc(n_shards, sizeof(struct hk_device *));
  r->sensor = calloc(config->max_sensors, sizeof(struct sensor *));
  r->lookup = calloc((size_t)config->max_sensors + 1, sizeof *r->lookup);
  r->handle = calloc(config->max_sensors, sizeof *r->handle);
  r->generation = calloc(config->max_sensors, sizeof *r->generation);
  r->free_slot = calloc(config->max_sensors, sizeof *r->free_slot);
  if (!r->device || !r->sensor || !r->lookup || !r->handle || !r->generation || !r->free_slot)
    goto failed;
  atomic_init(&r->lookup[0], HK_NO_HANDLE);
  for (uint32_t i = 0; i < config->n_detectors; i++) {
    status = hk_registry_define(r, config->detectors[i].number, &config->detectors[i]);
    if (status != 0)
      goto failed;
  }
  status = hk_sections_new(&r->sections, config);
  if (status != 0)
    goto failed;
  if (getrandom(r->secret, sizeof r->secret, 0) != (ssize_t)sizeof r->secret) {
    status = -EIO;
    goto failed;
  }
  r->memory = (struct ck_malloc){ .malloc = table_malloc, .free = table_free };
  if (!ck_hs_init(&r->table, CK_HS_MODE_SPMC | CK_HS_MODE_OBJECT, hash, same, &r->memory, 1024, (unsigned long)r->secret)) {
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
    free(r->sensor[i]);
  if (r->table.map)
    ck_hs_destroy(&r->table);
  free(r->device);
  free(r->sensor);
  free(r->lookup);
  free(r->handle);
  free(r->generation);
  free(r->free_slot);
  pthread_rwlock_destroy(&r->lock);
  free(r);
}

/* Says why a device refused a sensor, and what helps. */
static void say_full(struct hk_registry *r, const struct hk_device *d, uint32_t detector, int status)
{
  const char *words = d->kind->failure ? d->kind->failure(d->backend) : "";
  const char *name = hk_registry_detector_of(r, detector)->name;
  if (words[0])
    snprintf(r->full, sizeof r->full, "%.255s; a smaller window, a higher memory = where that is the limit, or evict = make room",
             words);
  else if (status != HK_FULL)
    snprintf(r->full, sizeof r->full, "the %s backend: %s", d->backend->ops->name, strerror(-status));
  else
    snprintf(r->full, sizeof r->full,
             "memory = %.1f MiB is taken, and a sensor of [detector %s] needs %" PRIu64 " bytes; raise memory, or set evict",
             (double)r->config->memory / (1 << 20), name,
             d->backend->ops->need(d->backend, detector, r->max_sensors) / r->max_sensors);
}

/* No room on the host, or for more sensors at all. */
static int refuse(struct hk_registry *r, bool many)
{
  if (many)
    snprintf(r->full, sizeof r->full, "max_sensors = %u are there; raise it, or set evict", r->max_sensors);
  else
    snprintf(r->full, sizeof r->full, "the machine has no memory for another name");
  return HANKEL_FULL;
}

/* Binds a slot on its shard's device. 0, an enum hk_refusal, or the negative errno of the backend; *full says why. */
static int bind_slot(struct hk_registry *r, struct hk_device *d, uint32_t slot, uint32_t detector, uint64_t seed)
{
  pthread_mutex_lock(&d->calls);
  const int status = d->backend->ops->add(d->backend, slot / r->n_shards, detector, seed);
  if (status != 0)
    say_full(r, d, detector, status);
  pthread_mutex_unlock(&d->calls);
  return status;
}

/* What became of a device while a sensor was added. */
struct failure {
  bool any;
  uint32_t shard;
  const struct hk_device *device; /* that failed; NULL: there is none at the time */
  char why[256];
};

static void tell(struct hk_registry *r, enum hk_registry_change change, uint32_t slot)
{
  const struct sensor *s = r->sensor[slot];
  if (r->hook && change == HK_REGISTRY_ADDED)
    r->hook(r->hook_arg, change, slot, r->generation[slot], (struct hk_string){ s->text, s->entry.length },
            hk_registry_detector_of(r, s->entry.detector)->name);
  else if (r->hook)
    r->hook(r->hook_arg, change, slot, r->generation[slot], hk_string(""), "");
}

/* Makes a name a sensor, in a slot that is free. Under the lock. The table does not have the name. 0, or an enum hankel_refusal. */
static int add_at(struct hk_registry *r, uint32_t slot, const struct key *key, unsigned long hashed, struct failure *failure)
{
  const uint32_t length = key->entry.length, detector = key->entry.detector;
  struct hk_device *d = r->device[slot % r->n_shards];
  *failure = (struct failure){ .any = !d, .shard = slot % r->n_shards, .device = d };
  if (!d) {
    snprintf(r->full, sizeof r->full, "the device is lost, and the daemon ends");
    return HANKEL_FULL;
  }
  struct sensor *s = malloc(sizeof *s + length + 1);
  if (!s)
    return refuse(r, false);
  s->entry = (struct entry){ slot, key->entry.length, key->entry.detector };
  memcpy(s->text, key->name, length);
  s->text[length] = 0;
  const int status = bind_slot(r, d, slot, detector, hk_seed(key->name, length));
  if (status != 0) {
    free(s);
    failure->any = status < 0 && status != -ENOMEM && d->kind->device;
    snprintf(failure->why, sizeof failure->why, "%s", hk_backend_failure(d->kind, d->backend, status));
    return HANKEL_FULL;
  }
  if (!ck_hs_put_unique(&r->table, hashed, s)) {
    pthread_mutex_lock(&d->calls);
    d->backend->ops->remove(d->backend, slot / r->n_shards);
    pthread_mutex_unlock(&d->calls);
    free(s);
    return refuse(r, false);
  }
  for (uint32_t between = r->slots; between < slot; between++) /* when sensors are restored */
    atomic_store_explicit(&r->lookup[between], HK_NO_HANDLE, memory_order_relaxed);
  if (r->slots <= slot)
    r->slots = slot + 1;
  r->taken++;
  r->handle[slot] = slot | (uint32_t)r->generation[slot] << 24;
  r->of_detector[detector]++;
  r->count++;
  r->added++;
  atomic_store_explicit(&r->sensor[slot], s, memory_order_release);
  tell(r, HK_REGISTRY_ADDED, slot);
  atomic_store_explicit(&r->lookup[slot], r->handle[slot], memory_order_release);
  return 0;
}

/* As above, in a slot that was released or never used. */
static int add(struct hk_registry *r, const struct key *key, unsigned long hashed, uint32_t *out, struct failure *failure)
{
  if (r->taken == r->max_sensors)
    return refuse(r, true);
  const bool used = r->n_free > 0;
  const uint32_t slot = used ? r->free_slot[r->n_free - 1] : r->slots;
  const int refusal = add_at(r, slot, key, hashed, failure);
  r->n_free -= used && refusal == 0;
  *out = slot;
  return refusal;
}

void hk_registry_move(struct hk_registry *r, uint32_t shard, struct hk_device *device, void (*refused)(void *arg, uint32_t slot),
                      void *arg)
{
  pthread_rwlock_wrlock(&r->lock);
  r->device[shard] = device;
  for (uint32_t slot = shard; device && slot < r->slots; slot += r->n_shards) {
    const struct sensor *s = r->sensor[slot];
    if (s && bind_slot(r, device, slot, s->entry.detector, hk_seed(s->text, s->entry.length)) != 0)
      refused(arg, slot);
  }
  pthread_rwlock_unlock(&r->lock);
}

static const struct sensor *find(struct hk_registry *r, const struct key *key, unsigned long hashed)
{
  return ck_hs_get(&r->table, hashed, key);
}

/* Names that are being looked for: what became of each, or PENDING. At most TOGETHER of them, so that those who read wait for
 * a fraction of a millisecond at most. */
#define TOGETHER 256u
#define PENDING UINT32_MAX
struct wanted {
  struct key key;
  unsigned long hashed;
};

/* Finds detectors for those that are pending; one that has none is refused. */
static void find_detectors(const struct hk_sections *sections, uint32_t first, uint32_t n, struct wanted *wanted,
                           uint32_t *refusals)
{
  for (uint32_t i = first; i < n; i++) {
    uint32_t detector;
    if (refusals[i] != PENDING)
      continue;
    if (hk_sections_find(sections, wanted[i].key.name, wanted[i].key.entry.length, &detector))
      wanted[i].key.entry.detector = (uint16_t)detector;
    else
      refusals[i] = HANKEL_NO_DETECTOR;
  }
}

/* Makes sensors of those that are pending, up to the end or to where a device fails, whose index is returned. sections: by which
 * their detectors were found. */
static uint32_t add_pending(struct hk_registry *r, const struct hk_sections *sections, uint32_t first, uint32_t n,
                            struct wanted *wanted, uint32_t *slots, uint32_t *refusals, struct failure *failure)
{
  uint32_t i = first;
  failure->any = false;
  pthread_rwlock_wrlock(&r->lock);
  if (r->sections != sections) /* others came meanwhile */
    find_detectors(r->sections, first, n, wanted, refusals);
  for (; i < n; i++) {
    if (refusals[i] != PENDING)
      continue;
    const struct sensor *found = find(r, &wanted[i].key, wanted[i].hashed); /* somebody else may have added it meanwhile */
    if (found)
      slots[i] = found->entry.slot;
    refusals[i] = found ? 0 : (uint32_t)add(r, &wanted[i].key, wanted[i].hashed, &slots[i], failure);
    if (failure->any)
      break;
  }
  pthread_rwlock_unlock(&r->lock);
  return i;
}

/* Takes n <= TOGETHER names; refusals says of each that it is valid (0), or why it is not. */
static void take_some(struct hk_registry *r, uint32_t n, const struct hk_string *names, uint32_t *slots, uint32_t *refusals)
{
  struct wanted wanted[TOGETHER];
  bool pending = false;
  for (uint32_t i = 0; i < n; i++) {
    if (refusals[i] != 0)
      continue;
    wanted[i].key = (struct key){ { KEY, (uint16_t)names[i].length, 0 }, names[i].data };
    wanted[i].hashed = CK_HS_HASH(&r->table, hash, &wanted[i].key);
  }
  pthread_rwlock_rdlock(&r->lock);
  for (uint32_t i = 0; i < n; i++) {
    const struct sensor *found = refusals[i] == 0 ? find(r, &wanted[i].key, wanted[i].hashed) : NULL;
    if (found)
      slots[i] = found->entry.slot;
    else if (refusals[i] == 0)
      refusals[i] = PENDING;
    pending |= refusals[i] == PENDING;
  }
  struct hk_sections *sections = pending ? hk_sections_hold(r->sections) : NULL;
  pthread_rwlock_unlock(&r->lock);
  if (!pending)
    return;
  find_detectors(sections, 0, n, wanted, refusals);
  for (uint32_t i = 0, tried = n; i < n;) { /* tried: the name at which a device failed last; it gets one more try */
    struct failure failure;
    i = add_pending(r, sections, i, n, wanted, slots, refusals, &failure);
    if (i == n)
      break;
    if (i != tried && r->failed) {
      r->failed(r->failed_arg, failure.shard, failure.device, failure.why);
      refusals[i] = PENDING;
      tried = i;
    } else {
      i++;
    }
  }
  hk_sections_release(sections);
}

void hk_registry_take_all(struct hk_registry *r, uint32_t n, const struct hk_string *names, uint32_t *slots, uint32_t *refusals)
{
  for (uint32_t at = 0; at < n; at += TOGETHER) {
    const uint32_t some = n - at < TOGETHER ? n - at : TOGETHER;
    for (uint32_t i = at; i < at + some; i++)
      refusals[i] = hk_name_valid(names[i].data, names[i].length) ? 0 : HANKEL_BAD_NAME;
    take_some(r, some, names + at, slots + at, refusals + at);
  }
}

int hk_registry_take_valid(struct hk_registry *r, const char *name, size_t length, uint32_t *slot)
{
  const struct hk_string names = { name, length };
  uint32_t refusal = 0;
  take_some(r, 1, &names, slot, &refusal);
  return (int)refusal;
}

int hk_registry_take(struct hk_registry *r, const char *name, size_t length, uint32_t *slot)
{
  return hk_name_valid(name, length) ? hk_registry_take_valid(r, name, length, slot) : HANKEL_BAD_NAME;
}

struct hk_handles hk_registry_lookup(const struct hk_registry *r)
{
  return (struct hk_handles){ r->lookup, r->max_sensors };
}

int hk_registry_resolve(const struct hk_registry *r, uint32_t handle, uint32_t *slot)
{
  const struct hk_handles handles = hk_registry_lookup(r);
  *slot = hk_handle_slot(handle, r->max_sensors);
  return hk_handle_good(&handles, handle) ? 0 : HK_UNKNOWN;
}

uint32_t hk_registry_handle(const struct hk_registry *r, uint32_t slot)
{
  return atomic_load_explicit(&r->lookup[slot], memory_order_relaxed);
}

static const struct sensor *sensor_of(const struct hk_registry *r, uint32_t slot)
{
  return atomic_load_explicit(&r->sensor[slot], memory_order_acquire);
}

struct hk_string hk_registry_name(const struct hk_registry *r, uint32_t slot)
{
  const struct sensor *s = sensor_of(r, slot);
  return (struct hk_string){ s->text, s->entry.length };
}

uint32_t hk_registry_detector(const struct hk_registry *r, uint32_t slot)
{
  return sensor_of(r, slot)->entry.detector;
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
  const uint32_t handle = atomic_load_explicit(&r->lookup[slot], memory_order_acquire);
  return handle != HK_NO_HANDLE && (handle & 0xffffff) == slot; /* 0 while its first sensor is being added */
}

const uint32_t *hk_registry_handles(const struct hk_registry *r)
{
  return r->handle;
}

uint64_t hk_registry_added(const struct hk_registry *r)
{
  return r->added;
}

int hk_registry_find(struct hk_registry *r, const char *name, size_t length, uint32_t *slot)
{
  const struct key key = { { KEY, (uint16_t)length, 0 }, name };
  const struct sensor *found = length <= HK_NAME_MAX ? find(r, &key, CK_HS_HASH(&r->table, hash, &key)) : NULL;
  if (!found)
    return HK_UNKNOWN;
  *slot = found->entry.slot;
  return 0;
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

/* Under the lock. */
static void retire(struct hk_registry *r, uint32_t slot)
{
  struct sensor *s = r->sensor[slot];
  tell(r, HK_REGISTRY_RETIRED, slot);
  (void)ck_hs_remove(&r->table, CK_HS_HASH(&r->table, hash, s), s);
  atomic_store_explicit(&r->lookup[slot], HK_NO_HANDLE, memory_order_release);
  r->of_detector[s->entry.detector]--;
  r->count--;
  /* Removed entries leave tombstones that lengthen the probes. A rebuild that finds no memory leaves the table as it is. */
  if (++r->removed > r->count + 1024) {
    (void)ck_hs_rebuild(&r->table);
    r->removed = 0;
  }
}

static void release(struct hk_registry *r, uint32_t slot)
{
  struct hk_device *d = r->device[slot % r->n_shards];
  if (d) {
    pthread_mutex_lock(&d->calls);
    d->backend->ops->remove(d->backend, slot / r->n_shards);
    pthread_mutex_unlock(&d->calls);
  }
  tell(r, HK_REGISTRY_RELEASED, slot);
  free(atomic_exchange_explicit(&r->sensor[slot], NULL, memory_order_acq_rel));
  r->generation[slot]++;
  if (!r->restoring)
    r->free_slot[r->n_free++] = slot;
  r->taken--;
}

void hk_registry_retire(struct hk_registry *r, uint32_t slot)
{
  pthread_rwlock_wrlock(&r->lock);
  retire(r, slot);
  pthread_rwlock_unlock(&r->lock);
}

void hk_registry_release(struct hk_registry *r, uint32_t slot)
{
  pthread_rwlock_wrlock(&r->lock);
  release(r, slot);
  pthread_rwlock_unlock(&r->lock);
}

void hk_registry_on_change(struct hk_registry *r, hk_registry_hook *hook, void *arg)
{
  r->hook = hook;
  r->hook_arg = arg;
}

/* Frees a slot, whatever there is in it. */
static void clear_slot(struct hk_registry *r, uint32_t slot)
{
  if (!r->sensor[slot])
    return;
  if (r->lookup[slot] != HK_NO_HANDLE)
    retire(r, slot);
  release(r, slot);
}

/* The number of a detector of the configuration, by its name; else by that of the sensor. */
static bool find_detector(const struct hk_registry *r, struct hk_string name, struct hk_string detector, uint32_t *number)
{
  for (uint32_t i = 0; i < r->config->n_detectors; i++) {
    const struct hk_config_detector *d = &r->config->detectors[i];
    if (strlen(d->name) == detector.length && memcmp(d->name, detector.data, detector.length) == 0) {
      *number = d->number;
      return true;
    }
  }
  return hk_sections_find(r->sections, name.data, name.length, number);
}

int hk_registry_restore(struct hk_registry *r, uint32_t slot, uint8_t generation, struct hk_string name, struct hk_string detector)
{
  struct key key = { { KEY, (uint16_t)name.length, 0 }, name.data };
  struct failure failure;
  uint32_t number;
  if (!hk_name_valid(name.data, name.length))
    return HANKEL_BAD_NAME;
  if (slot >= r->max_sensors)
    return refuse(r, true);
  if (!find_detector(r, name, detector, &number))
    return HANKEL_NO_DETECTOR;
  key.entry.detector = (uint16_t)number;
  pthread_rwlock_wrlock(&r->lock);
  const unsigned long hashed = CK_HS_HASH(&r->table, hash, &key);
  const struct sensor *same = find(r, &key, hashed);
  int refusal = 0;
  r->restoring = true;
  if (!same || same->entry.slot != slot || r->generation[slot] != generation) {
    if (same)
      clear_slot(r, same->entry.slot);
    clear_slot(r, slot);
    r->generation[slot] = generation;
    refusal = add_at(r, slot, &key, hashed, &failure);
  }
  pthread_rwlock_unlock(&r->lock);
  return refusal;
}

void hk_registry_restored(struct hk_registry *r)
{
  pthread_rwlock_wrlock(&r->lock);
  for (uint32_t slot = 0; slot < r->slots; slot++)
    if (r->sensor[slot] && r->lookup[slot] == HK_NO_HANDLE)
      release(r, slot);
  r->restoring = false;
  r->n_free = 0;
  for (uint32_t slot = r->slots; slot-- > 0;)
    if (!r->sensor[slot])
      r->free_slot[r->n_free++] = slot;
  pthread_rwlock_unlock(&r->lock);
}

bool hk_registry_generation(const struct hk_registry *r, uint32_t slot, uint8_t *generation)
{
  if (slot >= r->max_sensors || !sensor_of(r, slot))
    return false;
  *generation = r->generation[slot];
  return true;
}

void hk_registry_on_failure(struct hk_registry *r,
                            void (*failed)(void *arg, uint32_t shard, const struct hk_device *device, const char *why), void *arg)
{
  r->failed = failed;
  r->failed_arg = arg;
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
