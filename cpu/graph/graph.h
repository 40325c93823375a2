/* The resident neighbour graph of one sensor: algorithm = graph. MATHEMATICS.md has the definition and its source.
 *
 * A node is a subsequence of w samples. All nodes resident since the last change are linked with their nearest neighbours; where
 * hardly any link crosses an instant, the sensor changed. The window (window.h) takes a point; then
 *
 *   hk_graph_take -> a node for each sample that came -> hk_graph_profile (split.h), when a score is due -> hk_graph_cut,
 *   on a change
 *
 * hk_graph_take calls the backend's function for adding a node, `add`. A backend with many lanes for a sensor combines the same
 * steps in its own way: hk_graph_accept, hk_graph_enter (node.h), hk_graph_step. All of it is in hk_real (see window.h). Cannot
 * fail: constant samples give similarities of 0, and lag products are scaled by a power of two to fit into float32.
 *
 * w is the detector's, or (window = auto) determined from the sensor's own samples once there are enough: window_search.h. Then
 * the nodes of all kept samples are added at once, as if w had been known from the start.
 *
 * Node i is at place i mod room of every column. Its name is i modulo 2^16, which distinguishes the nodes that can occur
 * together: a neighbour is at most 2 * most nodes old.
 *
 * Thread: the current owner of the sensor; nothing here locks. */
#ifndef HK_GRAPH_H
#define HK_GRAPH_H

#include "cpu/graph/window_search.h"

#include <stdlib.h>

#define HK_GRAPH_LANES 16   /* columns consist of whole vectors of this many numbers */
#define HK_GRAPH_PARTS 32   /* parts of a sum */
#define HK_GRAPH_SPREAD 0.2 /* weight of the spreads in the similarity */
#define HK_GRAPH_FLOOR 1e-3 /* minimum spread of a node, in running spreads */
#define HK_GRAPH_LOCAL 2    /* windows: nodes closer than this are of one time */
#define HK_GRAPH_WORN 256   /* products are computed anew when a node's spread is this many times below the largest one in them */
#define HK_GRAPH_DRIFT 20   /* and when the running spread differs from their scale by this many powers of two */

/* The graph of one sensor, without its columns. All zero: empty. */
struct hk_graph {
  double spread;     /* running spread of the samples in the ring, measured once a window */
  double widest;     /* largest spread of a node since the products were computed anew */
  uint32_t measured; /* nodes since the running spread was measured */
  uint32_t live;     /* nodes resident since the last change */
  uint32_t head;     /* place of the newest node */
  uint32_t hop;      /* nodes since a score was last due */
  uint32_t renewed;  /* lag whose product was last computed anew in turn */
  int32_t exponent;  /* products are scaled by 2^(-2 exponent) */
  uint32_t window;   /* w; 0: not determined yet */
  uint16_t name;     /* name of the newest node */
  uint16_t unused;
};

/* A graph and its columns in memory. Column q of several begins at q * room. */
struct hk_graph_view {
  struct hk_graph *graph;
  const struct hk_detector *detector;
  uint32_t window;     /* w; 0: not determined yet */
  uint32_t most;       /* maximum number of live nodes */
  uint32_t room;       /* places of a column */
  hk_real *product;    /* by lag: that of lag l is at most - 1 - l, so that later nodes follow earlier ones */
  hk_real *half;       /* by place: (the sample that came with the node - the one that left) / 2 */
  hk_real *off;        /* the sample that came less the node's mean + the one that left less the mean before */
  hk_real *inverse;    /* 1 / (spread * sqrt(w)) */
  hk_real *log;        /* log of the spread, less that of the roughness if hk_graph_counts_rough */
  hk_real *mean;       /* if the detector weights levels; else NULL */
  hk_real *similarity; /* k columns, the best neighbour first; -infinity: no neighbour */
  uint16_t *neighbour; /* k columns of names; if there is none, the name of a node that cannot live */
  uint16_t *median;    /* name of the median of a node's neighbours */
};

/* The newest node, as `add` needs it. */
struct hk_graph_node {
  hk_real half, off; /* times 2^(-2 exponent) of the products */
  hk_real inverse;   /* times 2^(2 exponent) */
  hk_real log, mean;
  hk_real level; /* root of the weight of (difference of means)^2 */
};

