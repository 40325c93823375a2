/* The steps after the panels of wide bands: solutions with the triangles of a block, and the product that is subtracted from the
 * rest. */
#include "gpu/band/wide_update.h"

#include "gpu/band/wide_step.cuh"

namespace
{

/* --- triangles beside a block ------------------------------------------------------------------------------------------- */

#define SIDES_WARPS 8u
#define SIDES_COLUMNS 4u /* of a warp */
#define SIDES_THREADS (SIDES_WARPS * 32)

/* Columns of a step in a segment. */
__device__ uint32_t side_columns(const hk_wide_segment &s, const hk_wide_step &step)
{
  return step.lefts + band_range(step, s).count + s.border + 1 - extra_from(step, s);
}

/* Column number `at` of them, from the block's first row on. */
__device__ double *side_column(const hk_wide_layout &all, const hk_wide_segment &s, const hk_wide_step &step, uint32_t at)
{
  if (at < step.lefts)
    return band_at(all, s, step.row, step.left + at);
  at -= step.lefts;
  const range band = band_range(step, s);
  if (at < band.count)
    return band_at(all, s, step.row, band.from + at);
  return s.columns + step.row + (size_t)(at + extra_from(step, s) - band.count) * (s.n + s.after);
}

/* Numbers between columns in shared memory: a fragment's of 8 columns then lie in 16 banks of 8 bytes. */
__host__ __device__ uint32_t side_apart(const hk_wide_step &step)
{
  return step.width + 4;
}

/* Exchanges rows of the warp's columns, of which `columns` exist; v: the panel's rows then, in shared memory. All are read before
 * one is written, and without a condition, so that a warp waits once. */
__device__ void exchange_rows(double *const (&column)[SIDES_COLUMNS], uint32_t columns, uint32_t row,
                              const hk_wide_exchange &exchange, uint32_t width, double *v, uint32_t apart)
{
  const uint32_t lane = threadIdx.x % 32, from = exchange.from[lane], to = exchange.to[lane];
  double goes[SIDES_COLUMNS], comes[SIDES_COLUMNS];
#pragma unroll
  for (uint32_t k = 0; k < SIDES_COLUMNS; k++) {
    comes[k] = column[k][row + from];
    goes[k] = column[k][row + lane];
  }
  __syncwarp();
#pragma unroll
  for (uint32_t k = 0; k < SIDES_COLUMNS; k++) {
    v[k * apart + lane] = lane < width ? comes[k] : 0;
    if (k < columns && lane < width) {
      column[k][row + lane] = comes[k];
      if (to != HK_WIDE_NONE)
        column[k][row + to] = goes[k];
    }
  }
  __syncwarp();
}

/* Begins to copy what panel `p` of a block has below its diagonal, [column][row]. */
__device__ void copy_triangle(double *lower, const hk_wide_layout &all, const hk_wide_segment &s, uint32_t from, uint32_t width,
                              uint32_t p)
{
#pragma unroll
  for (uint32_t i = threadIdx.x; i < WIDTH * WIDTH; i += SIDES_THREADS) {
    const uint32_t row = i % WIDTH, column = i / WIDTH;
    const double *at = band_at(all, s, from + p * WIDTH + row, from + p * WIDTH + column);
    copy_number(lower[i], at, column < row && p * WIDTH + row < width);
  }
}

/* Solves with a panel's triangle, of which a lane has a row, for the warp's columns. */
__device__ void solve_with(const double *lower, double *v, uint32_t apart)
{
  const uint32_t lane = threadIdx.x % 32;
  double x[SIDES_COLUMNS];
#pragma unroll
  for (uint32_t k = 0; k < SIDES_COLUMNS; k++)
    x[k] = v[k * apart + lane];
#pragma unroll 8
  for (uint32_t i = 0; i < WIDTH; i++) {
    const double times = lower[i * WIDTH + lane];
#pragma unroll
    for (uint32_t k = 0; k < SIDES_COLUMNS; k++)
      x[k] -= times * __shfl_sync(~0u, x[k], i);
  }
#pragma unroll
  for (uint32_t k = 0; k < SIDES_COLUMNS; k++)
    v[k * apart + lane] = x[k];
}

/* Subtracts the product of panel `p`, and of its rows below within the block, from those rows of all columns in shared memory. A
 * warp has 8 columns, and 16 of each 32 rows. Numbers read from below the block change none of them. */
__device__ void take_panel(double *v, uint32_t apart, const hk_wide_layout &all, const hk_wide_segment &s, uint32_t from,
                           uint32_t p, uint32_t panels)
{
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, down = warp % 2 * 16 + lane / 4;
  double *const at = v + warp / 2 * 8 * apart;
  double b[WIDTH / 8][2];
#pragma unroll
  for (uint32_t k = 0; k < WIDTH / 4; k++)
    b[k / 2][k % 2] = -at[lane / 4 * apart + p * WIDTH + k * 4 + lane % 4];
#pragma unroll 2
  for (uint32_t q = p + 1; q < panels; q++) {
    double a[WIDTH / 8][4], c[4];
#pragma unroll
    for (uint32_t i = 0; i < WIDTH / 2; i++)
      a[i / 4][i % 4] =
          *band_at(all, s, from + q * WIDTH + down + i % 2 * 8, from + p * WIDTH + i / 4 * 8 + i / 2 % 2 * 4 + lane % 4);
#pragma unroll
    for (uint32_t i = 0; i < 4; i++)
      c[i] = at[(lane % 4 * 2 + i % 2) * apart + q * WIDTH + down + i / 2 * 8];
#pragma unroll
    for (uint32_t k = 0; k < WIDTH / 8; k++)
      multiply(c, a[k], b[k]);
#pragma unroll
    for (uint32_t i = 0; i < 4; i++)
      at[(lane % 4 * 2 + i % 2) * apart + q * WIDTH + down + i / 2 * 8] = c[i];
  }
}

/* The columns stay in shared memory: panel after panel is solved, and subtracted from the rows below it. */
__global__ void __launch_bounds__(SIDES_THREADS)
    sides(const __grid_constant__ hk_wide_layout all, const __grid_constant__ hk_wide_step step)
{
  extern __shared__ __align__(16) double of_block[];
  const hk_wide_segment &s = all.segment[blockIdx.y];
  begin_next();
  wait_for_last();
  if (step.row >= s.n || side_columns(s, step) <= blockIdx.x * SIDES_WARPS * SIDES_COLUMNS)
    return;
  const uint32_t lane = threadIdx.x % 32, width = min(step.width, s.n - step.row), panels = (width + WIDTH - 1) / WIDTH,
                 mine = threadIdx.x / 32 * SIDES_COLUMNS, first = blockIdx.x * SIDES_WARPS * SIDES_COLUMNS + mine,
                 all_columns = side_columns(s, step), columns = all_columns > first ? all_columns - first : 0,
                 apart = side_apart(step);
  double *const lower = of_block, *const v = lower + 2 * WIDTH * WIDTH, *const own = v + mine * apart, *column[SIDES_COLUMNS];
  copy_triangle(lower, all, s, step.row, width, 0);
#pragma unroll
  for (uint32_t k = 0; k < SIDES_COLUMNS; k++)
    column[k] = side_column(all, s, step, min(first + k, all_columns - 1));
  for (uint32_t p = 0; p < panels; p++)
    exchange_rows(column, columns, p * WIDTH, s.exchange[step.row / WIDTH + p], min(WIDTH, width - p * WIDTH), own + p * WIDTH,
                  apart);
  for (uint32_t p = 0; p < panels; p++) {
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    if (p + 1 < panels)
      copy_triangle(lower + (p + 1) % 2 * WIDTH * WIDTH, all, s, step.row, width, p + 1);
    solve_with(lower + p % 2 * WIDTH * WIDTH, own + p * WIDTH, apart);
    if (p + 1 < panels) {
      __syncthreads();
      take_panel(v, apart, all, s, step.row, p, panels);
    }
  }
#pragma unroll
  for (uint32_t k = 0; k < SIDES_COLUMNS; k++)
    if (k < columns && first + k >= step.lefts)
      for (uint32_t row = lane; row < width; row += 32)
        column[k][row] = own[k * apart + row];
}

/* A thread processes a row of the border. */
__global__ void __launch_bounds__(128) border(const __grid_constant__ hk_wide_layout all, uint32_t from)
{
  __shared__ double upper[WIDTH][WIDTH], inverse[WIDTH]; /* upper[row][column] */
  const hk_wide_segment &s = all.segment[blockIdx.y];
  begin_next();
  wait_for_last();
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  if (from >= s.n || !s.left)
    return;
  const uint32_t width = min(WIDTH, s.n - from);
  for (uint32_t i = threadIdx.x; i < WIDTH * WIDTH; i += blockDim.x) {
    const uint32_t r = i % WIDTH, c = i / WIDTH;
    const double value = *band_at(all, s, from + r, from + min(c, width - 1));
    upper[r][c] = r <= c && c < width ? value : 0;
  }
  __syncthreads();
  if (threadIdx.x < WIDTH)
    inverse[threadIdx.x] = 1 / upper[threadIdx.x][threadIdx.x];
  __syncthreads();
  if (row >= s.border)
    return;
  double v[WIDTH], *const left = s.left + row + (size_t)from * s.border;
#pragma unroll
  for (uint32_t c = 0; c < WIDTH; c++)
    v[c] = left[(size_t)min(c, width - 1) * s.border];
#pragma unroll
  for (uint32_t i = 0; i < WIDTH; i++)
    if (i < width) {
      v[i] = upper[i][i] != 0 ? quotient(v[i], upper[i][i], inverse[i]) : 0;
#pragma unroll
      for (uint32_t c = i + 1; c < WIDTH; c++)
        v[c] -= v[i] * upper[i][c];
    }
#pragma unroll
  for (uint32_t c = 0; c < WIDTH; c++)
    if (c < width)
      left[(size_t)c * s.border] = v[c];
}

/* --- back substitution -------------------------------------------------------------------------------------------------- */

#define BACK_THREADS 64u

/* Each thread block solves with the panel's upper triangle, and takes the unknowns' columns from a thread's row. It may begin
 * before the block before it has ended, for whose right sides it waits. */
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
  begin_next();
#pragma unroll
  for (uint32_t c = 0; c < WIDTH; c++)
    u[c] = *band_at(all, s, from - (above ? up : 0), from + min(c, width - 1));
  for (uint32_t i = threadIdx.x; i < WIDTH * WIDTH; i += BACK_THREADS) {
    const uint32_t r = i % WIDTH, c = i / WIDTH;
    const double value = *band_at(all, s, from + r, from + min(c, width - 1));
    upper[c][r] = r <= c && c < width ? value : r == c;
  }
  wait_for_last();
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

} // namespace

