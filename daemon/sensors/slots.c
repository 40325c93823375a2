/* Adds, removes and restores sensors, and moves them to another device. */
#include "daemon/sensors/slots.h"
#include "cpu/rules/window.h"
#include "daemon/sensors/companions.h"
#include "daemon/sensors/registry_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes why a device refused a sensor, and the remedy. */
static void say_full(struct hk_registry *r, const struct hk_slot_binding *d, uint32_t detector, int status)
{
  const char *words = d->words(d);
  const char *name = hk_registry_detector_of(r, detector)->name;
  r->crowded = false;
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

/* Writes that there is no room on the host, or for more sensors at all. */
static int slots_refuse(struct hk_registry *r, bool many)
{
  r->crowded = many;
  if (many)
    snprintf(r->full, sizeof r->full, "max_sensors = %u are there; raise it, or set evict", r->max_sensors);
  else
    snprintf(r->full, sizeof r->full, "the machine has no memory for another name");
  return HANKEL_FULL;
}

/* Binds a slot on its shard's device. Returns 0, an enum hk_refusal, or the negative errno of the backend; *full: the
 * reason. */
static int bind_slot(struct hk_registry *r, struct hk_slot_binding *d, uint32_t slot, uint32_t detector, uint64_t seed)
{
  pthread_mutex_lock(d->calls);
  const int status = d->backend->ops->add(d->backend, slot / r->n_shards, detector, seed);
  if (status != 0)
    say_full(r, d, detector, status);
  pthread_mutex_unlock(d->calls);
  return status;
}

static void unbind_slot(struct hk_registry *r, uint32_t slot)
{
  struct hk_slot_binding *d = r->device[slot % r->n_shards];
  if (!d)
    return;
  pthread_mutex_lock(d->calls);
  d->backend->ops->remove(d->backend, slot / r->n_shards);
  pthread_mutex_unlock(d->calls);
}

/* A companion computes what its algorithm alone would compute for the same sensor. */
static uint64_t seed_of(const struct hk_registry *r, const struct hk_registry_sensor *s)
{
  return hk_seed(s->text, hk_registry_is_derived(r, s) ? hk_registry_of(s) : s->entry.length);
}

static void slots_tell(struct hk_registry *r, enum hk_registry_change change, uint32_t slot)
{
  const struct hk_registry_sensor *s = r->slot.sensor[slot];
  if (r->hooks.hook && change == HK_REGISTRY_ADDED)
    r->hooks.hook(r->hooks.hook_arg, change,
                  &(struct hk_registry_changed){ slot,
                                                 r->slot.generation[slot],
                                                 { s->text, s->entry.length },
                                                 hk_registry_detector_of(r, s->entry.detector)->name,
                                                 s->owner });
  else if (r->hooks.hook)
    r->hooks.hook(r->hooks.hook_arg, change,
                  &(struct hk_registry_changed){ slot, r->slot.generation[slot], hk_string(""), "", 0 });
}

/* Adds a name to the table, and binds its slot, which is free; no other thread knows of it yet. The table does not have the
 * name. Returns 0, or an enum hankel_refusal. */
static int slots_prepare(struct hk_registry *r, uint32_t slot, const struct hk_registry_key *key, unsigned long hashed,
                         struct hk_registry_sensor **out, struct hk_registry_failure *failure)
{
  const uint32_t length = key->entry.length, detector = key->entry.detector;
  struct hk_slot_binding *d = r->device[slot % r->n_shards];
  *failure = (struct hk_registry_failure){ .any = !d, .shard = slot % r->n_shards, .device = d };
  if (!d) {
    r->crowded = false;
    snprintf(r->full, sizeof r->full, "the device is lost, and the daemon exits");
    return HANKEL_FULL;
  }
  struct hk_registry_sensor *s = malloc(sizeof *s + length + 1);
  if (!s)
    return slots_refuse(r, false);
  s->entry = (struct hk_registry_entry){ slot, key->entry.length, key->entry.detector };
  s->owner = 0;
  memcpy(s->text, key->name, length);
  s->text[length] = 0;
  const int status = bind_slot(r, d, slot, detector, seed_of(r, s));
  if (status != 0) {
    free(s);
    failure->any = status < 0 && status != -ENOMEM && d->may_fail;
    const char *words = d->words(d);
    snprintf(failure->why, sizeof failure->why, "%s", words[0] ? words : strerror(-status));
    return HANKEL_FULL;
  }
  if (!ck_hs_put_unique(&r->table, hashed, s)) {
    unbind_slot(r, slot);
    free(s);
    return slots_refuse(r, false);
  }
  *out = s;
  return 0;
}

static void undo(struct hk_registry *r, struct hk_registry_sensor *s)
{
  (void)ck_hs_remove(&r->table, CK_HS_HASH(&r->table, hk_registry_hash, s), s);
  unbind_slot(r, s->entry.slot);
  free(s);
}

/* Makes the slot a sensor. */
static void slots_enter(struct hk_registry *r, struct hk_registry_sensor *s)
{
  const uint32_t slot = s->entry.slot;
  const bool derived = hk_registry_is_derived(r, s);
  struct hk_registry_part *part = &r->slot.part[slot % r->n_shards];
  for (uint32_t between = r->slots; between < slot; between++) /* slots of other shards, or during a restore */
    atomic_store_explicit(&r->slot.lookup[between], HK_NO_HANDLE, memory_order_relaxed);
  if (r->slots <= slot)
    r->slots = slot + 1;
  if (part->fresh <= slot / r->n_shards)
    part->fresh = slot / r->n_shards + 1;
  r->taken++;
  r->slot.handle[slot] = slot | (uint32_t)r->slot.generation[slot] << 24;
  r->of_detector[s->entry.detector]++;
  r->n_derived += derived;
  r->count++;
  r->added++;
  hk_registry_join(r, s);
  atomic_store_explicit(&r->slot.sensor[slot], s, memory_order_release);
  slots_tell(r, HK_REGISTRY_ADDED, slot);
  atomic_store_explicit(&r->slot.lookup[slot], derived ? HK_REGISTRY_DERIVED : r->slot.handle[slot], memory_order_release);
}

/* Makes a sensor in a given slot. */
static int add_at(struct hk_registry *r, uint32_t slot, const struct hk_registry_key *key, unsigned long hashed,
                  struct hk_registry_failure *failure)
{
  struct hk_registry_sensor *s;
  const int refusal = slots_prepare(r, slot, key, hashed, &s, failure);
  if (refusal == 0)
    slots_enter(r, s);
  return refusal;
}

static uint32_t slots_room(const struct hk_registry_part *p)
{
  return p->capacity - p->fresh + p->n_free;
}

/* The shard with the fewest sensors among those that have room for n more. -1: none. */
static int32_t roomiest(const struct hk_registry *r, uint32_t n)
{
  int32_t best = -1;
  uint32_t fewest = UINT32_MAX;
  for (uint32_t i = 0; i < r->n_shards; i++) {
    const struct hk_registry_part *p = &r->slot.part[i];
    const uint32_t used = p->fresh - p->n_free;
    if (slots_room(p) >= n && used < fewest) {
      best = (int32_t)i;
      fewest = used;
    }
  }
  return best;
}

/* The i-th free slot of a shard. */
static uint32_t free_slot(const struct hk_registry *r, uint32_t shard, uint32_t i)
{
  const struct hk_registry_part *p = &r->slot.part[shard];
  const uint32_t within = i < p->n_free ? p->free_slot[p->n_free - 1 - i] : p->fresh + i - p->n_free;
  return within * r->n_shards + shard;
}

/* Gives a sensor without an owner this owner, for whom it counts. */
static void slots_give(struct hk_registry *r, struct hk_registry_sensor *s, uint64_t owner)
{
  if (s->owner == 0 && owner != 0 && hk_owners_add(&r->owners, owner) == 0)
    s->owner = owner;
}

/* Makes sensors of n names in slots of one shard: all, or none. owner: of the first; the others have none. */
static int add_together(struct hk_registry *r, uint32_t shard, const struct hk_registry_key *keys, uint32_t n, uint64_t owner,
                        struct hk_registry_failure *failure)
{
  struct hk_registry_sensor *made[HK_ALGORITHMS];
  struct hk_registry_part *p = &r->slot.part[shard];
  uint32_t i = 0;
  int refusal = 0;
  for (; i < n && refusal == 0; i++)
    refusal =
        slots_prepare(r, free_slot(r, shard, i), &keys[i], CK_HS_HASH(&r->table, hk_registry_hash, &keys[i]), &made[i], failure);
  if (refusal != 0) {
    for (i--; i-- > 0;)
      undo(r, made[i]);
    return refusal;
  }
  p->n_free -= n < p->n_free ? n : p->n_free;
  slots_give(r, made[0], owner);
  while (i-- > 0) /* the sensor that gets points comes last */
    slots_enter(r, made[i]);
  return 0;
}

/* Finds the place of the series of a machine or field. *there: whether it exists. */
static uint32_t slots_home_of(struct hk_registry *r, const struct hk_machine_name *machine, bool *there)
{
  char text[HK_NAME_MAX];
  const size_t length = hk_sections_series(machine, text);
  const struct hk_registry_key series = { { HK_REGISTRY_KEY, (uint16_t)length, 0 }, text };
  const struct hk_registry_sensor *found =
      length > 0 ? hk_registry_look(r, &series, CK_HS_HASH(&r->table, hk_registry_hash, &series)) : NULL;
  *there = found != NULL;
  if (found)
    return found->entry.slot % r->n_shards;
  return (uint32_t)((machine->beside ? hk_seed(machine->beside, strlen(machine->beside)) : hk_seed(text, length)) % r->n_shards);
}

/* The shard for n more sensors: that of the machine, if the sensor has one, else that of its field. */
static int32_t slots_home(struct hk_registry *r, const struct hk_registry_key *key, uint32_t n)
{
  struct hk_machine_name machine, field;
  const bool grouped = r->n_shards > 1 && hk_sections_group(r->sections, key->name, key->entry.length, &machine);
  const bool fielded = r->n_shards > 1 && hk_sections_field(r->sections, key->name, key->entry.length, &field);
  bool there = false;
  uint32_t shard = 0;
  if (!grouped && !fielded)
    return roomiest(r, n);
  if (grouped)
    shard = slots_home_of(r, &machine, &there);
  if (fielded && !there)
    shard = slots_home_of(r, &field, &there);
  return slots_room(&r->slot.part[shard]) >= n ? (int32_t)shard : -1;
}

/* Lists a sensor's missing companions, except those whose name is taken or too long. Returns their number. */
static uint32_t find_lacking(struct hk_registry *r, const struct hk_registry_key *of, const struct hk_section *section,
                             char text[HK_COMPANIONS][HK_NAME_MAX], struct hk_registry_key *keys)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < section->n_companions; i++) {
    struct hk_registry_key *key = &keys[n];
    const bool fits = hk_registry_companion(r, of, section->companion[i], text[n], key);
    const struct hk_registry_sensor *found = fits ? hk_registry_look(r, key, CK_HS_HASH(&r->table, hk_registry_hash, key)) : NULL;
    if (fits && !found)
      n++;
    else
      r->lacking += !fits || !hk_registry_is_derived(r, found);
  }
  return n;
}

