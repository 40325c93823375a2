/* Judging alerts: see judge.h. */
#include "daemon/cli/judge.h"

#include <math.h>
#include <stdlib.h>

static uint32_t judge_larger(uint32_t a, uint32_t b)
{
  return a > b ? a : b;
}

static uint32_t judge_smaller(uint32_t a, uint32_t b)
{
  return a < b ? a : b;
}

static bool hits(const struct hk_found *found, const struct hk_marked *marked, uint32_t window)
{
  return found->instant + window >= marked->first && found->instant <= marked->last + window;
}

struct hk_verdict hk_judge(uint32_t points, uint32_t scored, uint32_t window, const struct hk_found *found, uint32_t n_found,
                           const struct hk_marked *marked, uint32_t n_marked, double *delay)
{
  struct hk_verdict v = {
    .recordings = 1, .unscored = scored >= points, .points = points, .labels = n_marked, .alerts = n_found
  };
  v.longest = v.unscored ? points : 0;
  for (uint32_t i = 0; i < n_marked; i++) {
    const uint32_t low = judge_larger(scored, marked[i].first > window ? marked[i].first - window : 0);
    const uint32_t high = judge_smaller(points, marked[i].last + window + 1);
    if (scored < points && high > low)
      v.chance += 1 - pow(1 - (double)(high - low) / (points - scored), n_found);
    for (uint32_t j = 0; j < n_found; j++) {
      if (hits(&found[j], &marked[i], window)) {
        delay[v.hits++] = (double)found[j].raised - marked[i].first;
        break;
      }
    }
  }
  for (uint32_t j = 0; j < n_found; j++) {
    bool any = false;
    for (uint32_t i = 0; i < n_marked && !any; i++)
      any = hits(&found[j], &marked[i], window);
    v.misplaced += !any;
  }
  return v;
}

/* Start of segment i of those that n instants cut 0..points-1 into. */
static uint32_t start_found(const struct hk_found *found, uint32_t n, uint32_t i, uint32_t points)
{
  return i == 0 ? 0 : i > n ? points : found[i - 1].instant;
}

static uint32_t start_marked(const struct hk_marked *marked, uint32_t n, uint32_t i, uint32_t points)
{
  return i == 0 ? 0 : i > n ? points : marked[i - 1].first;
}

double hk_judge_covering(uint32_t points, const struct hk_found *found, uint32_t n_found, const struct hk_marked *marked,
                         uint32_t n_marked)
{
  double sum = 0;
  for (uint32_t i = 0; i <= n_marked; i++) {
    const uint32_t a = start_marked(marked, n_marked, i, points), b = start_marked(marked, n_marked, i + 1, points);
    double best = 0;
    for (uint32_t j = 0; j <= n_found; j++) {
      const uint32_t c = start_found(found, n_found, j, points), e = start_found(found, n_found, j + 1, points);
      const uint32_t low = judge_larger(a, c), high = judge_smaller(b, e);
      if (high > low)
        best = fmax(best, (double)(high - low) / (judge_larger(b, e) - judge_smaller(a, c)));
    }
    sum += best * (b - a);
  }
  return points > 0 ? sum / points : 0;
}

double hk_verdict_worth(const struct hk_verdict *v)
{
  if (v->covered > 0)
    return v->covering / (double)v->covered;
  return v->labels + v->alerts > 0 ? ((double)v->hits - v->chance) / (double)(v->labels + v->alerts) : 0;
}

static int judge_ascending(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double hk_verdict_delay(const struct hk_verdict *v, double *delay)
{
  qsort(delay, v->hits, sizeof *delay, judge_ascending);
  return (delay[v->hits / 2] + delay[(v->hits - 1) / 2]) / 2;
}

void hk_verdict_add(struct hk_verdict *sum, const struct hk_verdict *one)
{
  sum->recordings += one->recordings;
  sum->unscored += one->unscored;
  sum->longest = one->longest > sum->longest ? one->longest : sum->longest;
  sum->points += one->points;
  sum->labels += one->labels;
  sum->alerts += one->alerts;
  sum->hits += one->hits;
  sum->misplaced += one->misplaced;
  sum->chance += one->chance;
  sum->covering += one->covering;
  sum->covered += one->covered;
}
