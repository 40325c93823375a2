/* The passes of algorithm = novelty over what is resident of one sensor, by a block: the distances of cpu/novelty/distances.h,
 * bit for bit. A thread holds a value, row or lag in registers while the points of the run go by. */
#ifndef HK_NOVELTY_PASSES_CUH
#define HK_NOVELTY_PASSES_CUH

#include "cpu/novelty/tail.h"
#include "gpu/backend/device_types.h"

#define HK_WARP 32u
#define HK_ALL 0xffffffffu
#define HK_WARPS 8u /* of a block, and sensors that it has at once */
#define HK_THREADS (HK_WARPS * HK_WARP)
#define HK_BLOCKS 4 /* of a multiprocessor */
#define HK_RUN 8u   /* points of a sensor that share a pass, at most */
#define HK_LISTS (2 * HK_NOVELTY_CHANNELS)

/* Places that a thread has on their way at once, by how many points are held against them: it is their loads that are waited
 * for, and with more points fewer registers are left. Measured: tests/bench/results/cuda-novelty.txt. */
template <uint32_t N> static constexpr uint32_t unroll_values = N == 1 ? 8 : 4;
template <uint32_t N> static constexpr uint32_t unroll_rows = N == 1 ? 4 : 2;
template <uint32_t N> static constexpr uint32_t unroll_lags = N == 1 ? 4 : 2;

/* A sensor at work, its run of points. */
struct seat {
  struct hk_cuda_task task;
  uint32_t at; /* its next point */
  uint32_t n;  /* points of the run under way */
  bool held;   /* the point behind the run's last was taken already */
  struct hk_novelty_view view;
  struct hk_novelty_point point[HK_RUN + 1];
  struct hk_step step[HK_RUN + 1];
  uint32_t index[HK_RUN + 1]; /* in the batch */
  /* Least distance so far, its bits above, below them what it belongs to. */
  unsigned long long least[HK_NOVELTY_CHANNELS][HK_RUN];
  struct hk_novelty_rating rating[HK_RUN][HK_LISTS];
  double usual[HK_RUN][HK_NOVELTY_CHANNELS];
  float floored[HK_RUN][HK_NOVELTY_CHANNELS];
  struct hk_novelty_result result[HK_RUN];
};

/* Takes a warp's least numbers, none of which is negative, to those of the sensor. what: what a lane's belongs to; of equal
 * numbers the least goes. */
static __device__ __forceinline__ void least_take(unsigned long long *least, float mine, uint32_t what)
{
  const uint32_t bits = __float_as_uint(mine), best = __reduce_min_sync(HK_ALL, bits);
  const uint32_t whose = __reduce_min_sync(HK_ALL, bits == best ? what : UINT32_MAX);
  if (threadIdx.x % HK_WARP == 0)
    atomicMin(least, (unsigned long long)best << 32 | whose);
}

/* Passes over the places lowest..highest of a ring with `room` places, counted from `origin` on, that points k are compared with,
 * each with those from[k]..to[k]: body(place, k) for each k with all of them. A thread to a place. Most places belong to all
 * points, and are asked no more; of these UNROLL at a time, since it is their loads that are waited for. */
template <uint32_t N, uint32_t UNROLL, class Load, class Body>
static __device__ __forceinline__ void places_pass(int32_t origin, int32_t room, const int32_t *from, const int32_t *to,
                                                   Load load, Body body)
{
  int32_t lowest = INT32_MAX, highest = INT32_MIN, common = INT32_MIN, shared = INT32_MAX;
#pragma unroll
  for (uint32_t k = 0; k < N; k++) {
    lowest = min(lowest, from[k]);
    highest = max(highest, to[k]);
    common = max(common, from[k]);
    shared = min(shared, to[k]);
  }
  const auto place = [&](int32_t o) {
    int32_t at = origin + o;
    at += at < 0 ? room : 0;
    return at - (at >= room ? room : 0);
  };
  for (int32_t o = common + (int32_t)threadIdx.x; o <= shared; o += (int32_t)(UNROLL * HK_THREADS)) {
    decltype(load(0)) x[UNROLL];
#pragma unroll
    for (uint32_t u = 0; u < UNROLL; u++) /* behind the end the last once more: a minimum does not mind */
      x[u] = load(place(min(o + (int32_t)(u * HK_THREADS), shared)));
#pragma unroll
    for (uint32_t u = 0; u < UNROLL; u++)
#pragma unroll
      for (uint32_t k = 0; k < N; k++)
        body(x[u], k);
  }
  if (N == 1)
    return;
  /* What not all have stands at both ends, a few places. */
  const int32_t below = min(common, highest + 1), above = max(shared + 1, below);
#pragma unroll 1
  for (int32_t o = lowest + (int32_t)threadIdx.x; o <= highest; o += HK_THREADS) {
    if (o >= below && o < above) {
      o += (above - o - 1) / (int32_t)HK_THREADS * (int32_t)HK_THREADS;
      continue;
    }
    const auto x = load(place(o));
#pragma unroll
    for (uint32_t k = 0; k < N; k++)
      if (o >= from[k] && o <= to[k])
        body(x, k);
  }
}

