/* Notify: sends alerts to external receivers, [notify NAME] of the configuration: webhooks, pagers, people, a broker, a log.
 *
 * Each receiver is a thread that follows the event log from a place of its own, which survives restarts (place.h). So no receiver
 * delays another, and nothing waits for a receiver: the log is the queue. For order, crashes and undelivered messages see
 * receiver.h.
 *
 * Thread: main, unless stated otherwise. */
#ifndef HK_NOTIFY_NOTIFY_H
#define HK_NOTIFY_NOTIFY_H

#include "daemon/config/config.h"
#include "daemon/durable/durable.h"
#include "daemon/notify/receiver_look.h"

struct hk_receivers;

/* Starts the receivers of a configuration; durable is open, and the journal was replayed. events: the event log, durable's or a
 * copy of a cluster's; then a receiver works only while this machine leads, and its place is in the shared log. 0 and *out, or
 * -ENOMEM. */
int hk_receivers_start(struct hk_receivers **out, struct hk_durable *durable, struct hk_eventlog *events,
                       const struct hk_config *config, struct hk_log *log);
/* Takes a new configuration: new receivers start, changed ones continue from the same place, removed ones abort without being
 * waited for. 0, or -ENOMEM: new sections have no receiver. */
int hk_receivers_adopt(struct hk_receivers *receivers, const struct hk_config *config);
/* Aborts what is being sent. False: a receiver hangs. NULL is allowed, here and below. */
bool hk_receivers_stop(struct hk_receivers *receivers);
void hk_receivers_free(struct hk_receivers *receivers); /* once stopped */
/* Number of receivers, at most HK_CONFIG_NOTIFY_MAX. Thread: any. */
uint32_t hk_receivers_look(struct hk_receivers *receivers, struct hk_receiver_look out[HK_CONFIG_NOTIFY_MAX]);

#endif
