/* Notify: alerts to receivers outside, [notify NAME] of the configuration: webhooks, pagers, people, a broker, a log.
 *
 * Each receiver is a thread that follows the event log from a place of its own, which outlives the daemon (place.h), so none
 * holds up another, and nothing waits for any of them: the log is the queue. Order, crashes and what is given up: receiver.h.
 *
 * Thread: main, but for what says otherwise. */
#ifndef HK_RECEIVERS_H
#define HK_RECEIVERS_H

#include "daemon/config/config.h"
#include "daemon/durable/durable.h"
#include "daemon/notify/receiver_look.h"

struct hk_receivers;

/* Begins receivers of a configuration; durable and its log are open and all was replayed. 0 and *out, or -ENOMEM. */
int hk_receivers_start(struct hk_receivers **out, struct hk_durable *durable, const struct hk_config *config, struct hk_log *log);
/* Another configuration is in force: receivers that are new begin, those that are changed go on with the same place, and those
 * that are gone break off, for which nobody waits. 0, or -ENOMEM: what is new has no receiver. */
int hk_receivers_adopt(struct hk_receivers *receivers, const struct hk_config *config);
/* Breaks off what is being sent. False: one hangs. NULL is fine, here and below. */
bool hk_receivers_stop(struct hk_receivers *receivers);
void hk_receivers_free(struct hk_receivers *receivers); /* once stopped */
/* Receivers that there are, at most HK_CONFIG_NOTIFY_MAX. Thread: any. */
uint32_t hk_receivers_look(struct hk_receivers *receivers, struct hk_receiver_look out[HK_CONFIG_NOTIFY_MAX]);

#endif
