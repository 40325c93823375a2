/* Connects the parts of the daemon, and runs it. */
#include "daemon/server/lifecycle.h"
#include "daemon/net/tcp_listener.h"
#include "daemon/net/udp_listener.h"
#include "daemon/scoring/hand_over.h"

#include "daemon/base/systemd.h"
#include "daemon/durable/disk_health.h"
#include "daemon/durable/event_copy.h"
#include "daemon/net/admission.h"
#include "daemon/net/loop_thread.h"
#include "daemon/scoring/failover.h"
#include "daemon/scoring/others.h"
#include "daemon/scoring/relay.h"
#include "daemon/scoring/shard_thread.h"
#include "daemon/scoring/stall.h"
#include "daemon/sensors/maintenance.h"
#include "daemon/sensors/slots.h"
#include "daemon/server/cluster_view.h"
#include "daemon/server/drain.h"
#include "daemon/server/inquiry.h"
#include "daemon/server/listeners.h"
#include "daemon/server/operate.h"
#include "daemon/server/progress.h"
#include "daemon/server/reload.h"
#include "daemon/server/resource_limits.h"
#include "daemon/server/restore.h"
#include "daemon/server/server_shards.h"
#include "daemon/server/status.h"
#include "daemon/server/web_answers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPARE_DESCRIPTORS 32 /* for everything except connections and loops */
#define LOOP_DESCRIPTORS 8   /* for one loop */
/* Ns without progress after which a shard counts as stalled, where the watchdog is not less patient. */
#define STALL 10000000000
#define EXPIRE 5 /* s between two searches for feeds to forget */

static uint32_t spare_descriptors(const struct hk_server *s)
{
  const uint32_t each = s->config->cluster.state[0] ? 8 : 2; /* with a connection to the broker, and folders */
  const uint32_t feeds = hk_cluster_scores(&s->config->cluster) ? each * s->config->cluster.partitions : 0;
  return SPARE_DESCRIPTORS + LOOP_DESCRIPTORS * s->net.n_loops + hk_web_descriptors(s->config) + feeds;
}

static bool lifecycle_read_datagrams(struct hk_loop *loop, int64_t until)
{
  struct hk_server *s = loop->net->server;
  bool all = true;
  for (uint32_t i = 0; i < s->net.n_loops; i++) {
    struct hk_loop *each = &s->net.loops[i];
    bool here = true;
    for (uint32_t k = 0; k < each->n_datagrams; k++) {
      struct hk_listener *l = &each->datagrams[k];
      if (!hk_udp_is_awaited(l) || l->read_to >= until)
        continue;
      here &= each == loop && (!l->open || hk_udp_read(l) || l->read_to >= until);
    }
    if (!here && each != loop)
      hk_loop_order(each, HK_ORDER_READ);
    all &= here;
  }
  return all;
}

/* --- signals and clocks ---------------------------------------------------------------------------------------------- */

static void on_hangup(uv_signal_t *handle, int number)
{
  (void)number;
  (void)hk_reload_ask(handle->data);
}

static void lifecycle_on_signal(uv_signal_t *handle, int number)
{
  struct hk_server *s = handle->data;
  struct hk_counters sum;
  if (s->drain.deadline != 0) {
    hk_log(&s->log, HK_LOG_WARNING, "second signal %d: exiting at once", number);
    hk_server_end_now(s);
    return;
  }
  hk_server_sum(s, &sum);
  hk_log(&s->log, HK_LOG_INFO, "signal %d: scoring the points that wait (%" PRIu64 "), then exiting", number,
         hk_counters_pending(&sum));
  hk_server_end(s);
}

static void on_over(uv_async_t *async)
{
  struct hk_server *s = async->data;
  s->failed = true;
  hk_server_end(s);
}

/* Thread: a shard's. */
static void lifecycle_ended(void *arg)
{
  struct hk_server *s = arg;
  (void)uv_async_send(&s->handles.over);
}

