/* Receiver: follows the event log for one [notify NAME].
 *
 * What is behind its place is read in batches of at most HK_BATCH events that the rule chooses, made into messages and sent, one
 * behind the other; then the place moves on. So each event is delivered at least once and those of a sensor in order; what is
 * sent again after a crash has the same key. A try that fails is made again, later and later; after `give_up`, or where the
 * answer says never, the message goes into the file `notify-NAME.undelivered` of the state folder, a line of JSON each.
 *
 * Thread: its own, between start and stop; those of notify.h for what is declared here. */
#ifndef HK_NOTIFY_RECEIVER_H
#define HK_NOTIFY_RECEIVER_H

#include "daemon/notify/receiver_state.h"

/* Zeroed but for the owner's and what is given; the reference is its own from then on. 0 or a negative errno. */
int hk_receiver_start(struct hk_receiver *receiver);
/* machines: of the configuration, if the rule is about machines; NULL: it is not. */
void hk_receiver_take(struct hk_receiver *receiver, const struct hk_notify_rule *rule, struct hk_sections *machines);
/* Breaks off what it does, and waits up to so many s for its end. False: it goes on. May be called again. */
bool hk_receiver_stop(struct hk_receiver *receiver, unsigned seconds);
void hk_receiver_close(struct hk_receiver *receiver);

#endif
