/* Adds rows to the sums of a field. Of a row with 16 neighbours the sums would be nine tenths of what moves, so rows wait
 * until there are some, and one pass adds them all, each to each sum, in their order.
 *
 * What a node hears of its neighbours is not kept for it: each node keeps its own h of the waiting rows, of eight rows 32 bytes
 * beside each other, which are one sector of memory for whoever has it as a neighbour. A node that was wild in a row, whose
 * neighbours do not learn it, has NaN there. */
#include "cpu/field/residual_learn.h"
#include "gpu/field/residual_rows.cuh"

#include <cuda_runtime_api.h>

#define HK_THREADS 128u
#define HK_PARTS ((int)HK_RESIDUAL_TURN / 4) /* of what a node keeps of HK_RESIDUAL_TURN rows */
#define HK_SUM_BLOCKS 4                      /* of a processor */

/* Places h of HK_RESIDUAL_TURN of the waiting rows, from blockIdx.y times that on, beside each other: what others read of a node
 * to learn. */
static __global__ void __launch_bounds__(HK_THREADS) turn(const __grid_constant__ struct hk_residual_resident t)
{
  const uint32_t i = blockIdx.x * HK_THREADS + threadIdx.x, lane = i % HK_RESIDUAL_LANES;
  float h[HK_RESIDUAL_TURN];
  if (i >= t.of.room)
    return;
#pragma unroll
  for (uint32_t k = 0; k < HK_RESIDUAL_TURN; k++) {
    const uint32_t row = blockIdx.y * HK_RESIDUAL_TURN + k;
    h[k] = row < t.waiting ? __ldcs(&t.shown[(size_t)row * t.of.room + i]) : 0;
    if (row < t.waiting && t.told[i / HK_RESIDUAL_LANES * HK_RESIDUAL_WAITING + row].wild >> lane & 1)
      h[k] = NAN;
  }
#pragma unroll
  for (int part = 0; part < HK_PARTS; part++)
    t.history[((size_t)blockIdx.y * t.of.room + i) * HK_PARTS + part] = { h[4 * part], h[4 * part + 1], h[4 * part + 2],
                                                                          h[4 * part + 3] };
}

/* Counts the rows learned with a value of each neighbour. learns: a bit for each of the waiting rows. All lanes call it. */
static __device__ void ripen(const struct hk_residual_resident &t, uint32_t i, uint32_t learns)
{
  const uint32_t q = t.of.rule.neighbours;
  bool all = true;
  for (uint32_t k = 0; k < q; k++) {
    const uint32_t j = t.of.neighbour[hk_residual_at(q, k, i)];
    uint32_t ripe = t.of.ripe[hk_residual_at(q, k, i)];
    if (j == HK_RESIDUAL_NONE || ripe >= HK_RESIDUAL_SETTLE)
      continue;
    for (uint32_t row = 0; row < t.waiting; row++)
      ripe += learns >> row & t.told[j / HK_RESIDUAL_LANES * HK_RESIDUAL_WAITING + row].there >> (j % HK_RESIDUAL_LANES) & 1;
    t.of.ripe[hk_residual_at(q, k, i)] = ripe < HK_RESIDUAL_SETTLE ? ripe : HK_RESIDUAL_SETTLE;
    all &= ripe >= HK_RESIDUAL_SETTLE;
  }
  if (__all_sync(ALL, all) && i % HK_RESIDUAL_LANES == 0)
    t.slice[i / HK_RESIDUAL_LANES].ripe = 1;
}

/* Counts the waiting rows that a node learns. All lanes call it. */
static __device__ __forceinline__ void sum_count(const struct hk_residual_resident &t, uint32_t i, uint32_t learns)
{
  if (!t.slice[i / HK_RESIDUAL_LANES].ripe)
    ripen(t, i, learns);
  for (uint32_t left = learns; left; left &= left - 1) {
    const struct hk_residual_count count = hk_residual_count_of(&t.of, i);
    hk_residual_count_row(&t.of, i, &count);
  }
}

