/* The passes for a run of points of one sensor, by a warp. Each group of four places stands in a lane's registers while all
 * points of the run go by; D and M of a lag are read and written once for all of them.
 *
 * Points go by four at a time, and what they have found lies in shared memory: so the code stays short enough for the cache of
 * instructions if all warps of a block are at the same loop (novelty.cu). */
#ifndef HK_NOVELTY_RUN_PASS_CUH
#define HK_NOVELTY_RUN_PASS_CUH

#include "gpu/novelty/station.cuh"

#define HK_RUN_VALUES 4u /* groups of four values that a lane holds */

/* Behind the last point stand copies of it, so that there are four everywhere: a minimum does not mind. */
static __device__ __forceinline__ uint32_t run_fours(const struct station *station)
{
  return (station->n + 3) / 4;
}

/* A lane's least of a point. */
static __device__ __forceinline__ float *run_least(struct station *station, uint32_t k)
{
  return (float *)&station->found.least[k / 4][threadIdx.x % HK_WARP] + k % 4;
}

static __device__ __forceinline__ float run_nearest(float best, float4 x, float value)
{
  return nearest_of(best, x.x - value, x.y - value, x.z - value, x.w - value);
}

/* Values that are older than the longest lag. */
static __device__ __forceinline__ void run_old_values(struct station *station, const float *ring)
{
  const struct hk_detector *d = station->view.detector;
  const struct hk_novelty_point *p = station->point;
  const uint32_t n = station->n, fours = run_fours(station), lane = threadIdx.x % HK_WARP;
  const int32_t longest = (int32_t)hk_novelty_lag_max(d);
  const auto from = [&](uint32_t k) { return (int32_t)k - HK_NOVELTY_RECENT + 1 - (int32_t)hk_novelty_values(d, &p[k]); };
  struct places places(p->at, hk_detector_span(d), (int32_t)n - 1);
  places.take(from(0), -longest - 1);
  places.take(from(n - 1), (int32_t)n - 1 - longest - 1);
  const uint32_t groups = (uint32_t)places.room / 4;
  const float4 *const rings = (const float4 *)ring;
  /* The groups of the range, which may go round the end of the ring. */
  const uint32_t first = (uint32_t)places.place(places.common) / 4, count = (uint32_t)(places.shared - places.common + 4) / 4 + 1;
  float4 next[HK_RUN_VALUES];
  const auto load = [&](uint32_t begin) {
#pragma unroll
    for (uint32_t u = 0; u < HK_RUN_VALUES; u++) { /* behind the end the last once more */
      uint32_t group = first + min(begin + u * HK_WARP, count - 1);
      group -= group >= groups ? groups : 0;
      next[u] = rings[group];
      if (!places.whole(places.of((int32_t)(4 * group))))
        next[u].x = next[u].y = next[u].z = next[u].w = INFINITY;
    }
  };
  load(lane);
#pragma unroll 1
  for (uint32_t begin = lane; begin < count; begin += HK_RUN_VALUES * HK_WARP) {
    float4 x[HK_RUN_VALUES];
#pragma unroll
    for (uint32_t u = 0; u < HK_RUN_VALUES; u++)
      x[u] = next[u];
    load(begin + HK_RUN_VALUES * HK_WARP);
#pragma unroll 1
    for (uint32_t k = 0; k < fours; k++) {
      const float4 value = *(const float4 *)&station->found.value[4 * k];
      float4 best = station->found.least[k][lane];
#pragma unroll
      for (uint32_t u = 0; u < HK_RUN_VALUES; u++) {
        best.x = run_nearest(best.x, x[u], value.x);
        best.y = run_nearest(best.y, x[u], value.y);
        best.z = run_nearest(best.z, x[u], value.z);
        best.w = run_nearest(best.w, x[u], value.w);
      }
      station->found.least[k][lane] = best;
    }
  }
  int32_t o;
  for (int32_t i = (int32_t)lane; places.rest(i, &o); i += HK_WARP) {
    const float x = ring[places.place(o)];
#pragma unroll 1
    for (uint32_t k = 0; k < n; k++)
      if (o >= from(k) && o <= (int32_t)k - longest - 1)
        *run_least(station, k) = fminf(*run_least(station, k), fabsf(x - p[k].value));
  }
}