static void on_device_failure(void *arg, uint32_t shard, const struct hk_slot_binding *device, const char *why)
{
  struct hk_server *s = arg;
  hk_shard_failed(&s->shard[shard], device, why);
}

static bool any_lost(struct hk_server *s)
{
  bool any = false;
  for (uint32_t i = 0; i < s->shards.n; i++)
    any |= hk_shard_has_lost(&s->shard[i]);
  return any;
}

/* Forgets feeds that are no longer needed. */
static void expire_feeds(struct hk_server *s)
{
  const uint32_t expired = hk_feeds_expire(s->durable.feeds, hk_wall());
  if (expired > 0)
    hk_log(&s->log, HK_LOG_NOTICE, "feeds: %u that no client has used for %g s (feed_expiry) were forgotten; %u are left",
           expired, (double)s->config->feed_expiry * 1e-9, hk_feeds_survey(s->durable.feeds).n);
}

static void lifecycle_on_second(uv_timer_t *timer)
{
  struct hk_server *s = timer->data;
  for (uint32_t i = 0; i < s->net.sockets.n_listeners; i++)
    hk_listener_retry(&s->net.sockets.listeners[i]);
  hk_durable_watch(&s->durable);
  hk_gates_watch(&s->net.gates, hk_now(), &s->log);
  if (s->ticks % EXPIRE == 0)
    expire_feeds(s);
  if (s->ticks++ % 10 == 0 && s->drain.deadline == 0) {
    char state[256];
    struct hk_counters sum;
    hk_server_sum(s, &sum);
    snprintf(state, sizeof state,
             "STATUS=%s%s%u sensors on %s, %u connections, %" PRIu64 " points in, %" PRIu64 " scored, %" PRIu64 " dropped",
             any_lost(s) ? "DEVICE LOST; " : "",
             hk_durable_condition(&s->durable).state >= HK_DURABLE_DEGRADED ? "DURABILITY LOST; " : "",
             hk_registry_count(s->shards.registry), hk_shard_backend(&s->shard[0]), hk_peer_feeds_taken(&s->net.peer_feeds),
             sum.in, sum.scored, hk_counters_dropped(&sum));
    hk_notify(state);
  }
}

/* Whether a thread was not seen running for longer than the watchdog's period; logs that. */
static bool hangs(struct hk_server *s, const char *what, uint32_t number, int64_t beat)
{
  const int64_t since = hk_now() - beat;
  if ((uint64_t)since / 1000 < s->watchdog_us)
    return false;
  hk_log(&s->log, HK_LOG_ERROR, "the thread of %s %u has not run for %.1f s", what, number, (double)since * 1e-9);
  return true;
}

/* All is well while this runs, the other threads run, batches in flight come back, and no shard has stalled. A shard handles a
 * hanging device itself, normally long before; the watchdog is for hanging threads, including those of the CPU backend, and
 * for parts of the daemon that wait for each other. */
static void on_watchdog(uv_timer_t *timer)
{
  struct hk_server *s = timer->data;
  bool well = true;
  for (uint32_t i = 1; i < s->net.n_loops; i++)
    well &= !hangs(s, "loop", i, s->net.loops[i].shared.beat);
  for (uint32_t i = 0; i < s->shards.n + s->entry.n; i++) {
    struct hk_shard *shard = hk_server_shard(s, i);
    const int64_t stalled = hk_shard_stalled(shard);
    char why[HK_STALL_WHY];
    well &= hk_stall_lasts(shard, why) == 0; /* it was logged */
    well &= !hangs(s, "shard", i, shard->life.beat);
    if ((uint64_t)stalled / 1000 < s->watchdog_us)
      continue;
    hk_log(&s->log, HK_LOG_ERROR, "the %s backend has not finished a batch for %.1f s", hk_shard_backend(shard),
           (double)stalled * 1e-9);
    well = false;
  }
  if (well)
    hk_notify("WATCHDOG=1");
}

/* --- open, run, close ------------------------------------------------------------------------------------------------ */

