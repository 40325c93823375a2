/* What follows the panels of wide bands: solutions with a block's triangles, and the product that is taken from the rest. */
#include "gpu/band/wide_update.h"

#include <cuda_runtime_api.h>

#define WIDTH HK_WIDE_PANEL

namespace
{

/* --- addresses ---------------------------------------------------------------------------------------------------------- */

__device__ double *band_at(const hk_wide_layout &all, const hk_wide_segment &s, uint32_t row, uint32_t column)
{
  return s.band + row + column * (all.stride - 1);
}

/* First column of those that a step works on from `columns` of a segment. */
__device__ uint32_t extra_from(const hk_wide_step &step, const hk_wide_segment &s)
{
  return step.extra == HK_WIDE_ALL ? 0 : step.extra == HK_WIDE_RIGHT ? s.border : s.border + 1;
}

/* Columns of the band on which a step works. Those beside the block begin where the segment's own equations end. */
struct range {
  uint32_t from, count;
};

__device__ range band_range(const hk_wide_step &step, const hk_wide_segment &s)
{
  const uint32_t to = min(step.to, step.extra == HK_WIDE_OWN ? s.n : s.n + s.after),
                 from = step.from == step.row + step.width ? min(step.from, s.n) : step.from;
  return { from, to > from ? to - from : 0 };
}

/* --- triangles beside a block ------------------------------------------------------------------------------------------- */

#define SIDES_WARPS 8u
#define SIDES_COLUMNS 4u /* of a warp */

/* Column number `at` of a step, from the block's first row on; NULL: there are fewer. */
__device__ double *side_column(const hk_wide_layout &all, const hk_wide_segment &s, const hk_wide_step &step, uint32_t at)
{
  if (at < step.lefts)
    return band_at(all, s, step.row, step.left + at);
  at -= step.lefts;
  const range band = band_range(step, s);
  if (at < band.count)
    return band_at(all, s, step.row, band.from + at);
  at += extra_from(step, s) - band.count;
  return at <= s.border ? s.columns + step.row + (size_t)at * (s.n + s.after) : nullptr;
}

/* Exchanges rows of the warp's columns; v: the lane's row of the panel then. All are read before one is written, so that a warp
 * waits once. */
__device__ void exchange_rows(double *const (&column)[SIDES_COLUMNS], uint32_t row, const hk_wide_exchange &exchange,
                              uint32_t width, double (&v)[SIDES_COLUMNS])
{
  const uint32_t lane = threadIdx.x % 32, from = exchange.from[lane], to = exchange.to[lane];
  double goes[SIDES_COLUMNS];
#pragma unroll
  for (uint32_t k = 0; k < SIDES_COLUMNS; k++) {
    const bool there = column[k] && lane < width;
    v[k] = there ? column[k][row + from] : 0;
    goes[k] = there ? column[k][row + lane] : 0;
  }
  __syncwarp();
#pragma unroll
  for (uint32_t k = 0; k < SIDES_COLUMNS; k++)
    if (column[k] && lane < width) {
      column[k][row + lane] = v[k];
      if (to != HK_WIDE_NONE)
        column[k][row + to] = goes[k];
    }
  __syncwarp();
}

/* Panels of a block: Panels. A lane has a row of each, and takes SIDES_COLUMNS columns at once. */
template <int Panels>
__global__ void __launch_bounds__(SIDES_WARPS * 32)
    sides(const __grid_constant__ hk_wide_layout all, const __grid_constant__ hk_wide_step step)
{
  __shared__ double lower[WIDTH][WIDTH]; /* [column][row] */
  const hk_wide_segment &s = all.segment[blockIdx.y];
  if (step.row >= s.n)
    return;
  const uint32_t lane = threadIdx.x % 32, width = min(step.width, s.n - step.row),
                 first = (blockIdx.x * SIDES_WARPS + threadIdx.x / 32) * SIDES_COLUMNS;
  double *column[SIDES_COLUMNS], v[Panels][SIDES_COLUMNS];
#pragma unroll
  for (uint32_t k = 0; k < SIDES_COLUMNS; k++)
    column[k] = side_column(all, s, step, first + k);
#pragma unroll
  for (uint32_t p = 0; p < Panels; p++) {
    const uint32_t row = p * WIDTH;
    exchange_rows(column, row, s.exchange[step.row / WIDTH + (row < width ? p : 0)], row < width ? min(WIDTH, width - row) : 0,
                  v[p]);
  }
#pragma unroll
  for (int by = 0; by < Panels; by++)
#pragma unroll
    for (int p = by; p < Panels; p++) {
      __syncthreads();
      for (uint32_t i = threadIdx.x; i < WIDTH * WIDTH; i += SIDES_WARPS * 32) {
        const uint32_t row = p * WIDTH + i % WIDTH, of = by * WIDTH + i / WIDTH;
        lower[i / WIDTH][i % WIDTH] = row < width && of < row ? *band_at(all, s, step.row + row, step.row + of) : 0;
      }
      __syncthreads();
#pragma unroll 8
      for (uint32_t i = 0; i < WIDTH; i++) {
        const double times = lower[i][lane];
#pragma unroll
        for (uint32_t k = 0; k < SIDES_COLUMNS; k++)
          v[p][k] -= times * __shfl_sync(~0u, v[by][k], i);
      }
    }
#pragma unroll
  for (int p = 0; p < Panels; p++)
#pragma unroll
    for (uint32_t k = 0; k < SIDES_COLUMNS; k++)
      if (column[k] && first + k >= step.lefts && p * WIDTH + lane < width)
        column[k][p * WIDTH + lane] = v[p][k];
}

/* A thread to a row of the border. */
__global__ void __launch_bounds__(128) border(const __grid_constant__ hk_wide_layout all, uint32_t from)
{
  __shared__ double upper[WIDTH][WIDTH]; /* [row][column] */
  const hk_wide_segment &s = all.segment[blockIdx.y];
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  if (from >= s.n || !s.left)
    return;
  const uint32_t width = min(WIDTH, s.n - from);
  for (uint32_t i = threadIdx.x; i < WIDTH * WIDTH; i += blockDim.x) {
    const uint32_t r = i % WIDTH, c = i / WIDTH;
    upper[r][c] = r <= c && c < width ? *band_at(all, s, from + r, from + c) : 0;
  }
  __syncthreads();
  if (row >= s.border)
    return;
  double v[WIDTH], *const left = s.left + row + (size_t)from * s.border;
#pragma unroll
  for (uint32_t c = 0; c < WIDTH; c++)
    v[c] = c < width ? left[(size_t)c * s.border] : 0;
#pragma unroll
  for (uint32_t i = 0; i < WIDTH; i++)
    if (i < width) {
      v[i] = upper[i][i] != 0 ? v[i] / upper[i][i] : 0;
#pragma unroll
      for (uint32_t c = i + 1; c < WIDTH; c++)
        v[c] -= v[i] * upper[i][c];
    }
#pragma unroll
  for (uint32_t c = 0; c < WIDTH; c++)
    if (c < width)
      left[(size_t)c * s.border] = v[c];
}

/* --- the product -------------------------------------------------------------------------------------------------------- */

#define TILE 64u
#define DEEP 32u
#define TILE_THREADS 128u
/* A fragment's 16 numbers of 4 columns then lie in 16 banks of 8 bytes. */
#define ROWS_APART (TILE + 4)
#define COLUMNS_APART (DEEP + 4)

/* c += a b, 16 x 8 numbers by a warp; a: 16 x 8, b: 8 x 8, as the tensor cores deal them to lanes. */
__device__ void multiply(double (&c)[4], const double (&a)[4], const double (&b)[2])
{
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
  for (int half = 0; half < 2; half++)
    for (int k = 0; k < 2; k++)
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
          : "+d"(c[2 * half]), "+d"(c[2 * half + 1])
          : "d"(a[half + 2 * k]), "d"(b[k]));
#endif
}

