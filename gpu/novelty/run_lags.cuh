/* The least variance over all lags for a run of many points of one sensor, by a warp: all groups of lags are brought along, one
 * after the other, and their samples are values to be compared with, too. */
#ifndef HK_NOVELTY_RUN_LAGS_CUH
#define HK_NOVELTY_RUN_LAGS_CUH

#include "gpu/novelty/run_pass.cuh"

/* The samples, from as many before the run's first point as the longest lag is: of them those of a group are in shared memory,
 * and of the next. */
#define HK_SAMPLES (2 * HK_LAG_GROUP)

/* Values that are newer than the shortest lag. */
static __device__ __forceinline__ void run_new_values(struct station *station, const float *ring)
{
  const struct hk_novelty_point *p = station->point;
  const int32_t oldest = 1 - HK_NOVELTY_LAG_MIN, room = (int32_t)hk_detector_span(station->view.detector);
  const uint32_t lane = threadIdx.x % HK_WARP;
#pragma unroll 1
  for (int32_t o = oldest + (int32_t)lane; o < (int32_t)station->n - HK_NOVELTY_RECENT; o += HK_WARP) {
    const int32_t at = (int32_t)p->at + o;
    const float x = ring[at < 0 ? at + room : at >= room ? at - room : at];
#pragma unroll 1
    for (uint32_t k = 0; k < station->n; k++)
      if (o >= (int32_t)k + oldest && o <= (int32_t)k - HK_NOVELTY_RECENT)
        *run_least(station, k) = fminf(*run_least(station, k), fabsf(x - station->found.value[k]));
  }
}

/* Begins with the variances of the lag that had the least one lately, so that few others are less: rarely is one noted. */
static __device__ __forceinline__ void run_lags_begin(struct station *station, const float *ring)
{
  const struct hk_detector *d = station->view.detector;
  const uint32_t place = min(station->view.novelty->nearest, hk_novelty_lags(d) - 1), room = hk_detector_span(d);
  float variance = station->view.variance[place], mean = station->view.mean[place];
  uint32_t at = station->point->at + place + room - hk_novelty_lag_max(d);
  at -= at >= room ? room : 0;
#pragma unroll 1
  for (uint32_t k = 0; k < station->n; k++) {
    lags_take_one(&variance, &mean, station->found.value[k] - ring[at]);
    at = at + 1 == room ? 0 : at + 1;
    if (threadIdx.x % HK_WARP == 0) {
      station->found.variance[k] = __float_as_int(variance);
      station->found.place[k] = place;
    }
  }
  __syncwarp();
}

static __device__ __forceinline__ int32_t run_lags_one(struct lags *lags, float value, float a, float b, float c, float d,
                                                       float *best)
{
  *best = nearest_of(*best, value - a, value - b, value - c, value - d);
  return lags->take(value, a, b, c, d);
}

/* Brings four lags of a lane, from `place` on, along by the run's points. The samples of a lag for successive points are
 * successive. Called by all lanes; real: whether these samples are. */
static __device__ __forceinline__ void run_lags_take(struct station *station, uint32_t place, struct lags *lags, bool real)
{
  const uint32_t lane = threadIdx.x % HK_WARP, n = station->n;
  const float *const samples = station->found.samples, *const values = station->found.value;
  int32_t *const shape = station->found.variance;
  float4 now = *(const float4 *)&samples[place % HK_SAMPLES];
  uint32_t k = 0;
#pragma unroll 1
  for (; k + 4 <= n; k += 4) {
    const float4 next = *(const float4 *)&samples[(place + 4 + k) % HK_SAMPLES], value = *(const float4 *)&values[k];
    const int4 bound = *(const int4 *)&shape[k];
    const struct lags before = *lags;
    float4 best = station->found.least[k / 4][lane];
    bool reach = run_lags_one(lags, value.x, now.x, now.y, now.z, now.w, &best.x) <= bound.x;
    reach |= run_lags_one(lags, value.y, now.y, now.z, now.w, next.x, &best.y) <= bound.y;
    reach |= run_lags_one(lags, value.z, now.z, now.w, next.x, next.y, &best.z) <= bound.z;
    reach |= run_lags_one(lags, value.w, now.w, next.x, next.y, next.z, &best.w) <= bound.w;
    if (__any_sync(HK_ALL, reach))
      lags_tell(station, before, values, shape, k, place, now, next);
    if (real)
      station->found.least[k / 4][lane] = best;
    now = next;
  }
#pragma unroll 1
  for (; k < n; k++) {
    float best = *run_least(station, k);
    if (__any_sync(HK_ALL, run_lags_one(lags, values[k], now.x, now.y, now.z, now.w, &best) <= shape[k]))
      lags_note(station, shape, k, place,
                make_float4(lags->variance[0], lags->variance[1], lags->variance[2], lags->variance[3]));
    if (real)
      *run_least(station, k) = best;
    now = make_float4(now.y, now.z, now.w, samples[(place + 4 + k) % HK_SAMPLES]);
  }
}

/* All lags, and the values that they reach. */
static __device__ __forceinline__ void run_lags(struct station *station, const float *ring)
{
  const struct hk_detector *d = station->view.detector;
  const uint32_t lane = threadIdx.x % HK_WARP, all = hk_novelty_lags(d), longest = hk_novelty_lag_max(d);
  const int32_t room = (int32_t)hk_detector_span(d), first = (int32_t)station->point->at - (int32_t)longest,
                begin = first + (first < 0 ? room : 0), last = (int32_t)(longest + station->n) - 2;
  float4 *const variances = hk_global((float4 *)station->view.variance), *const means = hk_global((float4 *)station->view.mean);
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
      station->found.samples[(g * HK_LAG_GROUP + j * HK_WARP + lane) % HK_SAMPLES] = next[j];
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
    run_lags_take(station, 4 * own, &four, own < fours);
    if (own < fours) {
      variances[own] = make_float4(four.variance[0], four.variance[1], four.variance[2], four.variance[3]);
      means[own] = make_float4(four.mean[0], four.mean[1], four.mean[2], four.mean[3]);
    }
    __syncwarp(); /* the group's place is the next but one's */
  }
}

/* The second third of the pass for a run of many points, after run_pass_values. */
static __device__ __noinline__ void run_pass_lags(struct station *station)
{
  const float *const ring = hk_global((const float *)hk_cuda_ring(station->task.record, station->view.detector));
  run_lags_begin(station, ring);
  run_lags(station, ring);
  run_new_values(station, ring);
  run_least_tell(station, HK_NOVELTY_VALUE);
  lags_end(station, station->found.variance);
  lags_brought(station);
}

#endif
