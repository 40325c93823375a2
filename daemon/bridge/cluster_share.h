/* The share of a scorer: how many partitions it may hold. That is partitions by scorers, rounded up; or down while any scorer
 * has fewer than that, so that all get the same number, or one more. A broker that keeps shares even by itself
 * (hk_broker_engine_kind.count is NULL) offers a scorer just what it is to hold: then the share is all partitions.
 * A scorer that could not read a partition's state is not counted for a while, so that others may hold what it cannot: they would
 * leave that partition to it for ever. It keeps what it holds.
 * Thread: the scorer's. */
#ifndef HK_CLUSTER_SHARE_H
#define HK_CLUSTER_SHARE_H

#include "daemon/bridge/cluster_internal.h"

/* All zero at first: nothing may be held. */
struct hk_scorer_share {
  uint32_t most, now; /* partitions by scorers, rounded up; and what it may hold now. Both 0 while it drains */
  int64_t patience;   /* ns, hk_now: until when more than `now`, and not more than `most`, are kept; 0: no more are held */
  int64_t unable;     /* ns, hk_now: until when it is not counted */
  int64_t pause;      /* ns: for how long it was not, the last time; 0: it has taken a partition since */
};

/* Asks the broker for the number of scorers, and computes the share; to call every second. held: partitions that this one has.
 * Returns 0, or the engine's error. */
int hk_share_count(struct hk_cluster *c, struct hk_scorer_share *share, uint32_t held);
/* It could not read the state of a partition. Returns for how long it is not counted from now on, ns; 0: it was not before. */
int64_t hk_share_unable(struct hk_scorer_share *share, int64_t now);
/* It could. */
void hk_share_able(struct hk_scorer_share *share);
/* Whether so many held partitions are too many, and have been for long enough. */
bool hk_share_exceeded(struct hk_scorer_share *share, uint32_t held, int64_t now);

#endif
