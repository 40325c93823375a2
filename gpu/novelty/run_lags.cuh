/* The least variance over all lags for a run of many points of one sensor, by a warp: all groups of lags are brought along, one
 * after the other. */
#ifndef HK_NOVELTY_RUN_LAGS_CUH
#define HK_NOVELTY_RUN_LAGS_CUH

#include "gpu/novelty/lags.cuh"

/* The samples, from as many before the run's first point as the longest lag is: of them those of a group are in shared memory,
 * and of the next. */
#define HK_SAMPLES (2 * HK_LAG_GROUP)

/* Begins with the variances of the lag that had the least one lately, so that few others are less: rarely is one noted. */
template <class DESK>
static __device__ __forceinline__ void run_lags_begin(const struct turn *turn, DESK *desk, const float *ring)
{
  const struct hk_detector *d = turn->view.detector;
  const uint32_t place = min(turn->view.novelty->nearest, hk_novelty_lags(d) - 1), room = hk_detector_span(d);
  float variance = turn->view.variance[place], mean = turn->view.mean[place];
  uint32_t at = turn->point->at + place + room - hk_novelty_lag_max(d);
  at -= at >= room ? room : 0;
  if (threadIdx.x % HK_WARP < turn->n)
    desk->value[threadIdx.x % HK_WARP] = turn->point[threadIdx.x % HK_WARP].value;
  __syncwarp();
#pragma unroll 1
  for (uint32_t k = 0; k < turn->n; k++) {
    (void)hk_novelty_lag_step(&variance, &mean, desk->value[k] - ring[at]);
    at = at + 1 == room ? 0 : at + 1;
    if (threadIdx.x % HK_WARP == 0) {
      desk->variance[k] = __float_as_int(variance);
      desk->place[k] = place;
    }
  }
  __syncwarp();
}

/* Brings four lags of a lane, from `place` on, along by the run's n points. The samples of a lag for successive points are
 * successive. Called by all lanes. */
template <class DESK>
static __device__ __forceinline__ void run_lags_take(DESK *desk, uint32_t n, uint32_t place, struct lags *lags)
{
  const float *const samples = desk->samples, *const values = desk->value;
  int32_t *const shape = desk->variance;
  float4 now = *(const float4 *)&samples[place % HK_SAMPLES];
  uint32_t k = 0;
#pragma unroll 1
  for (; k + 4 <= n; k += 4) {
    const float4 next = *(const float4 *)&samples[(place + 4 + k) % HK_SAMPLES], value = *(const float4 *)&values[k];
    const int4 bound = *(const int4 *)&shape[k];
    struct lags_reach r;
    r.reaches[0] = lags->reach(value.x, now.x, now.y, now.z, now.w, bound.x, &r.variance[0]);
    r.reaches[1] = lags->reach(value.y, now.y, now.z, now.w, next.x, bound.y, &r.variance[1]);
    r.reaches[2] = lags->reach(value.z, now.z, now.w, next.x, next.y, bound.z, &r.variance[2]);
    r.reaches[3] = lags->reach(value.w, now.w, next.x, next.y, next.z, bound.w, &r.variance[3]);
    if (r.any())
      r.note(desk, shape, k, place);
    now = next;
  }
#pragma unroll 1
  for (; k < n; k++) {
    if (__any_sync(HK_ALL, lags->take(values[k], now.x, now.y, now.z, now.w) <= shape[k]))
      lags_note(desk, shape, k, place, lags->variances());
    now = make_float4(now.y, now.z, now.w, samples[(place + 4 + k) % HK_SAMPLES]);
  }
}

/* All lags. */
template <class DESK> static __device__ __forceinline__ void run_lags_all(const struct turn *turn, DESK *desk, const float *ring)
{
  const struct hk_detector *d = turn->view.detector;
  const uint32_t lane = threadIdx.x % HK_WARP, n = turn->n, all = hk_novelty_lags(d), longest = hk_novelty_lag_max(d);
  const int32_t room = (int32_t)hk_detector_span(d), first = (int32_t)turn->point->at - (int32_t)longest,
                begin = first + (first < 0 ? room : 0), last = (int32_t)(longest + n) - 2;
  float4 *const variances = hk_global((float4 *)turn->view.variance), *const means = hk_global((float4 *)turn->view.mean);
  const uint32_t fours = hk_novelty_column(all) / 4, groups = hk_lag_groups(d);
  float next[4];
  const auto load = [&](uint32_t g) {
#pragma unroll
    for (uint32_t j = 0; j < 4; j++) {
      const int32_t at = begin + min((int32_t)(g * HK_LAG_GROUP + j * HK_WARP + lane), last);
      next[j] = ring[at >= room ? at - room : at];
    }
  };
  const auto put = [&](uint32_t g) {
#pragma unroll
    for (uint32_t j = 0; j < 4; j++)
      desk->samples[(g * HK_LAG_GROUP + j * HK_WARP + lane) % HK_SAMPLES] = next[j];
  };
  float4 variance = variances[min(lane, fours - 1)], mean = means[min(lane, fours - 1)];
  load(0);
  put(0);
  load(1);
#pragma unroll 1
  for (uint32_t g = 0; g < groups; g++) {
    const uint32_t own = g * HK_WARP + lane, later = min(own + HK_WARP, fours - 1);
    put(g + 1);
    load(g + 2);
    struct lags four = { { variance.x, variance.y, variance.z, variance.w }, { mean.x, mean.y, mean.z, mean.w } };
    variance = variances[later];
    mean = means[later];
    if (g + 1 == groups) /* behind the last place stand no lags */
#pragma unroll
      for (uint32_t j = 0; j < 4; j++)
        four.variance[j] = 4 * own + j < all ? four.variance[j] : INFINITY;
    __syncwarp();
    run_lags_take(desk, n, 4 * own, &four);
    if (own < fours) {
      variances[own] = four.variances();
      means[own] = four.means();
    }
    __syncwarp(); /* the group's place is the next but one's */
  }
}

/* Brings all groups along to the run's beginning, where they are late. */
template <class DESK> static __device__ __noinline__ void run_lags_late(const struct turn *turn, DESK *desk)
{
  lags_groups(turn, desk, 0);
}

/* The least variance of each point of a run of many points, and its lag. */
template <class DESK> static __device__ __forceinline__ void run_lags(const struct turn *turn, DESK *desk)
{
  const float *const ring = hk_global((const float *)hk_cuda_ring(turn->record, turn->view.detector));
  run_lags_late(turn, desk);
  __syncwarp();
  run_lags_begin(turn, desk, ring);
  run_lags_all(turn, desk, ring);
  lags_end(turn, desk, desk->variance);
  lags_brought(turn);
}

#endif
