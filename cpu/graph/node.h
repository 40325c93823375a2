/* A node of a neighbour graph: the numbers computed from its samples, its place, and its links. See graph.h.
 *
 * Thread: the current owner of the sensor; nothing here locks. */
#ifndef HK_GRAPH_NODE_H
#define HK_GRAPH_NODE_H

#include "cpu/graph/graph.h"

/* The lag product of the newest node and the one `lag` before it, from their samples. centred: the samples of the newest node,
 * less their mean. */
HK_INLINE hk_real hk_graph_product(const struct hk_graph_view *v, const struct hk_graph_samples *s, const double *centred,
                                   uint32_t lag)
{
  const uint32_t w = v->window;
  hk_real copy[HK_WINDOW_MAX];
  const hk_real *x = hk_graph_samples_of(s, s->first >= lag ? s->first - lag : s->first + s->span - lag, w, copy);
  double part[HK_GRAPH_PARTS] = { 0 };
  for (uint32_t t = 0; t < w; t++)
    part[t % HK_GRAPH_PARTS] = fma(centred[t], (double)x[t], part[t % HK_GRAPH_PARTS]);
  return (hk_real)ldexp(hk_graph_sum(part), -2 * v->graph->exponent);
}

/* Standard deviation of the samples from the oldest one to the last one of the newest node. */
HK_INLINE double hk_graph_spread(const struct hk_graph_samples *s)
{
  double part[HK_GRAPH_PARTS] = { 0 }, square[HK_GRAPH_PARTS] = { 0 };
  for (uint32_t i = 0, at = s->oldest; i < s->count; i++, at = at + 1 < s->span ? at + 1 : 0)
    part[i % HK_GRAPH_PARTS] += (double)s->ring[at];
  const double mean = hk_graph_sum(part) / s->count;
  for (uint32_t i = 0, at = s->oldest; i < s->count; i++, at = at + 1 < s->span ? at + 1 : 0) {
    const double off = (double)s->ring[at] - mean;
    square[i % HK_GRAPH_PARTS] = fma(off, off, square[i % HK_GRAPH_PARTS]);
  }
  return sqrt(hk_graph_sum(square) / s->count);
}

/* Mean square of the differences of successive samples, of w samples. */
HK_INLINE double hk_graph_rough(const hk_real *x, uint32_t w)
{
  double part[HK_GRAPH_PARTS] = { 0 };
  for (uint32_t t = 0; t + 1 < w; t++) {
    const double step = (double)x[t + 1] - (double)x[t];
    part[t % HK_GRAPH_PARTS] = fma(step, step, part[t % HK_GRAPH_PARTS]);
  }
  return hk_graph_sum(part) / (w - 1);
}

HK_INLINE bool hk_graph_counts_rough(const struct hk_detector *d)
{
  return d->roughness > 0;
}

/* The numbers of the newest node. */
struct hk_graph_piece {
  double mean, square; /* mean and variance of its samples */
  double rough;        /* hk_graph_rough, if hk_graph_counts_rough; otherwise not read */
  double spread;       /* hk_graph_spread, if hk_graph_measures; otherwise not read */
  double came, left;   /* its last sample, and the sample before its first */
};

/* Whether the running spread is measured with the next node. */
HK_INLINE bool hk_graph_measures(const struct hk_graph_view *v)
{
  return v->graph->measured == 0;
}

/* Enters the newest node at its place, without neighbours. Returns the lag from which on products must be computed anew
 * (hk_graph_product) before it is linked: that of the oldest node, whose product has no predecessor any more, or of all nodes. */
