/* Where a point's time goes in the daemon, leg by leg, from when it was read off a socket until its result was handed to one.
 *
 * Times are taken a batch, of its oldest point, and count for all its points: no point took longer. Thread: each struct has one
 * writer, a shard's thread or a loop's; anyone may read. */
#ifndef HK_LATENCY_H
#define HK_LATENCY_H

#include "daemon/buffer.h"
#include "daemon/histogram.h"

enum hk_leg {
  HK_LEG_GATHER,  /* read -> its chunk was sealed */
  HK_LEG_WAIT,    /* -> its batch was handed to the backend */
  HK_LEG_SCORE,   /* -> the results were taken back */
  HK_LEG_PUBLISH, /* -> they were handed to the subscribers' sockets, by each loop that has any */
  HK_LEG_WHOLE,   /* all of it */
  HK_LEGS,
};

struct hk_latency {
  struct hk_histogram leg[HK_LEGS];
};

/* Of the oldest point of a batch; ns, hk_now. */
struct hk_stamps {
  int64_t read, sealed, submitted, reaped;
};

#endif