/* Samples of the ring, the last of which are those of the newest node. */
struct hk_graph_samples {
  const hk_real *ring;
  uint32_t span;
  uint32_t oldest, count; /* place of the oldest, and their number */
  uint32_t first;         /* place of the newest node's first sample */
};

/* Updates the products from the previous node to the newest one, and offers it and every other node, at least the exclusion and
 * less than `live` nodes before it, to each other as neighbours, the oldest first. Each backend has its own, */
typedef void hk_graph_link(const struct hk_graph_view *v, const struct hk_graph_node *node);
/* and so its own function that adds the node whose samples begin at s->first: hk_graph_add (node.h). */
typedef void hk_graph_add_node(const struct hk_graph_view *v, const struct hk_graph_samples *s);

/* Nodes closer than this are not compared. */
HK_INLINE uint32_t hk_graph_exclusion(const struct hk_graph_view *v)
{
  return v->window / 2;
}
/* Nodes closer than this are of one time, and count as less similar: hk_graph_locally. 0: none. */
HK_INLINE uint32_t hk_graph_local(const struct hk_graph_view *v)
{
  return v->detector->locality > 0 ? HK_GRAPH_LOCAL * v->window : 0;
}
/* The similarity of two nodes of one time. */
HK_INLINE hk_real hk_graph_locally(hk_real similarity, hk_real locality)
{
  return similarity - locality * (1 - similarity);
}
/* Number of nodes of the shortest segment. */
HK_INLINE uint32_t hk_graph_shortest(const struct hk_graph_view *v)
{
  return v->detector->shortest * v->window;
}
/* Nodes from one score to the next. */
HK_INLINE uint32_t hk_graph_stride(const struct hk_graph_view *v)
{
  return v->detector->stride > 0 ? v->detector->stride : v->window / 4;
}
/* The narrowest possible window, with which the most nodes live. */
HK_INLINE uint32_t hk_graph_narrowest(const struct hk_detector *d)
{
  return d->search ? HK_GRAPH_WINDOW_MIN : d->window;
}
/* Number of places of a column. */
HK_INLINE uint32_t hk_graph_room(const struct hk_detector *d)
{
  return (d->resident - hk_graph_narrowest(d) + HK_GRAPH_LANES - 1) / HK_GRAPH_LANES * HK_GRAPH_LANES;
}

/* Number of columns: half, off, inverse, log, optionally mean, and the similarities. */
HK_INLINE uint32_t hk_graph_columns(const struct hk_detector *d)
{
  return 4 + (d->level > 0) + d->neighbours;
}

/* Bytes of a graph with numbers of `size` bytes. */
HK_INLINE size_t hk_graph_bytes(const struct hk_detector *d, size_t size)
{
  const size_t room = hk_graph_room(d), products = room + 2 * HK_GRAPH_LANES;
  return (sizeof(struct hk_graph) + 63) / 64 * 64 + (products + hk_graph_columns(d) * room) * size +
         (d->neighbours + 1) * room * sizeof(uint16_t);
}

/* Bytes of memory for a graph, with any alignment. */
HK_INLINE size_t hk_graph_size(const struct hk_detector *d, size_t size)
{
  return 64 + hk_graph_bytes(d, size);
}

/* Sets w. */
HK_INLINE void hk_graph_set_window(struct hk_graph_view *v, uint32_t window)
{
  v->graph->window = v->window = window;
  v->most = window > 0 ? v->detector->resident - window : 0;
}

/* The view of the graph that begins at `memory`, which need not have been reset. */
HK_INLINE struct hk_graph_view hk_graph_view_at(void *memory, const struct hk_detector *d)
{
  struct hk_graph_view v;
  char *at = (char *)memory;
  v.detector = d;
  v.room = hk_graph_room(d);
  v.graph = (struct hk_graph *)at;
  v.window = d->search ? v.graph->window : d->window;
  v.most = v.window > 0 ? d->resident - v.window : 0;
  hk_real *numbers = (hk_real *)(at + (sizeof(struct hk_graph) + 63) / 64 * 64);
  v.product = numbers + HK_GRAPH_LANES; /* vectors may extend beyond both ends */
  numbers += v.room + 2 * HK_GRAPH_LANES;
  v.half = numbers;
  v.off = numbers + v.room;
  v.inverse = numbers + 2 * v.room;
  v.log = numbers + 3 * v.room;
  numbers += 4 * v.room;
  v.mean = NULL;
  if (d->level > 0) {
    v.mean = numbers;
    numbers += v.room;
  }
  v.similarity = numbers;
  v.neighbour = (uint16_t *)(numbers + d->neighbours * v.room);
  v.median = v.neighbour + d->neighbours * v.room;
  return v;
}

