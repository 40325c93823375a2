/* Aside: the alerts and ends whose message was set aside, so that the receiver hears of them once it is back. Each remembers the
 * message that it was in: what is left of that message is sent again on its own, one attempt at a time, at pauses that grow up to
 * a minute. New events go first. They are in the file `notify-NAME.aside` of the state folder.
 *
 * An entry goes when a message about its alert is delivered, when its alert ends (unless the receiver knows of the alert: then it
 * hears of the end) or is acknowledged, or when it is lost: then it is counted and logged. Thread: the receiver's. */
#ifndef HK_NOTIFY_RECEIVER_ASIDE_H
#define HK_NOTIFY_RECEIVER_ASIDE_H

#include "daemon/notify/receiver_state.h"

/* Reads the file, after hk_receiver_remember. Uses the batch. */
void hk_aside_read(struct hk_receiver *r);
/* A message about r->batch.chosen[0..n-1] was set aside. */
void hk_aside_add(struct hk_receiver *r, uint32_t n);
/* A message about these was delivered. */
void hk_aside_delivered(struct hk_receiver *r, uint32_t n);
/* Another attempt to send these failed; refused: permanently. */
void hk_aside_failed(struct hk_receiver *r, uint32_t n, bool refused, int64_t retry_after);
/* The receiver has another rule: attempts begin anew. */
void hk_aside_renew(struct hk_receiver *r);
/* Drops what has ended or was acknowledged. The receiver must remember all that was sent. */
void hk_aside_prune(struct hk_receiver *r);
/* Chooses what is left of the message that has waited the longest, as far as it may be sent now: its positions, at most HK_BATCH,
 * in order. Counts as an attempt. Returns their number. now: hk_now. */
uint32_t hk_aside_choose(struct hk_receiver *r, int64_t now, uint64_t *position);
/* Drops the entries of these positions, in order. deleted: only of those that the event log has deleted, which are lost. */
void hk_aside_drop(struct hk_receiver *r, const uint64_t *position, uint32_t n, bool deleted);

#endif
