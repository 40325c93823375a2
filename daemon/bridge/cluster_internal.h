/* What cluster.c and the two roles share. Thread: the cluster's, but for what says otherwise. */
#ifndef HK_CLUSTER_INTERNAL_H
#define HK_CLUSTER_INTERNAL_H

#include "daemon/bridge/bridge_thread.h"
#include "daemon/bridge/cluster.h"
#include "daemon/bridge/engine.h"

struct pollfd;

/* What a role does. Statuses: 0, or a negative errno: the connection is given up; engine->why, where the engine did not fail. */
struct hk_cluster_work {
  const char *thread;                 /* its name */
  int (*begin)(struct hk_cluster *c); /* once; 0 or -ENOMEM */
  void (*finish)(struct hk_cluster *c);
  int (*greeted)(struct hk_cluster *c); /* a connection was opened */
  void (*lost)(struct hk_cluster *c);   /* and is no more */
  int (*came)(struct hk_cluster *c, const struct hk_engine_event *event);
  int (*turn)(struct hk_cluster *c);     /* what there is to do beside that */
  int (*fd)(const struct hk_cluster *c); /* can be read when there is; -1: never is more */
  void (*alive)(struct hk_cluster *c);   /* tells the broker on connections of its own that we are there; NULL: it has none */
};
extern const struct hk_cluster_work hk_cluster_gateway, hk_cluster_scorer, hk_cluster_leases;

struct hk_cluster {
  struct hk_net *net;
  struct hk_cluster_rule rule;
  const struct hk_engine_kind *kind;
  const struct hk_cluster_work *work;
  void *state; /* the role's */
  struct hk_bridge_peers peers;
  pthread_t thread;
  bool running;
  int wake; /* eventfd, which can be read when the thread is to end */
  atomic_bool stop, over;

  pthread_mutex_t lock; /* of these: */
  struct hk_cluster_look look;
  struct hk_cluster_part *part; /* of each partition; since 0: it is not scored here */
  int fd;                       /* socket of the engine; -1: there is none */

  struct hk_engine *engine; /* NULL: there is no connection */
  uint32_t broker;          /* number of the next that is tried */
  int64_t retry, pause;     /* ns: when to connect again; and the next pause */
  int64_t opened;           /* ns: when it connected */
  bool told;                /* its failure was logged */
  int64_t shown;            /* ns: when hk_cluster_alive last did something */
  bool more;                /* the role has left something for the next turn, which comes at once */
  struct hk_log_quota quota;
};

/* Takes all that has come. 0 or a negative errno. */
int hk_cluster_pump(struct hk_cluster *c);
/* For whoever waits for the daemon, to be called every second: tells the broker that we are there. */
void hk_cluster_alive(struct hk_cluster *c);
/* Whether the thread is to end. Thread: any. */
static inline bool hk_cluster_stops(const struct hk_cluster *c)
{
  return atomic_load(&c->stop);
}

#endif
