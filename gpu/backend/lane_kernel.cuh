/* The kernel of a detector that one lane computes, point by point: of shift and limit. The lanes of a warp take a sensor each.
 *
 * Rule: a struct with a static device function
 *
 *     tick(detector, record, columns, point)    processes one point of a sensor: score, state, event
 *
 * HK_LANE_KERNEL(name, rule) defines the table entry `name`, and is all that a detector's file needs besides. */
#ifndef HK_LANE_KERNEL_CUH
#define HK_LANE_KERNEL_CUH

#include "gpu/backend/kernel.h"
#include "gpu/backend/tick.cuh"
#include "gpu/backend/work_sharing.cuh"

#define HK_WARP 32u
#define HK_THREADS 64u
#define HK_WARPS (HK_THREADS / HK_WARP)

template <class Rule>
static __global__ void __launch_bounds__(HK_THREADS) hk_lane_kernel(const __grid_constant__ struct hk_cuda_launch launch)
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
        Rule::tick(&mine->detector, task.record, &launch.columns, &point);
      }
    }
    __syncwarp();
  }
  hk_share_end(launch);
}

HK_INLINE uint32_t hk_lane_shared_bytes(uint32_t size)
{
  (void)size;
  return 0;
}

/* The kernel needs none. The size is not 0, because kernel_choice.c divides by it. */
HK_INLINE uint64_t hk_lane_scratch_bytes(uint32_t size)
{
  (void)size;
  return 16;
}

template <class Rule> static int hk_lane_fit(uint32_t most, uint32_t shared, uint32_t *blocks)
{
  int each = 0;
  (void)most;
  const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, hk_lane_kernel<Rule>, HK_THREADS, shared);
  *blocks = (uint32_t)each;
  return (int)error;
}

template <class Rule>
static int hk_lane_launch(struct CUstream_st *stream, uint32_t blocks, uint32_t shared, const struct hk_cuda_launch *l)
{
  hk_lane_kernel<Rule><<<blocks, HK_THREADS, shared, stream>>>(*l);
  return (int)cudaGetLastError();
}

#define HK_LANE_KERNEL(name, rule)                                                                                               \
  extern "C" const struct hk_cuda_kernel name;                                                                                   \
  const struct hk_cuda_kernel name = {                                                                                           \
    HK_WINDOW_MAX, HK_WARP, HK_WARPS, hk_lane_shared_bytes, hk_lane_scratch_bytes, hk_lane_fit<rule>, hk_lane_launch<rule>       \
  }

#endif