/* Values that are newer than the shortest lag. */
static __device__ __forceinline__ void run_new_values(struct station *station, const float *ring)
{
  const struct hk_novelty_point *p = station->point;
  const int32_t oldest = 1 - HK_NOVELTY_LAG_MIN, room = (int32_t)hk_detector_span(station->view.detector);
  const uint32_t lane = threadIdx.x % HK_WARP;
#pragma unroll 1
  for (int32_t o = oldest + (int32_t)lane; o < (int32_t)station->n - HK_NOVELTY_RECENT; o += HK_WARP) {
    const int32_t at = (int32_t)p->at + o;
    const float x = ring[at < 0 ? at + room : at >= room ? at - room : at];
#pragma unroll 1
    for (uint32_t k = 0; k < station->n; k++)
      if (o >= (int32_t)k + oldest && o <= (int32_t)k - HK_NOVELTY_RECENT)
        *run_least(station, k) = fminf(*run_least(station, k), fabsf(x - station->found.value[k]));
  }
}

/* Notes a variance that is at most the least so far of a point. Of equal ones the shortest lag counts, which comes later. Rare.
 */
static __device__ __noinline__ void run_shape_tell(struct station *station, uint32_t k, uint32_t place, float4 variance)
{
  const int32_t mine = least_variance(variance.x, variance.y, variance.z, variance.w);
  const int32_t least = (int32_t)__reduce_min_sync(HK_ALL, (uint32_t)mine);
  if (least > station->found.shape[k])
    return;
  const float bound = __int_as_float(least);
  uint32_t at = 0;
  if (mine == least)
    at = place + 1 + (variance.w <= bound ? 3 : variance.z <= bound ? 2 : variance.y <= bound ? 1 : 0);
  at = __reduce_max_sync(HK_ALL, at);
  __syncwarp();
  if (threadIdx.x % HK_WARP == 0) {
    station->found.shape[k] = least;
    station->found.place[k] = at - 1;
  }
  __syncwarp();
}

/* Four lags of a lane. */
struct lags {
  float square[4], mean[4];

  /* Brings them along by a point. Returns their variances; best: distances of the samples. */
  __device__ __forceinline__ float4 take(float value, float a, float b, float c, float d, float *best)
  {
    const float keep = HK_NOVELTY_FORGET, weight = (float)(1 - (double)HK_NOVELTY_FORGET);
    const float off[4] = { value - a, value - b, value - c, value - d };
    float variance[4];
#pragma unroll
    for (uint32_t j = 0; j < 4; j++) {
      const float part = weight * off[j];
      square[j] = keep * square[j] + part * off[j];
      mean[j] = keep * mean[j] + part;
      variance[j] = square[j] - mean[j] * mean[j];
    }
    *best = nearest_of(*best, off[0], off[1], off[2], off[3]);
    return make_float4(variance[0], variance[1], variance[2], variance[3]);
  }
};

static __device__ __forceinline__ bool run_reaches(float4 variance, int32_t bound)
{
  return least_variance(variance.x, variance.y, variance.z, variance.w) <= bound;
}

/* Brings four lags of a lane, from `place` on, along by the run's points; their samples are values to be compared with, too. The
 * samples of a lag for successive points are successive. Called by all lanes; real: whether these samples are. */
static __device__ __forceinline__ void run_lags_take(struct station *station, uint32_t place, struct lags *lags, bool real)
{
  const uint32_t lane = threadIdx.x % HK_WARP, n = station->n;
  const float *const line = station->found.line;
  float4 now = *(const float4 *)&line[place % HK_LINE];
  uint32_t k = 0;
#pragma unroll 1
  for (; k + 4 <= n; k += 4) {
    const float4 next = *(const float4 *)&line[(place + 4 + k) % HK_LINE];
    const float4 value = *(const float4 *)&station->found.value[k];
    const int4 bound = *(const int4 *)&station->found.shape[k];
    float4 best = station->found.least[k / 4][lane];
    const float4 first = lags->take(value.x, now.x, now.y, now.z, now.w, &best.x);
    const float4 second = lags->take(value.y, now.y, now.z, now.w, next.x, &best.y);
    if (__any_sync(HK_ALL, run_reaches(first, bound.x) || run_reaches(second, bound.y))) {
      run_shape_tell(station, k, place, first);
      run_shape_tell(station, k + 1, place, second);
    }
    const float4 third = lags->take(value.z, now.z, now.w, next.x, next.y, &best.z);
    const float4 fourth = lags->take(value.w, now.w, next.x, next.y, next.z, &best.w);
    if (__any_sync(HK_ALL, run_reaches(third, bound.z) || run_reaches(fourth, bound.w))) {
      run_shape_tell(station, k + 2, place, third);
      run_shape_tell(station, k + 3, place, fourth);
    }
    if (real)
      station->found.least[k / 4][lane] = best;
    now = next;
  }
#pragma unroll 1
  for (; k < n; k++) {
    float best = *run_least(station, k);
    const float4 variance = lags->take(station->found.value[k], now.x, now.y, now.z, now.w, &best);
    if (__any_sync(HK_ALL, run_reaches(variance, station->found.shape[k])))
      run_shape_tell(station, k, place, variance);
    if (real)
      *run_least(station, k) = best;
    now = make_float4(now.y, now.z, now.w, line[(place + 4 + k) % HK_LINE]);
  }
}

