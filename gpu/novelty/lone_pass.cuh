/* The passes for a lone point of a sensor, by a warp: what is resident is read once for it, and it is the memory that is waited
 * for. So a lane has many places on their way at once, and all that it has found in registers. */
#ifndef HK_NOVELTY_LONE_PASS_CUH
#define HK_NOVELTY_LONE_PASS_CUH

#include "gpu/novelty/station.cuh"

#define HK_LONE_VALUES 4u /* groups of four places that a lane has on their way */
#define HK_LONE_ROWS 3u

/* The least distance to all values that are old enough. */
static __device__ __forceinline__ float lone_values(const struct turn *turn, const float *ring, float value)
{
  const struct hk_detector *d = turn->view.detector;
  const struct hk_novelty_point *p = turn->point;
  const uint32_t lane = threadIdx.x % HK_WARP;
  const int32_t newest = -HK_NOVELTY_RECENT;
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

/* The least square of a distance to rows. */
static __device__ __forceinline__ float lone_rows(const struct turn *turn)
{
  const struct hk_novelty_view *v = &turn->view;
  const struct hk_novelty_point *p = turn->point;
  const uint32_t room = hk_novelty_rows_room(v->detector), lane = threadIdx.x % HK_WARP;
  struct places places(p->row, room, -1); /* relative to the place of the next row */
  places.take(-(int32_t)p->rows, -1);
  const float m0 = p->mean[0], m1 = p->mean[1], m2 = p->mean[2], w0 = p->weight[0], w1 = p->weight[1], w2 = p->weight[2];
  const auto square = [&](float a, float b, float c) {
    const float x = (a - m0) * w0, y = (b - m1) * w1, z = (c - m2) * w2;
    return hk_fused(z, z, hk_fused(y, y, x * x));
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

/* The lone point of a grown sensor. */
template <class DESK> static __device__ __noinline__ void lone_pass(const struct turn *turn, DESK *lags)
{
  const float *const ring = hk_global((const float *)hk_cuda_ring(turn->record, turn->view.detector));
  least_tell(turn->point, HK_NOVELTY_VALUE, lone_values(turn, ring, turn->point->value));
  if (hk_novelty_value_alone(turn->view.detector))
    return;
  lags_pass(turn, lags);
  least_tell(turn->point, HK_NOVELTY_CONTEXT, lone_rows(turn));
}

#endif
