/* The passes of algorithm = novelty over the resident data of one sensor, by a warp: the distances of cpu/novelty/distances.h,
 * bit for bit. */
#ifndef HK_NOVELTY_PASSES_CUH
#define HK_NOVELTY_PASSES_CUH

#include "gpu/novelty/lone_pass.cuh"

/* The pass for a point of a sensor that is new, or shortly after a hole: in plain form, with a lane for each place. */
static __device__ __noinline__ void young_pass(const struct turn *turn, struct hk_novelty_point *p)
{
  const struct hk_novelty_view *v = &turn->view;
  const struct hk_detector *d = v->detector;
  const float *const ring = hk_cuda_ring(turn->record, d);
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

/* Minimum distances of a station's points, by a warp: of several points only while the sensor is young. */
static __device__ __forceinline__ void station_passes(struct station *station)
{
  const struct turn *const turn = &station->turn;
  const struct hk_detector *d = turn->view.detector;
  struct taken *const p = turn->point;
  if (p->age == 0)
    for (uint32_t i = threadIdx.x % HK_WARP; i < hk_novelty_lags(d); i += HK_WARP)
      turn->view.variance[i] = turn->view.mean[i] = 0;
  __syncwarp();
  if (turn_grown(d, p)) {
    lone_pass(turn, &station->lags);
  } else {
#pragma unroll 1
    for (uint32_t k = 0; k < turn->n; k++)
      young_pass(turn, &p[k]);
    lags_brought(turn);
  }
  __syncwarp();
}

#endif
