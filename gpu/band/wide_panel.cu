/* Panels of wide bands: HK_WIDE_PANEL columns, a thread to a row, whose numbers stay in registers. Rows are not moved before the
 * end: each pivot is the largest number of its column in the rows that have not been one.
 *
 * A loop takes AT_ONCE columns, of which register 0 has the first: then those go to shared memory, and the others move up.
 * Written out for all columns the code is longer than the instruction caches, and each is executed once: a third of the time was
 * lost. */
#include "gpu/band/wide_panel.h"
#include "gpu/band/wide_step.cuh"

#include <cooperative_groups.h>
#define AT_ONCE 4 /* even, so that a column has the same turn in each round */
#define THREADS HK_WIDE_THREADS
#define WARPS (THREADS / 32)

namespace
{

/* The largest magnitude of some rows, by its bits. Of equal ones the first row's. */
struct __align__(16) candidate
{
  uint32_t high, low, row, lane; /* high: 0 if there is no row, else one more than the number's; lane: that had it */
};

/* A row that may become the pivot's: its numbers, the inverse of the pivot's column's, and which row it is; in pairs. */
struct __align__(16) offer
{
  double number[WIDTH], inverse;
  uint64_t row; /* HK_WIDE_NONE: the block has none */
};
#define PAIRS (sizeof(offer) / 16)

/* What the threads of a block tell each other; [2]: this pivot's and the one's before, which some may still read. */
struct board {
  candidate of_warp[2][WARPS];
  offer best, of_block[2][HK_WIDE_CLUSTER]; /* without a cluster [..][0] alone */
  uint64_t arrived[2];                      /* barriers that count the bytes of of_block */
  uint32_t pivot[WIDTH];
};

__device__ candidate largest(const candidate &c)
{
  const uint32_t high = __reduce_max_sync(~0u, c.high), low = __reduce_max_sync(~0u, c.high == high ? c.low : 0u);
  const uint32_t first = __ffs(__ballot_sync(~0u, c.high == high && c.low == low)) - 1;
  return { high, low, __shfl_sync(~0u, c.row, first), first };
}

__device__ candidate candidate_of(uint32_t row, double value, bool may)
{
  return { may ? ((uint32_t)__double2hiint(value) & 0x7fffffffu) + 1 : 0, may ? (uint32_t)__double2loint(value) : 0, row, 0 };
}

/* Tells the block of the warp's largest number of a column. */
__device__ void post(board &shared, uint32_t row, double value, bool may, uint32_t turn)
{
  const candidate warp = largest(candidate_of(row, value, may));
  if (threadIdx.x % 32 == 0)
    shared.of_warp[turn][threadIdx.x / 32] = warp;
}

/* --- clusters ----------------------------------------------------------------------------------------------------------- */

#if __CUDA_ARCH__ >= 900

__device__ uint32_t shared_address(const void *p)
{
  return (uint32_t)__cvta_generic_to_shared(p);
}

/* The warp sends what `shared.best` has to all blocks of the cluster, whose barriers count the bytes: four lanes to each. */
__device__ void send(board &shared, uint32_t turn)
{
  const uint32_t lane = threadIdx.x % 32, to = shared_address(&shared.of_block[turn][blockIdx.x]),
                 barrier = shared_address(&shared.arrived[turn]);
  uint32_t there, barrier_there;
  if (lane / 4 >= gridDim.x)
    return;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(to), "r"(lane / 4));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier_there) : "r"(barrier), "r"(lane / 4));
#pragma unroll
  for (uint32_t i = 0; i < PAIRS; i += 4)
    if (i + lane % 4 < PAIRS) {
      const ulonglong2 pair = reinterpret_cast<const ulonglong2 *>(&shared.best)[i + lane % 4];
      asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];" ::"r"(
                       there + (i + lane % 4) * 16),
                   "l"(pair.x), "l"(pair.y), "r"(barrier_there)
                   : "memory");
    }
}

__device__ void open_barriers(board &shared)
{
  if (threadIdx.x < 2)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&shared.arrived[threadIdx.x])) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  cooperative_groups::this_cluster().sync();
}

/* Waits for all blocks' offers of column j of a round. */
__device__ void wait_for_offers(board &shared, int j)
{
  const uint32_t barrier = shared_address(&shared.arrived[j % 2]), phase = j / 2 % 2;
  if (threadIdx.x == 0)
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"((uint32_t)(gridDim.x * sizeof(offer)))
                 : "memory");
  uint32_t done = 0;
  while (!done)
    asm volatile("{ .reg .pred done;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, done; }"
                 : "=r"(done)
                 : "r"(barrier), "r"(phase)
                 : "memory");
}
#else /* hk_wide_has_clusters says that there are none */
__device__ void send(board &, uint32_t) {}

__device__ void open_barriers(board &) {}

__device__ void wait_for_offers(board &, int) {}
#endif

/* --- the panel ---------------------------------------------------------------------------------------------------------- */

/* Chooses the pivot of column j of a round, of which all warps have posted their largest. inverse: of the thread's number there.
 */
