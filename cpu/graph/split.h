/* The profile of all splits of the nodes of a graph, and the score of the best one. See graph.h. */
#ifndef HK_GRAPH_SPLIT_H
#define HK_GRAPH_SPLIT_H

#include "cpu/graph/graph.h"

#define HK_GRAPH_THRESHOLD 16 /* statistic with a score of 1/2 at w = 10, and its growth with the window */
#define HK_GRAPH_GROWTH 0.15
#define HK_GRAPH_DOUBT 0.4 /* reduction for segments shorter than HK_GRAPH_SHORTEST windows */

/* Result of a profile. */
struct hk_graph_split {
  uint32_t at; /* nodes before the best split */
  double z;    /* its statistic */
};

/* Work memory, indexed by split: counts of nodes on either side, and how well the split separates them; room for hk_graph_room +
 * HK_GRAPH_LANES numbers each. Owner: a thread. */
struct hk_graph_counts {
  uint32_t *earlier, *later;
  float *f1;
};

/* Counts for each split s the nodes that are, like the median of their neighbours, before s (earlier[s]), and those of which at
 * least one of the two is before s (later[s]). */
HK_INLINE void hk_graph_count(const struct hk_graph_view *v, const struct hk_graph_counts *c)
{
  const uint32_t m = v->graph->live;
  memset(c->earlier, 0, (m + 2) * sizeof *c->earlier);
  memset(c->later, 0, (m + 2) * sizeof *c->later);
  for (uint32_t i = 0, at = hk_graph_place(v, m - 1); i < m; i++, at = at + 1 < v->room ? at + 1 : 0) {
    const uint16_t age = (uint16_t)(v->graph->name - v->median[at]);
    const uint32_t own = i + 1, its = age < m ? m - age : 0; /* both are index + 1; a neighbour that does not live: before all */
    c->earlier[own > its ? own : its]++;
    c->later[own > its ? its : own]++;
  }
  for (uint32_t s = 1; s <= m; s++) {
    c->earlier[s] += c->earlier[s - 1];
    c->later[s] += c->later[s - 1];
  }
}

/* How well split s separates the nodes: the macro-F1 of classifying each node by the side of its median neighbour. */
HK_INLINE double hk_graph_f1(uint32_t left, uint32_t right, uint32_t m)
{
  const double wrong = m - left - right; /* `left` and `right` are classified correctly */
  return left / (2 * left + wrong + 1e-9) + right / (2 * right + wrong + 1e-9);
}

/* The statistic of a split s, 0 < s < m: whether nodes on the right have their neighbours on the right more often than those on
 * the left. The difference of two proportions, in standard deviations; reduced if either side is a short segment, because the
 * best of many splits of few nodes is good by chance. */
HK_INLINE double hk_graph_statistic(const struct hk_graph_view *v, uint32_t s, uint32_t left, uint32_t right)
{
  const uint32_t m = v->graph->live, shorter = s < m - s ? s : m - s, whole = HK_GRAPH_SHORTEST * v->window;
  const uint32_t crossing = s - left; /* on the left, classified as right */
  const double share = (double)(right + crossing) / m, of_left = 1.0 / s, of_right = 1.0 / (m - s);
  const double z = (right * of_right - crossing * of_left) / sqrt(share * (1 - share) * (of_left + of_right) + 1e-9);
  return shorter < whole ? z / (1 + HK_GRAPH_DOUBT * ((double)whole / shorter - 1)) : z;
}

/* The split with the highest F1, the first of several, of those that leave a shortest segment on both sides. live must be at
 * least 2 shortest. */
HK_INLINE struct hk_graph_split hk_graph_profile(const struct hk_graph_view *v, const struct hk_graph_counts *c)
{
  const uint32_t m = v->graph->live, shortest = hk_graph_shortest(v);
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
  split.z = hk_graph_statistic(v, split.at, c->earlier[split.at], m - c->later[split.at]);
  return split;
}

/* The unit of the statistic. */
HK_INLINE double hk_graph_unit(uint32_t window)
{
  return HK_GRAPH_THRESHOLD * pow(window / 10.0, HK_GRAPH_GROWTH);
}

/* The score of a statistic, [0, 1): 1/2 for one unit. */
HK_INLINE double hk_graph_score(double z, uint32_t window)
{
  return z > 0 ? z / (z + hk_graph_unit(window)) : 0;
}

#endif
