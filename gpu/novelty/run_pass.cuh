/* The passes over values and rows for a run of points of one sensor, by a warp: each group of four places stands in a lane's
 * registers while all points of the run go by. */
#ifndef HK_NOVELTY_RUN_PASS_CUH
#define HK_NOVELTY_RUN_PASS_CUH

#include "gpu/novelty/run.cuh"

/* Stores the minima over the lanes of N points' distances, of which the run's are the first. */
template <uint32_t N> static __device__ __forceinline__ void run_tell(struct run *run, uint32_t channel, const float (&best)[N])
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  float mine = 0;
#pragma unroll
  for (uint32_t k = 0; k < N; k++) {
    const uint32_t least = __reduce_min_sync(HK_ALL, __float_as_uint(best[k]));
    mine = lane == k ? __uint_as_float(least) : mine;
  }
  if (lane < run->n)
    run->point[lane].nearest[channel] = mine;
}

/* Values. N: at least the run's points; behind the last one stand copies of it. U: groups of four that a lane has at once. */
template <uint32_t N, uint32_t U> static __device__ __forceinline__ void values_pass(struct run *run)
{
  const struct hk_detector *const d = run->detector;
  const float *const ring = hk_global((const float *)hk_cuda_ring(run->record, d));
  const uint32_t n = run->n, lane = threadIdx.x % HK_WARP;
  const struct taken *const p = run->point;
  const auto to = [&](uint32_t k) { return (int32_t)k - HK_NOVELTY_RECENT; };
  const auto from = [&](uint32_t k) { return to(k) + 1 - (int32_t)hk_novelty_values(d, &p[k]); };
  struct places places(p->at, hk_detector_span(d), (int32_t)n - 1);
  places.take(from(0), to(0));
  places.take(from(n - 1), to(n - 1));
  const struct fours fours(places);
  float value[N], best[N];
#pragma unroll
  for (uint32_t k = 0; k < N; k++) {
    value[k] = p[min(k, n - 1)].value;
    best[k] = INFINITY;
  }
  float4 next[U];
  const auto load = [&](uint32_t i) {
#pragma unroll
    for (uint32_t u = 0; u < U; u++)
      next[u] = __ldcs(&((const float4 *)ring)[fours[i + u * HK_WARP]]);
  };
  load(lane);
#pragma unroll 1
  for (uint32_t i = lane; i < fours.count; i += U * HK_WARP) {
    float4 x[U];
#pragma unroll
    for (uint32_t u = 0; u < U; u++)
      x[u] = next[u];
    load(i + U * HK_WARP);
#pragma unroll
    for (uint32_t u = 0; u < U; u++)
#pragma unroll
      for (uint32_t k = 0; k < N; k++)
        best[k] = nearest_of(best[k], x[u].x - value[k], x[u].y - value[k], x[u].z - value[k], x[u].w - value[k]);
  }
  int32_t o;
#pragma unroll 1
  for (int32_t i = (int32_t)lane; places.rest(i, &o); i += HK_WARP) {
    const float x = ring[places.place(o)];
#pragma unroll
    for (uint32_t k = 0; k < N; k++)
      if (k < n && o >= from(k) && o <= to(k))
        best[k] = fminf(best[k], fabsf(x - value[k]));
  }
  run_tell(run, HK_NOVELTY_VALUE, best);
}

/* Rows, four of a lane. */
struct rows {
  float4 a, b, c;

  /* The least square of their distances from a point's means, or `best`. */
  __device__ __forceinline__ float least(float best, float4 mean, float4 weight) const
  {
    best = least_of(best, square(a.x, b.x, c.x, mean, weight), square(a.y, b.y, c.y, mean, weight));
    return least_of(best, square(a.z, b.z, c.z, mean, weight), square(a.w, b.w, c.w, mean, weight));
  }

  static __device__ __forceinline__ float square(float a, float b, float c, float4 mean, float4 weight)
  {
    const float x = (a - mean.x) * weight.x, y = (b - mean.y) * weight.y, z = (c - mean.z) * weight.z;
    return hk_fused(z, z, hk_fused(y, y, x * x));
  }
};

/* Shared memory of a warp. */
struct __align__(16) rows_desk
{
  float4 mean[HK_RUN], weight[HK_RUN];
};