/* The view of the graph in `memory`, hk_graph_size bytes; the graph begins at the first multiple of 64. */
HK_INLINE struct hk_graph_view hk_graph_view(void *memory, const struct hk_detector *d)
{
  return hk_graph_view_at((void *)(((uintptr_t)memory + 63) / 64 * 64), d);
}

/* Bytes of all columns, which begin HK_GRAPH_LANES numbers before the products. */
HK_INLINE size_t hk_graph_columns_size(const struct hk_graph_view *v)
{
  return (size_t)((char *)(v->median + v->room) - (char *)(v->product - HK_GRAPH_LANES));
}

/* Empties a graph except its columns. again: a determined window is kept. */
HK_INLINE void hk_graph_reset_numbers(struct hk_graph_view *v, bool again)
{
  const uint32_t window = !v->detector->search ? v->detector->window : again ? v->window : 0;
  memset(v->graph, 0, sizeof *v->graph);
  hk_graph_set_window(v, window);
}

/* Empties a graph. */
HK_INLINE void hk_graph_reset(struct hk_graph_view *v, bool again)
{
  hk_graph_reset_numbers(v, again);
  memset(v->product - HK_GRAPH_LANES, 0, hk_graph_columns_size(v));
}

/* Place of the node that is `lag` nodes older than the newest; lag < live. */
HK_INLINE uint32_t hk_graph_place(const struct hk_graph_view *v, uint32_t lag)
{
  return v->graph->head >= lag ? v->graph->head - lag : v->graph->head + v->room - lag;
}

/* Name for a missing neighbour of a node: of a node too old to live at the same time. */
HK_INLINE uint16_t hk_graph_nobody(const struct hk_graph_view *v, uint16_t name)
{
  return (uint16_t)(name - v->most);
}

/* Updates the median of a node's neighbours: of an even number, the later one. */
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

/* Makes `name` a neighbour of the node at `place` if it is more similar than the least similar one. */
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

/* n contiguous samples from a place of the ring on: in the ring, or copied to `copy`. */
HK_INLINE const hk_real *hk_graph_samples_of(const struct hk_graph_samples *s, uint32_t place, uint32_t n, hk_real *copy)
{
  if (place + n <= s->span)
    return s->ring + place;
  const uint32_t tail = s->span - place;
  memcpy(copy, s->ring + place, tail * sizeof *copy);
  memcpy(copy + tail, s->ring, (n - tail) * sizeof *copy);
  return copy;
}

/* Adds the parts of a sum, of which part i is the sum of every HK_GRAPH_PARTS-th item from i on, in the order of the lanes of a
 * warp, so that all backends round alike. part is overwritten. */
HK_INLINE double hk_graph_sum(double *part)
{
  for (uint32_t n = HK_GRAPH_PARTS / 2; n > 0; n /= 2)
    for (uint32_t i = 0; i < n; i++)
      part[i] += part[i + n];
  return part[0];
}

HK_INLINE hk_real *hk_graph_product_at(const struct hk_graph_view *v, uint32_t lag)
{
  return v->product + (v->most - 1 - lag);
}

/* Effect of a point on a graph. */
struct hk_graph_brought {
  struct hk_step step;
  uint32_t nodes; /* number of nodes that its samples complete: the newest ones, to be added */
  hk_real shift;  /* amount by which all samples were reduced */
  bool fresh;     /* the graph is to be emptied first; */
  bool again;     /* then a determined window is kept */
  bool search;    /* the window is to be determined first */
};

/* Passes a point to the window. As hk_window_take, except that hk_graph_step determines whether a score is due, after the nodes
 * are added. If the point was not accepted, nothing else is to be done. */
