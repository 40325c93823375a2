/* Server: everything that runs. Its threads are described in loop.h.
 *
 * hk_server_open -> hk_server_run (until SIGTERM or SIGINT, then drains) -> hk_server_close
 *
 * The end: listeners close, nothing more is read, all points that were taken are scored and published, subscribers get what is
 * queued for them; the configuration's `drain` bounds it all. A second signal ends it at once. Thread: main, which is that of
 * loop 0, but for what says otherwise. */
#ifndef HK_SERVER_H
#define HK_SERVER_H

#include "daemon/buffer.h"
#include "daemon/config.h"
#include "daemon/durable/durable.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/passed.h"
#include "daemon/reload.h"
#include "daemon/seats.h"
#include "daemon/security/audit.h"
#include "daemon/security/gate.h"
#include "daemon/security/limits.h"
#include "daemon/shard.h"

#include <uv.h>

struct hk_server {
  const struct hk_config *config; /* that is in force, for the main thread: other threads have theirs (loop.h, shard.h) */
  uint32_t frame_points;          /* see hk_server_frame_points */
  struct hk_log log;
  struct hk_reload reload; /* its path is set before the server is opened */
  struct hk_shards shards; /* what they have in common */
  struct hk_shard *shard;  /* shards.n of them */
  struct hk_loop *loops;
  uint32_t n_loops;
  struct hk_lane *lanes; /* of loop i to shard k: number k * n_loops + i */
  struct hk_durable durable;
  uint64_t replayed, lost; /* points, at the start; lost: that the journals do not have, for damage */
  struct hk_restoration *restoration; /* what snapshots have restored; NULL before the start */
  struct hk_seats seats;
  struct hk_gates gates;    /* of the listeners */
  struct hk_limits *limits; /* by address */
  struct hk_audit audit;
  atomic_uint turned_away; /* connections, by the limits */
  struct hk_log_quota crowded;
  uint32_t max_connections;           /* the configuration's, or as many as there are descriptors for */
  struct hk_passed *passed; /* sockets that we were started with */
  uint32_t n_passed;
  struct sockaddr_storage *addresses; /* of the configuration's listeners; once bound with their ports */
  struct hk_listener *listeners;      /* TCP */
  uint32_t n_listeners;
  int reserve; /* a descriptor that listeners give up to turn a peer away when none is left; -1: it is gone itself */

  uv_timer_t second, watchdog, draining;
  uv_signal_t terminate, interrupt, hangup;
  uv_async_t over;  /* a shard was lost, and nothing goes on in its place */
  int64_t started;  /* ns, monotonic */
  int64_t deadline; /* ns: when draining is given up; 0 = not draining */
  bool flushing;    /* draining: all is scored and published */
  uint64_t last[HK_SHARDS_MAX]; /* draining: the snapshots that were asked for; 0: none */
  bool given_up;    /* draining: the deadline has passed */
  bool failed;      /* it ends because nothing can be computed any more */
  uint64_t ticks;
  uint64_t watchdog_us;
};

/* Opens all that the configuration says and begins to serve. server: zeroed. kinds: as hk_backend_kinds. 0, or a negative errno
 * with a message; close it in either case. */
int hk_server_open(struct hk_server *server, const struct hk_config *config, const struct hk_backend_kind *kinds, char *error,
                   size_t size);
/* Serves until it is told to end: 0; or -EIO: the device was lost, and nothing else may go on. What had to be given up is logged.
 */
int hk_server_run(struct hk_server *server);
/* False: a thread hangs, of a device that was lost or of our own; the process can only be ended with _exit. */
bool hk_server_close(struct hk_server *server);

/* restore.c: restores what outlived the daemon's last run, and begins to write down this one. Shards run. 0, or a negative errno with a
 * message. */
int hk_server_restore(struct hk_server *server, char *error, size_t size);
/* And before shards run. */
int hk_server_restore_snapshots(struct hk_server *server, char *error, size_t size);

/* end.c: begins the end. */
void hk_server_end(struct hk_server *server);
/* end.c: ends at once. */
void hk_server_end_now(struct hk_server *server);

/* --- for any thread -------------------------------------------------------------------------------------------------- */

/* Points that a frame may hold: the room that a connection waits for. */
uint32_t hk_server_frame_points(const struct hk_server *server);
/* Descriptors that all connections and loops take, and some to spare. */
uint32_t hk_server_descriptors(const struct hk_server *server);
/* Points that one loop has room for. */
uint32_t hk_server_points(const struct hk_server *server);
/* Reads what has come over UDP from binary feeds, on whatever loop. True when nothing is left that came before `until` (ns,
 * hk_now): with others flooding the socket it may never be empty. False: parked connections are woken when there is more to say.
 */
bool hk_server_read_datagrams(struct hk_loop *loop, int64_t until);
/* What all threads have counted. */
void hk_server_sum(struct hk_server *server, struct hk_counters *sum);

/* status.c: the counters as one JSON object, for a connection of this loop. */
void hk_status_json(struct hk_loop *loop, struct hk_buffer *out);

#endif
