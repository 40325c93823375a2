/* One sensor's neighbour graph, by the threads of a block: what cpu/graph.h says of a graph, its passes over nodes in parallel.
 *
 * Every function here is called by all threads of a block, unless it says otherwise, and ends with what it wrote seen by all. Sums
 * run in the order that the host has, products and sums are not contracted on either side, and the best of several is the same
 * whoever looks at it: results are those of the CPU backend, bit by bit where log and pow round alike. None depends on how points
 * were cut into batches, nor on whether a graph lies in shared memory or where it is kept. */
#ifndef HK_GRAPH_CUH
#define HK_GRAPH_CUH

#include "cpu/graph_alert.h"
#include "cpu/graph_node.h"

#define HK_WARP 32u
#define HK_ALL 0xffffffffu
#define HK_THREADS 256u
#define HK_WARPS (HK_THREADS / HK_WARP)
#define HK_BEST_MOST (HK_WARPS * HK_NEIGHBOURS_MAX)

/* What the threads of a block share about the sensor that they work on. */
struct hk_graph_room {
  struct hk_graph_view view;
  struct hk_graph_samples samples; /* up to the newest node's */
  struct hk_graph_node node;       /* the newest */
  uint32_t from, renewed;          /* lags of products to make anew before it is linked, and after */
  float product;                   /* of lag `renewed` */
  struct hk_graph_split split;
  double sum[HK_WARPS]; /* what warps tell each other */
  float best[HK_BEST_MOST]; /* most similar nodes that each warp has found, */
  uint32_t lag[HK_BEST_MOST]; /* and how old they are; 0: none */
};

/* Sum of x over a warp, as hk_graph_sum; all its lanes get it. */
static __device__ __forceinline__ double hk_warp_sum(double x)
{
#pragma unroll
  for (uint32_t lane = HK_WARP / 2; lane > 0; lane /= 2)
    x += __shfl_xor_sync(HK_ALL, x, lane);
  return x;
}

/* Place in the ring of the sample `behind` samples behind one at `place`. */
static __device__ __forceinline__ uint32_t hk_ring_place(const struct hk_graph_samples *s, uint32_t place, uint32_t behind)
{
  return place + behind < s->span ? place + behind : place + behind - s->span;
}

/* As hk_graph_spread, by a warp; all its lanes get it. */
static __device__ double hk_warp_spread(const struct hk_graph_samples *s)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  double sum = 0, squares = 0;
#pragma unroll 4
  for (uint32_t i = lane; i < s->count; i += HK_WARP)
    sum += (double)s->ring[hk_ring_place(s, s->oldest, i)];
  const double mean = hk_warp_sum(sum) / s->count;
#pragma unroll 4
  for (uint32_t i = lane; i < s->count; i += HK_WARP) {
    const double off = (double)s->ring[hk_ring_place(s, s->oldest, i)] - mean;
    squares = fma(off, off, squares);
  }
  return sqrt(hk_warp_sum(squares) / s->count);
}

/* Mean and mean square about it of the newest node's samples, by a warp; all its lanes get them. */
static __device__ __forceinline__ void hk_warp_moments(const struct hk_graph_samples *s, uint32_t w, double *mean, double *square)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  double sum = 0, squares = 0;
  for (uint32_t t = lane; t < w; t += HK_WARP)
    sum += (double)s->ring[hk_ring_place(s, s->first, t)];
  *mean = hk_warp_sum(sum) / w;
  for (uint32_t t = lane; t < w; t += HK_WARP) {
    const double off = (double)s->ring[hk_ring_place(s, s->first, t)] - *mean;
    squares = fma(off, off, squares);
  }
  *square = hk_warp_sum(squares) / w;
}

/* As hk_graph_rough of the newest node's samples, by a warp; all its lanes get it. */
static __device__ double hk_warp_rough(const struct hk_graph_samples *s, uint32_t w)
{
  double squares = 0;
  for (uint32_t t = threadIdx.x % HK_WARP; t + 1 < w; t += HK_WARP) {
    const double step = (double)s->ring[hk_ring_place(s, s->first, t + 1)] - (double)s->ring[hk_ring_place(s, s->first, t)];
    squares = fma(step, step, squares);
  }
  return hk_warp_sum(squares) / (w - 1);
}

/* As hk_graph_product, by a warp; all its lanes get it. mean: of the newest node. */
static __device__ __forceinline__ float hk_warp_product(const struct hk_graph_room *room, double mean, uint32_t lag)
{
  const struct hk_graph_samples *s = &room->samples;
  const uint32_t w = room->view.window, other = s->first >= lag ? s->first - lag : s->first + s->span - lag;
  double sum = 0;
  for (uint32_t t = threadIdx.x % HK_WARP; t < w; t += HK_WARP)
    sum = fma((double)s->ring[hk_ring_place(s, s->first, t)] - mean, (double)s->ring[hk_ring_place(s, other, t)], sum);
  return (float)ldexp(hk_warp_sum(sum), -2 * room->view.graph->exponent);
}