/* A tile of the rest, and the rows and columns whose product it loses. */
struct tile {
  const double *a, *b;
  double *c;
  size_t lda, ldb, ldc;
  uint32_t rows, columns, depth;
};

/* Rows below the block come first, then those of the border; columns of the band, then the extra ones. False: there is no such.
 */
__device__ bool tile_of(tile &t, const hk_wide_layout &all, const hk_wide_segment &s, const hk_wide_step &step)
{
  if (step.row >= s.n)
    return false;
  t.depth = min(step.width, s.n - step.row);
  const uint32_t below = step.row + t.depth, window = min(s.n + s.after - below, all.below),
                 window_tiles = (window + TILE - 1) / TILE;
  const range band = band_range(step, s);
  const uint32_t band_tiles = (band.count + TILE - 1) / TILE;
  const bool down = blockIdx.x >= window_tiles, aside = blockIdx.y >= band_tiles;
  const uint32_t row = (blockIdx.x - (down ? window_tiles : 0)) * TILE, rows = down ? s.border : window,
                 column = (blockIdx.y - (aside ? band_tiles : 0)) * TILE + (aside ? extra_from(step, s) : band.from),
                 columns = aside ? s.border + 1 : band.from + band.count;
  if (row >= rows || column >= columns)
    return false;
  t.rows = min(TILE, rows - row);
  t.columns = min(TILE, columns - column);
  t.lda = down ? s.border : all.stride - 1;
  t.a = down ? s.left + row + (size_t)step.row * s.border : band_at(all, s, below + row, step.row);
  const size_t high = s.n + s.after;
  t.ldb = aside ? high : all.stride - 1;
  t.b = aside ? s.columns + step.row + column * high : band_at(all, s, step.row, column);
  t.ldc = down ? s.border : t.ldb;
  t.c = !down ? (aside ? s.columns + below + row + column * high : band_at(all, s, below + row, column))
              : (aside ? s.corner : s.left) + row + (size_t)column * s.border;
  return true;
}

