/* A shard's part of a reload (see reload.h): its backend learns detectors and forgets others, and sensors whose detector has
 * changed or gone are evicted, to come again as new ones.
 * tests/models/reload.pml models which of reloads, eviction and snapshots waits for which; it must agree with this file.
 * Detectors are added and removed while nothing is in flight, so the shard launches nothing until the device has finished.
 * Sensors are checked for a millisecond at a time, between batches. */
#include "daemon/scoring/shard_reload.h"
#include "daemon/scoring/derived_points.h"
#include "daemon/scoring/evict.h"
#include "daemon/scoring/field_rows.h"
#include "daemon/scoring/groups.h"
#include "daemon/scoring/shard.h"
#include "daemon/sensors/companions.h"
#include "daemon/sensors/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOK 256u       /* sensors between two checks of the clock */
#define TIME 1000000    /* approximate ns for them in one turn */
#define TOGETHER 65536u /* maximum number of sensors evicted together */

static void shard_reload_answer(struct hk_shard *s)
{
  s->reload.holding = false;
  s->queue.sweeps.due |= s->queue.sweeps.put_off;
  atomic_store_explicit(&s->reload.answered, atomic_load_explicit(&s->reload.asked, memory_order_relaxed), memory_order_release);
}

/* False: something is still in flight. */
static bool define(struct hk_shard *s, const struct hk_definition *definitions, uint32_t n)
{
  struct hk_review *r = &s->reload.review;
  struct hk_device *d = s->device;
  s->reload.holding = n > 0;
  if (n > 0 && hk_queue_in_flight(&s->queue) > 0)
    return false;
  r->status = d ? 0 : -ENODEV;
  r->why[0] = 0;
  if (d && n > 0) {
    pthread_mutex_lock(&s->lock); /* the status reads what detectors need */
    pthread_mutex_lock(&d->calls);
    r->status = d->backend->ops->define(d->backend, definitions, n, r->why, sizeof r->why);
    pthread_mutex_unlock(&d->calls);
    pthread_mutex_unlock(&s->lock);
  } else if (!d) {
    snprintf(r->why, sizeof r->why, "the device is lost");
  }
  shard_reload_answer(s);
  return true;
}

static void shard_reload_begin(struct hk_shard *s)
{
  const struct hk_config *before = s->config;
  s->config = s->reload.request->config;
  s->reload.review = (struct hk_review){ .begun = true, .slot = s->number };
  hk_groups_prepare(s->machines.groups, s->reload.request->sections);
  hk_groups_prepare(s->machines.seconds, s->reload.request->sections);
  hk_groups_prepare(s->machines.fields, s->reload.request->sections);
  hk_shard_watch(s);
  if (s->device && s->config->memory != before->memory) {
    pthread_mutex_lock(&s->device->calls);
    s->device->backend->ops->limit(s->device->backend, hk_shard_memory(s));
    pthread_mutex_unlock(&s->device->calls);
  }
}

/* Whether a sensor has the detector that a new sensor of its name would get. */
static bool stays(const struct hk_shard *s, uint32_t slot)
{
  const struct hk_string name = hk_registry_name(s->all->registry, slot);
  const struct hk_section *section = hk_sections_find(s->reload.request->sections, name.data, name.length);
  return section && section->number == hk_registry_detector(s->all->registry, slot);
}

/* Evicts a machine's series if its group is gone or has changed. */
static void look_at_derived(struct hk_shard *s, uint32_t slot)
{
  struct hk_review *r = &s->reload.review;
  struct hk_machine_name group;
  const uint32_t number = hk_registry_detector(s->all->registry, slot);
  if (!hk_registry_detector_of(s->all->registry, number)->group ||
      hk_sections_group_by(s->reload.request->sections, number, &group))
    return;
  r->leaving[r->n++] = slot;
  r->machines++;
}

/* Checks a sensor and its companions, which are evicted with it, or alone. */
static void shard_reload_look_at(struct hk_shard *s, uint32_t slot)
{
  struct hk_review *r = &s->reload.review;
  const struct hk_registry *registry = s->all->registry;
  if (!hk_registry_holds(registry, slot))
    return;
  if (hk_registry_derived(registry, slot)) {
    look_at_derived(s, slot);
    return;
  }
  if (!stays(s, slot)) {
    r->n = hk_shard_with_companions(s, slot, r->leaving, r->n);
    return;
  }
  for (uint32_t companion = slot; (companion = hk_registry_next_companion(registry, companion)) != slot;)
    if (!hk_registry_accompanies(registry, s->reload.request->sections, companion))
      r->leaving[r->n++] = companion;
}

/* Adds a sensor's missing companions; removes it from its machine if it belongs to another one now. */
static void shard_reload_complete(struct hk_shard *s, uint32_t slot)
{
  struct hk_registry *registry = s->all->registry;
  struct hk_review *r = &s->reload.review;
  uint32_t added;
  if (!hk_registry_holds(registry, slot) || hk_registry_derived(registry, slot))
    return;
  struct hk_groups *const kinds[] = { s->machines.groups, s->machines.seconds };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (hk_groups_review(kinds[i], slot, &r->leaving[r->n])) {
      r->n++;
      r->machines++;
    }
  const uint32_t of_field = hk_fields_review(s->machines.fields, slot, &r->leaving[r->n]);
  r->n += of_field;
  r->machines += of_field;
  s->reload.review.alone += hk_registry_complete(registry, slot, &added) != 0;
  s->reload.review.joined += added;
}