/* The most similar nodes that a thread has found, the best first; of equals, the older. lag 0: none. */
struct hk_graph_best {
  float similarity[HK_NEIGHBOURS_MAX];
  uint32_t lag[HK_NEIGHBOURS_MAX];
};

static __device__ __forceinline__ void hk_best_clear(struct hk_graph_best *b)
{
#pragma unroll
  for (int q = 0; q < HK_NEIGHBOURS_MAX; q++) {
    b->similarity[q] = -INFINITY;
    b->lag[q] = 0;
  }
}

static __device__ __forceinline__ void hk_best_offer(struct hk_graph_best *b, uint32_t k, float similarity, uint32_t lag)
{
#pragma unroll
  for (int q = 0; q < HK_NEIGHBOURS_MAX; q++) {
    if (q < k && (similarity > b->similarity[q] || (similarity == b->similarity[q] && lag > b->lag[q]))) {
      const float less = b->similarity[q];
      const uint32_t its = b->lag[q];
      b->similarity[q] = similarity;
      b->lag[q] = lag;
      similarity = less;
      lag = its;
    }
  }
}

/* Whole numbers in the order of numbers. */
static __device__ __forceinline__ uint32_t hk_ordered(float x)
{
  const uint32_t bits = __float_as_uint(x);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
static __device__ __forceinline__ float hk_unordered(uint32_t order)
{
  return __uint_as_float(order >> 31 ? order & 0x7fffffffu : ~order);
}

/* Takes the best that any lane of a warp has left; all lanes get it. */
static __device__ __forceinline__ void hk_best_take(struct hk_graph_best *b, float *similarity, uint32_t *lag)
{
  const uint32_t mine = hk_ordered(b->similarity[0]), most = __reduce_max_sync(HK_ALL, mine);
  const uint32_t oldest = __reduce_max_sync(HK_ALL, mine == most ? b->lag[0] : 0);
  if (mine == most && b->lag[0] == oldest && oldest > 0) {
#pragma unroll
    for (int q = 0; q + 1 < HK_NEIGHBOURS_MAX; q++) {
      b->similarity[q] = b->similarity[q + 1];
      b->lag[q] = b->lag[q + 1];
    }
    b->similarity[HK_NEIGHBOURS_MAX - 1] = -INFINITY;
    b->lag[HK_NEIGHBOURS_MAX - 1] = 0;
  }
  *similarity = hk_unordered(most);
  *lag = oldest;
}

/* Makes the newest node and one that is like it neighbours of that one. */
static __device__ __noinline__ void hk_block_offer(const struct hk_graph_view *v, uint32_t place, float similarity)
{
  hk_graph_offer(v, place, v->graph->name, similarity);
  hk_graph_middle(v, place);
}

/* As hk_graph_link: products, similarities, and each node's own list; best: the thread's share of the newest node's. */
static __device__ __forceinline__ void hk_block_products(const struct hk_graph_room *room, struct hk_graph_best *best)
{
  const struct hk_graph_view *v = &room->view;
  const struct hk_graph_node node = room->node;
  const uint32_t live = v->graph->live, nearest = hk_graph_exclusion(v), n = live > nearest ? live - nearest : 0, columns = v->room;
  const uint32_t oldest = hk_graph_place(v, live - 1), k = v->detector->neighbours;
  float *const product = v->product + (v->most - live);
  const float *const half = v->half, *const off = v->off, *const inverse = v->inverse, *const log = v->log, *const mean = v->mean;
  const float *const worst = v->similarity + (k - 1) * columns;
#pragma unroll 2
  for (uint32_t i = threadIdx.x; i < n; i += HK_THREADS) {
    const uint32_t at = oldest + i < columns ? oldest + i : oldest + i - columns;
    const float now = product[i] + node.half * off[at] + node.off * half[at]; /* not contracted: as on the host */
    product[i] = now;
    const float spreads = node.log - log[at];
    float similarity = now * (node.inverse * inverse[at]) - (float)HK_GRAPH_SPREAD * spreads * spreads;
    if (mean) {
      const float levels = node.level * (node.mean - mean[at]);
      similarity -= levels * levels;
    }
    if (similarity > worst[at])
      hk_block_offer(v, at, similarity);
    hk_best_offer(best, k, similarity, live - 1 - i);
  }
}

/* The newest node's neighbours, of what the threads have found. */
static __device__ __forceinline__ void hk_block_neighbours(struct hk_graph_room *room, struct hk_graph_best *best)
{
  const struct hk_graph_view *v = &room->view;
  const uint32_t k = v->detector->neighbours, warp = threadIdx.x / HK_WARP, lane = threadIdx.x % HK_WARP, head = v->graph->head;
  for (uint32_t q = 0; q < k; q++) {
    float similarity;
    uint32_t lag;
    hk_best_take(best, &similarity, &lag);
    if (lane == 0) {
      room->best[warp * k + q] = similarity;
      room->lag[warp * k + q] = lag;
    }
  }
  __syncthreads();
  if (warp == 0) {
    hk_best_clear(best);
    for (uint32_t i = lane; i < HK_WARPS * k; i += HK_WARP)
      hk_best_offer(best, k, room->best[i], room->lag[i]);
    for (uint32_t q = 0; q < k; q++) {
      float similarity;
      uint32_t lag;
      hk_best_take(best, &similarity, &lag);
      if (lane == 0 && lag > 0) {
        v->similarity[q * v->room + head] = similarity;
        v->neighbour[q * v->room + head] = (uint16_t)(v->graph->name - lag);
      }
    }
    if (lane == 0) {
      hk_graph_middle(v, head);
      if (room->renewed < v->graph->live)
        *hk_graph_product_at(v, room->renewed) = room->product;
    }
  }
  __syncthreads();
}

/* As hk_graph_add: the node of room->samples. */
static __device__ __noinline__ void hk_block_add(struct hk_graph_room *room)
{
  const struct hk_graph_view *v = &room->view;
  const struct hk_graph_samples *s = &room->samples;
  const uint32_t warp = threadIdx.x / HK_WARP, lane = threadIdx.x % HK_WARP, nearest = hk_graph_exclusion(v);
  const double spread = warp == 0 && hk_graph_measures(v) ? hk_warp_spread(s) : 0;
  const double rough = warp == 0 && hk_graph_counts_rough(v->detector) ? hk_warp_rough(s, v->window) : 0;
  double mean, square;
  hk_warp_moments(s, v->window, &mean, &square);
  if (threadIdx.x == 0) {
    struct hk_graph_piece piece;
    piece.mean = mean;
    piece.square = square;
    piece.rough = rough;
    piece.spread = spread;
    piece.came = (double)s->ring[hk_ring_place(s, s->first, v->window - 1)];
    piece.left = (double)s->ring[s->first == 0 ? s->span - 1 : s->first - 1];
    room->from = hk_graph_enter(v, &piece, &room->node);
    room->renewed = hk_graph_renew(v);
  }
  __syncthreads();
  const uint32_t live = v->graph->live, first = room->from > nearest ? room->from : nearest;
  for (uint32_t lag = first + warp; lag < live; lag += HK_WARPS) {
    const float product = hk_warp_product(room, mean, lag);
    if (lane == 0)
      *hk_graph_product_at(v, lag) = product;
  }
  if (warp == HK_WARPS - 1 && room->renewed < live) {
    const float product = hk_warp_product(room, mean, room->renewed);
    if (lane == 0)
      room->product = product;
  }
  __syncthreads();
  struct hk_graph_best best;
  hk_best_clear(&best);
  hk_block_products(room, &best);
  hk_block_neighbours(room, &best);
}

/* Inclusive sums of counts[0 .. n - 1], in place. */
static __device__ void hk_block_scan(struct hk_graph_room *room, uint32_t *counts, uint32_t n)
{
  const uint32_t each = (n + HK_THREADS - 1) / HK_THREADS, from = min(threadIdx.x * each, n), to = min(from + each, n);
  const uint32_t lane = threadIdx.x % HK_WARP, warp = threadIdx.x / HK_WARP;
  uint32_t sum = 0;
  for (uint32_t i = from; i < to; i++)
    sum += counts[i];
  uint32_t upto = sum;
#pragma unroll
  for (uint32_t far = 1; far < HK_WARP; far *= 2) {
    const uint32_t other = __shfl_up_sync(HK_ALL, upto, far);
    upto += lane >= far ? other : 0;
  }
  if (lane == HK_WARP - 1)
    room->lag[warp] = upto;
  __syncthreads();
  uint32_t before = upto - sum;
  for (uint32_t i = 0; i < warp; i++)
    before += room->lag[i];
  for (uint32_t i = from; i < to; i++)
    counts[i] = before += counts[i];
  __syncthreads();
}

/* As hk_graph_profile, to room->split: float32 says which few splits may be the best, and double which of them is. counts: room for
 * a number for each node and 2 more; the upper half of each counts what hk_graph_counts calls later, the lower earlier. */
static __device__ __noinline__ void hk_block_profile(struct hk_graph_room *room, uint32_t *counts)
{
  const struct hk_graph_view *v = &room->view;
  const uint32_t m = v->graph->live, shortest = hk_graph_shortest(v), oldest = hk_graph_place(v, m - 1);
  const uint32_t warp = threadIdx.x / HK_WARP, lane = threadIdx.x % HK_WARP;
  const uint16_t name = v->graph->name;
  for (uint32_t i = threadIdx.x; i < m + 2; i += HK_THREADS)
    counts[i] = 0;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < m; i += HK_THREADS) {
    const uint32_t at = oldest + i < v->room ? oldest + i : oldest + i - v->room;
    const uint16_t age = (uint16_t)(name - v->median[at]);
    const uint32_t own = i + 1, its = age < m ? m - age : 0;
    atomicAdd(&counts[max(own, its)], 1u);
    atomicAdd(&counts[min(own, its)], 1u << 16);
  }
  __syncthreads();
  hk_block_scan(room, counts, m + 1);
  float top = -1;
  for (uint32_t s = shortest + threadIdx.x; s + shortest <= m; s += HK_THREADS) {
    const float left = counts[s] & 0xffff, right = m - (counts[s] >> 16), wrong = m - left - right;
    top = fmaxf(top, __fdividef(left, 2 * left + wrong + 1e-9f) + __fdividef(right, 2 * right + wrong + 1e-9f));
  }
  const uint32_t most = __reduce_max_sync(HK_ALL, hk_ordered(top));
  if (lane == 0)
    room->lag[warp] = most;
  __syncthreads();
  uint32_t highest = 0;
  for (uint32_t i = 0; i < HK_WARPS; i++)
    highest = max(highest, room->lag[i]);
  const float near = hk_unordered(highest) - 1e-5f; /* more than the rounding of both */
  double best = -1;
  uint32_t where = shortest;
  for (uint32_t s = shortest + threadIdx.x; s + shortest <= m; s += HK_THREADS) {
    const uint32_t left = counts[s] & 0xffff, right = m - (counts[s] >> 16);
    const float wrong = m - left - right;
    if (__fdividef((float)left, 2 * left + wrong + 1e-9f) + __fdividef((float)right, 2 * right + wrong + 1e-9f) < near)
      continue;
    const double f1 = hk_graph_f1(left, right, m);
    where = f1 > best ? s : where;
    best = fmax(best, f1);
  }
#pragma unroll
  for (uint32_t far = HK_WARP / 2; far > 0; far /= 2) {
    const double other = __shfl_xor_sync(HK_ALL, best, far);
    const uint32_t there = __shfl_xor_sync(HK_ALL, where, far);
    const bool take = other > best || (other == best && there < where);
    best = take ? other : best;
    where = take ? there : where;
  }
  __syncthreads(); /* all have read the warps' highest */
  if (lane == 0) {
    room->sum[warp] = best;
    room->lag[warp] = where;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (uint32_t i = 1; i < HK_WARPS; i++) {
      const bool take = room->sum[i] > best || (room->sum[i] == best && room->lag[i] < where);
      best = take ? room->sum[i] : best;
      where = take ? room->lag[i] : where;
    }
    room->split.at = where;
    room->split.z = hk_graph_statistic(v, where, counts[where] & 0xffff, m - (counts[where] >> 16));
  }
  __syncthreads();
}

