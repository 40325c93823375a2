/* The runs that the rounds of a batch leave of a task, which are taken and scored by one warp. */
#ifndef HK_NOVELTY_RUN_REST_CUH
#define HK_NOVELTY_RUN_REST_CUH

#include "gpu/novelty/judge.cuh"
#include "gpu/novelty/lags.cuh"
#include "gpu/novelty/run_pass.cuh"
#include "gpu/novelty/run_take.cuh"

#define HK_FEW_GROUPS 3u /* of lags, one of which is brought along while the others are on their way */

/* Shared memory of a warp. */
struct __align__(16) rest_desk
{
  struct turn turn;
  union {
    struct take_desk take;
    struct rows_desk rows;
    struct lags_desk<HK_FEW_GROUPS> lags;
    struct rate_desk<HK_RUN> rate;
  };
};

/* Takes and scores the runs that a task has left, one after the other, by a warp. */
static __device__ __forceinline__ void rest_runs(struct rest_desk *desk, const struct hk_cuda_launch &l, struct run *run,
                                                 struct hk_cuda_task *task, const struct hk_detector *d)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  struct hk_cuda_task mine = *task;
  for (;;) {
    const bool takes = lane == 0 && mine.count > 1;
    take_copy(&desk->take, takes, mine.record, d, false);
    const bool fits = takes && take_fits(&desk->take, l, mine, d);
    if (!__any_sync(HK_ALL, fits))
      break;
    const uint32_t taken = __shfl_sync(HK_ALL, take_runs(&desk->take, l, fits, mine, d, fits ? run : NULL), 0);
    mine.first += taken;
    mine.count -= taken;
    __syncwarp();
    if (run->n == 0)
      continue;
    turn_make(&desk->turn, run);
    run_values(run);
    run_rows(run, &desk->rows);
    __syncwarp();
    if (!hk_novelty_value_alone(d))
      lags_pass(&desk->turn, &desk->lags);
    __syncwarp();
    distances_end(&desk->turn, &desk->rate);
    rate(&desk->turn, &desk->rate);
    judge(&desk->turn, &desk->rate, &l.columns);
    __syncwarp();
  }
  if (lane == 0)
    *task = mine;
  __syncwarp(); /* the desk was read */
}

#endif
