/* Registry: maps names of sensors to slots, and back.
 *
 * A new name gets the detector of the first section whose glob matches it, and a free slot of the backend. hk_registry_define
 * sets the meaning of a detector's number; hk_registry_adopt changes which detectors new names get. At capacity new names are
 * refused, and existing sensors are unaffected. A sensor is forgotten in two steps: a retired sensor cannot be found by name or
 * handle any more; its slot is reused after the release, when all points that may name it are processed. The next sensor in the
 * slot has another generation, so an old handle does not reach it (generations have 8 bits: a handle kept over 256 evictions of
 * one slot could).
 *
 * Slots are spread over the shards: slot s is number s / n of shard s % n.
 *
 * Derived sensors get their points from the daemon, and none from peers, to whom their names are refused and their handles
 * unknown. Companions are derived: if a section has several algorithms, a sensor SENSOR of the first has one called SENSOR#graph
 * for each of the others, which comes and goes with it and is on the same shard.
 *
 * The hash is keyed with random bytes, so that no peer can prepare colliding names.
 *
 * Thread: any, except functions of a shard. Names are looked up under a lock that readers share; handles are resolved, and
 * properties of a slot are read, without a lock. */
#ifndef HK_REGISTRY_H
#define HK_REGISTRY_H

#include "daemon/config/config.h"
#include "daemon/sensors/detector_rules.h"
#include "daemon/sensors/slot_binding.h"
#include "proto/wire/message.h"

#include <stdatomic.h>

struct hk_registry;

/* For decoding: the handle of each slot's sensor; HK_NO_HANDLE or 0 without a sensor (0 is a handle of slot 0 alone). Written by
 * the registry, read without a lock by any thread, which then sees everything written about the sensor before (an acquire load).
 * One more place, after all slots, stays 0. */
struct hk_handles {
  const atomic_uint *of_slot;
  uint32_t max_sensors;
};

/* The slot that a handle names, valid or not; max_sensors if there is no such slot. */
static inline uint32_t hk_handle_slot(uint32_t handle, uint32_t max_sensors)
{
  const uint32_t slot = handle & 0xffffff;
  return slot < max_sensors ? slot : max_sensors;
}
/* Whether a handle is that of a sensor that peers may feed; then hk_handle_slot is its slot. */
static inline bool hk_handle_good(const struct hk_handles *h, uint32_t handle)
{
  return atomic_load_explicit(&h->of_slot[hk_handle_slot(handle, h->max_sensors)], memory_order_acquire) == handle;
}

/* Makes a registry. config, and every configuration adopted later, must outlive its use here. Initially no shard has a device:
 * see hk_registry_move. Returns 0 and *out, or a negative errno. */
int hk_registry_new(struct hk_registry **out, const struct hk_config *config, uint32_t n_shards);
void hk_registry_free(struct hk_registry *registry); /* NULL is allowed */

/* The function to call, without a lock, when a shard's device fails while a sensor is added to it; NULL: none. It returns when
 * the shard has recovered; then the sensor is added again. */
void hk_registry_on_failure(struct hk_registry *registry,
                            void (*failed)(void *arg, uint32_t shard, const struct hk_slot_binding *device, const char *why),
                            void *arg);
/* Changes of a sensor, which the journal replays at the next start. */
enum hk_registry_change {
  HK_REGISTRY_ADDED,    /* before any thread can name it */
  HK_REGISTRY_RETIRED,  /* see hk_registry_retire */
  HK_REGISTRY_RELEASED, /* once no thread can name it */
};
struct hk_registry_changed {
  uint32_t slot;
  uint8_t generation;
  /* ADDED only; else empty: */
  struct hk_string name;
  const char *detector; /* its name */
  uint64_t owner;       /* 0: none */
};
/* The function to call at each change, under the registry's lock. Set while nothing else runs. */
typedef void hk_registry_hook(void *arg, enum hk_registry_change change, const struct hk_registry_changed *sensor);
void hk_registry_on_change(struct hk_registry *registry, hk_registry_hook *hook, void *arg);