/* The values' pass for up to N points. */
template <uint32_t N> static __device__ __forceinline__ void values_pass(struct seat *seat, const float *ring)
{
  const struct hk_detector *d = seat->view.detector;
  const struct hk_novelty_point *p = seat->point;
  float best[N], value[N];
  int32_t from[N], to[N]; /* places relative to the run's first point */
#pragma unroll
  for (uint32_t k = 0; k < N; k++) {
    const uint32_t own = min(k, seat->n - 1); /* what is behind the last is the last */
    best[k] = INFINITY;
    value[k] = p[own].value;
    to[k] = (int32_t)own - HK_NOVELTY_RECENT;
    from[k] = to[k] + 1 - (int32_t)hk_novelty_values(d, &p[own]);
  }
  places_pass<N, unroll_values<N>>((int32_t)p->at, (int32_t)hk_detector_span(d), from, to, [&](int32_t at) { return ring[at]; },
                                   [&](float x, uint32_t k) { best[k] = fminf(best[k], fabsf(x - value[k])); });
#pragma unroll
  for (uint32_t k = 0; k < N; k++)
    if (k < seat->n)
      least_take(&seat->least[HK_NOVELTY_VALUE][k], best[k], 0);
}

/* The rows' pass, likewise. */
template <uint32_t N> static __device__ __forceinline__ void rows_pass(struct seat *seat)
{
  const struct hk_novelty_view *v = &seat->view;
  const struct hk_novelty_point *p = seat->point;
  const int32_t rows = (int32_t)hk_novelty_rows_room(v->detector);
  float best[N];
  int32_t from[N], to[N]; /* places relative to where the run's first point found the next */
#pragma unroll
  for (uint32_t k = 0; k < N; k++) {
    const uint32_t own = min(k, seat->n - 1);
    const int32_t admitted = (int32_t)p[own].row - (int32_t)p->row;
    best[k] = INFINITY;
    to[k] = admitted + (admitted < 0 ? rows : 0) - 1;
    from[k] = to[k] + 1 - (int32_t)p[own].rows;
  }
  places_pass<N, unroll_rows<N>>((int32_t)p->row, rows, from, to,
                                 [&](int32_t at) { return make_float3(v->row[0][at], v->row[1][at], v->row[2][at]); },
                                 [&](float3 row, uint32_t k) {
                                   const struct hk_novelty_point *q = &p[k];
                                   const float x = (row.x - q->mean[0]) * q->weight[0], y = (row.y - q->mean[1]) * q->weight[1],
                                               z = (row.z - q->mean[2]) * q->weight[2];
                                   best[k] = fminf(best[k], x * x + y * y + z * z);
                                 });
#pragma unroll
  for (uint32_t k = 0; k < N; k++)
    if (k < seat->n)
      least_take(&seat->least[HK_NOVELTY_CONTEXT][k], best[k], 0);
}

/* The lags' pass, likewise. ALL: there are N points, which bring all lags along, and all lags count for them. line: samples, the
 * first of them as many before the run's first point as the longest lag. */
