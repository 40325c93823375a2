/* Launching, reaping, and noticing that the device is lost. */
#include "daemon/shard.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_MOST 1000000000 /* ns between two looks at a device; a tenth of its timeout where that is less */
#define BATCH_TIME 250000000  /* ns that a batch should take at most, more or less */
#define BATCH_LEAST 64        /* the part of its capacity below which it is not cut for that */
#define BURIAL 2              /* s that an abandoned device gets at the end */

static int64_t pop_launch(struct hk_shard *s)
{
  const int64_t at = s->launched[s->first];
  s->first = (s->first + 1) % HK_IN_FLIGHT;
  s->in_flight--;
  s->back++;
  return at;
}

static void give_back(struct hk_shard *s, struct hk_batch *b)
{
  if (b->kind == HK_BATCH_SWEEP) {
    s->sweep = b;
    return;
  }
  hk_stage_done(s->stage, b, b->owner);
  b->next = s->free;
  s->free = b;
}

static void count(struct hk_shard *s, const struct hk_batch *b)
{
  struct hk_counters *c = s->counters;
  uint64_t late = 0, rejected = 0, scored = 0;
  for (uint32_t i = 0; i < b->n; i++) {
    late += b->state[i] == HK_STATE_LATE;
    rejected += b->state[i] == HK_STATE_REJECTED;
    scored += !isnan(b->score[i]);
  }
  hk_count(&c->late, late);
  hk_count(&c->rejected, rejected);
  hk_count(&c->scored, scored);
  hk_count(&c->unscored, b->n - late - rejected - scored);
  for (uint32_t i = 0; i < b->n_events; i++) {
    hk_count(&c->raised, b->event[i].kind == HK_EVENT_RAISED);
    hk_count(&c->corrected, b->event[i].kind == HK_EVENT_CORRECTED);
    hk_count(&c->cleared, b->event[i].kind == HK_EVENT_CLEARED);
  }
}

/* There will be no results of this batch. reason: what its points are counted as. */
static void drop(struct hk_shard *s, struct hk_batch *b, hk_counter *reason)
{
  if (b->kind == HK_BATCH_POINTS) {
    hk_count(reason, b->n);
    s->dropped(s->arg, b);
  }
  give_back(s, b);
}

