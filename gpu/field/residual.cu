/* The graph residual, a thread to a node; the four passes of cpu/field/residual.h are four kernels, for each reads what the one
 * before wrote of other nodes.
 *
 * All columns but what is read of neighbours are coalesced, a warp to the 32 nodes that lie together. Of neighbours
 * the third pass and the fourth read 8 bytes, one sector of memory each. Both passes first load all numbers of their
 * neighbours, then many records, and only then compute, so that a thread has many loads under way; Q is q rounded up, for loops
 * over arrays in registers must be unrolled. Numbers of neighbours are packed where all of a warp's are near.
 *
 * Of a row with 16 neighbours the sums would be nine tenths of what moves. So rows wait until there are some, and one pass
 * adds them all, each to each sum, in their order. */
#include "cpu/field/residual_refit.h"
#include "gpu/field/residual_kernels.h"

#include <cuda_runtime_api.h>

#ifndef HK_THREADS
#define HK_THREADS 128u
#endif
#ifndef HK_GATHER
#define HK_GATHER 8 /* records of neighbours that are loaded at once */
#endif
#ifndef HK_SUM_THREADS
#define HK_SUM_THREADS 64u
#endif
#define HK_REFIT_THREADS 32u /* so that their numbers with 16 neighbours fit into 48 KB */
#define ALL 0xffffffffu      /* lanes */

static __global__ void __launch_bounds__(HK_THREADS)
    standardise(const __grid_constant__ struct hk_residual_resident t, const double *x)
{
  const uint32_t i = blockIdx.x * HK_THREADS + threadIdx.x;
  if (i < t.of.room)
    hk_residual_standardise(&t.of, x, i);
  if (i == 0)
    *t.out = 0;
}

static __global__ void __launch_bounds__(HK_THREADS) show(const __grid_constant__ struct hk_residual_resident t)
{
  const uint32_t i = blockIdx.x * HK_THREADS + threadIdx.x;
  if (i < t.of.room)
    hk_residual_show(&t.of, i);
}

/* --- neighbours -------------------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ uint32_t residual_words(const struct hk_residual_resident &t)
{
  return (t.of.rule.neighbours + 1) / 2;
}

static __global__ void __launch_bounds__(HK_THREADS) residual_pack(const __grid_constant__ struct hk_residual_resident t)
{
  const uint32_t i = blockIdx.x * HK_THREADS + threadIdx.x, q = t.of.rule.neighbours;
  bool near = true, close = true;
  if (i >= t.of.room)
    return;
  for (uint32_t k = 0; k < q; k++) {
    const uint32_t j = t.of.neighbour[hk_residual_at(q, k, i)];
    const int64_t apart = (int64_t)j - (int64_t)i;
    near &= j == HK_RESIDUAL_NONE || (apart != 0 && apart >= INT16_MIN && apart <= INT16_MAX);
    close &= j == HK_RESIDUAL_NONE || (apart >= INT8_MIN && apart <= INT8_MAX);
  }
  near = __all_sync(ALL, near);
  const uint32_t bits = near && __all_sync(ALL, close) ? 8 : near ? 16 : 32;
  if (i % HK_RESIDUAL_LANES == 0)
    t.slice[i / HK_RESIDUAL_LANES] = { bits, 0 };
  for (uint32_t w = 0; bits < 32 && w < residual_words(t); w++) {
    uint32_t word = 0;
    for (uint32_t of = 0; of < 32 / bits; of++) {
      const uint32_t k = w * 32 / bits + of, j = k < q ? t.of.neighbour[hk_residual_at(q, k, i)] : HK_RESIDUAL_NONE;
      word |= (j == HK_RESIDUAL_NONE ? 0 : (j - i) & ((1u << bits) - 1)) << bits * of;
    }
    t.offset[hk_residual_at(residual_words(t), w, i)] = word;
  }
}

/* The neighbours of node i, of BITS each. */
template <int Q, int BITS>
static __device__ __forceinline__ void residual_unpack(const struct hk_residual_resident &t, uint32_t i, uint32_t (&j)[Q])
{
  constexpr int EACH = 32 / BITS;
  uint32_t word[Q / EACH];
#pragma unroll
  for (int w = 0; w < Q / EACH; w++)
    word[w] = (uint32_t)(w * EACH) < t.of.rule.neighbours ? __ldcs(&t.offset[hk_residual_at(residual_words(t), w, i)]) : 0;
#pragma unroll
  for (int k = 0; k < Q; k++) {
    const int32_t apart = (int32_t)(word[k / EACH] << (32 - BITS * (k % EACH + 1))) >> (32 - BITS);
    j[k] = apart == 0 ? HK_RESIDUAL_NONE : i + (uint32_t)apart;
  }
}