static int lifecycle_open_handles(struct hk_server *s)
{
  struct hk_server_handles *h = &s->handles;
  uv_loop_t *loop = &s->net.loops[0].uv;
  uv_timer_init(loop, &h->second);
  uv_timer_init(loop, &h->watchdog);
  uv_timer_init(loop, &h->draining);
  h->second.data = h->watchdog.data = h->draining.data = h->over.data = h->terminate.data = h->interrupt.data = h->hangup.data =
      s;
  int status = hk_reload_open(s);
  if (status == 0)
    status = uv_async_init(loop, &h->over, on_over);
  if (status == 0)
    status = uv_signal_init(loop, &h->terminate);
  if (status == 0)
    status = uv_signal_init(loop, &h->interrupt);
  if (status == 0)
    status = uv_signal_init(loop, &h->hangup);
  return status;
}

/* Sets everything that is known before anything is opened. */
static void prepare_net(struct hk_server *s)
{
  _Static_assert(HK_FRAME_MAX_LEAST / 8 >= HK_LINE_FIELDS, "a line's points have room where a frame's have");
  struct hk_net *net = &s->net;
  net->log = &s->log;
  net->shards = &s->shards;
  net->entry = s->entry.n > 0 ? &s->entry : &s->shards;
  net->durable = &s->durable;
  net->server = s;
  net->requests = (struct hk_requests){ .reload = hk_reload_ask,
                                        .reload_result = hk_reload_result,
                                        .operate = hk_operate_begin,
                                        .operate_result = hk_operate_result,
                                        .operate_abandon = hk_operate_abandon,
                                        .list = hk_inquiry_begin,
                                        .list_result = hk_inquiry_listed,
                                        .list_abandon = hk_inquiry_drop,
                                        .status = hk_status_json,
                                        .read_datagrams = lifecycle_read_datagrams };
  net->config = s->config;
  net->n_loops = s->shards.n_loops;
  net->sockets.reserve = hk_listener_reserve();
  net->capacity.connections = hk_rlimit_connections(s->config, spare_descriptors(s), &s->log);
  net->capacity.descriptors = net->capacity.connections + spare_descriptors(s);
  net->capacity.frame_points = (uint32_t)(s->config->max_frame / 8 + 1);
  const uint32_t share = s->config->backlog / net->n_loops, least = 2 * net->capacity.frame_points;
  net->capacity.loop_points = share > least ? share : least;
}

/* Makes the parts that need memory only. Returns 0 or a negative errno. */
static int make_parts(struct hk_server *s)
{
  s->net.loops = calloc(s->net.n_loops, sizeof *s->net.loops);
  s->shard = s->shards.shard = calloc(s->shards.n, sizeof *s->shard);
  pthread_mutex_init(&s->shards.replay, NULL);
  pthread_mutex_init(&s->entry.replay, NULL);
  int status = hk_activation_take(&s->net.sockets.passed, &s->net.sockets.n_passed);
  s->net.sockets.listeners = calloc(s->config->n_listeners + s->net.sockets.n_passed, sizeof *s->net.sockets.listeners);
  s->net.sockets.addresses = calloc(s->config->n_listeners, sizeof *s->net.sockets.addresses);
  if (status == 0)
    status = s->net.loops && s->shard && s->net.sockets.listeners && s->net.sockets.addresses ? hk_server_open_lanes(s) : -ENOMEM;
  if (status == 0)
    status = hk_peer_feeds_open(&s->net.peer_feeds, s->net.capacity.connections);
  if (status == 0)
    status = hk_address_limits_new(&s->net.limits, s->net.capacity.connections);
  if (status == 0)
    status = hk_registry_new(&s->shards.registry, s->config, s->shards.n);
  if (status == 0 && s->entry.n > 0)
    status = hk_registry_new(&s->entry.registry, s->config, 1);
  if (status == 0)
    status = hk_maintenance_new(&s->shards.maintenance, s->config);
  s->entry.maintenance = s->shards.maintenance;
  return status;
}

