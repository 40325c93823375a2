/* Launching and reaping. A batch that comes back with a status was not scored: its points are counted as dropped, and the
 * daemon goes on. */
#include "daemon/shard.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_HOST 16384u
#define CAPACITY_DEVICE 262144u

static void on_ready(void *arg)
{
  struct hk_shard *s = arg;
  (void)uv_async_send(&s->wake); /* fails on a handle that is closing only, and the backend is closed before that */
}

static int64_t pop_launch(struct hk_shard *s)
{
  const int64_t at = s->launched[s->first_launch];
  s->first_launch = (s->first_launch + 1) % HK_SHARD_IN_FLIGHT;
  s->in_flight--;
  return at;
}

static void count(struct hk_shard *s, const struct hk_batch *b)
{
  struct hk_counters *c = s->counters;
  c->pending -= b->n;
  if (b->status != 0) {
    c->failed += b->n;
    return;
  }
  uint64_t late = 0, rejected = 0, scored = 0;
  for (uint32_t i = 0; i < b->n; i++) {
    late += b->state[i] == HK_STATE_LATE;
    rejected += b->state[i] == HK_STATE_REJECTED;
    scored += !isnan(b->score[i]);
  }
  c->late += late;
  c->rejected += rejected;
  c->scored += scored;
  c->unscored += b->n - late - rejected - scored;
  for (uint32_t i = 0; i < b->n_events; i++) {
    c->raised += b->event[i].kind == HK_EVENT_RAISED;
    c->corrected += b->event[i].kind == HK_EVENT_CORRECTED;
    c->cleared += b->event[i].kind == HK_EVENT_CLEARED;
  }
}

/* Notices are published before idle sensors are let go: one sensor may have both. */
static void swept(struct hk_shard *s, struct hk_batch *b)
{
  if (b->status == 0) {
    const uint32_t n = b->n_events;
    uint32_t notices = 0;
    for (uint32_t i = 0; i < n; i++) {
      const struct hk_event e = b->event[i];
      s->counters->stale += e.kind == HK_EVENT_STALE;
      s->counters->back += e.kind == HK_EVENT_BACK;
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
  }
  s->sweep = b;
}

static void reap(struct hk_shard *s)
{
  struct hk_batch *b;
  while ((b = s->backend->ops->reap(s->backend)) != NULL) {
    const int64_t took = (hk_now() - pop_launch(s)) / 1000;
    if (b->status != 0)
      hk_log_peer(s->log, &s->failures, HK_LOG_ERROR, s->backend->ops->name, "a batch of %u points was not scored: %s", b->n,
                  hk_backend_failure(s->backend, b->status));
    if (b->kind == HK_BATCH_SWEEP) {
      swept(s, b);
      continue;
    }
    unsigned bin = 0;
    while (bin + 1 < HK_SHARD_LATENCIES && took >> (bin + 1) > 0)
      bin++;
    s->latency[bin]++;
    s->counters->batches++;
    count(s, b);
    if (b->status == 0)
      s->results(s->arg, b);
    hk_stage_done(s->stage, b, b->owner);
    b->next = s->free;
    s->free = b;
  }
}

/* 0, or HK_AGAIN. Any other refusal is a fault of ours: said, and the points are counted as dropped. */
static int submit(struct hk_shard *s, struct hk_batch *b)
{
  b->arrival = hk_now();
  const int status = s->backend->ops->submit(s->backend, b);
  if (status == 0) {
    s->launched[(s->first_launch + s->in_flight) % HK_SHARD_IN_FLIGHT] = b->arrival;
    s->in_flight++;
  } else if (status != HK_AGAIN) {
    hk_log_peer(s->log, &s->failures, HK_LOG_ERROR, s->backend->ops->name, "a batch of %u points was refused: %s", b->n,
                strerror(-status));
    b->status = status;
    if (b->kind == HK_BATCH_SWEEP) {
      s->sweep = b;
    } else {
      count(s, b);
      hk_stage_done(s->stage, b, b->owner);
      b->next = s->free;
      s->free = b;
    }
  }
  return status == HK_AGAIN ? HK_AGAIN : 0;
}

void hk_shard_launch(struct hk_shard *s)
{
  if (s->sweep_due && s->sweep && s->in_flight < HK_SHARD_IN_FLIGHT) {
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
  while (s->in_flight < HK_SHARD_IN_FLIGHT && (s->filled || (s->free && hk_stage_waiting(s->stage) > 0))) {
    struct hk_batch *b = s->filled;
    s->filled = NULL;
    if (!b) {
      b = s->free;
      s->free = b->next;
      hk_stage_fill(s->stage, b, b->owner);
    }
    if (submit(s, b) == HK_AGAIN) {
      s->filled = b;
      return;
    }
  }
}

static void on_wake(uv_async_t *wake)
{
  struct hk_shard *s = wake->data;
  reap(s);
  s->settled(s->arg);
  hk_shard_launch(s);
}

void hk_shard_sweep(struct hk_shard *s)
{
  s->sweep_due = true;
}

bool hk_shard_quiet(const struct hk_shard *s)
{
  return s->in_flight == 0 && !s->filled && hk_stage_waiting(s->stage) == 0;
}

int64_t hk_shard_age(const struct hk_shard *s)
{
  return s->in_flight ? hk_now() - s->launched[s->first_launch] : 0;
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

static void free_batches(struct hk_shard *s)
{
  for (unsigned i = 0; i <= HK_SHARD_IN_FLIGHT; i++) {
    if (s->batches[i])
      free(s->batches[i]->owner);
    hk_batch_free(s->batches[i]);
    s->batches[i] = NULL;
  }
}

int hk_shard_open(struct hk_shard *s, uv_loop_t *loop, const struct hk_config *config, char *error, size_t size)
{
  memset(s, 0, sizeof *s);
  s->evict = config->evict;
  int status = uv_async_init(loop, &s->wake, on_wake);
  if (status != 0) {
    snprintf(error, size, "event loop: %s", uv_strerror(status));
    return status;
  }
  s->wake.data = s;
  status = hk_backend_open(&s->backend, config, on_ready, s, error, size);
  if (status != 0) {
    uv_close((uv_handle_t *)&s->wake, NULL);
    return status;
  }
  s->capacity = strcmp(s->backend->ops->name, "cuda") == 0 ? CAPACITY_DEVICE : CAPACITY_HOST;
  for (unsigned i = 0; i <= HK_SHARD_IN_FLIGHT; i++) {
    struct hk_batch *b = s->batches[i] = hk_batch_new(s->backend, s->capacity);
    if (!b || !(b->owner = calloc(s->capacity, sizeof(uint32_t)))) {
      snprintf(error, size, "no memory for batches of %u points", s->capacity);
      hk_shard_close(s);
      return -ENOMEM;
    }
    b->kind = i == HK_SHARD_IN_FLIGHT ? HK_BATCH_SWEEP : HK_BATCH_POINTS;
    if (b->kind == HK_BATCH_SWEEP) {
      s->sweep = b;
    } else {
      b->next = s->free;
      s->free = b;
    }
  }
  return 0;
}

void hk_shard_close(struct hk_shard *s)
{
  if (!s->backend)
    return;
  /* Batches may be freed once the backend gave them back. */
  while (s->in_flight > 0) {
    s->backend->ops->wait(s->backend);
    while (s->in_flight > 0 && s->backend->ops->reap(s->backend))
      (void)pop_launch(s);
  }
  free_batches(s);
  s->backend->ops->close(s->backend);
  s->backend = NULL;
  uv_close((uv_handle_t *)&s->wake, NULL);
}
