/* Launching and reaping: chunks into batches, batches to the device, results to the loops. */
#include "daemon/scoring/turn.h"
#include "daemon/scoring/acknowledge.h"
#include "daemon/scoring/alert_log.h"
#include "daemon/scoring/derived_points.h"
#include "daemon/scoring/evict.h"
#include "daemon/scoring/failover.h"
#include "daemon/scoring/field_rows.h"
#include "daemon/scoring/group_rows.h"
#include "daemon/scoring/groups.h"
#include "daemon/scoring/hand_over.h"
#include "daemon/scoring/held_partitions.h"
#include "daemon/scoring/late_results.h"
#include "daemon/scoring/look.h"
#include "daemon/scoring/provisional_results.h"
#include "daemon/scoring/rates.h"
#include "daemon/scoring/relay.h"
#include "daemon/scoring/shard.h"
#include "daemon/scoring/shard_reload.h"
#include "daemon/scoring/snapshot_slices.h"
#include "daemon/scoring/survey.h"
#include "daemon/sensors/companions.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STALE_MOST 1024 /* maximum number of stale alerts cleared in one sweep */
#define AHEAD 16384u    /* points that justify a batch while the device works on another */

/* --- results --------------------------------------------------------------------------------------------------------- */

static void count(struct hk_shard *s, struct hk_delivery *p)
{
  const struct hk_batch *b = p->batch;
  uint32_t late = 0, rejected = 0, scored = 0;
  for (uint32_t i = 0; i < b->n; i++) {
    late += b->state[i] == HK_STATE_LATE;
    rejected += b->state[i] == HK_STATE_REJECTED;
  }
  for (uint32_t i = 0; i < b->n; i++)
    scored += !isnan(b->score[i]);
  hk_scores_note(s, b);
  p->late = late;
  p->rejected = rejected;
  p->scored = scored;
  p->unscored = b->n - late - rejected - scored;
  s->taking.reach.rested = p->scored + p->unscored > 0 ? p->stamps.reaped : s->taking.reach.rested;
  hk_late_note(s, p);
  for (uint32_t i = 0; i < b->n_events; i++) {
    hk_count(&s->counters.raised, b->event[i].kind == HK_EVENT_RAISED);
    hk_count(&s->counters.corrected, b->event[i].kind == HK_EVENT_CORRECTED);
    hk_count(&s->counters.cleared, b->event[i].kind == HK_EVENT_CLEARED);
  }
}

/* Translates the slots of a batch's points to the registry's. */
static void name_slots(const struct hk_shard *s, struct hk_batch *b)
{
  for (uint32_t i = 0; s->all->n > 1 && i < b->n; i++)
    b->slot[i] = hk_slot_outside(s, b->slot[i]);
}

static void hand_over(struct hk_shard *s, struct hk_delivery *p)
{
  hk_queue_count_gone(&s->queue);
  hk_shard_hand_over(s, p, false);
}

/* Hands over a batch that has come back, once the points that it may contain are committed. */
static void show(struct hk_shard *s, struct hk_delivery *p)
{
  if (!hk_commit_gate_holds(&s->gate, p))
    hand_over(s, p);
}

/* Hands over the held batches whose points are committed. Returns whether there were any. */
static bool show_held(struct hk_shard *s)
{
  bool any = false;
  for (struct hk_delivery *p; (p = hk_commit_gate_next(&s->gate)) != NULL; any = true) {
    struct hk_device *device = p->device;
    hand_over(s, p);
    if (device)
      atomic_fetch_sub_explicit(&device->lent, 1, memory_order_release);
  }
  return any;
}

/* Processes a batch that has come back with results: records its alerts; translates its slots to the registry's. */
static void publish(struct hk_shard *s, struct hk_delivery *p)
{
  struct hk_batch *b = p->batch;
  uint32_t told = 0;
  p->events = 0;
  if (p->sequence && b->kind == HK_BATCH_POINTS)
    hk_alerts_count(s->alerts, b->n, b->slot, p->sequence);
  for (uint32_t i = 0; i < b->n_events; i++) {
    struct hk_event e = b->event[i];
    if (!hk_shard_pass_event(s, &e))
      continue;
    if (hk_alerts_note(s->alerts, &e) != 0)
      hk_log_peer(s->all->log, &s->quotas.forgetful, HK_LOG_WARNING, "alerts", "no memory to remember a raised alert");
    if (hk_shard_log_event(s, p, &e, hk_string("")))
      continue;
    e.slot = hk_slot_outside(s, e.slot);
    b->event[told++] = e;
  }
  b->n_events = told;
  if (b->kind == HK_BATCH_POINTS)
    hk_reach_pass(&s->taking.reach, &p->reach); /* after its events */
  name_slots(s, b);                             /* a sweep has no points */
  p->kind = HK_DELIVERY_RESULTS;
  show(s, p);
}

