/* From the matrix of a wide band to its segments and back: copies, the system of the separators, and the error of a solution. */
#include "gpu/band/wide_whole.h"

#include <cuda_runtime_api.h>

#define THREADS 256u

namespace
{

__device__ double number_of(const hk_wide_matrix &m, uint32_t row, uint32_t column)
{
  const bool exists = column > row ? column - row <= m.above : row - column <= m.below;
  return exists ? m.a[row * ((size_t)m.below + 1 + m.above) + column + m.below - row] : 0;
}

/* The number in A of a segment's equation or unknown. */
__device__ uint32_t in_whole(const hk_wide_segment &s, uint32_t i)
{
  return s.turned ? s.low - i : s.low + i;
}

__device__ double *right_of(const hk_wide_segment &s)
{
  return s.columns + (size_t)s.border * (s.n + s.after);
}

__device__ uint32_t thread_at()
{
  return blockIdx.x * blockDim.x + threadIdx.x;
}

/* --- to the segments ---------------------------------------------------------------------------------------------------- */

#define SQUARE 32u
#define LINES 8u

/* A square of the band: read along rows, written along columns. */
__global__ void __launch_bounds__(SQUARE *LINES)
    spread_band(const __grid_constant__ hk_wide_layout all, const __grid_constant__ hk_wide_matrix m)
{
  __shared__ double square[SQUARE][SQUARE + 1];
  const hk_wide_segment &s = all.segment[blockIdx.z];
  const uint32_t end = s.n + s.after, top = blockIdx.x * SQUARE, under = (all.below + SQUARE - 1) / SQUARE;
  if (top >= end || blockIdx.x + blockIdx.y < under)
    return;
  const uint32_t first = (blockIdx.x + blockIdx.y - under) * SQUARE, along = threadIdx.x % SQUARE, line = threadIdx.x / SQUARE;
  for (uint32_t k = line; k < SQUARE; k += LINES) {
    const uint32_t row = top + k, column = first + along;
    const bool mine = row < end && column < end && (row < s.n || column < s.n);
    square[k][along] = mine ? number_of(m, in_whole(s, row), in_whole(s, column)) : 0;
  }
  __syncthreads();
  for (uint32_t k = line; k < SQUARE; k += LINES) {
    const uint32_t row = top + along, column = first + k;
    if (row < end && column < end && square[along][k] != 0)
      s.band[row + column * (all.stride - 1)] = square[along][k];
  }
}

/* Copies the numbers that join a segment to the separator before it: a thread for each pair of an equation of the segment and one
 * of the separator. */
__global__ void spread_border(const __grid_constant__ hk_wide_layout all, const __grid_constant__ hk_wide_matrix m)
{
  const hk_wide_segment &s = all.segment[blockIdx.z];
  const uint32_t i = thread_at(), of = blockIdx.y;
  if (of >= s.border || i >= s.n)
    return;
  const uint32_t own = s.low + i, other = s.low - s.border + of;
  s.columns[i + (size_t)of * (s.n + s.after)] = number_of(m, own, other);
  s.left[of + (size_t)i * s.border] = number_of(m, other, own);
}

__global__ void spread_right(const __grid_constant__ hk_wide_layout all, const double *right)
{
  const hk_wide_segment &s = all.segment[blockIdx.y];
  const uint32_t i = thread_at();
  if (i < s.n + s.after)
    right_of(s)[i] = i < s.n ? right[in_whole(s, i)] : 0;
  if (i < s.border)
    s.corner[i + (size_t)s.border * s.border] = 0;
}

/* --- separators --------------------------------------------------------------------------------------------------------- */

/* The segments' remainder of equation `row` and unknown `column` of the separator after segment `t`. */
__device__ double left_over(const hk_wide_layout &all, uint32_t t, uint32_t row, uint32_t column)
{
  const hk_wide_segment &before = all.segment[t], &behind = all.segment[t + 1];
  const size_t ld = all.stride - 1;
  const uint32_t last = before.after - 1, n = behind.n;
  return before.band[before.n + row + (before.n + column) * ld] + (behind.turned
                                                                       ? behind.band[n + last - row + (n + last - column) * ld]
                                                                       : behind.corner[row + (size_t)column * behind.border]);
}

/* blockIdx.z: three times a separator, with the one before, itself, the one behind. */
__global__ void join(const __grid_constant__ hk_wide_layout all, const __grid_constant__ hk_wide_layout whole,
                     const __grid_constant__ hk_wide_matrix m)
{
  const uint32_t row = thread_at(), column = blockIdx.y, t = blockIdx.z / 3, size = all.after, u = t + blockIdx.z % 3 - 1;
  if (row >= size || u >= all.segments - 1) /* before the first, it is huge */
    return;
  const hk_wide_segment &here = all.segment[t], &there = all.segment[u], &joint = whole.segment[0];
  double value = number_of(m, here.low + here.n + row, there.low + there.n + column);
  if (u == t)
    value += left_over(all, t, row, column);
  else if (u > t)
    value += there.left[row + (size_t)(there.n + column) * there.border];
  else
    value += here.columns[here.n + row + (size_t)column * (here.n + here.after)];
  joint.band[t * size + row + (u * size + column) * (whole.stride - 1)] = value;
}

__global__ void join_right(const __grid_constant__ hk_wide_layout all, const __grid_constant__ hk_wide_layout whole,
                           const double *right)
{
  const uint32_t row = thread_at(), t = blockIdx.y, size = all.after;
  if (row >= size)
    return;
  const hk_wide_segment &before = all.segment[t], &behind = all.segment[t + 1];
  const double rest =
      behind.turned ? right_of(behind)[behind.n + size - 1 - row] : behind.corner[row + (size_t)behind.border * behind.border];
  right_of(whole.segment[0])[t * size + row] = right[before.low + before.n + row] + right_of(before)[before.n + row] + rest;
}

/* A thread to an equation. */
__global__ void part(const __grid_constant__ hk_wide_layout all, const __grid_constant__ hk_wide_layout whole)
{
  const hk_wide_segment &s = all.segment[blockIdx.y];
  const uint32_t i = thread_at(), t = blockIdx.y - s.turned;
  if (i >= s.n)
    return;
  const double *x = whole.segment[0].x + t * s.after, *band = s.band + i + s.n * (all.stride - 1);
  const uint32_t away = s.n - i, columns = away > all.reach ? 0 : min(s.after, all.reach - away + 1);
  double rest = right_of(s)[i];
#pragma unroll 8
  for (uint32_t c = 0; c < columns; c++)
    rest -= band[c * (all.stride - 1)] * x[s.turned ? s.after - 1 - c : c];
#pragma unroll 8
  for (uint32_t c = 0; c < s.border; c++)
    rest -= s.columns[i + (size_t)c * (s.n + s.after)] * (x - s.border)[c];
  right_of(s)[i] = rest;
}

__global__ void gather(const __grid_constant__ hk_wide_layout all, const hk_wide_segment *joint, double *x, bool add)
{
  const hk_wide_segment &s = all.segment[blockIdx.y];
  const uint32_t i = thread_at();
  const bool behind = joint && !s.turned && i >= s.n && i < s.n + s.after;
  if (i >= s.n && !behind)
    return;
  const double value = behind ? joint->x[blockIdx.y * s.after + i - s.n] : s.x[i];
  double &to = x[in_whole(s, i)];
  to = add ? to + value : value;
}

/* --- what it is worth --------------------------------------------------------------------------------------------------- */

/* The bits of numbers that are not negative have their order; NaN is above all. */
__device__ void raise(double &most, double value)
{
  atomicMax((unsigned long long *)&most, (unsigned long long)__double_as_longlong(value) & 0x7fffffffffffffffull);
}

/* A thread to a column of some rows of the band. */
#define LARGEST_ROWS 128u

__global__ void __launch_bounds__(THREADS) largest_of_columns(const __grid_constant__ hk_wide_matrix m, double *largest)
{
  const uint32_t top = blockIdx.x * LARGEST_ROWS,
                 column = (top < m.below ? 0 : top - m.below) + blockIdx.y * THREADS + threadIdx.x;
  if (column >= m.n)
    return;
  const uint32_t first = max(top, column < m.above ? 0 : column - m.above),
                 last = min(min(m.n, top + LARGEST_ROWS) - 1, column + m.below);
  double most = 0;
#pragma unroll 8
  for (uint32_t row = first; row <= last; row++)
    most = fmax(most, fabs(number_of(m, row, column)));
  if (first <= last)
    raise(largest[column], most);
}

/* joint: the separators' segment, or NULL. */
__global__ void find_singular(const __grid_constant__ hk_wide_layout all, const hk_wide_segment *joint, size_t joint_ld,
                              const double *largest, double least, hk_wide_sums *sums)
{
  const hk_wide_segment &s = all.segment[blockIdx.y];
  const uint32_t i = thread_at();
  const bool behind = joint && !s.turned && i >= s.n && i < s.n + s.after;
  if (i >= s.n && !behind)
    return;
  const uint32_t column = in_whole(s, i);
  const double pivot = behind ? joint->band[(blockIdx.y * s.after + i - s.n) * (joint_ld + 1)] : s.band[i * all.stride];
  if (!(fabs(pivot) >= least * largest[column]) || largest[column] == 0)
    atomicMin(&sums->singular, column);
}

/* Adds to a sum, and keeps the rounding error (Knuth's two-sum). */
__device__ void add_to(double &sum, double &lost, double value)
{
  const double more = __dadd_rn(sum, value), added = __dadd_rn(more, -sum);
  lost = __dadd_rn(lost, __dadd_rn(__dadd_rn(sum, -__dadd_rn(more, -added)), __dadd_rn(value, -added)));
  sum = more;
}

/* A warp to a row. */
__global__ void __launch_bounds__(THREADS)
    residual_of(const __grid_constant__ hk_wide_matrix m, const double *b, const double *x, double *residual, hk_wide_sums *sums)
{
  const uint32_t row = thread_at() / 32, lane = threadIdx.x % 32;
  if (row >= m.n)
    return;
  const uint32_t first = row < m.below ? 0 : row - m.below, last = min(m.n - 1, row + m.above);
  double rest = lane == 0 ? b[row] : 0, lost = 0, magnitude = 0;
  for (uint32_t column = first + lane; column <= last; column += 32) {
    const double value = number_of(m, row, column);
    add_to(rest, lost, -__dmul_rn(value, x[column]));
    magnitude += fabs(value);
  }
  for (uint32_t apart = 16; apart > 0; apart /= 2) {
    add_to(rest, lost, __shfl_down_sync(~0u, rest, apart));
    lost += __shfl_down_sync(~0u, lost, apart);
    magnitude += __shfl_down_sync(~0u, magnitude, apart);
  }
  if (lane != 0)
    return;
  residual[row] = rest + lost;
  raise(sums->residual, rest + lost);
  raise(sums->matrix, magnitude);
  raise(sums->solution, x[row]);
  raise(sums->right, b[row]);
}

uint32_t parts(uint32_t all, uint32_t size)
{
  return (all + size - 1) / size;
}

const hk_wide_segment *joint_of(const hk_wide_layout *whole)
{
  return whole ? whole->segment : nullptr;
}

} // namespace

