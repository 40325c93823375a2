/* Panels of wide bands: HK_WIDE_PANEL columns, a thread to a row, whose numbers stay in registers. Rows are not moved before the
 * end: each pivot is the largest number of its column in the rows that have not been one. */
#include "gpu/band/wide_panel.h"

#include <cooperative_groups.h>
#include <cuda_runtime_api.h>

#define WIDTH HK_WIDE_PANEL
#define THREADS HK_WIDE_THREADS
#define WARPS (THREADS / 32)

namespace
{

/* The largest magnitude of some rows, by its bits. Of equal ones the first row's. */
struct __align__(16) candidate
{
  uint32_t high, low, row, unused; /* high: 0 if there is no row, else one more than the number's */
};

/* What the threads of a block tell each other; [2]: this pivot's and the one's before, which some may still read. */
struct board {
  candidate of_warp[2][WARPS], of_block[2];
  __align__(16) double row[2][WIDTH], best[2][WIDTH]; /* the pivot's row, and the best of this block */
  uint32_t pivot[WIDTH];
};

__device__ candidate largest(const candidate &c)
{
  const uint32_t high = __reduce_max_sync(~0u, c.high), low = __reduce_max_sync(~0u, c.high == high ? c.low : 0u);
  const uint32_t first = __ffs(__ballot_sync(~0u, c.high == high && c.low == low)) - 1;
  return { high, low, __shfl_sync(~0u, c.row, first), 0 };
}

__device__ candidate largest_of_block(board &shared, uint32_t row, double value, bool may, uint32_t turn)
{
  const uint32_t lane = threadIdx.x % 32;
  const candidate warp = largest(
      { may ? ((uint32_t)__double2hiint(value) & 0x7fffffffu) + 1 : 0, may ? (uint32_t)__double2loint(value) : 0, row, 0 });
  if (lane == 0)
    shared.of_warp[turn][threadIdx.x / 32] = warp;
  __syncthreads();
  return largest(lane < blockDim.x / 32 ? shared.of_warp[turn][lane] : candidate{});
}

/* Chooses the pivot of column j. Returns its row, whose numbers from j on are in shared.row[turn] then. */
template <bool Cluster>
__device__ __forceinline__ uint32_t choose(board &shared, const double (&v)[WIDTH], uint32_t row, bool may, int j)
{
  const uint32_t turn = j % 2;
  candidate best = largest_of_block(shared, row, v[j], may, turn);
  if (may && row == best.row)
#pragma unroll
    for (int c = j; c < (int)WIDTH; c++)
      (Cluster ? shared.best : shared.row)[turn][c] = v[c];
#if __CUDA_ARCH__ >= 900
  if (Cluster) {
    const auto cluster = cooperative_groups::this_cluster();
    const uint32_t lane = threadIdx.x % 32;
    if (threadIdx.x == 0)
      shared.of_block[turn] = best;
    cluster.sync();
    if (threadIdx.x < 32) {
      best = largest(lane < cluster.num_blocks() ? *cluster.map_shared_rank(&shared.of_block[turn], lane) : candidate{});
      shared.row[turn][lane] = cluster.map_shared_rank(shared.best[turn], best.row / blockDim.x)[lane];
    }
  }
#endif
  if (threadIdx.x == 0)
    shared.pivot[j] = best.row;
  __syncthreads();
  return Cluster ? shared.pivot[j] : best.row;
}

/* Where rows of the first `width` go that are no pivots: to the places of pivots from below. By the first warp. */
__device__ uint32_t displaced(const board &shared, hk_wide_exchange &exchange, uint32_t width, bool pivot)
{
  const uint32_t lane = threadIdx.x, from = lane < width ? shared.pivot[lane] : lane;
  const uint32_t moved = __ballot_sync(~0u, lane < width && !pivot), vacant = __ballot_sync(~0u, lane < width && from >= width);
  uint32_t to = HK_WIDE_NONE;
  if (moved >> lane & 1)
    to = shared.pivot[__fns(vacant, 0, __popc(moved & ((1u << lane) - 1)) + 1)];
  exchange.from[lane] = from;
  exchange.to[lane] = to;
  return to;
}

template <bool Cluster>
__global__ void __launch_bounds__(THREADS, 1) factorise(const __grid_constant__ hk_wide_layout all, uint32_t from)
{
  __shared__ board shared;
  const hk_wide_segment &s = all.segment[blockIdx.y];
  if (from >= s.n)
    return;
  const uint32_t width = min(WIDTH, s.n - from), rows = min(s.n + s.after - from, WIDTH + all.below),
                 eligible = min(s.n - from, rows), row = blockIdx.x * blockDim.x + threadIdx.x;
  const size_t ld = all.stride - 1;
  double *const band = s.band + from * (ld + 1), v[WIDTH];
  uint32_t order = HK_WIDE_NONE;
#pragma unroll
  for (uint32_t c = 0; c < WIDTH; c++)
    v[c] = row < rows && c < width ? band[row + c * ld] : 0;
#pragma unroll
  for (int j = 0; j < (int)WIDTH; j++)
    if (j < (int)width) {
      const uint32_t best = choose<Cluster>(shared, v, row, row < eligible && order == HK_WIDE_NONE, j);
      if (row == best)
        order = j;
      else if (order == HK_WIDE_NONE) {
        const double pivot = shared.row[j % 2][j], times = pivot != 0 ? v[j] / pivot : 0;
        v[j] = times;
#pragma unroll
        for (int c = j + 1; c < (int)WIDTH; c++)
          v[c] -= times * shared.row[j % 2][c];
      }
    }
  __syncthreads();
  uint32_t to = order != HK_WIDE_NONE ? order : row;
  if (row < 32) {
    const uint32_t away = displaced(shared, s.exchange[from / WIDTH], width, order != HK_WIDE_NONE);
    to = away != HK_WIDE_NONE ? away : to;
  }
  if (row < rows)
#pragma unroll
    for (uint32_t c = 0; c < WIDTH; c++)
      if (c < width)
        band[to + c * ld] = v[c];
#if __CUDA_ARCH__ >= 900
  if (Cluster)
    cooperative_groups::this_cluster().sync(); /* others read this block's shared memory up to here */
#endif
}

} // namespace

int hk_wide_panel(const hk_wide_layout *all, uint32_t row, CUstream_st *stream)
{
  const uint32_t rows = all->below + WIDTH, blocks = hk_wide_panel_blocks(all->below, true),
                 threads = ((rows + blocks - 1) / blocks + 31) / 32 * 32;
  if (blocks == 1) {
    factorise<false><<<dim3(1, all->segments), threads, 0, stream>>>(*all, row);
    return cudaGetLastError();
  }
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = blocks;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t how = {};
  how.gridDim = dim3(blocks, all->segments);
  how.blockDim = dim3(threads);
  how.stream = stream;
  how.attrs = &cluster;
  how.numAttrs = 1;
  return cudaLaunchKernelEx(&how, factorise<true>, *all, row);
}
