/* Renews the leases of partitions, where the kind of broker wants that (hk_broker_engine_kind.renew), over a connection that is
 * used for nothing else: a broker without memory or disk stops reading from connections that publish, and those that read points
 * must go on. Thread: the scorer's. */
#ifndef HK_CLUSTER_RENEWAL_H
#define HK_CLUSTER_RENEWAL_H

#include "daemon/bridge/cluster_internal.h"

/* All zero at first. */
struct hk_renewal {
  struct hk_broker_engine *engine; /* NULL: none yet, or it was lost */
  bool blocked;                    /* the broker accepts nothing now */
  int64_t next;                    /* ns, hk_now: when leases are to be renewed, or to be connected again */
};

/* Connects if it is time, and takes what the broker sends; to call every second. held: number of leases; without any the
 * connection is closed. Returns whether each is to be renewed now. */
bool hk_renewal_due(struct hk_cluster *c, struct hk_renewal *renewal, uint32_t held, int64_t now);
/* Renews one. A failure counts at the next call of hk_renewal_due. */
void hk_renewal_renew(struct hk_cluster *c, struct hk_renewal *renewal, uint32_t partition);
void hk_renewal_close(struct hk_cluster *c, struct hk_renewal *renewal);

#endif