int hk_registry_add(struct hk_registry *r, const struct hk_registry_wanted *wanted, uint32_t *out,
                    struct hk_registry_failure *failure)
{
  char text[HK_COMPANIONS][HK_NAME_MAX];
  struct hk_registry_key keys[HK_ALGORITHMS] = { wanted->key };
  const uint32_t n = 1 + find_lacking(r, &wanted->key, wanted->section, text, keys + 1);
  const int32_t shard = slots_home(r, &wanted->key, n);
  failure->any = false;
  if (hk_registry_spent(r, wanted->owner))
    return HANKEL_QUOTA;
  if (shard < 0)
    return slots_refuse(r, true);
  *out = free_slot(r, (uint32_t)shard, 0);
  return add_together(r, (uint32_t)shard, keys, n, wanted->owner, failure);
}

int hk_registry_complete(struct hk_registry *r, uint32_t slot, uint32_t *added)
{
  char text[HK_COMPANIONS][HK_NAME_MAX];
  struct hk_registry_key keys[HK_COMPANIONS];
  struct hk_registry_failure failure;
  const struct hk_registry_sensor *s = r->slot.sensor[slot];
  int refusal = 0;
  *added = 0;
  pthread_rwlock_wrlock(&r->lock);
  const struct hk_section *section = hk_sections_of(r->sections, s->entry.detector);
  if (section && section->n_companions > 0) {
    const struct hk_registry_key of = { s->entry, s->text };
    const uint32_t n = find_lacking(r, &of, section, text, keys), shard = slot % r->n_shards;
    if (slots_room(&r->slot.part[shard]) < n)
      refusal = slots_refuse(r, true);
    else if (n > 0)
      refusal = add_together(r, shard, keys, n, 0, &failure);
    *added = refusal == 0 ? n : 0;
  }
  pthread_rwlock_unlock(&r->lock);
  return refusal;
}

