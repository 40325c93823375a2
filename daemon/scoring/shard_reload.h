/* A shard's part of a reload. */
#ifndef HK_SHARD_RELOAD_H
#define HK_SHARD_RELOAD_H

#include "daemon/scoring/shard.h"

/* Hands a step of a reload to the shard; revision stays until it has answered. Thread: main. */
void hk_shard_ask(struct hk_shard *shard, const struct hk_revision *revision);
bool hk_shard_has_answered(const struct hk_shard *shard);
/* Goes on with a reload. True when anything was done. */
bool hk_shard_revise(struct hk_shard *shard);
/* Whether it looks through the sensors. Eviction gives way to that: a review goes on only while no sensors are being
 * forgotten, and where each sweep finds some it would not come to its end. */
bool hk_shard_reviews(const struct hk_shard *shard);

#endif
