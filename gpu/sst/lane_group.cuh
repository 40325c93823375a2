/* Groups of lanes that work together on one sensor, and their Hankel product.
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
 * With x0, x1, .. the pieces of b numbers of x, X0 - X1 reads (x0 - x1, x1 - x2) and X2 - X1 reads (x2 - x1, x3 - x2).
 *
 * With B = L / 2, lane l = c B + i takes rows i R .. i R + R - 1 of (X0 - X1) v0 (c = 0) or (X2 - X1) v1 (c = 1), whole, and
 * of X1 (v0 + v1) the columns of half c; lanes i and B + i then add up their halves of it. Rows and columns go by blocks of R x
 * R: 2 R - 1 numbers of x and R of v make R^2 multiply-adds. (L = 2: a lane takes half of the rows of X1 (v0 + v1), as there is
 * but one block of columns; R is then a multiple of 8.)
 *
 * In shared memory the numbers of a block of R stand `stride` >= R apart, an odd multiple of 4, and groups of few lanes are
 * padded: the eight lanes that a 16-byte load serves at a time then find their numbers in different banks, whichever half or
 * group they are of. */
#ifndef HK_LANE_GROUP_CUH
#define HK_LANE_GROUP_CUH

#include "gpu/backend/device_types.h"

#define HK_WARP 32u
#define HK_ALL 0xffffffffu

/* F: products by Fourier transforms (fourier.cuh). */
template <int R, int L, bool F = false> struct hk_group;

template <int R, int L> struct hk_group<R, L, false> {
  /* Offsets of the sequences in the group's memory, in floats: X0 - X1 at 0, X2 - X1, X1, and v. */
  static constexpr uint32_t stride = 4 * ((R + 3) / 4 | 1), half = L / 2 * stride;
  static constexpr uint32_t second = 2 * half + (L == 2 ? 4 : 8), shared = second + 2 * half, v = shared + 2 * half,
                            end = v + 2 * half;
  static constexpr uint32_t size = L <= 4 ? end + (((L == 2 ? 8 : 16) - end) & 31) : end;

  uint32_t lane;   /* number in the group, 0 .. L - 1 */
  uint32_t window; /* w */
  float *room;     /* `size` floats of shared memory */

  /* Floats of shared memory for a block and for all groups of a warp; what the whole block does first, and before the first
   * product; this lane's group there. */
  static constexpr uint32_t block_floats = 0, warp_floats = HK_WARP / L * size;
  static __device__ __forceinline__ void prepare(float *) {}
  static __device__ __forceinline__ void prepared() {}
  static __device__ __forceinline__ hk_group in(float *, float *rooms, uint32_t window)
  {
    const uint32_t lane = threadIdx.x % HK_WARP;
    return { lane % L, window, rooms + lane / L * size };
  }

  /* A lane's e-th element is number first() + e step of the vector. */
  static constexpr int step = 1;
  __device__ __forceinline__ uint32_t first() const { return lane * R; }
};

/* Returns the sum of x over the group, to all its lanes. */
template <int R, int L, bool F> static __device__ __forceinline__ float hk_group_sum(const hk_group<R, L, F> &, float x)
{
#pragma unroll
  for (int lane = L / 2; lane > 0; lane /= 2)
    x += __shfl_xor_sync(HK_ALL, x, lane);
  return x;
}

/* Sums n numbers, each over the group, all at once: latencies overlap, which sums one after the other would not allow. */
template <int R, int L, bool F, int N>
static __device__ __forceinline__ void hk_group_sums(const hk_group<R, L, F> &, float (&x)[N])
{
#pragma unroll
  for (int lane = L / 2; lane > 0; lane /= 2) {
    float other[N];
#pragma unroll
    for (int t = 0; t < N; t++)
      other[t] = __shfl_xor_sync(HK_ALL, x[t], lane);
#pragma unroll
    for (int t = 0; t < N; t++)
      x[t] += other[t];
  }
}

/* Returns the largest x of the group. */
template <int R, int L, bool F> static __device__ __forceinline__ float hk_group_max(const hk_group<R, L, F> &, float x)
{
#pragma unroll
  for (int lane = L / 2; lane > 0; lane /= 2)
    x = fmaxf(x, __shfl_xor_sync(HK_ALL, x, lane));
  return x;
}

/* Returns 1 / sqrt(x), accurate to a bit of the last place, for a normal x. */
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

/* Sets the places from element w on, which are no elements, to 0. */
template <int R, int L, bool F> static __device__ __forceinline__ void hk_lane_trim(const hk_group<R, L, F> &g, float (&a)[R])
{
  const int left = (int)g.window - (int)g.first();
  if ((R - 1) * g.step >= left) {
#pragma unroll
    for (int e = 0; e < R; e++)
      a[e] = e * g.step < left ? a[e] : 0;
  }
}

