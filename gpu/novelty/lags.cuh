/* The least variance over all lags for a run of points of one sensor, by a warp: of each group of lags (lag_groups.h) a lane has
 * four in registers, which take the points that the group lacks, and then those of the run. A group of which no lag can have the
 * least of any point of the run is left as it is. */
#ifndef HK_NOVELTY_LAGS_CUH
#define HK_NOVELTY_LAGS_CUH

#include "gpu/novelty/station.cuh"

static_assert(HK_LAG_GROUP == 4 * HK_WARP, "four lags of a lane");
static_assert(HK_NOVELTY_LAG_MAX - HK_NOVELTY_LAG_MIN + 1 <= 2 * HK_WARP * HK_LAG_GROUP, "a lane has two groups to choose from");

/* A number that no variance falls below which was `least` so many points before, however it was rounded: 0.98 is 2^-0.0291463. */
static __device__ __forceinline__ float lags_least(float least, uint32_t points)
{
  return least > 1e-30f ? 0.9999f * least * exp2f(-0.0291464f * (float)points) : 0;
}

/* Notes the variances of point k if one is at most the least so far. Of equal ones the shortest lag counts, which stands last;
 * infinite ones are not noted, which also stand behind the last lag. */
static __device__ __forceinline__ void lags_note(struct station *station, int32_t *shape, uint32_t k, uint32_t place,
                                                 float4 variance)
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
  if (threadIdx.x % HK_WARP == 0 && (least < before || at > station->found.place[k])) {
    shape[k] = least;
    station->found.place[k] = at;
  }
  __syncwarp();
}

/* Brings a lag along by a point, as hk_novelty_lag_take. */
static __device__ __forceinline__ void lags_take_one(float *variance, float *mean, float off)
{
  const float keep = HK_NOVELTY_FORGET, weight = (float)(1 - (double)HK_NOVELTY_FORGET);
  const float away = off - *mean, part = weight * away;
  *mean += part;
  *variance = keep * (*variance + part * away);
}

/* Four lags of a lane. */
struct lags {
  float variance[4], mean[4];

  /* Brings them along by a point. Returns the bits of the least of their variances. */
  __device__ __forceinline__ int32_t take(float value, float a, float b, float c, float d)
  {
    const float off[4] = { value - a, value - b, value - c, value - d };
#pragma unroll
    for (uint32_t j = 0; j < 4; j++)
      lags_take_one(&variance[j], &mean[j], off[j]);
    return least_variance(variance[0], variance[1], variance[2], variance[3]);
  }
};

/* Up to four points once more, from point k of the run on, to note the variances of lags from `place` on. value, shape: of the
 * run's points. now, next: the samples. Rare. */
static __device__ __noinline__ void lags_tell(struct station *station, struct lags lags, const float *value, int32_t *shape,
                                              uint32_t k, uint32_t place, float4 now, float4 next)
{
#pragma unroll 1
  for (const uint32_t end = min(k + 4, station->n); k < end; k++) {
    (void)lags.take(value[k], now.x, now.y, now.z, now.w);
    const float *const variance = lags.variance;
    lags_note(station, shape, k, place, make_float4(variance[0], variance[1], variance[2], variance[3]));
    now = make_float4(now.y, now.z, now.w, next.x);
    next = make_float4(next.y, next.z, next.w, 0);
  }
}

/* What all groups of a sensor share during a run. */
struct lags_work {
  const float *ring;
  float4 *variance, *mean;
  struct hk_lag_group *group;
  uint32_t lags, column; /* number of lags, and of fours of them */
  uint32_t at, room, longest, n;

  __device__ __forceinline__ lags_work(const struct station *station, uint32_t n) : n(n)
  {
    const struct hk_detector *d = station->view.detector;
    ring = hk_global((const float *)hk_cuda_ring(station->task.record, d));
    variance = hk_global((float4 *)station->view.variance);
    mean = hk_global((float4 *)station->view.mean);
    group = hk_global(hk_cuda_lag_groups(station->task.record, d));
    lags = hk_novelty_lags(d);
    column = hk_novelty_column(lags) / 4;
    at = station->point->at;
    room = hk_detector_span(d);
    longest = hk_novelty_lag_max(d);
  }
};

#define HK_LAG_NONE UINT32_MAX

/* A group on its way: four lags of a lane; the samples are on theirs to line `line`. */
struct lags_group {
  uint32_t g, late; /* its number, and the points before the run that it lacks */
  float4 variance, mean;
  uint32_t line;
};

/* Begins to copy n samples of the ring from a place on. */
static __device__ __forceinline__ void lags_copy(float *to, const float *ring, uint32_t begin, uint32_t room, uint32_t n)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
#pragma unroll 1
  for (uint32_t i = lane; i < n; i += HK_WARP)
    __pipeline_memcpy_async(to + i, &ring[begin + i < room ? begin + i : begin + i - room], sizeof *to);
}

