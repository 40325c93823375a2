/* The least variance over all lags for a run of points of one sensor, by a warp: of each group of lags (lag_groups.h) a lane has
 * four in registers, which take the points that the group lacks, and then those of the run. A group of which no lag can have the
 * least of any point of the run is left as it is. */
#ifndef HK_NOVELTY_LAGS_CUH
#define HK_NOVELTY_LAGS_CUH

#include "gpu/novelty/turn.cuh"

/* Samples of a group of lags, which is at least HK_LINE_LEAST. */
#define HK_LINE_LEAST (HK_LAG_GROUP + HK_WARP)
#define HK_LINE (HK_LINE_LEAST + HK_LAG_LATE)
static_assert(HK_LINE_LEAST >= HK_LAG_GROUP + HK_RUN + 3, "the samples of a run");

/* Shared memory of a warp. GROUPS: groups of lags that it has, one that is brought along and others on their way. */
template <uint32_t GROUPS> struct __align__(16) lags_desk
{
  static constexpr uint32_t groups = GROUPS;

  union {
    struct {
      float samples[2 * HK_LAG_GROUP]; /* of all lags: a group's, and the next one's */
      float value[HK_RUN];
      int32_t variance[HK_RUN]; /* the warp's: bits of the least */
    };
    struct {
      float4 variances[GROUPS][HK_WARP], means[GROUPS][HK_WARP];
      float line[GROUPS][HK_LINE];      /* samples that a group of lags compares points with */
      float late[HK_LAG_LATE + HK_RUN]; /* points: those before the run, then the run's, */
      int32_t shape[HK_RUN];            /* and the warp's bits of their least variances */
    };
  };
  uint32_t place[HK_RUN]; /* of the least variance */
};

static_assert(HK_LAG_GROUP == 4 * HK_WARP, "four lags of a lane");
static_assert(HK_NOVELTY_LAG_MAX - HK_NOVELTY_LAG_MIN + 1 <= 2 * HK_WARP * HK_LAG_GROUP, "a lane has two groups to choose from");

/* A number that no variance falls below which was `least` so many points before, however it was rounded: 0.98 is 2^-0.0291463. */
static __device__ __forceinline__ float lags_least(float least, uint32_t points)
{
  return least > 1e-30f ? 0.9999f * least * exp2f(-0.0291464f * (float)points) : 0;
}

/* Notes the variances of point k if one is at most the least so far. Of equal ones the shortest lag counts, which stands last;
 * infinite ones are not noted, which also stand behind the last lag. */
template <class DESK>
static __device__ __noinline__ void lags_note(DESK *desk, int32_t *shape, uint32_t k, uint32_t place, float4 variance)
{
  const int32_t mine = least_variance(variance.x, variance.y, variance.z, variance.w);
  const int32_t least = (int32_t)__reduce_min_sync(HK_ALL, (uint32_t)mine), before = shape[k];
  const float bound = __int_as_float(least);
  if (least > before || !(bound <= FLT_MAX))
    return;
  uint32_t at = 0;
  if (mine == least)
    at = place + 1 + (variance.w <= bound ? 3 : variance.z <= bound ? 2 : variance.y <= bound ? 1 : 0);
  at = __reduce_max_sync(HK_ALL, at) - 1;
  __syncwarp();
  if (threadIdx.x % HK_WARP == 0 && (least < before || at > desk->place[k])) {
    shape[k] = least;
    desk->place[k] = at;
  }
  __syncwarp();
}

/* Four lags of a lane. */
struct lags {
  float variance[4], mean[4];

  __device__ __forceinline__ float4 variances() const { return make_float4(variance[0], variance[1], variance[2], variance[3]); }
  __device__ __forceinline__ float4 means() const { return make_float4(mean[0], mean[1], mean[2], mean[3]); }

