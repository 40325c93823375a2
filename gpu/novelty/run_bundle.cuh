/* A round of runs: how they are taken from bundles of tasks, as many as there is room for, and shared out among warps. */
#ifndef HK_NOVELTY_RUN_BUNDLE_CUH
#define HK_NOVELTY_RUN_BUNDLE_CUH

#include "gpu/backend/global.cuh"
#include "gpu/novelty/run_take.cuh"

/* A round. All zero at first. */
struct round {
  uint32_t few, many; /* runs of tasks of at most HK_FEW points, and others; may exceed the room: the rest was not taken */
  uint32_t left;      /* tasks that have points left after it, */
  uint32_t several;   /* and of these, such that have several */
  uint32_t ticket[5]; /* of each kernel: runs that its warps have begun, but for the first ones */
};

/* The scratch memory. */
struct runs {
  struct round *round;        /* the current one */
  struct run *run;            /* those of tasks of few points, then, behind the room for them, the others */
  struct hk_cuda_task *small; /* tasks of a small batch */
  uint32_t room;              /* runs of each kind */
  bool first;                 /* the round is the first one */
};

/* Of which tasks a kernel has runs. */
enum runs_of { RUNS_ALL, RUNS_FEW, RUNS_MANY };

/* The runs of a round, shared out among warps as they come. KERNEL: number of the kernel, for the ticket. */
template <uint32_t KERNEL, runs_of OF> struct share {
  const struct runs &runs;
  uint32_t few, many, at, later;

  explicit __device__ __forceinline__ share(const struct runs &runs)
      : runs(runs), few(OF == RUNS_MANY ? 0 : min(runs.round->few, runs.room)),
        many(OF == RUNS_FEW ? 0 : min(runs.round->many, runs.room)), at((blockIdx.x * blockDim.x + threadIdx.x) / HK_WARP),
        later(0)
  {
  }

  /* Returns the next run; NULL: there is none. Begins to ask for the next but one. */
  __device__ __forceinline__ struct run *begin()
  {
    if (at >= few + many)
      return NULL;
    if (threadIdx.x % HK_WARP == 0)
      later = gridDim.x * (blockDim.x / HK_WARP) + atomicAdd(&runs.round->ticket[KERNEL], 1u);
    return hk_global(&runs.run[at < few ? at : runs.room + at - few]);
  }

  __device__ __forceinline__ void end() { at = __shfl_sync(HK_ALL, later, 0); }
};

/* Reserves places for a warp's runs, one a lane that is `mine`: one atomic operation a warp. */
static __device__ __forceinline__ uint32_t runs_reserve(uint32_t *count, bool mine)
{
  const uint32_t wanted = __ballot_sync(HK_ALL, mine), lane = threadIdx.x % HK_WARP;
  uint32_t place = 0;
  if (lane == 0 && wanted)
    place = atomicAdd(count, (uint32_t)__popc(wanted));
  return __shfl_sync(HK_ALL, place, 0) + (uint32_t)__popc(wanted & ((1u << lane) - 1));
}

/* Takes runs of a bundle of tasks, one a lane: task is NULL where there is none. */
static __device__ __forceinline__ void take_bundle(struct take_desk *desk, const struct hk_cuda_launch &l,
                                                   const struct runs &runs, struct hk_cuda_task *task,
                                                   const struct hk_detector *d)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  struct hk_cuda_task mine = {};
  if (task)
    mine = *task;
  bool fits = mine.count > 1;
  if (__any_sync(HK_ALL, fits)) {
    take_copy(desk, fits, mine.record, d, false);
    fits = fits && take_fits(desk, l, mine, d);
    const bool few = mine.count <= HK_FEW;
    const uint32_t front = runs_reserve(&runs.round->few, fits && few), back = runs_reserve(&runs.round->many, fits && !few);
    const uint32_t place = few ? front : runs.room + back;
    fits = fits && (few ? front : back) < runs.room;
    const uint32_t taken = take_runs(desk, l, fits, mine, d, fits ? &runs.run[place] : NULL);
    mine.first += taken;
    mine.count -= taken;
    if (fits)
      *task = mine;
  }
  const uint32_t left = __popc(__ballot_sync(HK_ALL, mine.count > 0)), several = __popc(__ballot_sync(HK_ALL, mine.count > 1));
  if (lane == 0 && left > 0)
    atomicAdd(&runs.round->left, left);
  if (lane == 0 && several > 0)
    atomicAdd(&runs.round->several, several);
}

/* Whether there are no runs any more, as there was none in the round before: then what that left, this one leaves. Called by all
 * threads of the launch. */
static __device__ __forceinline__ bool runs_over(const struct runs &runs)
{
  if (runs.first || runs.round[-1].few + runs.round[-1].many > 0)
    return false;
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    runs.round->left = runs.round[-1].left;
    runs.round->several = runs.round[-1].several;
  }
  return true;
}

#endif
