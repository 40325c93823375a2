/* Sending: attempts, waits, giving up. Thread: the receiver's. */
#ifndef HK_NOTIFY_RECEIVER_SEND_H
#define HK_NOTIFY_RECEIVER_SEND_H

#include "daemon/notify/receiver_state.h"
#include "daemon/notify/send.h"

/* Returns 0 once the message was delivered; -ETIMEDOUT or -EPERM once it was set aside, after the time to give up or a permanent
 * refusal; -ECANCELED: the receiver is to stop, or to take another rule. */
int hk_receiver_deliver(struct hk_receiver *r, struct hk_notify_message *message);

#endif