/* As hk_graph_cut. */
static __device__ void hk_block_cut(const struct hk_graph_room *room, uint32_t at)
{
  if (threadIdx.x == 0)
    room->view.graph->live -= at;
  __syncthreads();
  for (uint32_t lag = threadIdx.x; lag < room->view.graph->live; lag += HK_THREADS)
    hk_graph_cut_node(&room->view, lag);
  __syncthreads();
}

/* As hk_graph_reset. */
static __device__ void hk_block_reset(struct hk_graph_room *room, bool again)
{
  uint32_t *const columns = (uint32_t *)(room->view.product - HK_GRAPH_LANES);
  for (uint32_t i = threadIdx.x; i < hk_graph_columns_size(&room->view) / sizeof *columns; i += HK_THREADS)
    columns[i] = 0;
  if (threadIdx.x == 0)
    hk_graph_reset_numbers(&room->view, again);
  __syncthreads();
}

/* As hk_graph_find_window; the view knows it then. ring: the samples from the oldest on. counts: as above. */
static __device__ __noinline__ void hk_block_find_window(struct hk_graph_room *room, const float *ring, uint32_t *counts)
{
  const struct hk_detector *d = room->view.detector;
  const uint32_t n = hk_graph_learn(d), lags = hk_graph_lags(d);
  double *const covariance = (double *)counts;
  if (threadIdx.x == 0)
    room->sum[0] = hk_graph_window_mean(ring, n);
  __syncthreads();
  for (uint32_t lag = threadIdx.x; lag < lags; lag += HK_THREADS)
    covariance[lag] = hk_graph_covariance(ring, n, room->sum[0], lag);
  __syncthreads();
  if (threadIdx.x == 0)
    hk_graph_set_window(&room->view, hk_graph_pick_window(covariance, d));
  __syncthreads();
}

#endif
