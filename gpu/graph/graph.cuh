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
#include "cpu/graph/node.h"
#include "gpu/backend/global.cuh"

#define HK_WARP 32u
#define HK_ALL 0xffffffffu
#define HK_AT_ONCE 4 /* nodes whose numbers a lane loads together */

/* A sensor that a warp processes, in shared memory. */
struct hk_graph_sensor {
  struct hk_graph_view view;
  struct hk_graph_samples samples; /* up to the newest node's, */
  struct hk_graph_piece piece;     /* what that is made of, */
  struct hk_graph_node node;       /* and itself */
  uint32_t from, renewed;          /* lags of products to make anew before it is linked, and after */
  struct hk_graph_split split;
};

static __device__ __forceinline__ uint32_t hk_lane(void)
{
  return threadIdx.x % HK_WARP;
}

/* Sum of x over a warp, as hk_graph_sum, returned to all lanes. */
static __device__ __forceinline__ double hk_warp_sum(double x)
{
#pragma unroll
  for (uint32_t lane = HK_WARP / 2; lane > 0; lane /= 2)
    x += __shfl_xor_sync(HK_ALL, x, lane);
  return x;
}

/* Place in the ring of the sample `behind` samples after the one at `place`. */
static __device__ __forceinline__ uint32_t hk_ring_place(const struct hk_graph_samples *s, uint32_t place, uint32_t behind)
{
  return place + behind < s->span ? place + behind : place + behind - s->span;
}

/* As hk_graph_spread, by a warp; returned to all lanes. */
static __device__ double hk_warp_spread(const struct hk_graph_samples *s)
{
  const uint32_t lane = hk_lane();
  const float *const ring = hk_global(s->ring);
  double sum = 0, squares = 0;
#pragma unroll 8
  for (uint32_t i = lane; i < s->count; i += HK_WARP)
    sum += (double)ring[hk_ring_place(s, s->oldest, i)];
  const double mean = hk_warp_sum(sum) / s->count;
#pragma unroll 8
  for (uint32_t i = lane; i < s->count; i += HK_WARP) {
    const double off = (double)ring[hk_ring_place(s, s->oldest, i)] - mean;
    squares = fma(off, off, squares);
  }
  return sqrt(hk_warp_sum(squares) / s->count);
}

/* As hk_graph_rough of the newest node's samples, by a warp; returned to all lanes. */
static __device__ double hk_warp_rough(const struct hk_graph_samples *s, uint32_t w)
{
  double squares = 0;
  for (uint32_t t = hk_lane(); t + 1 < w; t += HK_WARP) {
    const double step = (double)s->ring[hk_ring_place(s, s->first, t + 1)] - (double)s->ring[hk_ring_place(s, s->first, t)];
    squares = fma(step, step, squares);
  }
  return hk_warp_sum(squares) / (w - 1);
}

/* Computes the numbers of the newest node. */
static __device__ __forceinline__ void hk_warp_measure(struct hk_graph_sensor *sensor)
{
  const struct hk_graph_view *v = &sensor->view;
  const struct hk_graph_samples *s = &sensor->samples;
  const float *const ring = hk_global(s->ring);
  const uint32_t w = v->window;
  struct hk_graph_piece piece;
  double sum = 0, squares = 0;
  for (uint32_t t = hk_lane(); t < w; t += HK_WARP)
    sum += (double)ring[hk_ring_place(s, s->first, t)];
  piece.mean = hk_warp_sum(sum) / w;
  for (uint32_t t = hk_lane(); t < w; t += HK_WARP) {
    const double off = (double)ring[hk_ring_place(s, s->first, t)] - piece.mean;
    squares = fma(off, off, squares);
  }
  piece.square = hk_warp_sum(squares) / w;
  piece.rough = hk_graph_counts_rough(v->detector) ? hk_warp_rough(s, w) : 0;
  piece.spread = hk_graph_measures(v) ? hk_warp_spread(s) : 0;
  piece.came = (double)ring[hk_ring_place(s, s->first, w - 1)];
  piece.left = (double)ring[s->first == 0 ? s->span - 1 : s->first - 1];
  if (hk_lane() == 0)
    sensor->piece = piece;
  __syncwarp();
}

/* As hk_graph_product, by a warp; returned to all lanes. */
static __device__ __forceinline__ float hk_warp_product(const struct hk_graph_sensor *sensor, uint32_t lag)
{
  const struct hk_graph_samples *s = &sensor->samples;
  const float *const ring = hk_global(s->ring);
  const double mean = sensor->piece.mean;
  const uint32_t w = sensor->view.window, other = s->first >= lag ? s->first - lag : s->first + s->span - lag;
  double sum = 0;
  for (uint32_t t = hk_lane(); t < w; t += HK_WARP)
    sum = fma((double)ring[hk_ring_place(s, s->first, t)] - mean, (double)ring[hk_ring_place(s, other, t)], sum);
  return (float)ldexp(hk_warp_sum(sum), -2 * sensor->view.graph->exponent);
}

