/* The resident neighbour graph of one sensor: algorithm = graph. MATHEMATICS.md has the definition and its source.
 *
 * A node is a subsequence of w samples. All that are resident since the last change are linked with their nearest neighbours,
 * and where hardly a link crosses an instant, the sensor changed there. The window (window.h) takes a point; then
 *
 *   hk_graph_take -> a node for each sample that came -> hk_graph_profile, when a score is due -> hk_graph_cut, on a change
 *
 * hk_graph_take calls the backend's own way of adding a node, `add`: the rest is written once, for every backend, in hk_real
 * (see window.h). Cannot fail: samples that are all alike give similarities of 0, and what float32 cannot hold is kept from it
 * by a power of two on the lag products.
 *
 * Node i lives at place i mod room of every column; i itself is known modulo 2^16 as its name, which tells nodes that can meet
 * apart: a neighbour is at most 2 * most nodes old.
 *
 * Thread: whoever owns the sensor at the time; nothing here locks. */
#ifndef HK_GRAPH_H
#define HK_GRAPH_H

#include "cpu/window.h"

#include <stdlib.h>

#define HK_GRAPH_LANES 16     /* columns are made of whole vectors of so many numbers */
#define HK_GRAPH_SPREAD 0.2   /* weight of the spreads in the similarity */
#define HK_GRAPH_FLOOR 1e-3   /* least spread of a node, in running spreads */
#define HK_GRAPH_THRESHOLD 16 /* statistic that scores 1/2 at w = 10, and how that grows with the window */
#define HK_GRAPH_GROWTH 0.15
#define HK_GRAPH_WORN 256 /* products are made anew when a node's spread is so many times below the largest that went in */
#define HK_GRAPH_DRIFT 20 /* and when the running spread has left their scale by so many powers of two */

/* One sensor's graph: its numbers. All zero is an empty one. */
struct hk_graph {
  double spread;     /* running spread: of the samples in the ring, once a window */
  double widest;     /* largest spread of a node since the products were made anew */
  uint32_t measured; /* nodes since the running spread was measured */
  uint32_t live;     /* nodes resident since the last change */
  uint32_t head;     /* place of the newest */
  uint32_t hop;      /* nodes since a score was last due */
  uint32_t renewed;  /* lag whose product was last made anew in turn */
  int32_t exponent;  /* products are kept times 2^(-2 exponent) */
  uint16_t name;     /* of the newest */
  uint16_t unused[3];
};

/* A graph and its columns, as they lie in memory. Column q of several begins at q * room. */
struct hk_graph_view {
  struct hk_graph *graph;
  const struct hk_detector *detector;
  uint32_t most;       /* nodes that may live */
  uint32_t room;       /* of a column */
  hk_real *product;    /* by lag: that of lag l at most - 1 - l, so that a later node stands behind an earlier one */
  hk_real *half;       /* by place: (the sample that came with the node - the one that left) / 2 */
  hk_real *off;        /* the sample that came less the node's mean + the one that left less the mean before */
  hk_real *inverse;    /* 1 / (spread * sqrt(w)) */
  hk_real *log;        /* of the spread */
  hk_real *mean;       /* where the detector gives levels a weight; else NULL */
  hk_real *similarity; /* k columns, the best neighbour's first; -infinity: there is none */
  uint16_t *neighbour; /* k columns: names; where there is none, that of a node which cannot live */
  uint16_t *median;    /* of a node's neighbours */
};

/* The newest node, as `add` needs it. */
struct hk_graph_node {
  hk_real half, off; /* times 2^(-2 exponent) of the products */
  hk_real inverse;   /* times 2^(2 exponent) */
  hk_real log, mean;
  hk_real level; /* root of the weight of (difference of means)^2 */
};

/* Samples of the ring, of which the newest node's are the last. */
struct hk_graph_samples {
  const hk_real *ring;
  uint32_t span;
  uint32_t oldest, count;        /* place of the oldest, and how many there are */
  uint32_t first;                /* place of the newest node's first sample */
  double centred[HK_WINDOW_MAX]; /* the newest node's samples less their mean */
};

/* What a profile says. */
struct hk_graph_split {
  uint32_t at; /* nodes before the best split */
  double z;    /* its statistic */
};

/* Brings the products from the node before to the newest one and offers it and every other node, at least the exclusion and less
 * than `live` nodes before it, to each other, the oldest first. Backends have their own, */
