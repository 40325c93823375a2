/* The kernel of SVD-SST, a warp to a sensor. Compiled once for each number of vector elements a lane (HK_ROWS); svd_choose.c
 * chooses by the window.
 *
 * A warp takes its sensor's points in order: one lane applies the window rules, all lanes find mu and the leading directions of
 * the past, and one lane applies the alert rule. The score of a point depends only on the sensor's record and the detector. */
#include "gpu/backend/kernel.h"
#include "gpu/backend/tick.cuh"
#include "gpu/backend/work_sharing.cuh"
#include "gpu/sst/span.cuh"
#include "gpu/sst/svd.cuh"

#define HK_JOIN_(a, b) a##_##b
#define HK_JOIN(a, b) HK_JOIN_(a, b)
#define HK_BLOCKS (HK_ROWS <= 10 ? 16 : 8) /* blocks of a multiprocessor, among which registers are divided */
#define HK_MIXED 0x1p-5f                   /* share of a0 in the vector from which the past is searched */
#define HK_COUNTS 0x1p-17                  /* share of the largest eigenvalue below which an eigenvalue is rounding noise */

/* The result of a score. */
struct scored {
  float z, share;
};

/* The largest magnitude in the ring. */
static __device__ __forceinline__ float svd_held(const hk_group<HK_ROWS, HK_WARP> &g, const hk_span &span)
{
  float held = 0;
  for (uint32_t i = g.lane; i < span.samples; i += HK_WARP)
    held = fmaxf(held, fabsf(span.ring[i]));
  return hk_group_max(g, held);
}

/* Whether the past's H may have repeated eigenvalues. Uses the memory of T. */
static __device__ __forceinline__ bool svd_repeats(const hk_svd_room<HK_ROWS> &room, const hk_span &span)
{
  const auto sample = [&](uint32_t i) {
    const uint32_t at = span.head + i;
    return span.ring[at < span.samples ? at : at - span.samples];
  };
  const auto bend = [&](uint32_t i) { return sample(i) - 2 * sample(i + 1) + sample(i + 2); };
  uint32_t *const seen = (uint32_t *)room.t;
  return hk_svd_few(2 * room.g.window - 1, seen, sample) || hk_svd_few(2 * room.g.window - 3, seen, bend);
}

static __device__ __forceinline__ struct scored svd_score(const hk_svd_room<HK_ROWS> &room, const hk_detector &d,
                                                          struct hk_cuda_record *record)
{
  const hk_group<HK_ROWS, HK_WARP> &g = room.g;
  const uint64_t seed = record->window.seed;
  float *const feedback = hk_cuda_feedback(record);
  const hk_span span = { hk_cuda_ring(record, &d), record->window.head, hk_detector_span(&d), record->window.mean,
                         record->window.reference };
  float held = svd_held(g, span);
  const float least = fmaxf((float)HK_ZERO_ABSOLUTE, held * (float)HK_ZERO_RELATIVE);

  struct scored scored = { 0, 0 };
  float energy, top, unused;
  hk_span_lay_out(g, span, d, d.gap, true, &energy, &top, &held);
  if (!(top > least))
    return scored;
  float a0[HK_ROWS], a[HK_ROWS], mu[HK_ROWS];
  hk_svd_random(room, seed, 0, a0);
  const bool anew = record->anew;
#pragma unroll
  for (int e = 0; e < HK_ROWS; e++) {
    a[e] = anew ? a0[e] : g.lane * HK_ROWS + e < g.window ? feedback[g.lane * HK_ROWS + e] : 0;
    mu[e] = a[e];
  }
  const bool full = d.solver == HK_SOLVER_FULL;
  const hk_svd_search one = { 1, full, true, 6, 0.5f, 0x1p-22f, 0x1p-10f };
  const double theta = __shfl_sync(HK_ALL, hk_svd_leading(room, one, seed, a, mu).size, 0);
  scored.share = fminf((float)(theta * theta) / energy, 1.0f);

#pragma unroll
  for (int e = 0; e < HK_ROWS; e++)
    a[e] = fmaf(1e-3f, a0[e], mu[e]);
  (void)hk_normalise(room, a);
#pragma unroll
  for (int e = 0; e < HK_ROWS; e++)
    if (g.lane * HK_ROWS + e < g.window)
      feedback[g.lane * HK_ROWS + e] = a[e];
  __syncwarp();
  if (g.lane == 0)
    record->anew = 0;

