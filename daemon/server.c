/* Wiring, life and end of the daemon. */
#include "daemon/server.h"

#include "daemon/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>

#define SPARE_DESCRIPTORS 32 /* for all but connections */
#define NO_INDEX UINT32_MAX

/* --- connections ----------------------------------------------------------------------------------------------------- */

bool hk_server_add(struct hk_server *s, struct hk_connection *c)
{
  c->previous = NULL;
  c->next = s->loop.connections;
  if (c->next)
    c->next->previous = c;
  s->loop.connections = c;
  c->index = NO_INDEX;
  if (s->n_connections == s->max_connections)
    return false;
  s->n_connections++;
  for (c->index = 0; s->by_index[c->index];)
    c->index++;
  s->by_index[c->index] = c;
  return true;
}

void hk_server_remove(struct hk_server *s, struct hk_connection *c)
{
  if (c->previous)
    c->previous->next = c->next;
  else
    s->loop.connections = c->next;
  if (c->next)
    c->next->previous = c->previous;
  if (c->parked) {
    struct hk_connection **link = &s->loop.parked;
    while (*link != c)
      link = &(*link)->next_parked;
    *link = c->next_parked;
    if (s->loop.parked_tail == &c->next_parked)
      s->loop.parked_tail = link;
  }
  if (s->deadline != 0 && !s->loop.connections && hk_shard_quiet(&s->shard))
    uv_stop(&s->loop.uv); /* drained, and this was the last */
  if (c->index == NO_INDEX)
    return;
  s->by_index[c->index] = NULL;
  s->n_connections--;
  hk_count(&s->counters.lost, hk_feed_lost(&c->feed));
  hk_count(&s->counters.lost_points, hk_feed_lost_points(&c->feed));
  hk_count(&s->counters.repeated, c->feed.repeated);
  hk_count(&s->counters.reordered, c->feed.reordered);
  hk_count(&s->counters.too_late, c->feed.too_late);
  hk_count(&s->counters.bad_datagrams, c->feed.malformed);
}

void hk_server_park(struct hk_server *s, struct hk_connection *c)
{
  c->parked = true;
  c->next_parked = NULL;
  *s->loop.parked_tail = c;
  s->loop.parked_tail = &c->next_parked;
}

/* Gives every parked connection a turn, in the order in which they were parked; those that cannot go on park again. */
static void wake_parked(struct hk_server *s)
{
  struct hk_connection *c = s->loop.parked;
  s->loop.parked = NULL;
  s->loop.parked_tail = &s->loop.parked;
  while (c) {
    struct hk_connection *next = c->next_parked;
    c->parked = false;
    hk_connection_go_on(c);
    c = next;
  }
}

uint64_t hk_server_feed_number(struct hk_server *s, const struct hk_connection *c)
{
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
    hk_log(&s->log, HK_LOG_ERROR, "no random numbers to be had; the feed of %s stays closed", c->peer);
  return (number & ~(uint64_t)0xffff) | c->index;
}

struct hk_connection *hk_server_feed(const struct hk_server *s, uint64_t feed)
{
  const uint32_t index = feed & 0xffff;
  struct hk_connection *c = index < s->max_connections && feed >> 16 != 0 ? s->by_index[index] : NULL;
  return c && c->state == HK_OPEN && c->greeted && c->feed_number == feed ? c : NULL;
}

uint32_t hk_server_frame_points(const struct hk_server *s)
{
  _Static_assert(HK_FRAME_MAX_LEAST / 8 >= HK_LINE_FIELDS, "a line's points have room where a frame's have");
  return (uint32_t)(s->config->max_frame / 8 + 1);
}

bool hk_server_read_datagrams(struct hk_server *s, int64_t until)
{
  bool all = true;
  for (uint32_t i = 0; i < s->n_listeners; i++) {
    struct hk_listener *l = &s->listeners[i];
    if (l->open && l->config->transport == HK_TRANSPORT_UDP && l->config->protocol == HK_PROTOCOL_BINARY)
      all &= hk_udp_read(l) || l->read_to >= until;
  }
  return all;
}

/* --- what the shard calls -------------------------------------------------------------------------------------------- */

static void on_results(void *arg, struct hk_batch *batch)
{
  struct hk_server *s = arg;
  for (uint32_t i = 0; i < batch->n_events; i++)
    if (hk_alerts_note(s->alerts, &batch->event[i]) != 0)
      hk_log_peer(&s->log, &s->forgetful, HK_LOG_WARNING, "alerts", "no memory to remember one that was raised");
  hk_publish(s->loop.publisher, batch);
}

static void on_dropped(void *arg, const struct hk_batch *batch)
{
  struct hk_server *s = arg;
  hk_publish_dropped(s->loop.publisher, batch);
}