/* A batch will have no results. lost: with its device. */
static void drop(struct hk_shard *s, struct hk_delivery *p, bool lost)
{
  struct hk_batch *b = p->batch;
  if (b->kind == HK_BATCH_SWEEP) {
    s->queue.sweeps.delivery = p;
    s->queue.sweeps.put_off = false; /* it is not repeated before the next is due */
    hk_queue_count_gone(&s->queue);
    return;
  }
  if (b->kind == HK_BATCH_EXPORT) {
    hk_saver_dropped(s->saver, p, lost ? "the device was lost" : "the device refused an export");
    return;
  }
  name_slots(s, b);
  p->kind = HK_DELIVERY_DROPPED;
  p->late = p->derived.late = p->rejected = p->derived.rejected = p->scored = p->unscored = 0;
  p->failed = lost ? 0 : b->n;
  p->device_lost = lost ? b->n : 0;
  show(s, p);
}

/* Counts what is lost with the device. */
static void lose(struct hk_shard *s, struct hk_delivery *p, bool in_flight)
{
  if (p->batch->kind == HK_BATCH_POINTS)
    hk_shard_count_lost(s, in_flight, p->batch->n);
  drop(s, p, true);
}

uint32_t hk_shard_drop_all(struct hk_shard *s)
{
  const uint32_t in_flight = hk_queue_in_flight(&s->queue);
  while (hk_queue_in_flight(&s->queue) > 0)
    lose(s, hk_queue_pop(&s->queue), true);
  if (hk_queue_kept(&s->queue))
    lose(s, hk_queue_kept(&s->queue), false); /* it is in the device's memory */
  hk_queue_abandon(&s->queue);
  return in_flight;
}

/* Handles a batch that was not scored for the reason `status`, whether it was refused or has come back. */
static void failed(struct hk_shard *s, struct hk_delivery *p, int status)
{
  struct hk_device *d = s->device;
  const char *why = hk_backend_failure(d->kind, d->backend, status), *name = d->backend->ops->name;
  const bool out_of_memory = status == -ENOMEM && hk_queue_refused(&s->queue);
  const uint32_t n = p->batch->n;
  if (d->kind->device && ((status != -EINVAL && status != -ENOMEM) || out_of_memory)) {
    lose(s, p, true);
    hk_shard_lose(s, "%s", why);
    return;
  }
  hk_log_peer(s->all->log, &s->quotas.failures, HK_LOG_ERROR, name, "a batch of %u points was refused and dropped: %s", n, why);
  drop(s, p, false);
}

/* Ends alerts whose sensors have been silent for too long, since no point would end them. The rest follows in the next sweep. */
static void clear_stale(struct hk_shard *s)
{
  uint32_t slots[STALE_MOST];
  const int64_t after = s->config->stale_alerts;
  if (after == 0)
    return;
  const uint32_t n = hk_alerts_long_silent(s->alerts, hk_now() - after, slots, STALE_MOST);
  for (uint32_t i = 0; i < n; i++)
    slots[i] = hk_slot_outside(s, slots[i]);
  const uint32_t cleared = n > 0 ? hk_shard_clear(s, slots, n) : 0;
  if (cleared > 0)
    hk_log(s->all->log, HK_LOG_NOTICE, "stale alerts cleared: %u, of sensors that have been silent for %.0f s (stale_alerts)",
           cleared, (double)after * 1e-9);
}

