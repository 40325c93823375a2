/* The graph residual, a thread to a node; the four passes of cpu/field/residual.h are four kernels, for each reads what the one
 * before wrote of other nodes.
 *
 * All columns but what is read of neighbours are coalesced, a warp to the 32 nodes that lie together. Of neighbours
 * the third pass and the fourth read 8 bytes, one sector of memory each. Both passes first load all numbers of their
 * neighbours, then all records, and only then compute, so that a thread has up to Q loads under way; Q is q rounded up, for loops
 * over arrays in registers must be unrolled. */
#include "cpu/field/residual_refit.h"
#include "gpu/field/residual_kernels.h"

#include <cuda_runtime_api.h>

#ifndef HK_THREADS
#define HK_THREADS 128u
#endif
#ifndef HK_GATHER
#define HK_GATHER 8 /* records of neighbours that are loaded at once */
#endif
#define HK_REFIT_THREADS 32u /* so that their numbers with 16 neighbours fit into 48 KB */

static __global__ void __launch_bounds__(HK_THREADS) standardise(const __grid_constant__ struct hk_residual f, const double *x)
{
  const uint32_t i = blockIdx.x * HK_THREADS + threadIdx.x;
  if (i < f.room)
    hk_residual_standardise(&f, x, i);
}

static __global__ void __launch_bounds__(HK_THREADS) show(const __grid_constant__ struct hk_residual f)
{
  const uint32_t i = blockIdx.x * HK_THREADS + threadIdx.x;
  if (i < f.room)
    hk_residual_show(&f, i);
}

/* The neighbours of node i. */
template <int Q> static __device__ __forceinline__ void load_neighbours(const struct hk_residual &f, uint32_t i, uint32_t (&j)[Q])
{
#pragma unroll
  for (int k = 0; k < Q; k++)
    j[k] = (uint32_t)k < f.rule.neighbours ? __ldcs(&f.neighbour[hk_residual_at(f.rule.neighbours, k, i)]) : HK_RESIDUAL_NONE;
}

template <int Q>
static __global__ void __launch_bounds__(HK_THREADS) predict(const __grid_constant__ struct hk_residual f, double *r)
{
  const uint32_t i = blockIdx.x * HK_THREADS + threadIdx.x;
  if (i >= f.room)
    return;
  uint32_t j[Q];
  float w[Q];
  load_neighbours(f, i, j);
#pragma unroll
  for (int k = 0; k < Q; k++)
    w[k] = (uint32_t)k < f.rule.neighbours ? __ldcs(&f.weight[hk_residual_at(f.rule.neighbours + 1, k, i)]) : 0;
  const struct hk_residual_seen own = f.now.seen[i];
  const float level = f.weight[hk_residual_at(f.rule.neighbours + 1, f.rule.neighbours, i)],
              bound = hk_residual_bound(f.errors[i], f.error[i]);
  const double spread = f.spread[i];
  const bool speaks = f.made[i] && hk_residual_there(&own);
  struct hk_residual_view v = hk_residual_begin(&own);
#pragma unroll
  for (int begin = 0; begin < Q; begin += HK_GATHER) {
    float2 from[HK_GATHER]; /* struct hk_residual_seen in one load */
#pragma unroll
    for (int k = 0; k < HK_GATHER; k++)
      if (begin + k < Q && j[begin + k] != HK_RESIDUAL_NONE)
        from[k] = __ldg((const float2 *)&f.now.seen[j[begin + k]]);
#pragma unroll
    for (int k = 0; k < HK_GATHER; k++)
      if (begin + k < Q && j[begin + k] != HK_RESIDUAL_NONE) {
        const struct hk_residual_seen seen = { from[k].x, __float_as_uint(from[k].y) };
        hk_residual_look(&v, &own, &seen, w[begin + k], (uint32_t)(begin + k));
      }
  }
  const struct hk_residual_verdict out =
      speaks ? hk_residual_judge(&f, &own, &v, level, spread, bound) : hk_residual_silence(&own);
  f.now.guess[i] = out.guess;
  f.now.off[i] = out.off;
  f.now.lesson[i] = out.lesson;
  r[i] = out.r;
}