int hk_registry_series(struct hk_registry *r, uint32_t shard, const char *name, size_t length, uint32_t detector, uint32_t *slot)
{
  const struct hk_registry_key key = { { HK_REGISTRY_KEY, (uint16_t)length, (uint16_t)detector }, name };
  struct hk_registry_failure failure;
  int refusal = 0;
  pthread_rwlock_wrlock(&r->lock);
  const struct hk_registry_sensor *found = hk_registry_look(r, &key, CK_HS_HASH(&r->table, hk_registry_hash, &key));
  if (found) {
    *slot = found->entry.slot;
    refusal = found->entry.detector == detector && *slot % r->n_shards == shard ? 0 : HANKEL_RESERVED;
  } else if (slots_room(&r->slot.part[shard]) == 0) {
    refusal = slots_refuse(r, true);
  } else {
    *slot = free_slot(r, shard, 0);
    refusal = add_together(r, shard, &key, 1, 0, &failure);
  }
  pthread_rwlock_unlock(&r->lock);
  return refusal;
}

void hk_registry_generations(struct hk_registry *r, uint8_t generation)
{
  memset(r->slot.generation, generation, r->max_sensors);
}

static bool rebind(struct hk_registry *r, struct hk_slot_binding *device, uint32_t slot)
{
  const struct hk_registry_sensor *s = r->slot.sensor[slot];
  return bind_slot(r, device, slot, s->entry.detector, seed_of(r, s)) == 0;
}