/* The neighbours of node i; bits: of its slice. */
template <int Q>
static __device__ __forceinline__ void load_neighbours(const struct hk_residual_resident &t, uint32_t i, uint32_t bits,
                                                       uint32_t (&j)[Q])
{
  const uint32_t q = t.of.rule.neighbours;
  if (bits == 8) {
    residual_unpack<Q, 8>(t, i, j);
  } else if (bits == 16) {
    residual_unpack<Q, 16>(t, i, j);
  } else {
#pragma unroll
    for (int k = 0; k < Q; k++)
      j[k] = (uint32_t)k < q ? __ldcs(&t.of.neighbour[hk_residual_at(q, k, i)]) : HK_RESIDUAL_NONE;
  }
}

template <int Q>
static __global__ void __launch_bounds__(HK_THREADS) predict(const __grid_constant__ struct hk_residual_resident t, double *r)
{
  const struct hk_residual &f = t.of;
  const uint32_t i = blockIdx.x * HK_THREADS + threadIdx.x;
  if (i >= f.room)
    return;
  const uint32_t bits = t.slice[i / HK_RESIDUAL_LANES].bits;
  uint32_t j[Q];
  float w[Q];
#pragma unroll
  for (int k = 0; k < Q; k++)
    w[k] = (uint32_t)k < f.rule.neighbours ? __ldcs(&f.weight[hk_residual_at(f.rule.neighbours + 1, k, i)]) : 0;
  const struct hk_residual_seen own = f.now.seen[i];
  const float level = f.weight[hk_residual_at(f.rule.neighbours + 1, f.rule.neighbours, i)],
              bound = hk_residual_bound(f.errors[i], f.error[i]);
  const double spread = f.spread[i];
  const bool speaks = f.made[i] && hk_residual_there(&own);
  struct hk_residual_view v = hk_residual_begin(&own);
  load_neighbours<Q>(t, i, bits, j);
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
  f.now.lesson[i] = out.lesson;
  r[i] = out.r;
}

/* --- learning ---------------------------------------------------------------------------------------------------------- */

/* Counts the rows with a value of each neighbour; there: one bit for each neighbour. All lanes call it. */
template <int Q>
static __device__ __forceinline__ void ripen(const struct hk_residual_resident &t, uint32_t i, const uint32_t (&j)[Q],
                                             uint32_t there)
{
  const uint32_t q = t.of.rule.neighbours;
  uint32_t ripe[Q];
  bool all = true;
#pragma unroll
  for (int k = 0; k < Q; k++)
    ripe[k] = (uint32_t)k < q ? t.of.ripe[hk_residual_at(q, k, i)] : HK_RESIDUAL_SETTLE;
#pragma unroll
  for (int k = 0; k < Q; k++) {
    all &= ripe[k] >= HK_RESIDUAL_SETTLE || j[k] == HK_RESIDUAL_NONE;
    if ((there >> k & 1) && ripe[k] < HK_RESIDUAL_SETTLE)
      t.of.ripe[hk_residual_at(q, k, i)] = ripe[k] + 1;
  }
  if (__all_sync(ALL, all) && i % HK_RESIDUAL_LANES == 0)
    t.slice[i / HK_RESIDUAL_LANES].ripe = 1;
}

/* Number k of what a node heard in a waiting row. */
static __device__ __forceinline__ float *heard_at(const struct hk_residual_resident &t, uint32_t row, uint32_t k, uint32_t i)
{
  const uint32_t numbers = t.of.rule.neighbours + 1;
  return &t.heard[(size_t)row * numbers * t.of.room + hk_residual_at(numbers, k, i)];
}