int hk_server_open(struct hk_server *s, const struct hk_config *config, const struct hk_backend_kind *kinds, char *error,
                   size_t size)
{
  s->config = config;
  s->started = hk_now();
  hk_log_init(&s->log, (enum hk_level)config->log_level);
  hk_server_prepare_shards(s, kinds, lifecycle_ended);
  prepare_net(s);
  int status = make_parts(s);
  if (status != 0) {
    snprintf(error, size, "start: %s", strerror(-status));
    return status;
  }
  hk_audit_init(&s->net.audit);
  status = hk_durable_open(&s->durable, config, s->shards.n, &s->log, error, size);
  if (status == 0 && s->durable.folder >= 0)
    hk_maintenance_open(s->shards.maintenance, &s->durable.disk, s->durable.folder, &s->log);
  s->durable.there.maintenance = s->durable.folder >= 0 ? s->shards.maintenance : NULL;
  s->shards.events = s->durable.events;
  if (status == 0 && hk_cluster_shares_events(&config->cluster) &&
      (status = hk_copy_open(&s->shards.events, config->event_log)) != 0)
    snprintf(error, size, "event log: %s", strerror(-status));
  if (hk_eventlog_shared(s->shards.events))
    hk_copy_on_operation(s->shards.events, hk_operate_take, s);
  if (status == 0 && hk_cluster_shares_events(&config->cluster) && (status = hk_others_new(&s->net.others, config)) != 0)
    snprintf(error, size, "sensors of other machines: %s", strerror(-status));
  if (status == 0 && s->net.others && (status = hk_score_gate_open(&s->shards.scores)) != 0)
    snprintf(error, size, "scores of other machines: %s", strerror(-status));
  s->durable.loops = s->net.n_loops;
  for (uint32_t i = 0; i < s->net.n_loops; i++)
    s->durable.loop_wake[i] = &s->net.loops[i].wake;
  if (status == 0)
    status = hk_gates_open(&s->net.gates, config, &s->log, error, size);
  if (status != 0)
    return status;
  hk_registry_on_failure(s->shards.registry, on_device_failure, s);
  for (uint32_t i = 0; i < s->net.n_loops && status == 0; i++)
    status = hk_loop_open(&s->net.loops[i], &s->net, i, error, size);
  if (status == 0)
    status = hk_server_open_shards(s, error, size);
  if (status != 0)
    return status;
  status = lifecycle_open_handles(s);
  if (status != 0) {
    snprintf(error, size, "event loop: %s", uv_strerror(status));
    return status;
  }
  hk_rlimit_memory(config, s->net.n_loops, !s->shard[0].device->kind->device, &s->log);
  return hk_server_listen(s, error, size);
}

static bool is_idle(void *arg)
{
  struct hk_counters sum;
  hk_server_sum(arg, &sum);
  return hk_counters_pending(&sum) == 0;
}

static void lifecycle_answered(void *arg)
{
  struct hk_server *s = arg;
  hk_shard_settled(&s->shard[0]);
}