/* Maps a number to an integer of the same order; both zeros have the same integer. */
static __device__ __forceinline__ uint32_t hk_ordered(float x)
{
  const uint32_t bits = __float_as_uint(x + 0.0f);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* The most similar nodes found so far: lane q has number q, the best first; of equals, the older. lag 0: none. */
struct hk_graph_best {
  float similarity;
  uint32_t lag;
  float least; /* similarity of the last of the k */
};

/* Merges a node of each lane into the k best, all of which are older; that of a higher lane is younger. */
static __device__ __forceinline__ void hk_best_offer(struct hk_graph_best *b, uint32_t k, float similarity, uint32_t lag)
{
  for (;;) {
    const bool better = similarity > b->least;
    if (!__any_sync(HK_ALL, better))
      return;
    const uint32_t mine = better ? hk_ordered(similarity) : 0, most = __reduce_max_sync(HK_ALL, mine);
    const uint32_t who = __ffs(__ballot_sync(HK_ALL, mine == most)) - 1;
    const float its = __shfl_sync(HK_ALL, similarity, who), above = __shfl_up_sync(HK_ALL, b->similarity, 1);
    const uint32_t its_lag = __shfl_sync(HK_ALL, lag, who), above_lag = __shfl_up_sync(HK_ALL, b->lag, 1);
    if (hk_lane() == who)
      similarity = -INFINITY;
    if (its > b->similarity) {
      const bool down = hk_lane() > 0 && its > above;
      b->similarity = down ? above : its;
      b->lag = down ? above_lag : its_lag;
    }
    b->least = __shfl_sync(HK_ALL, b->similarity, k - 1);
  }
}

/* Makes the newest node a neighbour of a similar one. By one lane. */
static __device__ __noinline__ void hk_lane_offer(const struct hk_graph_view *v, uint32_t place, float similarity)
{
  hk_graph_offer(v, place, v->graph->name, similarity);
  hk_graph_middle(v, place);
}

/* What a pass needs of the newest node, and of all: columns of them. */
struct hk_graph_pass {
  struct hk_graph_node node;
  float *product;
  const float *half, *off, *inverse, *log, *mean, *worst;
  uint32_t k;
};

/* HK_AT_ONCE nodes of a lane, HK_WARP apart: products, similarities, and each node's own list; best: the newest node's. The
 * lane's first has number i among the products, place `at`, and is `lag` older than the newest. WHOLE: there are all; else those
 * less than `left` from its first. */
template <bool WHOLE, bool LEVELS>
static __device__ __forceinline__ void hk_warp_nodes(const struct hk_graph_view *v, const struct hk_graph_pass *p,
                                                     struct hk_graph_best *best, uint32_t i, uint32_t at, uint32_t lag,
                                                     int32_t left)
{
  float *const product_at = p->product + i;
  const float *const half_at = p->half + at, *const off_at = p->off + at, *const inverse_at = p->inverse + at,
                     *const log_at = p->log + at, *const mean_at = p->mean + at, *const worst_at = p->worst + at;
  float similarity[HK_AT_ONCE], worst[HK_AT_ONCE], top = -INFINITY;
  float now[HK_AT_ONCE], half[HK_AT_ONCE], off[HK_AT_ONCE], inverse[HK_AT_ONCE], log[HK_AT_ONCE], mean[HK_AT_ONCE];
#pragma unroll
  for (int u = 0; u < HK_AT_ONCE; u++) {
    const int far = u * HK_WARP;
    const bool is = WHOLE || far < left;
    now[u] = is ? product_at[far] : 0;
    half[u] = is ? half_at[far] : 0;
    off[u] = is ? off_at[far] : 0;
    inverse[u] = is ? inverse_at[far] : 0;
    log[u] = is ? log_at[far] : 0;
    worst[u] = is ? worst_at[far] : 0;
    mean[u] = is && LEVELS ? mean_at[far] : 0;
  }
#pragma unroll
  for (int u = 0; u < HK_AT_ONCE; u++) {
    const int far = u * HK_WARP;
    similarity[u] = -INFINITY;
    if (!WHOLE && far >= left)
      continue;
    const float product = now[u] + p->node.half * off[u] + p->node.off * half[u]; /* not contracted, as on the host */
    product_at[far] = product;
    const float spreads = p->node.log - log[u];
    similarity[u] = product * (p->node.inverse * inverse[u]) - (float)HK_GRAPH_SPREAD * spreads * spreads;
    if (LEVELS) {
      const float levels = p->node.level * (p->node.mean - mean[u]);
      similarity[u] -= levels * levels;
    }
  }
  const uint32_t local = hk_graph_local(v); /* read here: kept during a pass, it would spill registers */
  if (lag < local + (HK_AT_ONCE - 1) * HK_WARP) {
#pragma unroll
    for (int u = 0; u < HK_AT_ONCE; u++)
      if (lag - u * HK_WARP < local)
        similarity[u] = hk_graph_locally(similarity[u], v->detector->locality);
  }
  bool any = false;
#pragma unroll
  for (int u = 0; u < HK_AT_ONCE; u++) {
    any |= similarity[u] > worst[u];
    top = fmaxf(top, similarity[u]);
  }
  if (any) { /* rare; offers change no other node's numbers */
#pragma unroll
    for (int u = 0; u < HK_AT_ONCE; u++)
      if (similarity[u] > worst[u])
        hk_lane_offer(v, at + u * HK_WARP, similarity[u]);
  }
  if (__any_sync(HK_ALL, top > best->least)) {
#pragma unroll
    for (int u = 0; u < HK_AT_ONCE; u++)
      hk_best_offer(best, p->k, similarity[u], lag - u * HK_WARP);
  }
}

/* As hk_graph_link; returns the newest node's neighbours. */
template <bool LEVELS> static __device__ __forceinline__ struct hk_graph_best hk_warp_link(const struct hk_graph_sensor *sensor)
{
  const struct hk_graph_view *v = &sensor->view;
  const uint32_t live = v->graph->live, nearest = hk_graph_exclusion(v), n = live > nearest ? live - nearest : 0;
  const uint32_t oldest = hk_graph_place(v, live - 1), k = v->detector->neighbours, lane = hk_lane();
  const struct hk_graph_pass pass = { sensor->node,
                                      hk_global(v->product + (v->most - live)),
                                      hk_global(v->half),
                                      hk_global(v->off),
                                      hk_global(v->inverse),
                                      hk_global(v->log),
                                      LEVELS ? hk_global(v->mean) : NULL,
                                      hk_global(v->similarity + (k - 1) * v->room),
                                      k };
  struct hk_graph_best best = { -INFINITY, 0, -INFINITY };
  for (uint32_t i = 0; i < n;) { /* twice if the nodes wrap around the end of the columns */
    const uint32_t at = oldest + i < v->room ? oldest + i : 0, end = min(n, i + v->room - at), back = i - at;
    for (; i + HK_AT_ONCE * HK_WARP <= end; i += HK_AT_ONCE * HK_WARP)
      hk_warp_nodes<true, LEVELS>(v, &pass, &best, i + lane, i + lane - back, live - 1 - i - lane, 0);
    if (i < end)
      hk_warp_nodes<false, LEVELS>(v, &pass, &best, i + lane, i + lane - back, live - 1 - i - lane, (int32_t)(end - i - lane));
    i = end;
  }
  return best;
}

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

/* Links the newest node, after it was entered at its place. */
static __device__ __forceinline__ void hk_warp_join(const struct hk_graph_sensor *sensor)
{
  const struct hk_graph_view *v = &sensor->view;
  const uint32_t live = v->graph->live, nearest = hk_graph_exclusion(v);
  for (uint32_t lag = max(sensor->from, nearest); lag < live; lag++) {
    const float product = hk_warp_product(sensor, lag);
    if (hk_lane() == 0)
      *hk_graph_product_at(v, lag) = product;
  }
  __syncwarp();
  hk_warp_neighbours(v, v->mean ? hk_warp_link<true>(sensor) : hk_warp_link<false>(sensor));
  __syncwarp();
  if (sensor->renewed < live) {
    const float product = hk_warp_product(sensor, sensor->renewed);
    if (hk_lane() == 0)
      *hk_graph_product_at(v, sensor->renewed) = product;
  }
  __syncwarp();
}

/* As hk_graph_enter and hk_graph_renew. By the sensor's own lane. */
static __device__ __forceinline__ void hk_lane_enter(struct hk_graph_sensor *sensor)
{
  sensor->from = hk_graph_enter(&sensor->view, &sensor->piece, &sensor->node);
  sensor->renewed = hk_graph_renew(&sensor->view);
}

/* As hk_graph_add, for each sensor of a set. */
static __device__ __forceinline__ void hk_warp_add(struct hk_graph_sensor *sensors, uint32_t which)
{
  for (uint32_t rest = which; rest != 0; rest &= rest - 1)
    hk_warp_measure(&sensors[__ffs(rest) - 1]);
  if (which >> hk_lane() & 1)
    hk_lane_enter(&sensors[hk_lane()]);
  __syncwarp();
  for (uint32_t rest = which; rest != 0; rest &= rest - 1)
    hk_warp_join(&sensors[__ffs(rest) - 1]);
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
#pragma unroll 8
  for (uint32_t i = lane; i < m; i += HK_WARP) {
    const uint32_t at = oldest + i < v->room ? oldest + i : oldest + i - v->room;
    const uint16_t age = (uint16_t)(name - median[at]);
    const uint32_t own = i + 1, its = age < m ? m - age : 0;
    atomicAdd(&counts[max(own, its)], 1u);
    atomicAdd(&counts[min(own, its)], 1u << 16);
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