  /* Brings them along by a point. Returns the bits of the least of their variances. */
  __device__ __forceinline__ int32_t take(float value, float a, float b, float c, float d)
  {
    const float off[4] = { value - a, value - b, value - c, value - d };
#pragma unroll
    for (uint32_t j = 0; j < 4; j++)
      (void)hk_novelty_lag_step(&variance[j], &mean[j], off[j]);
    return least_variance(variance[0], variance[1], variance[2], variance[3]);
  }

  /* The same, and stores the variances. Returns whether one is at most the bound. */
  __device__ __forceinline__ bool reach(float value, float a, float b, float c, float d, int32_t bound, float4 *after)
  {
    const int32_t least = take(value, a, b, c, d);
    *after = variances();
    return least <= bound;
  }
};

/* Four lags of a lane at four successive points: their variances, and whether one of each point's is at most the least so far. */
struct lags_reach {
  float4 variance[4];
  bool reaches[4];

  __device__ __forceinline__ bool any() const { return __any_sync(HK_ALL, reaches[0] || reaches[1] || reaches[2] || reaches[3]); }

  /* Notes them, from point k on. Called by all lanes. */
  template <class DESK> __device__ __forceinline__ void note(DESK *desk, int32_t *shape, uint32_t k, uint32_t place) const
  {
#pragma unroll
    for (uint32_t j = 0; j < 4; j++)
      if (__any_sync(HK_ALL, reaches[j]))
        lags_note(desk, shape, k + j, place, variance[j]);
  }
};

/* What all groups of a sensor share during a run. */
struct lags_work {
  const float *ring;
  float4 *variance, *mean;
  struct hk_lag_group *group;
  uint32_t lags, column; /* number of lags, and of fours of them */
  uint32_t at, room, longest, n;

  __device__ __forceinline__ lags_work(const struct turn *turn, uint32_t n) : n(n)
  {
    const struct hk_detector *d = turn->view.detector;
    ring = hk_global((const float *)hk_cuda_ring(turn->record, d));
    variance = hk_global((float4 *)turn->view.variance);
    mean = hk_global((float4 *)turn->view.mean);
    group = hk_global(hk_cuda_lag_groups(turn->record, d));
    lags = hk_novelty_lags(d);
    column = hk_novelty_column(lags) / 4;
    at = turn->point->at;
    room = hk_detector_span(d);
    longest = hk_novelty_lag_max(d);
  }
};

#define HK_LAG_FIRST                                                                                                             \
  2u /* groups by which the others are measured: with two, fewer others are wanted, and one is on its way meanwhile */
static_assert((HK_NOVELTY_RESIDENT_MIN / 2 - HK_NOVELTY_LAG_MIN) / HK_LAG_GROUP + 1 >= HK_LAG_FIRST, "a sensor has so many");

/* Begins to copy n samples of the ring from a place on. */
static __device__ __forceinline__ void lags_copy(float *to, const float *ring, uint32_t begin, uint32_t room, uint32_t n)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
#pragma unroll 1
  for (uint32_t i = lane; i < n; i += HK_WARP)
    __pipeline_memcpy_async(to + i, &ring[begin + i < room ? begin + i : begin + i - room], sizeof *to);
}

/* Begins to copy group g, which lacks `late` points before the run, to place `at` of the desk. */
template <class DESK>
static __device__ __forceinline__ void lags_begin(DESK *desk, const struct lags_work *w, uint32_t g, uint32_t late, uint32_t at)
{
  const uint32_t lane = threadIdx.x % HK_WARP, here = min(g * HK_WARP + lane, w->column - 1);
  __pipeline_memcpy_async(&desk->variances[at][lane], &w->variance[here], sizeof *w->variance);
  __pipeline_memcpy_async(&desk->means[at][lane], &w->mean[here], sizeof *w->mean);
  const uint32_t back = w->longest - HK_LAG_GROUP * g + (late + 3) / 4 * 4;
  const uint32_t begin = w->at + (w->at < back ? w->room : 0) - back, n = HK_LINE_LEAST + (late + 3) / 4 * 4;
  float *const line = desk->line[at];
  if (begin + HK_LINE_LEAST <= w->room)
#pragma unroll
    for (uint32_t j = 0; j < HK_LINE_LEAST / HK_WARP; j++)
      __pipeline_memcpy_async(line + j * HK_WARP + lane, &w->ring[begin + j * HK_WARP + lane], sizeof *line);
  else
    lags_copy(line, w->ring, begin, w->room, HK_LINE_LEAST);
  const uint32_t rest = begin + HK_LINE_LEAST;
  lags_copy(line + HK_LINE_LEAST, w->ring, rest < w->room ? rest : rest - w->room, w->room, n - HK_LINE_LEAST);
}

