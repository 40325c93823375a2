/* The neighbour graph in float32: see graph.h. Compiled once for each instruction set; here lanes are nodes of one sensor, not
 * sensors.
 *
 * Most of a node's cost is one pass over the resident nodes: update the product, compute the similarity, compare it with those of
 * the two nodes' neighbours. Few comparisons succeed (some twenty of fifteen hundred in steady state), and only those leave the
 * vectors. Compiled without contraction of products and sums, so every instruction set, and the GPU, gives the same bits. All
 * numbers undergo the same operations at any place, so results depend neither on the wrap of the columns nor on a state that was
 * taken elsewhere. */
#include "cpu/graph/node.h"
#include "cpu/graph/split.h"
#include "cpu/sst/lanes.h"

typedef int32_t loose_mask __attribute__((vector_size(4 * HK_LANES), aligned(4)));

/* What a pass needs of the newest node, in every lane. */
struct pass {
  vec half, off, inverse, log, mean, level, locality;
  mask lanes;    /* 0, 1, 2, ... */
  int32_t local; /* number of the first product of nodes of one time */
};

/* Offers the similarities that exceed those in the nodes' lists: `which` lanes of the block at place `at`, whose first product is
 * number `product`. */
static void offer(const struct hk_graph_view *v, uint32_t at, uint32_t product, const vec *similarity, uint32_t which)
{
  const uint16_t newest = v->graph->name;
  float each[HK_LANES];
  memcpy(each, similarity, sizeof each);
  for (; which; which &= which - 1) {
    const uint32_t l = (uint32_t)__builtin_ctz(which), lag = v->most - 1 - product - l;
    hk_graph_offer(v, v->graph->head, (uint16_t)(newest - lag), each[l]);
    if (each[l] > v->similarity[(v->detector->neighbours - 1) * v->room + at + l]) {
      hk_graph_offer(v, at + l, newest, each[l]);
      hk_graph_middle(v, at + l);
    }
  }
}

/* Processes nodes at places from..to-1, the first of which has product number `product`. */
ALWAYS_INLINE void run(const struct hk_graph_view *v, const struct pass *p, uint32_t from, uint32_t to, uint32_t product,
                       bool levels)
{
  const float *worst = v->similarity + (v->detector->neighbours - 1) * v->room;
  const float *own = worst + v->graph->head; /* the newest node's least similar neighbour */
  product -= from % HK_LANES;
  for (uint32_t at = from - from % HK_LANES; at < to; at += HK_LANES, product += HK_LANES) {
    float *products = v->product + (int32_t)product;
    const vec now = load(products) + p->half * load(v->off + at) + p->off * load(v->half + at);
    *(loose *)products = now;
    const vec spreads = p->log - load(v->log + at);
    vec similarity = now * (p->inverse * load(v->inverse + at)) - every((float)HK_GRAPH_SPREAD) * spreads * spreads;
    if (levels) {
      const vec off = p->level * (p->mean - load(v->mean + at));
      similarity -= off * off;
    }
    if ((int32_t)product + HK_LANES > p->local) /* as hk_graph_locally */
      similarity = pick(p->lanes + (int32_t)product >= p->local, similarity - p->locality * (every(1) - similarity), similarity);
    mask out = (similarity > load(worst + at)) | (similarity > every(*own));
    if (at < from || at + HK_LANES > to) {
      const mask place = p->lanes + (int32_t)at;
      out &= (place >= (int32_t)from) & (place < (int32_t)to);
    }
    const uint32_t which = lanes_of(out);
    if (__builtin_expect(which != 0, 0))
      offer(v, at, product, &similarity, which);
  }
}

static void link_nodes(const struct hk_graph_view *v, const struct hk_graph_node *node)
{
  const struct hk_graph *g = v->graph;
  struct pass p = {
    every(node->half),
    every(node->off),
    every(node->inverse),
    every(node->log),
    every(node->mean),
    every(node->level),
    every(v->detector->locality),
    { 0 },
    (int32_t)v->most - (int32_t)hk_graph_local(v),
  };
  for (int l = 0; l < HK_LANES; l++)
    p.lanes[l] = l;
  const uint32_t oldest = hk_graph_place(v, g->live - 1), latest = hk_graph_place(v, hk_graph_exclusion(v));
  const uint32_t product = v->most - g->live, middle = oldest <= latest ? latest + 1 : v->room;
  if (v->mean) {
    run(v, &p, oldest, middle, product, true);
    if (oldest > latest)
      run(v, &p, 0, latest + 1, product + v->room - oldest, true);
  } else {
    run(v, &p, oldest, middle, product, false);
    if (oldest > latest)
      run(v, &p, 0, latest + 1, product + v->room - oldest, false);
  }
}

void graph_add(const struct hk_graph_view *v, const struct hk_graph_samples *s)
{
  hk_graph_add(v, s, link_nodes);
}

/* As hk_graph_f1, in float32. */
ALWAYS_INLINE vec f1_of(vec left, vec right, vec all)
{
  const vec wrong = all - left - right;
  return left / (left + left + wrong + every(1e-9f)) + right / (right + right + wrong + every(1e-9f));
}

/* As hk_graph_profile: float32 says which few splits may be the best, and double which of them is. */
struct hk_graph_split graph_profile(const struct hk_graph_view *v, const struct hk_graph_counts *counts)
{
  const uint32_t m = v->graph->live, from = hk_graph_shortest(v), to = m - from;
  hk_graph_count(v, counts);
  vec best = every(-1);
  mask lanes;
  for (int l = 0; l < HK_LANES; l++)
    lanes[l] = l;
  for (uint32_t s = from; s <= to; s += HK_LANES) {
    const mask earlier = *(const loose_mask *)(counts->earlier + s), later = *(const loose_mask *)(counts->later + s);
    const vec f1 =
        f1_of(__builtin_convertvector(earlier, vec), __builtin_convertvector((int32_t)m - later, vec), every((float)m));
    const vec sound = pick(lanes + (int32_t)s <= (int32_t)to, f1, every(-1));
    *(loose *)(counts->f1 + s) = sound;
    best = larger(best, sound);
  }
  float top = -1;
  for (int l = 0; l < HK_LANES; l++)
    top = best[l] > top ? best[l] : top;
  const vec near = every(top - 4e-6f); /* more than the rounding of both */
  double highest = -1;
  struct hk_graph_split split = { from, 0 };
  for (uint32_t s = from; s <= to; s += HK_LANES) {
    for (uint32_t which = lanes_of(load(counts->f1 + s) >= near); which; which &= which - 1) {
      const uint32_t at = s + (uint32_t)__builtin_ctz(which);
      const double f1 = hk_graph_f1(counts->earlier[at], m - counts->later[at], m);
      if (f1 > highest) {
        highest = f1;
        split.at = at;
      }
    }
  }
  split.z = hk_graph_statistic(v, split.at, counts->earlier[split.at], m - counts->later[split.at]);
  return split;
}
