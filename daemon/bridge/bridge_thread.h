/* A bridge: a thread that runs its kind's function, starts it again with a new rule, and stops on request. */
#ifndef HK_BRIDGE_THREAD_H
#define HK_BRIDGE_THREAD_H

#include "daemon/bridge/bridge_look.h"
#include "daemon/net/credentials.h"
#include "daemon/net/net.h"

#include <pthread.h>
#include <stdatomic.h>

struct hk_bridge;

struct hk_bridge_kind {
  enum hk_bridge_way way;
  const char *thread; /* its name */
  bool (*wanted)(const struct hk_mqtt_rule *rule);
  /* Works by bridge->rule until hk_bridge_interrupted. Thread: the bridge's. */
  void (*run)(struct hk_bridge *bridge);
};

/* The listener of bridges' inner connections. It outlives all connections. */
struct hk_bridge_peers {
  struct hk_config_listener listener;
  struct hk_gate gate;
};

struct hk_bridge {
  /* the owner's */
  struct hk_bridge_peers *peers;
  struct hk_net *net;
  const struct hk_bridge_kind *kind;
  uint32_t number;
  pthread_t thread;
  bool running, gone; /* gone: no configuration names it any more */
  int wake;           /* eventfd, readable when there is work */
  atomic_bool stop;
  atomic_bool over; /* the thread no longer uses the daemon */

  pthread_mutex_t lock; /* protects the following: */
  struct hk_mqtt_rule next;
  bool changed; /* the thread has not adopted it yet */
  struct hk_bridge_look look;

  /* the thread's */
  struct hk_mqtt_rule rule;
  struct hk_log_quota quota; /* for log lines about peers' data */
};

/* Starts the thread. bridge: zeroed except peers, net, kind, number and next. Returns 0 or a negative errno. Thread: the owner's.
 * */
int hk_bridge_start(struct hk_bridge *bridge);
void hk_bridge_take(struct hk_bridge *bridge, const struct hk_mqtt_rule *rule);
void hk_bridge_end(struct hk_bridge *bridge);
/* Waits at most `seconds` for the end of a stopping bridge. False: it still runs. May be called again. */
bool hk_bridge_join(struct hk_bridge *bridge, unsigned seconds);
void hk_bridge_close(struct hk_bridge *bridge);

/* Whether the bridge is to finish its work, because it must stop or adopt another rule. Thread: any. */
bool hk_bridge_interrupted(struct hk_bridge *bridge);
/* Empties the eventfd after a wake-up. Thread: the bridge's. */
void hk_bridge_woken(struct hk_bridge *bridge);
/* Sets the state for the status; why: NULL keeps the reason. Thread: the bridge's. */
void hk_bridge_note(struct hk_bridge *bridge, enum hk_bridge_state state, const char *why);

#endif
