/* Mail: what the machines of a cluster send each other outside the logs, by letters over the broker: no machine needs the address
 * of another, and a machine trusts only the broker.
 *
 *     every 2 s, and when partitions have moved: a notice to all, with what this machine has -> their tables of machines
 *     hk_mail_ask -> a question to a machine -> hk_mail_answers there -> its answer -> `ready` is called
 *
 * A machine answers from its own data, and asks no other machine for it, so no question circulates. A question that is not
 * answered within HK_MAIL_WAIT, or whose machine has no mailbox, ends with a reason.
 *
 * Thread: any, unless stated otherwise. */
#ifndef HK_CLUSTER_MAIL_H
#define HK_CLUSTER_MAIL_H

#include "daemon/base/buffer.h"
#include "daemon/bridge/mail_machine.h"

#include <stdatomic.h>

#define HK_MAIL_WAIT 5 /* s for an answer */

/* What this machine sends to others: of struct hk_net. Thread: the mail's. */
struct hk_mail_answers {
  void *arg;
  /* Appends what this machine has, as an object of JSON; others look for `held` in it, as in the status. */
  void (*notice)(void *arg, struct hk_buffer *out);
  uint64_t (*version)(void *arg); /* a change: others are to be notified at once */
  /* Takes up a question. ready(ready_arg): there may be a result; called on any thread until `drop`. NULL: no memory. */
  void *(*begin)(void *arg, const char *question, size_t size, void (*ready)(void *arg), void *ready_arg);
  /* The status of the answer, as of HTTP, which is appended: JSON with 200, else a reason in words; 0: not yet. */
  unsigned (*result)(void *job, struct hk_buffer *out);
  void (*drop)(void *job); /* the question is not needed any more; to call after a result, too */
};

struct hk_mail_question;

/* Asks a machine. ready(arg): the answer is there; it may be called once more after hk_mail_forget. NULL: no memory. */
struct hk_mail_question *hk_mail_ask(struct hk_cluster *mail, const char *machine, const struct hk_buffer *question,
                                     void (*ready)(void *arg), void *arg);
/* Returns 0: not yet; or the status of HTTP, and appends the answer: JSON with 200, else the reason in words. */
unsigned hk_mail_answered(struct hk_mail_question *question, struct hk_buffer *out);
void hk_mail_forget(struct hk_mail_question *question); /* NULL is allowed */

/* The machine that reports to have a partition. False: none does. mail: NULL is allowed, here and below. */
bool hk_mail_holder(struct hk_cluster *mail, uint32_t partition, struct hk_holder *out);
/* Copies the table, this machine with it, in the order of names; returns the number. */
uint32_t hk_mail_machines(struct hk_cluster *mail, bool reports, struct hk_mail_machine out[HK_MAIL_MACHINES]);

#endif