/* The places of rows, relative to where the run's first point found the next. */
static __device__ __forceinline__ int32_t rows_to(const struct run *run, uint32_t k, uint32_t room)
{
  const int32_t admitted = (int32_t)run->point[k].row - (int32_t)run->point->row;
  return admitted + (admitted < 0 ? (int32_t)room : 0) - 1;
}

static __device__ __forceinline__ int32_t rows_from(const struct run *run, uint32_t k, uint32_t room)
{
  return rows_to(run, k, room) + 1 - (int32_t)run->point[k].rows;
}

/* What all points are compared with, of N and U as above. */
template <uint32_t N, uint32_t U>
static __device__ __forceinline__ void rows_whole(const struct fours &fours, const struct hk_novelty_view &v,
                                                  const struct rows_desk *desk, float (&best)[N])
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  const float4 *const a = hk_global((const float4 *)v.row[0]), *const b = hk_global((const float4 *)v.row[1]),
                      *const c = hk_global((const float4 *)v.row[2]);
  struct rows next[U];
  const auto load = [&](uint32_t i) {
#pragma unroll
    for (uint32_t u = 0; u < U; u++) {
      const uint32_t group = fours[i + u * HK_WARP];
      next[u] = { __ldcs(&a[group]), __ldcs(&b[group]), __ldcs(&c[group]) };
    }
  };
  load(lane);
#pragma unroll 1
  for (uint32_t i = lane; i < fours.count; i += U * HK_WARP) {
    struct rows x[U];
#pragma unroll
    for (uint32_t u = 0; u < U; u++)
      x[u] = next[u];
    load(i + U * HK_WARP);
#pragma unroll
    for (uint32_t k = 0; k < N; k++) {
      const float4 mean = desk->mean[k], weight = desk->weight[k];
#pragma unroll
      for (uint32_t u = 0; u < U; u++)
        best[k] = x[u].least(best[k], mean, weight);
    }
  }
}

/* Rows. */
template <uint32_t N, uint32_t U> static __device__ __forceinline__ void rows_pass(struct run *run, struct rows_desk *desk)
{
  const struct hk_detector *const d = run->detector;
  const struct hk_novelty_view v = hk_cuda_novelty(run->record, d);
  const uint32_t n = run->n, lane = threadIdx.x % HK_WARP, room = hk_novelty_rows_room(d);
  if (lane < N) {
    const struct hk_novelty_point *const p = &run->point[min(lane, n - 1)];
    desk->mean[lane] = make_float4(p->mean[0], p->mean[1], p->mean[2], 0);
    desk->weight[lane] = make_float4(p->weight[0], p->weight[1], p->weight[2], 0);
  }
  __syncwarp();
  struct places places(run->point->row, room, rows_to(run, n - 1, room));
  places.take(rows_from(run, 0, room), rows_to(run, 0, room));
  places.take(rows_from(run, n - 1, room), rows_to(run, n - 1, room));
  float best[N];
#pragma unroll
  for (uint32_t k = 0; k < N; k++)
    best[k] = INFINITY;
  rows_whole<N, U>(fours(places), v, desk, best);
  int32_t o;
#pragma unroll 1
  for (int32_t i = (int32_t)lane; places.rest(i, &o); i += HK_WARP) {
    const int32_t at = places.place(o);
    const float x = v.row[0][at], y = v.row[1][at], z = v.row[2][at];
#pragma unroll
    for (uint32_t k = 0; k < N; k++)
      if (k < n && o >= rows_from(run, k, room) && o <= rows_to(run, k, room))
        best[k] = fminf(best[k], rows::square(x, y, z, desk->mean[k], desk->weight[k]));
  }
  run_tell(run, HK_NOVELTY_CONTEXT, best);
  __syncwarp();
}

/* The pass over values, by the run's points. */
static __device__ __forceinline__ void run_values(struct run *run)
{
  if (run->n > 8)
    values_pass<16, 4>(run);
  else if (run->n > 4)
    values_pass<8, 4>(run);
  else if (run->n > 0)
    values_pass<4, 4>(run);
}

/* The pass over rows. */
static __device__ __forceinline__ void run_rows(struct run *run, struct rows_desk *desk)
{
  if (hk_novelty_value_alone(run->detector))
    return;
  if (run->n > 8)
    rows_pass<16, 1>(run, desk);
  else if (run->n > 4)
    rows_pass<8, 2>(run, desk);
  else if (run->n > 0)
    rows_pass<4, 2>(run, desk);
}

#endif
