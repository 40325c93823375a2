/* Offers and renews the leases of partitions, where the kind of broker wants that (hk_broker_engine_kind.renew), over a
 * connection that is used for nothing else: a broker without memory or disk stops reading from connections that publish, and
 * those that wait for leases, or read points, must go on. Thread: the scorer's. */
#ifndef HK_CLUSTER_RENEWAL_H
#define HK_CLUSTER_RENEWAL_H

#include "daemon/bridge/cluster_internal.h"

/* All zero at first. */
struct hk_renewal {
  struct hk_broker_engine *engine; /* NULL: none yet, or it was lost */
  bool blocked;                    /* the broker accepts nothing now */
  int64_t next;                    /* ns, hk_now: when leases are to be renewed, or to be connected again */
  bool offered[HK_PARTITIONS_MAX]; /* by partition: its lease was offered or renewed over this connection */
};

/* A lease is waited for: it is to be offered. */
void hk_renewal_wait(struct hk_renewal *renewal, uint32_t partition);
/* Connects if it is time, and takes what the broker sends; to call in each turn, with speak every second. Returns whether each
 * lease that is held is to be renewed now. */
bool hk_renewal_due(struct hk_cluster *c, struct hk_renewal *renewal, bool speak, int64_t now);
/* For each lease that is held or waited for, in each turn: renews it, if so, or offers it if it is to be offered, and is so again
 * in the next turn if it cannot be now. */
void hk_renewal_turn(struct hk_cluster *c, struct hk_renewal *renewal, uint32_t partition, bool renew);
void hk_renewal_close(struct hk_cluster *c, struct hk_renewal *renewal);

#endif
