/* The kernel of algorithm = novelty: one warp for each sensor, whose waiting points share one pass over the resident data.
 *
 * The warps of a block take their sensors through the same code at the same time: a multiprocessor's nearest cache of
 * instructions holds one loop of a pass, but not all of them, and warps that stand at different ones wait for instructions most
 * of the time (tests/bench/results/cuda-novelty.txt). In a pass, each lane holds values, rows or lags in registers and goes
 * through the points. Only minima are reduced, whose result does not
 * depend on order, and each lag takes the points one after the other: so the bits are those of cpu/novelty/distances.h. */
#include <cuda_pipeline_primitives.h>

#include "cpu/novelty/alert.h"
#include "gpu/backend/kernel.h"
#include "gpu/backend/tick.cuh"
#include "gpu/backend/work_sharing.cuh"
#include "gpu/novelty/passes.cuh"
#include "gpu/novelty/rate.cuh"

/* Shared memory of a warp. */
struct __align__(16) desk
{
  struct hk_share tasks;
  struct station station;
};

/* Begins a task at a station, by one warp. */
static __device__ __forceinline__ void station_begin(struct station *station, const struct hk_share *tasks)
{
  if (threadIdx.x % HK_WARP == 0) {
    station->task = *tasks->tasks;
    station->at = 0;
    station->held = false;
    station->view = hk_cuda_novelty(station->task.record, &tasks->detector);
  }
  __syncwarp();
}

/* Takes points until the run is full, the task ends, or lags or the sensor start over, by one warp: one lane for each feature. */
static __device__ __noinline__ void run_take(struct station *station, const struct hk_detector *d,
                                             const struct hk_cuda_launch *launch)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  struct hk_cuda_record *const record = station->task.record;
  struct hk_window *const window = &record->window;
  bool held = station->held;
  uint32_t n = held, at = station->at;
  __syncwarp();
  if (held && lane == 0) {
    station->point[0] = station->point[HK_RUN];
    station->step[0] = station->step[HK_RUN];
    station->index[0] = station->index[HK_RUN];
  }
  for (held = false; at < station->task.count && n < HK_RUN && !held; at++) {
    struct hk_novelty_point *const mine = &station->point[n];
    const struct hk_point point = hk_share_point(*launch, station->task, at);
    uint32_t state = 0;
    __syncwarp();
    if (lane == 0)
      state = hk_novelty_accept(&station->view, window, point.time, point.value, launch->columns.arrival, mine);
    state = __shfl_sync(HK_ALL, state, 0);
    __syncwarp();
    if (state == HK_STATE_OK && lane < hk_novelty_features(d))
      hk_novelty_feature(&station->view, window, mine, lane);
    __syncwarp();
    if (lane == 0) {
      struct hk_step step = { (uint8_t)state, 0, 0 };
      if (state == HK_STATE_OK)
        step = hk_novelty_append(&station->view, window, hk_cuda_ring(record, d), mine);
      launch->columns.state[point.index] = step.state;
      launch->columns.score[point.index] = NAN;
      station->step[n] = step;
      station->index[n] = point.index;
    }
    if (state != HK_STATE_OK) {
      __syncwarp();
      if (n > 0 && window->anew) { /* the next point may remove data with which the earlier points are compared */
        at++;
        break;
      }
      continue;
    }
    __syncwarp();
    held = mine->age == 0 && n > 0;
    n += !held;
  }
  __syncwarp();
  if (lane == 0) {
    if (held) {
      station->point[HK_RUN] = station->point[n];
      station->step[HK_RUN] = station->step[n];
      station->index[HK_RUN] = station->index[n];
    }
    station->held = held;
    station->at = at;
    station->n = n;
  }
  __syncwarp();
}

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

/* Applies the alert rule to point k of the run, by one warp; all lanes look up the reported past. */
static __device__ __noinline__ void speak(struct station *station, const struct hk_cuda_launch *launch, uint32_t k)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  struct hk_cuda_record *const record = station->task.record;
  const struct hk_novelty_view *const v = &station->view;
  const float *const ring = hk_cuda_ring(record, v->detector);
  const struct hk_novelty_point *const p = &station->point[k];
  const struct hk_novelty_result *const r = &station->result[k];
  int kind = 0;
  bool tells = false;
  if (lane == 0)
    kind = hk_novelty_rule(&record->alert, v, p, station->step[k], r, &tells);
  struct hk_novelty_past past;
  if (__any_sync(HK_ALL, tells))
    past = past_look(v, ring, p, r->channel);
  if (lane == 0 && kind != 0) {
    struct hk_event event = hk_novelty_speak(&record->alert, v, &record->window, ring, p, r, kind, tells ? &past : NULL);
    hk_tick_event(&launch->columns, record, station->index[k], &event);
  }
  __syncwarp();
}

