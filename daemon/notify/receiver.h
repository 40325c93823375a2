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

#include "daemon/base/glob.h"
#include "daemon/durable/durable.h"
#include "daemon/durable/place.h"
#include "daemon/notify/message.h"
#include "daemon/notify/receiver_look.h"
#include "daemon/notify/told.h"

#include <pthread.h>

#define HK_BATCH 4096u
#define HK_MOMENTS 128u /* of the log that are remembered, for `after` */

struct hk_receiver {
  /* the owner's */
  struct hk_durable *durable;
  struct hk_log *log;
  pthread_t thread;
  bool running, gone; /* gone: no configuration names it any more */
  atomic_bool quit;   /* breaks off a try: the thread ends, or takes another rule */
  atomic_bool stop;

  pthread_mutex_t lock; /* of these: */
  pthread_cond_t woken;
  struct hk_notify_rule next; /* the rule to go by, */
  bool changed;               /* which the thread has not taken yet */
  struct hk_receiver_look look;

  /* the thread's */
  struct hk_notify_rule rule;
  struct hk_glob *glob;
  struct hk_sender *sender;
  struct hk_place place;
  struct hk_told told, ended; /* ended: alerts that the log, further on, says are over or taken note of */
  struct hk_notice *batch;    /* HK_BATCH of them, n */
  const struct hk_notice **chosen;
  uint32_t n;
  struct hk_buffer names; /* of the batch */
  struct hk_buffer texts; /* of its incidents: each as a record has it */
  struct {
    uint64_t shown;
    int64_t time;
  } moment[HK_MOMENTS];
  uint64_t moments;
  int64_t waiting_since; /* ns, monotonic: there is something to send; 0: nothing */
  int64_t repeated;      /* ns, monotonic */
  uint64_t again;
  double tokens; /* messages that may go out now */
  int64_t refilled;
};

/* Zeroed but for the owner's and next. 0 or a negative errno. */
int hk_receiver_start(struct hk_receiver *receiver);
void hk_receiver_take(struct hk_receiver *receiver, const struct hk_notify_rule *rule);
/* Breaks off what it does, and waits up to so many s for its end. False: it goes on. May be called again. */
bool hk_receiver_stop(struct hk_receiver *receiver, unsigned seconds);
void hk_receiver_close(struct hk_receiver *receiver);

#endif