static void lose(struct hk_shard *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The device is lost. `filled` is dropped too: it lies in the device's memory. */
static void lose(struct hk_shard *s, const char *format, ...)
{
  struct hk_device *d = s->device;
  const uint32_t in_flight = s->in_flight;
  const uint64_t before = s->counters->device_lost;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(s->loss.why, sizeof s->loss.why, format, arguments);
  va_end(arguments);
  s->loss.time = hk_wall();
  s->loss.device = d->backend->ops->name;
  for (; s->in_flight > 0; pop_launch(s)) {
    s->loss.batches += s->flying[s->first]->kind == HK_BATCH_POINTS;
    drop(s, s->flying[s->first], &s->counters->device_lost);
  }
  if (s->filled)
    drop(s, s->filled, &s->counters->device_lost);
  s->loss.points += (uint32_t)(s->counters->device_lost - before);
  s->filled = s->free = s->sweep = NULL;
  s->refusals = 0;
  s->stalled = 0;
  s->device = NULL;
  hk_device_abandon(d, in_flight);
  s->abandoned = d;
  s->lost(s->arg);
}

void hk_shard_fail(struct hk_shard *s, const char *why)
{
  s->loss.batches = s->loss.points = 0;
  lose(s, "%s", why);
}

/* Deals with a batch that was not scored, for the reason `status`, and was not taken or has come back. */
static void failed(struct hk_shard *s, struct hk_batch *b, int status)
{
  struct hk_device *d = s->device;
  const char *why = hk_backend_failure(d->kind, d->backend, status), *name = d->backend->ops->name;
  const bool out_of_memory = status == -ENOMEM && ++s->refusals >= HK_SHARD_REFUSALS;
  if (d->kind->device && ((status != -EINVAL && status != -ENOMEM) || out_of_memory)) {
    s->loss.batches = b->kind == HK_BATCH_POINTS;
    s->loss.points = b->kind == HK_BATCH_POINTS ? b->n : 0;
    drop(s, b, &s->counters->device_lost);
    lose(s, "%s", why);
    return;
  }
  hk_log_peer(s->log, &s->failures, HK_LOG_ERROR, name, "a batch of %u points was refused, they are dropped: %s", b->n, why);
  drop(s, b, &s->counters->failed);
}

/* Notices are published before idle sensors are let go: one sensor may have both. */
static void swept(struct hk_shard *s, struct hk_batch *b)
{
  const uint32_t n = b->n_events;
  uint32_t notices = 0;
  for (uint32_t i = 0; i < n; i++) {
    const struct hk_event e = b->event[i];
    hk_count(&s->counters->stale, e.kind == HK_EVENT_STALE);
    hk_count(&s->counters->back, e.kind == HK_EVENT_BACK);
    if (e.kind != HK_EVENT_IDLE) {
      b->event[i] = b->event[notices];
      b->event[notices++] = e;
    }
  }
  b->n_events = notices;
  s->results(s->arg, b);
  for (uint32_t i = notices; i < n; i++)
    if (hk_stage_pending_of(s->stage, b->event[i].slot) == 0)
      s->idle(s->arg, b->event[i].slot);
  s->sweep = b;
}

/* Learns from a batch that took so long, of the device's own time, how many points the next may have. */
static void pace(struct hk_shard *s, const struct hk_batch *b, int64_t busy)
{
  const uint32_t least = b->capacity / BATCH_LEAST;
  if (busy > 2 * BATCH_TIME && s->most / 2 >= least)
    s->most /= 2;
  else if (busy < BATCH_TIME / 2 && b->n == s->most && s->most < b->capacity)
    s->most *= 2;
}

/* The device may change meanwhile, when it turns out to be lost. */
static void reap(struct hk_shard *s)
{
  struct hk_batch *b;
  while (s->device && (b = s->device->backend->ops->reap(s->device->backend)) != NULL) {
    const int64_t now = hk_now(), launched = pop_launch(s), took = (now - launched) / 1000;
    const int64_t busy = now - (launched > s->back_at ? launched : s->back_at); /* before, it was at the batch before */
    s->back_at = now;
    if (b->status != 0) {
      failed(s, b, b->status);
      continue;
    }
    if (b->kind == HK_BATCH_SWEEP) {
      swept(s, b);
      continue;
    }
    s->refusals = 0;
    unsigned bin = 0;
    while (bin + 1 < HK_SHARD_LATENCIES && took >> (bin + 1) > 0)
      bin++;
    s->latency[bin]++;
    hk_count(&s->counters->batches, 1);
    pace(s, b, busy);
    count(s, b);
    s->results(s->arg, b);
    give_back(s, b);
  }
}

/* 0, or HK_AGAIN. */
static int submit(struct hk_shard *s, struct hk_batch *b)
{
  b->arrival = hk_now();
  const int status = s->device->backend->ops->submit(s->device->backend, b);
  if (status == HK_AGAIN)
    return HK_AGAIN;
  if (status != 0) {
    failed(s, b, status);
    return 0;
  }
  const uint32_t place = (s->first + s->in_flight) % HK_IN_FLIGHT;
  s->flying[place] = b;
  s->launched[place] = b->arrival;
  s->in_flight++;
  return 0;
}

void hk_shard_launch(struct hk_shard *s)
{
  if (s->sweep_due && s->sweep && s->in_flight < HK_IN_FLIGHT) {
    struct hk_batch *b = s->sweep;
    b->n = 0;
    b->idle = s->evict;
    s->sweep = NULL;
    s->sweep_due = false;
    if (submit(s, b) == HK_AGAIN) {
      s->sweep = b;
      s->sweep_due = true;
    }
  }
  while (s->in_flight < HK_IN_FLIGHT && (s->filled || (s->free && hk_stage_waiting(s->stage) > 0))) {
    struct hk_batch *b = s->filled;
    s->filled = NULL;
    if (!b) {
      b = s->free;
      s->free = b->next;
      hk_stage_fill(s->stage, b, s->most, b->owner);
    }
    if (submit(s, b) == HK_AGAIN) {
      s->filled = b;
      return;
    }
  }
}

static void turn(struct hk_shard *s)
{
  reap(s);
  s->settled(s->arg);
  hk_shard_launch(s);
}

static void on_wake(uv_async_t *wake)
{
  turn(wake->data);
}

/* Looks whether anything has come back since the last look. However late this is called, no more than two periods count: where
 * the loop did not run (the process was stopped, the machine was busy) the device's own threads may not have run either. */
static void on_check(uv_timer_t *timer)
{
  struct hk_shard *s = timer->data;
  const int64_t now = hk_now(), since = now - s->checked, most = 2000000 * (int64_t)uv_timer_get_repeat(timer);
  turn(s);
  s->stalled = s->in_flight > 0 && s->back == s->back_then ? s->stalled + (since < most ? since : most) : 0;
  s->checked = now;
  s->back_then = s->back;
  if (s->timeout > 0 && s->stalled >= s->timeout && s->device->kind->device)
    lose(s, "it hangs: nothing has come back from it for %.1f s (device_timeout = %.1f s)", (double)s->stalled * 1e-9,
         (double)s->timeout * 1e-9);
}

void hk_shard_sweep(struct hk_shard *s)
{
  s->sweep_due = true;
}

bool hk_shard_quiet(const struct hk_shard *s)
{
  return !s->device || (s->in_flight == 0 && !s->filled && hk_stage_waiting(s->stage) == 0);
}

int64_t hk_shard_stalled(const struct hk_shard *s)
{
  return s->stalled;
}

const char *hk_shard_backend(const struct hk_shard *s)
{
  return s->device ? s->device->backend->ops->name : "none";
}

uint64_t hk_shard_latency(const struct hk_shard *s, double share)
{
  uint64_t all = 0, sum = 0;
  for (unsigned i = 0; i < HK_SHARD_LATENCIES; i++)
    all += s->latency[i];
  for (unsigned i = 0; all > 0 && i < HK_SHARD_LATENCIES; i++) {
    sum += s->latency[i];
    if ((double)sum >= share * (double)all)
      return (uint64_t)2 << i;
  }
  return 0;
}

void hk_shard_go_on(struct hk_shard *s, struct hk_device *device)
{
  s->device = device;
  s->most = device->kind->batch / 16;
  for (unsigned i = 0; i < HK_IN_FLIGHT; i++) {
    device->batches[i]->next = s->free;
    s->free = device->batches[i];
  }
  s->sweep = device->batches[HK_IN_FLIGHT];
}

int hk_shard_open(struct hk_shard *s, uv_loop_t *loop, const struct hk_backend_kind *kinds, const struct hk_config *config,
                  char *error, size_t size)
{
  memset(s, 0, sizeof *s);
  s->evict = config->evict;
  s->timeout = config->device_timeout;
  int status = uv_async_init(loop, &s->wake, on_wake);
  if (status != 0) {
    snprintf(error, size, "event loop: %s", uv_strerror(status));
    return status;
  }
  uv_timer_init(loop, &s->check);
  s->wake.data = s->check.data = s;
  struct hk_device *device;
  status = hk_device_choose(&device, kinds, config, &s->wake, s->excuse, sizeof s->excuse, error, size);
  if (status != 0) {
    uv_close((uv_handle_t *)&s->wake, NULL);
    uv_close((uv_handle_t *)&s->check, NULL);
    return status;
  }
  hk_shard_go_on(s, device);
  return 0;
}

void hk_shard_start(struct hk_shard *s)
{
  const int64_t tenth = s->timeout / 10;
  const uint64_t period = (uint64_t)(s->timeout > 0 && tenth < CHECK_MOST ? tenth : CHECK_MOST) / 1000000;
  s->checked = hk_now();
  uv_timer_start(&s->check, on_check, period, period);
}

/* A device with batches in flight may not give them back: it is abandoned, and gets a moment. */
bool hk_shard_close(struct hk_shard *s)
{
  if (!s->loss.time && !s->device)
    return true; /* was not opened */
  if (s->device && s->device->kind->device && s->in_flight > 0) {
    hk_device_abandon(s->device, s->in_flight);
    s->abandoned = s->device;
  } else if (s->device) {
    while (s->in_flight > 0) {
      s->device->backend->ops->wait(s->device->backend);
      while (s->in_flight > 0 && s->device->backend->ops->reap(s->device->backend))
        (void)pop_launch(s);
    }
    hk_device_close(s->device);
  }
  s->device = NULL;
  uv_close((uv_handle_t *)&s->wake, NULL);
  uv_close((uv_handle_t *)&s->check, NULL);
  return !s->abandoned || hk_device_bury(s->abandoned, BURIAL);
}
