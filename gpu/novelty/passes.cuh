/* The passes of algorithm = novelty over the resident data of one sensor, by a warp: the distances of cpu/novelty/distances.h,
 * bit for bit. */
#ifndef HK_NOVELTY_PASSES_CUH
#define HK_NOVELTY_PASSES_CUH

#include "gpu/novelty/lone_pass.cuh"
#include "gpu/novelty/run_pass.cuh"

/* The pass for a point of a sensor that is new, or shortly after a hole: in plain form, with a lane for each place. */
static __device__ __noinline__ void young_pass(struct station *station, struct hk_novelty_point *p)
{
  const struct hk_novelty_view *v = &station->view;
  const struct hk_detector *d = v->detector;
  const float *const ring = hk_cuda_ring(station->task.record, d);
  const uint32_t lane = threadIdx.x % HK_WARP, span = hk_detector_span(d), values = hk_novelty_values(d, p), rows = p->rows,
                 lags = hk_novelty_lags(d), seen = hk_novelty_lags_seen(d, p), counted = hk_novelty_lags_counted(d, p);
  float value = INFINITY, context = INFINITY, shape = INFINITY;
  uint32_t lag = HK_NOVELTY_LAG_MIN;
#pragma unroll 4
  for (uint32_t i = lane; i < values; i += HK_WARP)
    value = fminf(value, hk_novelty_value_distance(ring, span, p, HK_NOVELTY_RECENT + i));
#pragma unroll 2
  for (uint32_t i = lane; i < rows; i += HK_WARP)
    context = fminf(context, hk_novelty_row_distance(v, p, hk_novelty_row_place(d, p, i)));
#pragma unroll 4
  for (uint32_t i = lane; i < seen; i += HK_WARP) {
    const float off = p->value - hk_novelty_sample(ring, span, p, HK_NOVELTY_LAG_MIN + i);
    const float variance = hk_novelty_lag_take(v, lags - 1 - i, off);
    if (i < counted && variance < shape) {
      shape = variance;
      lag = HK_NOVELTY_LAG_MIN + i;
    }
  }
  least_tell(p, HK_NOVELTY_VALUE, value);
  least_tell(p, HK_NOVELTY_CONTEXT, context);
  const uint32_t least = least_tell(p, HK_NOVELTY_SHAPE, shape);
  lag = __reduce_min_sync(HK_ALL, __float_as_uint(shape) == least ? lag : UINT32_MAX);
  if (lane == 0)
    p->lag = lag;
}

/* The pass with channels = value, of a sensor whose ring is full. */
static __device__ __noinline__ void value_pass(struct station *station)
{
  const float *const ring = hk_global((const float *)hk_cuda_ring(station->task.record, station->view.detector));
  if (station->n == 1) {
    least_tell(station->point, HK_NOVELTY_VALUE, lone_old_values(station, ring, station->point->value));
    return;
  }
  run_begin(station);
  run_old_values(station, ring);
  for (uint32_t k = 0; k < station->n; k++)
    least_tell(&station->point[k], HK_NOVELTY_VALUE, *run_least(station, k));
}

/* What kind of pass a run needs. A later point of a run has at least the past of an earlier one. */
enum pass { PASS_YOUNG, PASS_VALUE, PASS_LONE, PASS_RUN };

static __device__ __forceinline__ enum pass pass_of(const struct station *station)
{
  const struct hk_detector *d = station->view.detector;
  const struct hk_novelty_point *const p = station->point;
  if (hk_novelty_value_alone(d) && hk_novelty_values(d, p) == hk_novelty_resident(d))
    return PASS_VALUE;
  if (!hk_novelty_value_alone(d) && hk_novelty_lags_counted(d, p) == hk_novelty_lags(d))
    return station->n == 1 ? PASS_LONE : PASS_RUN;
  return PASS_YOUNG;
}

/* Minimum distances of a run's points, by a warp: all of them, but of a long pass only to the values. */
static __device__ __forceinline__ void distances_begin(struct station *station, enum pass pass)
{
  const struct hk_detector *d = station->view.detector;
  struct hk_novelty_point *const p = station->point;
  if (p->age == 0)
    for (uint32_t i = threadIdx.x % HK_WARP; i < hk_novelty_lags(d); i += HK_WARP)
      station->view.square[i] = station->view.mean[i] = 0;
  __syncwarp();
  switch (pass) {
  case PASS_VALUE:
    value_pass(station);
    break;
  case PASS_LONE:
    lone_pass(station);
    break;
  case PASS_RUN:
    run_pass_values(station);
    break;
  case PASS_YOUNG:
    for (uint32_t k = 0; k < station->n; k++)
      young_pass(station, &p[k]);
  }
  __syncwarp();
}

#endif
