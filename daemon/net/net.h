/* Net: what loops, listeners and connections share, and their requests to the server.
 *
 * Set before the first loop is opened, and then only read, unless stated otherwise. Thread: any. */
#ifndef HK_NET_H
#define HK_NET_H

#include "daemon/base/log.h"
#include "daemon/config/config.h"
#include "daemon/durable/durable.h"
#include "daemon/net/address_limits.h"
#include "daemon/net/audit.h"
#include "daemon/net/credentials.h"
#include "daemon/net/udp_feeds.h"
#include "daemon/scoring/shard.h"

struct hk_connection;
struct hk_listener;
struct hk_loop;
struct hk_operate;
struct hk_operation;
struct hk_passed;
struct hk_sensor_list;
struct hk_sensors_asked;
struct hk_server;

/* What the server does for connections; all on the thread of a loop. */
struct hk_requests {
  /* Wants a reload, and returns a ticket for its result. */
  uint64_t (*reload)(struct hk_server *server);
  /* Whether there is a result for a ticket, appended to `report` as lines of text; *taken: the configuration is in force. Parked
   * connections are woken when there is. */
  bool (*reload_result)(struct hk_server *server, uint64_t ticket, struct hk_buffer *report, bool *taken);
  /* Begins an operator's request. NULL: no memory. m: has been checked by its reader. */
  struct hk_operation *(*operate)(struct hk_connection *c, const struct hk_operate *m);
  /* False: not done yet. True: done, and freed; *taken and one line of text are the result. */
  bool (*operate_result)(struct hk_operation *operation, bool *taken, struct hk_buffer *text);
  void (*operate_abandon)(struct hk_operation *operation); /* nobody waits for it any more; NULL is allowed */
  /* Begins a part of the list of sensors. NULL: no memory. m: has been checked by its reader. */
  struct hk_sensor_list *(*list)(struct hk_connection *c, const struct hk_sensors_asked *m);
  /* False: it is not over. True: it is, and freed; an object of JSON was appended. */
  bool (*list_result)(struct hk_sensor_list *list, struct hk_buffer *json);
  void (*list_abandon)(struct hk_sensor_list *list); /* nobody waits for it any more; NULL is allowed */
  /* The counters as one JSON object. */
  void (*status)(struct hk_loop *loop, struct hk_buffer *out);
  /* Reads datagrams of binary feeds, on all loops. True when none is left that came before `until` (ns, hk_now): under a flood
   * the socket may never be empty. False: parked connections are woken to call this again. */
  bool (*read_datagrams)(struct hk_loop *loop, int64_t until);
  /* A listener of HTTP has accepted a connection. True: fd and place are taken. False: they are not, as *why says. Thread: main.
   */
  bool (*http)(const struct hk_listener *listener, int fd, struct hk_limits_place *place, const char **why);
};

/* How much there may be of each. */
struct hk_net_capacity {
  uint32_t connections;  /* the configuration's, or as many as there are descriptors for */
  uint32_t frame_points; /* points that a frame may hold: the room that a connection waits for */
  uint32_t loop_points;  /* points that one loop has room for */
  uint32_t descriptors;  /* that all connections and loops take, and some to spare */
};

/* What the daemon listens on. Thread: main. */
struct hk_net_sockets {
  struct hk_passed *passed; /* sockets that the daemon was started with */
  uint32_t n_passed;
  struct sockaddr_storage *addresses; /* of the configuration's listeners; once bound with their ports */
  struct hk_listener *listeners;      /* TCP */
  uint32_t n_listeners;
  int reserve; /* a descriptor that listeners give up to turn a peer away when none is left; -1: it is given up */
};

struct hk_net {
  struct hk_log *log;
  struct hk_shards *shards;
  struct hk_durable *durable;
  struct hk_server *server; /* which requests are for */
  struct hk_requests requests;
  const struct hk_config *config; /* loops are opened with it; later the one of HK_ORDER_ADOPT. Written by main */
  atomic_uint obeyed;             /* number of loops that have taken the configuration in force */
  struct hk_net_capacity capacity;
  struct hk_loop *loops;
  uint32_t n_loops;
  struct hk_lane *lanes; /* of loop i to shard k: number k * n_loops + i */
  struct hk_peer_feeds peer_feeds;
  struct hk_gates gates;    /* of the listeners */
  struct hk_limits *limits; /* by address */
  struct hk_audit audit;
  atomic_uint turned_away; /* connections, by the limits */
  struct hk_log_quota crowded;
  struct hk_net_sockets sockets;
};

#endif
