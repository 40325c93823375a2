/* Makes the sequences of a sensor's Hankel matrices, in shared memory, from its ring: as hk_span_prepare (cpu/rules/window.h),
 * by a group of lanes. */
#ifndef HK_SPAN_CUH
#define HK_SPAN_CUH

#include "gpu/backend/global.cuh"
#include "gpu/sst/lane_group.cuh"

/* A sensor's samples, in device memory. */
struct hk_span {
  const float *ring;
  uint32_t head, samples; /* hk_detector_span; 0: there is no sensor */
  double mean, reference; /* of struct hk_window */
};

/* Reads the 2w - 1 samples from number `from` on; x[n][part] is number part * L / 2 * R + n * L, and the lane's number, 0 from
 * number *reach on. lane: g.lane. */
template <int R, int L, bool F>
static __device__ __forceinline__ void hk_span_read(const hk_group<R, L, F> &g, const hk_span &s, int lane, uint32_t from,
                                                    float (&x)[R / 2][4], int *reach)
{
  const uint32_t begin = s.head + from - (s.head + from < s.samples ? 0 : s.samples);
  const int turn = (int)(s.samples - begin) - lane; /* where the ring wraps around */
  *reach = s.samples ? 2 * (int)g.window - 1 - lane : 0;
  const float *early = s.ring + begin + lane, *late = early - s.samples;
  asm volatile("" : "+l"(early), "+l"(late)); /* addresses, to which a compile-time constant is added, instead of indices */
#pragma unroll
  for (int n = 0; n < R / 2; n++)
#pragma unroll
    for (int part = 0; part < 4; part++) {
      const int i = part * (L / 2 * R) + n * L;
      x[n][part] = i < *reach ? hk_global(i < turn ? early : late)[i] : 0;
    }
}

/* What the samples are centred on, as the detector's scale says. */
template <int R, int L, bool F>
static __device__ __forceinline__ double hk_span_mean(const hk_group<R, L, F> &g, const hk_span &s, const hk_detector &d,
                                                      const float (&x)[R / 2][4])
{
  double mean = d.scale == HK_SCALE_BASELINE ? s.mean : -s.reference;
  if (d.scale == HK_SCALE_WINDOW) {
    double sum = 0;
#pragma unroll
    for (int n = 0; n < R / 2; n++)
      sum += ((double)x[n][0] + (double)x[n][1]) + ((double)x[n][2] + (double)x[n][3]);
#pragma unroll
    for (int lanes = L / 2; lanes > 0; lanes /= 2)
      sum += __shfl_xor_sync(HK_ALL, sum, lanes);
    mean = sum / (2 * g.window - 1);
  }
  return mean;
}

/* |H|_F^2: sample i is on an antidiagonal of w - |i - (w - 1)| elements. */
template <int R, int L, bool F>
static __device__ __forceinline__ float hk_span_energy(const hk_group<R, L, F> &g, int lane, const float (&x)[R / 2][4])
{
  const float up = (float)(lane + 1), down = (float)(2 * (int)g.window - 1 - lane);
  float squares = 0;
#pragma unroll
  for (int n = 0; n < R / 2; n++)
#pragma unroll
    for (int part = 0; part < 4; part++) {
      const float i = (float)(part * (L / 2 * R) + n * L); /* and the lane's number */
      squares = fmaf(fminf(up + i, down - i) * x[n][part], x[n][part], squares);
    }
  return hk_group_sum(g, squares);
}

/* Centres and scales the 2w - 1 samples from number `from` on and lays them out for hk_group_product; zeros without a sensor.
 * *energy: |H|_F^2 of the result, if `measure`. *top: largest magnitude after centring. *held: becomes at least the largest
 * magnitude before. */
template <int R, int L, bool F>
static __device__ __forceinline__ void hk_span_lay_out(const hk_group<R, L, F> &g, const hk_span &s, const hk_detector &d,
                                                       uint32_t from, bool measure, float *energy, float *top, float *held)
{
  int lane = (int)g.lane;
  asm volatile("" : "+r"(lane)); /* values derived from it are cheaper to compute each time than to keep for the next sensor */
  int reach;
  float x[R / 2][4], raw = 0;
  hk_span_read(g, s, lane, from, x, &reach);
  const double mean = hk_span_mean(g, s, d, x);
  /* In two steps, whose only error is the rounding of the result: where x and mean are close, x - coarse is exact. */
  const float coarse = (float)mean, fine = (float)(mean - (double)coarse);
  float size = 0;
#pragma unroll
  for (int n = 0; n < R / 2; n++)
#pragma unroll
    for (int part = 0; part < 4; part++) {
      const int i = part * (L / 2 * R) + n * L;
      raw = fmaxf(raw, fabsf(x[n][part]));
      x[n][part] = i < reach ? x[n][part] - coarse - fine : 0;
      size = fmaxf(size, fabsf(x[n][part]));
    }
  *held = fmaxf(*held, hk_group_max(g, raw));
  *top = size = hk_group_max(g, size);
  /* a power of two that scales `size` to [1/2, 1); a size for which this exceeds float32 counts as zero anyway */
  float factor = size > 0x1p-100f ? __uint_as_float((253u << 23) - (__float_as_uint(size) & 0x7f800000u)) : 1;
  asm volatile("" : "+f"(factor)); /* one copy of the following code for all cases */
#pragma unroll
  for (int n = 0; n < R / 2; n++)
#pragma unroll
    for (int part = 0; part < 4; part++)
      x[n][part] *= factor;
  if (measure)
    *energy = hk_span_energy(g, lane, x);
  hk_group_lay_out(g, x);
}

/* Finds the largest magnitude of the samples between past and present, which neither of them contains. */
template <int R, int L, bool F>
static __device__ __forceinline__ float hk_span_between(const hk_group<R, L, F> &g, const hk_span &s, uint32_t gap)
{
  float held = 0;
  for (uint32_t i = 2 * g.window - 1 + g.lane; i < gap; i += L) { /* past ends before 2w - 1, present begins at gap */
    const uint32_t at = s.head + i;
    held = fmaxf(held, i < s.samples ? fabsf(s.ring[at < s.samples ? at : at - s.samples]) : 0);
  }
  return hk_group_max(g, held);
}

#endif
