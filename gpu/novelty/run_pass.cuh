/* The passes over values and rows for a run of points of one sensor, by a warp: each group of four places stands in a lane's
 * registers while all points of the run go by.
 *
 * Points go by four at a time, and what they have found lies in shared memory: so the code stays short enough for the cache of
 * instructions if all warps of a block are at the same loop (novelty.cu). */
#ifndef HK_NOVELTY_RUN_PASS_CUH
#define HK_NOVELTY_RUN_PASS_CUH

#include "gpu/novelty/lags.cuh"

#define HK_RUN_VALUES 4u /* groups of four values that a lane holds */

/* Behind the last point stand copies of it, so that there are four everywhere: a minimum does not mind. */
static __device__ __forceinline__ uint32_t run_fours(const struct station *station)
{
  return (station->n + 3) / 4;
}

/* A lane's least of a point. */
static __device__ __forceinline__ float *run_least(struct station *station, uint32_t k)
{
  return (float *)&station->found.least[k / 4][threadIdx.x % HK_WARP] + k % 4;
}

static __device__ __forceinline__ float run_nearest(float best, float4 x, float value)
{
  return nearest_of(best, x.x - value, x.y - value, x.z - value, x.w - value);
}

/* The values that are at least `recent` points old. */
static __device__ __forceinline__ void run_values(struct station *station, const float *ring, int32_t recent)
{
  const struct hk_detector *d = station->view.detector;
  const struct hk_novelty_point *p = station->point;
  const uint32_t n = station->n, fours = run_fours(station), lane = threadIdx.x % HK_WARP;
  const auto to = [&](uint32_t k) { return (int32_t)k - recent; };
  const auto from = [&](uint32_t k) { return (int32_t)k - HK_NOVELTY_RECENT + 1 - (int32_t)hk_novelty_values(d, &p[k]); };
  struct places places(p->at, hk_detector_span(d), (int32_t)n - 1);
  places.take(from(0), to(0));
  places.take(from(n - 1), to(n - 1));
  const uint32_t groups = (uint32_t)places.room / 4;
  const float4 *const rings = (const float4 *)ring;
  /* The groups of the range, which may go round the end of the ring. */
  const uint32_t first = (uint32_t)places.place(places.common) / 4, count = (uint32_t)(places.shared - places.common + 4) / 4 + 1;
  float4 next[HK_RUN_VALUES];
  const auto load = [&](uint32_t begin) {
#pragma unroll
    for (uint32_t u = 0; u < HK_RUN_VALUES; u++) { /* behind the end the last once more */
      uint32_t group = first + min(begin + u * HK_WARP, count - 1);
      group -= group >= groups ? groups : 0;
      next[u] = rings[group];
      if (!places.whole(places.of((int32_t)(4 * group))))
        next[u].x = next[u].y = next[u].z = next[u].w = INFINITY;
    }
  };
  load(lane);
#pragma unroll 1
  for (uint32_t begin = lane; begin < count; begin += HK_RUN_VALUES * HK_WARP) {
    float4 x[HK_RUN_VALUES];
#pragma unroll
    for (uint32_t u = 0; u < HK_RUN_VALUES; u++)
      x[u] = next[u];
    load(begin + HK_RUN_VALUES * HK_WARP);
#pragma unroll 1
    for (uint32_t k = 0; k < fours; k++) {
      const float4 value = *(const float4 *)&station->found.value[4 * k];
      float4 best = station->found.least[k][lane];
#pragma unroll
      for (uint32_t u = 0; u < HK_RUN_VALUES; u++) {
        best.x = run_nearest(best.x, x[u], value.x);
        best.y = run_nearest(best.y, x[u], value.y);
        best.z = run_nearest(best.z, x[u], value.z);
        best.w = run_nearest(best.w, x[u], value.w);
      }
      station->found.least[k][lane] = best;
    }
  }
  int32_t o;
  for (int32_t i = (int32_t)lane; places.rest(i, &o); i += HK_WARP) {
    const float x = ring[places.place(o)];
#pragma unroll 1
    for (uint32_t k = 0; k < n; k++)
      if (o >= from(k) && o <= to(k))
        *run_least(station, k) = fminf(*run_least(station, k), fabsf(x - p[k].value));
  }
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
    return x * x + y * y + z * z;
  }
};

