/* The kernels of algorithm = novelty for sensors that have several points in a batch.
 *
 * In a round each such sensor has up to HK_RUN points taken, its run; then kernels compute the distances of the runs' points to
 * values, rows and lags, a warp for each run, and rate and judge them. A kernel for each step, though all hand on their results
 * through memory: the loop of each fits into the nearest cache of instructions, no warp waits for another, and each has the
 * registers and the shared memory that it needs (tests/bench/results/cuda-novelty.txt). Sensors that are young, or have a hole
 * before the next point, and single points are left to novelty.cu. Tasks that have more points than others have their further
 * runs in one kernel more, after the rounds. How points are divided into runs changes no result. */
#include <cuda_pipeline_primitives.h>

#include "gpu/novelty/run_bundle.cuh"
#include "gpu/novelty/run_lags.cuh"
#include "gpu/novelty/run_rest.cuh"
#include "gpu/novelty/runs.h"

#include <cuda_runtime_api.h>

#define HK_ROUNDS 256u /* maximum rounds of a batch */
#define HK_ROOM 128u   /* runs of a round and kind, for each block of a launch */
#define HK_BLOCKS 4u   /* blocks of a launch for each multiprocessor */

/* Threads of a block, and blocks of a multiprocessor, as measured. */
#define HK_THREADS 256u /* of other kernels */
#define HK_PASS_BLOCKS 3u
#define HK_RATE_BLOCKS 4u
#define HK_TAKE_THREADS 128u
#define HK_FEW_THREADS 128u
#define HK_FEW_BLOCKS 5u
#define HK_REST_BLOCKS 2u
#define HK_TAKE_BYTES (HK_TAKE_THREADS / HK_WARP * (uint32_t)sizeof(struct take_desk))
#define HK_REST_BYTES (HK_TAKE_THREADS / HK_WARP * (uint32_t)sizeof(struct rest_desk))

static __global__ void __launch_bounds__(HK_TAKE_THREADS, HK_BLOCKS)
    take_kernel(const __grid_constant__ struct hk_cuda_launch l, const struct runs runs)
{
  extern __shared__ __align__(16) unsigned char shared[];
  struct take_desk *const desk = (struct take_desk *)shared + threadIdx.x / HK_WARP;
  const uint32_t lane = threadIdx.x % HK_WARP, warp = (blockIdx.x * blockDim.x + threadIdx.x) / HK_WARP,
                 warps = gridDim.x * (blockDim.x / HK_WARP);
  if (runs_over(runs))
    return;
  for (uint32_t at = warp * HK_WARP; at < l.small.n; at += warps * HK_WARP) {
    const uint32_t i = at + lane;
    const bool mine = i < l.small.n;
    if (runs.first && mine)
      runs.small[i] = l.small.task[i];
    take_bundle(desk, l, runs, mine ? &runs.small[i] : NULL, mine ? &l.detectors[l.small.detector[i]] : NULL);
  }
  struct hk_share *const share = (struct hk_share *)desk; /* before the desk is used */
  hk_share_begin<HK_WARP>(share, &l, warp);
  const uint32_t places = share->places;
  __syncwarp();
  uint32_t member = 0, begin = 0;
  for (uint32_t at = warp * HK_WARP; at < places; at += warps * HK_WARP) {
    uint32_t first, rest, n;
    const uint32_t number = l.members[hk_share_find<HK_WARP>(l, at, &member, &begin, &first, &rest, &n)];
    const uint32_t i = at - first + lane;
    take_bundle(desk, l, runs, i < n ? l.work.tasks + l.list[number] + i : NULL, &l.detectors[number]);
  }
}

static __global__ void __launch_bounds__(HK_THREADS, HK_PASS_BLOCKS) values_kernel(const struct runs runs)
{
  struct share<0, RUNS_ALL> share(runs);
  for (struct run *run; (run = share.begin()); share.end())
    run_values(run);
}