/* Row a of the sums of a node: a + 1 of G, and one of b. */
template <int Q>
static __device__ __forceinline__ void load_sums(const struct hk_residual &f, uint32_t i, int a, double (&sum)[Q + 2])
{
  if ((uint32_t)a > f.rule.neighbours)
    return;
#pragma unroll
  for (int b = 0; b <= Q; b++)
    if (b <= a)
      sum[b] = __ldcs(&f.product[hk_residual_at(hk_residual_products(&f.rule), hk_residual_packed((uint32_t)a, (uint32_t)b), i)]);
  sum[Q + 1] = __ldcs(&f.target[hk_residual_at(f.rule.neighbours + 1, a, i)]);
}

/* hk_residual_add, with the loads of the next row of sums begun before this one is stored; the caller begins the first one's. */
template <int Q>
static __device__ __forceinline__ void add(const struct hk_residual &f, uint32_t i, const float (&u)[Q + 1], float z,
                                           double (&sums)[2][Q + 2])
{
#pragma unroll
  for (int a = 0; a <= Q; a++) {
    if (a < Q)
      load_sums<Q>(f, i, a + 1, sums[(a + 1) & 1]);
    if ((uint32_t)a > f.rule.neighbours)
      continue;
#pragma unroll
    for (int b = 0; b <= Q; b++)
      if (b <= a)
        __stcs(&f.product[hk_residual_at(hk_residual_products(&f.rule), hk_residual_packed((uint32_t)a, (uint32_t)b), i)],
               hk_residual_sum(&f, sums[a & 1][b], u[a], u[b]));
    __stcs(&f.target[hk_residual_at(f.rule.neighbours + 1, a, i)], hk_residual_sum(&f, sums[a & 1][Q + 1], u[a], z));
  }
  hk_residual_count_row(&f, i);
}

template <int Q> static __global__ void __launch_bounds__(HK_THREADS) learn(const __grid_constant__ struct hk_residual f)
{
  const uint32_t i = blockIdx.x * HK_THREADS + threadIdx.x;
  if (i >= f.room)
    return;
  const float own = f.now.z[i];
  uint32_t j[Q], ripe[Q], there = 0, wild = 0;
  float u[Q + 1], z;
  double sums[2][Q + 2];
  load_neighbours(f, i, j);
  load_sums<Q>(f, i, 0, sums[0]);
#pragma unroll
  for (int k = 0; k < Q; k++)
    ripe[k] = (uint32_t)k < f.rule.neighbours ? f.ripe[hk_residual_at(f.rule.neighbours, k, i)] : HK_RESIDUAL_SETTLE;
  f.last[i] = f.now.seen[i].h;
  if (own != own)
    return;
#pragma unroll
  for (int k = 0; k < Q; k++) {
    const float2 from = j[k] == HK_RESIDUAL_NONE ? make_float2(0, 0) : __ldg((const float2 *)&f.now.lesson[j[k]]);
    const uint32_t kind = __float_as_uint(from.y);
    u[k] = (uint32_t)k == f.rule.neighbours ? 1 : from.x;
    there |= (kind & HK_RESIDUAL_THERE) << k;
    wild |= kind & HK_RESIDUAL_WILD;
  }
  u[Q] = 1;
  if (!hk_residual_lesson_of(&f, i, wild != 0, &z))
    return;
#pragma unroll
  for (int k = 0; k < Q; k++)
    if ((there >> k & 1) && ripe[k] < HK_RESIDUAL_SETTLE)
      f.ripe[hk_residual_at(f.rule.neighbours, k, i)] = ripe[k] + 1;
  add<Q>(f, i, u, z, sums);
}

