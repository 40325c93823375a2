/* Selects the results of a batch that views want. Scores are compared block by block, without branches; the rest is work for
 * each match. */
#include "daemon/publish/view_select.h"
#include "daemon/base/grow.h"
#include "daemon/publish/view_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 64u

/* The results that a view wants by score: those of at least `least`, and perhaps those without a score. */
struct limits {
  float least;
  bool unscored;
};

static struct limits limits_of(const struct hk_wanted *w, bool dropped)
{
  const bool any = w->what & (HANKEL_SCORES | HANKEL_UNSCORED);
  if (dropped)
    return (struct limits){ any ? -INFINITY : INFINITY, any };
  return (struct limits){ w->what & HANKEL_SCORES ? w->min_score : INFINITY, w->what & HANKEL_UNSCORED };
}

static inline uint32_t keeps(struct limits l, float score)
{
  return (uint32_t)(score >= l.least) | ((uint32_t)(score != score) & l.unscored);
}

/* Bit i: whether the limits keep score[i] of a block. */
static uint64_t keeps_of_block(struct limits limits, const float *score)
{
  uint8_t keep[BLOCK];
  uint64_t mask = 0;
  for (uint32_t i = 0; i < BLOCK; i++)
    keep[i] = (uint8_t)keeps(limits, score[i]);
  for (uint32_t i = 0; i < BLOCK; i += 8) {
    uint64_t bytes; /* the product has byte k's bit at 56 + k */
    memcpy(&bytes, keep + i, sizeof bytes);
    mask |= (bytes * 0x0102040810204080u >> 56) << i;
  }
  return mask;
}

/* Finds the indices of the results within the limits whose slots are in the set (NULL: any). out has room for all. */
static uint32_t sift(const struct hk_batch *b, struct limits limits, const uint64_t *set, uint32_t *out)
{
  uint32_t n = 0, at = 0;
  for (; b->n - at >= BLOCK; at += BLOCK) {
    uint64_t mask = keeps_of_block(limits, b->score + at);
    if (mask == UINT64_MAX && !set) {
      for (uint32_t i = 0; i < BLOCK; i++)
        out[n + i] = at + i;
      n += BLOCK;
      continue;
    }
    for (; mask != 0; mask &= mask - 1) {
      const uint32_t i = at + (uint32_t)__builtin_ctzll(mask);
      out[n] = i;
      n += set ? hk_bit(set, b->slot[i]) : 1;
    }
  }
  for (; at < b->n; at++) {
    out[n] = at;
    n += keeps(limits, b->score[at]) & (uint32_t)(set ? hk_bit(set, b->slot[at]) : 1);
  }
  return n;
}

static bool wants_event(const struct hk_view *v, const struct hk_event *e)
{
  return hk_wants_event(&v->wanted, e->kind);
}

/* Selects for a whole or wide view. */
static void view_select_choose(struct hk_views *vs, struct hk_view *v, const struct hk_batch *b, bool dropped,
                               struct hk_choice *results, struct hk_choice *events)
{
  const struct limits limits = limits_of(&v->wanted, dropped);
  const bool wide = v->kind == HK_VIEW_WIDE,
             any = b->kind == HK_BATCH_POINTS && v->wanted.what & (HANKEL_SCORES | HANKEL_UNSCORED);
  *results = (struct hk_choice){ vs->results, 0 };
  *events = (struct hk_choice){ vs->events, 0 };
  if (any && !wide && limits.least <= 0 && limits.unscored)
    *results = (struct hk_choice){ NULL, b->n };
  else if (any && !dropped)
    results->n = sift(b, limits, wide ? v->bits.maybe : NULL, vs->results);
  else if (any)
    for (uint32_t i = 0; i < b->n; i++) {
      vs->results[results->n] = i;
      results->n += hk_bit(v->bits.maybe, b->slot[i]);
    }
  if (wide && v->bits.n_known < hk_registry_slots(vs->registry)) {
    const uint32_t n = results->n;
    results->n = 0;
    for (uint32_t i = 0; i < n; i++) {
      vs->results[results->n] = vs->results[i];
      results->n += hk_views_look_wide(vs, v, b->slot[vs->results[i]]);
    }
  }
  if (results->n == b->n)
    results->index = NULL;
  for (uint32_t i = 0; !dropped && i < b->n_events; i++)
    if (wants_event(v, &b->event[i]) && (!wide || hk_views_look_wide(vs, v, b->event[i].slot)))
      vs->events[events->n++] = i;
}