static __global__ void __launch_bounds__(HK_THREADS, HK_PASS_BLOCKS) rows_kernel(const struct runs runs)
{
  __shared__ struct rows_desk desks[HK_THREADS / HK_WARP];
  struct rows_desk *const desk = &desks[threadIdx.x / HK_WARP];
  struct share<1, RUNS_ALL> share(runs);
  for (struct run *run; (run = share.begin()); share.end())
    run_rows(run, desk);
}

static __global__ void __launch_bounds__(HK_FEW_THREADS, HK_FEW_BLOCKS) few_lags_kernel(const struct runs runs)
{
  __shared__ struct lags_desk<HK_FEW_GROUPS> desks[HK_FEW_THREADS / HK_WARP];
  __shared__ struct turn turns[HK_FEW_THREADS / HK_WARP];
  struct turn *const turn = &turns[threadIdx.x / HK_WARP];
  struct share<2, RUNS_FEW> share(runs);
  for (struct run *run; (run = share.begin()); share.end()) {
    if (run->n == 0 || hk_novelty_value_alone(run->detector))
      continue;
    turn_make(turn, run);
    lags_pass(turn, &desks[threadIdx.x / HK_WARP]);
    __syncwarp();
  }
}

static __global__ void __launch_bounds__(HK_THREADS, HK_PASS_BLOCKS) many_lags_kernel(const struct runs runs)
{
  __shared__ struct lags_desk<1> desks[HK_THREADS / HK_WARP];
  __shared__ struct turn turns[HK_THREADS / HK_WARP];
  struct turn *const turn = &turns[threadIdx.x / HK_WARP];
  struct share<3, RUNS_MANY> share(runs);
  for (struct run *run; (run = share.begin()); share.end()) {
    if (run->n == 0 || hk_novelty_value_alone(run->detector))
      continue;
    turn_make(turn, run);
    run_lags(turn, &desks[threadIdx.x / HK_WARP]);
    __syncwarp();
  }
}

static __global__ void __launch_bounds__(HK_THREADS, HK_RATE_BLOCKS)
    rate_kernel(const struct runs runs, const __grid_constant__ struct hk_cuda_columns columns)
{
  __shared__ struct rate_desk<HK_RUN> desks[HK_THREADS / HK_WARP];
  __shared__ struct turn turns[HK_THREADS / HK_WARP];
  struct rate_desk<HK_RUN> *const desk = &desks[threadIdx.x / HK_WARP];
  struct turn *const turn = &turns[threadIdx.x / HK_WARP];
  struct share<4, RUNS_ALL> share(runs);
  for (struct run *run; (run = share.begin()); share.end()) {
    if (run->n == 0)
      continue;
    turn_make(turn, run);
    distances_end(turn, desk);
    rate(turn, desk);
    judge(turn, desk, &columns);
    __syncwarp();
  }
}

/* The tasks that have several points left after the last round, because they had many more than others: a task a warp. Their
 * runs are like those of few points, whatever their number: there are few of them. */
static __global__ void __launch_bounds__(HK_TAKE_THREADS, HK_REST_BLOCKS)
    rest_kernel(const __grid_constant__ struct hk_cuda_launch l, const struct runs runs)
{
  extern __shared__ __align__(16) unsigned char shared[];
  struct rest_desk *const desk = (struct rest_desk *)shared + threadIdx.x / HK_WARP;
  const uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / HK_WARP, warps = gridDim.x * (blockDim.x / HK_WARP);
  if (runs.round->several == 0)
    return;
  struct hk_share *const share = (struct hk_share *)desk; /* before the desk is used */
  hk_share_begin<HK_WARP>(share, &l, warp);
  const uint32_t places = share->places;
  __syncwarp();
  uint32_t member = 0, begin = 0;
  for (uint32_t at = warp; at < places; at += warps) {
    uint32_t first, rest, n;
    const uint32_t number = l.members[hk_share_find<HK_WARP>(l, at, &member, &begin, &first, &rest, &n)];
    struct hk_cuda_task *const task = l.work.tasks + l.list[number] + (at - first);
    if (at - first < n && task->count > 1)
      rest_runs(desk, l, &runs.run[warp], task, &l.detectors[number]);
  }
}

