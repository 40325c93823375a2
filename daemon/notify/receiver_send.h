/* Sending of a receiver: tries, waits, gives up. Thread: the receiver's. */
#ifndef HK_NOTIFY_RECEIVER_SEND_H
#define HK_NOTIFY_RECEIVER_SEND_H

#include "daemon/notify/receiver_state.h"
#include "daemon/notify/send.h"

/* Returns once the message was taken or set aside: 0; -ECANCELED: the receiver is to end, or to take another rule. */
int hk_receiver_deliver(struct hk_receiver *r, struct hk_message *message);

#endif