template <bool Cluster>
__device__ __forceinline__ const offer &choose(board &shared, const double (&v)[WIDTH], double inverse, uint32_t row, bool may,
                                               int j)
{
  const uint32_t turn = j % 2, lane = threadIdx.x % 32, first = blockIdx.x * blockDim.x;
  __syncthreads();
  const candidate best = largest(lane < blockDim.x / 32 ? shared.of_warp[turn][lane] : candidate{});
  offer &mine = Cluster ? shared.best : shared.of_block[turn][0];
  const bool none = best.high == 0;
  if (none ? threadIdx.x == 0 : may && row == best.row) {
#pragma unroll
    for (int c = j; c < (int)WIDTH; c++)
      mine.number[c] = v[c];
    mine.inverse = inverse;
    mine.row = none ? HK_WIDE_NONE : row;
  }
  if (!Cluster) {
    __syncthreads();
    return mine;
  }
  if ((none ? first : best.row) / 32 == (first + threadIdx.x) / 32) {
    __syncwarp();
    send(shared, turn);
  }
  wait_for_offers(shared, j);
  const offer &offered = shared.of_block[turn][min(lane, gridDim.x - 1)];
  const uint32_t of = (uint32_t)offered.row;
  const candidate chosen = largest(candidate_of(of, offered.number[j], lane < gridDim.x && of != HK_WIDE_NONE));
  return shared.of_block[turn][chosen.lane];
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

/* About 1 / x, and to the last bit or so where that is a normal number; else anything, which `quotient` finds out. */
__device__ double about_inverse(double x)
{
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  y = fma(fma(-x, y, 1.0), y, y);
  return fma(fma(-x, y, 1.0), y, y);
}

/* Takes column j of a round from those behind it, the next one first, of whose largest number the others wait to be told. Rows
 * that have been pivots take nothing, which costs less than a condition. inverse: of the next column's number. */
__device__ __forceinline__ void take_column(board &shared, double (&v)[WIDTH], double &inverse, const offer &chosen, uint32_t row,
                                            bool eligible, bool loses, bool many, int j)
{
  const double pivot = chosen.number[j], times = loses && pivot != 0 ? quotient(v[j], pivot, chosen.inverse) : 0;
  v[j] = loses ? times : v[j];
  v[j + 1] -= times * chosen.number[j + 1];
  post(shared, row, v[j + 1], eligible && loses, (j + 1) % 2);
  inverse = about_inverse(v[j + 1]);
#pragma unroll
  for (int c = j + 2; c < (int)WIDTH / 2; c++)
    v[c] -= times * chosen.number[c];
  if (many)
#pragma unroll
    for (int c = WIDTH / 2; c < (int)WIDTH; c++)
      v[c] -= times * chosen.number[c];
}

template <bool Cluster>
__global__ void __launch_bounds__(THREADS, 1) factorise(const __grid_constant__ hk_wide_layout all, uint32_t from)
{
  extern __shared__ double finished[]; /* [column][thread] */
  __shared__ board shared;
  const hk_wide_segment &s = all.segment[blockIdx.y];
  begin_next();
  wait_for_last();
  if (from >= s.n)
    return;
  const uint32_t width = min(WIDTH, s.n - from), rows = min(s.n + s.after - from, WIDTH + all.below),
                 eligible = min(s.n - from, rows), row = blockIdx.x * blockDim.x + threadIdx.x;
  const size_t ld = all.stride - 1;
  double *const band = s.band + from * (ld + 1), *const mine = finished + threadIdx.x, v[WIDTH];
  uint32_t order = HK_WIDE_NONE;
#pragma unroll
  for (uint32_t c = 0; c < WIDTH; c++)
    v[c] = band[min(row, rows - 1) + min(c, width - 1) * ld]; /* with a condition each would be waited for */
  if (Cluster)
    open_barriers(shared);
  post(shared, row, v[0], row < eligible, 0);
  double inverse = about_inverse(v[0]);
#pragma unroll 1
  for (uint32_t done = 0; done < width; done += AT_ONCE) {
#pragma unroll
    for (int j = 0; j < AT_ONCE; j++)
      if (done + j < width) {
        const offer &chosen = choose<Cluster>(shared, v, inverse, row, row < eligible && order == HK_WIDE_NONE, j);
        if (threadIdx.x == 0)
          shared.pivot[done + j] = (uint32_t)chosen.row;
        if (row == chosen.row)
          order = done + j;
        take_column(shared, v, inverse, chosen, row, row < eligible, order == HK_WIDE_NONE, done < WIDTH / 2, j);
      }
#pragma unroll
    for (int c = 0; c < (int)WIDTH; c++) {
      if (c < AT_ONCE)
        mine[(done + c) * blockDim.x] = v[c];
      v[c] = c + AT_ONCE < (int)WIDTH ? v[(c + AT_ONCE) % WIDTH] : 0;
    }
  }
  __syncthreads();
  uint32_t to = order != HK_WIDE_NONE ? order : row;
  if (row < 32) {
    const uint32_t away = displaced(shared, s.exchange[from / WIDTH], width, order != HK_WIDE_NONE);
    to = away != HK_WIDE_NONE ? away : to;
  }
  if (row < rows)
#pragma unroll 8
    for (uint32_t c = 0; c < width; c++)
      band[to + c * ld] = mine[c * blockDim.x];
#if __CUDA_ARCH__ >= 900
  if (Cluster)
    cooperative_groups::this_cluster().sync(); /* others send to this block's shared memory up to here */
#endif
}

} // namespace

int hk_wide_panel(const hk_wide_layout *all, uint32_t row, CUstream_st *stream)
{
  const uint32_t rows = all->below + WIDTH, blocks = hk_wide_panel_blocks(all->below, all->clusters),
                 threads = ((rows + blocks - 1) / blocks + 31) / 32 * 32;
  const size_t bytes = WIDTH * threads * sizeof(double);
  void (*const kernel)(hk_wide_layout, uint32_t) = blocks > 1 ? factorise<true> : factorise<false>;
  const cudaError_t failed = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
  return failed ? failed
                : launch_early(kernel, dim3(blocks, all->segments), threads, bytes, stream, all->clusters, blocks, *all, row);
}

int hk_wide_has_clusters(bool *has)
{
  cudaFuncAttributes built;
  const cudaError_t failed = cudaFuncGetAttributes(&built, factorise<true>);
  *has = !failed && built.ptxVersion >= 90 && built.binaryVersion >= 90;
  return failed;
}