/* Adds an index to those that a narrow view wants. */
static int hit(struct hk_views *vs, struct hk_view *v, struct hk_indices *indices, uint32_t i)
{
  uint32_t *at = hk_grow(indices->at, indices->n, &indices->capacity, sizeof *at, 16);
  if (!at)
    return -ENOMEM;
  indices->at = at;
  indices->at[indices->n++] = i;
  if (!v->hit) {
    v->hit = true;
    v->next_hit = vs->hits;
    vs->hits = v;
  }
  return 0;
}

/* Selects for all narrow views. 0 or -ENOMEM. */
static int hit_all(struct hk_views *vs, const struct hk_batch *b, bool dropped)
{
  int status = hk_views_grow(vs);
  if (status != 0)
    return status;
  uint32_t n = 0;
  if (b->kind == HK_BATCH_POINTS)
    for (uint32_t i = 0; i < b->n; i++) {
      vs->results[n] = i;
      n += hk_bit(vs->watched.maybe, b->slot[i]);
    }
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t i = vs->results[k], slot = b->slot[i];
    if (!hk_bit(vs->watched.known, slot))
      status |= hk_views_look_narrow(vs, slot);
    for (uint32_t w = vs->first[slot]; w != HK_NO_WATCH; w = vs->watches[w].next_of_slot) {
      struct hk_view *v = vs->watches[w].view;
      const struct limits limits = limits_of(&v->wanted, dropped);
      if (dropped ? limits.unscored : keeps(limits, b->score[i]))
        status |= hit(vs, v, &v->results, i);
    }
  }
  for (uint32_t i = 0; !dropped && i < b->n_events; i++) {
    const uint32_t slot = b->event[i].slot;
    if (!hk_bit(vs->watched.known, slot))
      status |= hk_views_look_narrow(vs, slot);
    for (uint32_t w = vs->first[slot]; w != HK_NO_WATCH; w = vs->watches[w].next_of_slot)
      if (wants_event(vs->watches[w].view, &b->event[i]))
        status |= hit(vs, vs->watches[w].view, &vs->watches[w].view->events, i);
  }
  return status != 0 ? -ENOMEM : 0;
}

/* Allocates memory for the indices of a batch. */
static int view_select_reserve(struct hk_views *vs, const struct hk_batch *b)
{
  const uint32_t needed = b->n > b->n_events ? b->n : b->n_events, capacity = needed > b->capacity ? needed : b->capacity;
  if (needed <= vs->capacity)
    return 0;
  free(vs->results);
  free(vs->events);
  vs->results = malloc(capacity * sizeof *vs->results);
  vs->events = malloc(capacity * sizeof *vs->events);
  vs->capacity = vs->results && vs->events ? capacity : 0;
  return vs->capacity ? 0 : -ENOMEM;
}

int hk_views_choose(struct hk_views *vs, const struct hk_batch *b, bool dropped,
                    void (*chosen)(void *arg, struct hk_view *view, const struct hk_choice *results,
                                   const struct hk_choice *events),
                    void *arg)
{
  if (vs->n == 0)
    return 0;
  int status = view_select_reserve(vs, b);
  for (struct hk_view *v = status == 0 ? vs->through : NULL; v; v = v->next) {
    struct hk_choice results, events;
    if (v->kind == HK_VIEW_WIDE && hk_slot_bits_grow(&v->bits, hk_registry_slots(vs->registry)) != 0) {
      status = -ENOMEM;
      continue;
    }
    view_select_choose(vs, v, b, dropped, &results, &events);
    hk_views_names_end(vs);
    if (results.n + events.n > 0)
      chosen(arg, v, &results, &events);
  }
  if (status != 0 || vs->n_narrow == 0)
    return status;
  status = hit_all(vs, b, dropped);
  hk_views_names_end(vs);
  for (struct hk_view *v = vs->hits; v; v = v->next_hit) {
    const struct hk_choice results = { v->results.at, v->results.n }, events = { v->events.at, v->events.n };
    chosen(arg, v, &results, &events);
    v->hit = false;
    v->results.n = v->events.n = 0;
  }
  vs->hits = NULL;
  return status;
}
