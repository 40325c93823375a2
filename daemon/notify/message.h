/* Message: formats events for each type of receiver. Thread: any. */
#ifndef HK_NOTIFY_MESSAGE_H
#define HK_NOTIFY_MESSAGE_H

#include "daemon/config/notify_rule.h"
#include "daemon/notify/notice.h"
#include "daemon/notify/sending.h"

/* 0 or -ENOMEM. message: zeroed; freed with hk_message_free. */
int hk_message_make(struct hk_notify_message *message, const struct hk_notify_rule *rule, const struct hk_told_of *what);
void hk_message_free(struct hk_notify_message *message);

#endif
