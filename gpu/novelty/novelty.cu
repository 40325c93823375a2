/* The kernel of algorithm = novelty for points that are processed one by one: one warp for each sensor. Of sensors that have
 * several points in a batch, the kernels of runs.cu have taken most before.
 *
 * The warps of a block take their sensors through the same code at the same time: a multiprocessor's nearest cache of
 * instructions holds one loop of a pass, but not all of them, and warps that stand at different ones wait for instructions most
 * of the time (tests/bench/results/cuda-novelty.txt). In a pass, each lane holds values, rows or lags in registers. Only minima
 * are reduced, whose result does not depend on order, and each lag takes the points one after the other: so the bits are those
 * of cpu/novelty/distances.h. */
#include <cuda_pipeline_primitives.h>

#include "gpu/backend/kernel.h"
#include "gpu/backend/work_sharing.cuh"
#include "gpu/novelty/judge.cuh"
#include "gpu/novelty/passes.cuh"
#include "gpu/novelty/runs.h"

/* Shared memory of a warp. */
struct __align__(16) desk
{
  struct hk_share tasks;
  struct station station;
};

/* Begins a task at a station, by one warp. */
static __device__ __forceinline__ void station_begin(struct station *station, const struct hk_share *tasks,
                                                     const struct hk_cuda_launch *launch, const struct hk_novelty_left *left)
{
  if (threadIdx.x % HK_WARP == 0) {
    station->task = left->small ? left->small[tasks->tasks - launch->small.task] : *tasks->tasks;
    station->at = 0;
    station->held = false;
    station->turn = { station->task.record, hk_cuda_novelty(station->task.record, &tasks->detector), station->point, 0 };
  }
  __syncwarp();
}

/* Takes points by one warp, one lane for each feature: the next of a grown sensor; of a young one up to HK_YOUNG, or until lags
 * or the sensor start over. */
static __device__ __noinline__ void station_take(struct station *station, const struct hk_detector *d,
                                                 const struct hk_cuda_launch *launch)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  struct hk_cuda_record *const record = station->task.record;
  struct hk_window *const window = &record->window;
  bool held = station->held;
  uint32_t n = held, at = station->at, most = HK_YOUNG;
  __syncwarp();
  if (held && lane == 0)
    station->point[0] = station->point[HK_YOUNG];
  for (held = false; at < station->task.count && n < most && !held; at++) {
    struct taken *const mine = &station->point[n];
    const struct hk_point point = hk_share_point(*launch, station->task, at);
    uint32_t state = 0;
    __syncwarp();
    if (lane == 0)
      state = hk_novelty_accept(&station->turn.view, window, point.time, point.value, launch->columns.arrival, mine);
    state = __shfl_sync(HK_ALL, state, 0);
    __syncwarp();
    if (state == HK_STATE_OK && lane < hk_novelty_features(d))
      hk_novelty_feature(&station->turn.view, window, mine, lane);
    __syncwarp();
    if (lane == 0) {
      struct hk_step step = { (uint8_t)state, 0, 0 };
      if (state == HK_STATE_OK)
        step = hk_novelty_append(&station->turn.view, window, hk_cuda_ring(record, d), mine);
      launch->columns.state[point.index] = step.state;
      launch->columns.score[point.index] = NAN;
      mine->step = step;
      mine->index = point.index;
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
    most = n == 0 && turn_grown(d, mine) ? 1 : most;
    held = mine->age == 0 && n > 0;
    n += !held;
  }
  __syncwarp();
  if (lane == 0) {
    if (held)
      station->point[HK_YOUNG] = station->point[n];
    station->held = held;
    station->at = at;
    station->turn.n = n;
  }
  __syncwarp();
}

static __global__ void __launch_bounds__(HK_THREADS, HK_BLOCKS)
    hk_novelty_score_kernel(const __grid_constant__ struct hk_cuda_launch launch, const struct hk_novelty_left left)
{
  extern __shared__ __align__(16) unsigned char shared[];
  const uint32_t warp = threadIdx.x / HK_WARP;
  struct desk *const desk = (struct desk *)shared + warp;
  struct station *const station = &desk->station;
  const bool none = left.tasks && *left.tasks == 0;
  hk_share_begin<1>(&desk->tasks, &launch, blockIdx.x * HK_WARPS + warp);
  bool more = false;
  while (!none) {
    if (!more && (more = hk_share_next<1, 1>(&desk->tasks, &launch)))
      station_begin(station, &desk->tasks, &launch, &left);
    if (!__syncthreads_or(more))
      break;
    uint32_t n = 0;
    if (more) {
      station_take(station, &desk->tasks.detector, &launch);
      n = station->turn.n;
    }
    __syncthreads();
    if (n > 0)
      station_passes(station);
    __syncthreads();
    if (n > 0) {
      distances_end(&station->turn, &station->rates);
      rate(&station->turn, &station->rates);
      judge(&station->turn, &station->rates, &launch.columns);
      __syncwarp();
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

static uint64_t scratch_bytes(uint32_t size)
{
  (void)size;
  return hk_novelty_runs_bytes();
}

static int fit(uint32_t most, uint32_t shared, uint32_t *blocks)
{
  int each = 0;
  cudaError_t error = cudaFuncSetAttribute(hk_novelty_score_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most);
  if (!error)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, hk_novelty_score_kernel, HK_THREADS, shared);
  *blocks = (uint32_t)each;
  return error ? (int)error : hk_novelty_runs_fit();
}

static int launch(struct CUstream_st *stream, uint32_t blocks, uint32_t shared, const struct hk_cuda_launch *l)
{
  struct hk_novelty_left left;
  const int failed = hk_novelty_runs_launch(stream, blocks, l, &left);
  if (failed)
    return failed;
  hk_novelty_score_kernel<<<blocks, HK_THREADS, shared, stream>>>(*l, left);
  return (int)cudaGetLastError();
}

extern "C" const struct hk_cuda_kernel hk_cuda_novelty_kernel;
const struct hk_cuda_kernel hk_cuda_novelty_kernel = { HK_WINDOW_MAX, 1, HK_WARPS, shared_bytes, scratch_bytes, fit, launch };
