/* Evicts sensors. */
#ifndef HK_EVICT_H
#define HK_EVICT_H

#include "daemon/scoring/shard.h"

/* evictions: zeroed. */
void hk_evictions_open(struct hk_evictions *evictions);

/* Clears the standing alerts of n slots of the registry, and publishes that. Returns their number. */
uint32_t hk_shard_clear(struct hk_shard *shard, const uint32_t *slots, uint32_t n);
/* Why sensors are evicted. */
enum hk_retire {
  HK_RETIRE_EVICTED, /* no peer feeds them, or no detector matches: their standing alerts are cleared after their last results */
  HK_RETIRE_BARRED,  /* likewise; and they are not bound on the device: their points are dropped */
  HK_RETIRE_MOVED    /* another machine has them: nothing is published about their alerts, which go on there */
};
/* Begins to evict sensors. slots: of the registry, n > 0; owned by the shard from now on, allocated with malloc. */
void hk_shard_retire(struct hk_shard *shard, uint32_t *slots, uint32_t n, enum hk_retire why);
/* Appends a sensor to be evicted, its companions, and the series of a machine whose last member it is, to a list of n with room
 * for HK_LEAVING_MOST more; returns the new length. Companions and series come before the sensor, since a new sensor of its name
 * gets new companions. */
#define HK_LEAVING_MOST (2 * HK_ALGORITHMS + 3)
uint32_t hk_shard_with_companions(const struct hk_shard *shard, uint32_t slot, uint32_t *list, uint32_t n);
/* Continues evictions. */
void hk_shard_retire_step(struct hk_shard *shard);
/* Appends to *why what the first eviction waits for. */
void hk_shard_retire_why(const struct hk_shard *shard, char *why, size_t size);
/* Whether slots are about to be freed. That waits until no sweep or export is in flight: none may be launched. */
bool hk_shard_forgets(const struct hk_shard *shard);
void hk_shard_retire_free(struct hk_shard *shard);

#endif
