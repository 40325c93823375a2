/* Estimates the change instant of a graph's alert again after the new segment has grown. Written once, for every backend (see
 * window.h for how).
 *
 * An alert that is raised early has few samples of its new segment, and its instant may be inaccurate. When the segment is about
 * to be long enough for a score, and has grown by half a window or more since, nodes on a grid of w/8 samples, up to two windows
 * on either side of the first estimate, are examined: is the nearest neighbour of each, among all nodes on that grid of both
 * segments, before or after the change? The instant is the place on the grid with the fewest neighbours on the wrong side:
 *
 *   wrong(u) / (u (R - u)) minimal, wrong(u) = #{r < u: its neighbour is at u or later} + #{r >= u: it is before u}, 0 < u < R
 *
 * R is the number of examined nodes; of several minima the middle between the first and the last. The graph has dropped the old
 * segment by then, so neighbours are found from the samples that are still kept, in R passes over them, which any threads may do.
 * tests/bench/results/detection-instants.txt has the results. The graph itself, and so later alerts, are not affected.
 *
 * Cannot fail. Thread: the current owner of the sensor. */
#ifndef HK_REESTIMATE_H
#define HK_REESTIMATE_H

#include "cpu/graph/node.h"
#include "cpu/rules/alert.h"

#define HK_AGAIN_REACH 2  /* windows on either side */
#define HK_AGAIN_LEAST 3  /* windows of the old segment that must still be kept */
#define HK_AGAIN_ROWS 64u /* maximum number of examined nodes */

/* Numbers of kept samples of the ended segment and of the new one. */
struct hk_graph_sides {
  uint32_t older, newer;
};

/* The sides of a raised alert, by its first estimate. */
HK_INLINE struct hk_graph_sides hk_graph_sides(const struct hk_alert *a, const struct hk_graph_view *v, const struct hk_window *w)
{
  const uint32_t newer = v->graph->live + v->window - 1, kept = w->count > newer ? w->count - newer : 0;
  const struct hk_graph_sides sides = { a->scores < kept ? a->scores : kept, newer };
  return sides;
}

/* Whether the instant is estimated again with this point. step: from hk_graph_step, before the alert rule. */
HK_INLINE bool hk_graph_looks_again(const struct hk_alert *a, const struct hk_graph_view *v, const struct hk_window *w,
                                    struct hk_step step)
{
  return v->window > 0 && a->raised && !a->settled && !step.restarted && 2 * (a->since + 1) >= v->window &&
         v->graph->live + 2 >= 2 * hk_graph_shortest(v) && hk_graph_sides(a, v, w).older >= HK_AGAIN_LEAST * v->window;
}

/* Samples from one node on the grid to the next. */
HK_INLINE uint32_t hk_again_grid(const struct hk_graph_view *v)
{
  return v->window < 16 ? 1 : v->window / 8;
}

/* Number of examined nodes: even, at most HK_AGAIN_ROWS. */
HK_INLINE uint32_t hk_again_rows(const struct hk_graph_view *v)
{
  return 2 * (HK_AGAIN_REACH * v->window / hk_again_grid(v));
}

/* The samples of both segments. */
struct hk_again_samples {
  const hk_real *ring;
  uint32_t span, oldest; /* place of the oldest */
};

HK_INLINE double hk_again_sample(const struct hk_again_samples *s, uint32_t i)
{
  const uint32_t at = s->oldest + i;
  return (double)s->ring[at < s->span ? at : at - s->span];
}

/* The numbers of a node for the similarity, besides the product. */
struct hk_again_node {
  double mean, spread, log;
};