/* All rows. */
static __device__ __forceinline__ void run_rows(struct station *station)
{
  const struct hk_novelty_view *v = &station->view;
  const struct hk_novelty_point *p = station->point;
  const uint32_t n = station->n, fours = run_fours(station), room = hk_novelty_rows_room(v->detector),
                 lane = threadIdx.x % HK_WARP;
  /* Relative to where the run's first point found the next. */
  const auto to = [&](uint32_t k) {
    const int32_t admitted = (int32_t)p[k].row - (int32_t)p->row;
    return admitted + (admitted < 0 ? (int32_t)room : 0) - 1;
  };
  const auto from = [&](uint32_t k) { return to(k) + 1 - (int32_t)p[k].rows; };
  struct places places(p->row, room, to(n - 1));
  places.take(from(0), to(0));
  places.take(from(n - 1), to(n - 1));
  const uint32_t groups = room / 4;
  const float4 *const first = hk_global((const float4 *)v->row[0]), *const second = hk_global((const float4 *)v->row[1]),
                      *const third = hk_global((const float4 *)v->row[2]);
  struct rows next;
  const auto load = [&](uint32_t group) {
    group = min(group, groups - 1);
    next = { first[group], second[group], third[group] };
    if (!places.whole(places.of((int32_t)(4 * group))))
      next.a.x = next.a.y = next.a.z = next.a.w = INFINITY;
  };
  load(lane);
#pragma unroll 1
  for (uint32_t group = lane; group < groups; group += HK_WARP) {
    const struct rows four = next;
    load(group + HK_WARP);
#pragma unroll 1
    for (uint32_t k = 0; k < fours; k++) {
      const float4 *const mean = &station->found.here[4 * k], *const weight = &station->found.weight[4 * k];
      float4 best = station->found.least[k][lane];
      best.x = four.least(best.x, mean[0], weight[0]);
      best.y = four.least(best.y, mean[1], weight[1]);
      best.z = four.least(best.z, mean[2], weight[2]);
      best.w = four.least(best.w, mean[3], weight[3]);
      station->found.least[k][lane] = best;
    }
  }
  int32_t o;
  for (int32_t i = (int32_t)lane; places.rest(i, &o); i += HK_WARP) {
    const int32_t at = places.place(o);
    const float a = v->row[0][at], b = v->row[1][at], c = v->row[2][at];
#pragma unroll 1
    for (uint32_t k = 0; k < n; k++)
      if (o >= from(k) && o <= to(k))
        *run_least(station, k) =
            fminf(*run_least(station, k), rows::square(a, b, c, station->found.here[k], station->found.weight[k]));
  }
}

/* No minima yet. */
static __device__ __forceinline__ void run_least_begin(struct station *station)
{
  for (uint32_t k = 0; k < run_fours(station); k++)
    station->found.least[k][threadIdx.x % HK_WARP] = make_float4(INFINITY, INFINITY, INFINITY, INFINITY);
}

static __device__ __forceinline__ void run_least_tell(struct station *station, uint32_t channel)
{
#pragma unroll 1
  for (uint32_t k = 0; k < station->n; k++)
    least_tell(&station->point[k], channel, *run_least(station, k));
}

/* The first third of the pass for a run: the values; then come lags and rows. some: without the values that lags reach, which go
 * on in run_pass_lags. */
static __device__ __noinline__ void run_pass_values(struct station *station, bool some)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  if (lane < 4 * run_fours(station)) {
    const struct hk_novelty_point *const p = &station->point[min(lane, station->n - 1)];
    station->found.here[lane] = make_float4(p->mean[0], p->mean[1], p->mean[2], p->value);
    station->found.weight[lane] = make_float4(p->weight[0], p->weight[1], p->weight[2], 0);
    station->found.value[lane] = p->value;
  }
  run_least_begin(station);
  __syncwarp();
  const struct hk_detector *d = station->view.detector;
  run_values(station, hk_global((const float *)hk_cuda_ring(station->task.record, d)),
             some ? (int32_t)hk_novelty_lag_max(d) + 1 : HK_NOVELTY_RECENT);
  if (!some)
    run_least_tell(station, HK_NOVELTY_VALUE);
}

static __device__ __noinline__ void run_pass_rows(struct station *station)
{
  run_least_begin(station);
  run_rows(station);
  run_least_tell(station, HK_NOVELTY_CONTEXT);
}

#endif
