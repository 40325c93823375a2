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
struct hk_mail_answers;
struct hk_operation;
struct hk_activated_socket;
struct hk_inquiry;
struct hk_sensors_asked;
struct hk_server;

/* Services of the server for connections; called on a loop's thread. */
struct hk_requests {
  /* Requests a reload; returns a ticket for its result. */
  uint64_t (*reload)(struct hk_server *server);
  /* Whether the result of a ticket is ready; if so, appends it to `report` as lines of text. *taken: the configuration is in
   * force. Parked connections are woken when a result is ready. */
  bool (*reload_result)(struct hk_server *server, uint64_t ticket, struct hk_buffer *report, bool *taken);
  /* Starts an operator's request. NULL: out of memory. m: has been checked by its reader. */
  struct hk_operation *(*operate)(struct hk_connection *c, const struct hk_operate *m);
  /* False: not done yet. True: done, and freed; *taken and one line of text are the result. */
  bool (*operate_result)(struct hk_operation *operation, bool *taken, struct hk_buffer *text);
  void (*operate_abandon)(struct hk_operation *operation); /* the requester has gone; NULL is allowed */
  /* Starts a request for a page of the list of sensors. NULL: out of memory, or the machine of a cluster where the page begins
   * has gone. m: has been checked by its reader. */
  struct hk_inquiry *(*list)(struct hk_connection *c, const struct hk_sensors_asked *m);
  /* False: not done yet. True: done, and freed; a JSON object was appended. */
  bool (*list_result)(struct hk_inquiry *list, struct hk_buffer *json);
  void (*list_abandon)(struct hk_inquiry *list); /* the requester has gone; NULL is allowed */
  /* Appends the counters as one JSON object. */
  void (*status)(struct hk_loop *loop, struct hk_buffer *out);
  /* Reads datagrams of binary feeds, on all loops. True: all that arrived before `until` (ns, hk_now) have been read; under a
   * flood the socket may never be empty. False: parked connections will be woken, and must call this again. */
  bool (*read_datagrams)(struct hk_loop *loop, int64_t until);
  /* An HTTP listener has accepted a connection. True: the callee now owns fd and place. False: it does not; *why: the reason.
   * Thread: main. */
  bool (*http)(const struct hk_listener *listener, int fd, struct hk_address_limits_place *place, const char **why);
};

/* Capacities. */
struct hk_net_capacity {
  uint32_t connections;  /* most connections: the configured number, or what the descriptors allow */
  uint32_t frame_points; /* most points of a frame: the room that a connection waits for */
  uint32_t loop_points;  /* points that fit into one loop */
  uint32_t descriptors;  /* descriptors for all connections and loops, and some spare ones */
};

/* Listening sockets. Thread: main. */
struct hk_net_sockets {
  struct hk_activated_socket *passed; /* sockets that the daemon was started with */
  uint32_t n_passed;
  struct sockaddr_storage *addresses; /* addresses of the configured listeners; once bound, with their ports */
  struct hk_listener *listeners;      /* TCP */
  uint32_t n_listeners;
  int reserve; /* a spare descriptor that listeners close to turn a peer away when no other is left; -1: closed */
};

struct hk_net {
  struct hk_log *log;
  struct hk_shards *shards;
  struct hk_shards *entry; /* that take the points of peers: the same, or with [cluster] role = all the one that publishes them */
  struct hk_others *others; /* NULL: results of other machines are not shown */
  struct hk_durable *durable;
  struct hk_server *server; /* receives the requests */
  struct hk_requests requests;
  const struct hk_mail_answers *mail; /* how the server answers other machines of a cluster */
  const struct hk_config *config;     /* loops are opened with it; later the one of HK_ORDER_ADOPT. Written by main */
  atomic_uint obeyed;                 /* number of loops that have taken the configuration in force */
  struct hk_net_capacity capacity;
  struct hk_loop *loops;
  uint32_t n_loops;
  struct hk_lane *lanes; /* of loop i to shard k: number k * n_loops + i; to that of another entry: as the last shard */
  struct hk_peer_feeds peer_feeds;
  struct hk_gates gates;            /* of the listeners */
  struct hk_address_limits *limits; /* by address */
  struct hk_audit audit;
  struct hk_picture_board *board; /* the last pictures of cameras, for the page; NULL: nobody can look */
  atomic_uint turned_away;        /* connections refused by the limits */
  struct hk_log_quota crowded;
  struct hk_net_sockets sockets;
};

#endif
