/* Evicts sensors: a slot may be another sensor's once nothing names it any more.
 *
 *   retired:    the slot cannot be found by name or handle. Every loop seals its chunks, and sends a token after them.
 *   passing:    the tokens have come, so no further point will; points in chains are put into batches,
 *   published:  and the last of these batches goes to the loops. After it every loop is told to forget the slots.
 *               Standing alerts are cleared in between, and `cleared` is published, since no detector watches them any more,
 *               unless another machine has the sensor.
 *   forgotten:  all loops have forgotten the slots: the backend and the registry free them.
 *
 * This needs no count of a sensor's points, and no thread waits for it. */
#include "daemon/scoring/evict.h"
#include "daemon/scoring/alert_log.h"
#include "daemon/scoring/field_rows.h"
#include "daemon/scoring/groups.h"
#include "daemon/scoring/hand_over.h"
#include "daemon/scoring/provisional_results.h"
#include "daemon/scoring/rates.h"
#include "daemon/scoring/shard.h"
#include "daemon/scoring/survey.h"
#include "daemon/sensors/companions.h"
#include "daemon/sensors/slots.h"

#include <stdlib.h>

struct hk_retired {
  struct hk_delivery delivery; /* the first member */
  uint32_t *slots;             /* of the registry */
  uint32_t n, passed;          /* passed: number of them without points in chains */
  uint64_t number;             /* this many tokens must have come through each lane */
  uint64_t behind;             /* this many batches must have gone to the loops */
  uint64_t dropped;            /* points of barred sensors dropped before */
  uint32_t of;                 /* number of sensors */
  enum phase { SEALING, PASSING, PUBLISHED, FORGETTING } phase;
  enum hk_retire why;
  struct hk_retired *next;
};

void hk_evictions_open(struct hk_evictions *e)
{
  e->tail = &e->first;
}

uint32_t hk_shard_clear(struct hk_shard *s, const uint32_t *slots, uint32_t n)
{
  uint32_t standing;
  (void)hk_alerts_standing(s->alerts, &standing);
  const uint32_t most = standing < n ? standing : n;
  if (most == 0)
    return 0;
  struct hk_delivery *p = calloc(1, sizeof *p);
  struct hk_batch *b = calloc(1, sizeof *b);
  struct hk_event *events = calloc(most, sizeof *events);
  if (!p || !b || !events) {
    hk_log(s->all->log, HK_LOG_ERROR, "no memory to publish that %u alerts of removed sensors ended", most);
    free(p);
    free(b);
    free(events);
    return 0;
  }
  *b = (struct hk_batch){ .kind = HK_BATCH_SWEEP, .capacity = most, .event = events };
  uint32_t cleared = 0;
  for (uint32_t i = 0; i < n && cleared < most; i++) {
    struct hk_event *e = &events[b->n_events];
    if (!hk_alerts_clear(s->alerts, hk_slot_within(s->all, slots[i]), e))
      continue;
    cleared++;
    (void)hk_alerts_note(s->alerts, e); /* an end needs no memory */
    if (hk_shard_log_event(s, p, e, hk_string("")))
      continue;
    e->slot = hk_slot_outside(s, e->slot);
    b->n_events++;
  }
  if (cleared == 0) {
    free(p);
    free(b);
    free(events);
    return 0;
  }
  p->kind = HK_DELIVERY_RESULTS;
  p->batch = b;
  hk_count(&s->counters.cleared, cleared);
  hk_shard_hand_over(s, p, false);
  return cleared;
}

uint32_t hk_shard_with_companions(const struct hk_shard *s, uint32_t slot, uint32_t *list, uint32_t n)
{
  for (uint32_t companion = slot; (companion = hk_registry_next_companion(s->all->registry, companion)) != slot;)
    list[n++] = companion;
  list[n++] = slot;
  n += hk_groups_leaving(s->machines.groups, slot, &list[n]);
  n += hk_groups_leaving(s->machines.seconds, slot, &list[n]);
  n += hk_fields_leaving(s->machines.fields, slot, &list[n]);
  return n;
}

static void post(struct hk_shard *s, struct hk_retired *r, enum hk_delivery_kind kind)
{
  r->delivery.back = false;
  r->delivery = (struct hk_delivery){ .kind = kind, .slots = r->slots, .n_slots = r->n };
  hk_shard_hand_over(s, &r->delivery, true);
}

void hk_shard_retire(struct hk_shard *s, uint32_t *slots, uint32_t n, enum hk_retire why)
{
  struct hk_registry *registry = s->all->registry;
  struct hk_retired *r = calloc(1, sizeof *r);
  if (!r) {
    hk_log(s->all->log, HK_LOG_ERROR, "no memory to forget %u sensors", n);
    free(slots);
    return;
  }
  r->why = why;
  r->number = ++s->evictions.begun;
  r->dropped = s->counters.full;
  r->of = hk_registry_count(registry);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (!hk_registry_holds(registry, slots[i])) /* listed for two reasons, or being evicted already */
      continue;
    hk_registry_retire(registry, slots[i]);
    hk_groups_ending(s->machines.groups, hk_slot_within(s->all, slots[i]));
    hk_groups_ending(s->machines.seconds, hk_slot_within(s->all, slots[i]));
    hk_groups_ending(s->machines.fields, hk_slot_within(s->all, slots[i]));
    slots[kept++] = slots[i];
  }
  r->slots = slots;
  r->n = n = kept;
  hk_count(&s->counters.evicted, why == HK_RETIRE_MOVED ? 0 : n);
  if (why == HK_RETIRE_BARRED) {
    hk_stage_bar(s->stage, slots, n, s->all->n);
    hk_shard_settled(s);
  }
  *s->evictions.tail = r;
  s->evictions.tail = &r->next;
  post(s, r, HK_DELIVERY_RETIRE);
}

