/* Server: everything that runs. Its threads are described in loop.h.
 *
 * lifecycle.h opens, runs and closes it. Shutdown: listeners close, nothing more is read, all points that were taken are scored
 * and published, subscribers get their queued data; the configuration's `drain` limits its time. A second signal ends the daemon
 * at once. Thread: main, which is that of loop 0, unless stated otherwise. */
#ifndef HK_SERVER_H
#define HK_SERVER_H

#include "daemon/base/buffer.h"
#include "daemon/base/log.h"
#include "daemon/bridge/bridge.h"
#include "daemon/bridge/cluster_mail.h"
#include "daemon/config/config.h"
#include "daemon/durable/durable.h"
#include "daemon/net/address_limits.h"
#include "daemon/net/audit.h"
#include "daemon/net/connection.h"
#include "daemon/net/credentials.h"
#include "daemon/net/listener.h"
#include "daemon/net/loop.h"
#include "daemon/net/net.h"
#include "daemon/net/socket_activation.h"
#include "daemon/net/udp_feeds.h"
#include "daemon/notify/notify.h"
#include "daemon/scoring/shard.h"
#include "daemon/server/incident_watch.h"
#include "daemon/server/reload_state.h"
#include "daemon/web/web.h"

#include <uv.h>

/* Progress of the shutdown: drain.c. */
struct hk_drain {
  int64_t begun;                /* ns */
  int64_t deadline;             /* ns: when it is abandoned; 0: not begun */
  bool ordered;                 /* loops were ordered to drain */
  bool flushing;                /* everything is scored and published */
  uint64_t last[HK_SHARDS_MAX]; /* numbers of the requested snapshots; 0: none */
  bool given_up;                /* the deadline has passed */
};

/* Handles of libuv on the event loop of loop 0. */
struct hk_server_handles {
  uv_timer_t second, watchdog, draining;
  uv_signal_t terminate, interrupt, hangup;
  uv_async_t over; /* a shard was lost without replacement */
};

/* What machines of a cluster share beside points. NULL: this one does not, or before the start. */
struct hk_server_shared {
  struct hk_cluster *events, *scores, *mail;
  struct hk_mail_answers answers; /* for the mail */
};

struct hk_server {
  const struct hk_config *config; /* in force for the main thread; other threads have their own pointer (loop.h, shard.h) */
  struct hk_net net;
  struct hk_receivers *receivers; /* NULL: none, or before the start */
  struct hk_bridges *bridges;     /* NULL: before the start */
  struct hk_cluster *cluster;     /* NULL: the configuration has none, or before the start */
  struct hk_cluster *publishing;  /* with role = all, beside `cluster`, which scores then; else NULL */
  struct hk_server_shared shared;
  struct hk_web *web; /* NULL: no listener speaks HTTP */
  struct hk_log log;
  struct hk_reload reload; /* its path is set before the server is opened */
  struct hk_shards shards; /* shared by all shards */
  struct hk_shard *shard;  /* shards.n of them */
  struct hk_shards entry;  /* with role = all: one shard, which scores nothing, and publishes peers' points; else n is 0 */
  struct hk_shard entry_shard;
  struct hk_durable durable;
  uint64_t replayed, lost;             /* points, at the start; lost: missing in the journals because of damage */
  struct hk_incident_watch *incidents; /* NULL: the configuration has none */
  struct hk_restoration *restoration;  /* result of restoring snapshots; NULL before the start */

  struct hk_server_handles handles;
  int64_t started; /* ns, monotonic */
  struct hk_drain drain;
  bool failed; /* it stops because no backend is left */
  uint64_t ticks;
  uint64_t watchdog_us;
};

/* Shard i of all that there are: those that score, and the entry's behind them. */
static inline struct hk_shard *hk_server_shard(struct hk_server *server, uint32_t i)
{
  return i < server->shards.n ? &server->shard[i] : &server->entry_shard;
}

/* Sums the counters of all threads. Thread: any. */
void hk_server_sum(struct hk_server *server, struct hk_counters *sum);
/* Copies at most `most` standing alerts of each shard, the first in the order of hk_standing_order, with slots of the registry;
 * returns their number. sum: of all standing alerts, copied or not. Thread: any. */
uint32_t hk_server_alerts(struct hk_server *server, struct hk_standing *out, uint32_t most, struct hk_alerts_sum *sum);

#endif