/* Begins to load a group. */
static __device__ __forceinline__ void lags_begin(struct station *station, const struct lags_work *w, struct lags_group *group)
{
  const uint32_t lane = threadIdx.x % HK_WARP, here = min(group->g * HK_WARP + lane, w->column - 1);
  group->variance = w->variance[here];
  group->mean = w->mean[here];
  const uint32_t back = w->longest - HK_LAG_GROUP * group->g + (group->late + 3) / 4 * 4;
  const uint32_t begin = w->at + (w->at < back ? w->room : 0) - back, n = HK_LINE_LEAST + (group->late + 3) / 4 * 4;
  float *const line = station->found.line[group->line];
  if (begin + HK_LINE_LEAST <= w->room)
#pragma unroll
    for (uint32_t j = 0; j < HK_LINE_LEAST / HK_WARP; j++)
      __pipeline_memcpy_async(line + j * HK_WARP + lane, &w->ring[begin + j * HK_WARP + lane], sizeof *line);
  else
    lags_copy(line, w->ring, begin, w->room, HK_LINE_LEAST);
  const uint32_t rest = begin + HK_LINE_LEAST;
  lags_copy(line + HK_LINE_LEAST, w->ring, rest < w->room ? rest : rest - w->room, w->room, n - HK_LINE_LEAST);
}

/* Lags of a lane, from `place` on, take the points from number `from` of found.late on, up to the run's first n. line: their
 * samples, from those of the last multiple of four before on. Called by all lanes. */
static __device__ __forceinline__ void lags_take(struct station *station, struct lags *lags, uint32_t place, uint32_t from,
                                                 uint32_t n, const float4 *line)
{
  const uint32_t end = HK_LAG_LATE + n;
  float4 now = *line;
#pragma unroll 1
  for (uint32_t four = from / 4; 4 * four < end; four++) {
    const float4 next = *++line, value = ((const float4 *)station->found.late)[four];
    const int4 bound = ((const int4 *)station->found.shape)[four];
    const struct lags before = *lags;
    bool reach = false;
    if (from <= 4 * four)
      reach = lags->take(value.x, now.x, now.y, now.z, now.w) <= bound.x;
    if (from <= 4 * four + 1 && 4 * four + 1 < end)
      reach |= lags->take(value.y, now.y, now.z, now.w, next.x) <= bound.y;
    if (from <= 4 * four + 2 && 4 * four + 2 < end)
      reach |= lags->take(value.z, now.z, now.w, next.x, next.y) <= bound.z;
    if (4 * four + 3 < end)
      reach |= lags->take(value.w, now.w, next.x, next.y, next.z) <= bound.w;
    if (__any_sync(HK_ALL, reach)) /* a point of the run: the others have no bound */
      lags_tell(station, before, station->found.late + HK_LAG_LATE, station->found.shape + HK_LAG_LATE, 4 * four - HK_LAG_LATE,
                place, now, next);
    now = next;
  }
}

/* Brings a group, whose samples are there, along to the end of the run. */
static __device__ __forceinline__ void lags_bring(struct station *station, const struct lags_work *w,
                                                  const struct lags_group *group)
{
  const uint32_t lane = threadIdx.x % HK_WARP, own = group->g * HK_WARP + lane;
  struct lags four = { { group->variance.x, group->variance.y, group->variance.z, group->variance.w },
                       { group->mean.x, group->mean.y, group->mean.z, group->mean.w } };
  if ((group->g + 1) * HK_LAG_GROUP > w->lags) /* behind the last place stand no lags */
#pragma unroll
    for (uint32_t j = 0; j < 4; j++)
      four.variance[j] = 4 * own + j < w->lags ? four.variance[j] : INFINITY;
  lags_take(station, &four, 4 * own, HK_LAG_LATE - group->late, w->n, (const float4 *)station->found.line[group->line] + lane);
  if (own < w->column) {
    w->variance[own] = make_float4(four.variance[0], four.variance[1], four.variance[2], four.variance[3]);
    w->mean[own] = make_float4(four.mean[0], four.mean[1], four.mean[2], four.mean[3]);
  }
  const int32_t mine = least_variance(four.variance[0], four.variance[1], four.variance[2], four.variance[3]);
  const uint32_t least = __reduce_min_sync(HK_ALL, (uint32_t)mine), end = w->at + w->n;
  if (lane == 0)
    w->group[group->g] = { __uint_as_float(least), end < w->room ? end : end - w->room };
}