/* What 32 nodes heard in HK_RESIDUAL_TURN rows: u of the neighbours, from number q on 1, and z'. */
template <int Q> struct hk_residual_heard {
  double u[HK_RESIDUAL_TURN][Q + 2][HK_RESIDUAL_LANES];
  uint32_t wild[HK_SUM_WARPS][HK_RESIDUAL_LANES]; /* a bit for each row in which a neighbour was wild, as each warp found */
};

/* The part of a warp in the rows from `first` on: every fourth neighbour, every fourth row. */
template <int Q>
static __device__ __forceinline__ void sum_hear(const struct hk_residual_resident &t, uint32_t i, uint32_t warp, uint32_t first,
                                                struct hk_residual_heard<Q> *heard)
{
  const uint32_t lane = i % HK_RESIDUAL_LANES, q = t.of.rule.neighbours;
  const float4 *history = &t.history[(size_t)(first / HK_RESIDUAL_TURN) * t.of.room * HK_PARTS];
  float4 from[Q / HK_SUM_WARPS][HK_PARTS];
  uint32_t wild = 0;
#pragma unroll
  for (int turn = 0; turn < Q / HK_SUM_WARPS; turn++) {
    const uint32_t k = turn * HK_SUM_WARPS + warp;
    const uint32_t j = k < q ? t.of.neighbour[hk_residual_at(q, k, i)] : HK_RESIDUAL_NONE;
    const float without = k < q ? 0 : 1;
#pragma unroll
    for (int part = 0; part < HK_PARTS; part++)
      from[turn][part] =
          j == HK_RESIDUAL_NONE ? make_float4(without, without, without, without) : __ldg(&history[(size_t)j * HK_PARTS + part]);
  }
#pragma unroll
  for (uint32_t row = warp; row < HK_RESIDUAL_TURN; row += HK_SUM_WARPS) {
    heard->u[row][Q][lane] = 1;
    heard->u[row][Q + 1][lane] = first + row < t.waiting ? __ldcs(&t.taught[(size_t)(first + row) * t.of.room + i]) : 0;
  }
#pragma unroll
  for (int turn = 0; turn < Q / HK_SUM_WARPS; turn++)
#pragma unroll
    for (int part = 0; part < HK_PARTS; part++) {
      const float h[] = { from[turn][part].x, from[turn][part].y, from[turn][part].z, from[turn][part].w };
#pragma unroll
      for (int row = 0; row < 4; row++) {
        heard->u[4 * part + row][turn * HK_SUM_WARPS + warp][lane] = h[row];
        wild |= (uint32_t)(h[row] != h[row]) << (4 * part + row);
      }
    }
  heard->wild[warp][lane] = wild;
}

/* The waiting rows that a node would learn if none of its neighbours was wild. All lanes call it. */
static __device__ __forceinline__ uint32_t sum_learns(const struct hk_residual_resident &t, uint32_t i)
{
  const uint32_t lane = i % HK_RESIDUAL_LANES;
  const uint32_t mine = lane < t.waiting ? t.told[i / HK_RESIDUAL_LANES * HK_RESIDUAL_WAITING + lane].learns : 0;
  uint32_t learns = 0;
#pragma unroll
  for (int row = 0; row < (int)HK_RESIDUAL_WAITING; row++)
    learns |= (__shfl_sync(ALL, mine, row) >> lane & 1) << row;
  return learns;
}

/* Adds row number `row` of those that were heard to a warp's sums. The product of two floats is exact in double, so that fma,
 * which rounds once, gives the bits of hk_residual_sum, which rounds the product, too. */
