/* Subtracts the product of a block from the rest of wide bands, by the tensor cores in double precision. */
#include "gpu/band/wide_product.h"
#include "gpu/band/wide_step.cuh"

#define WIDE 64u /* columns of a tile; it has High rows, of which two warps have the halves */
#define THREADS 128u
#define DEEP 16u /* rows and columns that are multiplied at once; those of STAGES are under way */
#define STAGES 4u
#define COLUMNS_APART (DEEP + 4) /* A fragment's 16 numbers of 4 columns then lie in 16 banks of 8 bytes. */
#define MANY 256u                /* number of tiles that fill a GPU */

namespace
{

/* A tile of the rest, and the rows and columns whose product is subtracted from it. */
struct tile {
  const double *a, *b;
  double *c;
  size_t lda, ldb, ldc;
  uint32_t rows, columns, depth;
  bool a_pairs, b_pairs; /* pairs of numbers lie at multiples of 16 bytes */
};

__device__ bool in_pairs(const double *from, size_t ld)
{
  return ((size_t)from / sizeof(double) | ld) % 2 == 0;
}

/* Rows below the block come first, then those of the border; columns of the band, then the extra ones. False: there is no such.
 */
template <uint32_t High>
__device__ bool tile_of(tile &t, const hk_wide_layout &all, const hk_wide_segment &s, const hk_wide_step &step)
{
  if (step.row >= s.n)
    return false;
  t.depth = min(step.width, s.n - step.row);
  const uint32_t below = step.row + t.depth, window = min(s.n + s.after - below, all.below),
                 window_tiles = (window + High - 1) / High;
  const range band = band_range(step, s);
  const uint32_t band_tiles = (band.count + WIDE - 1) / WIDE;
  const bool down = blockIdx.x >= window_tiles, aside = blockIdx.y >= band_tiles;
  const uint32_t row = (blockIdx.x - (down ? window_tiles : 0)) * High, rows = down ? s.border : window,
                 column = (blockIdx.y - (aside ? band_tiles : 0)) * WIDE + (aside ? extra_from(step, s) : band.from),
                 columns = aside ? s.border + 1 : band.from + band.count;
  if (row >= rows || column >= columns)
    return false;
  t.rows = min(High, rows - row);
  t.columns = min(WIDE, columns - column);
  t.lda = down ? s.border : all.stride - 1;
  t.a = down ? s.left + row + (size_t)step.row * s.border : band_at(all, s, below + row, step.row);
  const size_t high = s.n + s.after;
  t.ldb = aside ? high : all.stride - 1;
  t.b = aside ? s.columns + step.row + column * high : band_at(all, s, step.row, column);
  t.ldc = down ? s.border : t.ldb;
  t.a_pairs = in_pairs(t.a, t.lda);
  t.b_pairs = in_pairs(t.b, t.ldb);
  t.c = !down ? (aside ? s.columns + below + row + column * high : band_at(all, s, below + row, column))
              : (aside ? s.corner : s.left) + row + (size_t)column * s.border;
  return true;
}

/* The block's numbers that the threads of a tile share: rows below it, and columns beside it. */
template <uint32_t High> struct part {
  double rows[DEEP * (High + 4)], columns[WIDE * COLUMNS_APART];
};

/* Copies two numbers to shared memory without waiting, of which `count` exist; the others are zero. */
__device__ void copy_pair(double &to, const double *from, uint32_t count, bool together)
{
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(&to);
  if (together)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(8 * count));
  else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(at), "l"(from), "r"(count > 0 ? 8 : 0));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(at + 8), "l"(from + 1), "r"(count > 1 ? 8 : 0));
  }
}

/* How many of the two numbers from `at` on are below `end`. */
__device__ uint32_t of_pair(uint32_t at, uint32_t end)
{
  return at >= end ? 0 : min(end - at, 2u);
}

/* Begins to copy DEEP rows and columns from `from` on, zero beyond the block's depth. */
template <uint32_t High> __device__ void fetch(part<High> &p, const tile &t, uint32_t from)
{
  constexpr uint32_t lines = THREADS / (High / 2), across = THREADS / (DEEP / 2);
  const uint32_t row = threadIdx.x % (High / 2) * 2, high = threadIdx.x / (High / 2), k = threadIdx.x % (DEEP / 2) * 2,
                 wide = threadIdx.x / (DEEP / 2);
  const uint32_t rows = of_pair(row, t.rows), deep = of_pair(from + k, t.depth);
  const double *a = t.a + row + (from + high) * t.lda, *b = t.b + from + k + wide * t.ldb;
#pragma unroll
  for (uint32_t i = 0; i < DEEP / lines; i++, a += lines * t.lda)
    copy_pair(p.rows[(high + i * lines) * (High + 4) + row], a, from + high + i * lines < t.depth ? rows : 0, t.a_pairs);
#pragma unroll
  for (uint32_t i = 0; i < WIDE / across; i++, b += across * t.ldb)
    copy_pair(p.columns[(wide + i * across) * COLUMNS_APART + k], b, wide + i * across < t.columns ? deep : 0, t.b_pairs);
}

