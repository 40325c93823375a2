/* Lanes that work together on one sensor, and the Hankel product they make.
 *
 * A group is L lanes of a warp (L = 2, 4, 8, 16 or 32); a warp has 32 / L groups, each with a sensor of its own, that walk in
 * step: every function here is called by all 32 lanes. A lane holds R elements of a vector in registers (R even): lane l those
 * from l R on, or l, l + L, .., by how products are made; vectors have R L elements, zero from w on. Sums run in an order that
 * depends on R and L alone, and those on the detector alone.
 *
 * Narrow products are split once in the manner of Karatsuba and Ofman (1962); wide ones go by transforms (fourier.cuh). With b =
 * R L / 2, blocks X0, X1, X2 of order b, and v = (v0, v1):
 *
 *   H = ( X0 X1 )     y0 = (X0 - X1) v0 + X1 (v0 + v1)     three products of order b for four; X0 - X1 and X2 - X1 are Hankel
 *       ( X1 X2 )     y1 = (X2 - X1) v1 + X1 (v0 + v1)     matrices, too, and are made once for all products with H
 *
 * With x0, x1, .. the pieces of b numbers of x, X0 - X1 reads (x0 - x1, x1 - x2) and X1 - X2 reads (x1 - x2, x2 - x3): one
 * sequence d of 3 b numbers serves both, and v1 is kept with its sign turned.
 *
 * With B = L / 2, lane l = c B + i takes rows i R .. i R + R - 1 of (X0 - X1) v0 (c = 0) or (X1 - X2) (-v1) (c = 1), whole, and
 * of X1 (v0 + v1) the columns of half c; lanes i and B + i then add up their halves of it. Rows and columns go by blocks of R x
 * R: 2 R - 1 numbers of x and R of v make R^2 multiply-adds. (L = 2: a lane takes half of the rows of X1 (v0 + v1), as there is
 * but one block of columns; R is then a multiple of 8.)
 *
 * In shared memory the numbers of a block of R stand `stride` >= R apart, an odd multiple of 4, and groups of few lanes are
 * padded: the eight lanes that a 16-byte load serves at a time then find their numbers in different banks, whichever half or
 * group they are of. */
#ifndef HK_GROUP_CUH
#define HK_GROUP_CUH

#include "gpu/kernels.h"

#define HK_WARP 32u
#define HK_ALL 0xffffffffu

/* F: products by Fourier transforms (fourier.cuh). */
template <int R, int L, bool F = false> struct hk_group;

template <int R, int L> struct hk_group<R, L, false> {
  /* Where sequences lie in the group's room, in floats: d at 0, X1, (v0, -v1), v0 + v1. */
  static constexpr uint32_t stride = 4 * ((R + 3) / 4 | 1), half = L / 2 * stride;
  static constexpr uint32_t shared = 3 * half, v = 5 * half, sum = 7 * half, end = 8 * half;
  static constexpr uint32_t size = L <= 4 ? end + (((L == 2 ? 8 : 16) - end) & 31) : end;

  uint32_t lane;   /* in the group, 0 .. L - 1 */
  uint32_t window; /* w */
  float *room;     /* `size` floats of shared memory */

  /* Floats of shared memory for a block and for all groups of a warp; what the whole block does first; this lane's group there.
   */
  static constexpr uint32_t block_floats = 0, warp_floats = HK_WARP / L * size;
  static __device__ __forceinline__ void prepare(float *) {}
  static __device__ __forceinline__ hk_group in(float *, float *rooms, uint32_t window)
  {
    const uint32_t lane = threadIdx.x % HK_WARP;
    return { lane % L, window, rooms + lane / L * size };
  }

  /* A lane's e-th element is number first() + e step of the vector. */
  static constexpr int step = 1;
  __device__ __forceinline__ uint32_t first() const { return lane * R; }
};

/* Sum of x over the group; all its lanes get it. */
template <int R, int L, bool F> static __device__ __forceinline__ float hk_group_sum(const hk_group<R, L, F> &, float x)
{
#pragma unroll
  for (int lane = L / 2; lane > 0; lane /= 2)
    x += __shfl_xor_sync(HK_ALL, x, lane);
  return x;
}