void hk_server_evict(struct hk_server *s, uint32_t slot)
{
  struct hk_event cleared;
  if (hk_alerts_clear(s->alerts, slot, &cleared)) {
    const struct hk_batch notice = { .kind = HK_BATCH_SWEEP, .n_events = 1, .capacity = 1, .event = &cleared };
    hk_publish(s->loop.publisher, &notice);
    hk_count(&s->counters.cleared, 1);
  }
  hk_alerts_forget(s->alerts, slot);
  hk_publisher_forget(s->loop.publisher, slot);
  hk_registry_evict(s->registry, slot);
  hk_count(&s->counters.evicted, 1);
}

static void on_idle(void *arg, uint32_t slot)
{
  hk_server_evict(arg, slot);
}

static void on_lost(void *arg)
{
  hk_server_device_lost(arg);
}

static void on_device_failure(void *arg, const char *why)
{
  struct hk_server *s = arg;
  hk_shard_fail(&s->shard, why);
}

static void on_settled(void *arg)
{
  struct hk_server *s = arg;
  s->loop.intake.wall = hk_wall();
  wake_parked(s);
  if (s->deadline == 0)
    for (uint32_t i = 0; i < s->n_listeners; i++)
      if (s->listeners[i].config->transport == HK_TRANSPORT_UDP)
        hk_udp_go_on(&s->listeners[i]);
}

void hk_server_sum(const struct hk_server *s, struct hk_counters *sum)
{
  const struct hk_counters *of[] = { &s->counters, &s->loop.counters };
  *sum = (struct hk_counters){ 0 };
  hk_counters_sum(sum, of, 2);
}

/* --- the end --------------------------------------------------------------------------------------------------------- */

static void on_hangup(uv_signal_t *handle, int number)
{
  struct hk_server *s = handle->data;
  (void)number;
  hk_log(&s->log, HK_LOG_NOTICE, "SIGHUP: the configuration is read at the start only; restart to change it");
}

static void give_up(struct hk_server *s, struct hk_connection *c)
{
  const size_t unread = c->state == HK_CLOSED ? 0 : uv_stream_get_write_queue_size((const uv_stream_t *)&c->tcp);
  if (unread > 0)
    hk_log_peer(&s->log, &c->quota, HK_LOG_WARNING, c->peer, "closed: the daemon ends, and %zu bytes were not read in time",
                unread);
  hk_connection_close(c);
}

static void drain_step(struct hk_server *s)
{
  if (!hk_shard_quiet(&s->shard) && hk_now() < s->deadline)
    return;
  /* All is scored and published. Connections are told, flushed and closed; those that do not read are given up at the deadline.
   */
  for (struct hk_connection *c = s->loop.connections, *next; c; c = next) {
    next = c->next;
    if (hk_now() >= s->deadline)
      give_up(s, c);
    else
      hk_connection_refuse(c, HANKEL_SHUTTING_DOWN, "the daemon ends");
  }
  if (!s->loop.connections)
    uv_stop(&s->loop.uv);
}

void hk_server_end(struct hk_server *s)
{
  if (s->deadline != 0)
    return;
  hk_notify("STOPPING=1");
  s->deadline = hk_now() + s->config->drain;
  for (uint32_t i = 0; i < s->n_listeners; i++) {
    if (s->listeners[i].open && s->listeners[i].config->transport == HK_TRANSPORT_UDP)
      (void)hk_udp_read(&s->listeners[i]); /* what is here already */
    hk_listener_close(&s->listeners[i]);
  }
  for (struct hk_connection *c = s->loop.connections; c; c = c->next)
    hk_connection_drain(c);
}

static void on_signal(uv_signal_t *handle, int number)
{
  struct hk_server *s = handle->data;
  if (s->deadline != 0) {
    hk_log(&s->log, HK_LOG_WARNING, "second signal %d: ending at once", number);
    s->deadline = hk_now();
    drain_step(s);
    uv_stop(&s->loop.uv);
    return;
  }
  struct hk_counters sum;
  hk_server_sum(s, &sum);
  hk_log(&s->log, HK_LOG_INFO, "signal %d: scoring what waits (%" PRIu64 " points), then ending", number, hk_counters_pending(&sum));
  hk_server_end(s);
}

/* --- clocks ---------------------------------------------------------------------------------------------------------- */

static void on_launch(uv_check_t *check)
{
  struct hk_server *s = check->data;
  s->loop.turn++;
  hk_shard_launch(&s->shard);
  if (s->deadline != 0)
    drain_step(s);
}