/* What a tile's threads share of the block: rows below it, and its columns aside; while one part is multiplied the next is
 * copied. */
struct part {
  double rows[DEEP * ROWS_APART], columns[TILE * COLUMNS_APART];
};

/* Copies 8 bytes to shared memory without waiting; zero if there is no such number. */
__device__ void copy_number(double &to, const double *from, bool exists)
{
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"((uint32_t)__cvta_generic_to_shared(&to)), "l"(from),
               "r"(exists ? 8 : 0));
}

/* Copies DEEP rows and columns from `from` on, zero beyond the block's depth; ahead: without waiting. */
template <bool Ahead> __device__ void fetch(part &p, const tile &t, uint32_t from)
{
  const uint32_t row = threadIdx.x % TILE, high = threadIdx.x / TILE, k = threadIdx.x % DEEP, wide = threadIdx.x / DEEP;
  const double *a = t.a + row + (from + high) * t.lda, *b = t.b + from + k + wide * t.ldb;
#pragma unroll 8
  for (uint32_t i = 0; i < TILE * DEEP / TILE_THREADS; i++) {
    const uint32_t down = high + i * (TILE_THREADS / TILE), aside = wide + i * (TILE_THREADS / DEEP);
    const bool row_there = row < t.rows && from + down < t.depth, column_there = aside < t.columns && from + k < t.depth;
    double &to_row = p.rows[down * ROWS_APART + row], &to_column = p.columns[aside * COLUMNS_APART + k];
    if (Ahead) {
      copy_number(to_row, row_there ? a : t.a, row_there);
      copy_number(to_column, column_there ? b : t.b, column_there);
    } else {
      to_row = row_there ? *a : 0;
      to_column = column_there ? *b : 0;
    }
    a += TILE_THREADS / TILE * t.lda;
    b += TILE_THREADS / DEEP * t.ldb;
  }
  if (Ahead)
    asm volatile("cp.async.commit_group;");
}

/* Number `i` of 16 rows m and 8 columns n of the 32 x 32 of a tile that a warp has; NULL: the tile ends before. */
__device__ double *number_at(const tile &t, uint32_t m, uint32_t n, uint32_t i)
{
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = warp % 2 * 32 + m * 16 + i / 2 * 8 + lane / 4,
                 column = warp / 2 * 32 + n * 8 + lane % 4 * 2 + i % 2;
  return row < t.rows && column < t.columns ? t.c + row + column * t.ldc : nullptr;
}