typedef void hk_graph_link(const struct hk_graph_view *v, const struct hk_graph_node *node);
/* and with it their own of adding the node whose samples begin at s->first: hk_graph_add. */
typedef void hk_graph_add_node(const struct hk_graph_view *v, struct hk_graph_samples *s);

HK_INLINE uint32_t hk_graph_most(const struct hk_detector *d)
{
  return d->resident - d->window;
}
HK_INLINE uint32_t hk_graph_exclusion(const struct hk_detector *d)
{
  return d->window / 2;
}
HK_INLINE uint32_t hk_graph_shortest(const struct hk_detector *d)
{
  return HK_GRAPH_SHORTEST * d->window;
}
HK_INLINE uint32_t hk_graph_room(const struct hk_detector *d)
{
  return (hk_graph_most(d) + HK_GRAPH_LANES - 1) / HK_GRAPH_LANES * HK_GRAPH_LANES;
}

/* Columns of numbers: half, off, inverse, log, perhaps mean, and the similarities. */
HK_INLINE uint32_t hk_graph_columns(const struct hk_detector *d)
{
  return 4 + (d->level > 0) + d->neighbours;
}

/* Bytes of a graph with numbers of `size` bytes, wherever it begins. */
HK_INLINE size_t hk_graph_size(const struct hk_detector *d, size_t size)
{
  const size_t room = hk_graph_room(d), products = room + 2 * HK_GRAPH_LANES;
  return 64 + (sizeof(struct hk_graph) + 63) / 64 * 64 + (products + hk_graph_columns(d) * room) * size +
         (d->neighbours + 1) * room * sizeof(uint16_t);
}

/* The graph that lies in `memory`, hk_graph_size bytes. */
HK_INLINE struct hk_graph_view hk_graph_view(void *memory, const struct hk_detector *d)
{
  struct hk_graph_view v = { .detector = d, .most = hk_graph_most(d), .room = hk_graph_room(d) };
  char *at = (char *)(((uintptr_t)memory + 63) / 64 * 64);
  v.graph = (struct hk_graph *)at;
  hk_real *numbers = (hk_real *)(at + (sizeof(struct hk_graph) + 63) / 64 * 64);
  v.product = numbers + HK_GRAPH_LANES; /* vectors may reach beyond both ends */
  numbers += v.room + 2 * HK_GRAPH_LANES;
  v.half = numbers;
  v.off = numbers + v.room;
  v.inverse = numbers + 2 * v.room;
  v.log = numbers + 3 * v.room;
  numbers += 4 * v.room;
  if (d->level > 0) {
    v.mean = numbers;
    numbers += v.room;
  }
  v.similarity = numbers;
  v.neighbour = (uint16_t *)(numbers + d->neighbours * v.room);
  v.median = v.neighbour + d->neighbours * v.room;
  return v;
}

/* Empties a graph. */
HK_INLINE void hk_graph_reset(const struct hk_graph_view *v)
{
  memset(v->graph, 0, sizeof *v->graph);
  memset(v->product - HK_GRAPH_LANES, 0, (char *)(v->median + v->room) - (char *)(v->product - HK_GRAPH_LANES));
}

/* Place of the node that is `lag` nodes older than the newest; lag < live. */
HK_INLINE uint32_t hk_graph_place(const struct hk_graph_view *v, uint32_t lag)
{
  return v->graph->head >= lag ? v->graph->head - lag : v->graph->head + v->room - lag;
}

/* Name of a node's neighbour that is not: too old to live as long as the node does. */
HK_INLINE uint16_t hk_graph_nobody(const struct hk_graph_view *v, uint16_t name)
{
  return (uint16_t)(name - v->most);
}

/* Finds the median of a node's neighbours anew: of an even number, the later. */
HK_INLINE void hk_graph_middle(const struct hk_graph_view *v, uint32_t place)
{
  const uint32_t k = v->detector->neighbours;
  uint16_t name[HK_NEIGHBOURS_MAX], age[HK_NEIGHBOURS_MAX];
  for (uint32_t q = 0; q < k; q++) {
    const uint16_t its = v->neighbour[q * v->room + place], old = (uint16_t)(v->graph->name - its);
    uint32_t at = q;
    for (; at > 0 && age[at - 1] < old; at--) {
      age[at] = age[at - 1];
      name[at] = name[at - 1];
    }
    age[at] = old;
    name[at] = its;
  }
  v->median[place] = name[k - (k + 1) / 2];
}