/* Lags of a lane, from `place` on, take the points from number `from` of desk->late on, up to the run's first n. line: their
 * samples, from those of the last multiple of four before on. Called by all lanes. */
template <class DESK>
static __device__ __forceinline__ void lags_take(DESK *desk, struct lags *lags, uint32_t place, uint32_t from, uint32_t n,
                                                 const float4 *line)
{
  float4 now = *line;
  const float4 *late = (const float4 *)&desk->late[from / 4 * 4]; /* of the points before the run no variance is looked for */
  if (from % 4 != 0) {
    const float4 next = *++line, value = *late++;
    if (from % 4 == 1)
      (void)lags->take(value.y, now.y, now.z, now.w, next.x);
    if (from % 4 <= 2)
      (void)lags->take(value.z, now.z, now.w, next.x, next.y);
    (void)lags->take(value.w, now.w, next.x, next.y, next.z);
    now = next;
  }
#pragma unroll 1
  for (; late < (const float4 *)&desk->late[HK_LAG_LATE]; late++) {
    const float4 next = *++line, value = *late;
    (void)lags->take(value.x, now.x, now.y, now.z, now.w);
    (void)lags->take(value.y, now.y, now.z, now.w, next.x);
    (void)lags->take(value.z, now.z, now.w, next.x, next.y);
    (void)lags->take(value.w, now.w, next.x, next.y, next.z);
    now = next;
  }
#pragma unroll 1
  for (uint32_t k = 0; k < n; k += 4) {
    const float4 next = *++line, value = *(const float4 *)&desk->late[HK_LAG_LATE + k];
    const int4 bound = *(const int4 *)&desk->shape[k];
    struct lags_reach r = {};
    r.reaches[0] = lags->reach(value.x, now.x, now.y, now.z, now.w, bound.x, &r.variance[0]);
    if (k + 1 < n)
      r.reaches[1] = lags->reach(value.y, now.y, now.z, now.w, next.x, bound.y, &r.variance[1]);
    if (k + 2 < n)
      r.reaches[2] = lags->reach(value.z, now.z, now.w, next.x, next.y, bound.z, &r.variance[2]);
    if (k + 3 < n)
      r.reaches[3] = lags->reach(value.w, now.w, next.x, next.y, next.z, bound.w, &r.variance[3]);
    if (r.any())
      r.note(desk, desk->shape, k, place);
    now = next;
  }
}

/* Brings group g, which is at place `at` of the desk, along to the end of the run. */
template <class DESK>
static __device__ __forceinline__ void lags_bring(DESK *desk, const struct lags_work *w, uint32_t g, uint32_t late, uint32_t at)
{
  const uint32_t lane = threadIdx.x % HK_WARP, own = g * HK_WARP + lane;
  const float4 variance = desk->variances[at][lane], mean = desk->means[at][lane];
  struct lags four = { { variance.x, variance.y, variance.z, variance.w }, { mean.x, mean.y, mean.z, mean.w } };
  if ((g + 1) * HK_LAG_GROUP > w->lags) /* behind the last place stand no lags */
#pragma unroll
    for (uint32_t j = 0; j < 4; j++)
      four.variance[j] = 4 * own + j < w->lags ? four.variance[j] : INFINITY;
  lags_take(desk, &four, 4 * own, HK_LAG_LATE - late, w->n, (const float4 *)desk->line[at] + lane);
  if (own < w->column) {
    w->variance[own] = four.variances();
    w->mean[own] = four.means();
  }
  const int32_t mine = least_variance(four.variance[0], four.variance[1], four.variance[2], four.variance[3]);
  const uint32_t least = __reduce_min_sync(HK_ALL, (uint32_t)mine), end = w->at + w->n;
  if (lane == 0)
    w->group[g] = { __uint_as_float(least), end < w->room ? end : end - w->room };
}