__device__ void multiply_part(double (&c)[2][4][4], const part &p)
{
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (uint32_t k = 0; k < DEEP; k += 8) {
    double a[2][4], b[4][2];
#pragma unroll
    for (uint32_t j = 0; j < 8; j++) {
      a[j / 4][j % 4] = p.rows[(k + lane % 4 + j / 2 % 2 * 4) * ROWS_APART + warp % 2 * 32 + j / 4 * 16 + j % 2 * 8 + lane / 4];
      b[j / 2][j % 2] = p.columns[(warp / 2 * 32 + j / 2 * 8 + lane / 4) * COLUMNS_APART + k + lane % 4 + j % 2 * 4];
    }
#pragma unroll
    for (uint32_t j = 0; j < 8; j++)
      multiply(c[j / 4][j % 4], a[j / 4], b[j % 4]);
  }
}

/* Sums are those of the negative rest, to which the product is added. Deep: the block has more than DEEP columns. */
template <bool Deep>
__global__ void __launch_bounds__(TILE_THREADS, 3)
    update(const __grid_constant__ hk_wide_layout all, const __grid_constant__ hk_wide_step step)
{
  extern __shared__ part parts_of_block[];
  tile t;
  if (!tile_of(t, all, all.segment[blockIdx.z], step))
    return;
  fetch<Deep>(parts_of_block[0], t, 0);
  double c[2][4][4];
#pragma unroll
  for (uint32_t j = 0; j < 32; j++) {
    const double *at = number_at(t, j / 16, j / 4 % 4, j % 4);
    c[j / 16][j / 4 % 4][j % 4] = at ? -*at : 0;
  }
  for (uint32_t from = 0, turn = 0; from < t.depth; from += DEEP, turn ^= 1) {
    const bool more = Deep && from + DEEP < t.depth;
    if (more)
      fetch<Deep>(parts_of_block[turn ^ 1], t, from + DEEP);
    if (more)
      asm volatile("cp.async.wait_group 1;");
    else if (Deep)
      asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    multiply_part(c, parts_of_block[turn]);
    __syncthreads();
  }
#pragma unroll
  for (uint32_t j = 0; j < 32; j++) {
    double *at = number_at(t, j / 16, j / 4 % 4, j % 4);
    if (at)
      *at = -c[j / 16][j / 4 % 4][j % 4];
  }
}

/* --- back substitution -------------------------------------------------------------------------------------------------- */

#define BACK_THREADS 64u

/* value / diagonal, in less time than a division where its inverse is there: with one correction it is right but for the last
 * bit. Where that is beyond the normal numbers the division serves. */
__device__ double quotient(double value, double diagonal, double inverse)
{
  const double first = value * inverse;
  return fabs(inverse) < 1e300 && fabs(inverse) > 1e-300 ? fma(fma(-first, diagonal, value), inverse, first) : value / diagonal;
}

/* Each thread block solves with the panel's upper triangle, and takes the unknowns' columns from a thread's row. */
__global__ void __launch_bounds__(BACK_THREADS) back(const __grid_constant__ hk_wide_layout all, uint32_t block)
{
  __shared__ double upper[WIDTH][WIDTH], x[WIDTH]; /* [column][row] */
  const hk_wide_segment &s = all.segment[blockIdx.y];
  const uint32_t blocks = (s.n + WIDTH - 1) / WIDTH;
  if (block >= blocks)
    return;
  const uint32_t from = (blocks - 1 - block) * WIDTH, width = min(WIDTH, s.n - from), lane = threadIdx.x % 32,
                 up = blockIdx.x * BACK_THREADS + threadIdx.x + 1;
  double *const right = s.columns + (size_t)s.border * (s.n + s.after), u[WIDTH];
  const bool above = up <= from && up <= all.reach;
#pragma unroll
  for (uint32_t c = 0; c < WIDTH; c++)
    u[c] = above && c < width ? *band_at(all, s, from - up, from + c) : 0;
  for (uint32_t i = threadIdx.x; i < WIDTH * WIDTH; i += BACK_THREADS) {
    const uint32_t r = i % WIDTH, c = i / WIDTH;
    upper[c][r] = r <= c && c < width ? *band_at(all, s, from + r, from + c) : r == c;
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    const double diagonal = upper[lane][lane], inverse = 1 / diagonal;
    double v = lane < width ? right[from + lane] : 0;
#pragma unroll
    for (int i = WIDTH - 1; i >= 0; i--) {
      const double solved = __shfl_sync(~0u, quotient(v, diagonal, inverse), i);
      v = (int)lane == i ? solved : (int)lane < i ? v - upper[i][lane] * solved : v;
    }
    x[lane] = v;
    if (blockIdx.x == 0 && lane < width)
      s.x[from + lane] = v;
  }
  __syncthreads();
  if (!above)
    return;
  double rest = right[from - up];
#pragma unroll
  for (uint32_t c = 0; c < WIDTH; c++)
    rest -= u[c] * x[c];
  right[from - up] = rest;
}