/* hk_residual_refit: a thread solves in shared memory, its numbers as far apart as there are threads. */
template <int Q> static __global__ void __launch_bounds__(HK_REFIT_THREADS) refit(const __grid_constant__ struct hk_residual f)
{
  extern __shared__ double numbers[];
  const uint32_t i = blockIdx.x * HK_REFIT_THREADS + threadIdx.x;
  const struct hk_residual_ridge m = { numbers + threadIdx.x, HK_REFIT_THREADS, f.rule.neighbours + 1 };
  if (i >= f.room)
    return;
  double sums[2][Q + 2];
  load_sums<Q>(f, i, 0, sums[0]);
  const uint32_t ones = hk_residual_ripe_ones(&f, i), n_ripe = hk_residual_ripe_count(&f, ones);
  if (!hk_residual_is_due(&f, i, n_ripe))
    return;
#pragma unroll
  for (int a = 0; a <= Q; a++) {
    if (a < Q)
      load_sums<Q>(f, i, a + 1, sums[(a + 1) & 1]);
    if ((uint32_t)a > f.rule.neighbours)
      continue;
#pragma unroll
    for (int b = 0; b <= Q; b++)
      if (b <= a)
        *hk_residual_matrix(&m, (uint32_t)a, (uint32_t)b) =
            hk_residual_ridge_product(&f, i, ones, (uint32_t)a, (uint32_t)b, sums[a & 1][b]);
    *hk_residual_side(&m, (uint32_t)a) = hk_residual_ridge_target(&f, i, ones, n_ripe, (uint32_t)a, sums[a & 1][Q + 1]);
  }
  hk_residual_settle_weights(&f, i, &m);
}

static uint32_t blocks_of(const struct hk_residual *f)
{
  return (f->room + HK_THREADS - 1) / HK_THREADS;
}

extern "C" int hk_residual_launch_standardise(const struct hk_residual *f, const double *x, double *, struct CUstream_st *stream)
{
  standardise<<<blocks_of(f), HK_THREADS, 0, stream>>>(*f, x);
  return (int)cudaGetLastError();
}

extern "C" int hk_residual_launch_show(const struct hk_residual *f, const double *, double *, struct CUstream_st *stream)
{
  show<<<blocks_of(f), HK_THREADS, 0, stream>>>(*f);
  return (int)cudaGetLastError();
}

extern "C" int hk_residual_launch_predict(const struct hk_residual *f, const double *, double *r, struct CUstream_st *stream)
{
  const uint32_t q = f->rule.neighbours, blocks = blocks_of(f);
  if (q <= 4)
    predict<4><<<blocks, HK_THREADS, 0, stream>>>(*f, r);
  else if (q <= 8)
    predict<8><<<blocks, HK_THREADS, 0, stream>>>(*f, r);
  else if (q <= 12)
    predict<12><<<blocks, HK_THREADS, 0, stream>>>(*f, r);
  else
    predict<16><<<blocks, HK_THREADS, 0, stream>>>(*f, r);
  return (int)cudaGetLastError();
}

extern "C" int hk_residual_launch_learn(const struct hk_residual *f, const double *, double *, struct CUstream_st *stream)
{
  const uint32_t q = f->rule.neighbours, blocks = blocks_of(f);
  if (q <= 4)
    learn<4><<<blocks, HK_THREADS, 0, stream>>>(*f);
  else if (q <= 8)
    learn<8><<<blocks, HK_THREADS, 0, stream>>>(*f);
  else if (q <= 12)
    learn<12><<<blocks, HK_THREADS, 0, stream>>>(*f);
  else
    learn<16><<<blocks, HK_THREADS, 0, stream>>>(*f);
  return (int)cudaGetLastError();
}

extern "C" int hk_residual_launch_refit(const struct hk_residual *f, const double *, double *, struct CUstream_st *stream)
{
  const uint32_t q = f->rule.neighbours, blocks = (f->room + HK_REFIT_THREADS - 1) / HK_REFIT_THREADS;
  const size_t shared = (hk_residual_products(&f->rule) + q + 1) * HK_REFIT_THREADS * sizeof(double);
  if (q <= 4)
    refit<4><<<blocks, HK_REFIT_THREADS, shared, stream>>>(*f);
  else if (q <= 8)
    refit<8><<<blocks, HK_REFIT_THREADS, shared, stream>>>(*f);
  else if (q <= 12)
    refit<12><<<blocks, HK_REFIT_THREADS, shared, stream>>>(*f);
  else
    refit<16><<<blocks, HK_REFIT_THREADS, shared, stream>>>(*f);
  return (int)cudaGetLastError();
}