/* Checks some sensors, or completes them. True once all are done. */
static bool shard_reload_look(struct hk_shard *s)
{
  struct hk_review *r = &s->reload.review;
  const int64_t end = hk_now() + TIME;
  const uint32_t slots = hk_registry_slots(s->all->registry);
  for (uint32_t n = 1; r->slot < slots && r->n <= TOGETHER - HK_LEAVING_MOST; r->slot += s->all->n, n++) {
    if (r->completing)
      shard_reload_complete(s, r->slot);
    else
      shard_reload_look_at(s, r->slot);
    if (n % LOOK == 0 && hk_now() > end) {
      r->slot += s->all->n;
      break;
    }
  }
  return r->slot >= slots;
}

/* Returns whether anything was done. */
static bool review(struct hk_shard *s)
{
  struct hk_review *r = &s->reload.review;
  if (!r->begun && s->queue.sweeps.put_off && s->device) /* lets evictions proceed between consecutive reloads */
    return false;
  if (!r->begun)
    shard_reload_begin(s);
  /* The journal position at which companions come and go says which points they have seen, so not within a chunk. During
   * consecutive evictions chunks must be taken: the tokens that evictions wait for come after them. */
  r->waits = !hk_evictions_any(&s->evictions) && hk_derive_within(s);
  if (hk_evictions_any(&s->evictions) || r->waits)
    return false;
  if (!r->leaving && !(r->leaving = malloc(TOGETHER * sizeof *r->leaving))) {
    r->status = -ENOMEM;
    snprintf(r->why, sizeof r->why, "no memory to remove sensors");
    shard_reload_answer(s);
    return true;
  }
  const bool all = shard_reload_look(s);
  if (r->n > TOGETHER - HK_LEAVING_MOST || (all && r->n > 0)) {
    uint32_t *leaving = r->leaving;
    r->leaving = NULL;
    r->evicted += r->n;
    hk_shard_retire(s, leaving, r->n, HK_RETIRE_EVICTED);
    r->n = 0;
    return true;
  }
  if (!all)
    return true;
  if (!r->completing) {
    r->status = hk_groups_adopt(s->machines.groups);
    if (r->status == 0)
      r->status = hk_groups_adopt(s->machines.seconds);
    if (r->status == 0)
      r->status = hk_groups_adopt(s->machines.fields);
    if (r->status != 0)
      snprintf(r->why, sizeof r->why, "no memory for groups: no sensor is of any");
  }
  if (!r->completing && (hk_sections_accompanied(s->reload.request->sections) || s->reload.request->groups)) {
    r->completing = true;
    r->slot = s->number;
    return true;
  }
  free(r->leaving);
  r->leaving = NULL;
  shard_reload_answer(s);
  return true;
}

bool hk_shard_reload_turn(struct hk_shard *s)
{
  if (atomic_load_explicit(&s->reload.asked, memory_order_acquire) ==
      atomic_load_explicit(&s->reload.answered, memory_order_relaxed))
    return false;
  const struct hk_shard_reload_request *request = s->reload.request;
  switch (request->what) {
  case HK_SHARD_RELOAD_LEARN:
    s->reload.review.begun = false;
    return define(s, request->learn, request->n_learn);
  case HK_SHARD_RELOAD_REVIEW:
    return review(s);
  case HK_SHARD_RELOAD_FORGET:
    return define(s, request->forget, request->n_forget);
  }
  return false;
}

bool hk_shard_reviews(const struct hk_shard *s)
{
  return s->reload.review.begun &&
         atomic_load_explicit(&s->reload.asked, memory_order_acquire) !=
             atomic_load_explicit(&s->reload.answered, memory_order_relaxed) &&
         s->reload.request->what == HK_SHARD_RELOAD_REVIEW; /* main writes it only between an answer and the next request */
}

const char *hk_shard_reload_why(const struct hk_shard *s)
{
  const enum hk_shard_reload_step what = s->reload.request->what;
  return what != HK_SHARD_RELOAD_REVIEW && s->reload.holding  ? "until nothing is in flight"
         : what != HK_SHARD_RELOAD_REVIEW                     ? "for the device"
         : hk_evictions_any(&s->evictions)                    ? "until the sensors that are being forgotten are"
         : s->reload.review.waits                             ? "until the chunk that is being taken is"
         : !s->reload.review.begun && s->queue.sweeps.put_off ? "for a sweep"
                                                              : "for its turn";
}

uint32_t hk_shard_reload_progress(const struct hk_shard *s, uint32_t *slot)
{
  *slot = s->reload.review.slot;
  return 2 * s->reload.answered + s->reload.review.completing;
}

const struct hk_review *hk_shard_review(const struct hk_shard *s)
{
  return &s->reload.review;
}

void hk_shard_drop_reload(struct hk_shard *s)
{
  free(s->reload.review.leaving);
}

void hk_shard_ask(struct hk_shard *s, const struct hk_shard_reload_request *request)
{
  s->reload.request = request;
  atomic_fetch_add_explicit(&s->reload.asked, 1, memory_order_release);
  hk_wake_up(&s->life.wake, HK_WAKE_WORK);
}

bool hk_shard_has_answered(const struct hk_shard *s)
{
  return atomic_load_explicit(&s->reload.answered, memory_order_acquire) ==
         atomic_load_explicit(&s->reload.asked, memory_order_relaxed);
}
