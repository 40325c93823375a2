/* Latency of points in the daemon by stage, from the read of a socket to the write of the result to a socket.
 *
 * Times are measured for the oldest point of a batch and counted for all its points, none of which took longer. Only published
 * results are counted: points without a subscriber are not. Thread: each struct has one writer, its loop; any thread may read. */
#ifndef HK_LATENCY_H
#define HK_LATENCY_H

#include "daemon/base/histogram.h"

enum hk_leg {
  HK_LEG_GATHER,  /* decoded -> its chunk was handed to the shard */
  HK_LEG_WAIT,    /* -> its batch was handed to the device */
  HK_LEG_SCORE,   /* -> the results were taken back */
  HK_LEG_PUBLISH, /* -> the results were handed to the subscribers' sockets */
  HK_LEG_WHOLE,   /* the sum of these */
  HK_LEGS,
};

/* The name in the status: gather, wait, score, publish or whole. */
static inline const char *hk_leg_name(enum hk_leg leg)
{
  static const char *const names[HK_LEGS] = { [HK_LEG_GATHER] = "gather",
                                              [HK_LEG_WAIT] = "wait",
                                              [HK_LEG_SCORE] = "score",
                                              [HK_LEG_PUBLISH] = "publish",
                                              [HK_LEG_WHOLE] = "whole" };
  return names[leg];
}

struct hk_latency {
  struct hk_histogram leg[HK_LEGS];
};

/* When the oldest point of a batch passed each stage; ns, hk_now. */
struct hk_stamps {
  int64_t decoded, sealed, submitted, reaped;
};

/* Counts a batch of n points whose results were published at `now`. */
static inline void hk_latency_add(struct hk_latency *l, const struct hk_stamps *t, int64_t now, uint32_t n)
{
  hk_histogram_add(&l->leg[HK_LEG_GATHER], t->sealed - t->decoded, n);
  hk_histogram_add(&l->leg[HK_LEG_WAIT], t->submitted - t->sealed, n);
  hk_histogram_add(&l->leg[HK_LEG_SCORE], t->reaped - t->submitted, n);
  hk_histogram_add(&l->leg[HK_LEG_PUBLISH], now - t->reaped, n);
  hk_histogram_add(&l->leg[HK_LEG_WHOLE], now - t->decoded, n);
}

#endif