static void on_second(uv_timer_t *timer)
{
  struct hk_server *s = timer->data;
  const int64_t now = hk_now();
  hk_shard_sweep(&s->shard);
  on_settled(s); /* whoever waits for room must not depend on results that never come */
  for (uint32_t i = 0; i < s->n_listeners; i++)
    hk_listener_retry(&s->listeners[i]);
  for (struct hk_connection *c = s->loop.connections, *next; c; c = next) {
    next = c->next;
    hk_connection_tick(c, now);
  }
  if (s->ticks++ % 10 == 0 && s->deadline == 0) {
    char state[256];
    struct hk_counters sum;
    hk_server_sum(s, &sum);
    snprintf(state, sizeof state,
             "STATUS=%s%u sensors on %s, %u connections, %" PRIu64 " points in, %" PRIu64 " scored, %" PRIu64 " dropped",
             s->shard.loss.time ? "DEVICE LOST; " : "", hk_registry_count(s->registry), hk_shard_backend(&s->shard),
             s->n_connections, sum.in, sum.scored, hk_counters_dropped(&sum));
    hk_notify(state);
  }
}

/* All is well while this runs and what is in flight comes back. A device that hangs is dealt with by the shard, normally long
 * before; a loop that hangs, or CPU threads that do, are what the watchdog is for. */
static void on_watchdog(uv_timer_t *timer)
{
  struct hk_server *s = timer->data;
  const int64_t stalled = hk_shard_stalled(&s->shard);
  if ((uint64_t)stalled / 1000 < s->watchdog_us)
    hk_notify("WATCHDOG=1");
  else
    hk_log(&s->log, HK_LOG_ERROR, "the %s backend has not finished a batch for %.1f s", hk_shard_backend(&s->shard),
           (double)stalled * 1e-9);
}

/* --- open, run, close ------------------------------------------------------------------------------------------------ */

/* As many connections as there are descriptors for. */
static void limit_connections(struct hk_server *s)
{
  struct rlimit files;
  s->max_connections = s->config->max_connections;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0)
    return;
  files.rlim_cur = files.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &files); /* what is had in the end is asked next */
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= (rlim_t)s->max_connections + SPARE_DESCRIPTORS)
    return;
  s->max_connections = files.rlim_cur > SPARE_DESCRIPTORS ? (uint32_t)files.rlim_cur - SPARE_DESCRIPTORS : 1;
  hk_log(&s->log, HK_LOG_WARNING,
         "max_connections = %u is beyond the limit of open files; %u are taken (ulimit -n, LimitNOFILE=)",
         s->config->max_connections, s->max_connections);
}

static int loop_open(struct hk_server *s, char *error, size_t size)
{
  int status = uv_loop_init(&s->loop.uv);
  if (status != 0) {
    snprintf(error, size, "event loop: %s", uv_strerror(status));
    return status;
  }
  s->loop.open = true;
  uv_check_init(&s->loop.uv, &s->launch);
  uv_timer_init(&s->loop.uv, &s->second);
  uv_timer_init(&s->loop.uv, &s->watchdog);
  s->launch.data = s->second.data = s->watchdog.data = s->terminate.data = s->interrupt.data = s->hangup.data = s;
  status = uv_signal_init(&s->loop.uv, &s->terminate);
  if (status == 0)
    status = uv_signal_init(&s->loop.uv, &s->interrupt);
  if (status == 0)
    status = uv_signal_init(&s->loop.uv, &s->hangup);
  if (status != 0)
    snprintf(error, size, "signals: %s", uv_strerror(status));
  return status;
}

