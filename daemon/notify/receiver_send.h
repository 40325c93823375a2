/* Sending: attempts, waits, giving up. Thread: the receiver's. */
#ifndef HK_NOTIFY_RECEIVER_SEND_H
#define HK_NOTIFY_RECEIVER_SEND_H

#include "daemon/notify/receiver_state.h"
#include "daemon/notify/sending.h"

/* retry_after: ns that the last answer asks for; 0: none. Returns 0 once the message was delivered; -ETIMEDOUT or -EPERM after
 * the time to give up or a permanent refusal: the message is in the file; of what was set aside before, after one attempt;
 * -ECANCELED: the receiver is to stop, or to take another rule. */
int hk_receiver_deliver(struct hk_receiver *r, struct hk_notify_message *message, int64_t *retry_after);

#endif
