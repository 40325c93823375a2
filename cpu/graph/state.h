/* A graph as bytes: the part of a sensor's state (cpu/rules/state.h) in place of the feedback vector for algorithm = graph.
 * Written once, in hk_real. The reference backend's numbers are rounded to float32.
 *
 * Little-endian, no padding, numbers are float32 unless stated otherwise:
 *
 *   spread, widest f64; measured, live, hop, renewed, window u32, exponent i32
 *   for each of the `live` nodes, oldest first: half, off, inverse, log; mean if the detector weights levels; and for each of
 *    its neighbours, the best first: similarity, u16: number of nodes before the newest, 65535: none
 *   the products of the lags from the exclusion to live - 1
 *
 * Names and places are assigned anew. */
#ifndef HK_GRAPH_STATE_H
#define HK_GRAPH_STATE_H

#include "cpu/graph/alert.h"
#include "cpu/rules/state.h"

#include <errno.h>

#define HK_GRAPH_STATE_HEAD (2 * 8 + 6 * 4)
#define HK_GRAPH_STATE_NONE 65535

HK_INLINE uint32_t hk_graph_state_columns(const struct hk_detector *d)
{
  return 4 + (d->level > 0);
}

/* Bytes of a graph of `live` nodes, of window w. */
HK_INLINE size_t hk_graph_state_size(const struct hk_detector *d, uint32_t w, uint32_t live)
{
  const uint32_t nearest = w / 2, products = live > nearest ? live - nearest : 0;
  return HK_GRAPH_STATE_HEAD + (size_t)live * (4 * hk_graph_state_columns(d) + 6 * d->neighbours) + 4 * (size_t)products;
}

HK_INLINE uint8_t *hk_graph_put(uint8_t *at, hk_real number)
{
  const float narrow = (float)number;
  return hk_state_put(at, &narrow, sizeof narrow);
}

HK_INLINE const uint8_t *hk_graph_get(const uint8_t *at, hk_real *number)
{
  float narrow;
  at = hk_state_take(at, &narrow, sizeof narrow);
  *number = (hk_real)narrow;
  return at;
}

/* Writes hk_graph_state_size(live) bytes and returns where they end. */
HK_INLINE uint8_t *hk_graph_state_write(uint8_t *at, const struct hk_graph_view *v)
{
  const struct hk_graph *g = v->graph;
  const struct hk_detector *d = v->detector;
  const hk_real *const columns[] = { v->half, v->off, v->inverse, v->log, v->mean };
  const double reals[] = { g->spread, g->widest };
  const uint32_t wholes[] = { g->measured, g->live, g->hop, g->renewed, g->window, (uint32_t)g->exponent };
  for (int i = 0; i < 2; i++)
    at = hk_state_put(at, &reals[i], sizeof reals[i]);
  for (int i = 0; i < 6; i++)
    at = hk_state_put(at, &wholes[i], sizeof wholes[i]);
  for (uint32_t lag = g->live; lag-- > 0;) {
    const uint32_t place = hk_graph_place(v, lag);
    for (uint32_t i = 0; i < hk_graph_state_columns(d); i++)
      at = hk_graph_put(at, columns[i][place]);
    for (uint32_t q = 0; q < d->neighbours; q++) {
      const bool none = v->similarity[q * v->room + place] == -(hk_real)INFINITY;
      const uint16_t age = none ? HK_GRAPH_STATE_NONE : (uint16_t)(g->name - v->neighbour[q * v->room + place]);
      at = hk_graph_put(at, v->similarity[q * v->room + place]);
      at = hk_state_put(at, &age, sizeof age);
    }
  }
  for (uint32_t lag = hk_graph_exclusion(v); lag < g->live; lag++)
    at = hk_graph_put(at, *hk_graph_product_at(v, lag));
  return at;
}

/* Reads a graph into v, which must be empty: reset it before, and after an error. Returns 0, or -EINVAL: hk_graph_take cannot
 * produce this graph. */
