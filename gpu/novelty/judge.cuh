/* The alert rule on rated points of a sensor, by a warp, and what events say of the past: cpu/novelty/alert.h. */
#ifndef HK_NOVELTY_JUDGE_CUH
#define HK_NOVELTY_JUDGE_CUH

#include "cpu/novelty/alert.h"
#include "gpu/backend/tick.cuh"
#include "gpu/novelty/rate.cuh"

/* hk_novelty_past, by one warp: one lane for each place. */
static __device__ __noinline__ struct hk_novelty_past past_look(const struct hk_novelty_view *v, const float *ring,
                                                                const struct hk_novelty_point *p, uint32_t channel)
{
  const struct hk_detector *d = v->detector;
  const uint32_t lane = threadIdx.x % HK_WARP, span = hk_detector_span(d), values = hk_novelty_values(d, p);
  const uint32_t places = channel == HK_NOVELTY_VALUE ? values : channel == HK_NOVELTY_CONTEXT ? p->rows : 0;
  uint32_t newest = places > 0 ? places - 1 : 0;
  float low = INFINITY, high = -INFINITY;
  for (uint32_t i = lane; i < values; i += HK_WARP) {
    const float x = hk_novelty_sample(ring, span, p, HK_NOVELTY_RECENT + i);
    low = fminf(low, x);
    high = fmaxf(high, x);
  }
  for (uint32_t i = lane; i < places; i += HK_WARP) {
    const float distance = channel == HK_NOVELTY_VALUE ? hk_novelty_value_distance(ring, span, p, HK_NOVELTY_RECENT + i)
                                                       : hk_novelty_row_distance(v, p, hk_novelty_row_place(d, p, i));
    if (!(distance > p->nearest[channel])) {
      newest = min(newest, i);
      break;
    }
  }
  newest = __reduce_min_sync(HK_ALL, newest);
  for (uint32_t far = HK_WARP / 2; far > 0; far /= 2) {
    low = fminf(low, __shfl_xor_sync(HK_ALL, low, far));
    high = fmaxf(high, __shfl_xor_sync(HK_ALL, high, far));
  }
  struct hk_novelty_past past = { p->lag, 0, (double)low, (double)high };
  if (channel == HK_NOVELTY_VALUE)
    past.age = HK_NOVELTY_RECENT + newest;
  if (channel == HK_NOVELTY_CONTEXT) {
    past.row = hk_novelty_row_place(d, p, newest);
    past.age = HK_NOVELTY_ROW_AGE + p->phase + newest * HK_NOVELTY_ROW_EVERY;
  }
  return past;
}

/* Applies the alert rule to point k of a turn, by one warp; all lanes look up the reported past. */
static __device__ __noinline__ void speak(const struct turn *turn, const struct hk_novelty_result *r,
                                          const struct hk_cuda_columns *columns, uint32_t k)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  struct hk_cuda_record *const record = turn->record;
  const struct hk_novelty_view *const v = &turn->view;
  const float *const ring = hk_cuda_ring(record, v->detector);
  const struct hk_novelty_point *const p = &turn->point[k];
  int kind = 0;
  bool tells = false;
  if (lane == 0)
    kind = hk_novelty_rule(&record->alert, v, p, turn->point[k].step, r, &tells);
  struct hk_novelty_past past;
  if (__any_sync(HK_ALL, tells))
    past = past_look(v, ring, p, r->channel);
  if (lane == 0 && kind != 0) {
    struct hk_event event = hk_novelty_speak(&record->alert, v, &record->window, ring, p, r, kind, tells ? &past : NULL);
    hk_tick_event(columns, record, turn->point[k].index, &event);
  }
  __syncwarp();
}

/* Judges rated points, by one warp: one lane for each point computes the result of its distances, and one lane applies the
 * rule. */
template <class DESK>
static __device__ __forceinline__ void judge(const struct turn *turn, DESK *desk, const struct hk_cuda_columns *columns)
{
  const uint32_t lane = threadIdx.x % HK_WARP, n = turn->n;
  /* If no alert stands and no point is above the threshold, no point has an event. */
  const double threshold = hk_novelty_s((double)turn->view.detector->threshold);
  bool speaks = turn->record->alert.raised;
  for (uint32_t k = lane; k < n; k += HK_WARP) {
    const struct hk_novelty_result best = rate_result(turn, desk, k);
    desk->result[k] = best;
    if (turn->point[k].step.score)
      columns->score[turn->point[k].index] = (float)hk_novelty_score(best.s);
    speaks = speaks || best.s >= threshold;
  }
  if (__any_sync(HK_ALL, speaks)) {
    __syncwarp();
    for (uint32_t k = 0; k < n; k++)
      speak(turn, &desk->result[k], columns, k);
  }
}

#endif
