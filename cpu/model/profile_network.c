/* Causes of departures in a network: see profile_network.h, profile.h. */
#include "cpu/model/profile_network.h"

#include <stdlib.h>
#include <string.h>

/* By point: g . d and g . g of what leaves there (or, of a given pressure, of that pressure). */
struct network_sums {
  double *with, *own, *by; /* by: of one check */
};

/* Adds what a check says. False: its derivatives cannot be computed, and it says nothing. */
static void add_check(struct hk_network *w, const struct hk_model_plan *plan, const struct hk_departures *of, uint32_t i,
                      const struct network_sums *s)
{
  const double unit = of->is[i]->unit * of->c[i];
  if (hk_network_by_point(w, &plan->place[of->sensor[i]], s->by) != 0)
    return;
  for (uint32_t k = 0; k < plan->network->points; k++) {
    const double g = s->by[k] / unit;
    s->with[k] += g * of->d[i];
    s->own[k] += g * g;
  }
}

/* A boundary that reads one unit too much makes the model's value too large by as much as its derivative says. */
static void consider_boundaries(struct hk_profile *p, const struct hk_departures *of, const struct network_sums *s)
{
  const struct hk_model_plan *plan = p->plan;
  for (uint32_t k = 0; k < plan->boundaries; k++) {
    const uint32_t sensor = plan->line->boundary[k], point = plan->network->drive[k].point;
    double size;
    const double share = hk_departures_share(of, s->with[point], s->own[point], &size);
    if (share > p->cause.share)
      p->cause = (struct hk_profile_cause){
        .kind = HK_CAUSE_SENSOR, .share = share, .size = -size / plan->sensor[sensor].unit, .sensor = sensor
      };
  }
}

static int compare_shares(const void *a, const void *b)
{
  const struct hk_profile_node *x = a, *y = b;
  return (x->share < y->share) - (x->share > y->share);
}

/* Leaks at all nodes whose pressure is not given. Those that explain nearly as much as the best stay in p->node. */
static void consider_nodes(struct hk_profile *p, const struct hk_departures *of, const struct network_sums *s, const bool *given)
{
  double best = 0;
  p->nodes = 0;
  for (uint32_t i = 0; i < p->plan->nodes; i++) {
    struct hk_profile_node one = { .node = i };
    one.share = hk_departures_share(of, s->with[i], s->own[i], &one.size);
    if (given[i] || !(one.size > 0))
      continue;
    p->node[p->nodes++] = one;
    best = fmax(best, one.share);
  }
  const double noise = hk_departures_noise(of, best);
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->nodes; i++)
    if ((best - p->node[i].share) * of->sum <= HK_DEPARTURES_NEARLY * noise)
      p->node[n++] = p->node[i];
  p->nodes = n;
  if (n > 0)
    qsort(p->node, n, sizeof *p->node, compare_shares);
  if (n == 0 || (best - p->cause.share) * of->sum <= HK_DEPARTURES_NEARLY * noise) {
    p->nodes = 0; /* a leak at a measured flow does what that sensor does */
    return;
  }
  p->cause = (struct hk_profile_cause){ .kind = HK_CAUSE_LEAK, .share = best, .size = p->node->size };
}

bool hk_departures_network(struct hk_profile *p, const struct hk_model *model, const struct hk_departures *of)
{
  struct hk_network *w = hk_model_network(model);
  const size_t points = p->plan->network->points;
  struct network_sums s = { .with = calloc(3 * points, sizeof *s.with) };
  p->node = calloc(p->plan->nodes, sizeof *p->node);
  const bool room = s.with && p->node;
  if (room && w && p->running && hk_network_linearise(w, p->friction) == 0) {
    s.own = s.with + points;
    s.by = s.own + points;
    for (uint32_t i = 0; i < of->n; i++)
      if (i < HK_PROFILE_CHECKS)
        add_check(w, p->plan, of, i, &s);
    consider_boundaries(p, of, &s);
    consider_nodes(p, of, &s, w->given);
  }
  free(s.with);
  return room;
}
