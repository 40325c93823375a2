/* The passes for a run of points of one sensor, by a warp. Each group of four places stands in a lane's registers while all
 * points of the run go by; D and M of a lag are read and written once for all of them.
 *
 * Loops over points are not unrolled, and what a point has found lies in shared memory: that keeps the code short. Warps stand at
 * different places of it, and what they wait for is instructions, once it is long (tests/bench/results/cuda-novelty.txt). */
#ifndef HK_NOVELTY_RUN_PASS_CUH
#define HK_NOVELTY_RUN_PASS_CUH

#include "gpu/novelty/station.cuh"

#define HK_RUN_VALUES 4u /* groups of four values, and of rows, that a lane holds */
#define HK_RUN_ROWS 2u

/* Where a sample of the line stands: lanes ask for samples four apart, so one number is left out behind 32, and no two lanes ask
 * the same bank. */
static __device__ __forceinline__ uint32_t run_line_at(uint32_t i)
{
  return i % HK_LINE + i % HK_LINE / HK_WARP;
}

/* Values that are older than the longest lag. */
static __device__ __forceinline__ void run_old_values(struct station *station, const float *ring)
{
  const struct hk_detector *d = station->view.detector;
  const struct hk_novelty_point *p = station->point;
  const uint32_t n = station->n, lane = threadIdx.x % HK_WARP;
  const int32_t longest = (int32_t)hk_novelty_lag_max(d);
  const auto from = [&](uint32_t k) { return (int32_t)k - HK_NOVELTY_RECENT + 1 - (int32_t)hk_novelty_values(d, &p[k]); };
  struct places places(p->at, hk_detector_span(d), (int32_t)n - 1);
  places.take(from(0), -longest - 1);
  places.take(from(n - 1), (int32_t)n - 1 - longest - 1);
  const uint32_t groups = (uint32_t)places.room / 4;
  const float4 *const fours = (const float4 *)ring;
  /* The groups of the range, which may go round the end of the ring. */
  const uint32_t first = (uint32_t)places.place(places.common) / 4, count = (uint32_t)(places.shared - places.common + 4) / 4 + 1;
#pragma unroll 1
  for (uint32_t begin = lane; begin < count; begin += HK_RUN_VALUES * HK_WARP) {
    float4 x[HK_RUN_VALUES];
    uint32_t group[HK_RUN_VALUES];
#pragma unroll
    for (uint32_t u = 0; u < HK_RUN_VALUES; u++) { /* behind the end the last once more: a minimum does not mind */
      group[u] = first + min(begin + u * HK_WARP, count - 1);
      group[u] -= group[u] >= groups ? groups : 0;
      x[u] = fours[group[u]];
    }
#pragma unroll
    for (uint32_t u = 0; u < HK_RUN_VALUES; u++)
      if (!places.whole(places.of((int32_t)(4 * group[u]))))
        x[u] = make_float4(INFINITY, INFINITY, INFINITY, INFINITY);
#pragma unroll 1
    for (uint32_t k = 0; k < n; k++) {
      const float value = station->found.here[k].w;
      float best = station->found.least[k][lane];
#pragma unroll
      for (uint32_t u = 0; u < HK_RUN_VALUES; u++)
        best = nearest_of(best, x[u].x - value, x[u].y - value, x[u].z - value, x[u].w - value);
      station->found.least[k][lane] = best;
    }
  }
  int32_t o;
  if (places.rest((int32_t)lane, &o)) {
    const float x = ring[places.place(o)];
#pragma unroll 1
    for (uint32_t k = 0; k < n; k++)
      if (o >= from(k) && o <= (int32_t)k - longest - 1)
        station->found.least[k][lane] = fminf(station->found.least[k][lane], fabsf(x - p[k].value));
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
        station->found.least[k][lane] = fminf(station->found.least[k][lane], fabsf(x - p[k].value));
  }
}

