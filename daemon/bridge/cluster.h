/* Cluster: the thread of a daemon with [cluster] that has a connection to the broker, reconnects when it is lost, and does the
 * work of its role: publishes the relay's messages (cluster_gateway.c), or reads partitions: the configured ones
 * (cluster_scorer.c), or those that the broker leases to it (cluster_leases.c).
 *
 *     connecting -> connected -> (lost) -> failing -> connected ...
 *
 * Thread: main, unless stated otherwise. */
#ifndef HK_CLUSTER_H
#define HK_CLUSTER_H

#include "daemon/bridge/bridge_look.h"
#include "daemon/durable/event_holders.h"
#include "daemon/net/net.h"

struct hk_cluster;

/* State and counters of a cluster, for other threads. */
struct hk_cluster_look {
  uint32_t role;              /* enum hk_cluster_role; HK_CLUSTER_NONE: there is no cluster */
  char name[HK_SECTION_TEXT]; /* of the cluster */
  char machine[256];          /* the name of this machine, HOST:PORT */
  uint32_t of;                /* number of partitions of the cluster */
  enum hk_bridge_state state;
  bool blocked;        /* the broker accepts no messages at present */
  char broker[256];    /* HOST:PORT of the last attempt */
  char why[256];       /* reason of the present or last failure or block; "": none yet */
  int64_t since;       /* ns, wall clock: of the state */
  uint64_t connected;  /* number of connections so far */
  uint64_t messages;   /* gateway: confirmed by the broker; scorer: read */
  uint64_t points;     /* points of these messages; scores: results in them */
  uint64_t bad;        /* scorer: messages that cannot be read */
  uint64_t refused;    /* scorer: points whose sensor was refused */
  uint64_t lost;       /* scorer: messages that the broker removed before they were read; scores: results that were not shared */
  uint32_t partitions; /* number of partitions that it writes to, or reads */
  uint32_t members;    /* scorer with `state`: number of scorers that share the partitions; scores: other machines that listen */
  uint64_t moves;      /* scorer with `state`: number of partitions that have come to this one */
  uint32_t waiting;    /* gateway: messages that the broker has not confirmed; events: likewise */
  bool leads;          /* events: this machine does */
  uint64_t shown;      /* scores: results of other machines that were shown here, */
  uint64_t repeated;   /* and those that were known already */
  uint64_t missed;     /* scores: messages that the broker no longer had when they were read */
  bool draining;       /* scorer with `state`: it gives its partitions away, and takes none */
};

/* A partition that it scores now. */
struct hk_cluster_part {
  uint32_t partition;
  uint64_t epoch; /* of the holding; 0: partitions are not leased */
  int64_t since;  /* ns, wall clock */
  uint64_t next;  /* offset of the next expected message */
  int64_t lag;    /* ns for which the last taken message had waited, to a second; 0: no message waits */
  uint8_t needs;  /* 0; or the version of message `next`: later than this hankeld reads, so the partition waits */
};

/* The last request to move a partition to this machine. */
struct hk_cluster_move {
  const char *state; /* "waits", "done", "overruled" by one for another machine, "over": not done in its time */
  int64_t ago;       /* ns */
  char why[256];     /* what stands in the way, or did; "": nothing */
};

/* Starts the cluster of the configuration; *out is NULL if there is none. Loops run. Returns 0 or a negative errno. */
int hk_cluster_start(struct hk_cluster **out, struct hk_net *net);
/* Likewise, with role = all, the thread that publishes the points of peers; that of hk_cluster_start scores then. */
int hk_cluster_start_publishing(struct hk_cluster **out, struct hk_net *net);
/* Likewise, the thread that publishes and reads the shared log of events, if the machine has a copy of it (event_copy.h). */
int hk_cluster_start_events(struct hk_cluster **out, struct hk_net *net);
/* Likewise, the thread that shares scores, if the machine has such a copy. */
int hk_cluster_start_scores(struct hk_cluster **out, struct hk_net *net);
/* Likewise, the thread of its letters (cluster_mail.h), if the kind of broker has mailboxes. */
int hk_cluster_start_mail(struct hk_cluster **out, struct hk_net *net);
/* The daemon ends: a scorer stops reading; a gateway continues. NULL is fine, here and below. */
void hk_cluster_end(struct hk_cluster *cluster);
bool hk_cluster_ended(const struct hk_cluster *cluster); /* whether a scorer no longer uses the loops */
/* Stops the thread. False: it hangs. May be called again. */
bool hk_cluster_stop(struct hk_cluster *cluster);
void hk_cluster_free(struct hk_cluster *cluster); /* once stopped, and when all connections are closed */
/* From now on gives its partitions away, each after a snapshot, and takes none; or, with false, takes its share again. Returns 0,
 * or -ENOTSUP: it has no leases. Thread: any, also of the next one. */
int hk_cluster_drain(struct hk_cluster *cluster, bool drains);
/* Has the partition moved to this machine: its holder gives it up; asks for it until this machine has it, or 90 s have passed
 * (cluster_moves.h). Returns 0; -ENOTSUP: it has no leases; -EPERM: the broker
 * alone decides; -EALREADY: it has this one; -EINVAL: there is no such partition; -EBUSY: it is draining; -ENOMEM. */
int hk_cluster_want(struct hk_cluster *cluster, uint32_t partition);
/* What became of the last such request for a partition; false: there was none. Thread: any. */
bool hk_cluster_move(struct hk_cluster *cluster, uint32_t partition, struct hk_cluster_move *out);
/* The machine that has a partition, HOST:PORT, by the shared log. False: none is known. Thread: any. */
bool hk_cluster_machine(struct hk_cluster *cluster, uint32_t partition, struct hk_holder *out);
/* The partition of a sensor of such a name, fed or derived, by the groups and fields of the start. UINT32_MAX: there is no
 * cluster. Thread: any.
 */
uint32_t hk_cluster_partition(const struct hk_cluster *cluster, const char *name);
/* The name of this machine, HOST:PORT; "" without a cluster. Thread: any. */
const char *hk_cluster_name(const struct hk_cluster *cluster);
/* Whether the holder is this machine. Thread: any. */
bool hk_cluster_is_us(const struct hk_cluster *cluster, const struct hk_holder *holder);
/* Copies its state and counters. Thread: any. */
void hk_cluster_look(struct hk_cluster *cluster, struct hk_cluster_look *out);
/* Copies its partitions, with room for HK_PARTITIONS_MAX; returns their number. Thread: any. */
uint32_t hk_cluster_parts(struct hk_cluster *cluster, struct hk_cluster_part *out);

#endif
