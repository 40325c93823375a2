/* The kernel of IKA-SST. Compiled once for each number of vector elements a lane (HK_ROWS) and of lanes to a sensor (HK_LANES);
 * ika_choose.c chooses by the detector.
 *
 * A warp takes a bundle of up to 32 sensors. For each of their points in turn:
 *   a lane to a sensor    the window rules
 *   L lanes to a sensor   centring, mu, feedback, Lanczos on the past, for 32 / L sensors at a time
 *   a lane to a sensor    the eigenproblems of the past, results, the alert rule
 * Sensors share no data, and the results of a sensor do not depend on its place in the bundle.
 *
 * Compiled with denormals treated as zero (-ftz=true): spans are scaled to about 1, where denormals are negligible, and window.h
 * keeps them out of the ring. The tag in a sample's lowest bit is never read as a number. */
#include "gpu/backend/kernel.h"
#include "gpu/backend/tick.cuh"
#include "gpu/backend/work_sharing.cuh"
#include "gpu/sst/ika.cuh"

#define HK_FOURIER (HK_ROWS * HK_LANES >= 96) /* how products are computed: from this size on, the transforms are faster */

/* Blocks of a multiprocessor: as many as registers for R elements of three vectors allow, and a multiple of 2, so that its
 * four schedulers have equal numbers of warps. */
#define HK_BLOCKS (HK_ROWS <= (HK_FOURIER ? 16 : 20) ? 8 : HK_ROWS <= 28 ? 6 : 4)

#define HK_JOIN_(a, b, c) a##_##b##_##c
#define HK_JOIN(a, b, c) HK_JOIN_(a, b, c)
#define HK_NAME HK_JOIN(hk_ika, HK_ROWS, HK_LANES)

typedef hk_basis<HK_ROWS, HK_LANES> basis;
typedef hk_group<HK_ROWS, HK_LANES, HK_FOURIER> group;

#define HK_THREADS 64
#define HK_WARPS (HK_THREADS / HK_WARP)

/* Floats of shared memory that a warp needs. */
static __host__ __device__ uint32_t warp_floats(uint32_t order)
{
  return HK_SHARE_FLOATS + (group::warp_floats > 3 * HK_WARP * order ? group::warp_floats : 3 * HK_WARP * order);
}

/* Memory that the lanes of a warp share: a column for each sensor of the bundle. It is device memory, except the first and
 * last members. */
struct room {
  struct hk_share *tasks;
  float *alpha, *beta; /* T: order rows of HK_WARP */
  float *share;        /* HK_WARP */
  uint32_t *order;     /* HK_WARP: of T; 0 = the present is zero, HK_NO_PAST = the past is */
  float *groups;       /* the groups' memory; between scores, when no sequence is needed, 3 rows for each row of T */
};
#define HK_NO_PAST UINT32_MAX

/* Floats of device memory that a warp needs. */
static __host__ __device__ uint32_t scratch_floats(uint32_t order)
{
  return basis::floats(order) + (2 * order + 2) * HK_WARP;
}

static __device__ __forceinline__ struct room room_of(float *shared, float *scratch, uint32_t order)
{
  struct room r;
  r.tasks = (struct hk_share *)(shared + group::block_floats + threadIdx.x / HK_WARP * warp_floats(order));
  r.groups = (float *)r.tasks + HK_SHARE_FLOATS;
  r.alpha = scratch + basis::floats(order);
  r.beta = r.alpha + order * HK_WARP;
  r.share = r.beta + order * HK_WARP;
  r.order = (uint32_t *)(r.share + HK_WARP);
  return r;
}

/* The samples of a record; none without a record. */
static __device__ __forceinline__ hk_span span_of(const hk_detector &d, struct hk_cuda_record *record)
{
  if (!record)
    return { nullptr, 0, 0, 0, 0 };
  return { hk_cuda_ring(record, &d), record->window.head, hk_detector_span(&d), record->window.mean, record->window.reference };
}

