/* Householder bidiagonalisation, a matrix to a block.
 *
 * Step t reflects column t from the left and row t from the right. The usual way reads the rest of the matrix twice, for A^T v
 * and for A u, and has to change it as well. Here it is touched once a step. The change of step t - 1 is put off and made when
 * a column is read in step t; the reflector v of column t is known by then, as that one column was changed beforehand. A warp
 * has the whole column in its registers, so v . a_j gives the element r_j of row t, and r_j a_j its part of A r, where r is
 * the row before it is made a reflector: u = (r - beta e) / (alpha - beta), so that A u = (A r - beta a_(t+1)) / (alpha - beta).
 * (One pass for both products: Howell, Demmel and others, ACM TOMS 34, 2008.) Two barriers a step.
 *
 * Warps own columns in turn. The last columns take part in most steps and live in shared memory, the first ones in device
 * memory, in the place of the reflectors that they become.
 *
 * Sums: a lane's rows in turn, then a butterfly; columns of a warp in turn, then the warps: always the same order. */
#include "gpu/batched_svd/bidiagonal.h"

#include <cuda_runtime.h>

#define WARP 32u
#define ALL 0xffffffffu
#define SMALLEST 0x1p-100f /* of the squares that a reflector would remove; the largest element of the matrix is 1 */

/* H = I - tau v v^T with H (alpha, x) = (beta, 0), v = (1, inverse x). */
struct reflector {
  float beta, tau, inverse;
};

/* squares: the sum of those of x. A negligible x gets no reflector: this changes the matrix by 1e-15 of its largest element. */
static __device__ struct reflector reflector_of(float alpha, float squares)
{
  if (!(squares > SMALLEST))
    return { alpha, 0, 0 };
  const float beta = -copysignf(sqrtf(fmaf(alpha, alpha, squares)), alpha);
  return { beta, (beta - alpha) / beta, 1 / (alpha - beta) };
}

static __device__ float warp_sum(float x)
{
  for (uint32_t lane = WARP / 2; lane > 0; lane /= 2)
    x += __shfl_xor_sync(ALL, x, lane);
  return x;
}

static __device__ void warp_sums(float (&x)[1])
{
  x[0] = warp_sum(x[0]);
}

/* Two sums, in little more than the time of one: each half of the warp computes one. */
static __device__ void warp_sums(float (&x)[2])
{
  const bool high = threadIdx.x & 16;
  float sum = high ? x[1] : x[0];
  sum += __shfl_xor_sync(ALL, high ? x[0] : x[1], 16);
  for (uint32_t lane = 8; lane > 0; lane /= 2)
    sum += __shfl_xor_sync(ALL, sum, lane);
  x[0] = __shfl_sync(ALL, sum, 0);
  x[1] = __shfl_sync(ALL, sum, 16);
}

/* Shared memory of a block, in floats. */
struct room {
  float *column; /* ld_left: the column to be reflected */
  float *next;   /* ld_left: the column after it, as it was before this step's two reflections */
  float *x;      /* ld_left: A u */
  float *y;      /* ld_right: tau A^T v */
  float *row;    /* ld_right: the row to be reflected */
  float *part;   /* warps x ld_left: each warp's part of A r */
  float2 *sums;  /* warps: r . r past its first element, y . r */
  float *v_next; /* 1: element t + 1 of v */
  float *kept;   /* shared_columns x ld_left */
};

static __host__ __device__ uint32_t room_floats(const struct hk_bidiagonal *b, uint32_t warps)
{
  return (3 + warps) * b->ld_left + 2 * b->ld_right + 2 * warps + 1;
}

static __device__ struct room room_in(float *shared, const struct hk_bidiagonal *b, uint32_t warps)
{
  struct room r;
  r.column = shared;
  r.next = r.column + b->ld_left;
  r.x = r.next + b->ld_left;
  r.part = r.x + b->ld_left;
  r.kept = r.part + warps * b->ld_left;
  r.y = r.kept + b->shared_columns * b->ld_left;
  r.row = r.y + b->ld_right;
  r.sums = (float2 *)(r.row + b->ld_right);
  r.v_next = (float *)(r.sums + warps);
  return r;
}