template <int Q> static __global__ void __launch_bounds__(HK_THREADS) learn(const __grid_constant__ struct hk_residual_resident t)
{
  const struct hk_residual &f = t.of;
  const uint32_t i = blockIdx.x * HK_THREADS + threadIdx.x, q = f.rule.neighbours;
  if (i >= f.room)
    return;
  const struct hk_residual_slice slice = t.slice[i / HK_RESIDUAL_LANES];
  const float own = f.now.z[i];
  struct hk_residual_use use = { false, false, own };
  uint32_t j[Q], there = 0, wild = 0;
  float u[Q];
  load_neighbours<Q>(t, i, slice.bits, j);
  f.last[i] = f.now.seen[i].h;
#pragma unroll
  for (int k = 0; k < Q; k++) {
    const float2 from = j[k] == HK_RESIDUAL_NONE ? make_float2(0, 0) : __ldg((const float2 *)&f.now.lesson[j[k]]);
    const uint32_t kind = __float_as_uint(from.y);
    u[k] = from.x;
    there |= (kind & HK_RESIDUAL_THERE) << k;
    wild |= kind & HK_RESIDUAL_WILD;
  }
  if (own == own)
    use = hk_residual_use_of(&f, i, wild != 0);
  if (use.out)
    atomicAdd(t.out, 1u);
  if (!slice.ripe)
    ripen<Q>(t, i, j, use.learns ? there : 0);
  const uint32_t before = t.waiting > 0 ? t.learns[i] : 0;
  t.learns[i] = before | (uint32_t)use.learns << t.waiting;
  if (!use.learns)
    return;
#pragma unroll
  for (int k = 0; k < Q; k++)
    if ((uint32_t)k < q)
      __stcs(heard_at(t, t.waiting, (uint32_t)k, i), u[k]);
  __stcs(heard_at(t, t.waiting, q, i), use.z);
  hk_residual_count_row(&f, i);
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

template <int Q>
static __device__ __forceinline__ void store_sums(const struct hk_residual &f, uint32_t i, int a, const double (&sum)[Q + 2])
{
#pragma unroll
  for (int b = 0; b <= Q; b++)
    if (b <= a)
      __stcs(&f.product[hk_residual_at(hk_residual_products(&f.rule), hk_residual_packed((uint32_t)a, (uint32_t)b), i)], sum[b]);
  __stcs(&f.target[hk_residual_at(f.rule.neighbours + 1, a, i)], sum[Q + 1]);
}

/* What a block heard in the waiting rows: of each number one for each thread, which reads only its own. */
template <int Q> struct hk_residual_heard {
  float u[HK_RESIDUAL_WAITING][Q + 2][HK_SUM_THREADS]; /* u of the neighbours, from number q on 1, and z' */
};

/* hk_residual_add for each of the waiting rows, with the loads of the next row of sums begun before this one is stored. */
template <int Q>
static __global__ void __launch_bounds__(HK_SUM_THREADS) sum(const __grid_constant__ struct hk_residual_resident t)
{
  extern __shared__ char shared[];
  struct hk_residual_heard<Q> *heard = (struct hk_residual_heard<Q> *)shared;
  const struct hk_residual &f = t.of;
  const uint32_t me = threadIdx.x, i = blockIdx.x * HK_SUM_THREADS + me, q = f.rule.neighbours;
  if (i >= f.room)
    return;
  const uint32_t learns = t.learns[i];
  double sums[2][Q + 2];
  load_sums<Q>(f, i, 0, sums[0]);
  for (uint32_t row = 0; row < t.waiting; row++) {
#pragma unroll
    for (int k = 0; k <= Q; k++)
      heard->u[row][k][me] = (uint32_t)k < q ? __ldcs(heard_at(t, row, (uint32_t)k, i)) : 1;
    heard->u[row][Q + 1][me] = __ldcs(heard_at(t, row, q, i));
  }
  if (!learns)
    return;
#pragma unroll
  for (int a = 0; a <= Q; a++) {
    if (a < Q)
      load_sums<Q>(f, i, a + 1, sums[(a + 1) & 1]);
    if ((uint32_t)a > q)
      continue;
    for (uint32_t row = 0; row < t.waiting; row++) {
      if (!(learns >> row & 1))
        continue;
      const float u = heard->u[row][a][me];
#pragma unroll
      for (int b = 0; b <= Q; b++)
        if (b <= a)
          sums[a & 1][b] = hk_residual_sum(&f, sums[a & 1][b], u, heard->u[row][b][me]);
      sums[a & 1][Q + 1] = hk_residual_sum(&f, sums[a & 1][Q + 1], u, heard->u[row][Q + 1][me]);
    }
    store_sums<Q>(f, i, a, sums[a & 1]);
  }
}

/* hk_residual_refit: a thread solves in shared memory, its numbers as far apart as there are threads. */
template <int Q>
static __global__ void __launch_bounds__(HK_REFIT_THREADS) refit(const __grid_constant__ struct hk_residual_resident t)
{
  extern __shared__ double numbers[];
  const struct hk_residual &f = t.of;
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

/* --- launch ------------------------------------------------------------------------------------------------------------ */

static uint32_t blocks_of(const struct hk_residual_resident *t, uint32_t threads)
{
  return (t->of.room + threads - 1) / threads;
}

extern "C" int hk_residual_launch_pack(const struct hk_residual_resident *t, const double *, double *, struct CUstream_st *stream)
{
  residual_pack<<<blocks_of(t, HK_THREADS), HK_THREADS, 0, stream>>>(*t);
  return (int)cudaGetLastError();
}

extern "C" int hk_residual_launch_standardise(const struct hk_residual_resident *t, const double *x, double *,
                                              struct CUstream_st *stream)
{
  standardise<<<blocks_of(t, HK_THREADS), HK_THREADS, 0, stream>>>(*t, x);
  return (int)cudaGetLastError();
}

extern "C" int hk_residual_launch_show(const struct hk_residual_resident *t, const double *, double *, struct CUstream_st *stream)
{
  show<<<blocks_of(t, HK_THREADS), HK_THREADS, 0, stream>>>(*t);
  return (int)cudaGetLastError();
}

extern "C" int hk_residual_launch_predict(const struct hk_residual_resident *t, const double *, double *r,
                                          struct CUstream_st *stream)
{
  const uint32_t q = t->of.rule.neighbours, blocks = blocks_of(t, HK_THREADS);
  if (q <= 4)
    predict<4><<<blocks, HK_THREADS, 0, stream>>>(*t, r);
  else if (q <= 8)
    predict<8><<<blocks, HK_THREADS, 0, stream>>>(*t, r);
  else if (q <= 12)
    predict<12><<<blocks, HK_THREADS, 0, stream>>>(*t, r);
  else
    predict<16><<<blocks, HK_THREADS, 0, stream>>>(*t, r);
  return (int)cudaGetLastError();
}

extern "C" int hk_residual_launch_learn(const struct hk_residual_resident *t, const double *, double *,
                                        struct CUstream_st *stream)
{
  const uint32_t q = t->of.rule.neighbours, blocks = blocks_of(t, HK_THREADS);
  if (q <= 4)
    learn<4><<<blocks, HK_THREADS, 0, stream>>>(*t);
  else if (q <= 8)
    learn<8><<<blocks, HK_THREADS, 0, stream>>>(*t);
  else if (q <= 12)
    learn<12><<<blocks, HK_THREADS, 0, stream>>>(*t);
  else
    learn<16><<<blocks, HK_THREADS, 0, stream>>>(*t);
  return (int)cudaGetLastError();
}

template <int Q> static int launch_sum(const struct hk_residual_resident *t, struct CUstream_st *stream)
{
  const int bytes = sizeof(struct hk_residual_heard<Q>);
  const cudaError_t failed = cudaFuncSetAttribute(sum<Q>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (failed)
    return (int)failed;
  sum<Q><<<blocks_of(t, HK_SUM_THREADS), HK_SUM_THREADS, bytes, stream>>>(*t);
  return (int)cudaGetLastError();
}

extern "C" int hk_residual_launch_sum(const struct hk_residual_resident *t, const double *, double *, struct CUstream_st *stream)
{
  const uint32_t q = t->of.rule.neighbours;
  return q <= 4    ? launch_sum<4>(t, stream)
         : q <= 8  ? launch_sum<8>(t, stream)
         : q <= 12 ? launch_sum<12>(t, stream)
                   : launch_sum<16>(t, stream);
}

extern "C" int hk_residual_launch_refit(const struct hk_residual_resident *t, const double *, double *,
                                        struct CUstream_st *stream)
{
  const uint32_t q = t->of.rule.neighbours, blocks = blocks_of(t, HK_REFIT_THREADS);
  const size_t shared = (hk_residual_products(&t->of.rule) + q + 1) * HK_REFIT_THREADS * sizeof(double);
  if (q <= 4)
    refit<4><<<blocks, HK_REFIT_THREADS, shared, stream>>>(*t);
  else if (q <= 8)
    refit<8><<<blocks, HK_REFIT_THREADS, shared, stream>>>(*t);
  else if (q <= 12)
    refit<12><<<blocks, HK_REFIT_THREADS, shared, stream>>>(*t);
  else
    refit<16><<<blocks, HK_REFIT_THREADS, shared, stream>>>(*t);
  return (int)cudaGetLastError();
}
