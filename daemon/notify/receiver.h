/* Receiver: follows the event log for one [notify NAME].
 *
 * The receiver reads events after its place in batches of at most HK_BATCH that its rule chooses, makes messages of them and
 * sends these one after the other; then it advances its place. So each event is delivered at least once, and those of a sensor in
 * order; a message that is repeated after a crash has the same key. A failed attempt is repeated at growing intervals
 * (receiver_send.c). After `give_up`, or after a permanent refusal, the message is appended to `notify-NAME.undelivered` in the
 * state folder, as a line of JSON; receiver_aside.h has what is sent again of it.
 *
 * Thread: its own, between start and stop; the functions below: as in notify.h. */
#ifndef HK_NOTIFY_RECEIVER_H
#define HK_NOTIFY_RECEIVER_H

#include "daemon/notify/receiver_state.h"

/* receiver: zeroed except the owner's members and `given`, whose reference it takes over. 0 or a negative errno. */
int hk_receiver_start(struct hk_receiver *receiver);
/* machines: of the configuration, if the rule groups by machine; otherwise NULL. */
void hk_receiver_take(struct hk_receiver *receiver, const struct hk_notify_rule *rule, struct hk_sections *machines);
/* Aborts what it does, and waits up to so many s for the thread's end. False: the thread still runs. May be called again. */
bool hk_receiver_stop(struct hk_receiver *receiver, unsigned seconds);
void hk_receiver_close(struct hk_receiver *receiver);

#endif
