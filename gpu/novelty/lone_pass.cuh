/* The passes for a lone point of a sensor, by a warp: what is resident is read once for it, and it is the memory that is waited
 * for. So a lane has many places on their way at once, and all that it has found in registers. */
#ifndef HK_NOVELTY_LONE_PASS_CUH
#define HK_NOVELTY_LONE_PASS_CUH

#include "gpu/novelty/station.cuh"

#define HK_LONE_VALUES 4u /* groups of four places that a lane has on their way */
#define HK_LONE_ROWS 3u

/* The least distance to values that are older than the line. */
static __device__ __forceinline__ float lone_old_values(const struct station *station, const float *ring, float value)
{
  const struct hk_detector *d = station->view.detector;
  const struct hk_novelty_point *p = station->point;
  const uint32_t lane = threadIdx.x % HK_WARP;
  const int32_t newest = -(int32_t)hk_novelty_lag_max(d) - 1;
  struct places places(p->at, hk_detector_span(d), 0);
  places.take(1 - HK_NOVELTY_RECENT - (int32_t)hk_novelty_values(d, p), newest);
  const uint32_t groups = (uint32_t)places.room / 4;
  const float4 *const fours = (const float4 *)ring;
  /* The groups of the range, which may go round the end of the ring. */
  const uint32_t first = (uint32_t)places.place(places.common) / 4, count = (uint32_t)(newest - places.common + 4) / 4 + 1;
  float best = INFINITY;
  for (uint32_t begin = lane; begin < count; begin += HK_LONE_VALUES * HK_WARP) {
    float4 x[HK_LONE_VALUES];
    uint32_t group[HK_LONE_VALUES];
#pragma unroll
    for (uint32_t u = 0; u < HK_LONE_VALUES; u++) { /* behind the end the last once more: a minimum does not mind */
      group[u] = first + min(begin + u * HK_WARP, count - 1);
      group[u] -= group[u] >= groups ? groups : 0;
      x[u] = fours[group[u]];
    }
#pragma unroll
    for (uint32_t u = 0; u < HK_LONE_VALUES; u++)
      if (places.whole(places.of((int32_t)(4 * group[u]))))
        best = nearer(best, x[u], value);
  }
  int32_t o;
  if (places.rest((int32_t)lane, &o))
    best = fminf(best, fabsf(ring[places.place(o)] - value));
  return best;
}

/* The line, of which a warp has a chunk in shared memory, and in registers the next. */
struct lone_line {
  const float *ring;
  int32_t begin, room, longest; /* `longest` samples */

  __device__ __forceinline__ void load(uint32_t chunk, float *x) const
  {
#pragma unroll
    for (uint32_t j = 0; j < 4; j++) {
      const int32_t i = (int32_t)(chunk * HK_CHUNK + j * HK_WARP + threadIdx.x % HK_WARP), at = begin + min(i, longest - 1);
      x[j] = ring[at >= room ? at - room : at];
    }
  }

  /* Puts a chunk into shared memory. Returns the least distance to its values, or `best`. */
  __device__ __forceinline__ float put(uint32_t chunk, const float *x, float *line, float value, float best) const
  {
    const uint32_t first = chunk * HK_CHUNK, lane = threadIdx.x % HK_WARP;
    float *const to = line + first % HK_LINE + lane;
#pragma unroll
    for (uint32_t j = 0; j < 4; j++)
      to[j * HK_WARP] = x[j];
    if ((int32_t)(first + HK_CHUNK) - 1 - longest <= -HK_NOVELTY_RECENT)
      return nearer(best, make_float4(x[0], x[1], x[2], x[3]), value);
#pragma unroll
    for (uint32_t j = 0; j < 4; j++) /* the newest are not compared */
      if ((int32_t)(first + j * HK_WARP + lane) - longest <= -HK_NOVELTY_RECENT)
        best = fminf(best, fabsf(x[j] - value));
    return best;
  }
};