/* Publishes notices; evicts sensors that were silent for too long, and ends their standing alerts. */
static void swept(struct hk_shard *s, struct hk_delivery *p)
{
  struct hk_batch *b = p->batch;
  const uint32_t n = b->n_events;
  const bool reviews = hk_shard_reviews(s), busy = hk_evictions_any(&s->evictions) || reviews; /* one eviction at a time */
  uint32_t *idle = busy ? NULL : malloc((n + 1) * HK_LEAVING_MOST * sizeof *idle);
  uint32_t n_idle = 0, told = 0;
  s->queue.sweeps.put_off = false;
  for (uint32_t i = 0; i < n; i++) {
    struct hk_event e = b->event[i];
    hk_count(&s->counters.stale, e.kind == HK_EVENT_STALE);
    hk_count(&s->counters.back, e.kind == HK_EVENT_BACK);
    if (e.kind == HK_EVENT_STALE || e.kind == HK_EVENT_BACK)
      hk_alerts_silent(s->alerts, e.slot, e.kind == HK_EVENT_STALE ? hk_now() : 0);
    if (e.kind == HK_EVENT_IDLE) {
      const uint32_t slot = hk_slot_outside(s, e.slot);
      s->queue.sweeps.put_off |= reviews;
      if (!idle || !hk_registry_holds(s->all->registry, slot) || hk_registry_derived(s->all->registry, slot))
        continue;
      n_idle = hk_shard_with_companions(s, slot, idle, n_idle);
      if (!hk_alerts_clear(s->alerts, e.slot, &e))
        continue;
      hk_count(&s->counters.cleared, 1);
    }
    b->event[told++] = e;
  }
  b->n_events = told;
  publish(s, p);
  clear_stale(s);
  if (n_idle > 0)
    hk_shard_retire(s, idle, n_idle, HK_RETIRE_EVICTED);
  else
    free(idle);
}

static struct hk_batch *reap_one(struct hk_shard *s)
{
  struct hk_device *d = s->device;
  if (!d || hk_queue_in_flight(&s->queue) == 0)
    return NULL;
  pthread_mutex_lock(&d->calls);
  struct hk_batch *b = d->backend->ops->reap(d->backend);
  pthread_mutex_unlock(&d->calls);
  return b;
}

/* The device may change meanwhile, if it is found lost. */
static bool reap(struct hk_shard *s)
{
  struct hk_batch *b;
  bool any = false;
  while ((b = reap_one(s)) != NULL) {
    struct hk_stamps *stamps = &((struct hk_delivery *)b->owner)->stamps;
    const int64_t before = hk_queue_back(&s->queue, stamps->reaped = hk_now());
    (void)hk_queue_pop(&s->queue); /* it is the oldest */
    any = true;
    if (b->status != 0) {
      failed(s, b->owner, b->status);
      continue;
    }
    if (b->kind == HK_BATCH_SWEEP) {
      swept(s, b->owner);
      continue;
    }
    if (b->kind == HK_BATCH_EXPORT) {
      hk_saver_back(s->saver, b->owner);
      continue;
    }
    hk_queue_pace(&s->queue, b->owner, before);
    hk_count(&s->counters.batches, 1);
    hk_provisional_apply(s, b);
    hk_groups_mark(s->machines.groups, b->owner);
    hk_groups_mark(s->machines.seconds, b->owner);
    hk_fields_mark(s->machines.fields, b->owner);
    count(s, b->owner);
    publish(s, b->owner);
  }
  return any;
}

/* --- batches --------------------------------------------------------------------------------------------------------- */

/* The next points of the current chunk, or of the next chunk, of the loops in turn. */
static bool next_chunk(struct hk_shard *s)
{
  const bool pauses = hk_reload_waits(&s->reload) || (s->saver && hk_saver_pauses(s->saver));
  if (!s->taking.cursor.chunk && s->taking.derivation.from && !s->taking.derivation.rests)
    hk_derive_go_on(s);
  for (uint32_t i = 0; !s->taking.cursor.chunk && !s->taking.derivation.from && !pauses && i < s->all->n_loops &&
                       hk_commit_gate_has_room(&s->gate);
       i++) {
    struct hk_lane *lane = &s->lanes[s->taking.turn];
    struct hk_chunk *chunk = hk_ring_take(&lane->sealed);
    s->taking.turn = (s->taking.turn + 1) % s->all->n_loops;
    if (!chunk)
      continue;
    hk_wake_up(lane->loop, HK_WAKE_TAKEN);
    if (chunk == &lane->token) {
      lane->tokens++;
    } else {
      if (!s->replaying && hk_groups_any(s->machines.groups))
        hk_groups_look(s->machines.groups, chunk);
      if (!s->replaying && hk_groups_any(s->machines.seconds))
        hk_groups_look(s->machines.seconds, chunk);
      if (!s->replaying && hk_groups_any(s->machines.fields))
        hk_fields_look(s->machines.fields, chunk);
      hk_commit_gate_take(&s->gate, chunk);
      hk_derive_begin(s, chunk);
    }
  }
  return s->taking.cursor.chunk != NULL;
}