/* All lags, and the values that they reach. */
static __device__ __forceinline__ void run_lags(struct station *station, const float *ring)
{
  const struct hk_detector *d = station->view.detector;
  const uint32_t lane = threadIdx.x % HK_WARP, lags = hk_novelty_lags(d), longest = hk_novelty_lag_max(d);
  const int32_t room = (int32_t)hk_detector_span(d), first = (int32_t)station->point->at - (int32_t)longest,
                begin = first + (first < 0 ? room : 0), last = (int32_t)(longest + station->n) - 2;
  float4 *const squares = hk_global((float4 *)station->view.square), *const means = hk_global((float4 *)station->view.mean);
  const uint32_t groups = hk_novelty_column(lags) / 4, chunks = (groups + HK_WARP - 1) / HK_WARP;
  float next[4];
  const auto load = [&](uint32_t chunk) {
#pragma unroll
    for (uint32_t j = 0; j < 4; j++) {
      const int32_t at = begin + min((int32_t)(chunk * HK_CHUNK + j * HK_WARP + lane), last);
      next[j] = ring[at >= room ? at - room : at];
    }
  };
  const auto put = [&](uint32_t chunk) {
#pragma unroll
    for (uint32_t j = 0; j < 4; j++)
      station->found.line[(chunk * HK_CHUNK + j * HK_WARP + lane) % HK_LINE] = next[j];
  };
  float4 square4 = squares[min(lane, groups - 1)], mean4 = means[min(lane, groups - 1)];
  load(0);
  put(0);
  load(1);
#pragma unroll 1
  for (uint32_t chunk = 0; chunk < chunks; chunk++) {
    const uint32_t group = chunk * HK_WARP + lane, later = min(group + HK_WARP, groups - 1);
    put(chunk + 1);
    load(chunk + 2);
    struct lags four = { { square4.x, square4.y, square4.z, square4.w }, { mean4.x, mean4.y, mean4.z, mean4.w } };
    square4 = squares[later];
    mean4 = means[later];
    if (chunk + 1 == chunks) /* behind the last place stand no lags */
#pragma unroll
      for (uint32_t j = 0; j < 4; j++)
        four.square[j] = 4 * group + j < lags ? four.square[j] : INFINITY;
    __syncwarp();
    run_lags_take(station, 4 * group, &four, group < groups);
    if (group < groups) {
      squares[group] = make_float4(four.square[0], four.square[1], four.square[2], four.square[3]);
      means[group] = make_float4(four.mean[0], four.mean[1], four.mean[2], four.mean[3]);
    }
    __syncwarp(); /* the chunk's place is the next but one's */
  }
}

/* Rows, four of a lane. */
struct rows {
  float4 a, b, c;

  /* The least square of their distances from a point's means, or `best`. */
  __device__ __forceinline__ float least(float best, float4 mean, float4 weight) const
  {
    best = least_of(best, square(a.x, b.x, c.x, mean, weight), square(a.y, b.y, c.y, mean, weight));
    return least_of(best, square(a.z, b.z, c.z, mean, weight), square(a.w, b.w, c.w, mean, weight));
  }

  static __device__ __forceinline__ float square(float a, float b, float c, float4 mean, float4 weight)
  {
    const float x = (a - mean.x) * weight.x, y = (b - mean.y) * weight.y, z = (c - mean.z) * weight.z;
    return x * x + y * y + z * z;
  }
};