/* Row and column of number j of those that a thread has of a tile: by 4 of 16 rows and 8 columns, as multiply has them. */
template <uint32_t High> __device__ uint32_t row_of(uint32_t j)
{
  return threadIdx.x / 32 % 2 * (High / 2) + j / 16 * 16 + j % 4 / 2 * 8 + threadIdx.x % 32 / 4;
}

__device__ uint32_t column_of(uint32_t j)
{
  return threadIdx.x / 64 * 32 + j / 4 % 4 * 8 + threadIdx.x % 4 * 2 + j % 2;
}

/* Loads the negated numbers of a tile; beyond its end any numbers. All are read at once: a condition for each would make the
 * thread wait. */
template <uint32_t High> __device__ void read_tile(double (&c)[High / 32][4][4], const tile &t)
{
#pragma unroll
  for (uint32_t j = 0; j < High / 2; j++)
    c[j / 16][j / 4 % 4][j % 4] = -t.c[min(row_of<High>(j), t.rows - 1) + min(column_of(j), t.columns - 1) * t.ldc];
}

template <uint32_t High> __device__ void write_tile(const double (&c)[High / 32][4][4], const tile &t)
{
#pragma unroll
  for (uint32_t j = 0; j < High / 2; j++)
    if (row_of<High>(j) < t.rows && column_of(j) < t.columns)
      t.c[row_of<High>(j) + column_of(j) * t.ldc] = -c[j / 16][j / 4 % 4][j % 4];
}

template <uint32_t High> __device__ void multiply_part(double (&c)[High / 32][4][4], const part<High> &p)
{
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const double *const rows = p.rows + lane % 4 * (High + 4) + warp % 2 * (High / 2) + lane / 4, *const columns =
                                                                                                    p.columns +
                                                                                                    (warp / 2 * 32 + lane / 4) *
                                                                                                        COLUMNS_APART +
                                                                                                    lane % 4;
#pragma unroll
  for (uint32_t k = 0; k < DEEP; k += 8) {
    double a[High / 32][4], b[4][2];
#pragma unroll
    for (uint32_t j = 0; j < High / 8; j++)
      a[j / 4][j % 4] = rows[(k + j / 2 % 2 * 4) * (High + 4) + j / 4 * 16 + j % 2 * 8];
#pragma unroll
    for (uint32_t j = 0; j < 8; j++)
      b[j / 2][j % 2] = columns[j / 2 * 8 * COLUMNS_APART + k + j % 2 * 4];
#pragma unroll
    for (uint32_t j = 0; j < High / 8; j++)
      multiply(c[j / 4][j % 4], a[j / 4], b[j % 4]);
  }
}

/* The sums begin with the negated rest, and the product is added. */
template <uint32_t High>
__global__ void __launch_bounds__(THREADS, High > 64 ? 2 : 3)
    product(const __grid_constant__ hk_wide_layout all, const __grid_constant__ hk_wide_step step)
{
  extern __shared__ __align__(16) double shared[];
  part<High> *const part_of = reinterpret_cast<part<High> *>(shared);
  tile t;
  begin_next();
  wait_for_last();
  if (!tile_of<High>(t, all, all.segment[blockIdx.z], step))
    return;
#pragma unroll
  for (uint32_t i = 0; i + 1 < STAGES; i++) {
    if (i * DEEP < t.depth)
      fetch(part_of[i], t, i * DEEP);
    asm volatile("cp.async.commit_group;");
  }
  double c[High / 32][4][4];
  read_tile<High>(c, t);
  for (uint32_t i = 0; i * DEEP < t.depth; i++) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
    __syncthreads();
    const uint32_t next = i + STAGES - 1;
    if (next * DEEP < t.depth)
      fetch(part_of[next % STAGES], t, next * DEEP);
    asm volatile("cp.async.commit_group;");
    multiply_part<High>(c, part_of[i % STAGES]);
  }
  write_tile<High>(c, t);
}

/* Tiles of the rows and columns of any segment; 0: there are none. A segment with fewer columns of the band has its extra ones
 * earlier: there are never more tiles. */
dim3 tiles_of(const hk_wide_layout *all, const hk_wide_step *step, uint32_t high)
{
  return dim3(parts(all->below, high) + parts(all->border, high),
              parts(band_most(all, step), WIDE) + parts(extra_most(all, step), WIDE), all->segments);
}

template <uint32_t High> cudaError_t launch(const hk_wide_layout *all, const hk_wide_step *step, CUstream_st *stream)
{
  const size_t bytes = STAGES * sizeof(part<High>);
  const cudaError_t failed = cudaFuncSetAttribute(product<High>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
  if (failed)
    return failed;
  return launch_early(product<High>, tiles_of(all, step, High), THREADS, bytes, stream, all->clusters, 1, *all, *step);
}

} // namespace

int hk_wide_product(const hk_wide_layout *all, const hk_wide_step *step, CUstream_st *stream)
{
  const dim3 tiles = tiles_of(all, step, 128);
  if (tiles.x == 0 || tiles.y == 0)
    return cudaSuccess;
  return tiles.x * tiles.y * tiles.z >= MANY ? launch<128>(all, step, stream) : launch<64>(all, step, stream);
}