HK_INLINE uint32_t hk_graph_enter(const struct hk_graph_view *v, const struct hk_graph_piece *x, struct hk_graph_node *node)
{
  const struct hk_detector *d = v->detector;
  struct hk_graph *g = v->graph;
  const uint32_t w = v->window;

  /* The running spread, and the node's own spread, at least its floor. */
  if (hk_graph_measures(v))
    g->spread = x->spread;
  g->measured = g->measured + 1 < w ? g->measured + 1 : 0;
  const double own = sqrt(x->square), least = fmax(HK_ZERO_RELATIVE * fabs(x->mean), HK_ZERO_ABSOLUTE);
  const double running = fmax(fmax(g->spread, own), least), spread = fmax(own, fmax(HK_GRAPH_FLOOR * running, least));

  g->live = g->live < v->most ? g->live + 1 : v->most;
  g->head = g->head + 1 < v->room ? g->head + 1 : 0;
  g->name++;
  g->hop++;
  const uint32_t at = g->head;
  const bool alone = g->live <= 1; /* then no product has a predecessor */
  const hk_real half = alone ? 0 : (hk_real)((x->came - x->left) / 2);
  const hk_real off = alone ? 0 /* the previous mean was less by (came - left) / w */
                            : (hk_real)((x->came - x->mean) + (x->left - x->mean) + (x->came - x->left) / w);
  v->half[at] = half;
  v->off[at] = off;
  /* Constant samples: such a node is equal to others of its kind, and similar to no other node. With a floor that follows the
   * running spread, it would be most similar to those of its own time, and that resembles a change at any split. */
  const bool flat = own < least;
  const hk_real inverse = flat ? 0 : (hk_real)(1 / (spread * sqrt((double)w)));
  v->inverse[at] = inverse;
  double log_spread = log(flat ? HK_ZERO_ABSOLUTE : spread);
  if (!flat && hk_graph_counts_rough(d)) {
    const double steps = fmax(sqrt(x->rough), fmax(HK_GRAPH_FLOOR * running, least));
    log_spread -= (double)d->roughness * log(steps / spread);
  }
  v->log[at] = (hk_real)log_spread;
  if (v->mean)
    v->mean[at] = (hk_real)x->mean;
  for (uint32_t q = 0; q < d->neighbours; q++) {
    v->similarity[q * v->room + at] = -(hk_real)INFINITY;
    v->neighbour[q * v->room + at] = hk_graph_nobody(v, g->name);
  }

  const uint32_t oldest = hk_graph_place(v, g->live - 1);
  v->half[oldest] = v->off[oldest] = 0;
  int exponent;
  (void)frexp(running, &exponent);
  const bool drifted = abs(exponent - g->exponent) > HK_GRAPH_DRIFT, anew = drifted || spread * HK_GRAPH_WORN < g->widest;
  if (drifted)
    g->exponent = exponent;
  g->widest = anew ? spread : fmax(g->widest, spread);
  const double scale = ldexp(1.0, -2 * g->exponent);
  node->half = anew ? 0 : (hk_real)((double)half * scale);
  node->off = anew ? 0 : (hk_real)((double)off * scale);
  node->inverse = (hk_real)((double)inverse / scale);
  node->log = (hk_real)log_spread;
  node->mean = (hk_real)x->mean;
  node->level = (hk_real)(sqrt((double)d->level) / running);
  return anew ? hk_graph_exclusion(v) : g->live - 1;
}

/* The lag whose product is next in turn to be computed anew after the newest node is linked, so that rounding errors do not
 * accumulate; `live` or more: none. */
HK_INLINE uint32_t hk_graph_renew(const struct hk_graph_view *v)
{
  struct hk_graph *g = v->graph;
  const uint32_t nearest = hk_graph_exclusion(v);
  g->renewed = g->renewed >= nearest && g->renewed + 1 < g->live ? g->renewed + 1 : nearest;
  return g->renewed;
}

/* Adds the node whose w samples begin at s->first, and its links. */
HK_INLINE void hk_graph_add(const struct hk_graph_view *v, const struct hk_graph_samples *s, hk_graph_link *link)
{
  const uint32_t w = v->window;
  hk_real copy[HK_WINDOW_MAX];
  double centred[HK_WINDOW_MAX];
  const hk_real *x = hk_graph_samples_of(s, s->first, w, copy);
  struct hk_graph_piece piece;
  double part[HK_GRAPH_PARTS] = { 0 }, square[HK_GRAPH_PARTS] = { 0 };
  for (uint32_t t = 0; t < w; t++)
    part[t % HK_GRAPH_PARTS] += (double)x[t];
  piece.mean = hk_graph_sum(part) / w;
  for (uint32_t t = 0; t < w; t++) {
    centred[t] = (double)x[t] - piece.mean;
    square[t % HK_GRAPH_PARTS] = fma(centred[t], centred[t], square[t % HK_GRAPH_PARTS]);
  }
  piece.square = hk_graph_sum(square) / w;
  piece.rough = hk_graph_counts_rough(v->detector) ? hk_graph_rough(x, w) : 0;
  piece.spread = hk_graph_measures(v) ? hk_graph_spread(s) : 0;
  piece.came = (double)x[w - 1];
  piece.left = (double)s->ring[s->first == 0 ? s->span - 1 : s->first - 1];

  struct hk_graph_node node;
  const uint32_t nearest = hk_graph_exclusion(v), from = hk_graph_enter(v, &piece, &node), live = v->graph->live;
  for (uint32_t lag = from; lag >= nearest && lag < live; lag++)
    *hk_graph_product_at(v, lag) = hk_graph_product(v, s, centred, lag);
  if (live > nearest)
    link(v, &node);
  hk_graph_middle(v, v->graph->head);
  const uint32_t renewed = hk_graph_renew(v);
  if (renewed < live)
    *hk_graph_product_at(v, renewed) = hk_graph_product(v, s, centred, renewed);
}

#endif
