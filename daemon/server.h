/* Server: everything that runs, and the loop that runs it.
 *
 * hk_server_open -> hk_server_run (until SIGTERM or SIGINT, then drains) -> hk_server_close
 *
 * The end: listeners close, nothing more is read, all points that were taken are scored and published, subscribers get what is
 * queued for them; the configuration's `drain` bounds it all. A second signal ends it at once. Thread: the loop's. */
#ifndef HK_SERVER_H
#define HK_SERVER_H

#include "daemon/alerts.h"
#include "daemon/buffer.h"
#include "daemon/config.h"
#include "daemon/connection.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/registry.h"
#include "daemon/shard.h"
#include "daemon/stage.h"

#include <uv.h>

struct hk_server {
  struct hk_loop loop;
  const struct hk_config *config;
  const struct hk_backend_kind *kinds;
  struct hk_log log;
  struct hk_counters counters; /* what no other thread counts */
  struct hk_shard shard;
  struct hk_registry *registry;
  struct hk_stage *stage;
  struct hk_alerts *alerts;
  struct hk_log_quota forgetful;
  struct hk_listener *listeners;
  uint32_t n_listeners;

  struct hk_connection **by_index; /* max_connections of them; NULL = free */
  uint32_t n_connections;          /* that count against the limit */
  uint32_t max_connections;        /* the configuration's, or as many as there are descriptors for */

  uv_check_t launch;
  uv_timer_t second, watchdog;
  uv_signal_t terminate, interrupt, hangup;
  int64_t started;  /* ns, monotonic */
  int64_t deadline; /* ns: when draining is given up; 0 = not draining */
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
/* False: a device that was lost hangs in threads of this process, which can only be ended with _exit. */
bool hk_server_close(struct hk_server *server);

/* Begins the end. */
void hk_server_end(struct hk_server *server);
/* Forgets a sensor of which nothing is pending on the device. */
void hk_server_evict(struct hk_server *server, uint32_t slot);
/* failover.c: the shard's device was lost. */
void hk_server_device_lost(struct hk_server *server);

/* For connections. Adds one; false when it is over the limit (it is to be refused). */
bool hk_server_add(struct hk_server *server, struct hk_connection *c);
void hk_server_remove(struct hk_server *server, struct hk_connection *c);
void hk_server_park(struct hk_server *server, struct hk_connection *c);
/* A number for a connection's UDP feed, and the open connection of a number (NULL: none). */
uint64_t hk_server_feed_number(struct hk_server *server, const struct hk_connection *c);
struct hk_connection *hk_server_feed(const struct hk_server *server, uint64_t feed);
/* Points that a frame may hold: the room that a connection waits for. */
uint32_t hk_server_frame_points(const struct hk_server *server);
/* Reads what has come over UDP from binary feeds. True when nothing is left that came before `until` (ns, hk_now): with
 * others flooding the socket it may never be empty. */
bool hk_server_read_datagrams(struct hk_server *server, int64_t until);

/* What all threads have counted. */
void hk_server_sum(const struct hk_server *server, struct hk_counters *sum);

/* status.c: the counters as one JSON object. */
void hk_status_json(struct hk_server *server, struct hk_buffer *out);

#endif