/* Makes `name` a neighbour of the node at `place` if it is more alike than the least alike that it has. */
HK_INLINE void hk_graph_offer(const struct hk_graph_view *v, uint32_t place, uint16_t name, hk_real similarity)
{
  uint32_t q = v->detector->neighbours - 1;
  hk_real *best = v->similarity + place;
  uint16_t *neighbour = v->neighbour + place;
  if (!(similarity > best[q * v->room]))
    return;
  for (; q > 0 && best[(q - 1) * v->room] < similarity; q--) {
    best[q * v->room] = best[(q - 1) * v->room];
    neighbour[q * v->room] = neighbour[(q - 1) * v->room];
  }
  best[q * v->room] = similarity;
  neighbour[q * v->room] = name;
}

/* n samples from a place of the ring on, in one piece: theirs, or a copy. */
HK_INLINE const hk_real *hk_graph_piece(const struct hk_graph_samples *s, uint32_t place, uint32_t n, hk_real *copy)
{
  if (place + n <= s->span)
    return s->ring + place;
  const uint32_t tail = s->span - place;
  memcpy(copy, s->ring + place, tail * sizeof *copy);
  memcpy(copy + tail, s->ring, (n - tail) * sizeof *copy);
  return copy;
}

/* The lag product of the newest node and the one `lag` before it, from their samples. */
HK_INLINE hk_real hk_graph_product(const struct hk_graph_view *v, const struct hk_graph_samples *s, uint32_t lag)
{
  const uint32_t w = v->detector->window;
  hk_real copy[HK_WINDOW_MAX];
  const hk_real *x = hk_graph_piece(s, s->first >= lag ? s->first - lag : s->first + s->span - lag, w, copy);
  double sum[4] = { 0 };
  uint32_t t = 0;
  for (; t + 4 <= w; t += 4) {
    for (uint32_t i = 0; i < 4; i++)
      sum[i] = fma(s->centred[t + i], (double)x[t + i], sum[i]);
  }
  for (; t < w; t++)
    sum[0] = fma(s->centred[t], (double)x[t], sum[0]);
  return (hk_real)ldexp((sum[0] + sum[1]) + (sum[2] + sum[3]), -2 * v->graph->exponent);
}

HK_INLINE hk_real *hk_graph_product_at(const struct hk_graph_view *v, uint32_t lag)
{
  return v->product + (v->most - 1 - lag);
}

/* Standard deviation of the samples from the oldest to the newest node's last. */
HK_INLINE double hk_graph_spread(const struct hk_graph_samples *s)
{
  double mean = 0, square = 0;
  for (uint32_t i = 0, at = s->oldest; i < s->count; i++, at = at + 1 < s->span ? at + 1 : 0)
    mean += (double)s->ring[at];
  mean /= s->count;
  for (uint32_t i = 0, at = s->oldest; i < s->count; i++, at = at + 1 < s->span ? at + 1 : 0)
    square += ((double)s->ring[at] - mean) * ((double)s->ring[at] - mean);
  return sqrt(square / s->count);
}