HK_INLINE struct hk_graph_brought hk_graph_accept(const struct hk_graph_view *v, struct hk_window *w, hk_real *ring, int64_t time,
                                                  double value, int64_t arrival, bool alerted)
{
  const struct hk_detector *d = v->detector;
  const uint32_t head = w->head, span = hk_detector_span(d);
  const double reference = w->reference;
  struct hk_graph_brought b;
  b.step = hk_window_take(w, ring, d, time, value, arrival, alerted);
  const bool accepted = b.step.state != HK_STATE_LATE && b.step.state != HK_STATE_REJECTED;
  b.nodes = !accepted ? 0 : w->count == 1 ? 1 : (w->head + span - head) % span;
  b.fresh = accepted && w->count == 1;
  b.again = b.step.restarted;
  b.shift = accepted && !b.fresh ? (hk_real)(w->reference - reference) : 0;
  b.search = accepted && d->search && v->window == 0 && w->count >= hk_graph_learn(d);
  if (b.search)
    b.nodes = w->count;
  return b;
}

/* Prepares *s for the node that is `later` nodes before the newest. False: there are too few samples. */
HK_INLINE bool hk_graph_samples(const struct hk_graph_view *v, const struct hk_window *w, const hk_real *ring, uint32_t later,
                                struct hk_graph_samples *s)
{
  const uint32_t span = hk_detector_span(v->detector);
  if (v->window == 0 || w->count < later + v->window)
    return false;
  s->ring = ring;
  s->span = span;
  s->first = (w->head + span - later - v->window) % span;
  s->oldest = (w->head + span - w->count) % span;
  s->count = w->count - later;
  return true;
}

/* Completes the step after the nodes: the sensor warms up until two shortest segments of nodes live, and then a score is due on
 * every stride-th node. */
HK_INLINE struct hk_step hk_graph_step(const struct hk_graph_view *v, const struct hk_window *w, struct hk_step step)
{
  struct hk_graph *g = v->graph;
  const bool ready = v->window > 0 && g->live >= 2 * hk_graph_shortest(v), due = ready && g->hop >= hk_graph_stride(v);
  if (v->window > 0)
    g->hop %= hk_graph_stride(v);
  step.state = !ready ? HK_STATE_WARMING : w->filled * 10 > w->count ? HK_STATE_GAP : HK_STATE_OK;
  step.score = due;
  return step;
}

/* Processes a point: the window's rules, then a node for each new sample. */
HK_INLINE struct hk_step hk_graph_take(struct hk_graph_view *v, struct hk_window *w, hk_real *ring, int64_t time, double value,
                                       int64_t arrival, bool alerted, hk_graph_add_node *add)
{
  const struct hk_graph_brought b = hk_graph_accept(v, w, ring, time, value, arrival, alerted);
  if (b.step.state == HK_STATE_LATE || b.step.state == HK_STATE_REJECTED)
    return b.step;
  if (b.fresh)
    hk_graph_reset(v, b.again);
  for (uint32_t lag = 0; v->mean && b.shift != 0 && lag < v->graph->live; lag++)
    v->mean[hk_graph_place(v, lag)] -= b.shift;
  if (b.search)
    hk_graph_set_window(v, hk_graph_find_window(ring, v->detector));
  struct hk_graph_samples s;
  for (uint32_t later = b.nodes; later-- > 0;)
    if (hk_graph_samples(v, w, ring, later, &s))
      add(v, &s);
  return hk_graph_step(v, w, b.step);
}

/* Drops the links of the node `lag` before the newest to nodes that no longer live. */
HK_INLINE void hk_graph_cut_node(const struct hk_graph_view *v, uint32_t lag)
{
  const struct hk_graph *g = v->graph;
  const uint32_t k = v->detector->neighbours, place = hk_graph_place(v, lag);
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

/* Restarts the segment with node `at`: drops older nodes and the links to them. */
HK_INLINE void hk_graph_cut(const struct hk_graph_view *v, uint32_t at)
{
  v->graph->live -= at;
  for (uint32_t lag = 0; lag < v->graph->live; lag++)
    hk_graph_cut_node(v, lag);
}

#endif