/* Rounds of a batch: one for each HK_RUN points of the average task, as often as all have room. Of a small batch, as many as its
 * tasks need. */
static uint32_t runs_rounds(const struct hk_cuda_launch *l, uint32_t room)
{
  uint64_t rounds;
  if (l->small.n > 0) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < l->small.n; i++)
      most = l->small.task[i].count > most ? l->small.task[i].count : most;
    rounds = most > 1 ? (most + HK_RUN - 1) / HK_RUN : 0;
  } else {
    const uint64_t runs = l->tasks < l->points / 2 ? l->tasks : l->points / 2, points = HK_RUN * (uint64_t)l->tasks;
    rounds = (l->points + points - 1) / points * ((runs + room - 1) / room);
  }
  return rounds < HK_ROUNDS ? (uint32_t)rounds : HK_ROUNDS;
}

/* Asks for each kernel, so that CUDA loads it now: with the first batch, that would wait for it, and the device may be full. */
int hk_novelty_runs_fit(void)
{
  const void *const kernels[] = { (const void *)values_kernel, (const void *)rows_kernel, (const void *)few_lags_kernel,
                                  (const void *)many_lags_kernel, (const void *)rate_kernel };
  cudaError_t failed = cudaFuncSetAttribute(take_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)HK_TAKE_BYTES);
  if (!failed)
    failed = cudaFuncSetAttribute(rest_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)HK_REST_BYTES);
  for (uint32_t i = 0; i < sizeof kernels / sizeof *kernels && !failed; i++) {
    struct cudaFuncAttributes unused;
    failed = cudaFuncGetAttributes(&unused, kernels[i]);
  }
  return (int)failed;
}

uint64_t hk_novelty_runs_bytes(void)
{
  return HK_ROUNDS * sizeof(struct round) + HK_CUDA_SMALL_BATCH * sizeof(struct hk_cuda_task) + 2 * HK_ROOM * sizeof(struct run);
}

int hk_novelty_runs_launch(struct CUstream_st *stream, uint32_t blocks, const struct hk_cuda_launch *l,
                           struct hk_novelty_left *left)
{
  struct runs runs = { (struct round *)l->scratch, NULL, NULL, blocks * HK_ROOM, true };
  const uint32_t rounds = runs_rounds(l, runs.room);
  *left = {};
  if (rounds == 0)
    return 0;
  runs.small = (struct hk_cuda_task *)(runs.round + HK_ROUNDS);
  runs.run = (struct run *)(runs.small + HK_CUDA_SMALL_BATCH);
  left->small = l->small.n > 0 ? runs.small : NULL;
  left->tasks = &runs.round[rounds - 1].left;
  cudaError_t failed = cudaMemsetAsync(runs.round, 0, rounds * sizeof *runs.round, stream);
  const auto grid = [&](uint32_t each) { return (blocks * each + HK_BLOCKS - 1) / HK_BLOCKS; };
  for (uint32_t i = 0; i < rounds && !failed; i++, runs.round++, runs.first = false) {
    take_kernel<<<blocks, HK_TAKE_THREADS, HK_TAKE_BYTES, stream>>>(*l, runs);
    values_kernel<<<grid(HK_PASS_BLOCKS), HK_THREADS, 0, stream>>>(runs);
    rows_kernel<<<grid(HK_PASS_BLOCKS), HK_THREADS, 0, stream>>>(runs);
    few_lags_kernel<<<grid(HK_FEW_BLOCKS), HK_FEW_THREADS, 0, stream>>>(runs);
    many_lags_kernel<<<grid(HK_PASS_BLOCKS), HK_THREADS, 0, stream>>>(runs);
    rate_kernel<<<grid(HK_RATE_BLOCKS), HK_THREADS, 0, stream>>>(runs, l->columns);
    failed = cudaGetLastError();
  }
  runs.round--;
  if (!failed && l->small.n == 0) {
    rest_kernel<<<grid(HK_REST_BLOCKS), HK_TAKE_THREADS, HK_REST_BYTES, stream>>>(*l, runs);
    failed = cudaGetLastError();
  }
  return (int)failed;
}
