/* The kernel of algorithm = novelty: a warp to a sensor, whose waiting points share one pass over what is resident.
 *
 * What decides is a long chain of steps that little can be done beside; the passes are what the memory is busy with. Warps wait
 * for nobody, so while one decides others pass. In a pass each lane holds values, rows or lags in registers while the points go
 * by: D and M of a lag are read and written once for all of them. What is reduced are minima, whose result does not depend on
 * order, and each lag sees the points one after the other: so the bits are those of cpu/novelty/distances.h. */
#include "cpu/novelty/alert.h"
#include "gpu/backend/kernel.h"
#include "gpu/backend/tick.cuh"
#include "gpu/backend/work_sharing.cuh"
#include "gpu/novelty/passes.cuh"

/* What a warp has in shared memory. */
struct __align__(16) desk
{
  struct hk_share tasks;
  struct seat seat;
};

/* Seats a task, by one warp. */
static __device__ __forceinline__ void seat_begin(struct seat *seat, const struct hk_share *tasks)
{
  if (threadIdx.x % HK_WARP == 0) {
    seat->task = *tasks->tasks;
    seat->at = 0;
    seat->held = false;
    seat->view = hk_cuda_novelty(seat->task.record, &tasks->detector);
  }
  __syncwarp();
}

/* Takes points until the run is full, the task ends or lags begin anew, by one warp: a lane to a feature. */
static __device__ __noinline__ void run_take(struct seat *seat, const struct hk_detector *d, const struct hk_cuda_launch *launch)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  struct hk_cuda_record *const record = seat->task.record;
  struct hk_window *const window = &record->window;
  bool held = seat->held;
  uint32_t n = held, at = seat->at;
  __syncwarp();
  if (held && lane == 0) {
    seat->point[0] = seat->point[HK_RUN];
    seat->step[0] = seat->step[HK_RUN];
    seat->index[0] = seat->index[HK_RUN];
  }
  for (held = false; at < seat->task.count && n < HK_RUN && !held; at++) {
    struct hk_novelty_point *const mine = &seat->point[n];
    const struct hk_point point = hk_share_point(*launch, seat->task, at);
    uint32_t state = 0;
    __syncwarp();
    if (lane == 0)
      state = hk_novelty_accept(&seat->view, window, point.time, point.value, launch->columns.arrival, mine);
    state = __shfl_sync(HK_ALL, state, 0);
    __syncwarp();
    if (state == HK_STATE_OK && lane < HK_NOVELTY_FEATURES)
      hk_novelty_feature(&seat->view, window, mine, lane);
    __syncwarp();
    if (lane == 0) {
      struct hk_step step = { (uint8_t)state, 0, 0 };
      if (state == HK_STATE_OK)
        step = hk_novelty_append(&seat->view, window, hk_cuda_ring(record, d), mine);
      launch->columns.state[point.index] = step.state;
      launch->columns.score[point.index] = NAN;
      seat->step[n] = step;
      seat->index[n] = point.index;
    }
    if (state != HK_STATE_OK)
      continue;
    __syncwarp();
    held = mine->age == 0 && n > 0;
    n += !held;
  }
  __syncwarp();
  if (lane == 0) {
    if (held) {
      seat->point[HK_RUN] = seat->point[n];
      seat->step[HK_RUN] = seat->step[n];
      seat->index[HK_RUN] = seat->index[n];
    }
    seat->held = held;
    seat->at = at;
    seat->n = n;
  }
  __syncwarp();
}

/* What the passes found of a run's points, by one warp: a lane to a point. */
static __device__ __noinline__ void distances_end(struct seat *seat)
{
  const struct hk_detector *d = seat->view.detector;
  const uint32_t k = threadIdx.x % HK_WARP;
  if (k < seat->n) {
    struct hk_novelty_point *const q = &seat->point[k];
    q->has[HK_NOVELTY_VALUE] = hk_novelty_values(d, q) > 0;
    q->has[HK_NOVELTY_CONTEXT] = q->rows > 0;
    q->has[HK_NOVELTY_SHAPE] = hk_novelty_lags_counted(d, q) > 0;
    for (uint32_t c = 0; c < HK_NOVELTY_CHANNELS; c++)
      seat->floored[k][c] = hk_novelty_floored(q, c);
  }
  __syncwarp();
}