/* Adds the node whose w samples stand at s->first, and its links. */
HK_INLINE void hk_graph_add(const struct hk_graph_view *v, struct hk_graph_samples *s, hk_graph_link *link)
{
  const struct hk_detector *d = v->detector;
  struct hk_graph *g = v->graph;
  const uint32_t w = d->window;
  hk_real copy[HK_WINDOW_MAX];
  const hk_real *x = hk_graph_piece(s, s->first, w, copy);
  double mean = 0, square = 0;
  for (uint32_t t = 0; t < w; t++)
    mean += (double)x[t];
  mean /= w;
  for (uint32_t t = 0; t < w; t++) {
    s->centred[t] = (double)x[t] - mean;
    square = fma(s->centred[t], s->centred[t], square);
  }
  square /= w;

  /* The running spread, and the node's own above its floor. */
  if (g->measured == 0)
    g->spread = hk_graph_spread(s);
  g->measured = g->measured + 1 < w ? g->measured + 1 : 0;
  const double own = sqrt(square), least = fmax(HK_ZERO_RELATIVE * fabs(mean), HK_ZERO_ABSOLUTE);
  const double running = fmax(fmax(g->spread, own), least), spread = fmax(own, fmax(HK_GRAPH_FLOOR * running, least));

  g->live = g->live < v->most ? g->live + 1 : v->most;
  g->head = g->head + 1 < v->room ? g->head + 1 : 0;
  g->name++;
  g->hop++;
  const uint32_t at = g->head;
  if (g->live > 1) {
    const double came = (double)x[w - 1], left = (double)s->ring[s->first == 0 ? s->span - 1 : s->first - 1];
    v->half[at] = (hk_real)((came - left) / 2);
    v->off[at] = (hk_real)((came - mean) + (left - mean) + (came - left) / w); /* the mean before was (came - left) / w less */
  }
  v->inverse[at] = (hk_real)(1 / (spread * sqrt((double)w)));
  v->log[at] = (hk_real)log(spread);
  if (v->mean)
    v->mean[at] = (hk_real)mean;
  for (uint32_t q = 0; q < d->neighbours; q++) {
    v->similarity[q * v->room + at] = -(hk_real)INFINITY;
    v->neighbour[q * v->room + at] = hk_graph_nobody(v, g->name);
  }

  /* What the oldest node's product is made of is of no use any more: it is always made anew. */
  const uint32_t oldest = hk_graph_place(v, g->live - 1), nearest = hk_graph_exclusion(d);
  v->half[oldest] = v->off[oldest] = 0;
  int exponent;
  (void)frexp(running, &exponent);
  const bool drifted = abs(exponent - g->exponent) > HK_GRAPH_DRIFT, anew = drifted || spread * HK_GRAPH_WORN < g->widest;
  if (drifted)
    g->exponent = exponent;
  g->widest = anew ? spread : fmax(g->widest, spread);
  for (uint32_t lag = anew ? nearest : g->live - 1; lag >= nearest && lag < g->live; lag++)
    *hk_graph_product_at(v, lag) = hk_graph_product(v, s, lag);
  const double scale = ldexp(1, -2 * g->exponent);
  const struct hk_graph_node node = {
    .half = anew ? 0 : (hk_real)((double)v->half[at] * scale),
    .off = anew ? 0 : (hk_real)((double)v->off[at] * scale),
    .inverse = (hk_real)((double)v->inverse[at] / scale),
    .log = v->log[at],
    .mean = (hk_real)mean,
    .level = (hk_real)(sqrt((double)d->level) / running),
  };
  if (g->live > nearest)
    link(v, &node);
  hk_graph_middle(v, at);

  /* One product in turn is made anew, so that rounding does not gather. */
  g->renewed = g->renewed >= nearest && g->renewed + 1 < g->live ? g->renewed + 1 : nearest;
  if (g->renewed < g->live)
    *hk_graph_product_at(v, g->renewed) = hk_graph_product(v, s, g->renewed);
}

/* Takes a point: the window's rules, then a node for every sample that came. As hk_window_take, but that the sensor warms up
 * until two shortest segments of nodes live, and that a score is due then on every stride-th node. */
HK_INLINE struct hk_step hk_graph_take(const struct hk_graph_view *v, struct hk_window *w, hk_real *ring, int64_t time,
                                       double value, int64_t arrival, bool alerted, hk_graph_add_node *add)
{
  const struct hk_detector *d = v->detector;
  struct hk_graph *g = v->graph;
  const uint32_t head = w->head, span = hk_detector_span(d);
  const double reference = w->reference;
  struct hk_step step = hk_window_take(w, ring, d, time, value, arrival, alerted);
  if (step.state == HK_STATE_LATE || step.state == HK_STATE_REJECTED)
    return step;
  const uint32_t came = w->count == 1 ? 1 : (w->head + span - head) % span;
  if (w->count == 1) {
    hk_graph_reset(v);
  } else if (w->reference != reference) {
    const hk_real shift = (hk_real)(w->reference - reference);
    for (uint32_t lag = 0; v->mean && lag < g->live; lag++)
      v->mean[hk_graph_place(v, lag)] -= shift;
  }
  struct hk_graph_samples s;
  s.ring = ring;
  s.span = span;
  bool due = false;
  for (uint32_t later = came; later-- > 0;) {
    if (w->count - later < d->window)
      continue;
    s.first = (w->head + span - later - d->window) % span;
    s.oldest = (w->head + span - w->count) % span;
    s.count = w->count - later;
    add(v, &s);
    due |= g->hop >= d->stride;
    if (g->hop >= d->stride)
      g->hop = 0;
  }
  const bool ready = g->live >= 2 * hk_graph_shortest(d);
  step.state = !ready ? HK_STATE_WARMING : w->filled * 10 > w->count ? HK_STATE_GAP : HK_STATE_OK;
  step.score = ready && due;
  return step;
}

/* Counts of nodes that fall to either side of a split, for all splits, and how well it tells them apart: room for
 * hk_graph_room + HK_GRAPH_LANES each. Owner: a thread. */
struct hk_graph_counts {
  uint32_t *earlier, *later;
  float *f1;
};