void hk_registry_move(struct hk_registry *r, uint32_t shard, struct hk_slot_binding *device,
                      void (*refused)(void *arg, uint32_t slot), void *arg)
{
  pthread_rwlock_wrlock(&r->lock);
  r->device[shard] = device;
  for (uint32_t slot = shard; device && slot < r->slots; slot += r->n_shards) {
    if (!r->slot.sensor[slot] || hk_registry_primary(r, slot) != slot) /* companions come and go with their sensor */
      continue;
    const bool there = rebind(r, device, slot);
    for (uint32_t companion = slot; (companion = hk_registry_next_companion(r, companion)) != slot;)
      if (!there || !rebind(r, device, companion))
        refused(arg, companion);
    if (!there)
      refused(arg, slot);
  }
  pthread_rwlock_unlock(&r->lock);
}

/* To call under the lock. */
static void retire(struct hk_registry *r, uint32_t slot)
{
  struct hk_registry_sensor *s = r->slot.sensor[slot];
  slots_tell(r, HK_REGISTRY_RETIRED, slot);
  (void)ck_hs_remove(&r->table, CK_HS_HASH(&r->table, hk_registry_hash, s), s);
  atomic_store_explicit(&r->slot.lookup[slot], HK_NO_HANDLE, memory_order_release);
  hk_registry_leave(r, slot);
  r->of_detector[s->entry.detector]--;
  r->n_derived -= hk_registry_is_derived(r, s);
  r->count--;
  if (s->owner != 0)
    hk_owners_remove(&r->owners, s->owner);
  s->owner = 0;
  /* Removed entries leave tombstones that lengthen the probes. A rebuild that finds no memory leaves the table as it is. */
  if (++r->removed > r->count + 1024) {
    (void)ck_hs_rebuild(&r->table);
    r->removed = 0;
  }
}

static void slots_release(struct hk_registry *r, uint32_t slot)
{
  struct hk_registry_part *part = &r->slot.part[slot % r->n_shards];
  unbind_slot(r, slot);
  slots_tell(r, HK_REGISTRY_RELEASED, slot);
  free(atomic_exchange_explicit(&r->slot.sensor[slot], NULL, memory_order_acq_rel));
  r->slot.generation[slot]++;
  if (!r->restoring)
    part->free_slot[part->n_free++] = slot / r->n_shards;
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
  slots_release(r, slot);
  pthread_rwlock_unlock(&r->lock);
}