template <uint32_t N, bool ALL> static __device__ __forceinline__ void lags_pass(struct seat *seat, const float *line)
{
  const struct hk_novelty_view *v = &seat->view;
  const struct hk_detector *d = v->detector;
  const struct hk_novelty_point *p = seat->point;
  const uint32_t lags = hk_novelty_lags(d), longest = hk_novelty_lag_max(d), n = ALL ? N : seat->n;
  const float keep = HK_NOVELTY_FORGET, weight = (float)(1 - (double)HK_NOVELTY_FORGET);
  float best[N], value[N];
  uint32_t whose[N];
#pragma unroll
  for (uint32_t k = 0; k < N; k++) {
    best[k] = INFINITY;
    value[k] = p[min(k, n - 1)].value;
    whose[k] = HK_NOVELTY_LAG_MIN;
  }
  constexpr uint32_t UNROLL = ALL ? unroll_lags<N> : 1;
  const uint32_t seen = ALL ? lags : hk_novelty_lags_seen(d, &p[n - 1]);
  float *const squares = v->square, *const means = v->mean;
  for (uint32_t from = threadIdx.x; from < seen; from += UNROLL * HK_THREADS) {
    float square[UNROLL], mean[UNROLL];
#pragma unroll
    for (uint32_t u = 0; u < UNROLL; u++) {
      const uint32_t i = min(from + u * HK_THREADS, seen - 1), place = lags - 1 - i;
      square[u] = squares[place];
      mean[u] = means[place];
    }
#pragma unroll
    for (uint32_t u = 0; u < UNROLL; u++) {
      const uint32_t i = from + u * HK_THREADS, lag = HK_NOVELTY_LAG_MIN + i, place = lags - 1 - i;
      if (i >= seen)
        break;
#pragma unroll
      for (uint32_t k = 0; k < N; k++) {
        if (!ALL && (k >= n || i >= hk_novelty_lags_seen(d, &p[k])))
          continue;
        const float off = value[k] - line[longest + k - lag], part = weight * off;
        square[u] = keep * square[u] + part * off;
        mean[u] = keep * mean[u] + part;
        const float variance = fmaxf(square[u] - mean[u] * mean[u], 0.0f);
        if (variance < best[k] && (ALL || i < hk_novelty_lags_counted(d, &p[k]))) {
          best[k] = variance;
          whose[k] = lag;
        }
      }
      squares[place] = square[u];
      means[place] = mean[u];
    }
  }
#pragma unroll
  for (uint32_t k = 0; k < N; k++)
    if (k < n)
      least_take(&seat->least[HK_NOVELTY_SHAPE][k], best[k], whose[k]);
}

template <uint32_t N> static __device__ __noinline__ void pass(struct seat *seat, const float *ring, const float *line)
{
  const struct hk_detector *d = seat->view.detector;
  const struct hk_novelty_point *p = seat->point;
  values_pass<N>(seat, ring);
  rows_pass<N>(seat);
  /* A later point of a run has seen as much as an earlier one, and more. */
  if (seat->n == N && hk_novelty_lags_seen(d, p) == hk_novelty_lags(d) && hk_novelty_lags_counted(d, p) == hk_novelty_lags(d))
    lags_pass<N, true>(seat, line);
  else
    lags_pass<N, false>(seat, line);
}

/* Copies n places of a ring with `room` places, from `origin` on, which may be negative, to `to`: by the block. */
static __device__ __forceinline__ void places_copy(float *to, const float *ring, int32_t origin, int32_t room, uint32_t n)
{
  constexpr uint32_t UNROLL = 8;
  for (uint32_t from = threadIdx.x; from < n; from += UNROLL * HK_THREADS) {
    float x[UNROLL];
#pragma unroll
    for (uint32_t u = 0; u < UNROLL; u++) {
      int32_t at = origin + (int32_t)min(from + u * HK_THREADS, n - 1);
      at += at < 0 ? room : 0;
      x[u] = ring[at - (at >= room ? room : 0)];
    }
#pragma unroll
    for (uint32_t u = 0; u < UNROLL; u++)
      if (from + u * HK_THREADS < n)
        to[from + u * HK_THREADS] = x[u];
  }
}

/* Least distances of a run's points, by the block, which has waited for the run. */
static __device__ __forceinline__ void distances(struct seat *seat, float *line)
{
  const struct hk_detector *d = seat->view.detector;
  const struct hk_novelty_point *p = seat->point;
  const float *const ring = hk_cuda_ring(seat->task.record, d);
  const uint32_t span = hk_detector_span(d), longest = hk_novelty_lag_max(d), n = seat->n;
  /* The first stands as many before the run's first point as the longest lag; what is older than all is not looked at. */
  places_copy(line, ring, (int32_t)p->at - (int32_t)longest, (int32_t)span, longest + n - 1);
  if (p->age == 0)
    for (uint32_t i = threadIdx.x; i < hk_novelty_lags(d); i += HK_THREADS)
      seat->view.square[i] = seat->view.mean[i] = 0;
  __syncthreads();
  if (n == 1)
    pass<1>(seat, ring, line);
  else if (n <= 4)
    pass<4>(seat, ring, line);
  else
    pass<HK_RUN>(seat, ring, line);
  __syncthreads(); /* the next sensor's line comes in this one's place */
}

#endif
