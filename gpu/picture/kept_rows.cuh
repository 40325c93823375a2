/* What is subtracted from a row, of a strip. All lanes of a warp call these together. */
#ifndef HK_PICTURE_KEPT_ROWS_CUH
#define HK_PICTURE_KEPT_ROWS_CUH

#include "gpu/picture/pixels.cuh"

#define REACH 7  /* of the box of 15 x 15 */
#define RING 16u /* rows, of which 2 REACH + 1 are needed */

/* n / 225 of a whole number, rounded as a division: by the reciprocal, and a step of Newton's with the exact remainder. */
static __device__ __forceinline__ float by_225(float n)
{
  const float inverse = 1.0f / 225.0f, q = n * inverse;
  return __fmaf_rn(__fmaf_rn(-225.0f, q, n), inverse, q);
}

/* Rows that are needed again, of a lane; `memory`: of a warp, in which a lane reads nothing but what it has written itself.
 * put(h, y, q, give) takes row q of y and, if asked for, gives the row of h that is REACH, or one, above. This one: nothing is
 * subtracted. */
template <typename P, int SUBTRACT> struct rows_kept {
  struct memory {
  };
  __device__ __forceinline__ void begin(struct memory *, uint32_t) {}
  __device__ __forceinline__ void put(float (&h)[4], const float (&y)[4], int32_t, bool)
  {
    for (int j = 0; j < 4; j++)
      h[j] = y[j];
  }
};

template <typename P> struct rows_kept<P, HK_PICTURE_LAPLACIAN> {
  struct memory {
  };
  float above[4], at[4];
  __device__ __forceinline__ void begin(struct memory *, uint32_t)
  {
    for (int j = 0; j < 4; j++)
      at[j] = 0;
  }
  __device__ __forceinline__ void put(float (&h)[4], const float (&y)[4], int32_t, bool give)
  {
    if (give) {
      const float left = __shfl_up_sync(ALL, at[3], 1), right = __shfl_down_sync(ALL, at[0], 1);
#pragma unroll
      for (int j = 0; j < 4; j++)
        h[j] = (4 * at[j] - (above[j] + y[j])) - ((j > 0 ? at[j - 1] : left) + (j < 3 ? at[j + 1] : right));
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
      above[j] = at[j];
      at[j] = y[j];
    }
  }
};

template <int BYTES> struct rows_kept<whole<BYTES>, HK_PICTURE_BOX> {
  struct memory {
    float4 ring[RING][32];
  };
  float down[4]; /* sums of the last 15 rows */
  float4 *ring;  /* rows of y, by lane */
  __device__ __forceinline__ void begin(struct memory *memory, uint32_t lane)
  {
    ring = &memory->ring[0][lane];
    for (uint32_t k = 0; k < RING; k++)
      ring[32 * k] = make_float4(0, 0, 0, 0);
    for (int j = 0; j < 4; j++)
      down[j] = 0;
  }
  __device__ __forceinline__ void put(float (&h)[4], const float (&y)[4], int32_t q, bool give)
  {
    const float4 old = ring[32 * ((uint32_t)(q + 1) % RING)];
    ring[32 * ((uint32_t)q % RING)] = make_float4(y[0], y[1], y[2], y[3]);
    down[0] += y[0] - old.x;
    down[1] += y[1] - old.y;
    down[2] += y[2] - old.z;
    down[3] += y[3] - old.w;
    if (!give)
      return;
    const float4 at = ring[32 * ((uint32_t)(q - REACH) % RING)];
    const float two = down[0] + down[1], last_two = down[2] + down[3], four = two + last_two;
    const float middle = __shfl_up_sync(ALL, four, 1) + four + __shfl_down_sync(ALL, four, 1);
    const float left_3 = __shfl_up_sync(ALL, down[1] + last_two, 2), left_2 = __shfl_up_sync(ALL, last_two, 2),
                left_1 = __shfl_up_sync(ALL, down[3], 2);
    const float right_1 = __shfl_down_sync(ALL, down[0], 2), right_2 = __shfl_down_sync(ALL, two, 2),
                right_3 = __shfl_down_sync(ALL, two + down[2], 2);
    h[0] = at.x - by_225(middle + left_3);
    h[1] = at.y - by_225(middle + (left_2 + right_1));
    h[2] = at.z - by_225(middle + (left_1 + right_2));
    h[3] = at.w - by_225(middle + right_3);
  }
};