/* Sums of n numbers, each over the group. */
template <int R, int L, bool F, int N>
static __device__ __forceinline__ void hk_group_sums(const hk_group<R, L, F> &, float (&x)[N])
{
#pragma unroll
  for (int lane = L / 2; lane > 0; lane /= 2)
#pragma unroll
    for (int t = 0; t < N; t++)
      x[t] += __shfl_xor_sync(HK_ALL, x[t], lane);
}

/* Largest x of the group. */
template <int R, int L, bool F> static __device__ __forceinline__ float hk_group_max(const hk_group<R, L, F> &, float x)
{
#pragma unroll
  for (int lane = L / 2; lane > 0; lane /= 2)
    x = fmaxf(x, __shfl_xor_sync(HK_ALL, x, lane));
  return x;
}

/* 1 / sqrt(x), within a bit of the last place, for a normal x. */
static __device__ __forceinline__ float hk_inverse_root(float x)
{
  const float by = rsqrtf(x);
  return by * fmaf(-0.5f * x * by, by, 1.5f);
}

/* a . b over the lane's elements; two chains, so that additions wait less for each other. */
template <int R> static __device__ __forceinline__ float hk_lane_dot(const float (&a)[R], const float (&b)[R])
{
  float even = a[0] * b[0], odd = a[1] * b[1];
#pragma unroll
  for (int e = 2; e < R; e += 2) {
    even = fmaf(a[e], b[e], even);
    odd = fmaf(a[e + 1], b[e + 1], odd);
  }
  return even + odd;
}

/* a += factor * b */
template <int R> static __device__ __forceinline__ void hk_lane_add(float (&a)[R], float factor, const float (&b)[R])
{
#pragma unroll
  for (int e = 0; e < R; e++)
    a[e] = fmaf(factor, b[e], a[e]);
}

/* What stands from element w on is no element: makes it 0. */
template <int R, int L, bool F> static __device__ __forceinline__ void hk_lane_trim(const hk_group<R, L, F> &g, float (&a)[R])
{
  const int left = (int)g.window - (int)g.first();
  if ((R - 1) * g.step >= left) {
#pragma unroll
    for (int e = 0; e < R; e++)
      a[e] = e * g.step < left ? a[e] : 0;
  }
}

/* A block of R floats from shared memory (16-byte aligned) and to it; what stands between R and stride is never used. */
template <int R> static __device__ __forceinline__ void hk_block_load(float (&a)[R], const float *from)
{
#pragma unroll
  for (int e = 0; e < R; e += 4) {
    const float4 four = *(const float4 *)(from + e);
    a[e] = four.x;
    a[e + 1] = four.y;
    if (e + 2 < R) {
      a[e + 2] = four.z;
      a[e + 3] = four.w;
    }
  }
}

template <int R> static __device__ __forceinline__ void hk_block_store(float *to, const float (&a)[R])
{
#pragma unroll
  for (int e = 0; e + 2 < R; e += 4)
    *(float4 *)(to + e) = make_float4(a[e], a[e + 1], a[e + 2], a[e + 3]);
  if (R % 4 == 2)
    *(float2 *)(to + R - 2) = make_float2(a[R - 2], a[R - 1]);
}

/* sum += X v for a block of N x N: here are N numbers of x from the block's first row and column on, next those that follow. Then
 * here := next. */
template <int N> static __device__ __forceinline__ void hk_block_multiply(float (&sum)[N], float (&here)[N], const float *next, const float *v)
{
  float then[N], by[N];
  hk_block_load(then, next);
  hk_block_load(by, v);
#pragma unroll
  for (int j = 0; j < N; j++)
#pragma unroll
    for (int i = 0; i < N; i++)
      sum[i] = fmaf(i + j < N ? here[(i + j) % N] : then[(i + j) % N], by[j], sum[i]);
#pragma unroll
  for (int e = 0; e < N; e++)
    here[e] = then[e];
}

