/* What a receiver is told of: events of the log into its batch. Thread: the receiver's. */
#ifndef HK_NOTIFY_RECEIVER_BATCH_H
#define HK_NOTIFY_RECEIVER_BATCH_H

#include "daemon/notify/receiver_state.h"

/* Makes out from the log what was told up to the receiver's place. */
void hk_receiver_remember(struct hk_receiver *r);
/* Fills the batch with what the rule chooses behind the place, up to a position; sets place.until. */
void hk_receiver_choose(struct hk_receiver *r, uint64_t last);
/* Fills it with what was held back and stands; returns the position from which on there is more. */
uint64_t hk_receiver_choose_held(struct hk_receiver *r);
/* Fills it with n alerts that stand, by their positions; returns how many the log has still. n: at most HK_BATCH. */
uint32_t hk_receiver_again(struct hk_receiver *r, const uint64_t *position, uint32_t n);

#endif
