/* The life of a shard: its thread and its timers. */
#include "daemon/scoring/shard_thread.h"

#include "daemon/base/thread.h"
#include "daemon/scoring/acknowledge.h"
#include "daemon/scoring/derived_points.h"
#include "daemon/scoring/evict.h"
#include "daemon/scoring/failover.h"
#include "daemon/scoring/groups.h"
#include "daemon/scoring/hand_over.h"
#include "daemon/scoring/held_partitions.h"
#include "daemon/scoring/look.h"
#include "daemon/scoring/rates.h"
#include "daemon/scoring/shard_reload.h"
#include "daemon/scoring/snapshot_slices.h"
#include "daemon/scoring/snapshot_thread.h"
#include "daemon/scoring/stall.h"
#include "daemon/scoring/survey.h"
#include "daemon/scoring/turn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define UV_PERIOD 1000000 /* ns that a busy thread may stay out of its event loop */
#define END 2             /* s that the thread gets to end, */
#define BURIAL 2          /* and an abandoned device */

/* However late this is called, at most two periods count as time without progress. */
static void on_check(uv_timer_t *timer)
{
  struct hk_shard *s = timer->data;
  const int64_t now = hk_now(), most = 2000000 * (int64_t)uv_timer_get_repeat(timer);
  const int64_t timeout = s->config->device_timeout;
  (void)hk_shard_turn(s);
  hk_stall_look(s, hk_queue_watch(&s->queue, now, most));
  s->life.beat = now;
  const int64_t stalled = hk_queue_stalled(&s->queue);
  if (timeout > 0 && stalled >= timeout && s->device->kind->device)
    hk_shard_lose(s, "it hangs: no answer for %.1f s (device_timeout = %.1f s)", (double)stalled * 1e-9, (double)timeout * 1e-9);
}

static void on_second(uv_timer_t *timer)
{
  struct hk_shard *s = timer->data;
  s->queue.sweeps.due = !s->replaying;
}

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

static void *run(void *arg)
{
  struct hk_shard *s = arg;
  hk_thread_name("shard", s->number);
  int64_t busy = hk_now(), looked = busy; /* when there was last work; when the event loop last ran */
  while (!s->life.quit) {
    const bool any = hk_shard_turn(s);
    const int64_t poll = s->config->busy_poll;
    const int64_t now = any || poll > 0 ? hk_now() : 0;
    const bool stay = any || (poll > 0 && now - busy < poll);
    if (any)
      busy = now;
    if (stay && now - looked < UV_PERIOD) {
      if (!any)
        pause_briefly();
      continue;
    }
    if (stay || !hk_sleep(&s->life.wake, HK_WAKE_WORK | HK_WAKE_BATCH)) {
      uv_run(&s->life.uv, UV_RUN_NOWAIT);
    } else {
      uv_run(&s->life.uv, UV_RUN_ONCE);
      hk_awake(&s->life.wake);
    }
    looked = hk_now();
  }
  return NULL;
}

int hk_shard_open(struct hk_shard *s, struct hk_shards *all, uint32_t number, struct hk_lane *lanes, char *error, size_t size)
{
  const struct hk_config *config = all->config;
  const uint32_t slots = (config->max_sensors + all->n - 1) / all->n;
  s->all = all;
  s->config = config;
  s->number = number;
  s->gate.durable = all->durable;
  s->gate.shard = number;
  s->lanes = lanes;
  hk_evictions_open(&s->evictions);
  pthread_mutex_init(&s->lock, NULL);
  hk_failover_open(&s->failover);
  int status = uv_loop_init(&s->life.uv);
  if (status != 0) {
    snprintf(error, size, "event loop: %s", uv_strerror(status));
    return status;
  }
  s->life.open = true;
  uv_timer_init(&s->life.uv, &s->life.check);
  uv_timer_init(&s->life.uv, &s->life.second);
  uv_timer_init(&s->life.uv, &s->life.saves);
  s->life.check.data = s->life.second.data = s;
  status = hk_wake_init(&s->life.wake, &s->life.uv);
  if (status == 0)
    status = hk_stage_new(&s->stage, config->backlog, slots, &s->counters.full);
  if (status == 0)
    status = hk_surveys_open(&s->requests.surveys, slots, hk_config_scores(config) / all->n);
  if (status == 0)
    status = hk_alerts_new(&s->alerts, slots);
  if (status == 0)
    status = hk_derive_open(&s->taking.derivation);
  if (status == 0)
    status = hk_groups_new(&s->machines.groups, s, slots, HK_GROUPS_FIRST);
  if (status == 0)
    status = hk_groups_new(&s->machines.seconds, s, slots, HK_GROUPS_SECOND);
  if (status == 0)
    status = hk_groups_new(&s->machines.fields, s, slots, HK_GROUPS_FIELDS);
  if (status == 0 && config->cluster.state[0] && !all->relays)
    status = hk_partitions_new(&s->requests.partitions, config, slots);
  if (status != 0) {
    snprintf(error, size, "start: %s", uv_strerror(status));
    return status;
  }
  struct hk_device *device;
  const struct hk_device_place place = { .number = number, .of = all->n, .wake = &s->life.wake };
  status = hk_device_choose(&device, all->kinds, config, &place, s->failover.excuse, sizeof s->failover.excuse, error, size);
  if (status != 0)
    return status;
  hk_shard_go_on(s, device);
  return 0;
}

