/* The neighbour graph in double, node by node: the oracle for the other backends. For sources with HK_REAL double. */
#ifndef HK_GRAPH_REFERENCE_H
#define HK_GRAPH_REFERENCE_H

#include "cpu/graph/node.h"

HK_INLINE void hk_graph_reference_link(const struct hk_graph_view *v, const struct hk_graph_node *node)
{
  const struct hk_graph *g = v->graph;
  for (uint32_t lag = g->live - 1; lag >= hk_graph_exclusion(v); lag--) {
    const uint32_t at = hk_graph_place(v, lag);
    hk_real *product = hk_graph_product_at(v, lag);
    *product += node->half * v->off[at] + node->off * v->half[at];
    const hk_real spreads = node->log - v->log[at], levels = v->mean ? node->level * (node->mean - v->mean[at]) : 0;
    hk_real similarity =
        *product * node->inverse * v->inverse[at] - (hk_real)HK_GRAPH_SPREAD * spreads * spreads - levels * levels;
    if (lag < hk_graph_local(v))
      similarity = hk_graph_locally(similarity, (hk_real)v->detector->locality);
    hk_graph_offer(v, g->head, (uint16_t)(g->name - lag), similarity);
    hk_graph_offer(v, at, g->name, similarity);
    hk_graph_middle(v, at);
  }
}

HK_INLINE void hk_graph_reference_add(const struct hk_graph_view *v, const struct hk_graph_samples *s)
{
  hk_graph_add(v, s, hk_graph_reference_link);
}

#endif