uint32_t parts(uint32_t all, uint32_t part)
{
  return (all + part - 1) / part;
}

} // namespace

int hk_wide_border(const hk_wide_layout *all, uint32_t row, CUstream_st *stream)
{
  border<<<dim3(parts(all->border, 128), all->segments), 128, 0, stream>>>(*all, row);
  return cudaGetLastError();
}

/* As many columns as a step has in any segment. */
static uint32_t band_most(const hk_wide_layout *all, const hk_wide_step *step)
{
  const uint32_t from = step->from == step->row + step->width ? step->row + 1 : step->from,
                 to = step->to < all->longest + all->after ? step->to : all->longest + all->after;
  return to > from ? to - from : 0;
}

static uint32_t extra_most(const hk_wide_layout *all, const hk_wide_step *step)
{
  return step->extra == HK_WIDE_ALL ? all->border + 1 : step->extra == HK_WIDE_RIGHT;
}

int hk_wide_sides(const hk_wide_layout *all, const hk_wide_step *step, CUstream_st *stream)
{
  const uint32_t columns = step->lefts + band_most(all, step) + extra_most(all, step), threads = SIDES_WARPS * 32;
  const dim3 grid(parts(columns, SIDES_WARPS * SIDES_COLUMNS), all->segments);
  if (columns == 0)
    return cudaSuccess;
  switch (step->width / WIDTH) {
  case 1:
    sides<1><<<grid, threads, 0, stream>>>(*all, *step);
    break;
  case 2:
    sides<2><<<grid, threads, 0, stream>>>(*all, *step);
    break;
  case 4:
    sides<4><<<grid, threads, 0, stream>>>(*all, *step);
    break;
  case 8:
    sides<8><<<grid, threads, 0, stream>>>(*all, *step);
    break;
  case 16:
    sides<16><<<grid, threads, 0, stream>>>(*all, *step);
    break;
  default:
    return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

int hk_wide_update(const hk_wide_layout *all, const hk_wide_step *step, CUstream_st *stream)
{
  const uint32_t band = parts(band_most(all, step), TILE), extra = parts(extra_most(all, step), TILE),
                 rows = parts(all->below, TILE) + parts(all->border, TILE);
  /* A segment with fewer columns of the band has its extra ones earlier: there are never more tiles. */
  if (rows == 0 || band + extra == 0)
    return cudaSuccess;
  const dim3 grid(rows, band + extra, all->segments);
  if (step->width <= DEEP) {
    update<false><<<grid, TILE_THREADS, sizeof(part), stream>>>(*all, *step);
    return cudaGetLastError();
  }
  const cudaError_t failed = cudaFuncSetAttribute(update<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, 2 * sizeof(part));
  if (failed)
    return failed;
  update<true><<<grid, TILE_THREADS, 2 * sizeof(part), stream>>>(*all, *step);
  return cudaGetLastError();
}

int hk_wide_back(const hk_wide_layout *all, uint32_t block, CUstream_st *stream)
{
  back<<<dim3(all->reach ? parts(all->reach, BACK_THREADS) : 1, all->segments), BACK_THREADS, 0, stream>>>(*all, block);
  return cudaGetLastError();
}
