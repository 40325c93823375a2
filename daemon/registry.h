/* Registry: names of sensors to slots, and back.
 *
 * A new name takes the detector of the first section whose glob matches it, and a free slot of the backend. Past capacity new
 * names are refused and the known ones keep working. A sensor that was evicted frees its slot; the next one in it has another
 * generation, so that an old handle does not reach it (generations are 8 bits: a handle kept over 256 evictions of one slot
 * could).
 *
 * The hash is keyed with random bytes, so that nobody can prepare names that collide. Thread: the loop's. */
#ifndef HK_REGISTRY_H
#define HK_REGISTRY_H

#include "cpu/backend.h"
#include "daemon/config.h"
#include "proto/message.h"

struct hk_registry;

/* config and backend must outlive the registry. 0 and *out, or a negative errno. */
int hk_registry_new(struct hk_registry **out, const struct hk_config *config, struct hk_backend *backend);
void hk_registry_free(struct hk_registry *registry); /* NULL is fine */

/* The slot of a name, which becomes a sensor when it is none yet. 0 and *slot, or an enum hankel_refusal: not a valid name, no
 * room, no detector matches. */
int hk_registry_take(struct hk_registry *registry, const char *name, size_t length, uint32_t *slot);
/* As above for a name that is known to be valid. */
int hk_registry_take_valid(struct hk_registry *registry, const char *name, size_t length, uint32_t *slot);

/* The slot of a handle. 0, or HK_UNKNOWN. */
enum { HK_UNKNOWN = 1 };
int hk_registry_resolve(const struct hk_registry *registry, uint32_t handle, uint32_t *slot);

/* Of a slot that holds a sensor. The name is valid until the sensor is evicted; it ends with 0. */
uint32_t hk_registry_handle(const struct hk_registry *registry, uint32_t slot);
struct hk_string hk_registry_name(const struct hk_registry *registry, uint32_t slot);

/* Forgets a sensor. No batch that waits or is in flight may name its slot. */
void hk_registry_evict(struct hk_registry *registry, uint32_t slot);

/* Sensors in all, and of one detector; one more than the highest slot ever used. */
uint32_t hk_registry_count(const struct hk_registry *registry);
uint32_t hk_registry_count_of(const struct hk_registry *registry, uint32_t detector);
uint32_t hk_registry_slots(const struct hk_registry *registry);

#endif
