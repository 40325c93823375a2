/* A sensor of algorithm = graph while a warp processes it: what the warp's lanes share of it, and the numbers that are computed
 * from the newest node's samples, in the order of the host's sums: see graph.cuh. */
#ifndef HK_GRAPH_SENSOR_CUH
#define HK_GRAPH_SENSOR_CUH

#include "cpu/graph/node.h"
#include "cpu/graph/split.h"
#include "gpu/backend/global.cuh"

#define HK_WARP 32u
#define HK_ALL 0xffffffffu
#define HK_SECTOR 8u /* samples that memory is read by */

/* A sensor that a warp processes, in shared memory. */
struct hk_graph_sensor {
  struct hk_graph_view view;
  struct hk_graph_samples samples; /* up to the newest node's, */
  struct hk_graph_piece piece;     /* what that is made of, */
  struct hk_graph_node node;       /* and itself */
  uint32_t from, renewed;          /* lags of products to make anew before it is linked, and after */
  float product;                   /* the latter */
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

/* As hk_graph_product for two lags, by a warp; returned to all lanes. */
struct hk_graph_products {
  float of[2];
};
static __device__ __forceinline__ struct hk_graph_products hk_warp_products(const struct hk_graph_sensor *sensor, uint32_t lag,
                                                                            uint32_t other_lag)
{
  const struct hk_graph_samples *s = &sensor->samples;
  const float *const ring = hk_global(s->ring);
  const double mean = sensor->piece.mean;
  const uint32_t w = sensor->view.window, at = s->first >= lag ? s->first - lag : s->first + s->span - lag,
                 other_at = s->first >= other_lag ? s->first - other_lag : s->first + s->span - other_lag;
  double sum = 0, other_sum = 0;
  for (uint32_t t = hk_lane(); t < w; t += HK_WARP) {
    const double off = (double)ring[hk_ring_place(s, s->first, t)] - mean;
    const float x = ring[hk_ring_place(s, at, t)], other = ring[hk_ring_place(s, other_at, t)];
    sum = fma(off, (double)x, sum);
    other_sum = fma(off, (double)other, other_sum);
  }
  const int exponent = -2 * sensor->view.graph->exponent;
#pragma unroll
  for (uint32_t lane = HK_WARP / 2; lane > 0; lane /= 2) {
    sum += __shfl_xor_sync(HK_ALL, sum, lane);
    other_sum += __shfl_xor_sync(HK_ALL, other_sum, lane);
  }
  return { (float)ldexp(sum, exponent), (float)ldexp(other_sum, exponent) };
}

/* Tells memory that a node's samples, those behind s->first by `behind` on, will be read. By the sensor's own lane. */
static __device__ __forceinline__ void hk_lane_foresee(const struct hk_graph_samples *s, uint32_t lag, uint32_t w)
{
  const uint32_t at = s->first >= lag ? s->first - lag : s->first + s->span - lag;
  for (uint32_t t = 0; t < w; t += HK_SECTOR)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(s->ring + hk_ring_place(s, at, t)));
  asm volatile("prefetch.global.L2 [%0];" ::"l"(s->ring + hk_ring_place(s, at, w - 1)));
}

#endif
