/* Finds names, or makes them sensors. Thread: any. */
#ifndef HK_REGISTER_H
#define HK_REGISTER_H

#include "daemon/sensors/registry.h"

/* Finds the slot of a name; a new name becomes a sensor. Returns 0 and *slot, or an enum hankel_refusal: invalid name, no room,
 * no matching detector, or the owner's limit is reached. A new sensor counts for its owner; owner 0 has no limit, and
 * hk_registry_take gives its sensors to the next owner. */
int hk_registry_take(struct hk_registry *registry, const char *name, size_t length, uint32_t *slot);
/* As hk_registry_take, for a name that is known to be valid. */
int hk_registry_take_valid(struct hk_registry *registry, uint64_t owner, const char *name, size_t length, uint32_t *slot);

/* As hk_registry_take, for n names, a few hundred of them under one lock: slots[i] is valid if refusals[i] is 0. */
void hk_registry_take_all(struct hk_registry *registry, uint64_t owner, uint32_t n, const struct hk_string *names,
                          uint32_t *slots, uint32_t *refusals);

#endif
