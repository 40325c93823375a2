/* A shard's part of a reload. */
#ifndef HK_SHARD_RELOAD_H
#define HK_SHARD_RELOAD_H

#include "daemon/scoring/shard.h"

/* Hands a step of a reload to the shard; the request stays until it has answered. Thread: main. */
void hk_shard_ask(struct hk_shard *shard, const struct hk_shard_reload_request *request);
/* Whether it has answered. Thread: any. */
bool hk_shard_has_answered(const struct hk_shard *shard);
/* What it has to say, once it has answered. Thread: main, or the shard's. */
const struct hk_review *hk_shard_review(const struct hk_shard *shard);
/* Goes on with a reload. True when anything was done. */
bool hk_shard_reload_turn(struct hk_shard *shard);
/* Whether it is reviewing sensors. Eviction gives way to that: a review proceeds only while no sensors are being evicted, and
 * would not end if each sweep found some. */
bool hk_shard_reviews(const struct hk_shard *shard);
/* What a reload that is not answered waits for, in words; and how far it is: as long as neither the number nor the slot changes,
 * nothing was done. */
const char *hk_shard_reload_why(const struct hk_shard *shard);
uint32_t hk_shard_reload_progress(const struct hk_shard *shard, uint32_t *slot);
/* Shutdown: frees a review's memory. */
void hk_shard_drop_reload(struct hk_shard *shard);

#endif