/* Rates the run's points, a lane to a list, by one warp. */
static __device__ __noinline__ void rate(struct seat *seat)
{
  const uint32_t lane = threadIdx.x % HK_WARP, c = lane / 2;
  struct hk_novelty *const s = seat->view.novelty;
  if (lane < HK_LISTS) {
    uint32_t seen = s->seen[c];
    for (uint32_t k = 0; k < seat->n; k++) {
      const struct hk_novelty_point *p = &seat->point[k];
      struct hk_novelty_rating rating = { 0, 0 };
      if (p->has[c]) {
        seen = hk_novelty_next(seen);
        rating = hk_novelty_tail_rate(&s->tail[c][lane % 2], c, lane % 2, seen, seat->floored[k][c], hk_novelty_quantum(p));
      }
      seat->rating[k][lane] = rating;
      if (lane % 2 == 0)
        seat->usual[k][c] = hk_novelty_tail_usual(&s->tail[c][0]);
    }
    if (lane % 2 == 0)
      s->seen[c] = seen;
  }
  __syncwarp();
}

/* hk_novelty_past, by one warp: a lane to a place. */
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

/* Applies the alert rule to point k of the run, by one warp; what is told of the past is looked up by all of it. */
static __device__ __noinline__ void speak(struct seat *seat, const struct hk_cuda_launch *launch, uint32_t k)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  struct hk_cuda_record *const record = seat->task.record;
  const struct hk_novelty_view *const v = &seat->view;
  const float *const ring = hk_cuda_ring(record, v->detector);
  const struct hk_novelty_point *const p = &seat->point[k];
  const struct hk_novelty_result *const r = &seat->result[k];
  int kind = 0;
  bool tells = false;
  if (lane == 0)
    kind = hk_novelty_rule(&record->alert, v, p, seat->step[k], r, &tells);
  struct hk_novelty_past past;
  if (__any_sync(HK_ALL, tells))
    past = past_look(v, ring, p, r->channel);
  if (lane == 0 && kind != 0) {
    struct hk_event event = hk_novelty_speak(&record->alert, v, &record->window, ring, p, r, kind, tells ? &past : NULL);
    hk_tick_event(&launch->columns, record, seat->index[k], &event);
  }
  __syncwarp();
}

/* Judges the run's points, by one warp: what a point's distances come to is worked out by a lane each, the rule is one lane's. */
static __device__ __noinline__ void judge(struct seat *seat, const struct hk_cuda_launch *launch)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  const struct hk_detector *d = seat->view.detector;
  const struct hk_cuda_record *const record = seat->task.record;
  for (uint32_t k = lane; k < seat->n; k += HK_WARP) {
    const struct hk_novelty_point *p = &seat->point[k];
    struct hk_novelty_result best = HK_NOVELTY_RESULT_NULL;
    for (uint32_t c = 0; c < HK_NOVELTY_CHANNELS; c++)
      if (p->has[c])
        hk_novelty_result_take(&best, c, seat->rating[k][2 * c], seat->rating[k][2 * c + 1], seat->floored[k][c],
                               seat->usual[k][c]);
    best.s = fmax(best.s, 0.0);
    seat->result[k] = best;
    if (seat->step[k].score)
      launch->columns.score[seat->index[k]] = (float)hk_novelty_score(best.s);
  }
  __syncwarp();
  /* Where no alert stands and no point is over the threshold, no point says anything. */
  const double threshold = hk_novelty_s((double)d->threshold);
  bool speaks = record->alert.raised;
  for (uint32_t k = lane; k < seat->n; k += HK_WARP)
    speaks = speaks || seat->result[k].s >= threshold;
  if (__any_sync(HK_ALL, speaks))
    for (uint32_t k = 0; k < seat->n; k++)
      speak(seat, launch, k);
}

static __global__ void __launch_bounds__(HK_THREADS, HK_BLOCKS)
    hk_novelty_score_kernel(const __grid_constant__ struct hk_cuda_launch launch)
{
  extern __shared__ __align__(16) unsigned char shared[];
  const uint32_t warp = threadIdx.x / HK_WARP;
  struct desk *const desk = (struct desk *)shared + warp;
  struct seat *const seat = &desk->seat;
  hk_share_begin<1>(&desk->tasks, &launch, blockIdx.x * HK_WARPS + warp);
  while (hk_share_next<1, 1>(&desk->tasks, &launch)) {
    seat_begin(seat, &desk->tasks);
    do {
      run_take(seat, &desk->tasks.detector, &launch);
      if (seat->n > 0) {
        distances(seat);
        distances_end(seat);
        rate(seat);
        judge(seat, &launch);
      }
    } while (seat->held || seat->at < seat->task.count);
  }
  hk_share_end(launch);
}

static uint32_t shared_bytes(uint32_t size)
{
  (void)size;
  return HK_WARPS * (uint32_t)sizeof(struct desk);
}

/* Warps work in shared memory alone; that some takes part in the sharing out of scratch memory says that there is no less. */
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