int hk_wide_spread(const hk_wide_layout *all, const hk_wide_matrix *m, CUstream_st *stream)
{
  const uint32_t rows = all->longest + all->after, above = all->reach - all->below,
                 beside = parts(all->below, SQUARE) + parts(above, SQUARE) + 1;
  spread_band<<<dim3(parts(rows, SQUARE), beside, all->segments), SQUARE * LINES, 0, stream>>>(*all, *m);
  if (all->border > 0) /* equations further away are not joined */
    spread_border<<<dim3(parts(all->border, 64), all->border, all->segments), 64, 0, stream>>>(*all, *m);
  return cudaGetLastError();
}

int hk_wide_spread_right(const hk_wide_layout *all, const double *right, CUstream_st *stream)
{
  spread_right<<<dim3(parts(all->longest + all->after, THREADS), all->segments), THREADS, 0, stream>>>(*all, right);
  return cudaGetLastError();
}

int hk_wide_join(const hk_wide_layout *all, const hk_wide_layout *whole, const hk_wide_matrix *m, CUstream_st *stream)
{
  join<<<dim3(parts(all->after, 128), all->after, 3 * (all->segments - 1)), 128, 0, stream>>>(*all, *whole, *m);
  return cudaGetLastError();
}

int hk_wide_join_right(const hk_wide_layout *all, const hk_wide_layout *whole, const double *right, CUstream_st *stream)
{
  join_right<<<dim3(parts(all->after, 128), all->segments - 1), 128, 0, stream>>>(*all, *whole, right);
  return cudaGetLastError();
}