/* Starts all threads. Returns 0, or a negative errno with a message. */
static int lifecycle_start(struct hk_server *s, char *error, size_t size)
{
  const uint64_t beat = s->watchdog_us > 0 && s->watchdog_us < 4000000 ? s->watchdog_us / 4000 + 1 : 1000;
  const int64_t half = (int64_t)s->watchdog_us * 500;
  s->shards.stall = s->entry.stall = half > 0 && half < STALL ? half : STALL;
  snprintf(error, size, "a thread cannot be started");
  int status = hk_server_restore_snapshots(s, error, size);
  for (uint32_t i = 0; i < s->shards.n + s->entry.n && status == 0; i++)
    status = hk_shard_start(hk_server_shard(s, i), beat);
  if (status == 0)
    status = hk_server_restore(s, error, size);
  if (status == 0 && s->config->incidents.n > 0)
    status = hk_watch_start(&s->incidents, &s->config->incidents,
                            &(struct hk_watch_source){ hk_progress_ticks, hk_progress_ends, is_idle, lifecycle_answered, s,
                                                       s->shards.n, s->config->cluster.role != HK_CLUSTER_GATEWAY },
                            &s->durable, s->shards.events, s->shards.registry, &s->log);
  if (status == 0 && s->shards.events)
    status = hk_receivers_start(&s->receivers, &s->durable, s->shards.events, s->config, &s->log);
  if (status == 0)
    status = hk_bridges_new(&s->bridges, &s->net);
  for (uint32_t i = 0; i < s->net.n_loops && status == 0; i++)
    status = hk_loop_start(&s->net.loops[i], beat);
  if (status == 0)
    status = hk_bridges_adopt(s->bridges, s->config);
  if (status == 0)
    status = hk_cluster_start_events(&s->shared.events, &s->net);
  if (status == 0)
    status = hk_cluster_start_scores(&s->shared.scores, &s->net); /* before there are any */
  if (status == 0)
    status = hk_cluster_start(&s->cluster, &s->net);
  if (status == 0)
    status = hk_cluster_start_publishing(&s->publishing, &s->net);
  hk_cluster_view_open(s);
  if (status == 0)
    status = hk_cluster_start_mail(&s->shared.mail, &s->net);
  hk_watch_ask(s->incidents, s->shared.mail);
  return status;
}

int hk_server_run(struct hk_server *s)
{
  struct hk_counters sum;
  uv_timer_start(&s->handles.second, lifecycle_on_second, 1000, 1000);
  uv_signal_start(&s->handles.terminate, lifecycle_on_signal, SIGTERM);
  uv_signal_start(&s->handles.interrupt, lifecycle_on_signal, SIGINT);
  uv_signal_start(&s->handles.hangup, on_hangup, SIGHUP);
  s->watchdog_us = hk_notify_watchdog();
  if (s->watchdog_us > 0)
    uv_timer_start(&s->handles.watchdog, on_watchdog, s->watchdog_us / 2000, s->watchdog_us / 2000);
  if (s->watchdog_us > 0 && s->shard[0].device->kind->device && (uint64_t)s->config->device_timeout / 1000 >= s->watchdog_us)
    hk_log(&s->log, HK_LOG_WARNING,
           "device_timeout = %.0f s is not below the watchdog's %.0f s (WatchdogSec=), which restarts the daemon first",
           (double)s->config->device_timeout * 1e-9, (double)s->watchdog_us * 1e-6);
  hk_log(&s->log, HK_LOG_INFO,
         "hankeld " HANKELD_VERSION ", %s backend, %u device%s, %u event loop%s, %u detector%s, up to %u sensors",
         hk_shard_backend(&s->shard[0]), s->shards.n, s->shards.n == 1 ? "" : "s", s->net.n_loops, s->net.n_loops == 1 ? "" : "s",
         s->config->n_detectors, s->config->n_detectors == 1 ? "" : "s", s->config->max_sensors);
  char error[512];
  for (uint32_t i = 0; i < s->config->n_detectors; i++)
    if (hk_sections_unreached(s->config, i, error, sizeof error))
      hk_log(&s->log, HK_LOG_WARNING, "%s", error);
  for (uint32_t at = 0; s->shards.n > 1 && hk_sections_share(s->config, &at, error, sizeof error);)
    hk_log(&s->log, HK_LOG_WARNING, "%s", error);
  for (uint32_t at = 0; hk_mqtt_rules_meet(&s->config->mqtt, &at, error, sizeof error);)
    hk_log(&s->log, HK_LOG_WARNING, "%s", error);
  const int status = lifecycle_start(s, error, sizeof error);
  if (status != 0) {
    hk_log(&s->log, HK_LOG_ERROR, "start: %s", error);
    return status;
  }
  hk_web_tell(s->web, HK_WEB_SERVING);
  hk_log_bare("ready");
  hk_notify("READY=1");
  uv_run(&s->net.loops[0].uv, UV_RUN_DEFAULT);
  hk_server_sum(s, &sum);
  const uint64_t pending = hk_counters_pending(&sum);
  char fed[48] = "";
  if (sum.derived > 0) /* `in` counts a point once for each series of its sensor */
    snprintf(fed, sizeof fed, " (%" PRIu64 " as fed)", sum.in - sum.derived);
  hk_log(&s->log, pending == 0 ? HK_LOG_INFO : HK_LOG_WARNING,
         "ended: %" PRIu64 " points in%s, %" PRIu64 " scored, %" PRIu64 " given up", sum.in, fed, sum.scored, pending);
  return s->failed ? -EIO : 0;
}