/* Scores the sensor of column `column` for its present window. record: NULL if this group has no sensor. */
static __device__ __forceinline__ void ika_score(const group &g, const hk_detector &d, basis &q, const struct room &room,
                                                 uint32_t column, struct hk_cuda_record *record)
{
  const hk_span span = span_of(d, record);
  float *const feedback = record ? hk_global(hk_cuda_feedback(record)) + g.first() : nullptr;
  const uint64_t seed = record ? record->window.seed : 0;
  const bool anew = record && record->anew;
  const int left = record ? (int)g.window - (int)g.first() : 0;
  float mu[HK_ROWS];
#pragma unroll
  for (int e = 0; e < HK_ROWS; e++)
    mu[e] = !anew && e * g.step < left ? feedback[e * g.step] : 0;
  float *const alpha = room.alpha + column, *const beta = room.beta + column;
  float share = 0, held = 0, present_top = 0, a[HK_ROWS];
  bool zero = false, nothing = false; /* in the present, in the past */
#pragma unroll 1
  for (uint32_t past = 0; past < 2; past++) {
    float energy = 0, top;
    hk_span_lay_out(g, span, d, past ? 0 : d.gap, !past, &energy, &top, &held);
    if (past) {
      held = fmaxf(held, hk_span_between(g, span, d.gap));
      const float least = fmaxf((float)HK_ZERO_ABSOLUTE, held * (float)HK_ZERO_RELATIVE);
      zero = !(present_top > least);
#pragma unroll
      for (int e = 0; e < HK_ROWS; e++)
        if (!zero && e * g.step < left)
          feedback[e * g.step] = a[e];
      nothing = !(top > least);
    } else {
      present_top = top;
      if (__any_sync(HK_ALL, anew)) {
        hk_group_random(g, seed, a);
#pragma unroll
        for (int e = 0; e < HK_ROWS; e++)
          mu[e] = anew ? a[e] : mu[e];
      }
    }
    const hk_krylov_plan plan = past ? hk_plan_past(d) : hk_plan_present(d);
    const uint32_t order = hk_group_krylov(g, q, plan, mu, alpha, beta);
    if (past) {
      if (record && g.lane == 0) {
        room.share[column] = zero ? 0 : share;
        room.order[column] = zero ? 0 : nothing ? HK_NO_PAST : order;
        if (!zero)
          record->anew = 0;
      }
    } else {
      share = fminf(hk_group_mu(g, q, plan, order, alpha, beta, mu) / energy, 1.0f);
      hk_group_random(g, seed, a); /* a := normalise(mu + 1e-3 a0) is fed back */
#pragma unroll
      for (int e = 0; e < HK_ROWS; e++)
        a[e] = fmaf(1e-3f, a[e], mu[e]);
      const float by = hk_inverse_root(hk_group_sum(g, hk_lane_dot(a, a)));
#pragma unroll
      for (int e = 0; e < HK_ROWS; e++)
        a[e] *= by;
    }
  }
}

/* Solves the eigenproblems of the columns, one a lane, for z. due: this lane's column has one. */
static __device__ __forceinline__ float outside(const hk_detector &d, const struct room &room, uint32_t column, bool due)
{
  const uint32_t told = due ? room.order[column] : 0, order = told == HK_NO_PAST ? 0 : told;
  float *const t = room.groups + column;
#pragma unroll 4
  for (uint32_t i = 0; i < order; i++) {
    t[3 * i * HK_WARP] = room.alpha[i * HK_WARP + column];
    if (i + 1 < order)
      t[(3 * i + 1) * HK_WARP] = room.beta[i * HK_WARP + column];
  }
  /* An eigenvalue below `least` times the largest is rounding noise: a past of a rank below r spans only its rank. */
  const float least = d.operator_ == HK_OPERATOR_GRAM ? 0x1p-21f : 0x1p-17f;
  const float z = hk_lane_outside(t, order, d.rank, least);
  return !due ? NAN : told == 0 ? 0 : told == HK_NO_PAST ? 1 : z;
}

static __device__ __forceinline__ struct hk_cuda_record *of_lane(struct hk_cuda_record *record, uint32_t lane)
{
  return (struct hk_cuda_record *)__shfl_sync(HK_ALL, (unsigned long long)record, lane);
}

