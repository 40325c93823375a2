/* Sending of messages that go over a plain stream, or one with TLS, and get no answer: syslog. Thread: the receiver's. */
#ifndef HK_NOTIFY_SEND_STREAM_H
#define HK_NOTIFY_SEND_STREAM_H

#include "daemon/notify/send.h"

/* Connects to the rule's server (tcp://HOST:PORT or tls://HOST:PORT), sends the body, and closes. quit: as hk_sender_new.
 * HK_SENT: the kernel has taken all of it, which is all that can be known. */
enum hk_sent hk_send_stream(const struct hk_notify_rule *rule, const struct hk_message *message, const atomic_bool *quit,
                            struct hk_answer *answer);

/* Whom a transfer of libcurl trusts, and who it says it is. */
void hk_send_trust(void *curl, const struct hk_notify_tls *tls);

#endif