int hk_wide_border(const hk_wide_layout *all, uint32_t row, CUstream_st *stream)
{
  return launch_early(border, dim3(parts(all->border, 128), all->segments), 128, 0, stream, all->clusters, 1, *all, row);
}

int hk_wide_sides(const hk_wide_layout *all, const hk_wide_step *step, CUstream_st *stream)
{
  const uint32_t columns = step->lefts + band_most(all, step) + extra_most(all, step);
  const size_t bytes = (2 * WIDTH * WIDTH + SIDES_WARPS * SIDES_COLUMNS * (size_t)side_apart(*step)) * sizeof(double);
  if (columns == 0)
    return cudaSuccess;
  const cudaError_t failed = cudaFuncSetAttribute(sides, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
  if (failed)
    return failed;
  const dim3 grid(parts(columns, SIDES_WARPS * SIDES_COLUMNS), all->segments);
  return launch_early(sides, grid, SIDES_THREADS, bytes, stream, all->clusters, 1, *all, *step);
}

int hk_wide_back(const hk_wide_layout *all, uint32_t block, CUstream_st *stream)
{
  const dim3 grid(all->reach ? parts(all->reach, BACK_THREADS) : 1, all->segments);
  /* the one before the first makes the factors */
  return launch_early(back, grid, BACK_THREADS, 0, stream, all->clusters && block > 0, 1, *all, block);
}
