/* A bridge: one thread, which does what its kind says, begins anew when it gets another rule, and ends when it is told to. */
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
  /* Goes by bridge->rule until hk_bridge_interrupted. Thread: the bridge's. */
  void (*run)(struct hk_bridge *bridge);
};

/* What inner connections of bridges have for a listener. It outlives all connections. */
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
  int wake;           /* eventfd, which can be read when there is something to do */
  atomic_bool stop;
  atomic_bool over; /* the thread has nothing more to do with the daemon */

  pthread_mutex_t lock; /* of these: */
  struct hk_mqtt_rule next;
  bool changed; /* which the thread has not taken yet */
  struct hk_bridge_look look;

  /* the thread's */
  struct hk_mqtt_rule rule;
  struct hk_log_quota quota; /* of lines about what peers send */
};

/* Zeroed but for peers, net, kind, number and next. 0 or a negative errno. Thread: the owner's. */
int hk_bridge_start(struct hk_bridge *bridge);
void hk_bridge_take(struct hk_bridge *bridge, const struct hk_mqtt_rule *rule);
void hk_bridge_end(struct hk_bridge *bridge);
/* Waits up to so many s for the end of one that was told to. False: it goes on. May be called again. */
bool hk_bridge_join(struct hk_bridge *bridge, unsigned seconds);
void hk_bridge_close(struct hk_bridge *bridge);

/* Whether it is to finish what it does: it ends, or takes another rule. Thread: any. */
bool hk_bridge_interrupted(struct hk_bridge *bridge);
/* Something to do was noticed: empties the eventfd. Thread: the bridge's. */
void hk_bridge_woken(struct hk_bridge *bridge);
/* Notes its state for whoever looks; why: NULL leaves it. Thread: the bridge's. */
void hk_bridge_note(struct hk_bridge *bridge, enum hk_bridge_state state, const char *why);

#endif