/* No point that waits is before this: those of chains, the rest of the current chunk, and points derived from it before that come
 * later. */
static int64_t turn_to_come(const struct hk_shard *s)
{
  const struct hk_cursor *c = &s->taking.cursor;
  const int64_t chained = hk_stage_earliest(s->stage), next = c->chunk ? c->chunk->time[c->at] : INT64_MAX,
                made = s->taking.derivation.from ? s->taking.derivation.from->time[0] : INT64_MAX;
  const int64_t least = chained < next ? chained : next;
  return least < made ? least : made;
}

/* Fills a batch with waiting points. NULL: no batch is free, or no point waits. */
static struct hk_delivery *fill(struct hk_shard *s)
{
  struct hk_delivery *p = hk_queue_free(&s->queue);
  const bool chunks = next_chunk(s);
  if (!p || !(chunks || hk_stage_chained(s->stage) > 0))
    return NULL;
  const uint32_t slots = (hk_registry_slots(s->all->registry) + s->all->n - 1) / s->all->n;
  const uint64_t dropped = s->counters.full;
  hk_stage_begin(s->stage, p, hk_queue_most(&s->queue), slots, chunks);
  while (hk_stage_room(s->stage) && next_chunk(s)) {
    struct hk_chunk *chunk = s->taking.cursor.chunk;
    if (!hk_stage_take(s->stage, &s->taking.cursor))
      break;
    if (chunk == s->taking.derivation.made)
      continue;
    struct hk_lane *lane = &s->lanes[chunk->loop];
    (void)hk_ring_put(&lane->emptied, chunk); /* the ring has room for all */
    hk_wake_up(lane->loop, HK_WAKE_ROOM);
  }
  if (s->counters.full != dropped)
    hk_shard_settled(s);
  hk_count(&s->counters.launched, p->batch->n);
  if (p->batch->n == 0)
    return NULL; /* all were dropped, or put into chains */
  hk_rates_apply(s, p->batch);
  hk_queue_use(&s->queue);
  p->position = hk_commit_gate_position(&s->gate);
  p->reach = (struct hk_batch_reach){ 0 };
  if (s->all->config->incidents.n > 0 || hk_eventlog_shared(s->all->events))
    hk_reach_take(&s->taking.reach, &p->reach, p->batch, hk_stage_unchained(s->stage), hk_stage_held_at(s->stage),
                  turn_to_come(s));
  return p;
}

/* Returns 0 or HK_AGAIN. */
int hk_shard_submit(struct hk_shard *s, struct hk_delivery *p)
{
  struct hk_device *d = s->device;
  struct hk_batch *b = p->batch;
  p->stamps.submitted = hk_now();
  b->arrival = p->stamps.submitted + s->ahead;
  pthread_mutex_lock(&d->calls);
  const int status = d->backend->ops->submit(d->backend, b);
  pthread_mutex_unlock(&d->calls);
  if (status == HK_AGAIN)
    return HK_AGAIN;
  if (status != 0) {
    failed(s, p, status);
    return 0;
  }
  hk_queue_put(&s->queue, p);
  return 0;
}

static void launch_sweep(struct hk_shard *s)
{
  struct hk_delivery *p = s->queue.sweeps.delivery;
  p->batch->n = p->n_runs = 0;
  p->late = p->derived.late = p->rejected = p->derived.rejected = p->scored = p->unscored = p->failed = p->device_lost = 0;
  p->position = 0; /* it comes after earlier launched batches */
  p->batch->idle = s->config->evict;
  s->queue.sweeps.delivery = NULL;
  s->queue.sweeps.due = false;
  if (hk_shard_submit(s, p) == HK_AGAIN) {
    s->queue.sweeps.delivery = p;
    s->queue.sweeps.due = true;
    return;
  }
  hk_queue_count_sweep(&s->queue);
}