/* The values of the line, and all lags. Returns the least distance to the values, or `nearest`. */
static __device__ __forceinline__ float lone_lags(struct station *station, const float *ring, float value, float nearest)
{
  const struct hk_detector *d = station->view.detector;
  const uint32_t lane = threadIdx.x % HK_WARP, lags = hk_novelty_lags(d), longest = hk_novelty_lag_max(d);
  const float keep = HK_NOVELTY_FORGET, weight = (float)(1 - (double)HK_NOVELTY_FORGET);
  struct lone_line line = { ring, (int32_t)station->point->at - (int32_t)longest, (int32_t)hk_detector_span(d),
                            (int32_t)longest };
  line.begin += line.begin < 0 ? line.room : 0;
  float4 *const squares = hk_global((float4 *)station->view.square), *const means = hk_global((float4 *)station->view.mean);
  const uint32_t groups = hk_novelty_column(lags) / 4, chunks = (longest + HK_CHUNK - 1) / HK_CHUNK;
  float next[4], best = INFINITY;
  uint32_t where = lags - 1; /* the place of the least */
  float4 square4 = squares[min(lane, groups - 1)], mean4 = means[min(lane, groups - 1)];
  line.load(0, next);
  nearest = line.put(0, next, station->found.line, value, nearest);
  line.load(1, next);
#pragma unroll 1
  for (uint32_t chunk = 0; chunk < chunks; chunk++) {
    if (chunk + 1 < chunks)
      nearest = line.put(chunk + 1, next, station->found.line, value, nearest);
    if (chunk + 2 < chunks)
      line.load(chunk + 2, next);
    const uint32_t group = chunk * HK_WARP + lane, place = 4 * group, later = min(group + HK_WARP, groups - 1);
    const uint32_t real = place < lags ? lags - place : 0; /* behind the last place stand no lags */
    float square[4] = { square4.x, square4.y, square4.z, square4.w };
    float mean[4] = { mean4.x, mean4.y, mean4.z, mean4.w };
    square4 = squares[later];
    mean4 = means[later];
    __syncwarp();
    const float4 four = *(const float4 *)(station->found.line + place % HK_LINE);
    const float sample[4] = { four.x, four.y, four.z, four.w };
#pragma unroll
    for (uint32_t j = 0; j < 4; j++) {
      const float off = value - sample[j], part = weight * off;
      square[j] = keep * square[j] + part * off;
      mean[j] = keep * mean[j] + part;
      const float variance = fmaxf(square[j] - mean[j] * mean[j], 0.0f);
      if (variance <= best && j < real) {
        best = variance; /* of equal ones the shortest lag, which comes later */
        where = place + j;
      }
    }
    if (group < groups) {
      squares[group] = make_float4(square[0], square[1], square[2], square[3]);
      means[group] = make_float4(mean[0], mean[1], mean[2], mean[3]);
    }
    __syncwarp(); /* the chunk's place is the next but one's */
  }
  const uint32_t least = least_tell(station->point, HK_NOVELTY_SHAPE, best);
  where = __reduce_max_sync(HK_ALL, __float_as_uint(best) == least ? where : 0);
  if (lane == 0)
    station->point->lag = longest - where;
  return nearest;
}

/* The least square of a distance to rows. */
static __device__ __forceinline__ float lone_rows(const struct station *station)
{
  const struct hk_novelty_view *v = &station->view;
  const struct hk_novelty_point *p = station->point;
  const uint32_t room = hk_novelty_rows_room(v->detector), lane = threadIdx.x % HK_WARP;
  struct places places(p->row, room, -1); /* relative to the place of the next row */
  places.take(-(int32_t)p->rows, -1);
  const float m0 = p->mean[0], m1 = p->mean[1], m2 = p->mean[2], w0 = p->weight[0], w1 = p->weight[1], w2 = p->weight[2];
  const auto square = [&](float a, float b, float c) {
    const float x = (a - m0) * w0, y = (b - m1) * w1, z = (c - m2) * w2;
    return x * x + y * y + z * z;
  };
  const uint32_t groups = room / 4;
  const float4 *const first = hk_global((const float4 *)v->row[0]), *const second = hk_global((const float4 *)v->row[1]),
                      *const third = hk_global((const float4 *)v->row[2]);
  float best = INFINITY;
  for (uint32_t begin = lane; begin < groups; begin += HK_LONE_ROWS * HK_WARP) {
    float4 a[HK_LONE_ROWS], b[HK_LONE_ROWS], c[HK_LONE_ROWS];
#pragma unroll
    for (uint32_t u = 0; u < HK_LONE_ROWS; u++) {
      const uint32_t at = min(begin + u * HK_WARP, groups - 1);
      a[u] = first[at];
      b[u] = second[at];
      c[u] = third[at];
    }
#pragma unroll
    for (uint32_t u = 0; u < HK_LONE_ROWS; u++)
      if (places.whole(places.of((int32_t)(4 * min(begin + u * HK_WARP, groups - 1))))) {
        const float x = fminf(square(a[u].x, b[u].x, c[u].x), square(a[u].y, b[u].y, c[u].y)),
                    y = fminf(square(a[u].z, b[u].z, c[u].z), square(a[u].w, b[u].w, c[u].w));
        best = fminf(best, fminf(x, y));
      }
  }
  int32_t o;
  if (places.rest((int32_t)lane, &o)) {
    const int32_t at = places.place(o);
    best = fminf(best, square(v->row[0][at], v->row[1][at], v->row[2][at]));
  }
  return best;
}

/* The lone point of a sensor all of whose lags count. */
static __device__ __noinline__ void lone_pass(struct station *station)
{
  const float *const ring = hk_global((const float *)hk_cuda_ring(station->task.record, station->view.detector));
  const float value = station->point->value;
  const float nearest = lone_lags(station, ring, value, lone_old_values(station, ring, value));
  least_tell(station->point, HK_NOVELTY_VALUE, nearest);
  least_tell(station->point, HK_NOVELTY_CONTEXT, lone_rows(station));
}

#endif
