/* What a machine shares of its results with others (cluster_scores.c): messages made of what an inner connection, which
 * subscribes to all results, receives. They are published in rounds, and kept until the broker has confirmed all of a round; what
 * comes meanwhile waits for the next one. No two messages of a round have results of one sensor: one that was lost between
 * brokers and is published again comes after none with later results, for which readers would leave it out. Thread: the
 * cluster's. */
#ifndef HK_CLUSTER_SCORES_OUT_H
#define HK_CLUSTER_SCORES_OUT_H

#include "daemon/base/buffer.h"
#include "daemon/bridge/cluster_internal.h"
#include "daemon/bridge/confirms.h"
#include "proto/wire/frame.h"

#define HK_SCORES_WINDOW 256u /* maximum number of messages of a round */

/* A message that the broker has not confirmed. */
struct hk_scores_message {
  uint8_t *data;
  size_t size;
};

/* A result that is in no message yet. */
struct hk_scores_result {
  int64_t time; /* ns */
  double value;
  uint64_t sequence;     /* if it is `sequenced` */
  uint32_t handle, name; /* of the sensor: where its name is kept */
  float score;
  uint8_t state; /* enum hankel_state */
  bool sequenced;
};

/* Results that the broker is to have confirmed: those that were published to the inner connection before the mark was made. */
struct hk_scores_mark {
  uint64_t number;  /* 0: none */
  bool heard;       /* the inner connection has brought them, or has ended */
  uint32_t waiting; /* then: how many of the waiting results they are, the first ones */
  uint64_t round;   /* number of the last round that may have some of them */
};

/* A sensor of this machine, by slot. */
struct hk_scores_place {
  uint32_t message, number, of; /* the last message that it was put into, and its number and name there */
  uint32_t kept, handle, name;  /* its name is kept, if `kept` is that of hk_scores_out, for this handle, at this place */
};

/* What this machine shares. */
struct hk_scores_out {
  int epoll;     /* the caller's: is notified when the inner connection is readable */
  int fd;        /* the inner connection; -1: none */
  int64_t retry; /* ns: when to open it again */
  struct hk_inbox inbox;
  struct hk_scores_result *waiting;
  uint32_t n_waiting, capacity;
  struct hk_buffer names;                            /* of their sensors, each with its length before it */
  uint32_t kept;                                     /* how often these were forgotten, from 1 */
  struct hk_scores_message window[HK_SCORES_WINDOW]; /* the round: n from `first` on, as a ring */
  uint32_t first, n;
  uint64_t round; /* its number */
  struct hk_confirms confirms;
  struct hk_scores_mark mark;
  uint64_t writer;               /* number of this process */
  struct hk_scores_place *place; /* sensors of them */
  uint32_t sensors;
  uint32_t message; /* number of the message that is being made, from 1 */
  uint8_t *room;    /* HK_SCORE_MESSAGE_BYTES */
  uint64_t results, lost;
};

/* o: zeroed. Returns 0 or a negative errno; to finish in either case. */
int hk_scores_out_begin(struct hk_scores_out *o, uint32_t max_sensors, int epoll);
void hk_scores_out_finish(struct hk_scores_out *o); /* closed */
/* Subscribes to all results of this machine; on failure it is closed, and o->retry says when to try again. */
void hk_scores_out_open(struct hk_cluster *c, struct hk_scores_out *o);
void hk_scores_out_close(struct hk_scores_out *o);
/* Takes the results that have come, as far as there is room. False: the inner connection has ended. */
bool hk_scores_out_hear(struct hk_cluster *c, struct hk_scores_out *o);
/* Whether the results of one more frame have room. */
bool hk_scores_out_room(const struct hk_scores_out *o);
/* Publishes messages that are not on their way yet, as far as the broker accepts them, or a new round if the last one is
 * confirmed. Returns 0 or a negative errno. */
int hk_scores_out_publish(struct hk_cluster *c, struct hk_scores_out *o);
/* The broker has confirmed some. */
void hk_scores_out_confirm(struct hk_scores_out *o, const struct hk_broker_engine_event *event);
/* Makes a mark, unless there is one; none if the inner connection cannot take it now: to be tried again. */
void hk_scores_out_mark(struct hk_scores_out *o, uint64_t number);
/* The number of the mark, if the broker has confirmed all results before it, or they are given up; the mark is gone then. 0: not
 * yet. */
uint64_t hk_scores_out_marked(struct hk_scores_out *o);
/* No machine listens any more: forgets the results that are not on their way. */
void hk_scores_out_discard(struct hk_scores_out *o);

#endif
