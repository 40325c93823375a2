/* Deliveries to the loops, and back. */
#ifndef HK_HAND_OVER_H
#define HK_HAND_OVER_H

#include "daemon/scoring/shard.h"

/* Gives a delivery to the loops that have a use for it, or to all of them. */
void hk_shard_hand_over(struct hk_shard *shard, struct hk_delivery *delivery, bool all);
/* Takes back deliveries that loops have released. True when there was any. */
bool hk_shard_take_back(struct hk_shard *shard);
/* Tells all loops that points were dealt with, whatever shard's: connections that wait have reason to look again. Thread: any. */
void hk_shard_settled(struct hk_shard *shard);

/* A loop has no use for it any more. counters: the thread's own. */
void hk_delivery_release(struct hk_delivery *delivery, struct hk_counters *counters);

#endif