/* Notes a variance that is at most the least so far of a point. Of equal ones the shortest lag counts, which comes later. Rare.
 */
static __device__ __noinline__ void run_shape_tell(struct station *station, uint32_t k, uint32_t place, float4 variance,
                                                   int32_t mine)
{
  const int32_t least = (int32_t)__reduce_min_sync(HK_ALL, (uint32_t)mine);
  const float bound = __int_as_float(least);
  uint32_t at = 0;
  if (mine == least)
    at = place + 1 + (variance.w <= bound ? 3 : variance.z <= bound ? 2 : variance.y <= bound ? 1 : 0);
  at = __reduce_max_sync(HK_ALL, at);
  if (threadIdx.x % HK_WARP == 0) {
    station->found.shape[k] = least;
    station->found.place[k] = at - 1;
  }
  __syncwarp();
}

/* Brings four lags of a lane, from `place` on, along by the run's points; their samples are values to be compared with, too. The
 * sample of a lag for one point is that of the lag before it for the next, so four stand in registers. Called by all lanes;
 * `lags` counts those that there are. */
static __device__ __forceinline__ void run_lags_take(struct station *station, uint32_t place, uint32_t lags, float *square,
                                                     float *mean)
{
  const float keep = HK_NOVELTY_FORGET, weight = (float)(1 - (double)HK_NOVELTY_FORGET);
  const uint32_t lane = threadIdx.x % HK_WARP, n = station->n;
  const bool real = place < hk_novelty_column(lags);
  float sample[4];
#pragma unroll
  for (uint32_t j = 0; j < 4; j++) {
    sample[j] = station->found.line[run_line_at(place + j)];
    square[j] =
        place + j < lags ? square[j] : INFINITY; /* behind the last place stand no lags, and values that count all the same */
  }
#pragma unroll 1
  for (uint32_t k = 0; k < n; k++) {
    const float value = station->found.here[k].w, nearest = station->found.least[k][lane];
    const int32_t bound = station->found.shape[k];
    float off[4], variance[4];
#pragma unroll
    for (uint32_t j = 0; j < 4; j++) {
      off[j] = value - sample[j];
      const float part = weight * off[j];
      square[j] = keep * square[j] + part * off[j];
      mean[j] = keep * mean[j] + part;
      variance[j] = square[j] - mean[j] * mean[j];
    }
    if (real)
      station->found.least[k][lane] = nearest_of(nearest, off[0], off[1], off[2], off[3]);
    const int32_t least = least_variance(variance[0], variance[1], variance[2], variance[3]);
    if (__any_sync(HK_ALL, least <= bound))
      run_shape_tell(station, k, place, make_float4(variance[0], variance[1], variance[2], variance[3]), least);
    sample[0] = sample[1];
    sample[1] = sample[2];
    sample[2] = sample[3];
    sample[3] = station->found.line[run_line_at(place + 4 + k)];
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
      station->found.line[run_line_at(chunk * HK_CHUNK + j * HK_WARP + lane)] = next[j];
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
    float square[4] = { square4.x, square4.y, square4.z, square4.w };
    float mean[4] = { mean4.x, mean4.y, mean4.z, mean4.w };
    square4 = squares[later];
    mean4 = means[later];
    __syncwarp();
    run_lags_take(station, 4 * group, lags, square, mean);
    if (group < groups) {
      squares[group] = make_float4(square[0], square[1], square[2], square[3]);
      means[group] = make_float4(mean[0], mean[1], mean[2], mean[3]);
    }
    __syncwarp(); /* the chunk's place is the next but one's */
  }
}

