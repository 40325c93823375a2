/* Hands deliveries to the loops, and takes them back. */
#ifndef HK_HAND_OVER_H
#define HK_HAND_OVER_H

#include "daemon/scoring/shard.h"

/* Gives a delivery to the loops that need it, or to all of them. */
void hk_shard_hand_over(struct hk_shard *shard, struct hk_delivery *delivery, bool all);
/* Hands a delivery without results to all loops, behind all earlier ones, and beside those that hold it: when it comes back,
 * every loop has published the earlier ones. */
void hk_shard_send_after(struct hk_shard *shard, struct hk_delivery *delivery);
/* Takes back deliveries that loops have released. Returns whether there was any. */
bool hk_shard_take_back(struct hk_shard *shard);
/* Wakes all loops because points of any shard were processed, so that waiting connections check again. Thread: any. */
void hk_shard_settled(struct hk_shard *shard);

/* A loop releases a delivery. counters: the thread's own. */
void hk_delivery_release(struct hk_delivery *delivery, struct hk_counters *counters);

#endif
