/* The slots of sensors: restoring, binding to a device, making of derived sensors, retiring and releasing (registry.h). */
#ifndef HK_SLOTS_H
#define HK_SLOTS_H

#include "daemon/sensors/registry.h"

/* At a start, before other uses of the registry, sensors of the previous run get their slots and handles again.
 * hk_registry_restore: detector is the name of the sensor's former one; if no detector has that name any more, it gets the one
 * that its name would get today. Takes the slot from an older sensor. Returns 0, also if it was restored before; or an enum
 * hankel_refusal: the slot is beyond max_sensors, no room, or no detector. hk_registry_restored: completes this, and releases the
 * sensors that were retired and not released. */
int hk_registry_restore(struct hk_registry *registry, uint32_t slot, uint8_t generation, struct hk_string name,
                        struct hk_string detector);
void hk_registry_restored(struct hk_registry *registry);
/* Before hk_registry_restored: gives a restored sensor without an owner this owner (0: none). The sensor may be missing. */
void hk_registry_restore_owner(struct hk_registry *registry, uint32_t slot, uint8_t generation, uint64_t owner);
/* Before hk_registry_restored: retires companions that are no longer needed: their sensor does not exist, is on another shard, or
 * its section has no such algorithm. */
void hk_registry_part_companions(struct hk_registry *registry);

/* Binds all sensors of a shard to a device's backend, on which no slot is bound; the former backend is not touched. If it has no
 * room for a sensor, `refused` is called with its slot; the sensor stays unbound, and is to be retired afterwards. NULL: there is
 * no device any more, and no room for new names. Thread: the shard's, or before there are any. */
void hk_registry_move(struct hk_registry *registry, uint32_t shard, struct hk_slot_binding *device,
                      void (*refused)(void *arg, uint32_t slot), void *arg);

/* Adds a sensor's missing companions. Returns 0 and their number, or HANKEL_FULL. Thread: the slot's shard's, or before there are
 * any. */
int hk_registry_complete(struct hk_registry *registry, uint32_t slot, uint32_t *added);
/* Finds the slot, on shard `shard`, of a machine's series (config.h), or makes the series. detector: that of its group. Returns
 * 0, or an enum hankel_refusal: no room, or another sensor has the name (HANKEL_RESERVED). Thread: that shard's. */
int hk_registry_series(struct hk_registry *registry, uint32_t shard, const char *name, size_t length, uint32_t detector,
                       uint32_t *slot);

/* Sets the generation of the first sensor of every slot. Before there are any. */
void hk_registry_generations(struct hk_registry *registry, uint8_t generation);

/* Removes a sensor's name and handle; it is no longer counted. It keeps its slot. Thread: its shard's. */
void hk_registry_retire(struct hk_registry *registry, uint32_t slot);
/* Frees the slot of a retired sensor, also in the backend. Nothing that waits, is in flight or is being published may name it,
 * and no sweep may be in flight. Thread: its shard's. */
void hk_registry_release(struct hk_registry *registry, uint32_t slot);

#endif
