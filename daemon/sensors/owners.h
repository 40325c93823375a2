/* Owners: how many sensors each peer has made, for the quota of one.
 *
 * An owner is a number, not 0 and the same after a restart, of whom a name came from first (net/admission.h). A table with a
 * keyed hash, so that no peer can prepare owners that meet; it has a place for each owner that has a sensor, and none for others.
 *
 * Thread: one at a time, but for hk_owners_count, which goes beside itself. */
#ifndef HK_OWNERS_H
#define HK_OWNERS_H

#include <stdint.h>

struct hk_owners_place {
  uint64_t owner; /* 0: free */
  uint32_t count;
};

/* Zeroed but for the key, which is random. */
struct hk_owners {
  uint64_t key;
  struct hk_owners_place *place;
  uint32_t room, n; /* room: 0 or a power of two, of which at most half are in use */
};

/* One sensor more of an owner. 0, or -ENOMEM: it was not counted. */
int hk_owners_add(struct hk_owners *owners, uint64_t owner);
/* One less, of those that were counted. */
void hk_owners_remove(struct hk_owners *owners, uint64_t owner);
uint32_t hk_owners_count(const struct hk_owners *owners, uint64_t owner);
void hk_owners_free(struct hk_owners *owners);

#endif
