/* Runs of several points of a sensor, in device memory: what the kernels for them (runs.cu) hand on to each other. */
#ifndef HK_NOVELTY_RUN_CUH
#define HK_NOVELTY_RUN_CUH

#include "gpu/novelty/turn.cuh"

/* Points of a grown sensor. */
struct __align__(16) run
{
  struct hk_cuda_record *record;
  const struct hk_detector *detector;
  uint32_t n; /* points */
  struct taken point[HK_RUN];
};

/* A run as other functions see it, in shared memory. */
static __device__ __forceinline__ void turn_make(struct turn *turn, struct run *run)
{
  if (threadIdx.x % HK_WARP == 0)
    *turn = { run->record, hk_cuda_novelty(run->record, run->detector), run->point, run->n };
  __syncwarp();
}

#endif
