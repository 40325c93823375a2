/* How the warps of a launch share out its tasks, and how a batch ends.
 *
 * A family's tasks stand in one row, detector after detector, each detector's rounded up to what a warp scores side by side. The
 * row is cut into portions: first as many of the longest as all warps can take the same number of, then what is left in equal
 * parts. Of a long row the last round of longest portions is cut smaller, too, so that all warps end together. A warp's first
 * portion has its own number, the others are taken as warps come. What it takes is scored in bundles of one detector. None of
 * this changes a score: those of a bundle share nothing.
 *
 * The host tells few points apart itself; then a warp takes a task at a time. */
#ifndef HK_WORK_SHARING_CUH
#define HK_WORK_SHARING_CUH

#include "gpu/backend/device_types.h"

#define HK_SHARE_LONG 3u /* rounds of longest portions from which on the last is cut smaller, */
#define HK_SHARE_CUTS 4u /* with what is left, into so many portions a warp */

/* A warp's share of the tasks, in shared memory, because the score needs the registers. */
struct hk_share {
  struct hk_detector detector; /* detector of the bundle */
  uint32_t number;             /* its number; HK_CUDA_NONE at first */
  uint32_t n;                  /* tasks of the bundle */
  const struct hk_cuda_task *tasks;
  uint32_t places;        /* places in the row */
  uint32_t workers;       /* workers of the launch that take portions */
  uint32_t portion;       /* the next portion, if known: at first; few points: the next task */
  uint32_t at, end;       /* the rest of the portion */
  uint32_t member, begin; /* a member whose tasks begin at or before `at`, a multiple of 32, and where they begin */
};
static_assert(sizeof(struct hk_detector) % 4 == 0 && sizeof(struct hk_detector) <= 64 * 4,
              "each lane copies a word of it, or two");
#define HK_SHARE_FLOATS ((uint32_t)(sizeof(struct hk_share) + 15) / 16 * 4)

/* Number of places of a family's member: its *n tasks, rounded up. SIDE: sensors that a warp scores concurrently. */
template <uint32_t SIDE>
static __device__ __forceinline__ uint32_t hk_share_places(const struct hk_cuda_launch &l, uint32_t member, uint32_t *n)
{
  *n = member < l.n_members ? l.work.n_tasks[l.members[member]] : 0;
  return (*n + SIDE - 1) / SIDE * SIDE;
}

/* Copies a bundle's detector. Called by whole warps, which synchronise afterwards. */
static __device__ __forceinline__ void hk_share_detector(struct hk_share *s, const struct hk_detector *d)
{
#pragma unroll
  for (uint32_t word = threadIdx.x % 32; word < sizeof *d / 4; word += 32)
    ((uint32_t *)&s->detector)[word] = ((const uint32_t *)d)[word];
}

/* Called by whole warps, as the next function. warp: its number in the launch, of `workers`: all of its warps, or one for each
 * block. */
template <uint32_t SIDE>
static __device__ __noinline__ void hk_share_begin(struct hk_share *s, const struct hk_cuda_launch *launch, uint32_t warp,
                                                   uint32_t workers = gridDim.x * (blockDim.x / 32))
{
  const uint32_t lane = threadIdx.x % 32;
  uint32_t places = 0, n;
  if (launch->small.n == 0 && *launch->columns.refused == 0)
#pragma unroll 1
    for (uint32_t m = lane; m < launch->n_members; m += 32)
      places += hk_share_places<SIDE>(*launch, m, &n);
  places = __reduce_add_sync(0xffffffffu, places);
  if (lane == 0) {
    s->number = HK_CUDA_NONE;
    s->places = places;
    s->workers = workers;
    s->portion = warp;
    s->at = s->end = s->member = s->begin = 0;
  }
  __syncwarp();
}

/* Takes the next portion; *at == *end: none is left. TURNS: maximum of tasks that a warp scores one after the other in a
 * bundle. */
template <uint32_t SIDE, uint32_t TURNS>
static __device__ __forceinline__ void hk_share_take(const struct hk_share *s, const struct hk_cuda_launch &l, uint32_t *at,
                                                     uint32_t *end)
{
  uint32_t portion = s->portion;
  if (portion == HK_CUDA_NONE) {
    if (threadIdx.x % 32 == 0)
      portion = atomicAdd(&l.work.taken[l.family], 1u) + s->workers;
    portion = __shfl_sync(0xffffffffu, portion, 0);
  }
  const uint32_t turn = l.warps * SIDE, fit = s->places / (turn * TURNS);
  const bool end_small = fit >= HK_SHARE_LONG;
  const uint32_t rounds = fit - end_small, whole = rounds * l.warps, cuts = end_small ? HK_SHARE_CUTS : 1;
  const uint32_t left = s->places - rounds * turn * TURNS, part = ((left + turn - 1) / turn + cuts - 1) / cuts * SIDE;
  const uint32_t from = portion < whole ? portion * SIDE * TURNS : rounds * turn * TURNS + (portion - whole) * part;
  *at = min(from, s->places);
  *end = min(from + (portion < whole ? SIDE * TURNS : part), s->places);
}

/* The member of the family to which place `at` of the row belongs. Moves *member and *begin on to the 32 members among which it
 * is. *first: the place of its first task; *rest: the first place behind its tasks; *n: its tasks. */
