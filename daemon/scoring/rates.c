/* Rates of counters. Batches are not examined if no detector in force needs rates. */
#include "daemon/scoring/rates.h"

#include "daemon/scoring/shard.h"
#include "daemon/sensors/companions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TOLD 5 /* counters logged at a time: for many sensors the first are enough */

static bool any(const struct hk_config *config)
{
  bool found = false;
  for (uint32_t i = 0; i < config->n_detectors && !found; i++)
    found = config->detectors[i].detector.rate;
  return found;
}

static struct hk_rate *last_of(struct hk_shard *s, uint32_t within)
{
  struct hk_rates *r = &s->rates;
  if (within >= r->n) {
    const uint32_t n = within < 512 ? 1024 : 2 * within;
    struct hk_rate *grown = realloc(r->last, n * sizeof *grown);
    if (!grown) {
      hk_log_peer(s->all->log, &s->quotas.forgetful, HK_LOG_WARNING, "rates", "no memory for the rates of counters");
      return NULL;
    }
    memset(grown + r->n, 0, (n - r->n) * sizeof *grown);
    r->last = grown;
    r->n = n;
  }
  return &r->last[within];
}

/* Logs what was found. Not during replay, which repeats it, nor for companions, which get their sensor's points. */
static void rates_tell(struct hk_shard *s, uint32_t slot, uint8_t kind)
{
  const struct hk_registry *registry = s->all->registry;
  if (s->replaying || hk_registry_primary(registry, slot) != slot)
    return;
  const struct hk_string name = hk_registry_name(registry, slot);
  hk_log_some(s->all->log, &s->quotas.counters, TOLD, HK_LOG_NOTICE, "counters",
              kind == HK_RATE_COUNTER ? "%.*s is a counter: its rate per second is scored (rate = auto)"
                                      : "%.*s fell and is not a counter: its values are scored as they are (rate = auto)",
              (int)name.length, name.data);
}

void hk_rates_apply(struct hk_shard *s, struct hk_batch *b)
{
  const struct hk_registry *registry = s->all->registry;
  if (!any(s->config))
    return;
  for (uint32_t i = 0; i < b->n; i++) {
    const uint32_t slot = hk_slot_outside(s, b->slot[i]);
    const struct hk_config_detector *d = hk_registry_detector_of(registry, hk_registry_detector(registry, slot));
    if (!d || !d->detector.rate)
      continue;
    struct hk_rate *last = last_of(s, b->slot[i]);
    const uint8_t kind = last ? last->kind : HK_RATE_UNDECIDED;
    b->value[i] = last ? hk_rate_next(last, d->detector.rate, b->time[i], b->value[i]) : (double)NAN;
    if (last && last->kind != kind && (kind == HK_RATE_COUNTER || last->kind == HK_RATE_COUNTER))
      rates_tell(s, slot, last->kind);
  }
}

struct hk_rate hk_rates_of(const struct hk_rates *r, uint32_t within)
{
  return within < r->n ? r->last[within] : (struct hk_rate){ 0 };
}

int hk_rates_restore(struct hk_shard *s, uint32_t within, const struct hk_rate *rate)
{
  struct hk_rate *last = last_of(s, within);
  if (!last)
    return -ENOMEM;
  *last = *rate;
  return 0;
}

void hk_rates_forget(struct hk_rates *r, uint32_t within)
{
  if (within < r->n)
    r->last[within] = (struct hk_rate){ 0 };
}

void hk_rates_free(struct hk_rates *r)
{
  free(r->last);
  *r = (struct hk_rates){ 0 };
}
