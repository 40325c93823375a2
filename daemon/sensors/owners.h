/* Owners: the number of sensors that each peer has created, for its quota.
 *
 * An owner is a number, not 0 and the same after a restart, of the peer that sent a name first (net/admission.h). The table has a
 * keyed hash, so that no peer can prepare colliding owners, and a place for each owner with sensors.
 *
 * Thread: one at a time, except hk_owners_count, which may run beside itself. */
#ifndef HK_OWNERS_H
#define HK_OWNERS_H

#include <stdint.h>

struct hk_owners_place {
  uint64_t owner; /* 0: free */
  uint32_t count;
};

/* Zeroed except the key, which is random. */
struct hk_owners {
  uint64_t key;
  struct hk_owners_place *place;
  uint32_t room, n; /* room: 0 or a power of two, of which at most half are in use */
};

/* Adds a sensor of an owner. Returns 0, or -ENOMEM: it was not counted. */
int hk_owners_add(struct hk_owners *owners, uint64_t owner);
/* Removes one counted sensor. */
void hk_owners_remove(struct hk_owners *owners, uint64_t owner);
uint32_t hk_owners_count(const struct hk_owners *owners, uint64_t owner);
void hk_owners_free(struct hk_owners *owners);

#endif