/* State of a warp in step t. */
template <uint32_t CHUNKS> struct pass {
  uint32_t t;
  float tau;          /* of v */
  float row_inverse;  /* of the last step's row */
  float top_v, top_x; /* element t of old_v and x */
  float old_v[CHUNKS], x[CHUNKS], v[CHUNKS];
  float sum[CHUNKS]; /* A r so far */
  float squares, y_row;
};

/* N columns j, j + stride, ... of this warp, the first at a, the others `step` floats apart. */
template <uint32_t N, uint32_t BEGIN, uint32_t CHUNKS>
static __device__ __forceinline__ void take(struct pass<CHUNKS> &p, const struct room &room, float *a, uint32_t step, uint32_t j,
                                            uint32_t stride)
{
  const uint32_t lane = threadIdx.x % WARP;
  float value[N][CHUNKS], y[N], u[N], dot[N], top[N];
#pragma unroll
  for (uint32_t i = 0; i < N; i++) {
    y[i] = room.y[j + i * stride];
    u[i] = room.row[j + i * stride] * p.row_inverse;
    top[i] = fmaf(-p.top_x, u[i], fmaf(-p.top_v, y[i], a[i * step + p.t]));
    dot[i] = 0;
  }
#pragma unroll
  for (uint32_t c = BEGIN; c < CHUNKS; c++) {
#pragma unroll
    for (uint32_t i = 0; i < N; i++)
      value[i][c] = a[i * step + c * WARP + lane];
  }
  __syncwarp(); /* all lanes have read element t */
#pragma unroll
  for (uint32_t c = BEGIN; c < CHUNKS; c++) {
#pragma unroll
    for (uint32_t i = 0; i < N; i++) {
      value[i][c] = fmaf(-p.x[c], u[i], fmaf(-p.old_v[c], y[i], value[i][c]));
      a[i * step + c * WARP + lane] = value[i][c];
      dot[i] = fmaf(p.v[c], value[i][c], dot[i]);
    }
  }
  if (j == p.t + 1) {
#pragma unroll
    for (uint32_t c = BEGIN; c < CHUNKS; c++)
      room.next[c * WARP + lane] = value[0][c];
  }
  warp_sums(dot);
#pragma unroll
  for (uint32_t i = 0; i < N; i++) {
    y[i] = p.tau * dot[i];
    u[i] = top[i] - y[i];
    p.y_row = fmaf(y[i], u[i], p.y_row);
    if (j + i * stride != p.t + 1)
      p.squares = fmaf(u[i], u[i], p.squares);
  }
#pragma unroll
  for (uint32_t c = BEGIN; c < CHUNKS; c++) {
#pragma unroll
    for (uint32_t i = 0; i < N; i++)
      p.sum[c] = fmaf(value[i][c], u[i], p.sum[c]);
  }
  if (lane == 0) {
#pragma unroll
    for (uint32_t i = 0; i < N; i++) {
      room.y[j + i * stride] = y[i];
      room.row[j + i * stride] = u[i];
    }
  }
}

/* Processes the columns of this warp from `from`, or its first one after that, up to `to`. base: the address that column 0 would
 * have. */
template <uint32_t N, uint32_t BEGIN, uint32_t CHUNKS, uint32_t WARPS>
static __device__ __forceinline__ void take_all(struct pass<CHUNKS> &p, const struct room &room, float *base, uint32_t ld,
                                                uint32_t from, uint32_t to)
{
  uint32_t j = from + (threadIdx.x / WARP + WARPS - from % WARPS) % WARPS;
  for (; j + (N - 1) * WARPS < to; j += N * WARPS)
    take<N, BEGIN>(p, room, base + (size_t)j * ld, WARPS * ld, j, WARPS);
  for (; j < to; j += WARPS)
    take<1, BEGIN>(p, room, base + (size_t)j * ld, WARPS * ld, j, WARPS);
}