static __global__ void __launch_bounds__(HK_THREADS, HK_BLOCKS)
    hk_ika_kernel(const __grid_constant__ struct hk_cuda_launch launch)
{
  extern __shared__ __align__(16) float shared[];
  const uint32_t lane = threadIdx.x % HK_WARP, warp = blockIdx.x * HK_WARPS + threadIdx.x / HK_WARP, mine = lane / HK_LANES;
  constexpr uint32_t groups = HK_WARP / HK_LANES;
  float *const scratch = (float *)launch.scratch + (size_t)warp * scratch_floats(launch.size);
  const struct room room = room_of(shared, scratch, launch.size);
  basis q(scratch);
  group::prepare(shared);
  const struct hk_cuda_columns &columns = launch.columns;
  const struct hk_detector &d = room.tasks->detector;

  hk_share_begin<groups>(room.tasks, &launch, warp);
  bool more = hk_share_next<groups, HK_LANES>(room.tasks, &launch);
  group::prepared();
  for (; more; more = hk_share_next<groups, HK_LANES>(room.tasks, &launch)) {
    const group g = group::in(shared, room.groups, d.window);
    const uint32_t n = room.tasks->n, turns = (n + groups - 1) / groups;
    struct hk_cuda_task task = { nullptr, 0, 0 };
    if (lane < n) {
      task = room.tasks->tasks[lane];
      hk_tick_now(task.record);
    }
    for (uint32_t p = 0; __any_sync(HK_ALL, p < task.count); p++) {
      const bool has = p < task.count;
      struct hk_step step = { 0, 0, 0 };
      uint32_t index = 0;
      if (has) {
        const struct hk_point point = hk_share_point(launch, task, p);
        index = point.index;
        step = hk_tick_take(&d, task.record, point.time, point.value, columns.arrival);
      }
      __syncwarp();
      const uint32_t due = __ballot_sync(HK_ALL, has && step.score);
      struct hk_cuda_record *const record = due >> lane & 1 ? task.record : nullptr;
      for (uint32_t turn = 0; turn < turns; turn++) {
        const uint32_t column = turn * groups + mine;
        struct hk_cuda_record *const now = of_lane(record, column), *const then =
                                                                        of_lane(record, min(column + groups, HK_WARP - 1));
        if (then && turn + 1 < turns)
          hk_tick_later(then, (uint32_t)hk_cuda_own_at(&d), g.lane, HK_LANES);
        if (__any_sync(HK_ALL, now != nullptr))
          ika_score(g, d, q, room, column, now);
      }
      __syncwarp();
      const float z = due ? outside(d, room, lane, due >> lane & 1) : NAN;
      if (has) {
        hk_tick_now(task.record);
        hk_tick_decide(&d, task.record, &columns, index, step, z, step.score ? room.share[lane] : NAN);
      }
      __syncwarp();
    }
  }
  hk_share_end(launch);
}

static int ika_fit(uint32_t most, uint32_t shared, uint32_t *blocks)
{
  int each = 0;
  cudaError_t error = cudaFuncSetAttribute(hk_ika_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most);
  if (!error)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, hk_ika_kernel, HK_THREADS, shared);
  *blocks = (uint32_t)each;
  return (int)error;
}

static int ika_launch(struct CUstream_st *stream, uint32_t blocks, uint32_t shared, const struct hk_cuda_launch *l)
{
  hk_ika_kernel<<<blocks, HK_THREADS, shared, stream>>>(*l);
  return (int)cudaGetLastError();
}

static uint32_t ika_shared_bytes(uint32_t order)
{
  return (group::block_floats + HK_WARPS * warp_floats(order)) * (uint32_t)sizeof(float);
}

static uint64_t ika_scratch_bytes(uint32_t order)
{
  return HK_WARPS * scratch_floats(order) * sizeof(float);
}

extern "C" const struct hk_cuda_kernel HK_NAME;
const struct hk_cuda_kernel HK_NAME = { HK_ROWS * HK_LANES, HK_WARP / HK_LANES, HK_WARPS,
                                        ika_shared_bytes,   ika_scratch_bytes,  ika_fit,
                                        ika_launch };
