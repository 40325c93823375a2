/* Sends messages over a TCP or TLS stream without answers: syslog. Thread: the receiver's. */
#ifndef HK_NOTIFY_SEND_STREAM_H
#define HK_NOTIFY_SEND_STREAM_H

#include "daemon/config/notify_rule.h"
#include "daemon/notify/sending.h"

#include <stdatomic.h>

/* Connects to the rule's server (tcp://HOST:PORT or tls://HOST:PORT), sends the body, and closes. quit: as hk_sender_new.
 * HK_SENT: the server closed the connection in good order behind it, so it has read all of it; what it did with it cannot be
 * known. HK_SENT_LATER: also when it reset the connection or left it open, so a message may come twice. */
enum hk_sent hk_send_stream(const struct hk_notify_rule *rule, const struct hk_notify_message *message, const atomic_bool *quit,
                            struct hk_answer *answer);

/* Sets the trusted authorities and the client certificate of a libcurl transfer. */
void hk_send_trust(void *curl, const struct hk_notify_tls *tls);

#endif