/* Bits of the largest |a| of the block; a NaN or an infinity is 0x7f800000 or more. `words` has room for a word a warp. */
static __device__ uint32_t largest_bits(const float *a, uint32_t n, uint32_t *words)
{
  uint32_t bits = 0;
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
    bits = max(bits, __float_as_uint(a[i]) & 0x7fffffffu);
  for (uint32_t lane = WARP / 2; lane > 0; lane /= 2)
    bits = max(bits, __shfl_xor_sync(ALL, bits, lane));
  if (threadIdx.x % WARP == 0)
    words[threadIdx.x / WARP] = bits;
  __syncthreads();
  for (uint32_t w = 0; w < blockDim.x / WARP; w++)
    bits = max(bits, words[w]);
  __syncthreads();
  return bits;
}

/* The matrix of a block. */
struct work {
  uint32_t columns, ld_left, ld_right, first_kept;
  float *left, *right, *tau_left, *tau_right, *d, *e;
  float *kept; /* the address that column 0 would have in shared memory */
  float back;  /* factor for d and e */
};

/* Makes the reflector of column t from the column in shared memory; p.v receives v. */
template <uint32_t CHUNKS, uint32_t BEGIN>
static __device__ __forceinline__ struct reflector reflect_column(struct pass<CHUNKS> &p, const struct room &room, uint32_t t)
{
  const uint32_t lane = threadIdx.x % WARP;
  float squares = 0;
#pragma unroll
  for (uint32_t c = BEGIN; c < CHUNKS; c++) {
    p.old_v[c] = p.v[c];
    p.x[c] = room.x[c * WARP + lane];
    p.v[c] = room.column[c * WARP + lane];
    p.sum[c] = 0;
    if (c * WARP + lane > t)
      squares = fmaf(p.v[c], p.v[c], squares);
  }
  const struct reflector of_column = reflector_of(room.column[t], warp_sum(squares));
#pragma unroll
  for (uint32_t c = BEGIN; c < CHUNKS; c++) {
    const uint32_t i = c * WARP + lane;
    p.v[c] = i > t ? p.v[c] * of_column.inverse : i == t;
  }
  return of_column;
}

/* Makes the reflector of row t from the sums of all warps, then A u and column t + 1 for the next step; writes both reflectors.
 * */
template <uint32_t WARPS>
static __device__ __forceinline__ struct reflector reflect_row(const struct room &room, const struct work &w, uint32_t t,
                                                               const struct reflector &of_column)
{
  const uint32_t ld = w.ld_left;
  float y_row = 0, squares = 0;
#pragma unroll
  for (uint32_t i = 0; i < WARPS; i += 2) {
    const float4 two = *(const float4 *)(room.sums + i);
    squares += two.x + two.z;
    y_row += two.y + two.w;
  }
  const float y_next = room.y[t + 1];
  const struct reflector of_row = reflector_of(room.row[t + 1], squares);
  const float factor = of_row.tau * of_row.inverse, y_u = y_row - of_row.beta * y_next;
  for (uint32_t i = threadIdx.x; i < ld; i += WARPS * WARP) {
    float v = i == t, x = 0, column = 0;
    if (i > t) {
      float sum = 0;
#pragma unroll
      for (uint32_t j = 0; j < WARPS; j++)
        sum += room.part[j * ld + i];
      v = room.column[i] * of_column.inverse;
      x = factor * (fmaf(-of_row.beta, room.next[i], sum) - v * y_u);
      column = room.next[i] - fmaf(v, y_next, x);
    }
    w.left[(size_t)t * ld + i] = v;
    if (i == t + 1)
      *room.v_next = v;
    room.x[i] = x;
    room.column[i] = column;
  }
  for (uint32_t j = threadIdx.x; j < w.ld_right; j += WARPS * WARP)
    w.right[(size_t)t * w.ld_right + j] = j > t + 1 ? room.row[j] * of_row.inverse : j == t + 1;
  return of_row;
}