int hk_server_open(struct hk_server *s, const struct hk_config *config, const struct hk_backend_kind *kinds, char *error,
                   size_t size)
{
  s->config = config;
  s->kinds = kinds;
  s->loop.server = s;
  s->loop.parked_tail = &s->loop.parked;
  s->started = hk_now();
  hk_log_init(&s->log, (enum hk_level)config->log_level);
  limit_connections(s);
  int status = loop_open(s, error, size);
  if (status != 0)
    return status;
  status = hk_shard_open(&s->shard, &s->loop.uv, kinds, config, error, size);
  if (status != 0)
    return status;
  if (s->shard.excuse[0])
    hk_log(&s->log, HK_LOG_INFO, "backend = auto: the CPU it is, not the GPU: %s", s->shard.excuse);
  s->by_index = calloc(s->max_connections, sizeof(struct hk_connection *));
  s->listeners = calloc(config->n_listeners, sizeof *s->listeners);
  status = s->by_index && s->listeners ? hk_stage_new(&s->stage, config->backlog, config->max_sensors) : -ENOMEM;
  if (status == 0)
    status = hk_registry_new(&s->registry, config, s->shard.device);
  if (status == 0)
    status = hk_alerts_new(&s->alerts, config->max_sensors);
  if (status == 0)
    status = hk_publisher_new(&s->loop.publisher, config, s->registry, &s->loop.counters);
  if (status != 0) {
    snprintf(error, size, "start: %s", strerror(-status));
    return status;
  }
  hk_registry_on_failure(s->registry, on_device_failure, s);
  s->shard.stage = s->stage;
  s->shard.log = &s->log;
  s->shard.counters = &s->loop.counters;
  s->shard.results = on_results;
  s->shard.dropped = on_dropped;
  s->shard.idle = on_idle;
  s->shard.settled = on_settled;
  s->shard.lost = on_lost;
  s->shard.arg = s;
  s->loop.intake = (struct hk_intake){ .registry = s->registry,
                                       .stage = s->stage,
                                       .chunk = hk_chunk_new(0),
                                       .counters = &s->loop.counters,
                                       .log = &s->log,
                                       .max_ahead = config->max_ahead,
                                       .max_pending = config->max_pending };
  s->loop.buffer = malloc(HK_LOOP_BUFFER);
  status = s->loop.intake.chunk && s->loop.buffer ? hk_lines_new(&s->loop.lines, &s->loop.intake, config->evict) : -ENOMEM;
  if (status != 0) {
    snprintf(error, size, "start: %s", strerror(-status));
    return status;
  }
  for (uint32_t i = 0; i < config->n_listeners; i++) {
    status = hk_listener_open(&s->listeners[i], &s->loop, &config->listeners[i], error, size);
    if (status != 0)
      return status;
    s->n_listeners++;
  }
  return 0;
}

int hk_server_run(struct hk_server *s)
{
  hk_shard_start(&s->shard);
  uv_check_start(&s->launch, on_launch);
  uv_timer_start(&s->second, on_second, 1000, 1000);
  uv_signal_start(&s->terminate, on_signal, SIGTERM);
  uv_signal_start(&s->interrupt, on_signal, SIGINT);
  uv_signal_start(&s->hangup, on_hangup, SIGHUP);
  s->watchdog_us = hk_notify_watchdog();
  if (s->watchdog_us > 0)
    uv_timer_start(&s->watchdog, on_watchdog, s->watchdog_us / 2000, s->watchdog_us / 2000);
  if (s->watchdog_us > 0 && s->shard.device->kind->device && (uint64_t)s->config->device_timeout / 1000 >= s->watchdog_us)
    hk_log(&s->log, HK_LOG_WARNING,
           "device_timeout = %.0f s is not below the watchdog's %.0f s (WatchdogSec=), which comes first",
           (double)s->config->device_timeout * 1e-9, (double)s->watchdog_us * 1e-6);
  hk_log(&s->log, HK_LOG_INFO, "hankeld " HANKELD_VERSION ", %s backend, %u detector%s, up to %u sensors",
         hk_shard_backend(&s->shard), s->config->n_detectors, s->config->n_detectors == 1 ? "" : "s", s->config->max_sensors);
  hk_log_bare("ready");
  hk_notify("READY=1");
  uv_run(&s->loop.uv, UV_RUN_DEFAULT);
  struct hk_counters sum;
  hk_server_sum(s, &sum);
  const uint64_t pending = hk_counters_pending(&sum);
  hk_log(&s->log, pending == 0 ? HK_LOG_INFO : HK_LOG_WARNING, "ended: %" PRIu64 " points in, %" PRIu64 " scored, %" PRIu64 " given up",
         sum.in, sum.scored, pending);
  return s->failed ? -EIO : 0;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
  (void)arg;
  if (!uv_is_closing(handle))
    uv_close(handle, NULL);
}

bool hk_server_close(struct hk_server *s)
{
  for (uint32_t i = 0; i < s->n_listeners; i++)
    hk_listener_close(&s->listeners[i]);
  for (struct hk_connection *c = s->loop.connections; c; c = c->next)
    hk_connection_close(c);
  const bool buried = hk_shard_close(&s->shard);
  if (s->loop.open) {
    uv_walk(&s->loop.uv, close_handle, NULL);
    uv_run(&s->loop.uv, UV_RUN_DEFAULT);
    uv_loop_close(&s->loop.uv);
    s->loop.open = false;
  }
  hk_publisher_free(s->loop.publisher);
  hk_alerts_free(s->alerts);
  hk_registry_free(s->registry);
  hk_stage_free(s->stage);
  hk_lines_free(s->loop.lines);
  hk_chunk_free(s->loop.intake.chunk);
  free(s->loop.buffer);
  free(s->listeners);
  free(s->by_index);
  return buried;
}
