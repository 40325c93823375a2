/* The table is ck's hash set of sensors; the arrays by slot grow by doubling up to max_sensors, but for
 * that of handles, which others read at any time: it stands where it is from the start, and its pages come as slots are used. */
#include "daemon/registry.h"

#include "daemon/glob.h"

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

/* What the table holds; a key to look for has the same first members. */
struct sensor {
  const char *name;
  size_t length;
  uint32_t slot;
  uint32_t detector;
  char text[]; /* the name, with a 0 */
};

struct hk_registry {
  pthread_rwlock_t lock; /* of the table and the arrays below, but for `handle`; held for writing while a sensor comes or goes */
  const struct hk_config *config;
  struct hk_device *device; /* NULL: there is none any more */
  uint32_t max_sensors, n_detectors;
  struct hk_glob **globs; /* of the detectors */
  uint32_t *of_detector;  /* sensors of each */
  ck_hs_t table;
  struct ck_malloc memory;
  uint8_t secret[XXH3_SECRET_SIZE_MIN + 56];
  uint32_t count;
  uint64_t added;           /* sensors, ever */
  uint32_t slots, capacity; /* slots ever used; size of the arrays below */
  struct sensor **sensor;   /* by slot; NULL when free */
  atomic_uint *handle;      /* by slot, max_sensors + 1 of them: see struct hk_handles */
  uint8_t *generation;      /* by slot */
  uint32_t *free_slot;      /* a stack */
  uint32_t n_free;
  uint32_t removed;                           /* since the table was last rebuilt */
  char full[384];                             /* see hk_registry_full */
  void (*failed)(void *arg, const char *why); /* may be NULL */
  void *failed_arg;
};

static void *table_malloc(size_t size)
{
  return malloc(size);
}

static void table_free(void *memory, size_t size, bool defer)
{
  (void)size;
  (void)defer; /* one thread: nobody else reads the old table */
  free(memory);
}

/* ck hands the seed through as a number: it is the address of the secret. */
static unsigned long hash(const void *key, unsigned long seed)
{
  const struct sensor *k = key;
  return XXH3_64bits_withSecret(k->name, k->length, (const void *)seed, XXH3_SECRET_SIZE_MIN + 56);
}

static bool same(const void *a, const void *b)
{
  const struct sensor *x = a, *y = b;
  return x->length == y->length && memcmp(x->name, y->name, x->length) == 0;
}

int hk_registry_new(struct hk_registry **out, const struct hk_config *config, struct hk_device *device)
{
  int status = -ENOMEM;
  struct hk_registry *r = calloc(1, sizeof *r);
  if (!r)
    return -ENOMEM;
  pthread_rwlock_init(&r->lock, NULL);
  r->config = config;
  r->device = device;
  r->max_sensors = config->max_sensors;
  r->n_detectors = config->n_detectors;
  r->globs = calloc(config->n_detectors, sizeof *r->globs);
  r->of_detector = calloc(config->n_detectors, sizeof *r->of_detector);
  r->handle = calloc((size_t)config->max_sensors + 1, sizeof *r->handle);
  if (!r->globs || !r->of_detector || !r->handle)
    goto failed;
  atomic_init(&r->handle[0], HK_NO_HANDLE);
  for (uint32_t i = 0; i < config->n_detectors; i++) {
    status = hk_glob_new(&r->globs[i], config->detectors[i].match, strlen(config->detectors[i].match));
    if (status != 0)
      goto failed;
  }
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
  for (uint32_t i = 0; r->globs && i < r->n_detectors; i++)
    hk_glob_free(r->globs[i]);
  for (uint32_t i = 0; i < r->slots; i++)
    free(r->sensor[i]);
  if (r->table.map)
    ck_hs_destroy(&r->table);
  free(r->globs);
  free(r->of_detector);
  free(r->sensor);
  free(r->handle);
  free(r->generation);
  free(r->free_slot);
  pthread_rwlock_destroy(&r->lock);
  free(r);
}