/* Does the steps whose column begins in the chunks BEGIN..BEGIN + STRIDE - 1, then the others: so the compiler knows how much of
 * the columns is left. */
template <uint32_t CHUNKS, uint32_t BEGIN, uint32_t STRIDE, uint32_t WARPS, uint32_t N>
static __device__ __forceinline__ void steps(struct pass<CHUNKS> &p, const struct room &room, const struct work &w)
{
  const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, ld = w.ld_left;
  const uint32_t end = min(w.columns, (BEGIN + STRIDE) * WARP);
  for (uint32_t t = BEGIN * WARP; t < end; t++) {
    p.t = t;
    const struct reflector of_column = reflect_column<CHUNKS, BEGIN>(p, room, t);
    if (threadIdx.x == 0) {
      w.d[t] = of_column.beta * w.back;
      w.tau_left[t] = of_column.tau;
    }
    if (t + 1 == w.columns) {
      for (uint32_t i = threadIdx.x; i < ld; i += WARPS * WARP)
        w.left[(size_t)t * ld + i] = i > t ? room.column[i] * of_column.inverse : i == t;
      return;
    }
    p.tau = of_column.tau;
    p.top_v = *room.v_next;
    p.top_x = room.x[t];
    p.squares = p.y_row = 0;
    if (t + 1 < w.first_kept)
      take_all<N, BEGIN, CHUNKS, WARPS>(p, room, w.left, ld, t + 1, w.first_kept);
    take_all<N, BEGIN, CHUNKS, WARPS>(p, room, w.kept, ld, max(t + 1, w.first_kept), w.columns);
#pragma unroll
    for (uint32_t c = BEGIN; c < CHUNKS; c++)
      room.part[warp * ld + c * WARP + lane] = p.sum[c];
    if (lane == 0)
      room.sums[warp] = make_float2(p.squares, p.y_row);
    __syncthreads();

    const struct reflector of_row = reflect_row<WARPS>(room, w, t, of_column);
    if (threadIdx.x == 0) {
      w.e[t] = of_row.beta * w.back;
      w.tau_right[t] = of_row.tau;
    }
    p.row_inverse = of_row.inverse;
    __syncthreads();
  }
  if constexpr (BEGIN + STRIDE < CHUNKS)
    if (end < w.columns)
      steps<CHUNKS, BEGIN + STRIDE, STRIDE, WARPS, N>(p, room, w);
}

/* Reduces a matrix by THREADS threads; its columns have 32 CHUNKS rows; a warp takes N columns at a time. */
template <uint32_t CHUNKS, uint32_t STRIDE, uint32_t THREADS, uint32_t N>
__global__ void __launch_bounds__(THREADS)
    reduce(const struct hk_bidiagonal b, const float *all, float *d, float *e, uint32_t *status, bool scaled_back)
{
  extern __shared__ float shared[];
  constexpr uint32_t WARPS = THREADS / WARP;
  const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, rows = b.rows, columns = b.columns, ld = b.ld_left;
  const struct room room = room_in(shared, &b, WARPS);
  const float *a = all + (size_t)blockIdx.x * rows * columns;
  struct work w;
  w.columns = columns;
  w.ld_left = ld;
  w.ld_right = b.ld_right;
  w.first_kept = columns - b.shared_columns;
  w.left = b.left + (size_t)blockIdx.x * ld * columns;
  w.right = b.right + (size_t)blockIdx.x * b.ld_right * columns;
  w.tau_left = b.tau_left + (size_t)blockIdx.x * columns;
  w.tau_right = b.tau_right + (size_t)blockIdx.x * columns;
  w.d = d + (size_t)blockIdx.x * columns;
  w.e = e + (size_t)blockIdx.x * (columns - 1);
  w.kept = room.kept - (size_t)w.first_kept * ld;

  const uint32_t bits = largest_bits(a, rows * columns, (uint32_t *)room.sums);
  if (threadIdx.x == 0)
    status[blockIdx.x] = bits < 0x7f800000u ? HK_SVD_FINE : HK_SVD_NOT_FINITE;
  if (bits >= 0x7f800000u) {
    for (uint32_t i = threadIdx.x; i < columns; i += THREADS) {
      w.d[i] = NAN;
      if (i + 1 < columns)
        w.e[i] = NAN;
    }
    return;
  }
  const float scale = __uint_as_float(max(bits >> 23, 1u) << 23), up = 1 / scale;
  w.back = scaled_back ? scale : 1;
  if (threadIdx.x == 0)
    b.scale[blockIdx.x] = scale;

  for (uint32_t j = warp; j < columns; j += WARPS) {
    float *to = j == 0 ? room.column : (j < w.first_kept ? w.left : w.kept) + (size_t)j * ld;
    for (uint32_t i = lane; i < ld; i += WARP)
      to[i] = i < rows ? a[(size_t)i * b.row_step + (size_t)j * b.column_step] * up : 0;
  }
  for (uint32_t j = threadIdx.x; j < b.ld_right; j += THREADS)
    room.y[j] = room.row[j] = 0;
  for (uint32_t i = threadIdx.x; i < ld; i += THREADS)
    room.x[i] = 0;
  if (threadIdx.x == 0)
    *room.v_next = 0;
  struct pass<CHUNKS> p;
  p.row_inverse = 0;
#pragma unroll
  for (uint32_t c = 0; c < CHUNKS; c++)
    p.v[c] = 0;
  __syncthreads();
  steps<CHUNKS, 0, STRIDE, WARPS, N>(p, room, w);
}

