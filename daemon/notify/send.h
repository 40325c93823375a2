/* Send: one message to one receiver, by libcurl or libmosquitto; waits for the answer. Thread: the receiver's. */
#ifndef HK_NOTIFY_SEND_H
#define HK_NOTIFY_SEND_H

#include "daemon/config/notify_rule.h"
#include "daemon/notify/sending.h"

#include <stdatomic.h>

struct hk_sender;

/* quit: aborts an attempt once it is true; NULL: never. 0, -ENOMEM, or -ELIBACC: without
 * libcurl, which a configuration with receivers is not read without. */
int hk_sender_new(struct hk_sender **out, const atomic_bool *quit);
void hk_sender_free(struct hk_sender *sender); /* NULL is allowed */
/* Reads the rule's secret, sends, and waits up to its timeout. */
enum hk_sent hk_sender_send(struct hk_sender *sender, const struct hk_notify_rule *rule, const struct hk_notify_message *message,
                            struct hk_answer *answer);

#endif
