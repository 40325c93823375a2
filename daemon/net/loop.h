/* Loop: an event loop with its thread, and all that belongs to that thread alone.
 *
 * The threads of the daemon, and what is between them:
 *
 *     loops                                      shards, one a device
 *     sockets -> decode -> chunk  -- sealed -->  stage -> batch -> backend
 *     sockets <- encode <- delivery <- deliveries --  results, as soon as they are there
 *                                 <- emptied --  chunks, to be filled again
 *
 *  - Loops (this file; `loops` in the configuration). Each has connections, sockets for datagrams, a parser, a pool for
 *    points, a publisher and counters of its own. Loop 0 is the main thread's, and also accepts connections, which it hands to
 *    the loop that has the fewest, and has the signals, the watchdog and the shutdown (server/lifecycle.c).
 *  - Shards (shard.h): one thread each, which makes batches of the chunks of all loops and gives the results to those loops that
 *    have subscribers.
 *  - Threads of the backend (cpu/, gpu/), of which only the shard is told when a batch has finished.
 *
 * Between a loop and a shard lie the rings of a lane (lane.h), so neither waits for the other; sleeping threads are woken
 * (wake.h). All share the registry (names under a lock that readers share, handles with none), the peer feeds of connections, the
 * log, and the counters, which each thread writes for itself. On a point's way from socket to socket there is no lock and no
 * allocation.
 *
 * A turn of the loop: sockets are read (points go into open chunks), deliveries are published, connections that wait for room are
 * given a turn if there is any, chunks are sealed; then it sleeps, with `busy_poll` only when there was nothing to do for so
 * long. */
#ifndef HK_LOOP_H
#define HK_LOOP_H

#include "daemon/base/counters.h"
#include "daemon/base/latency.h"
#include "daemon/base/ring.h"
#include "daemon/base/wake.h"
#include "daemon/intake/chunk_pool.h"
#include "daemon/intake/decode_lines.h"
#include "daemon/intake/intake.h"
#include "daemon/intake/pictures.h"
#include "daemon/publish/publisher.h"

#include <uv.h>

/* Long reads cost few acknowledgements; still longer ones would delay other connections. */
#define HK_LOOP_BUFFER (1u << 20)

struct hk_connection;
struct hk_listener;
struct hk_net;
struct hk_shown;

/* Orders to a loop. */
enum hk_order {
  HK_ORDER_READ = 1,    /* read the datagrams that have arrived */
  HK_ORDER_DRAIN = 2,   /* shutdown: read the datagrams that have arrived, and no more */
  HK_ORDER_FLUSH = 4,   /* everything is scored and published: say goodbye to the connections, flush and close them */
  HK_ORDER_GIVE_UP = 8, /* close the connections immediately */
  HK_ORDER_STOP = 16,   /* end the thread */
  HK_ORDER_ADOPT = 32,  /* the configuration of a reload is in force */
  HK_ORDER_ADMIT = 64,  /* certificates and tokens were reloaded: check whether connections may stay */
};

/* Thread and libuv handles; kept by loop_thread.c. */
struct hk_loop_handles {
  pthread_t thread;
  uv_prepare_t prepare;
  uv_check_t check;
  uv_idle_t idle; /* runs while the loop must not sleep */
  uv_timer_t second, pulse;
  bool open, running;
};

/* Counters of the loop's turns. */
struct hk_loop_pace {
  uint64_t turn;                    /* number of turns */
  uint64_t busy;                    /* last turn in which points or deliveries arrived */
  int64_t busy_at;                  /* ns: time of that turn; with `busy_poll` */
  uint32_t readers, readers_before; /* connections that received bytes in this turn, and in the previous turn */
  uint64_t settled;                 /* count of the shards when parked connections last had a turn */
};

/* Lists of connections; kept by loop.c. */
struct hk_loop_lists {
  struct hk_connection *connections;
  struct hk_connection *parked, **parked_tail;
  struct hk_connection *feeding; /* connections with feeds */
};

/* Results of other machines of a cluster. */
struct hk_loop_others {
  struct hk_publisher *publisher; /* the loop's; NULL: there are none */
  struct hk_ring ring;            /* of struct hk_shown, from the cluster's thread */
};

