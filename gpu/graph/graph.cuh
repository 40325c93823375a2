/* Neighbour graphs of a few sensors, by a warp: they compute what cpu/graph/graph.h describes. The warp passes over the nodes of
 * one sensor after the other; the lanes do sequential work for all of its sensors at once, each for its own.
 *
 * Every function here is called by all lanes of a warp, unless it says otherwise, and when it returns, all lanes see what it
 * wrote. Sums have the order of the host, products and sums are not contracted on either side, and the best of several does not
 * depend on the lane that finds it. So results are those of the CPU backend, bit by bit where log and pow round alike. None
 * depends on how points were divided into batches, on where a graph is kept, or on the warp's other sensors. */
#ifndef HK_GRAPH_CUH
#define HK_GRAPH_CUH

#include "cpu/graph/alert.h"
#include "gpu/graph/link.cuh"

#define HK_MEDIANS 16u /* that a lane loads together */

/* The newest node's neighbours, and their median as hk_graph_middle. */
static __device__ __forceinline__ void hk_warp_neighbours(const struct hk_graph_view *v, struct hk_graph_best best)
{
  const uint32_t k = v->detector->neighbours, head = v->graph->head, lane = hk_lane();
  const uint16_t name = v->graph->name;
  const uint32_t age = best.lag > 0 ? best.lag : v->most; /* that of hk_graph_nobody */
  uint32_t older = 0;
  for (uint32_t q = 0; q < k; q++) {
    const uint32_t other = __shfl_sync(HK_ALL, age, q);
    older += other > age || (other == age && q < lane);
  }
  if (lane >= k)
    return;
  if (best.lag > 0) {
    v->similarity[lane * v->room + head] = best.similarity;
    v->neighbour[lane * v->room + head] = (uint16_t)(name - best.lag);
  }
  if (older == k - (k + 1) / 2)
    v->median[head] = (uint16_t)(name - age);
}

/* Whether the newest node is compared with others. */
static __device__ __forceinline__ bool hk_lane_compares(const struct hk_graph_view *v)
{
  return v->graph->live > hk_graph_exclusion(v);
}

/* Computes anew the products that must be before the newest node is compared, and the one that is in turn, which is stored when
 * it has been. */
static __device__ __forceinline__ void hk_warp_anew(struct hk_graph_sensor *sensor)
{
  const struct hk_graph_view *v = &sensor->view;
  const uint32_t live = v->graph->live, from = max(sensor->from, hk_graph_exclusion(v));
  const struct hk_graph_products first = hk_warp_products(sensor, from, sensor->renewed);
  if (hk_lane() == 0) {
    *hk_graph_product_at(v, from) = first.of[0];
    sensor->product = first.of[1];
  }
  for (uint32_t lag = from + 1; lag < live; lag += 2) {
    const uint32_t other = min(lag + 1, live - 1);
    const struct hk_graph_products next = hk_warp_products(sensor, lag, other);
    if (hk_lane() < 2)
      *hk_graph_product_at(v, hk_lane() == 0 ? lag : other) = next.of[hk_lane() == 0 ? 0 : 1];
  }
}

/* Links the newest nodes of sensors, which are compared, but for the last of what they change at others: hk_warp_offers. The
 * chunks of all follow each other without a pause. */
static __device__ __forceinline__ void hk_warp_link(const struct hk_graph_sensor *sensors, uint32_t which,
                                                    struct hk_graph_desk *desk, struct hk_graph_chunk *chunks)
{
  const struct hk_graph_best none = { -INFINITY, 0, -INFINITY };
  struct hk_graph_best best = none;
  uint32_t rest = which & (which - 1);
  struct hk_graph_cursor now = hk_warp_prepare(sensors, __ffs(which) - 1, desk, 0);
  hk_chunk_fetch(desk, now, &chunks[0]);
  __pipeline_commit();
#pragma unroll 1
  for (uint32_t turn = 0; now.pass != HK_NO_PASS; turn ^= 1) {
    const struct hk_graph_cursor next = hk_cursor_next(now, sensors, desk, &rest);
    if (next.pass != HK_NO_PASS)
      hk_chunk_fetch(desk, next, &chunks[turn ^ 1]);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncwarp();
    hk_warp_compare(sensors, desk, &chunks[turn], now, &best);
    __syncwarp(); /* the chunk's place is that of one that will come */
    if (next.pass != now.pass) {
      const struct hk_graph_sensor *const sensor = &sensors[desk->pass[now.pass].who];
      hk_warp_neighbours(&sensor->view, best);
      if (hk_lane() == 0)
        *hk_graph_product_at(&sensor->view, sensor->renewed) = sensor->product;
      best = none;
      if (desk->n_offers >= HK_WARP)
        hk_warp_offers(sensors, desk);
      __syncwarp(); /* all know whose pass it was: with one chunk, the next turn prepares another in its place */
    }
    now = next;
  }
  __syncwarp();
}

