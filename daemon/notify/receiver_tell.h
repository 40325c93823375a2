/* Makes messages of a receiver's batch, and sends them. Thread: the receiver's. */
#ifndef HK_NOTIFY_RECEIVER_TELL_H
#define HK_NOTIFY_RECEIVER_TELL_H

#include "daemon/notify/receiver_state.h"

/* again: the alerts still stand, and were sent before. 0; -ECANCELED: the receiver is to stop, or to take another rule. */
int hk_receiver_tell_batch(struct hk_receiver *r, bool again);

#endif