/* For other threads. */
struct hk_loop_shared {
  atomic_uint orders;                 /* enum hk_order */
  atomic_uint subscriptions;          /* the publisher's views: with none, no results are wanted */
  atomic_uint listeners;              /* the same of results of other machines */
  atomic_uint n_connections;          /* including those on their way to the loop */
  atomic_bool drained;                /* draining, and no connection waits for room */
  _Atomic int64_t beat;               /* ns: when it was last seen running */
  atomic_uint subscribers, held_back; /* connections; a second old */
  _Atomic uint64_t queued;            /* bytes; a second old */
  pthread_mutex_t lock;
  struct hk_loop_others others;
  struct hk_connection *arrivals; /* under lock: list of accepted connections, to be started here */
};

/* A way of points to shards. */
struct hk_loop_way {
  struct hk_intake intake;
  struct hk_chunk_pool pool;
};

struct hk_loop {
  struct hk_net *net;
  const struct hk_config *config; /* the configuration in force for this thread: a reload changes it between two turns */
  uint32_t number;
  uv_loop_t uv;
  struct hk_loop_handles handles;
  struct hk_loop_pace pace;
  struct hk_loop_lists list;
  struct hk_counters counters; /* written by this thread alone */
  struct hk_latency latency;
  struct hk_loop_way scored;       /* to the shards */
  struct hk_loop_way entry;        /* to the shard that publishes points of peers, if there is another one; else unused */
  struct hk_loop_way *peers;       /* the one of these that takes points of peers */
  struct hk_picture_work pictures; /* work space for pictures, of one connection after the other */
  uint32_t points;                 /* most points that may wait, */
  uint32_t room;                   /* and the room of the pool when none wait: no fewer */
  struct hk_publisher *publisher;
  struct hk_listener *datagrams; /* a UDP socket for each such listener */
  uint32_t n_datagrams;
  struct hk_lines *lines; /* parser shared by all connections and datagrams */
  uint8_t *buffer;        /* HK_LOOP_BUFFER bytes, shared by connections for reading */
  uint8_t *records;       /* HK_ADMISSION_CHUNK bytes for TLS records; NULL: no listener has TLS */
  bool draining;          /* reading has stopped */
  bool flushed;           /* connections were told to close; so are later ones */
  struct hk_wake wake;    /* for other threads, as is */
  struct hk_loop_shared shared;
};

/* For other threads. */
void hk_loop_order(struct hk_loop *loop, enum hk_order order);
void hk_loop_hand(struct hk_loop *loop, struct hk_connection *c);
struct hk_loop *hk_loop_least_busy(struct hk_net *net); /* the loop with the fewest connections */

/* Hands results of other machines to a loop, which releases them. False: it has too many already. Thread: the cluster's. */
bool hk_loop_show(struct hk_loop *loop, struct hk_shown *shown);

/* Lets the loop compute pictures on a device (NULL: on the host), before it is started. */
void hk_loop_picture_device(struct hk_loop *loop, const struct hk_picture_device *device, uint32_t number);

/* For the loop's connections. */
void hk_loop_add(struct hk_loop *loop, struct hk_connection *c);
void hk_loop_remove(struct hk_loop *loop, struct hk_connection *c);
void hk_loop_park(struct hk_loop *loop, struct hk_connection *c);
/* As hk_subscribe and hk_unsubscribe, of results of other machines, too. */
int hk_loop_subscribe(struct hk_loop *loop, struct hk_connection *c, const struct hk_wanted *wanted);
void hk_loop_unsubscribe(struct hk_loop *loop, struct hk_connection *c);
/* Counts subscribers, queued bytes and so on of the connections, for the status. */
void hk_loop_survey(struct hk_loop *loop);

/* Sends published events of the log; continues in another turn. */
void hk_loop_tell_events(struct hk_loop *loop);
/* Whether a subscriber that is saying goodbye has been sent all events up to the first call, which has *event == 0.
 */
bool hk_loop_told(struct hk_loop *loop, struct hk_subscriber *s, uint64_t *event);
/* Adds a connection with a feed, which gets its committed positions. */
void hk_loop_feeds(struct hk_loop *loop, struct hk_connection *c);
/* Removes it, if it is there. To call before the feed is given up, which may then be forgotten at once. */
void hk_loop_feeds_no_more(struct hk_loop *loop, struct hk_connection *c);

#endif
