/* The state of a receiver; receiver.h describes its work. Thread: its own, except the owner's members and those under the lock.
 */
#ifndef HK_NOTIFY_RECEIVER_STATE_H
#define HK_NOTIFY_RECEIVER_STATE_H

#include "daemon/base/buffer.h"
#include "daemon/base/glob.h"
#include "daemon/config/notify_rule.h"
#include "daemon/durable/durable.h"
#include "daemon/durable/place.h"
#include "daemon/notify/notice.h"
#include "daemon/notify/receiver_look.h"
#include "daemon/notify/told.h"
#include "daemon/sensors/detector_rules.h"

#include <pthread.h>

#define HK_BATCH 4096u
#define HK_MOMENTS 128u /* positions of the log that are remembered, for `after` */

struct hk_sender;

/* Events that are sent together. */
struct hk_receiver_batch {
  struct hk_notice *notice;        /* n of HK_BATCH */
  const struct hk_notice **chosen; /* the events of one message; HK_BATCH */
  uint32_t n;
  struct hk_buffer names; /* of the sensors */
  struct hk_buffer texts; /* texts of incidents, each in the form of a record */
};

/* Its thread; the owner starts and stops it. */
struct hk_receiver_thread {
  pthread_t id;
  bool running;
  atomic_bool quit; /* aborts an attempt: the thread ends, or takes another rule */
  atomic_bool stop;
};

/* Which alerts the receiver remembers. */
struct hk_receiver_alerts {
  struct hk_told told;         /* that stand, and were sent */
  struct hk_told ended;        /* that have ended or were acknowledged, as the log says further on */
  struct hk_told of_incidents; /* of a pager that is about incidents: those that stand, with incidents in place of positions */
};

/* An alert, or its end, whose message was set aside. */
struct hk_aside_entry {
  uint64_t key, position; /* hk_told_key; of its event in the log */
  int64_t due;            /* ns, monotonic: not before then */
  uint64_t refused_at;    /* permanently, with so many messages delivered, and 1; 0: it was not: it waits for another one */
  uint32_t message;       /* number of the message in which it was */
  uint32_t tries;
  float severity;
  bool over;  /* its end, and the receiver knows of the alert */
  bool fresh; /* the receiver has not heard of the alert */
};

/* What was set aside: receiver_aside.h. */
struct hk_receiver_aside {
  struct hk_aside_entry *entry; /* n, in no order */
  uint32_t n, room, message;    /* the latest message's number */
  bool changed;                 /* the file is older */
  bool now;                     /* what is sent was set aside: one attempt each */
  bool failed;                  /* such an attempt */
  bool refusing;                /* the message that is set aside was refused permanently */
  bool warned;                  /* the log says that messages cannot be delivered */
};

struct hk_receiver {
  /* the owner's */
  struct hk_durable *durable;
  struct hk_eventlog *events;
  struct hk_log *log;
  bool gone; /* no configuration names it any more */
  struct hk_receiver_thread thread;

  pthread_mutex_t lock; /* for given and look */
  pthread_cond_t woken;
  struct {
    struct hk_notify_rule rule;   /* the rule to use, */
    struct hk_sections *machines; /* and its machines; NULL: it does not group by machine */
    bool changed;                 /* the thread has not taken them yet */
  } given;
  struct hk_receiver_look look;

  /* the thread's */
  struct hk_notify_rule rule;
  struct hk_sections *machines;    /* NULL: none */
  struct hk_glob *glob, *sections; /* of sensors; of sections of incidents, NULL: all */
  struct hk_sender *sender;
  struct hk_place place;
  uint64_t shared; /* of a cluster: the position that the shared log has */
  bool remembers;  /* which alerts were sent up to the place */
  bool quiet;      /* quiet hours: alerts are held, except severe ones */
  bool late;       /* after quiet hours: held alerts are sent now */
  struct hk_receiver_alerts alerts;
  struct hk_receiver_batch batch;
  struct {
    struct {
      uint64_t shown;
      int64_t time;
    } moment[HK_MOMENTS];
    uint64_t n;      /* since the start */
    int64_t waiting; /* ns, monotonic: since when events wait; 0: none does */
  } past;
  struct {
    int64_t last; /* ns, monotonic */
    uint64_t times;
  } repeat;
  struct hk_receiver_aside aside;
  struct {
    double tokens; /* messages that may be sent now */
    int64_t refilled;
    unsigned short seed[3]; /* of the random part of waits */
  } pace;
};

#endif
