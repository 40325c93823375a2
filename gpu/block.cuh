/* What the threads of a block do together: sums, the work space of a score, the Hankel product.
 *
 * Every function here is called by all threads of the block. Sums run in a fixed order: each thread's own terms, then a
 * butterfly over the warp, then the warps in turn; all threads get the same number. */
#ifndef HK_BLOCK_CUH
#define HK_BLOCK_CUH

#include "gpu/kernels.h"

#define HK_WARP 32u
#define HK_WARPS_MAX 8u /* blocks have 256 threads at most */

/* For i = this thread's share of 0..n-1. The same thread gets the same i every time, so vectors that are only touched this
 * way need no barrier in between. */
#define HK_EACH(i, n) (uint32_t i = threadIdx.x; i < (n); i += blockDim.x)

/* Work space of a block. s = steps of Lanczos at most. Vectors have hk_cuda_padded(w) floats, zero from w on. */
struct hk_room {
  uint32_t window, padded;
  float *past, *present; /* shared; 2 padded floats each, zero from 2w - 1 on */
  float *v, *t, *u, *mu; /* shared; vectors */
  float *c;              /* shared; s coefficients */
  double *alpha, *beta;  /* shared; s each: the tridiagonal matrix */
  double *theta;         /* shared; 2 HK_RANK_MAX candidates for eigenvalues */
  double *leading;       /* shared; HK_RANK_MAX eigenvalues */
  double *partial;       /* shared; HK_WARPS_MAX */
  float *q;              /* device; s vectors: the Krylov basis */
  double *y, *forward;   /* device; s rows of r: eigenvectors of the tridiagonal matrix, and room to find them */
};

/* Sum of x over the block. */
static __device__ double hk_block_sum(const struct hk_room *room, double x)
{
  for (uint32_t lane = HK_WARP / 2; lane > 0; lane /= 2)
    x += __shfl_xor_sync(0xffffffffu, x, lane);
  if (blockDim.x == HK_WARP)
    return x;
  __syncthreads(); /* the sum before this one has been read by all */
  if (threadIdx.x % HK_WARP == 0)
    room->partial[threadIdx.x / HK_WARP] = x;
  __syncthreads();
  x = 0;
  for (uint32_t i = 0; i < blockDim.x / HK_WARP; i++)
    x += room->partial[i];
  return x;
}

/* Largest x of the block. */
static __device__ double hk_block_max(const struct hk_room *room, double x)
{
  for (uint32_t lane = HK_WARP / 2; lane > 0; lane /= 2)
    x = fmax(x, __shfl_xor_sync(0xffffffffu, x, lane));
  if (blockDim.x == HK_WARP)
    return x;
  __syncthreads();
  if (threadIdx.x % HK_WARP == 0)
    room->partial[threadIdx.x / HK_WARP] = x;
  __syncthreads();
  for (uint32_t i = 0; i < blockDim.x / HK_WARP; i++)
    x = fmax(x, room->partial[i]);
  return x;
}

/* a . b, summed in double. */
static __device__ double hk_block_dot(const struct hk_room *room, const float *a, const float *b)
{
  double sum = 0;
  for HK_EACH (i, room->window)
    sum += (double)a[i] * (double)b[i];
  return hk_block_sum(room, sum);
}

/* c[s] = q_s . a for the first n basis vectors; a warp takes a vector. Barriers before (a and q are whole) and after. */
static __device__ void hk_block_project(const struct hk_room *room, const float *a, uint32_t n)
{
  __syncthreads();
  for (uint32_t s = threadIdx.x / HK_WARP; s < n; s += blockDim.x / HK_WARP) {
    const float *q = room->q + (size_t)s * room->padded;
    double sum = 0;
    for (uint32_t i = threadIdx.x % HK_WARP; i < room->window; i += HK_WARP)
      sum += (double)q[i] * (double)a[i];
    for (uint32_t lane = HK_WARP / 2; lane > 0; lane /= 2)
      sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    if (threadIdx.x % HK_WARP == 0)
      room->c[s] = (float)sum;
  }
  __syncthreads();
}

/* out = H v: out[i] = sum over j of x[i+j] v[j]. All three in shared memory; out is neither x nor v. A thread takes four rows
 * at a time, so that of seven numbers of x it makes sixteen products; sums of 64 terms are added up, which keeps more digits
 * than one long sum. Barriers before and after. */
static __device__ void hk_block_hankel(const struct hk_room *room, const float *x, const float *v, float *out)
{
  const uint32_t padded = room->padded;
  __syncthreads();
  for (uint32_t i = 4 * threadIdx.x; i < padded; i += 4 * blockDim.x) {
    float sum[4] = { 0, 0, 0, 0 };
    float4 low = *(const float4 *)(x + i);
    for (uint32_t begin = 0; begin < padded; begin += 64) {
      const uint32_t end = begin + 64 < padded ? begin + 64 : padded;
      float part[4] = { 0, 0, 0, 0 };
      for (uint32_t j = begin; j < end; j += 4) {
        const float4 high = *(const float4 *)(x + i + j + 4), by = *(const float4 *)(v + j);
        part[0] = fmaf(low.w, by.w, fmaf(low.z, by.z, fmaf(low.y, by.y, fmaf(low.x, by.x, part[0]))));
        part[1] = fmaf(high.x, by.w, fmaf(low.w, by.z, fmaf(low.z, by.y, fmaf(low.y, by.x, part[1]))));
        part[2] = fmaf(high.y, by.w, fmaf(high.x, by.z, fmaf(low.w, by.y, fmaf(low.z, by.x, part[2]))));
        part[3] = fmaf(high.z, by.w, fmaf(high.y, by.z, fmaf(high.x, by.y, fmaf(low.w, by.x, part[3]))));
        low = high;
      }
      for (uint32_t k = 0; k < 4; k++)
        sum[k] += part[k];
    }
    for (uint32_t k = 0; k < 4; k++)
      out[i + k] = i + k < room->window ? sum[k] : 0;
  }
  __syncthreads();
}

#endif