/* A kernel, the rows of the columns that it takes, and its threads. */
struct kernel {
  void (*run)(const struct hk_bidiagonal, const float *, float *, float *, uint32_t *, bool);
  uint32_t rows, threads;
};

static const struct kernel kernels[] = {
  { reduce<2, 1, 128, 2>, 64, 128 },    { reduce<4, 1, 256, 2>, 128, 256 },  { reduce<6, 1, 512, 2>, 192, 512 },
  { reduce<8, 1, 512, 2>, 256, 512 },   { reduce<10, 1, 512, 2>, 320, 512 }, { reduce<13, 1, 384, 2>, 416, 384 },
  { reduce<14, 2, 384, 2>, 448, 384 },  { reduce<16, 2, 384, 2>, 512, 384 }, { reduce<24, 4, 256, 2>, 768, 256 },
  { reduce<32, 4, 256, 1>, 1024, 256 },
};

static const struct kernel *kernel_for(uint32_t rows)
{
  const struct kernel *k = kernels;
  while (k->rows < rows)
    k++;
  return k;
}

static uint32_t shared_bytes(const struct hk_bidiagonal *b)
{
  return (room_floats(b, kernel_for(b->rows)->threads / WARP) + b->shared_columns * b->ld_left) * (uint32_t)sizeof(float);
}

uint32_t hk_bidiagonal_rows(uint32_t rows)
{
  return kernel_for(rows)->rows;
}

int hk_bidiagonal_plan(struct hk_bidiagonal *b)
{
  int device, most;
  cudaError_t failed = cudaGetDevice(&device);
  if (!failed)
    failed = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (failed)
    return failed;
  b->shared_columns = 0;
  const uint32_t left = ((uint32_t)most - shared_bytes(b)) / (uint32_t)sizeof(float) / b->ld_left;
  b->shared_columns = left < b->columns ? left : b->columns;
  return cudaFuncSetAttribute((const void *)kernel_for(b->rows)->run, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              (int)shared_bytes(b));
}

int hk_bidiagonal_reduce(const struct hk_bidiagonal *b, const float *a, uint32_t count, float *d, float *e, uint32_t *status,
                         bool scaled_back, struct CUstream_st *stream)
{
  const struct kernel *k = kernel_for(b->rows);
  k->run<<<count, k->threads, shared_bytes(b), stream>>>(*b, a, d, e, status, scaled_back);
  return cudaGetLastError();
}