/* As hk_graph_enter and hk_graph_renew. By the sensor's own lane. */
static __device__ __forceinline__ void hk_lane_enter(struct hk_graph_sensor *sensor)
{
  sensor->from = hk_graph_enter(&sensor->view, &sensor->piece, &sensor->node);
  sensor->renewed = hk_graph_renew(&sensor->view);
  hk_lane_foresee(&sensor->samples, sensor->from, sensor->view.window);
  hk_lane_foresee(&sensor->samples, sensor->renewed, sensor->view.window);
}

/* As hk_graph_add, for each sensor of a set. */
static __device__ __forceinline__ void hk_warp_add(struct hk_graph_sensor *sensors, uint32_t which, struct hk_graph_desk *desk,
                                                   struct hk_graph_chunk *chunks)
{
  const bool mine = which >> hk_lane() & 1;
  if (mine)
    hk_lane_foresee(&sensors[hk_lane()].samples, 0, sensors[hk_lane()].view.window);
  for (uint32_t rest = which; rest != 0; rest &= rest - 1)
    hk_warp_measure(&sensors[__ffs(rest) - 1]);
  if (mine)
    hk_lane_enter(&sensors[hk_lane()]);
  if (hk_lane() == 0)
    desk->n_offers = 0;
  __syncwarp();
  const uint32_t compared = __ballot_sync(HK_ALL, mine && hk_lane_compares(&sensors[hk_lane()].view));
  for (uint32_t rest = which & ~compared; rest != 0; rest &= rest - 1)
    hk_warp_neighbours(&sensors[__ffs(rest) - 1].view, { -INFINITY, 0, -INFINITY });
  for (uint32_t rest = compared; rest != 0; rest &= rest - 1)
    hk_warp_anew(&sensors[__ffs(rest) - 1]);
  __syncwarp();
  if (compared != 0)
    hk_warp_link(sensors, compared, desk, chunks);
  hk_warp_offers(sensors, desk);
}

/* hk_graph_f1 in float32, to within 1e-6. sides: the split's counts, as below. */
static __device__ __forceinline__ float hk_lane_f1(uint32_t sides, uint32_t m)
{
  const float left = sides & 0xffff, right = m - (sides >> 16);
  const float of_left = m + (left - right) + 1e-9f, of_right = m - (left - right) + 1e-9f; /* 2 left + wrong, 2 right + wrong */
  return __fdividef(left * of_right + right * of_left, of_left * of_right);
}

/* As hk_graph_count, but not summed up yet: the lower half of each number is of `earlier`, the upper half of `later`. counts:
 * room for a number for each node and 8 more. */
static __device__ __forceinline__ void hk_warp_count_sides(const struct hk_graph_view *v, uint32_t *counts)
{
  const uint32_t m = v->graph->live, oldest = hk_graph_place(v, m - 1), lane = hk_lane();
  const uint16_t name = v->graph->name, *const median = hk_global(v->median);
  for (uint32_t i = lane; i <= m / 4; i += HK_WARP)
    ((uint4 *)counts)[i] = make_uint4(0, 0, 0, 0);
  __syncwarp();
  for (uint32_t begin = 0; begin < m; begin += HK_MEDIANS * HK_WARP) {
    uint16_t its[HK_MEDIANS];
#pragma unroll
    for (uint32_t u = 0; u < HK_MEDIANS; u++) {
      const uint32_t i = min(begin + u * HK_WARP + lane, m - 1), at = oldest + i;
      its[u] = median[at < v->room ? at : at - v->room];
    }
    __syncwarp(); /* so that the compiler loads all before it uses one */
#pragma unroll
    for (uint32_t u = 0; u < HK_MEDIANS; u++) {
      const uint32_t i = begin + u * HK_WARP + lane, age = (uint16_t)(name - its[u]);
      const uint32_t own = i + 1, other = age < m ? m - age : 0;
      if (i >= m)
        break;
      atomicAdd(&counts[max(own, other)], 1u);
      atomicAdd(&counts[min(own, other)], 1u << 16);
    }
  }
  __syncwarp();
}

/* Makes each lane's best split the best of all, of two alike the earlier. */
static __device__ __forceinline__ void hk_warp_best(double *best, uint32_t *where)
{
#pragma unroll
  for (uint32_t far = HK_WARP / 2; far > 0; far /= 2) {
    const double other = __shfl_xor_sync(HK_ALL, *best, far);
    const uint32_t there = __shfl_xor_sync(HK_ALL, *where, far);
    const bool take = other > *best || (other == *best && there < *where);
    *best = take ? other : *best;
    *where = take ? there : *where;
  }
}