/* All rows. */
static __device__ __forceinline__ void run_rows(struct station *station)
{
  const struct hk_novelty_view *v = &station->view;
  const struct hk_novelty_point *p = station->point;
  const uint32_t n = station->n, room = hk_novelty_rows_room(v->detector), lane = threadIdx.x % HK_WARP;
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
  const auto square = [&](float a, float b, float c, float4 mean, float4 weight) {
    const float x = (a - mean.x) * weight.x, y = (b - mean.y) * weight.y, z = (c - mean.z) * weight.z;
    return x * x + y * y + z * z;
  };
#pragma unroll 1
  for (uint32_t begin = lane; begin < groups; begin += HK_RUN_ROWS * HK_WARP) {
    float4 a[HK_RUN_ROWS], b[HK_RUN_ROWS], c[HK_RUN_ROWS];
#pragma unroll
    for (uint32_t u = 0; u < HK_RUN_ROWS; u++) {
      const uint32_t at = min(begin + u * HK_WARP, groups - 1);
      a[u] = first[at];
      b[u] = second[at];
      c[u] = third[at];
      if (!places.whole(places.of((int32_t)(4 * at))))
        a[u] = make_float4(INFINITY, INFINITY, INFINITY, INFINITY);
    }
#pragma unroll 1
    for (uint32_t k = 0; k < n; k++) {
      const float4 mean = station->found.here[k], weight = station->found.weight[k];
      float best = station->found.least[k][lane];
#pragma unroll
      for (uint32_t u = 0; u < HK_RUN_ROWS; u++) {
        best = least_of(best, square(a[u].x, b[u].x, c[u].x, mean, weight), square(a[u].y, b[u].y, c[u].y, mean, weight));
        best = least_of(best, square(a[u].z, b[u].z, c[u].z, mean, weight), square(a[u].w, b[u].w, c[u].w, mean, weight));
      }
      station->found.least[k][lane] = best;
    }
  }
  int32_t o;
  if (places.rest((int32_t)lane, &o)) {
    const int32_t at = places.place(o);
    const float a = v->row[0][at], b = v->row[1][at], c = v->row[2][at];
#pragma unroll 1
    for (uint32_t k = 0; k < n; k++)
      if (o >= from(k) && o <= to(k))
        station->found.least[k][lane] =
            fminf(station->found.least[k][lane], square(a, b, c, station->found.here[k], station->found.weight[k]));
  }
}

/* Lays out what is read of the run's points, and no minima yet. */
static __device__ __forceinline__ void run_begin(struct station *station)
{
  const uint32_t lane = threadIdx.x % HK_WARP;
  if (lane < station->n) {
    const struct hk_novelty_point *const p = &station->point[lane];
    station->found.here[lane] = make_float4(p->mean[0], p->mean[1], p->mean[2], p->value);
    station->found.weight[lane] = make_float4(p->weight[0], p->weight[1], p->weight[2], 0);
    station->found.shape[lane] = __float_as_int(INFINITY);
  }
  for (uint32_t k = 0; k < station->n; k++)
    station->found.least[k][lane] = INFINITY;
  __syncwarp();
}

/* The run of a sensor all of whose lags count. */
static __device__ __noinline__ void run_pass(struct station *station)
{
  const uint32_t lane = threadIdx.x % HK_WARP, longest = hk_novelty_lag_max(station->view.detector);
  const float *const ring = hk_global((const float *)hk_cuda_ring(station->task.record, station->view.detector));
  run_begin(station);
  run_old_values(station, ring);
  run_lags(station, ring);
  run_new_values(station, ring);
#pragma unroll 1
  for (uint32_t k = 0; k < station->n; k++) {
    struct hk_novelty_point *const p = &station->point[k];
    least_tell(p, HK_NOVELTY_VALUE, station->found.least[k][lane]);
    if (lane == 0) {
      p->nearest[HK_NOVELTY_SHAPE] = __int_as_float(station->found.shape[k]);
      p->lag = longest - station->found.place[k];
    }
    station->found.least[k][lane] = INFINITY;
  }
  run_rows(station);
#pragma unroll 1
  for (uint32_t k = 0; k < station->n; k++)
    least_tell(&station->point[k], HK_NOVELTY_CONTEXT, station->found.least[k][lane]);
}

#endif