/* Loads and stores a block of R floats of shared memory (16-byte aligned); places between R and stride are never used. */
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
template <int N>
static __device__ __forceinline__ void hk_block_multiply(float (&sum)[N], float (&here)[N], const float *next,
                                                         const float (&v)[N])
{
  float then[N];
  hk_block_load(then, next);
#pragma unroll
  for (int j = 0; j < N; j++)
#pragma unroll
    for (int i = 0; i < N; i++)
      sum[i] = fmaf(i + j < N ? here[(i + j) % N] : then[(i + j) % N], v[j], sum[i]);
#pragma unroll
  for (int e = 0; e < N; e++)
    here[e] = then[e];
}

/* sum := v0 + v1 for a block of N. */
template <int N> static __device__ __forceinline__ void hk_block_sum(float (&sum)[N], const float *v0, const float *v1)
{
  float other[N];
  hk_block_load(sum, v0);
  hk_block_load(other, v1);
#pragma unroll
  for (int e = 0; e < N; e++)
    sum[e] += other[e];
}

/* sum := X1 (v0 + v1), this lane's rows. */
template <int R, int L>
static __device__ __forceinline__ void hk_shared_multiply(const hk_group<R, L, false> &g, bool upper, uint32_t row,
                                                          float (&sum)[R])
{
  typedef hk_group<R, L, false> at;
  const uint32_t begin = upper ? L / 4 * at::stride : 0;
  const float *x = g.room + at::shared + row * at::stride + begin, *columns = g.room + at::v + begin;
  float here[R], by[R];
#pragma unroll
  for (int e = 0; e < R; e++)
    sum[e] = 0;
  hk_block_load(here, x);
#pragma unroll 1
  for (int block = 0; block < L / 4; block++) {
    hk_block_sum(by, columns, columns + at::half);
    hk_block_multiply(sum, here, x += at::stride, by);
    columns += at::stride;
  }
  float other[R];
#pragma unroll
  for (int e = 0; e < R; e++)
    other[e] = __shfl_xor_sync(HK_ALL, sum[e], L / 2);
#pragma unroll
  for (int e = 0; e < R; e++)
    sum[e] += other[e];
}

/* L = 2: a lane makes half of the rows and gets the other half from its neighbour. */
template <int R>
static __device__ __forceinline__ void hk_shared_multiply(const hk_group<R, 2, false> &g, bool upper, uint32_t, float (&sum)[R])
{
  typedef hk_group<R, 2, false> at;
  constexpr int N = R / 2;
  const float *const x = g.room + at::shared, *const v = g.room + at::v;
  float mine[N], here[N], by[N];
#pragma unroll
  for (int e = 0; e < N; e++)
    mine[e] = 0;
  hk_block_load(here, x + (upper ? N : 0));
  hk_block_sum(by, v, v + at::half);
  hk_block_multiply(mine, here, x + (upper ? at::stride : N), by);
  hk_block_sum(by, v + N, v + at::half + N);
  hk_block_multiply(mine, here, x + (upper ? at::stride + N : at::stride), by);
#pragma unroll
  for (int e = 0; e < N; e++) {
    const float other = __shfl_xor_sync(HK_ALL, mine[e], 1);
    sum[e] = upper ? other : mine[e];
    sum[e + N] = upper ? mine[e] : other;
  }
}

/* v := H v. The loop over blocks is short: instructions are fetched through a small cache. */
template <int R, int L> static __device__ __forceinline__ void hk_group_product(const hk_group<R, L, false> &g, float (&v)[R])
{
  typedef hk_group<R, L, false> at;
  uint32_t lane = g.lane;
  asm volatile("" : "+r"(lane)); /* addresses are computed again each time, which is cheaper than keeping them */
  const bool upper = lane >= L / 2;
  const uint32_t row = lane % (L / 2);
  __syncwarp(); /* all lanes have read the previous vector */
  hk_block_store(g.room + at::v + lane * at::stride, v);
  __syncwarp();
  hk_shared_multiply(g, upper, row, v);
  const float *x = g.room + (upper ? at::second : 0) + row * at::stride, *columns = g.room + at::v + (upper ? at::half : 0);
  float here[R], by[R];
  hk_block_load(here, x);
#pragma unroll 1
  for (int block = 0; block < L / 2; block++) {
    hk_block_load(by, columns);
    hk_block_multiply(v, here, x += at::stride, by);
    columns += at::stride;
  }
  hk_lane_trim(g, v);
}

/* Lays out x_i for products; i = part R L / 2 + n L + lane stands in x[n][part]. */
template <int R, int L>
static __device__ __forceinline__ void hk_group_lay_out(const hk_group<R, L, false> &g, const float (&x)[R / 2][4])
{
  typedef hk_group<R, L, false> at;
  __syncwarp(); /* all lanes have read the previous sequences */
#pragma unroll
  for (int n = 0; n < R / 2; n++) {
    const uint32_t i = n * L + g.lane, first = i / R * at::stride + i % R, next = first + at::half;
    g.room[first] = x[n][0] - x[n][1];
    g.room[next] = x[n][1] - x[n][2];
    g.room[at::second + first] = x[n][2] - x[n][1];
    g.room[at::second + next] = x[n][3] - x[n][2];
    g.room[at::shared + first] = x[n][1];
    g.room[at::shared + next] = x[n][2];
  }
}

#endif