/* The generation of a slot's sensor, retired or not. False: the slot has no sensor. */
bool hk_registry_generation(const struct hk_registry *registry, uint32_t slot, uint8_t *generation);

/* Number of all derived sensors. Thread: any. */
uint32_t hk_registry_count_derived(const struct hk_registry *registry);
/* Number of companions that were not made because a peer's sensor has the name, or it would be too long. Thread: any. */
uint32_t hk_registry_lacking(const struct hk_registry *registry);

/* For decoding, on any thread; valid as long as the registry. */
struct hk_handles hk_registry_lookup(const struct hk_registry *registry);

bool hk_registry_holds(const struct hk_registry *registry, uint32_t slot); /* whether the slot has a sensor */

/* For a slot that holds a sensor, or a retired one. The name is valid until the release; it ends with 0. */
uint32_t hk_registry_handle(const struct hk_registry *registry, uint32_t slot);
struct hk_string hk_registry_name(const struct hk_registry *registry, uint32_t slot);
uint32_t hk_registry_detector(const struct hk_registry *registry, uint32_t slot);
/* The owner of a sensor that holds its slot; 0: none. Thread: the slot's shard's. */
uint64_t hk_registry_owner(const struct hk_registry *registry, uint32_t slot);
/* The detector of a number: its name and parameters; NULL: none. Valid as long as a sensor of it is not released. */
const struct hk_config_detector *hk_registry_detector_of(const struct hk_registry *registry, uint32_t number);

/* Numbers of detectors. hk_registry_detectors: copies all, with window 0 for an unused number; room for HK_DETECTORS_MAX; returns
 * their number. hk_registry_define: assigns a detector (copied) to an unused number, or frees the number (NULL) once all of its
 * sensors are released. Returns 0 or -ENOMEM. Thread: main. */
uint32_t hk_registry_detectors(struct hk_registry *registry, struct hk_detector *out);
int hk_registry_define(struct hk_registry *registry, uint32_t number, const struct hk_config_detector *detector);
/* New names get the detectors of these sections from now on, to which a reference is kept; existing sensors keep theirs. Thread:
 * main. */
void hk_registry_adopt(struct hk_registry *registry, const struct hk_config *config, struct hk_sections *sections);

/* For publishers, each on a thread of its own. hk_registry_handles: the handles by slot, for any slot that a batch names while
 * that batch is being published; the array does not move. hk_registry_added: number of sensors ever added; it only grows, and
 * counts a sensor before any batch names it. hk_registry_find: finds the slot of a sensor's name; 0, or HK_UNKNOWN.
 * hk_registry_is: whether a slot has the sensor of this name, for a caller that can guess the slot. Between hk_registry_read and
 * hk_registry_read_end the names of slots stay valid and these two may be called; hold it briefly, not nested. */
const uint32_t *hk_registry_handles(const struct hk_registry *registry);
uint64_t hk_registry_added(const struct hk_registry *registry);
enum { HK_UNKNOWN = 1 };
int hk_registry_find(struct hk_registry *registry, const char *name, size_t length, uint32_t *slot);
bool hk_registry_is(const struct hk_registry *registry, uint32_t slot, const char *name, size_t length);
void hk_registry_read(struct hk_registry *registry);
void hk_registry_read_end(struct hk_registry *registry);

/* The reason of the last refusal for lack of room, and the remedy; "" if there was none. Returns `out`. */
#define HK_REGISTRY_FULL_MAX 384
const char *hk_registry_full(struct hk_registry *registry, char out[HK_REGISTRY_FULL_MAX]);

/* Number of all sensors, and of those of one detector; one more than the highest slot ever used. */
uint32_t hk_registry_count(const struct hk_registry *registry);
uint32_t hk_registry_count_of(const struct hk_registry *registry, uint32_t detector);
uint32_t hk_registry_slots(const struct hk_registry *registry);

#endif