/* L = 2: sum := X1 (v0 + v1). A lane makes half of the rows and gets the other half from its neighbour. */
template <int R> static __device__ __forceinline__ void hk_pair_multiply(const hk_group<R, 2, false> &g, float (&sum)[R])
{
  typedef hk_group<R, 2> at;
  constexpr int N = R / 2;
  const float *const x = g.room + at::shared, *const v = g.room + at::sum;
  const bool upper = g.lane == 1;
  float mine[N], here[N];
#pragma unroll
  for (int e = 0; e < N; e++)
    mine[e] = 0;
  hk_block_load(here, x + (upper ? N : 0));
  hk_block_multiply(mine, here, x + (upper ? at::stride : N), v);
  hk_block_multiply(mine, here, x + (upper ? at::stride + N : at::stride), v + N);
#pragma unroll
  for (int e = 0; e < N; e++) {
    const float other = __shfl_xor_sync(HK_ALL, mine[e], 1);
    sum[e] = upper ? other : mine[e];
    sum[e + N] = upper ? mine[e] : other;
  }
}

/* v := H v. The loop over blocks is one for all three products, and short: instructions are fetched through a small cache. */
template <int R, int L> static __device__ __forceinline__ void hk_group_product(const hk_group<R, L, false> &g, float (&v)[R])
{
  typedef hk_group<R, L, false> at;
  constexpr int B = L / 2, blocks = R <= 16 && L >= 8 ? 2 : 1; /* blocks a turn */
  constexpr int turns_shared = B / 2 / blocks, turns = turns_shared + B / blocks;
  const uint32_t upper = g.lane >= B, row = g.lane - (upper ? B : 0);
  float sum[R], here[R];
#pragma unroll
  for (int e = 0; e < R; e++)
    sum[e] = v[e] + __shfl_xor_sync(HK_ALL, v[e], B);
  __syncwarp(); /* the vector before has been read by all */
#pragma unroll
  for (int e = 0; e < R; e++)
    v[e] = upper ? -v[e] : v[e];
  hk_block_store(g.room + at::v + g.lane * at::stride, v);
  if (!upper)
    hk_block_store(g.room + at::sum + row * at::stride, sum);
  __syncwarp();
#pragma unroll
  for (int e = 0; e < R; e++)
    v[e] = 0;
  const uint32_t begin = upper ? B / 2 * at::stride : 0;
  const float *x = g.room + at::shared + row * at::stride + begin, *columns = g.room + at::sum + begin;
  if constexpr (L == 2)
    hk_pair_multiply(g, v);
  else
    hk_block_load(here, x);
#pragma unroll 1
  for (int turn = 0; turn < turns; turn++) {
    if (turn == turns_shared) {
      if constexpr (L > 2) {
#pragma unroll
        for (int e = 0; e < R; e++)
          v[e] += __shfl_xor_sync(HK_ALL, v[e], B);
      }
      x = g.room + g.lane * at::stride; /* d from b on, for the upper half */
      columns = g.room + at::v + (upper ? at::half : 0);
      hk_block_load(here, x);
    }
#pragma unroll
    for (int block = 0; block < blocks; block++) {
      x += at::stride;
      hk_block_multiply(v, here, x, columns);
      columns += at::stride;
    }
  }
  hk_lane_trim(g, v);
}

/* Lays out x_i for products; i = part R L / 2 + n L + lane stands in x[n][part]. */
template <int R, int L>
static __device__ __forceinline__ void hk_group_lay_out(const hk_group<R, L, false> &g, const float (&x)[R / 2][4])
{
  typedef hk_group<R, L, false> at;
  __syncwarp(); /* the sequences before have been read by all */
#pragma unroll
  for (int n = 0; n < R / 2; n++) {
    const uint32_t i = n * L + g.lane, first = i / R * at::stride + i % R, next = first + at::half;
    g.room[first] = x[n][0] - x[n][1];
    g.room[next] = x[n][1] - x[n][2];
    g.room[next + at::half] = x[n][2] - x[n][3];
    g.room[at::shared + first] = x[n][1];
    g.room[at::shared + next] = x[n][2];
  }
}

#endif