template <int BYTES> struct rows_kept<real<BYTES>, HK_PICTURE_BOX> {
  struct memory {
    float4 sum[RING][32], at[RING / 2][32];
    uint32_t count[RING][32];
  };
  float4 *sum, *at; /* rows of sums across, and of y */
  uint32_t *count;  /* numbers of pixels in these sums, a byte each */
  __device__ __forceinline__ void begin(struct memory *memory, uint32_t lane)
  {
    sum = &memory->sum[0][lane];
    at = &memory->at[0][lane];
    count = &memory->count[0][lane];
  }
  /* Sums of 15 columns in the host's order: of 2, 4 and 8. */
  static __device__ __forceinline__ void across(float (&out)[4], const float (&x)[4])
  {
    float all[20], four[16];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      all[j] = __shfl_up_sync(ALL, x[j], 2);
      all[4 + j] = __shfl_up_sync(ALL, x[j], 1);
      all[8 + j] = x[j];
      all[12 + j] = __shfl_down_sync(ALL, x[j], 1);
      all[16 + j] = __shfl_down_sync(ALL, x[j], 2);
    }
#pragma unroll
    for (int k = 1; k < 16; k++)
      four[k] = (all[k] + all[k + 1]) + (all[k + 2] + all[k + 3]);
#pragma unroll
    for (int j = 0; j < 4; j++)
      out[j] = ((four[j + 1] + four[j + 5]) + four[j + 9]) + ((all[j + 13] + all[j + 14]) + all[j + 15]);
  }
  __device__ __forceinline__ void put(float (&h)[4], const float (&y)[4], int32_t q, bool give)
  {
    float value[4], total[4];
    uint32_t there = 0, n = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      there |= (uint32_t)(y[j] == y[j]) << j;
      value[j] = y[j] == y[j] ? y[j] : 0;
    }
    across(total, value);
    sum[32 * ((uint32_t)q % RING)] = make_float4(total[0], total[1], total[2], total[3]);
    at[32 * ((uint32_t)q % (RING / 2))] = make_float4(y[0], y[1], y[2], y[3]);
    const uint32_t all = __shfl_up_sync(ALL, there, 2) | __shfl_up_sync(ALL, there, 1) << 4 | there << 8 |
                         __shfl_down_sync(ALL, there, 1) << 12 | __shfl_down_sync(ALL, there, 2) << 16;
#pragma unroll
    for (int j = 0; j < 4; j++)
      n |= (uint32_t)__popc(all >> (j + 1) & 0x7fff) << 8 * j;
    count[32 * ((uint32_t)q % RING)] = n;
    if (give)
      less_mean(h, q);
  }
  __device__ __forceinline__ void less_mean(float (&h)[4], int32_t q)
  {
    float4 total = sum[32 * ((uint32_t)(q - 2 * REACH) % RING)];
    uint32_t n[4] = { 0, 0, 0, 0 };
#pragma unroll
    for (int k = 1 - 2 * REACH; k <= 0; k++) {
      const float4 more = sum[32 * ((uint32_t)(q + k) % RING)];
      total.x += more.x;
      total.y += more.y;
      total.z += more.z;
      total.w += more.w;
    }
#pragma unroll
    for (int k = -2 * REACH; k <= 0; k++) {
      const uint32_t more = count[32 * ((uint32_t)(q + k) % RING)];
#pragma unroll
      for (int j = 0; j < 4; j++)
        n[j] += more >> 8 * j & 0xff;
    }
    const float4 y = at[32 * ((uint32_t)(q - REACH) % (RING / 2))];
    h[0] = y.x - __fdiv_rn(total.x, (float)n[0]);
    h[1] = y.y - __fdiv_rn(total.y, (float)n[1]);
    h[2] = y.z - __fdiv_rn(total.z, (float)n[2]);
    h[3] = y.w - __fdiv_rn(total.w, (float)n[3]);
  }
};

#endif