  hk_span_lay_out(g, span, d, 0, false, &unused, &top, &held);
  scored.z = 1;
  if (!(top > least))
    return scored;
#pragma unroll
  for (int e = 0; e < HK_ROWS; e++)
    a[e] = fmaf(HK_MIXED, a0[e], mu[e]);
  const bool repeats = svd_repeats(room, span);
  const hk_svd_search all = { d.rank, full || repeats, false, 4 * d.rank + 8, 2, 0x1p-16f, 0x1p-16f };
  const hk_leading pair = hk_svd_leading(room, all, seed, mu, a);
  const double counts = HK_COUNTS * __shfl_sync(HK_ALL, pair.size, 0);
  const float inside = g.lane < d.rank && pair.size > counts ? (float)(pair.along * pair.along) : 0;
  scored.z = fminf(fmaxf(1 - hk_group_sum(g, inside), 0.0f), 1.0f);
  return scored;
}

static uint32_t svd_shared_bytes(uint32_t window)
{
  return (window + HK_ROWS_AT_ONCE) * sizeof(double2) +
         (HK_SHARE_FLOATS + hk_group<HK_ROWS, HK_WARP>::size + window) * sizeof(float);
}

HK_INLINE uint64_t svd_scratch_bytes(uint32_t window)
{
  return (uint64_t)window * HK_ROWS * HK_WARP * sizeof(float);
}

static __global__ void __launch_bounds__(HK_WARP, HK_BLOCKS) hk_svd_kernel(const __grid_constant__ struct hk_cuda_launch launch)
{
  extern __shared__ __align__(16) unsigned char shared[];
  struct hk_share *const tasks = (struct hk_share *)shared;
  const struct hk_detector &d = tasks->detector;
  const struct hk_cuda_columns &columns = launch.columns;
  hk_svd_room<HK_ROWS> room;
  room.g.lane = threadIdx.x;
  room.t = (double2 *)((float *)shared + HK_SHARE_FLOATS);
  room.basis = (float2 *)((unsigned char *)launch.scratch + blockIdx.x * svd_scratch_bytes(launch.size)) + threadIdx.x;

  hk_share_begin<1>(tasks, &launch, blockIdx.x);
  while (hk_share_next<1, 1>(tasks, &launch)) {
    room.g.window = d.window;
    room.g.room = (float *)(room.t + d.window + HK_ROWS_AT_ONCE);
    room.along = room.g.room + room.g.size;
    const struct hk_cuda_task task = tasks->tasks[0];
    for (uint32_t p = 0; p < task.count; p++) {
      const struct hk_point point = hk_share_point(launch, task, p);
      struct hk_step step = { 0, 0, 0 };
      if (threadIdx.x == 0)
        step = hk_tick_take(&d, task.record, point.time, point.value, columns.arrival);
      const bool due = __shfl_sync(HK_ALL, (int)step.score, 0);
      struct scored scored = { NAN, NAN };
      __syncwarp(); /* the window has been written */
      if (due)
        scored = svd_score(room, d, task.record);
      __syncwarp();
      if (threadIdx.x == 0)
        hk_tick_decide(&d, task.record, &columns, point.index, step, scored.z, scored.share);
      __syncwarp();
    }
  }
  hk_share_end(launch);
}

static int svd_fit(uint32_t most, uint32_t shared, uint32_t *blocks)
{
  int each = 0;
  cudaError_t error = cudaFuncSetAttribute(hk_svd_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most);
  if (!error)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, hk_svd_kernel, HK_WARP, shared);
  *blocks = (uint32_t)each;
  return (int)error;
}

static int svd_launch(struct CUstream_st *stream, uint32_t blocks, uint32_t shared, const struct hk_cuda_launch *l)
{
  hk_svd_kernel<<<blocks, HK_WARP, shared, stream>>>(*l);
  return (int)cudaGetLastError();
}

extern "C" const struct hk_cuda_kernel HK_JOIN(hk_svd, HK_ROWS);
const struct hk_cuda_kernel HK_JOIN(hk_svd, HK_ROWS) = { HK_ROWS * HK_WARP, 1,       1,         svd_shared_bytes,
                                                         svd_scratch_bytes, svd_fit, svd_launch };