/* Whether a group can have the least variance of a point of the run, where it stands now. */
template <class DESK>
static __device__ __forceinline__ bool lags_matter(const DESK *desk, uint32_t n, uint32_t g, float least, uint32_t late)
{
  bool matters = false;
  float bound = lags_least(least, late + 1);
#pragma unroll 1
  for (uint32_t k = 0; k < n && !matters; k++, bound *= 0.9799f) {
    const float found = __int_as_float(desk->shape[k]);
    matters = bound < found || (bound == found && HK_LAG_GROUP * (g + 1) - 1 > desk->place[k]);
  }
  return matters;
}

/* The points before the run that group g lacks; late: of each lane's two groups. Called by all lanes. */
static __device__ __forceinline__ uint32_t lags_late(const uint32_t (&late)[2], uint32_t g)
{
  return __shfl_sync(HK_ALL, g < HK_WARP ? late[0] : late[1], g % HK_WARP);
}

/* Begins to copy the first of the groups *begins, as many as find room; behind the last none, so that the number of copies is
 * always the same. *begun, brought: groups so far. */
template <class DESK>
static __device__ __forceinline__ void lags_ahead(DESK *desk, const struct lags_work *w, const uint32_t (&late)[2],
                                                  uint64_t *begins, uint32_t *begun, uint32_t brought)
{
#pragma unroll 1
  do {
    if (*begins != 0) {
      const uint32_t g = (uint32_t)__ffsll((int64_t)*begins) - 1;
      lags_begin(desk, w, g, lags_late(late, g), *begun % DESK::groups);
      *begins &= *begins - 1;
    }
    __pipeline_commit();
    ++*begun;
  } while (*begun - brought < DESK::groups);
}

/* The groups that promise most, so that the others are measured by them; of equal ones the last, for the shortest lag. low: of
 * each lane's two groups. Called by all lanes. */
static __device__ __forceinline__ uint64_t lags_first(float (&low)[2])
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  uint64_t first = 0;
#pragma unroll 1
  for (uint32_t i = 0; i < HK_LAG_FIRST; i++) {
    const uint32_t lowest = __reduce_min_sync(HK_ALL, min(__float_as_uint(low[0]), __float_as_uint(low[1])));
    const uint32_t mine = __float_as_uint(low[1]) == lowest ? HK_WARP + lane : __float_as_uint(low[0]) == lowest ? lane : 0;
    const uint32_t g = __reduce_max_sync(HK_ALL, mine);
    first |= (uint64_t)1 << g;
    low[0] = g == lane ? INFINITY : low[0];
    low[1] = g == HK_WARP + lane ? INFINITY : low[1];
  }
  return first;
}

/* Brings groups along: to the end of the run those that can have the least variance of one of its points (n: its points); or all
 * groups to its beginning (n = 0). All lags count. */