/* Whether this many points wait, in chunks and chains. */
static bool so_many_wait(const struct hk_shard *s, uint64_t enough)
{
  uint64_t n = hk_stage_chained(s->stage) + hk_taking_left(&s->taking);
  for (uint32_t i = 0; n < enough && i < s->all->n_loops; i++) {
    const struct hk_ring *sealed = &s->lanes[i].sealed;
    const uint32_t chunks = hk_ring_count(sealed);
    for (uint32_t k = 0; n < enough && k < chunks; k++)
      n += ((const struct hk_chunk *)hk_ring_look(sealed, k))->n;
  }
  return n >= enough;
}

/* A device processes one batch after the other, and a small one takes almost as long as one of thousands of points. So few
 * points wait here until the previous batch has come back, and others may join them, rather than in a queue of small batches. */
static bool is_time(const struct hk_shard *s)
{
  const uint32_t exports = hk_queue_exporting(&s->queue),
                 flying = hk_queue_in_flight(&s->queue) - exports; /* exports take no time */
  const uint32_t most = hk_queue_most(&s->queue);
  return flying == 0 || so_many_wait(s, (uint64_t)flying * (most < AHEAD ? most : AHEAD));
}

/* Number of batches of points that may be in flight. */
static unsigned places(const struct hk_shard *s)
{
  return s->saver && hk_saver_due(s->saver) ? HK_IN_FLIGHT - 1 : HK_IN_FLIGHT;
}

static bool launch(struct hk_shard *s)
{
  bool any = false;
  if (hk_reload_holds(&s->reload))
    return false;
  if (s->all->relay)
    return hk_relay_turn(s);
  if (s->device && s->queue.sweeps.due && s->queue.sweeps.delivery && hk_queue_in_flight(&s->queue) < HK_IN_FLIGHT &&
      !hk_shard_forgets(s))
    launch_sweep(s);
  if (s->saver && hk_saver_stuck(s->saver))
    return false;
  if (hk_shard_look_waits(s) || hk_shard_survey_waits(s) || hk_shard_partitions_wait(s))
    return false;
  while (s->device && hk_queue_in_flight(&s->queue) < places(s) && (hk_queue_kept(&s->queue) || is_time(s))) {
    struct hk_delivery *kept = hk_queue_kept(&s->queue), *p = kept ? kept : fill(s);
    hk_queue_keep(&s->queue, NULL);
    if (!p)
      break;
    p->failed = p->device_lost = 0;
    if (hk_shard_submit(s, p) == HK_AGAIN) {
      hk_queue_keep(&s->queue, p);
      break;
    }
    any = true;
  }
  return any;
}

/* --- the turn -------------------------------------------------------------------------------------------------------- */

/* Whether points wait, or are being scored. */
static bool turn_has_points(const struct hk_shard *s)
{
  bool has = so_many_wait(s, 1) || hk_queue_kept(&s->queue);
  for (uint32_t i = 0; !has && i < hk_queue_in_flight(&s->queue); i++)
    has = hk_queue_flying(&s->queue, i)->batch->kind == HK_BATCH_POINTS;
  return has;
}

/* Notes since when it has none: incidents do not wait for the data of a shard that gets none, or none that count. */
static void turn_rests(struct hk_shard *s)
{
  struct hk_reach *t = &s->taking.reach;
  const bool rests = !turn_has_points(s);
  t->rested = t->rested == 0 ? hk_now() : t->rested;
  if (rests != (atomic_load_explicit(&t->rests, memory_order_relaxed) != 0))
    atomic_store_explicit(&t->rests, rests ? t->rested : 0, memory_order_release);
}

bool hk_shard_turn(struct hk_shard *s)
{
  hk_derive_turn(&s->taking.derivation);
  bool any = hk_shard_take_back(s);
  any |= reap(s);
  any |= launch(s) || s->taking.derivation.rests;
  if (!s->all->relay)
    turn_rests(s);
  any |= show_held(s);
  any |= hk_shard_take_acknowledgements(s);
  any |= hk_shard_take_looks(s);
  any |= hk_shard_take_surveys(s);
  any |= hk_shard_take_partitions(s);
  if (s->saver)
    hk_saver_turn(s->saver);
  if (hk_evictions_any(&s->evictions))
    hk_shard_retire_step(s);
  any |= hk_shard_reload_turn(s);
  return hk_shard_heed_failure(s) || any;
}

void hk_shard_go_on(struct hk_shard *s, struct hk_device *device)
{
  pthread_mutex_lock(&s->lock);
  s->device = device;
  pthread_mutex_unlock(&s->lock);
  hk_queue_adopt(&s->queue, device);
}