static bool sealed(const struct hk_shard *s, const struct hk_retired *r)
{
  for (uint32_t i = 0; i < s->all->n_loops; i++)
    if (s->lanes[i].tokens < r->number)
      return false;
  return r->delivery.back;
}

static bool passed(const struct hk_shard *s, struct hk_retired *r)
{
  while (r->passed < r->n && !hk_stage_has(s->stage, hk_slot_within(s->all, r->slots[r->passed])))
    r->passed++;
  return r->passed == r->n;
}

static void release(struct hk_shard *s, struct hk_retired *r)
{
  if (r->why == HK_RETIRE_BARRED) {
    char why[HK_REGISTRY_FULL_MAX];
    hk_stage_unbar(s->stage);
    hk_log(s->all->log, HK_LOG_WARNING,
           "%u of %u sensors have no room on the CPU and were evicted, %llu points of theirs dropped: %s", r->n, r->of,
           (unsigned long long)(s->counters.full - r->dropped), hk_registry_full(s->all->registry, why));
  }
  for (uint32_t i = 0; i < r->n; i++) {
    hk_alerts_forget(s->alerts, hk_slot_within(s->all, r->slots[i]));
    hk_groups_forget(s->machines.groups, hk_slot_within(s->all, r->slots[i]));
    hk_groups_forget(s->machines.seconds, hk_slot_within(s->all, r->slots[i]));
    hk_groups_forget(s->machines.fields, hk_slot_within(s->all, r->slots[i]));
    hk_rates_forget(&s->rates, hk_slot_within(s->all, r->slots[i]));
    hk_provisional_drop(s, hk_slot_within(s->all, r->slots[i]));
    hk_scores_forget(s, hk_slot_within(s->all, r->slots[i]));
    hk_registry_release(s->all->registry, r->slots[i]);
  }
}

static void unlink_first(struct hk_shard *s)
{
  struct hk_retired *r = s->evictions.first;
  s->evictions.steps++;
  s->evictions.first = r->next;
  if (!s->evictions.first)
    s->evictions.tail = &s->evictions.first;
  free(r->slots);
  free(r);
}

static void go_on_to(struct hk_shard *s, struct hk_retired *r, enum phase phase)
{
  r->phase = phase;
  s->evictions.steps++;
}

void hk_shard_retire_step(struct hk_shard *s)
{
  struct hk_retired *r = s->evictions.first; /* later ones come after it */
  if (r->phase == SEALING && sealed(s, r))
    go_on_to(s, r, PASSING);
  if (r->phase == PASSING && passed(s, r)) {
    go_on_to(s, r, PUBLISHED);
    r->behind = hk_queue_made(&s->queue);
  }
  if (r->phase == PUBLISHED && hk_queue_gone(&s->queue) >= r->behind) {
    go_on_to(s, r, FORGETTING);
    if (r->why != HK_RETIRE_MOVED)
      (void)hk_shard_clear(s, r->slots, r->n);
    post(s, r, HK_DELIVERY_FORGET);
  }
  if (r->phase == FORGETTING && r->delivery.back && (s->queue.sweeps.delivery || !s->device) && !hk_queue_exporting(&s->queue)) {
    release(s, r);
    unlink_first(s);
  }
}

void hk_shard_retire_why(const struct hk_shard *s, char *why, size_t size)
{
  const struct hk_retired *r = s->evictions.first;
  uint32_t tokens = 0;
  for (uint32_t i = 0; i < s->all->n_loops; i++)
    tokens += s->lanes[i].tokens < r->number;
  const char *what = r->phase == SEALING && tokens > 0        ? "tokens of loops behind the chunks that they have sent"
                     : r->phase == SEALING                    ? "the loops to seal what they have"
                     : r->phase == PASSING                    ? "their points in chains"
                     : r->phase == PUBLISHED                  ? "batches that hold their points"
                     : !r->delivery.back                      ? "the loops to forget them"
                     : !s->queue.sweeps.delivery && s->device ? "a sweep to come back"
                     : hk_queue_exporting(&s->queue)          ? "an export to come back"
                                                              : "the next turn";
  snprintf(why, size, "; %u sensors that are being forgotten wait for %s", r->n, what);
}

bool hk_shard_forgets(const struct hk_shard *s)
{
  return s->evictions.first && s->evictions.first->phase == FORGETTING;
}

void hk_shard_retire_free(struct hk_shard *s)
{
  while (s->evictions.first)
    unlink_first(s);
}
