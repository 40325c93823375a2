/* The kernel of algorithm = limit: one lane for each sensor, which computes cpu/limit/limit.h point by point. Once for each
 * block of a sensor, of about 30 points, its lane sorts 276 slopes in local memory, while the other lanes wait. */
#include "cpu/limit/alert.h"
#include "gpu/backend/kernel.h"
#include "gpu/backend/tick.cuh"
#include "gpu/backend/work_sharing.cuh"

#define HK_WARP 32u
#define HK_THREADS 64u
#define HK_WARPS (HK_THREADS / HK_WARP)

/* Processes one point of a sensor. */
static __device__ __noinline__ void limit_tick(const struct hk_detector *d, struct hk_cuda_record *record,
                                               const struct hk_cuda_columns *columns, const struct hk_point *point)
{
  const struct hk_limit_view v = hk_cuda_limit(record, d);
  float *const ring = hk_cuda_ring(record, d);
  struct hk_limit_check check;
  const struct hk_step step =
      hk_limit_take(&v, &record->window, ring, point->time, point->value, columns->arrival, record->alert.raised, &check);
  columns->state[point->index] = step.state;
  columns->score[point->index] = step.score ? (float)hk_limit_score(d, &check.outlook) : NAN;
  struct hk_event event;
  if (step.state != HK_STATE_LATE && step.state != HK_STATE_REJECTED &&
      hk_limit_decide(&record->alert, &v, &record->window, step, &check, &event))
    hk_tick_event(columns, record, point->index, &event);
}

static __global__ void __launch_bounds__(HK_THREADS) hk_limit_score_kernel(const __grid_constant__ struct hk_cuda_launch launch)
{
  __shared__ struct hk_share tasks[HK_WARPS];
  const uint32_t lane = threadIdx.x % HK_WARP, warp = threadIdx.x / HK_WARP;
  struct hk_share *const mine = &tasks[warp];
  hk_share_begin<HK_WARP>(mine, &launch, blockIdx.x * HK_WARPS + warp);
  while (hk_share_next<HK_WARP, 1>(mine, &launch)) {
    if (lane < mine->n) {
      const struct hk_cuda_task task = mine->tasks[lane];
      for (uint32_t p = 0; p < task.count; p++) {
        const struct hk_point point = hk_share_point(launch, task, p);
        limit_tick(&mine->detector, task.record, &launch.columns, &point);
      }
    }
    __syncwarp();
  }
  hk_share_end(launch);
}

static uint32_t limit_shared_bytes(uint32_t size)
{
  (void)size;
  return 0;
}

/* The kernel needs none. The size is not 0, because kernel_choice.c divides by it. */
static uint64_t limit_scratch_bytes(uint32_t size)
{
  (void)size;
  return 16;
}

static int limit_fit(uint32_t most, uint32_t shared, uint32_t *blocks)
{
  int each = 0;
  (void)most;
  const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, hk_limit_score_kernel, HK_THREADS, shared);
  *blocks = (uint32_t)each;
  return (int)error;
}

static int limit_launch(struct CUstream_st *stream, uint32_t blocks, uint32_t shared, const struct hk_cuda_launch *l)
{
  hk_limit_score_kernel<<<blocks, HK_THREADS, shared, stream>>>(*l);
  return (int)cudaGetLastError();
}

extern "C" const struct hk_cuda_kernel hk_cuda_limit_kernel;
const struct hk_cuda_kernel hk_cuda_limit_kernel = { HK_WINDOW_MAX,       HK_WARP,   HK_WARPS,    limit_shared_bytes,
                                                     limit_scratch_bytes, limit_fit, limit_launch };