/* All rows. */
static __device__ __forceinline__ void run_rows(struct station *station)
{
  const struct hk_novelty_view *v = &station->view;
  const struct hk_novelty_point *p = station->point;
  const uint32_t n = station->n, fours = run_fours(station), room = hk_novelty_rows_room(v->detector),
                 lane = threadIdx.x % HK_WARP;
  /* Relative to where the run's first point found the next. */
  const auto to = [&](uint32_t k) {
    const int32_t admitted = (int32_t)p[k].row - (int32_t)p->row;
    return admitted + (admitted < 0 ? (int32_t)room : 0) - 1;
  };
  const auto from = [&](uint32_t k) { return to(k) + 1 - (int32_t)p[k].rows; };
  struct places places(p->row, room, to(n - 1));
  places.take(from(0), to(0));
  places.take(from(n - 1), to(n - 1));
  const uint32_t groups = room / 4;
  const float4 *const first = hk_global((const float4 *)v->row[0]), *const second = hk_global((const float4 *)v->row[1]),
                      *const third = hk_global((const float4 *)v->row[2]);
  struct rows next;
  const auto load = [&](uint32_t group) {
    group = min(group, groups - 1);
    next = { first[group], second[group], third[group] };
    if (!places.whole(places.of((int32_t)(4 * group))))
      next.a.x = next.a.y = next.a.z = next.a.w = INFINITY;
  };
  load(lane);
#pragma unroll 1
  for (uint32_t group = lane; group < groups; group += HK_WARP) {
    const struct rows four = next;
    load(group + HK_WARP);
#pragma unroll 1
    for (uint32_t k = 0; k < fours; k++) {
      const float4 *const mean = &station->found.here[4 * k], *const weight = &station->found.weight[4 * k];
      float4 best = station->found.least[k][lane];
      best.x = four.least(best.x, mean[0], weight[0]);
      best.y = four.least(best.y, mean[1], weight[1]);
      best.z = four.least(best.z, mean[2], weight[2]);
      best.w = four.least(best.w, mean[3], weight[3]);
      station->found.least[k][lane] = best;
    }
  }
  int32_t o;
  for (int32_t i = (int32_t)lane; places.rest(i, &o); i += HK_WARP) {
    const int32_t at = places.place(o);
    const float a = v->row[0][at], b = v->row[1][at], c = v->row[2][at];
#pragma unroll 1
    for (uint32_t k = 0; k < n; k++)
      if (o >= from(k) && o <= to(k))
        *run_least(station, k) =
            fminf(*run_least(station, k), rows::square(a, b, c, station->found.here[k], station->found.weight[k]));
  }
}

/* Lays out what is read of the run's points, and no minima yet. */
static __device__ __forceinline__ void run_begin(struct station *station)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  if (lane < 4 * run_fours(station)) {
    const struct hk_novelty_point *const p = &station->point[min(lane, station->n - 1)];
    station->found.here[lane] = make_float4(p->mean[0], p->mean[1], p->mean[2], p->value);
    station->found.weight[lane] = make_float4(p->weight[0], p->weight[1], p->weight[2], 0);
    station->found.value[lane] = p->value;
    station->found.shape[lane] = __float_as_int(INFINITY);
  }
  for (uint32_t k = 0; k < run_fours(station); k++)
    station->found.least[k][lane] = make_float4(INFINITY, INFINITY, INFINITY, INFINITY);
  __syncwarp();
}

/* The first third of the pass for the run of a sensor all of whose lags count: the values; lags and rows follow. */
static __device__ __noinline__ void run_pass_values(struct station *station)
{
  run_begin(station);
  run_old_values(station, hk_global((const float *)hk_cuda_ring(station->task.record, station->view.detector)));
}

static __device__ __noinline__ void run_pass_lags(struct station *station)
{
  const uint32_t longest = hk_novelty_lag_max(station->view.detector);
  const float *const ring = hk_global((const float *)hk_cuda_ring(station->task.record, station->view.detector));
  run_lags(station, ring);
  run_new_values(station, ring);
#pragma unroll 1
  for (uint32_t k = 0; k < station->n; k++) {
    struct hk_novelty_point *const p = &station->point[k];
    least_tell(p, HK_NOVELTY_VALUE, *run_least(station, k));
    if (threadIdx.x % HK_WARP == 0) {
      p->nearest[HK_NOVELTY_SHAPE] = __int_as_float(station->found.shape[k]);
      p->lag = longest - station->found.place[k];
    }
    *run_least(station, k) = INFINITY;
  }
}

static __device__ __noinline__ void run_pass_rows(struct station *station)
{
  run_rows(station);
#pragma unroll 1
  for (uint32_t k = 0; k < station->n; k++)
    least_tell(&station->point[k], HK_NOVELTY_CONTEXT, *run_least(station, k));
}

#endif
