/* The kernel of algorithm = shift: one lane for each sensor, which computes cpu/shift/shift.h point by point. */
#include "cpu/shift/alert.h"
#include "gpu/backend/kernel.h"
#include "gpu/backend/tick.cuh"
#include "gpu/backend/work_sharing.cuh"

#define HK_WARP 32u
#define HK_THREADS 64u
#define HK_WARPS (HK_THREADS / HK_WARP)

/* Processes one point of a sensor. */
static __device__ __noinline__ void shift_tick(const struct hk_detector *d, struct hk_cuda_record *record,
                                               const struct hk_cuda_columns *columns, const struct hk_point *point)
{
  const struct hk_shift_view v = hk_cuda_shift(record, d);
  float *const ring = hk_cuda_ring(record, d);
  double above;
  const struct hk_step step =
      hk_shift_take(&v, &record->window, ring, point->time, point->value, columns->arrival, record->alert.raised, &above);
  columns->state[point->index] = step.state;
  columns->score[point->index] = step.score ? (float)hk_shift_score(above) : NAN;
  struct hk_event event;
  if (step.state != HK_STATE_LATE && step.state != HK_STATE_REJECTED &&
      hk_shift_decide(&record->alert, &v, &record->window, ring, step, above, &event))
    hk_tick_event(columns, record, point->index, &event);
}

static __global__ void __launch_bounds__(HK_THREADS) hk_shift_score_kernel(const __grid_constant__ struct hk_cuda_launch launch)
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
        shift_tick(&mine->detector, task.record, &launch.columns, &point);
      }
    }
    __syncwarp();
  }
  hk_share_end(launch);
}

static uint32_t shift_shared_bytes(uint32_t size)
{
  (void)size;
  return 0;
}

/* The kernel needs none. The size is not 0, because kernel_choice.c divides by it. */
static uint64_t shift_scratch_bytes(uint32_t size)
{
  (void)size;
  return 16;
}

static int shift_fit(uint32_t most, uint32_t shared, uint32_t *blocks)
{
  int each = 0;
  (void)most;
  const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, hk_shift_score_kernel, HK_THREADS, shared);
  *blocks = (uint32_t)each;
  return (int)error;
}

static int shift_launch(struct CUstream_st *stream, uint32_t blocks, uint32_t shared, const struct hk_cuda_launch *l)
{
  hk_shift_score_kernel<<<blocks, HK_THREADS, shared, stream>>>(*l);
  return (int)cudaGetLastError();
}

extern "C" const struct hk_cuda_kernel hk_cuda_shift_kernel;
const struct hk_cuda_kernel hk_cuda_shift_kernel = { HK_WINDOW_MAX,       HK_WARP,   HK_WARPS,    shift_shared_bytes,
                                                     shift_scratch_bytes, shift_fit, shift_launch };