int hk_shard_start(struct hk_shard *s, uint64_t beat)
{
  s->life.beat = hk_now();
  (void)hk_queue_watch(&s->queue, s->life.beat, 0);
  s->life.beat_most = beat;
  const uint64_t period = hk_shard_check_period(s);
  uv_timer_start(&s->life.check, on_check, period, period);
  uv_timer_start(&s->life.second, on_second, 1000, 1000);
  const int status = -pthread_create(&s->life.thread, NULL, run, s);
  s->life.running = status == 0;
  return status;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
  (void)arg;
  if (!uv_is_closing(handle))
    uv_close(handle, NULL);
}

static void drop_runs(const struct hk_run *runs, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    hk_source_done(runs[i].source, runs[i].n);
}

/* A device with batches in flight may not return them: it is abandoned, and gets some time. */
static void close_device(struct hk_shard *s)
{
  struct hk_device *d = s->device;
  if (!d)
    return;
  const uint32_t in_flight = hk_queue_in_flight(&s->queue);
  const struct hk_delivery *kept = hk_queue_kept(&s->queue);
  for (uint32_t i = 0; i < in_flight; i++) {
    const struct hk_delivery *p = hk_queue_flying(&s->queue, i);
    drop_runs(p->runs, p->n_runs);
  }
  if (kept)
    drop_runs(kept->runs, kept->n_runs);
  if (d->kind->device && in_flight > 0) {
    hk_shard_abandon(s, d, in_flight);
  } else {
    for (uint32_t left = in_flight; left > 0;) {
      d->backend->ops->wait(d->backend);
      while (left > 0 && d->backend->ops->reap(d->backend))
        left--;
    }
    hk_device_close(d);
  }
  s->device = NULL;
}

bool hk_shard_stop(struct hk_shard *s)
{
  if (!s->life.running)
    return true;
  s->life.quit = true;
  hk_wake_up(&s->life.wake, HK_WAKE_WORK);
  s->life.running = !hk_thread_join(s->life.thread, END);
  return !s->life.running;
}

bool hk_shard_close(struct hk_shard *s)
{
  if (!s->all)
    return true; /* was not opened */
  if (!hk_saver_close(s->saver))
    return false;
  s->saver = NULL;
  (void)hk_shard_take_back(s);
  hk_commit_gate_drop(&s->gate);
  hk_shard_drop_acknowledgements(s);
  hk_shard_drop_looks(s);
  hk_surveys_close(&s->requests.surveys);
  hk_shard_retire_free(s);
  hk_shard_drop_reload(s);
  if (s->taking.cursor.chunk) { /* partly taken: nothing processes the rest */
    struct hk_run *run = &s->taking.cursor.chunk->runs[s->taking.cursor.run];
    run->n -= s->taking.cursor.of_run;
    drop_runs(run, s->taking.cursor.chunk->n_runs - s->taking.cursor.run);
    if (s->taking.cursor.chunk != s->taking.derivation.made)
      hk_chunk_free(s->taking.cursor.chunk);
  }
  hk_derive_close(&s->taking.derivation);
  hk_groups_free(s->machines.groups);
  hk_groups_free(s->machines.seconds);
  hk_groups_free(s->machines.fields);
  close_device(s);
  hk_stage_free(s->stage);
  hk_rates_free(&s->rates);
  hk_provisional_free(s->provisional);
  hk_alerts_free(s->alerts);
  hk_partitions_free(s->requests.partitions);
  if (s->life.open) {
    uv_walk(&s->life.uv, close_handle, NULL);
    uv_run(&s->life.uv, UV_RUN_DEFAULT);
    uv_loop_close(&s->life.uv);
  }
  pthread_mutex_destroy(&s->lock);
  return hk_failover_close(&s->failover, BURIAL);
}
