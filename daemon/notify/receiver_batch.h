/* Chooses events of the log for a receiver's batch. Thread: the receiver's. */
#ifndef HK_NOTIFY_RECEIVER_BATCH_H
#define HK_NOTIFY_RECEIVER_BATCH_H

#include "daemon/notify/receiver_state.h"

/* Restores from the log which alerts were sent up to the receiver's place. */
void hk_receiver_remember(struct hk_receiver *r);
/* Fills the batch with the rule's events after the place, up to a position; sets place.until. */
void hk_receiver_choose(struct hk_receiver *r, uint64_t last);
/* Fills the batch with held alerts that still stand; returns the position from which there are more. */
uint64_t hk_receiver_choose_held(struct hk_receiver *r);
/* Fills the batch with n standing alerts, by their positions; returns how many the log still has. n: at most HK_BATCH. */
uint32_t hk_receiver_again(struct hk_receiver *r, const uint64_t *position, uint32_t n);

#endif
