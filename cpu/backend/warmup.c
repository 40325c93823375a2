/* The warm-up: see warmup.h. The rules are in window.h (the span), graph.h (hk_graph_step) and shift.h (hk_shift_value). */
#include "cpu/backend/warmup.h"

#include "cpu/graph/graph.h"
#include "cpu/novelty/novelty.h"
#include "cpu/shift/shift.h"

#include <inttypes.h>
#include <stdio.h>

static uint32_t warmup_larger(uint32_t a, uint32_t b)
{
  return a > b ? a : b;
}

/* A graph with a window. Nodes are counted from the first one: a score is due with every stride-th, once there are two shortest
 * segments of nodes. If the window is determined from the data, all nodes of the existing samples are added at once. */
static uint32_t of_graph(const struct hk_detector *d, uint32_t window)
{
  const struct hk_graph_view v = { .detector = d, .window = window };
  const uint32_t stride = hk_graph_stride(&v), needed = 2 * hk_graph_shortest(&v);
  const uint32_t found = hk_graph_learn(d);
  if (d->search && found + 1 >= window + warmup_larger(needed, stride))
    return found;
  return (needed + stride - 1) / stride * stride + window - 1;
}

uint32_t hk_warmup_widest(const struct hk_detector *d)
{
  if (!d->search)
    return d->window;
  const uint32_t told = (hk_graph_lags(d) - 2) / 2, most = warmup_larger(told, HK_GRAPH_FALLBACK);
  return most < d->window ? most : d->window;
}

/* Blocks are aligned to the clock: the first one may end with the second point. */
static struct hk_warmup of_limit(const struct hk_detector *d)
{
  struct hk_warmup w = { 0, 0, d->limit.window };
  const int64_t points = d->interval > 0 ? d->limit.window / d->interval : 0, block = points / HK_LIMIT_BLOCKS;
  if (points > 0 && points < UINT32_MAX - 2) {
    w.least = (uint32_t)(points - block + 1);
    w.most = (uint32_t)points + 2;
  }
  return w;
}

struct hk_warmup hk_warmup(const struct hk_detector *d)
{
  if (d->algorithm == HK_ALGORITHM_LIMIT)
    return of_limit(d);
  uint32_t first = hk_detector_span(d);
  if (d->algorithm == HK_ALGORITHM_SHIFT)
    first += (hk_shift_smooth(d) - 1 + HK_SHIFT_LEAST) * d->stride;
  else if (d->algorithm == HK_ALGORITHM_GRAPH)
    first = of_graph(d, d->search ? HK_GRAPH_WINDOW_MIN : d->window);
  else if (d->algorithm == HK_ALGORITHM_NOVELTY)
    first = HK_NOVELTY_PROBATION + 1;
  struct hk_warmup w = { first, first, 0 };
  for (uint32_t window = HK_GRAPH_WINDOW_MIN; d->search && window <= hk_warmup_widest(d); window++) {
    const uint32_t with = of_graph(d, window);
    w.least = with < w.least ? with : w.least;
    w.most = warmup_larger(w.most, with);
  }
  return w;
}

void hk_warmup_text(struct hk_warmup w, char out[HK_WARMUP_TEXT_MAX])
{
  if (w.time > 0)
    snprintf(out, HK_WARMUP_TEXT_MAX, "the first point a window, %.4g hours, behind the first, where 18 of 24 blocks are there",
             (double)w.time / 3600e9);
  else if (w.least == w.most)
    snprintf(out, HK_WARMUP_TEXT_MAX, "point %" PRIu32, w.least);
  else
    snprintf(out, HK_WARMUP_TEXT_MAX, "one of the points %" PRIu32 " to %" PRIu32 ", depending on the window that is found",
             w.least, w.most);
}