/* Frees a slot with its content. */
static void clear_slot(struct hk_registry *r, uint32_t slot)
{
  if (!r->slot.sensor[slot])
    return;
  if (r->slot.lookup[slot] != HK_NO_HANDLE)
    retire(r, slot);
  slots_release(r, slot);
}

/* The number of a detector of the configuration, by its name; else by the name of the sensor. A companion's is one with that
 * name, or none. */
static bool find_detector(const struct hk_registry *r, struct hk_string name, struct hk_string detector, uint32_t *number)
{
  for (uint32_t i = 0; i < r->config->n_detectors; i++) {
    const struct hk_config_detector *d = &r->config->detectors[i];
    if (strlen(d->name) == detector.length && memcmp(d->name, detector.data, detector.length) == 0) {
      *number = d->number;
      return true;
    }
  }
  if (memchr(detector.data, HK_DERIVED_MARK, detector.length))
    return false;
  const struct hk_section *section = hk_sections_find(r->sections, name.data, name.length);
  if (section)
    *number = section->number;
  return section != NULL;
}

int hk_registry_restore(struct hk_registry *r, uint32_t slot, uint8_t generation, struct hk_string name,
                        struct hk_string detector)
{
  struct hk_registry_key key = { { HK_REGISTRY_KEY, (uint16_t)name.length, 0 }, name.data };
  struct hk_registry_failure failure;
  uint32_t number;
  if (!hk_name_valid(name.data, name.length))
    return HANKEL_BAD_NAME;
  if (slot >= r->max_sensors) {
    pthread_rwlock_wrlock(&r->lock); /* shards read the reason */
    const int full = slots_refuse(r, true);
    pthread_rwlock_unlock(&r->lock);
    return full;
  }
  if (!find_detector(r, name, detector, &number))
    return HANKEL_NO_DETECTOR;
  key.entry.detector = (uint16_t)number;
  pthread_rwlock_wrlock(&r->lock);
  const unsigned long hashed = CK_HS_HASH(&r->table, hk_registry_hash, &key);
  const struct hk_registry_sensor *same = hk_registry_look(r, &key, hashed);
  int refusal = 0;
  r->restoring = true;
  if (!same || same->entry.slot != slot || r->slot.generation[slot] != generation) {
    if (same)
      clear_slot(r, same->entry.slot);
    clear_slot(r, slot);
    r->slot.generation[slot] = generation;
    refusal = add_at(r, slot, &key, hashed, &failure);
  }
  pthread_rwlock_unlock(&r->lock);
  return refusal;
}

void hk_registry_restore_owner(struct hk_registry *r, uint32_t slot, uint8_t generation, uint64_t owner)
{
  pthread_rwlock_wrlock(&r->lock);
  if (slot < r->max_sensors && r->slot.sensor[slot] && r->slot.generation[slot] == generation &&
      r->slot.lookup[slot] != HK_NO_HANDLE)
    slots_give(r, r->slot.sensor[slot], owner);
  pthread_rwlock_unlock(&r->lock);
}

void hk_registry_part_companions(struct hk_registry *r)
{
  for (uint32_t slot = 0; slot < r->slots; slot++)
    if (hk_registry_holds(r, slot) && hk_registry_derived(r, slot) && !hk_registry_is_series(r, hk_registry_at(r, slot)) &&
        !hk_registry_accompanies(r, r->sections, slot))
      hk_registry_retire(r, slot);
}

void hk_registry_restored(struct hk_registry *r)
{
  pthread_rwlock_wrlock(&r->lock);
  for (uint32_t slot = 0; slot < r->slots; slot++)
    if (r->slot.sensor[slot] && r->slot.lookup[slot] == HK_NO_HANDLE)
      slots_release(r, slot);
  r->restoring = false;
  for (uint32_t i = 0; i < r->n_shards; i++) {
    struct hk_registry_part *p = &r->slot.part[i];
    p->n_free = 0;
    for (uint32_t within = p->fresh; within-- > 0;)
      if (!r->slot.sensor[within * r->n_shards + i])
        p->free_slot[p->n_free++] = within;
  }
  pthread_rwlock_unlock(&r->lock);
}