static int grow(void *array, size_t element, uint32_t capacity)
{
  void **place = array;
  void *moved = realloc(*place, element * capacity);
  if (!moved)
    return -ENOMEM;
  *place = moved;
  return 0;
}

/* Makes room for one more slot in the arrays. */
static int make_room(struct hk_registry *r)
{
  if (r->slots < r->capacity)
    return 0;
  uint32_t capacity = r->capacity ? 2 * r->capacity : 1024;
  if (capacity > r->max_sensors)
    capacity = r->max_sensors;
  if (grow(&r->sensor, sizeof *r->sensor, capacity) != 0 || grow(&r->generation, sizeof *r->generation, capacity) != 0 ||
      grow(&r->free_slot, sizeof *r->free_slot, capacity) != 0)
    return -ENOMEM;
  memset(r->generation + r->capacity, 0, capacity - r->capacity);
  r->capacity = capacity;
  return 0;
}

static int find_detector(const struct hk_registry *r, const char *name, size_t length, uint32_t *out)
{
  for (uint32_t i = 0; i < r->n_detectors; i++)
    if (hk_glob_match(r->globs[i], name, length)) {
      *out = i;
      return 0;
    }
  return HANKEL_NO_DETECTOR;
}

/* Says why the backend refused a sensor, and what helps. */
static void say_full(struct hk_registry *r, uint32_t detector, int status)
{
  const struct hk_device *d = r->device;
  const char *words = d->kind->failure ? d->kind->failure(d->backend) : "";
  const char *name = r->config->detectors[detector].name;
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

/* 0, an enum hankel_refusal, or the negative errno of the backend. */
static int add(struct hk_registry *r, const char *name, size_t length, unsigned long hashed, uint32_t *out)
{
  uint32_t detector;
  int status = find_detector(r, name, length, &detector);
  if (status != 0)
    return status;
  if (!r->device) {
    snprintf(r->full, sizeof r->full, "the device is lost, and the daemon ends");
    return HANKEL_FULL;
  }
  if (r->count == r->max_sensors)
    return refuse(r, true);
  const uint32_t slot = r->n_free > 0 ? r->free_slot[r->n_free - 1] : r->slots;
  struct sensor *s = malloc(sizeof *s + length + 1);
  if (!s)
    return refuse(r, false);
  *s = (struct sensor){ s->text, length, slot, detector };
  memcpy(s->text, name, length);
  s->text[length] = 0;
  struct hk_backend *b = r->device->backend;
  status = b->ops->add(b, slot, detector, hk_seed(name, length));
  if (status != 0) {
    free(s);
    say_full(r, detector, status);
    return status < 0 ? status : HANKEL_FULL;
  }
  pthread_rwlock_wrlock(&r->lock);
  if ((r->n_free == 0 && make_room(r) != 0) || !ck_hs_put_unique(&r->table, hashed, s)) {
    pthread_rwlock_unlock(&r->lock);
    b->ops->remove(b, slot);
    free(s);
    return refuse(r, false);
  }
  if (r->n_free > 0)
    r->n_free--;
  else
    r->slots++;
  r->sensor[slot] = s;
  atomic_store_explicit(&r->handle[slot], slot | (uint32_t)r->generation[slot] << 24, memory_order_relaxed);
  r->of_detector[detector]++;
  r->count++;
  r->added++;
  pthread_rwlock_unlock(&r->lock);
  *out = slot;
  return 0;
}

void hk_registry_move(struct hk_registry *r, struct hk_device *device, void (*refused)(void *arg, uint32_t slot), void *arg)
{
  r->device = device;
  for (uint32_t slot = 0; device && slot < r->slots; slot++) {
    const struct sensor *s = r->sensor[slot];
    const int status = s ? device->backend->ops->add(device->backend, slot, s->detector, hk_seed(s->name, s->length)) : 0;
    if (status != 0) {
      say_full(r, s->detector, status);
      refused(arg, slot);
    }
  }
}

/* Whether the device, not the room on it, was why the last sensor was refused; then it was told of. */
static bool device_failed(struct hk_registry *r, int status)
{
  const struct hk_device *d = r->device;
  if (status >= 0 || status == -ENOMEM || !d->kind->device || !r->failed)
    return false;
  char why[256];
  snprintf(why, sizeof why, "%s", hk_backend_failure(d->kind, d->backend, status));
  r->failed(r->failed_arg, why);
  return true;
}

int hk_registry_take_valid(struct hk_registry *r, const char *name, size_t length, uint32_t *slot)
{
  const struct sensor key = { .name = name, .length = length };
  const unsigned long hashed = CK_HS_HASH(&r->table, hash, &key);
  const struct sensor *found = ck_hs_get(&r->table, hashed, &key);
  if (!found) {
    int status = add(r, name, length, hashed, slot);
    if (device_failed(r, status))
      status = add(r, name, length, hashed, slot);
    return status < 0 ? HANKEL_FULL : status;
  }
  *slot = found->slot;
  return 0;
}

int hk_registry_take(struct hk_registry *r, const char *name, size_t length, uint32_t *slot)
{
  return hk_name_valid(name, length) ? hk_registry_take_valid(r, name, length, slot) : HANKEL_BAD_NAME;
}

struct hk_handles hk_registry_lookup(const struct hk_registry *r)
{
  return (struct hk_handles){ r->handle, r->max_sensors };
}

int hk_registry_resolve(const struct hk_registry *r, uint32_t handle, uint32_t *slot)
{
  const struct hk_handles handles = hk_registry_lookup(r);
  *slot = hk_handle_slot(handle, r->max_sensors);
  return hk_handle_good(&handles, handle) ? 0 : HK_UNKNOWN;
}

uint32_t hk_registry_handle(const struct hk_registry *r, uint32_t slot)
{
  return atomic_load_explicit(&r->handle[slot], memory_order_relaxed);
}

struct hk_string hk_registry_name(const struct hk_registry *r, uint32_t slot)
{
  return (struct hk_string){ r->sensor[slot]->text, r->sensor[slot]->length };
}

uint32_t hk_registry_detector(const struct hk_registry *r, uint32_t slot)
{
  return r->sensor[slot]->detector;
}

bool hk_registry_holds(const struct hk_registry *r, uint32_t slot)
{
  return slot < r->slots && r->sensor[slot];
}

const uint32_t *hk_registry_handles(const struct hk_registry *r)
{
  _Static_assert(sizeof(atomic_uint) == sizeof(uint32_t), "a handle that nobody is changing can be read as a plain number");
  return (const uint32_t *)r->handle;
}

uint64_t hk_registry_added(const struct hk_registry *r)
{
  return r->added;
}

int hk_registry_find(struct hk_registry *r, const char *name, size_t length, uint32_t *slot)
{
  const struct sensor key = { .name = name, .length = length };
  const struct sensor *found = ck_hs_get((ck_hs_t *)&r->table, CK_HS_HASH(&r->table, hash, &key), &key);
  if (!found)
    return HK_UNKNOWN;
  *slot = found->slot;
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

const char *hk_registry_full(const struct hk_registry *r)
{
  return r->full;
}

void hk_registry_evict(struct hk_registry *r, uint32_t slot)
{
  struct sensor *s = r->sensor[slot];
  pthread_rwlock_wrlock(&r->lock);
  (void)ck_hs_remove(&r->table, CK_HS_HASH(&r->table, hash, s), s);
  if (r->device)
    r->device->backend->ops->remove(r->device->backend, slot);
  r->of_detector[s->detector]--;
  free(s);
  r->sensor[slot] = NULL;
  atomic_store_explicit(&r->handle[slot], HK_NO_HANDLE, memory_order_relaxed);
  r->generation[slot]++;
  r->free_slot[r->n_free++] = slot;
  r->count--;
  /* Removed entries leave tombstones that lengthen the probes. A rebuild that finds no memory leaves the table as it is. */
  if (++r->removed > r->count + 1024) {
    (void)ck_hs_rebuild(&r->table);
    r->removed = 0;
  }
  pthread_rwlock_unlock(&r->lock);
}

void hk_registry_on_failure(struct hk_registry *r, void (*failed)(void *arg, const char *why), void *arg)
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
