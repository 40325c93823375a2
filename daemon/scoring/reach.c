#include "daemon/scoring/reach.h"

#include "daemon/base/log.h"

#include <stdatomic.h>

void hk_reach_restore(struct hk_reach *r, int64_t latest)
{
  const int64_t now = hk_wall(); /* which may have been corrected meanwhile */
  latest = latest < now ? latest : now;
  r->latest = latest > r->latest ? latest : r->latest;
}

void hk_reach_learn(struct hk_reach *r, int64_t latest)
{
  if (r->latest == 0)
    hk_reach_restore(r, latest);
}

/* The latest of some points and a time; at most `most`, if it is no later already. */
static int64_t reach_latest(const struct hk_batch *b, uint32_t from, uint32_t end, int64_t latest, int64_t most)
{
  int64_t newest = INT64_MIN;
  for (uint32_t i = from; i < end; i++)
    newest = b->time[i] > newest ? b->time[i] : newest;
  newest = newest < most ? newest : most;
  return newest > latest ? newest : latest;
}

void hk_reach_take(struct hk_reach *r, struct hk_batch_reach *of, const struct hk_batch *b, uint32_t unchained, uint32_t held_at,
                   int64_t to_come)
{
  const uint32_t first = held_at < b->n ? held_at : b->n;
  const int64_t most = hk_wall_forward(&r->offset);
  *of = (struct hk_batch_reach){ .before = r->latest, .chained = r->chained, .n = unchained, .most = most };
  r->latest = reach_latest(b, 0, first, r->latest, most);
  r->chained = held_at <= b->n ? r->latest : r->chained;
  r->latest = reach_latest(b, first, b->n, r->latest, most);
  of->reached = to_come < r->latest ? to_come : r->latest;
}

int64_t hk_reach_before(const struct hk_reach *r, struct hk_batch_reach *of, const struct hk_batch *b, uint32_t index)
{
  const int64_t reached = atomic_load_explicit(&r->reached, memory_order_relaxed);
  if (!b || index >= b->n)
    return reached;
  if (index < of->n) /* its chain kept it back: what passed it meanwhile was not there when it arrived */
    return of->chained > reached ? of->chained : reached;
  of->before = reach_latest(b, of->looked, index, of->before, of->most);
  of->looked = index;
  return of->before > reached ? of->before : reached;
}

void hk_reach_pass(struct hk_reach *r, const struct hk_batch_reach *of)
{
  if (of->reached > atomic_load_explicit(&r->reached, memory_order_relaxed))
    atomic_store_explicit(&r->reached, of->reached, memory_order_release);
}