/* Whether a group can have the least variance of a point of the run, where it stands now. */
static __device__ __forceinline__ bool lags_matter(const struct station *station, uint32_t g, float least, uint32_t late)
{
  bool matters = false;
  float bound = lags_least(least, late + 1);
#pragma unroll 1
  for (uint32_t k = 0; k < station->n && !matters; k++, bound *= 0.9799f) {
    const float found = __int_as_float(station->found.shape[HK_LAG_LATE + k]);
    matters = bound < found || (bound == found && HK_LAG_GROUP * (g + 1) - 1 > station->found.place[k]);
  }
  return matters;
}

/* Brings groups along: to the end of the run those that can have the least variance of one of its points (n: its points); or all
 * groups to its beginning (n = 0). All lags count. */
static __device__ __noinline__ void lags_groups(struct station *station, uint32_t n)
{
  const uint32_t lane = threadIdx.x % HK_WARP, groups = hk_lag_groups(station->view.detector);
  const struct lags_work w(station, n);
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
  /* First the group that promises most, so that the others are measured by it; of equal ones the last, for the shortest lag. */
  const uint32_t lowest = __reduce_min_sync(HK_ALL, min(__float_as_uint(low[0]), __float_as_uint(low[1])));
  const uint32_t mine = __float_as_uint(low[1]) == lowest ? HK_WARP + lane : __float_as_uint(low[0]) == lowest ? lane : 0;
  const uint32_t first = n > 0 ? __reduce_max_sync(HK_ALL, mine) : HK_LAG_NONE - 1;
  uint64_t wanted =
      n > 0 ? (uint64_t)1 << first : __ballot_sync(HK_ALL, late[0] > 0) | (uint64_t)__ballot_sync(HK_ALL, late[1] > 0) << HK_WARP;
  if (wanted == 0)
    return; /* before anything is on its way to where others write next */
  for (uint32_t i = lane; i < HK_LAG_LATE + HK_RUN; i += HK_WARP)
    station->found.shape[i] = i < HK_LAG_LATE ? -1 : __float_as_int(INFINITY);
  if (lane < HK_RUN)
    station->found.place[lane] = 0;
  lags_copy(station->found.late, w.ring, w.at + (w.at < HK_LAG_LATE ? w.room : 0) - HK_LAG_LATE, w.room, HK_LAG_LATE + w.n);
  struct lags_group now = { HK_LAG_NONE }, next;
#pragma unroll 1
  do {
    next.g = wanted == 0 ? HK_LAG_NONE : (uint32_t)__ffsll((int64_t)wanted) - 1;
    wanted &= wanted - 1;
    next.late = __shfl_sync(HK_ALL, next.g < HK_WARP ? late[0] : late[1], next.g % HK_WARP);
    next.line = now.line ^ 1;
    if (next.g != HK_LAG_NONE)
      lags_begin(station, &w, &next);
    __pipeline_commit();
    if (now.g != HK_LAG_NONE) {
      __pipeline_wait_prior(1);
      __syncwarp();
      lags_bring(station, &w, &now);
      __syncwarp(); /* the line is free */
    }
    if (now.g == first) {
      bool wants[2];
#pragma unroll
      for (uint32_t half = 0; half < 2; half++) {
        const uint32_t g = half * HK_WARP + lane;
        wants[half] =
            g < groups && g != first && (late[half] + w.n > HK_LAG_LATE || lags_matter(station, g, least[half], late[half]));
      }
      wanted = __ballot_sync(HK_ALL, wants[0]) | (uint64_t)__ballot_sync(HK_ALL, wants[1]) << HK_WARP;
    }
    now = next;
  } while (now.g != HK_LAG_NONE || wanted != 0);
}

/* Stores the least variance of each point of the run, and its lag. */
static __device__ __forceinline__ void lags_end(struct station *station, const int32_t *shape)
{
  for (uint32_t k = threadIdx.x % HK_WARP; k < station->n; k += HK_WARP) {
    struct hk_novelty_point *const p = &station->point[k];
    p->nearest[HK_NOVELTY_SHAPE] = __int_as_float(shape[k]);
    p->lag = hk_novelty_lag_max(station->view.detector) - station->found.place[k];
    if (k == station->n - 1)
      station->view.novelty->nearest = station->found.place[k];
  }
}

/* The least variance of each point of the run, and its lag, where only groups that matter are brought along. */
static __device__ __forceinline__ void lags_pass(struct station *station)
{
  lags_groups(station, station->n);
  lags_end(station, station->found.shape + HK_LAG_LATE);
}

/* Notes that all lags were brought along by the run. */
static __device__ __forceinline__ void lags_brought(const struct station *station)
{
  const struct hk_detector *d = station->view.detector;
  struct hk_lag_group *const group = hk_cuda_lag_groups(station->task.record, d);
  const uint32_t last = station->point[station->n - 1].at, next = last + 1 == hk_detector_span(d) ? 0 : last + 1;
  for (uint32_t g = threadIdx.x % HK_WARP; g < hk_lag_groups(d); g += HK_WARP)
    group[g] = { 0, next };
}

#endif
