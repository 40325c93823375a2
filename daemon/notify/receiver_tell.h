/* A receiver's batch into messages, which are sent. Thread: the receiver's. */
#ifndef HK_NOTIFY_RECEIVER_TELL_H
#define HK_NOTIFY_RECEIVER_TELL_H

#include "daemon/notify/receiver_state.h"

/* again: they stand, and were told before. 0; -ECANCELED: the receiver is to end, or to take another rule. */
int hk_receiver_tell_batch(struct hk_receiver *r, bool again);

#endif
