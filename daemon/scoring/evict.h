/* Sensors are forgotten. */
#ifndef HK_EVICT_H
#define HK_EVICT_H

#include "daemon/scoring/shard.h"

/* evictions: zeroed. */
void hk_evictions_open(struct hk_evictions *evictions);

/* Clears the alerts that stand in n slots of the registry, and tells subscribers. Returns how many there were. */
uint32_t hk_shard_clear(struct hk_shard *shard, const uint32_t *slots, uint32_t n);
/* Begins to forget sensors; alerts that stand there are cleared behind their last results. slots: of the registry, n > 0; the
 * shard's from now on, allocated with malloc. barred: they are not bound on the device, and points of theirs are dropped. */
void hk_shard_retire(struct hk_shard *shard, uint32_t *slots, uint32_t n, bool barred);
/* Puts a sensor that is to go, its companions, and the series of a machine whose last member it is, on a list of n with room for
 * HK_LEAVING_MOST more; returns how many there are then. They go before it does: who comes again under its name gets companions
 * of his own. */
#define HK_LEAVING_MOST (2 * HK_ALGORITHMS + 2)
uint32_t hk_shard_with_companions(const struct hk_shard *shard, uint32_t slot, uint32_t *list, uint32_t n);
/* Goes on with that. */
void hk_shard_retire_step(struct hk_shard *shard);
/* Appends to *why what the first of them waits for. */
void hk_shard_retire_why(const struct hk_shard *shard, char *why, size_t size);
/* Whether slots are about to be freed, which waits until no sweep or export is on its way: none is to be launched. */
bool hk_shard_forgets(const struct hk_shard *shard);
void hk_shard_retire_free(struct hk_shard *shard);

#endif