/* Judges the run's points, by one warp: one lane for each point computes the result of its distances, and one lane applies the
 * rule. */
static __device__ __noinline__ void judge(struct station *station, const struct hk_cuda_launch *launch)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  const struct hk_detector *d = station->view.detector;
  const struct hk_cuda_record *const record = station->task.record;
  for (uint32_t k = lane; k < station->n; k += HK_WARP) {
    const struct hk_novelty_result best = rate_result(station, k);
    station->result[k] = best;
    if (station->step[k].score)
      launch->columns.score[station->index[k]] = (float)hk_novelty_score(best.s);
  }
  __syncwarp();
  /* If no alert stands and no point is above the threshold, no point has an event. */
  const double threshold = hk_novelty_s((double)d->threshold);
  bool speaks = record->alert.raised;
  for (uint32_t k = lane; k < station->n; k += HK_WARP)
    speaks = speaks || station->result[k].s >= threshold;
  if (__any_sync(HK_ALL, speaks))
    for (uint32_t k = 0; k < station->n; k++)
      speak(station, launch, k);
}

static __global__ void __launch_bounds__(HK_THREADS, HK_BLOCKS)
    hk_novelty_score_kernel(const __grid_constant__ struct hk_cuda_launch launch)
{
  extern __shared__ __align__(16) unsigned char shared[];
  const uint32_t warp = threadIdx.x / HK_WARP;
  struct desk *const desk = (struct desk *)shared + warp;
  struct station *const station = &desk->station;
  hk_share_begin<1>(&desk->tasks, &launch, blockIdx.x * HK_WARPS + warp);
  bool more = false;
  for (;;) {
    if (!more && (more = hk_share_next<1, 1>(&desk->tasks, &launch)))
      station_begin(station, &desk->tasks);
    if (!__syncthreads_or(more))
      break;
    uint32_t n = 0;
    if (more) {
      run_take(station, &desk->tasks.detector, &launch);
      n = station->n;
    }
    __syncthreads();
    enum pass pass = PASS_YOUNG;
    if (n > 0) {
      pass = pass_of(station);
      distances_begin(station, pass);
    }
    __syncthreads();
    if (n > 0)
      distances_lags(station, pass);
    __syncthreads();
    if (n > 0)
      distances_rows(station, pass);
    __syncthreads();
    if (n > 0) {
      __syncwarp();
      distances_end(station);
      rate(station);
      judge(station, &launch);
    }
    more = more && (station->held || station->at < station->task.count);
  }
  hk_share_end(launch);
}

static uint32_t shared_bytes(uint32_t size)
{
  (void)size;
  return HK_WARPS * (uint32_t)sizeof(struct desk);
}

/* Warps use shared memory only. The size is not 0, because kernel_choice.c divides by it. */
static uint64_t scratch_bytes(uint32_t size)
{
  (void)size;
  return 16;
}

static int fit(uint32_t most, uint32_t shared, uint32_t *blocks)
{
  int each = 0;
  cudaError_t error = cudaFuncSetAttribute(hk_novelty_score_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most);
  if (!error)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, hk_novelty_score_kernel, HK_THREADS, shared);
  *blocks = (uint32_t)each;
  return (int)error;
}

static int launch(struct CUstream_st *stream, uint32_t blocks, uint32_t shared, const struct hk_cuda_launch *l)
{
  hk_novelty_score_kernel<<<blocks, HK_THREADS, shared, stream>>>(*l);
  return (int)cudaGetLastError();
}

extern "C" const struct hk_cuda_kernel hk_cuda_novelty_kernel;
const struct hk_cuda_kernel hk_cuda_novelty_kernel = { HK_WINDOW_MAX, 1, HK_WARPS, shared_bytes, scratch_bytes, fit, launch };