/* Counts, for every split s, how many nodes stand with the median of their neighbours before s (earlier[s]), and how many have
 * one of the two before s (later[s]). */
HK_INLINE void hk_graph_count(const struct hk_graph_view *v, const struct hk_graph_counts *c)
{
  const uint32_t m = v->graph->live;
  memset(c->earlier, 0, (m + 2) * sizeof *c->earlier);
  memset(c->later, 0, (m + 2) * sizeof *c->later);
  for (uint32_t i = 0, at = hk_graph_place(v, m - 1); i < m; i++, at = at + 1 < v->room ? at + 1 : 0) {
    const uint16_t age = (uint16_t)(v->graph->name - v->median[at]);
    const uint32_t own = i + 1, its = age < m ? m - age : 0; /* both 1 more than the index; no such neighbour: before all */
    c->earlier[own > its ? own : its]++;
    c->later[own > its ? its : own]++;
  }
  for (uint32_t s = 1; s <= m; s++) {
    c->earlier[s] += c->earlier[s - 1];
    c->later[s] += c->later[s - 1];
  }
}

/* How well split s tells the nodes apart: the macro-F1 of calling every node by the side of its median neighbour. */
HK_INLINE double hk_graph_f1(uint32_t left, uint32_t right, uint32_t m)
{
  const double wrong = m - left - right; /* `left` and `right` are called rightly */
  return left / (2 * left + wrong + 1e-9) + right / (2 * right + wrong + 1e-9);
}

/* The statistic of a split s, 0 < s < m: do nodes to the right have their neighbours to the right more often than those to the
 * left? Two proportions, in standard deviations. */
HK_INLINE double hk_graph_statistic(uint32_t s, uint32_t left, uint32_t right, uint32_t m)
{
  const uint32_t crossing = s - left; /* on the left, called right */
  const double share = (double)(right + crossing) / m, of_left = 1.0 / s, of_right = 1.0 / (m - s);
  return (right * of_right - crossing * of_left) / sqrt(share * (1 - share) * (of_left + of_right) + 1e-9);
}

/* The split of highest F1, the first of several, among those that leave a shortest segment on both sides. live must be at least
 * 2 shortest. */
HK_INLINE struct hk_graph_split hk_graph_profile(const struct hk_graph_view *v, const struct hk_graph_counts *c)
{
  const uint32_t m = v->graph->live, shortest = hk_graph_shortest(v->detector);
  double best = -1;
  struct hk_graph_split split = { 0, 0 };
  hk_graph_count(v, c);
  for (uint32_t s = shortest; s + shortest <= m; s++) {
    const double f1 = hk_graph_f1(c->earlier[s], m - c->later[s], m);
    if (f1 > best) {
      best = f1;
      split.at = s;
    }
  }
  split.z = hk_graph_statistic(split.at, c->earlier[split.at], m - c->later[split.at], m);
  return split;
}

/* The segment begins anew with node `at`: older ones are dropped, and with them links to them. */
HK_INLINE void hk_graph_cut(const struct hk_graph_view *v, uint32_t at)
{
  struct hk_graph *g = v->graph;
  const uint32_t k = v->detector->neighbours;
  g->live -= at;
  for (uint32_t lag = 0; lag < g->live; lag++) {
    const uint32_t place = hk_graph_place(v, lag);
    uint32_t kept = 0;
    for (uint32_t q = 0; q < k; q++) {
      const uint16_t name = v->neighbour[q * v->room + place];
      if ((uint16_t)(g->name - name) < g->live) {
        v->neighbour[kept * v->room + place] = name;
        v->similarity[kept++ * v->room + place] = v->similarity[q * v->room + place];
      }
    }
    for (uint32_t q = kept; q < k; q++) {
      v->neighbour[q * v->room + place] = hk_graph_nobody(v, (uint16_t)(g->name - lag));
      v->similarity[q * v->room + place] = -(hk_real)INFINITY;
    }
    if (kept < k)
      hk_graph_middle(v, place);
  }
}

/* What the statistic is measured in. */
HK_INLINE double hk_graph_unit(const struct hk_detector *d)
{
  return HK_GRAPH_THRESHOLD * pow(d->window / 10.0, HK_GRAPH_GROWTH);
}

/* The score of a statistic, [0, 1): 1/2 where it is one unit. */
HK_INLINE double hk_graph_score(double z, const struct hk_detector *d)
{
  return z > 0 ? z / (z + hk_graph_unit(d)) : 0;
}

#endif
