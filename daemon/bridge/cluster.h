/* Cluster: of a daemon with [cluster], the thread that has a connection to the broker, opens another one when it is lost, and
 * does what the role says: publishes what the relay has (cluster_gateway.c), or reads partitions: those that it was told
 * (cluster_scorer.c), or those that the broker gives it (cluster_leases.c).
 *
 *     connecting -> connected -> (lost) -> failing -> connected ...
 *
 * Thread: main, but for what says otherwise. */
#ifndef HK_CLUSTER_H
#define HK_CLUSTER_H

#include "daemon/bridge/bridge_look.h"
#include "daemon/net/net.h"

struct hk_cluster;

/* What it has done, for whoever looks. */
struct hk_cluster_look {
  uint32_t role;              /* enum hk_cluster_role; HK_CLUSTER_NONE: there is no cluster */
  char name[HK_SECTION_TEXT]; /* of the cluster, */
  uint32_t of;                /* which has so many partitions */
  enum hk_bridge_state state;
  bool blocked;        /* the broker takes nothing for now */
  char broker[256];    /* HOST:PORT of the last that was tried */
  char why[256];       /* why it is failing or blocked, or was last; "": it never was */
  int64_t since;       /* ns, wall clock: of the state */
  uint64_t connected;  /* times */
  uint64_t messages;   /* gateway: that the broker has confirmed; scorer: that were read */
  uint64_t points;     /* in these */
  uint64_t bad;        /* scorer: messages that cannot be read */
  uint64_t refused;    /* scorer: points whose sensor was refused */
  uint64_t lost;       /* scorer: messages that the broker did not keep until they were read */
  uint32_t partitions; /* that it writes to, or reads */
  uint32_t members;    /* scorer with `state`: that share the partitions, */
  uint64_t moves;      /* and partitions that have come to it */
  uint32_t waiting;    /* gateway: messages that the broker has not confirmed */
};

/* A partition that it scores now. */
struct hk_cluster_part {
  uint32_t partition;
  uint64_t epoch; /* of the holding; 0: partitions are not leased */
  int64_t since;  /* ns, wall clock */
  uint64_t next;  /* offset of the message that it waits for */
  int64_t lag;    /* ns for which the message that it took last had waited, to a second; 0: none waits */
};

/* Begins what the configuration says, which may be nothing: then *out is NULL. Loops run. 0 or a negative errno. */
int hk_cluster_start(struct hk_cluster **out, struct hk_net *net);
/* The daemon ends: a scorer reads no more; a gateway goes on. NULL is fine, here and below. */
void hk_cluster_end(struct hk_cluster *cluster);
bool hk_cluster_ended(const struct hk_cluster *cluster); /* a scorer has nothing more to do with the loops */
/* False: it hangs. May be called again. */
bool hk_cluster_stop(struct hk_cluster *cluster);
void hk_cluster_free(struct hk_cluster *cluster); /* once stopped, and when all connections are closed */
/* Thread: any. */
void hk_cluster_look(struct hk_cluster *cluster, struct hk_cluster_look *out);
/* Room for HK_PARTITIONS_MAX; returns how many there are. Thread: any. */
uint32_t hk_cluster_parts(struct hk_cluster *cluster, struct hk_cluster_part *out);

#endif