template <class DESK> static __device__ __forceinline__ void lags_groups(const struct turn *turn, DESK *desk, uint32_t n)
{
  const uint32_t lane = threadIdx.x % HK_WARP, groups = hk_lag_groups(turn->view.detector);
  const struct lags_work w(turn, n);
  uint32_t late[2] = { 0, 0 };
  float least[2], low[2];
#pragma unroll
  for (uint32_t half = 0; half < 2; half++) {
    least[half] = low[half] = INFINITY;
    const uint32_t g = half * HK_WARP + lane;
    if (g < groups) {
      late[half] = hk_lag_group_late(&w.group[g], w.at, w.room);
      least[half] = w.group[g].least;
      low[half] = fminf(lags_least(least[half], late[half] + w.n), FLT_MAX); /* less than of a lane without a group */
    }
  }
  const uint64_t first = n > 0 ? lags_first(low) : 0;
  uint64_t wanted = n > 0 ? first : __ballot_sync(HK_ALL, late[0] > 0) | (uint64_t)__ballot_sync(HK_ALL, late[1] > 0) << HK_WARP;
  if (wanted == 0)
    return; /* before anything is on its way to where others write next */
  if (lane < HK_RUN) {
    desk->shape[lane] = __float_as_int(INFINITY);
    desk->place[lane] = 0;
  }
  lags_copy(desk->late, w.ring, w.at + (w.at < HK_LAG_LATE ? w.room : 0) - HK_LAG_LATE, w.room, HK_LAG_LATE + w.n);
  uint64_t begins = wanted;
  uint32_t begun = 0, brought = 0;
  bool others = n == 0; /* whether they are wanted already */
#pragma unroll 1
  while (wanted != 0) {
    lags_ahead(desk, &w, late, &begins, &begun, brought);
    __pipeline_wait_prior(DESK::groups - 1);
    __syncwarp();
    const uint32_t g = (uint32_t)__ffsll((int64_t)wanted) - 1;
    lags_bring(desk, &w, g, lags_late(late, g), brought % DESK::groups);
    wanted &= wanted - 1;
    brought++;
    __syncwarp(); /* its place is free */
    if (wanted == 0 && !others) {
      bool wants[2];
      others = true;
#pragma unroll
      for (uint32_t half = 0; half < 2; half++) {
        const uint32_t other = half * HK_WARP + lane;
        wants[half] = other < groups && (first >> other & 1) == 0 &&
                      (late[half] + w.n > HK_LAG_LATE || lags_matter(desk, n, other, least[half], late[half]));
      }
      wanted = begins = __ballot_sync(HK_ALL, wants[0]) | (uint64_t)__ballot_sync(HK_ALL, wants[1]) << HK_WARP;
      begun = brought; /* what is on its way is nothing */
    }
  }
}

/* Stores the least variance of each point of the run, and its lag. */
template <class DESK>
static __device__ __forceinline__ void lags_end(const struct turn *turn, const DESK *desk, const int32_t *shape)
{
  for (uint32_t k = threadIdx.x % HK_WARP; k < turn->n; k += HK_WARP) {
    struct hk_novelty_point *const p = &turn->point[k];
    p->nearest[HK_NOVELTY_SHAPE] = __int_as_float(shape[k]);
    p->lag = hk_novelty_lag_max(turn->view.detector) - desk->place[k];
    if (k == turn->n - 1)
      turn->view.novelty->nearest = desk->place[k];
  }
}

/* The least variance of each point of the run, and its lag, where only groups that matter are brought along. */
template <class DESK> static __device__ __forceinline__ void lags_pass(const struct turn *turn, DESK *desk)
{
  lags_groups(turn, desk, turn->n);
  lags_end(turn, desk, desk->shape);
}

/* Notes that all lags were brought along by the run. */
static __device__ __forceinline__ void lags_brought(const struct turn *turn)
{
  const struct hk_detector *d = turn->view.detector;
  struct hk_lag_group *const group = hk_cuda_lag_groups(turn->record, d);
  const uint32_t last = turn->point[turn->n - 1].at, next = last + 1 == hk_detector_span(d) ? 0 : last + 1;
  for (uint32_t g = threadIdx.x % HK_WARP; g < hk_lag_groups(d); g += HK_WARP)
    group[g] = { 0, next };
}

#endif