HK_INLINE int hk_graph_state_read(const uint8_t *at, size_t size, struct hk_graph_view *v)
{
  struct hk_graph *g = v->graph;
  const struct hk_detector *d = v->detector;
  hk_real *const columns[] = { v->half, v->off, v->inverse, v->log, v->mean };
  double *const reals[] = { &g->spread, &g->widest };
  uint32_t exponent = 0, *const wholes[] = { &g->measured, &g->live, &g->hop, &g->renewed, &g->window, &exponent };
  if (size < HK_GRAPH_STATE_HEAD)
    return -EINVAL;
  for (int i = 0; i < 2; i++)
    at = hk_state_take(at, reals[i], sizeof *reals[i]);
  for (int i = 0; i < 6; i++)
    at = hk_state_take(at, wholes[i], sizeof *wholes[i]);
  g->exponent = (int32_t)exponent;
  const bool found = g->window >= HK_GRAPH_WINDOW_MIN && (d->search ? g->window <= d->window : g->window == d->window);
  if (!found && (!d->search || g->window != 0))
    return -EINVAL;
  hk_graph_set_window(v, g->window);
  if (g->live > v->most || size != hk_graph_state_size(d, g->window, g->live) || (g->measured > 0 && g->measured >= g->window) ||
      (g->renewed > 0 && g->renewed >= v->most) || g->exponent < -200 || g->exponent > 200 ||
      !(g->spread >= 0 && g->spread <= 2 * HK_VALUE_MAX) || !(g->widest >= 0 && g->widest <= 2 * HK_VALUE_MAX))
    return -EINVAL;
  const uint32_t stride = hk_graph_stride(v); /* the former stride may have been longer */
  g->hop = stride > 0 ? g->hop % stride : 0;
  bool finite = true;
  g->name = (uint16_t)(g->live - 1);
  g->head = g->live > 0 ? g->live - 1 : 0;
  for (uint32_t place = 0; place < g->live; place++) {
    for (uint32_t i = 0; i < hk_graph_state_columns(d); i++) {
      at = hk_graph_get(at, &columns[i][place]);
      finite &= isfinite(columns[i][place]) != 0;
    }
    for (uint32_t q = 0; q < d->neighbours; q++) {
      uint16_t age;
      at = hk_graph_get(at, &v->similarity[q * v->room + place]);
      at = hk_state_take(at, &age, sizeof age);
      const bool none = age == HK_GRAPH_STATE_NONE;
      if (none ? v->similarity[q * v->room + place] != -(hk_real)INFINITY
               : age >= 2 * v->most || !isfinite(v->similarity[q * v->room + place]))
        return -EINVAL;
      v->neighbour[q * v->room + place] = none ? hk_graph_nobody(v, (uint16_t)place) : (uint16_t)(g->name - age);
    }
    hk_graph_middle(v, place);
  }
  for (uint32_t lag = hk_graph_exclusion(v); lag < g->live; lag++) {
    at = hk_graph_get(at, hk_graph_product_at(v, lag));
    finite &= isfinite(*hk_graph_product_at(v, lag)) != 0;
  }
  return finite ? 0 : -EINVAL;
}

/* As export_ in struct hk_backend_ops. ring: the sensor's samples in float32, in the order of the window's ring. */
HK_INLINE int64_t hk_graph_export(const struct hk_window *window, const struct hk_alert *alert, const struct hk_graph_view *v,
                                  const float *ring, void *state, size_t size)
{
  const struct hk_graph *g = v->graph;
  const size_t graph = hk_graph_state_size(v->detector, g->window, g->live);
  const size_t bytes = hk_state_head_size(window->count) + graph + HK_STATE_CHECKSUM;
  if (bytes <= size)
    hk_state_seal(state, hk_graph_state_write(hk_state_begin(state, v->detector, window, alert, ring), v));
  return (int64_t)bytes;
}

/* As import_. v: the sensor's graph. ring: room for hk_detector_span(d) float32, receives the samples, oldest first. After an
 * error the sensor is unchanged, and the contents of `ring` are undefined. */
HK_INLINE int hk_graph_import(struct hk_window *window, struct hk_alert *alert, const struct hk_graph_view *v, float *ring,
                              const void *state, size_t size)
{
  const struct hk_detector *d = v->detector;
  const size_t room = hk_graph_size(d, sizeof(hk_real));
  struct hk_window w;
  struct hk_alert a;
  const uint8_t *rest;
  size_t rest_size;
  int status = hk_state_open(state, size, d, &w, &a, ring, &rest, &rest_size);
  void *memory = status < 0 ? NULL : calloc(1, room);
  if (!memory)
    return status < 0 ? status : -ENOMEM;
  struct hk_graph_view read = hk_graph_view(memory, d);
  status = hk_graph_state_read(rest, rest_size, &read);
  if (status == 0) {
    memcpy(v->graph, read.graph, room - 64);
    *window = w;
    *alert = a;
  }
  free(memory);
  return status;
}

#endif