int hk_wide_part(const hk_wide_layout *all, const hk_wide_layout *whole, CUstream_st *stream)
{
  part<<<dim3(parts(all->longest, 64), all->segments), 64, 0, stream>>>(*all, *whole);
  return cudaGetLastError();
}

int hk_wide_gather(const hk_wide_layout *all, const hk_wide_layout *whole, double *x, bool add, CUstream_st *stream)
{
  const dim3 grid(parts(all->longest + all->after, THREADS), all->segments);
  gather<<<grid, THREADS, 0, stream>>>(*all, joint_of(whole), x, add);
  return cudaGetLastError();
}

int hk_wide_find_singular(const hk_wide_layout *all, const hk_wide_layout *whole, const double *largest, double least,
                          hk_wide_sums *sums, CUstream_st *stream)
{
  const dim3 grid(parts(all->longest + all->after, THREADS), all->segments);
  find_singular<<<grid, THREADS, 0, stream>>>(*all, joint_of(whole), whole ? whole->stride - 1 : 0, largest, least, sums);
  return cudaGetLastError();
}

int hk_wide_largest(const hk_wide_matrix *m, double *largest, CUstream_st *stream)
{
  const cudaError_t failed = cudaMemsetAsync(largest, 0, m->n * sizeof *largest, stream);
  if (failed)
    return failed;
  const uint32_t columns = m->below + LARGEST_ROWS + m->above;
  largest_of_columns<<<dim3(parts(m->n, LARGEST_ROWS), parts(columns, THREADS)), THREADS, 0, stream>>>(*m, largest);
  return cudaGetLastError();
}

int hk_wide_residual(const hk_wide_matrix *m, const double *b, const double *x, double *residual, hk_wide_sums *sums,
                     CUstream_st *stream)
{
  residual_of<<<parts(m->n, THREADS / 32), THREADS, 0, stream>>>(*m, b, x, residual, sums);
  return cudaGetLastError();
}