template <int Q>
static __device__ __forceinline__ void sum_add(const struct hk_residual &f, uint32_t warp, uint32_t lane, uint32_t row,
                                               const struct hk_residual_heard<Q> &heard, struct hk_residual_rows<Q> &rows)
{
  const double z = heard.u[row][Q + 1][lane];
  double mine[HK_SLOTS(Q)] = {};
  rows_each<Q>(f.rule.neighbours, warp, [&](int s, uint32_t a) {
    mine[s] = heard.u[row][a][lane];
    rows.target[s] = __fma_rn(mine[s], z, f.rule.forget * rows.target[s]);
  });
#pragma unroll
  for (int b = 0; b <= Q; b++) {
    const double u = heard.u[row][b][lane];
#pragma unroll
    for (int s = 0; s < HK_SLOTS(Q); s++) /* in a slot without a row nothing is meant, and nothing stored */
      if (rows_have<Q>(s, rows_of<Q>(s, warp), b))
        rows.product[HK_SLOT(Q, s) + b] = __fma_rn(mine[s], u, f.rule.forget * rows.product[HK_SLOT(Q, s) + b]);
  }
}

/* A block adds the waiting rows of 32 nodes. All of a warp's sums are loaded before anything is computed, and remain there until
 * they are stored, in registers but for 128 bytes a thread with 16 neighbours; meanwhile other blocks load or store. */
template <int Q>
static __global__ void __launch_bounds__(HK_SUM_THREADS, HK_SUM_BLOCKS) sum(const __grid_constant__ struct hk_residual_resident t)
{
  __shared__ struct hk_residual_heard<Q> heard;
  const uint32_t warp = threadIdx.x / HK_RESIDUAL_LANES, lane = threadIdx.x % HK_RESIDUAL_LANES;
  const uint32_t i = blockIdx.x * HK_RESIDUAL_LANES + lane;
  struct hk_residual_rows<Q> rows = {
  };
  uint32_t learns = sum_learns(t, i);
  sum_hear(t, i, warp, 0, &heard);
  rows_move<Q>(t.of, i, warp, rows, [&](double *where, double &number) { number = __ldcs(where); });
  for (uint32_t first = 0; first < t.waiting; first += HK_RESIDUAL_TURN) {
    if (first > 0) {
      __syncthreads();
      sum_hear(t, i, warp, first, &heard);
    }
    __syncthreads();
    for (int w = 0; w < HK_SUM_WARPS; w++)
      learns &= ~(heard.wild[w][lane] << first);
    for (uint32_t row = 0; row < HK_RESIDUAL_TURN; row++)
      if (learns >> (first + row) & 1)
        sum_add<Q>(t.of, warp, lane, row, heard, rows);
  }
  if (warp == HK_SUM_WARPS - 1)
    sum_count(t, i, learns);
  if (learns)
    rows_move<Q>(t.of, i, warp, rows, [&](double *where, double &number) { __stcs(where, number); });
}

/* --- launch ------------------------------------------------------------------------------------------------------------ */

extern "C" int hk_residual_launch_turn(const struct hk_residual_resident *t, const double *, double *, struct CUstream_st *stream)
{
  const dim3 blocks(blocks_of(t, HK_THREADS), (t->waiting + HK_RESIDUAL_TURN - 1) / HK_RESIDUAL_TURN);
  turn<<<blocks, HK_THREADS, 0, stream>>>(*t);
  return (int)cudaGetLastError();
}

extern "C" int hk_residual_launch_sum(const struct hk_residual_resident *t, const double *, double *, struct CUstream_st *stream)
{
  const uint32_t q = t->of.rule.neighbours, slices = t->of.room / HK_RESIDUAL_LANES, threads = HK_SUM_THREADS;
  if (q <= 4)
    sum<4><<<slices, threads, 0, stream>>>(*t);
  else if (q <= 8)
    sum<8><<<slices, threads, 0, stream>>>(*t);
  else if (q <= 12)
    sum<12><<<slices, threads, 0, stream>>>(*t);
  else
    sum<16><<<slices, threads, 0, stream>>>(*t);
  return (int)cudaGetLastError();
}