/* Computes the numbers of a node from the sums of its samples, of their squares, and of the squares of their steps. */
HK_INLINE struct hk_again_node hk_again_node(const struct hk_graph_view *v, double sum, double squares, double steps)
{
  const uint32_t w = v->window;
  struct hk_again_node node;
  node.mean = sum / w;
  const double own = sqrt(fmax(squares / w - node.mean * node.mean, 0.0));
  const double least = fmax(HK_ZERO_RELATIVE * fabs(node.mean), HK_ZERO_ABSOLUTE);
  const double floor = fmax(HK_GRAPH_FLOOR * fmax(fmax(v->graph->spread, own), least), least);
  node.spread = fmax(own, floor);
  node.log = log(node.spread);
  if (hk_graph_counts_rough(v->detector))
    node.log -= (double)v->detector->roughness * log(fmax(sqrt(steps / (w - 1)), floor) / node.spread);
  return node;
}

/* The similarity of the nodes that begin at samples c and j, by MATHEMATICS.md. of_c: the numbers of c; if c = j, they are
 * computed and written. */
HK_INLINE double hk_again_similarity(const struct hk_graph_view *v, const struct hk_again_samples *s, uint32_t c, uint32_t j,
                                     struct hk_again_node *of_c)
{
  double sum = 0, squares = 0, steps = 0, product = 0, before = 0;
  for (uint32_t t = 0; t < v->window; t++) {
    const double x = hk_again_sample(s, j + t), step = t > 0 ? x - before : 0;
    sum += x;
    squares = fma(x, x, squares);
    steps = fma(step, step, steps);
    if (c != j)
      product = fma(hk_again_sample(s, c + t) - of_c->mean, x, product);
    before = x;
  }
  const struct hk_again_node node = hk_again_node(v, sum, squares, steps);
  if (c == j) {
    *of_c = node;
    return 1;
  }
  const double logs = of_c->log - node.log, running = fmax(v->graph->spread, fmax(of_c->spread, node.spread));
  const double levels = (of_c->mean - node.mean) / running;
  return product / (v->window * of_c->spread * node.spread) - HK_GRAPH_SPREAD * logs * logs -
         (double)v->detector->level * levels * levels;
}

/* The nearest neighbour of examined node number `row`: its place on the grid, in steps from the first estimate of the change,
 * negative before it; of equals, the oldest. */
HK_INLINE int32_t hk_graph_nearest(const struct hk_graph_view *v, const struct hk_window *w, const hk_real *ring,
                                   struct hk_graph_sides sides, uint32_t row)
{
  const uint32_t grid = hk_again_grid(v), rows = hk_again_rows(v), span = hk_detector_span(v->detector);
  const uint32_t nodes = sides.older + sides.newer - v->window + 1, first = sides.older % grid;
  const uint32_t c = sides.older - rows / 2 * grid + row * grid, exclusion = hk_graph_exclusion(v);
  const struct hk_again_samples s = { ring, span, (w->head + 2 * span - sides.older - sides.newer) % span };
  struct hk_again_node node = { 0, 0, 0 };
  (void)hk_again_similarity(v, &s, c, c, &node);
  double best = -INFINITY;
  uint32_t nearest = first;
  for (uint32_t j = first; j < nodes; j += grid) {
    if (j + exclusion > c && c + exclusion > j)
      continue;
    const double similarity = hk_again_similarity(v, &s, c, j, &node);
    if (similarity > best) {
      best = similarity;
      nearest = j;
    }
  }
  return (int32_t)(nearest / grid) - (int32_t)(sides.older / grid);
}

/* Returns by how many samples the change is later than first estimated. nearest: of all examined nodes. */
HK_INLINE int32_t hk_graph_moved(const struct hk_graph_view *v, const int32_t *nearest)
{
  const int32_t rows = (int32_t)hk_again_rows(v), half = rows / 2;
  double least = INFINITY;
  int32_t first = half, last = half;
  for (int32_t u = 1; u < rows; u++) {
    int32_t wrong = 0;
    for (int32_t r = 0; r < rows; r++)
      wrong += (r < u) != (nearest[r] < u - half);
    const double cost = wrong / ((double)u * (rows - u));
    if (cost < least) {
      least = cost;
      first = u;
    }
    if (cost == least)
      last = u;
  }
  return ((first + last) / 2 - half) * (int32_t)hk_again_grid(v);
}

#endif
