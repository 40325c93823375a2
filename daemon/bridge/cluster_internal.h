/* Shared by cluster.c and the roles. Thread: the cluster's, unless stated otherwise. */
#ifndef HK_CLUSTER_INTERNAL_H
#define HK_CLUSTER_INTERNAL_H

#include "daemon/bridge/bridge_thread.h"
#include "daemon/bridge/cluster.h"
#include "daemon/bridge/engine.h"
#include "daemon/durable/event_shared.h"

struct hk_moves;
struct pollfd;

/* Functions of a role. Statuses: 0, or a negative errno: the connection is given up; engine->why if the engine did not fail. */
struct hk_cluster_work {
  const char *thread;                 /* its name */
  const char *as;                     /* its role towards the broker, for the log */
  bool leases;                        /* it shares partitions with others */
  bool scores;                        /* points come from it; so it ends before the loops do */
  int (*begin)(struct hk_cluster *c); /* once; 0 or -ENOMEM */
  void (*finish)(struct hk_cluster *c);
  int (*greeted)(struct hk_cluster *c); /* a connection was opened */
  void (*lost)(struct hk_cluster *c);   /* the connection was lost */
  int (*came)(struct hk_cluster *c, const struct hk_broker_engine_event *event);
  int (*turn)(struct hk_cluster *c);     /* does the pending work other than events */
  int (*fd)(const struct hk_cluster *c); /* readable if there is pending work; -1: there never is */
  bool farewell;                         /* `lost` sends something at the end */
  void (*alive)(struct hk_cluster *c);   /* sends signs of life on the role's own connections; NULL: it has none */
};
extern const struct hk_cluster_work hk_cluster_gateway, hk_cluster_scorer, hk_cluster_leases, hk_cluster_events,
    hk_cluster_shared_scores, hk_cluster_mail;

/* This machine, for others. */
struct hk_cluster_self {
  char machine[HK_MACHINE_MAX + 1]; /* its name */
  atomic_bool drains;               /* hk_cluster_drain */
  atomic_bool unsent;               /* scores: the broker lacks some of them, or more may come */
  struct hk_sections *sections;     /* of the configuration at the start */
  struct hk_moves *moves;           /* partitions that operators want it to have; NULL: its role has no leases */
};

struct hk_cluster {
  struct hk_net *net;
  struct hk_cluster_rule rule;
  const struct hk_broker_engine_kind *kind;
  const struct hk_cluster_work *work;
  void *state; /* the role's */
  struct hk_bridge_peers peers;
  pthread_t thread;
  bool running;
  int wake; /* eventfd, readable when the thread is to end */
  atomic_bool stop, over;
  struct hk_cluster_self self;

  pthread_mutex_t lock; /* protects the following: */
  struct hk_cluster_look look;
  struct hk_cluster_part *part; /* by partition; since 0: it is not scored here */
  int fd;                       /* socket of the engine; -1: none */

  struct hk_broker_engine *engine; /* NULL: no connection */
  uint32_t broker;                 /* number of the next one to try */
  int64_t retry, pause;            /* ns: when to connect again; and the next pause */
  int64_t opened;                  /* ns: when it connected */
  bool told;                       /* its failure was logged */
  int64_t shown;                   /* ns: when hk_cluster_alive last did something */
  bool more;                       /* the role has left work for the next turn, which follows at once */
  struct hk_log_quota quota;
};

/* Processes all received events. Returns 0 or a negative errno. */
int hk_cluster_pump(struct hk_cluster *c);
/* Sends signs of life to the broker; to call every second while waiting for the daemon. */
void hk_cluster_alive(struct hk_cluster *c);
/* What it has of the shared log of events; NULL: it shares none. Thread: any. */
struct hk_event_shared *hk_cluster_shared(const struct hk_cluster *c);
/* The number of the broker that it is connected to. */
static inline uint32_t hk_cluster_broker(const struct hk_cluster *c)
{
  return (c->broker + c->rule.n_brokers - 1) % c->rule.n_brokers;
}

/* Whether the thread is to end. Thread: any. */
static inline bool hk_cluster_stops(const struct hk_cluster *c)
{
  return atomic_load(&c->stop);
}

#endif
