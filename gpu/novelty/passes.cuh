/* The passes of algorithm = novelty over the resident data of one sensor, by a warp: the distances of cpu/novelty/distances.h,
 * bit for bit. */
#ifndef HK_NOVELTY_PASSES_CUH
#define HK_NOVELTY_PASSES_CUH

#include "gpu/novelty/lone_pass.cuh"
#include "gpu/novelty/run_lags.cuh"

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

/* What kind of pass a run needs. A later point of a run has at least the past of an earlier one. With few points the lags are
 * those that matter; with many all of them, as nearly all would matter, and then their samples are values to be compared with,
 * too. */
enum pass { PASS_YOUNG, PASS_VALUES, PASS_LONE, PASS_FEW, PASS_RUN };

static __device__ __forceinline__ enum pass pass_of(const struct station *station)
{
  const struct hk_detector *d = station->view.detector;
  const struct hk_novelty_point *const p = station->point;
  if (hk_novelty_value_alone(d) && hk_novelty_values(d, p) == hk_novelty_resident(d))
    return PASS_VALUES;
  if (!hk_novelty_value_alone(d) && hk_novelty_lags_counted(d, p) == hk_novelty_lags(d))
    return station->n == 1 ? PASS_LONE : station->n <= HK_FEW ? PASS_FEW : PASS_RUN;
  return PASS_YOUNG;
}

/* Minimum distances of a run's points, by a warp, in three parts. In the first, all of them of young sensors and lone points, and
 * those to values. */
static __device__ __forceinline__ void distances_begin(struct station *station, enum pass pass)
{
  const struct hk_detector *d = station->view.detector;
  struct hk_novelty_point *const p = station->point;
  if (p->age == 0)
    for (uint32_t i = threadIdx.x % HK_WARP; i < hk_novelty_lags(d); i += HK_WARP)
      station->view.variance[i] = station->view.mean[i] = 0;
  __syncwarp();
  if (pass == PASS_YOUNG) {
#pragma unroll 1
    for (uint32_t k = 0; k < station->n; k++)
      young_pass(station, &p[k]);
    lags_brought(station);
  } else if (pass == PASS_LONE || (pass == PASS_VALUES && station->n == 1))
    lone_pass(station, pass == PASS_LONE);
  else {
    if (pass == PASS_RUN)
      lags_groups(station, 0);
    run_pass_values(station, pass == PASS_RUN);
  }
  __syncwarp();
}

static __device__ __forceinline__ void distances_lags(struct station *station, enum pass pass)
{
  if (pass == PASS_FEW)
    lags_pass(station);
  if (pass == PASS_RUN)
    run_pass_lags(station);
}

static __device__ __forceinline__ void distances_rows(struct station *station, enum pass pass)
{
  if (pass == PASS_FEW || pass == PASS_RUN)
    run_pass_rows(station);
}

#endif