bool hk_server_close(struct hk_server *s)
{
  bool stopped = hk_web_stop(s->web), buried = true;
  stopped &= hk_bridges_stop(s->bridges);
  stopped &= hk_cluster_stop(s->cluster);
  stopped &= hk_cluster_stop(s->publishing);
  stopped &= hk_receivers_stop(s->receivers);
  stopped &= hk_cluster_stop(s->shared.events);
  stopped &= hk_cluster_stop(s->shared.scores);
  stopped &= hk_cluster_stop(s->shared.mail);
  for (uint32_t i = 0; s->net.loops && i < s->net.n_loops; i++)
    stopped &= hk_loop_stop(&s->net.loops[i]);
  for (uint32_t i = 0; s->shard && i < s->shards.n + s->entry.n; i++)
    stopped &= hk_shard_stop(hk_server_shard(s, i));
  stopped = stopped && hk_durable_stop(&s->durable); /* what it has committed is read */
  if (stopped && hk_watch_stop(s->incidents))
    s->incidents = NULL;
  stopped = stopped && !s->incidents;
  if (!stopped)
    return false; /* keeps everything that the thread may still use */
  hk_web_close(s->web);
  for (uint32_t i = 0; i < s->net.sockets.n_listeners; i++)
    hk_listener_close(&s->net.sockets.listeners[i]);
  for (uint32_t i = 0; s->net.loops && i < s->net.n_loops; i++)
    hk_loop_close(&s->net.loops[i]);
  for (uint32_t i = 0; s->shard && i < s->shards.n + s->entry.n; i++)
    buried &= hk_shard_close(hk_server_shard(s, i));
  for (uint32_t i = 0; s->net.lanes && i < s->net.n_loops * (s->shards.n + s->entry.n); i++)
    hk_lane_close(&s->net.lanes[i]);
  hk_reload_close(s);
  hk_bridges_free(s->bridges);
  hk_cluster_free(s->cluster);
  hk_cluster_free(s->publishing);
  hk_cluster_free(s->shared.events);
  hk_cluster_free(s->shared.scores);
  hk_cluster_free(s->shared.mail);
  hk_relay_free(s->net.entry ? s->net.entry->relay : NULL);
  hk_receivers_free(s->receivers);
  hk_eventlog_free(hk_eventlog_shared(s->shards.events) ? s->shards.events : NULL);
  hk_durable_close(&s->durable);
  hk_maintenance_free(s->shards.maintenance);
  hk_registry_free(s->shards.registry);
  hk_registry_free(s->entry.registry);
  hk_others_free(s->net.others);
  hk_score_gate_close(&s->shards.scores);
  hk_peer_feeds_close(&s->net.peer_feeds);
  hk_gates_close(&s->net.gates);
  hk_picture_board_free(s->net.board);
  hk_address_limits_free(s->net.limits);
  if (s->net.sockets.reserve >= 0)
    close(s->net.sockets.reserve);
  free(s->restoration);
  free(s->net.lanes);
  free(s->net.sockets.listeners);
  hk_activation_free(s->net.sockets.passed, s->net.sockets.n_passed);
  free(s->net.sockets.addresses);
  free(s->net.loops);
  free(s->shard);
  return buried;
}
