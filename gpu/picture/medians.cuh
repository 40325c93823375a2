/* Medians of 3 x 3 and 5 x 5 of a strip, by the networks that the host has. All lanes of a warp call these together. */
#ifndef HK_PICTURE_MEDIANS_CUH
#define HK_PICTURE_MEDIANS_CUH

#include "gpu/picture/pixels.cuh"

static __device__ __forceinline__ uint32_t lesser(uint32_t a, uint32_t b)
{
  return __vminu2(a, b);
}
static __device__ __forceinline__ uint32_t greater(uint32_t a, uint32_t b)
{
  return __vmaxu2(a, b);
}
static __device__ __forceinline__ float lesser(float a, float b)
{
  return fminf(a, b);
}
static __device__ __forceinline__ float greater(float a, float b)
{
  return fmaxf(a, b);
}

#define HK_MEDIAN_TYPE NUMBER
#define HK_MEDIAN_MIN lesser
#define HK_MEDIAN_MAX greater
#include "cpu/picture/median.h"

/* Numbers of the columns -REACH..REACH around those of word k: of a lane's own words, and of the lanes beside. */
template <int REACH_OF>
static __device__ __forceinline__ void pixels_around(uint32_t (&out)[2][2 * REACH_OF + 1], const uint32_t (&x)[2])
{
  const uint32_t left = __shfl_up_sync(ALL, x[1], 1), right = __shfl_down_sync(ALL, x[0], 1);
  const uint32_t a = __byte_perm(left, x[0], 0x5432), b = __byte_perm(x[0], x[1], 0x5432), c = __byte_perm(x[1], right, 0x5432);
  out[0][REACH_OF - 1] = a;
  out[0][REACH_OF] = x[0];
  out[0][REACH_OF + 1] = b;
  out[1][REACH_OF - 1] = b;
  out[1][REACH_OF] = x[1];
  out[1][REACH_OF + 1] = c;
  if (REACH_OF == 2) {
    out[0][0] = left;
    out[0][2 * REACH_OF] = x[1];
    out[1][0] = x[0];
    out[1][2 * REACH_OF] = right;
  }
}

template <int REACH_OF>
static __device__ __forceinline__ void pixels_around(float (&out)[4][2 * REACH_OF + 1], const float (&x)[4])
{
  float all[4 + 2 * REACH_OF];
#pragma unroll
  for (int k = 0; k < REACH_OF; k++) {
    all[k] = __shfl_up_sync(ALL, x[4 - REACH_OF + k], 1);
    all[REACH_OF + 4 + k] = __shfl_down_sync(ALL, x[k], 1);
  }
#pragma unroll
  for (int k = 0; k < 4; k++)
    all[REACH_OF + k] = x[k];
#pragma unroll
  for (int k = 0; k < 4; k++)
#pragma unroll
    for (int j = 0; j < 2 * REACH_OF + 1; j++)
      out[k][j] = all[k + j];
}

/* Medians of the rows x[0..MEDIAN-1]. */
template <typename P, int MEDIAN>
static __device__ __forceinline__ void strip_medians(typename P::number (&y)[P::WORDS],
                                                     const typename P::number (&x)[MEDIAN][P::WORDS])
{
  typedef typename P::number NUMBER;
  NUMBER sorted[MEDIAN][P::WORDS], near[MEDIAN][P::WORDS][MEDIAN];
#pragma unroll
  for (int k = 0; k < P::WORDS; k++) {
    NUMBER column[MEDIAN];
#pragma unroll
    for (int j = 0; j < MEDIAN; j++)
      column[j] = x[j][k];
    if constexpr (MEDIAN == 3)
      HK_SORT_3(column);
    else
      HK_SORT_5(column);
#pragma unroll
    for (int j = 0; j < MEDIAN; j++)
      sorted[j][k] = column[j];
  }
#pragma unroll
  for (int j = 0; j < MEDIAN; j++)
    pixels_around<MEDIAN / 2>(near[j], sorted[j]);
#pragma unroll
  for (int k = 0; k < P::WORDS; k++)
    if constexpr (MEDIAN == 3) {
      NUMBER of[3][3];
#pragma unroll
      for (int j = 0; j < 9; j++)
        of[j / 3][j % 3] = near[j % 3][k][j / 3];
      y[k] = HK_MEDIAN_9(of[0], of[1], of[2]);
    } else {
      NUMBER of[25];
#pragma unroll
      for (int j = 0; j < 25; j++)
        of[j] = near[j / 5][k][j % 5];
      HK_MEDIAN_25(of);
      y[k] = of[12];
    }
}

/* The median of those of n numbers that are no NaN: the lower middle one of an even number; NaN if there is none. */
static __device__ __noinline__ float median_of_those_there(const float *x, int n)
{
  int there = 0;
  for (int k = 0; k < n; k++)
    there += x[k] == x[k];
  for (int k = 0; k < n; k++) {
    int below = 0;
    for (int j = 0; j < n; j++)
      below += x[j] < x[k] || (x[j] == x[k] && j < k);
    if (x[k] == x[k] && below == (there - 1) / 2)
      return x[k];
  }
  return __int_as_float(0x7fffffff);
}

/* Computes medians near missing pixels again. All lanes of a warp call it. */
template <int MEDIAN> static __device__ __noinline__ void mend_near_missing(float (&y)[4], const float (&x)[MEDIAN][4])
{
  float of[4][MEDIAN * MEDIAN];
#pragma unroll
  for (int k = 0; k < MEDIAN; k++) {
    float near[4][MEDIAN];
    pixels_around<MEDIAN / 2>(near, x[k]);
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int i = 0; i < MEDIAN; i++)
        of[j][MEDIAN * k + i] = near[j][i];
  }
  for (int j = 0; j < 4; j++)
    y[j] = median_of_those_there(of[j], MEDIAN * MEDIAN);
}

template <int MEDIAN> static __device__ __forceinline__ void medians_mend(uint32_t (&y)[2], const uint32_t (&x)[MEDIAN][2])
{
  (void)y, (void)x; /* none is missing */
}

template <int MEDIAN> static __device__ __forceinline__ void medians_mend(float (&y)[4], const float (&x)[MEDIAN][4])
{
  bool missing = false;
#pragma unroll
  for (int k = 0; k < MEDIAN; k++)
#pragma unroll
    for (int j = 0; j < 4; j++)
      missing |= x[k][j] != x[k][j];
  if (!__any_sync(ALL, missing))
    return;
  float copy[MEDIAN][4], mended[4]; /* whose addresses are taken, so that x and y stay in registers */
#pragma unroll
  for (int k = 0; k < MEDIAN; k++)
#pragma unroll
    for (int j = 0; j < 4; j++)
      copy[k][j] = x[k][j];
  mend_near_missing<MEDIAN>(mended, copy);
#pragma unroll
  for (int j = 0; j < 4; j++)
    y[j] = mended[j];
}

#endif