template <uint32_t SIDE>
static __device__ __forceinline__ uint32_t hk_share_find(const struct hk_cuda_launch &l, uint32_t at, uint32_t *member,
                                                         uint32_t *begin, uint32_t *first, uint32_t *rest, uint32_t *n)
{
  const uint32_t lane = threadIdx.x % 32;
  uint32_t mine, places, upto, found;
#pragma unroll 1
  for (;;) {
    places = upto = hk_share_places<SIDE>(l, *member + lane, &mine);
#pragma unroll
    for (uint32_t far = 1; far < 32; far *= 2) {
      const uint32_t other = __shfl_up_sync(0xffffffffu, upto, far);
      upto += lane >= far ? other : 0;
    }
    found = __ballot_sync(0xffffffffu, at - *begin < upto);
    if (found)
      break;
    *begin += __shfl_sync(0xffffffffu, upto, 31);
    *member += 32;
  }
  const uint32_t who = __ffs(found) - 1;
  *first = *begin + __shfl_sync(0xffffffffu, upto - places, who);
  *rest = *first + __shfl_sync(0xffffffffu, places, who);
  *n = __shfl_sync(0xffffffffu, mine, who);
  return *member + who;
}

/* Tells the memory what will be read: for one sensor there is no other work to wait behind. */
static __device__ __forceinline__ void hk_share_prefetch(const struct hk_detector *d, const struct hk_cuda_task *task)
{
  const uint32_t bytes = (uint32_t)hk_cuda_record_bytes(d);
  const unsigned char *record = (const unsigned char *)task->record;
  for (uint32_t byte = threadIdx.x % 32 * HK_CUDA_SECTOR; byte < bytes; byte += 32 * HK_CUDA_SECTOR)
    asm volatile("prefetch.global.L1 [%0];" ::"l"(record + byte));
}

/* Takes the next bundle, at most SIDE * TURNS tasks. Returns whether there is one. */
template <uint32_t SIDE, uint32_t TURNS>
static __device__ __noinline__ bool hk_share_next(struct hk_share *s, const struct hk_cuda_launch *launch)
{
  const struct hk_cuda_launch &l = *launch;
  uint32_t at = s->at, end = s->end, member = s->member, begin = s->begin, portion = HK_CUDA_NONE, number, n;
  const struct hk_cuda_task *tasks;
  if (l.small.n > 0) {
    const uint32_t task = s->portion;
    if (task >= l.small.n)
      return false;
    portion = task + s->workers;
    number = l.small.detector[task];
    tasks = &l.small.task[task];
    n = 1;
  } else {
    if (at == end)
      hk_share_take<SIDE, TURNS>(s, l, &at, &end);
    if (at == end)
      return false;
    uint32_t first, rest;
    number = l.members[hk_share_find<SIDE>(l, at, &member, &begin, &first, &rest, &n)];
    n = min(n - (at - first), end - at); /* the portion may end before the detector's tasks */
    tasks = l.work.tasks + l.list[number] + (at - first);
    at = min(end, rest);
  }
  if (number != s->number)
    hk_share_detector(s, &l.detectors[number]);
  __syncwarp(); /* all have read what is overwritten now */
  if (threadIdx.x % 32 == 0) {
    s->number = number;
    s->n = n;
    s->tasks = tasks;
    s->portion = portion;
    s->at = at;
    s->end = end;
    s->member = member;
    s->begin = begin;
  }
  __syncwarp();
  if (l.small.n > 0)
    hk_share_prefetch(&s->detector, tasks);
  return true;
}

/* A point of a task. */
struct hk_point {
  uint32_t index; /* index in the batch */
  int64_t time;
  double value;
};

static __device__ __forceinline__ struct hk_point hk_share_point(const struct hk_cuda_launch &l, const struct hk_cuda_task &task,
                                                                 uint32_t p)
{
  const uint32_t at = task.first + p;
  if (l.small.n > 0)
    return { l.small.order[at], l.small.time[at], l.small.value[at] };
  const uint32_t index = l.columns.order[at];
  return { index, l.columns.time[index], l.columns.value[index] };
}

/* Ends a batch: writes its answer, and resets all counters. Called by all threads of a block, after all data for the host was
 * written. */
static __device__ __forceinline__ void hk_end(const struct hk_cuda_work &work, const struct hk_cuda_end &end)
{
  if (threadIdx.x == 0) {
    const uint32_t events = __ldcg(&work.counters->events), refused = __ldcg(&work.counters->refused);
    *(volatile uint64_t *)end.answer = hk_cuda_answer(end.number, events, refused);
    work.counters->refused = work.counters->events = work.counters->ordered = work.counters->blocks = 0;
  }
  for (uint32_t i = threadIdx.x; i < end.n_detectors; i += blockDim.x)
    work.n_tasks[i] = 0;
  for (uint32_t i = threadIdx.x; i < end.n_families; i += blockDim.x)
    work.taken[i] = 0;
}

/* Called at the end of a block: the last block of all launches ends the batch. */
static __device__ __forceinline__ void hk_share_end(const struct hk_cuda_launch &l)
{
  bool last = l.end.blocks == 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system(); /* all writes of the block, also to the host's memory, precede its count */
    if (!last && atomicAdd(&l.work.counters->blocks, 1u) + 1 == l.end.blocks) {
      __threadfence_system();
      last = true;
    }
  }
  if (__syncthreads_or(last))
    hk_end(l.work, l.end);
}

#endif