/* As hk_graph_profile, to sensor->split: float32 says which few splits may be the best, and double which of them is. counts: room
 * as above. A lane sums up those of splits that follow each other. */
static __device__ __forceinline__ void hk_warp_profile(struct hk_graph_sensor *sensor, uint32_t *counts)
{
  const struct hk_graph_view *v = &sensor->view;
  const uint32_t m = v->graph->live, shortest = hk_graph_shortest(v), lane = hk_lane();
  const uint32_t each = (m / HK_WARP + 1) | 1; /* odd, so that lanes read from different banks */
  hk_warp_count_sides(v, counts);
  const uint32_t from = min(lane * each, m + 1), to = min(from + each, m + 1);
  uint32_t sum = 0;
#pragma unroll 4
  for (uint32_t s = from; s < to; s++)
    sum += counts[s];
  uint32_t upto = sum;
#pragma unroll
  for (uint32_t far = 1; far < HK_WARP; far *= 2) {
    const uint32_t other = __shfl_up_sync(HK_ALL, upto, far);
    upto += lane >= far ? other : 0;
  }
  float top = 0;
  uint32_t sides = upto - sum;
#pragma unroll 4
  for (uint32_t s = from; s < to; s++) {
    counts[s] = sides += counts[s];
    if (s >= shortest && s + shortest <= m)
      top = fmaxf(top, hk_lane_f1(sides, m));
  }
  const uint32_t highest =
      __reduce_max_sync(HK_ALL, __float_as_uint(top)); /* from 0 on, numbers are in the order of their bits */
  const float near = __uint_as_float(highest) - 1e-5f; /* more than the rounding of both */
  __syncwarp();
  double best = -1;
  uint32_t where = shortest;
  for (uint32_t some = __ballot_sync(HK_ALL, top >= near); some != 0; some &= some - 1) {
    const uint32_t first = (__ffs(some) - 1) * each, last = min(first + each - 1, m - shortest);
    for (uint32_t s = max(first, shortest) + lane; s <= last; s += HK_WARP) {
      if (hk_lane_f1(counts[s], m) < near)
        continue;
      const double f1 = hk_graph_f1(counts[s] & 0xffff, m - (counts[s] >> 16), m);
      where = f1 > best ? s : where;
      best = fmax(best, f1);
    }
  }
  hk_warp_best(&best, &where);
  if (lane == 0) {
    sensor->split.at = where;
    sensor->split.z = hk_graph_statistic(v, where, counts[where] & 0xffff, m - (counts[where] >> 16));
  }
  __syncwarp();
}

/* As hk_graph_cut, at the split. */
static __device__ void hk_warp_cut(const struct hk_graph_sensor *sensor)
{
  if (hk_lane() == 0)
    sensor->view.graph->live -= sensor->split.at;
  __syncwarp();
  for (uint32_t lag = hk_lane(); lag < sensor->view.graph->live; lag += HK_WARP)
    hk_graph_cut_node(&sensor->view, lag);
  __syncwarp();
}

/* As hk_graph_reset. */
static __device__ void hk_warp_reset(struct hk_graph_sensor *sensor, bool again)
{
  uint32_t *const columns = (uint32_t *)(sensor->view.product - HK_GRAPH_LANES);
  for (uint32_t i = hk_lane(); i < hk_graph_columns_size(&sensor->view) / sizeof *columns; i += HK_WARP)
    columns[i] = 0;
  if (hk_lane() == 0)
    hk_graph_reset_numbers(&sensor->view, again);
  __syncwarp();
}

/* As hk_graph_find_window; also sets the window in the view. ring: the samples, oldest first. counts: as above. */
static __device__ __noinline__ void hk_warp_find_window(struct hk_graph_sensor *sensor, const float *ring, uint32_t *counts)
{
  const struct hk_detector *d = sensor->view.detector;
  const uint32_t n = hk_graph_learn(d), lags = hk_graph_lags(d);
  const double mean = hk_graph_window_mean(ring, n);
  double *const covariance = (double *)counts;
  for (uint32_t lag = hk_lane(); lag < lags; lag += HK_WARP)
    covariance[lag] = hk_graph_covariance(ring, n, mean, lag);
  __syncwarp();
  if (hk_lane() == 0)
    hk_graph_set_window(&sensor->view, hk_graph_pick_window(covariance, d));
  __syncwarp();
}

#endif
