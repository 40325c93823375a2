/* Internals of the registry, for its own files: registry.c finds, slots.c changes. */
#ifndef HK_REGISTRY_INTERNAL_H
#define HK_REGISTRY_INTERNAL_H

#include "daemon/sensors/owners.h"
#include "daemon/sensors/registry.h"

#include <ck_hs.h>
#include <ck_malloc.h>
#include <pthread.h>
#include <xxhash.h>

#define HK_REGISTRY_KEY UINT32_MAX /* the slot of a search key */
/* The lookup's value for a derived sensor: it exists, and no peer's handle names it. */
#define HK_REGISTRY_DERIVED 0xfeffffffu

/* The table holds sensors; a search uses a key. Both begin with this. */
struct hk_registry_entry {
  uint32_t slot;
  uint16_t length;
  uint16_t detector;
};

struct hk_registry_sensor {
  struct hk_registry_entry entry;
  uint64_t owner; /* its owner; 0: none */
  char text[];    /* the name, with a 0 */
};

struct hk_registry_key {
  struct hk_registry_entry entry;
  const char *name;
};

/* The slots of one shard, counted within it. */
struct hk_registry_part {
  uint32_t *free_slot; /* a stack */
  uint32_t n_free;
  uint32_t fresh;    /* slots from here on were never used */
  uint32_t capacity; /* number of slots */
};

/* Properties of each slot, by slot. Arrays of max_sensors; used by slots.c. */
struct hk_registry_slots {
  struct hk_registry_sensor *_Atomic *sensor; /* NULL when free */
  atomic_uint *lookup;                        /* max_sensors + 1 of them: see struct hk_handles */
  uint32_t *handle;                           /* valid until the sensor is released */
  uint8_t *generation;
  atomic_uint *companion;        /* 1 + the next of a ring of a sensor and its companions; 0: no ring */
  struct hk_registry_part *part; /* the slots of each shard */
  uint32_t *free_slot;           /* the stacks of free slots */
};

/* Functions to call on changes. */
struct hk_registry_hooks {
  void (*failed)(void *arg, uint32_t shard, const struct hk_slot_binding *device, const char *why); /* may be NULL */
  void *failed_arg;
  hk_registry_hook *hook; /* may be NULL */
  void *hook_arg;
};

struct hk_registry {
  pthread_rwlock_t lock; /* protects everything below that is not atomic; held for writing while a sensor comes or goes */
  const struct hk_config *config;
  struct hk_slot_binding **device; /* of each shard; NULL: none (any more) */
  uint32_t n_shards, max_sensors;
  struct hk_sections *sections;                                   /* for new names */
  struct hk_config_detector *_Atomic by_number[HK_DETECTORS_MAX]; /* detectors by number; NULL: unused */
  atomic_uint of_detector[HK_DETECTORS_MAX];                      /* number of sensors of each */
  struct hk_owners owners;                                        /* numbers of sensors by the peers that created them */
  ck_hs_t table;
  struct ck_malloc memory;
  uint8_t secret[XXH3_SECRET_SIZE_MIN + 56];
  atomic_uint count;
  atomic_uint_fast64_t added; /* number of sensors ever added */
  atomic_uint slots;          /* number of slots ever used */
  uint32_t taken;             /* slots in use, including those of retired sensors */
  struct hk_registry_slots slot;
  atomic_uint n_derived;           /* number of derived sensors */
  atomic_uint lacking;             /* number of companions not made because of their names, so far */
  uint32_t removed;                /* since the table was last rebuilt */
  char full[HK_REGISTRY_FULL_MAX]; /* see hk_registry_full */
  bool crowded;                    /* `full` says that there are max_sensors */
  struct hk_registry_hooks hooks;
  bool restoring; /* free slots are found at the end of it */
};

/* A failure of a device while a sensor was added. */
struct hk_registry_failure {
  bool any;
  uint32_t shard;
  const struct hk_slot_binding *device; /* the failed one; NULL: none */
  char why[256];
};

/* The hash of an entry; seed: the address of the registry's secret. */
unsigned long hk_registry_hash(const void *entry, unsigned long seed);

/* Whether an owner has reached its limit of sensors. Under the lock. */
bool hk_registry_spent(const struct hk_registry *r, uint64_t owner);

static inline const struct hk_registry_sensor *hk_registry_look(struct hk_registry *r, const struct hk_registry_key *key,
                                                                unsigned long hashed)
{
  return ck_hs_get(&r->table, hashed, key);
}
static inline const struct hk_registry_sensor *hk_registry_at(const struct hk_registry *r, uint32_t slot)
{
  return atomic_load_explicit(&r->slot.sensor[slot], memory_order_acquire);
}

/* A name to add, and the section with the companions that its sensor is to have. */
struct hk_registry_wanted {
  struct hk_registry_key key;
  unsigned long hashed;
  const struct hk_section *section;
  uint64_t owner; /* 0: none, without a quota */
};

static inline bool hk_registry_is_derived(const struct hk_registry *r, const struct hk_registry_sensor *s)
{
  return atomic_load_explicit(&r->by_number[s->entry.detector], memory_order_acquire)->derived;
}

/* Whether a sensor is a machine's series: derived, and not a companion. */
static inline bool hk_registry_is_series(const struct hk_registry *r, const struct hk_registry_sensor *s)
{
  return atomic_load_explicit(&r->by_number[s->entry.detector], memory_order_acquire)->group;
}

/* Adds a sensor and its companions, in slots of one shard that were released or never used: all or none. Under the lock. The
 * table does not have the name. Returns 0, or an enum hankel_refusal. */
int hk_registry_add(struct hk_registry *r, const struct hk_registry_wanted *wanted, uint32_t *out,
                    struct hk_registry_failure *failure);

/* companions.c, under the lock.
 * The names of companions: name, mark, algorithm. hk_registry_companion: writes that of detector `number`; false: it is too long.
 * hk_registry_of: length of the sensor's name at the beginning of a companion's name. */
bool hk_registry_companion(const struct hk_registry *r, const struct hk_registry_key *of, uint32_t number, char text[HK_NAME_MAX],
                           struct hk_registry_key *out);
size_t hk_registry_of(const struct hk_registry_sensor *s);
/* A sensor was added, and is in the table: adds it to its ring. A sensor goes: removes it from its ring. */
void hk_registry_join(struct hk_registry *r, const struct hk_registry_sensor *s);
void hk_registry_leave(struct hk_registry *r, uint32_t slot);

#endif
