/* One turn of a shard. */
#ifndef HK_TURN_H
#define HK_TURN_H

#include "daemon/scoring/shard.h"

/* Sends batches out and takes them back. Returns whether anything was done. */
bool hk_shard_turn(struct hk_shard *shard);
/* Hands a delivery's batch to the device. Returns 0 or HK_AGAIN. A refused batch has been dealt with. */
int hk_shard_submit(struct hk_shard *shard, struct hk_delivery *delivery);
/* Drops all batches of the device. Returns how many were in flight. */
uint32_t hk_shard_drop_all(struct hk_shard *shard);
/* Continues with another device, which becomes the shard's. No slot is bound on it: the caller adds the sensors. */
void hk_shard_go_on(struct hk_shard *shard, struct hk_device *device);

#endif
