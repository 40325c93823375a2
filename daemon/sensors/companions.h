/* Companions: sensors that get the points of another one (registry.h). */
#ifndef HK_COMPANIONS_H
#define HK_COMPANIONS_H

#include "daemon/sensors/registry.h"

/* Thread of the following: the slot's shard's, or before there are any. */

/* The slot after this one in the ring of a sensor and its companions; itself if it has none. */
uint32_t hk_registry_next_companion(const struct hk_registry *registry, uint32_t slot);
/* The sensor whose points a companion gets; the slot itself if it is no companion. */
uint32_t hk_registry_primary(const struct hk_registry *registry, uint32_t slot);
/* The name that all series of a sensor or machine share: that of the sensor which this one accompanies, or of its machine's first
 * series (press#3 of press.novelty#3). It lies in the registry or in room. For any thread between hk_registry_read and
 * hk_registry_read_end. */
struct hk_string hk_registry_shared_name(const struct hk_registry *registry, uint32_t slot, char room[HK_NAME_MAX]);
/* Likewise of any series; of one that is not in the registry, by the names that the configuration gives to those that are
 * derived.
 */
struct hk_string hk_registry_shared_name_of(struct hk_registry *registry, struct hk_string name, char room[HK_NAME_MAX]);
/* Writes the name of the series of the machine ([group NAME]) that a sensor, or a machine's series, belongs to: press#3. Returns
 * its length; 0: it belongs to none. Thread: as above. */
size_t hk_registry_machine_of(const struct hk_registry *registry, struct hk_string name, char out[HK_NAME_MAX]);
/* Whether the sensor of a slot is derived. */
bool hk_registry_derived(const struct hk_registry *registry, uint32_t slot);
/* Whether a companion is one that its sensor would have by these sections. */
bool hk_registry_accompanies(const struct hk_registry *registry, const struct hk_sections *sections, uint32_t slot);

#endif
