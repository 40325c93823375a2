/* The graph residual, a thread to a node; the four passes of cpu/field/residual.h are four kernels, for each reads what the one
 * before wrote of other nodes.
 *
 * All columns but what is read of neighbours are coalesced, a warp to the 32 nodes that lie together. Of neighbours
 * the third pass and the fourth read 8 bytes, one sector of memory each. Both passes first load all columns and the numbers of
 * their neighbours, then many records, and only then compute, so that a thread has many loads under way; Q is q rounded up, for
 * loops over arrays in registers must be unrolled. How the numbers of neighbours are packed is chosen once, by slices of 32
 * nodes (residual_pack.cu). With 16 neighbours the third pass moves 120 bytes a node where these are near, less than a product
 * by a matrix with numbers of 32 bits, and that, not its arithmetic, is what it takes.
 *
 * Of a row with 16 neighbours the sums would be nine tenths of what moves. So rows wait until there are some, and one pass
 * adds them all, each to each sum, in their order. */
#include "cpu/field/residual_learn.h"
#include "cpu/field/residual_refit.h"
#include "gpu/field/residual_link.cuh"

#include <cuda_runtime_api.h>

#define HK_THREADS 128u
#define HK_BLOCKS 8 /* of a processor, for the passes that read of neighbours: 64 registers a thread */
#define HK_GATHER 8 /* records of neighbours that are loaded at once */
#define HK_HOT_THREADS 1024u
#define HK_SUM_WARPS 4       /* that share the sums of 32 nodes */
#define HK_REFIT_THREADS 32u /* so that their numbers with 16 neighbours fit into 48 KB */

static __global__ void __launch_bounds__(HK_THREADS)
    standardise(const __grid_constant__ struct hk_residual_resident t, const double *x)
{
  const uint32_t i = blockIdx.x * HK_THREADS + threadIdx.x;
  if (i < t.of.room)
    hk_residual_standardise(&t.of, x, i);
  if (i == 0)
    *t.out = 0;
}

/* --- neighbours -------------------------------------------------------------------------------------------------------- */

/* Writes a record of node i, also among those that many look at. */
template <class RECORD>
static __device__ __forceinline__ void residual_put(const struct hk_residual_resident &t, const struct hk_residual_slice &slice,
                                                    uint32_t i, RECORD *records, const RECORD &record)
{
  records[i] = record;
  if (slice.hot >> (i % HK_RESIDUAL_LANES) & 1)
    records[residual_place(t, i)] = record;
}

/* Neighbour k of a slice with BITS each; word: of the node. */
template <int BITS> static __device__ __forceinline__ int32_t residual_link(const uint32_t *word, int k)
{
  if (BITS == 8)
    return (int8_t)(word[k / 4] >> 8 * (k % 4));
  if (BITS == 16)
    return (int16_t)(word[k / 2] >> 16 * (k % 2));
  const int w = k / 4 * 3 + k % 4 - (k % 4 > 0);
  const uint32_t both = k % 4 == 0   ? word[w]
                        : k % 4 == 3 ? word[w] >> 8
                                     : __funnelshift_r(word[w], word[w + 1], 32 - 8 * (k % 4));
  return (int32_t)(both & 0xffffff);
}

/* Calls take(k, record, none) for each neighbour k of node i, whose first words are there. Many records are loaded at once.
 * none: there is no neighbour k, and the record is one of any node. hot: the block's copy; NULL: it has none. */
template <int Q, int BITS, class TAKE>
static __device__ __forceinline__ void residual_each_of(const struct hk_residual_resident &t, uint32_t i,
                                                        uint32_t (&word)[WORDS(Q)], const float2 *records, const float2 *hot,
                                                        TAKE take)
{
  const uint32_t q = t.of.rule.neighbours;
#pragma unroll
  for (int w = Q / 4; w < Q * BITS / 32 && w < WORDS(Q); w++)
    word[w] = __ldcs(&t.link[hk_residual_at(WORDS(Q), w, i)]);
#pragma unroll
  for (int begin = 0; begin < Q; begin += HK_GATHER) {
    float2 from[HK_GATHER];
    bool none[HK_GATHER];
#pragma unroll
    for (int g = 0; g < HK_GATHER; g++) {
      const int k = begin + g;
      if (k >= Q)
        break;
      if (BITS == 32) {
        const uint32_t j = (uint32_t)k < q ? __ldcs(&t.of.neighbour[hk_residual_at(q, k, i)]) : HK_RESIDUAL_NONE;
        none[g] = j == HK_RESIDUAL_NONE;
        from[g] = __ldg(&records[none[g] ? i : j]);
      } else if (BITS == 24) {
        const uint32_t j = (uint32_t)residual_link<BITS>(word, k);
        none[g] = j == i;
        from[g] = hot && j >= t.of.room ? hot[j - t.of.room] : __ldg(&records[j]);
      } else {
        const int32_t apart = residual_link<BITS>(word, k);
        none[g] = apart == 0;
        from[g] = __ldg(records + i + apart);
      }
    }
#pragma unroll
    for (int g = 0; g < HK_GATHER; g++)
      if (begin + g < Q)
        take(begin + g, from[g], none[g]);
  }
}

template <int Q, class TAKE>
static __device__ __forceinline__ void residual_each(const struct hk_residual_resident &t, uint32_t i, uint32_t bits,
                                                     uint32_t (&word)[WORDS(Q)], const void *of, const float2 *hot, TAKE take)
{
  const float2 *records = (const float2 *)of;
  if (bits == 8)
    residual_each_of<Q, 8>(t, i, word, records, hot, take);
  else if (bits == 16)
    residual_each_of<Q, 16>(t, i, word, records, hot, take);
  else if (bits == 24)
    residual_each_of<Q, 24>(t, i, word, records, hot, take);
  else
    residual_each_of<Q, 32>(t, i, word, records, hot, take);
}

/* The words that all forms have, loaded before it is known which one it is. */
template <int Q>
static __device__ __forceinline__ void residual_first_words(const struct hk_residual_resident &t, uint32_t i,
                                                            uint32_t (&word)[WORDS(Q)])
{
#pragma unroll
  for (int w = 0; w < Q / 4; w++)
    word[w] = __ldcs(&t.link[hk_residual_at(WORDS(Q), w, i)]);
}

/* Whether a node has a neighbour k, if it is not Q that it has; Q - 3 are there, or 2. */
template <int Q> static __device__ __forceinline__ bool residual_has(const struct hk_residual_resident &t, int k)
{
  return k < (Q > 4 ? Q - 3 : 2) || (uint32_t)k < t.of.rule.neighbours;
}

static __global__ void __launch_bounds__(HK_THREADS) show(const __grid_constant__ struct hk_residual_resident t)
{
  const uint32_t i = blockIdx.x * HK_THREADS + threadIdx.x;
  if (i >= t.of.room)
    return;
  hk_residual_show(&t.of, i);
  const struct hk_residual_slice slice = t.slice[i / HK_RESIDUAL_LANES];
  if (slice.hot >> (i % HK_RESIDUAL_LANES) & 1)
    t.of.now.seen[residual_place(t, i)] = t.of.now.seen[i];
}

template <int Q>
static __device__ __forceinline__ void predict_node(const struct hk_residual_resident &t, uint32_t i, double *r,
                                                    const float2 *hot)
{
  const struct hk_residual &f = t.of;
  const uint32_t q = f.rule.neighbours;
  const struct hk_residual_slice slice = t.slice[i / HK_RESIDUAL_LANES];
  uint32_t word[WORDS(Q)];
  float w[Q];
  residual_first_words<Q>(t, i, word);
#pragma unroll
  for (int k = 0; k < Q; k++)
    w[k] = residual_has<Q>(t, k) ? __ldcs(&f.weight[hk_residual_at(q + 1, k, i)]) : 0;
  const struct hk_residual_seen own = f.now.seen[i];
  const float level = __ldcs(&f.weight[hk_residual_at(q + 1, q, i)]), error = f.error[i];
  const double spread = f.spread[i];
  float bound = error;
  bool made = true;
  if (!slice.settled) {
    const uint32_t errors = f.errors[i];
    made = f.made[i];
    bound = hk_residual_bound(errors, error);
    if (__all_sync(ALL, made && errors >= HK_RESIDUAL_SETTLE) && i % HK_RESIDUAL_LANES == 0)
      t.slice[i / HK_RESIDUAL_LANES].settled = 1;
  }
  struct hk_residual_view v = hk_residual_begin(&own);
  residual_each<Q>(t, i, slice.bits, word, f.now.seen, hot, [&](int k, const float2 &from, bool) {
    const struct hk_residual_seen seen = { from.x, __float_as_uint(from.y) };
    hk_residual_look(&v, &seen, w[k], (uint32_t)k);
  });
  const struct hk_residual_verdict out =
      made && hk_residual_there(&own) ? hk_residual_judge(&f, &own, &v, level, spread, bound) : hk_residual_silence(&own);
  residual_put(t, slice, i, f.now.lesson, out.lesson);
  r[i] = out.r;
}

template <int Q>
static __global__ void __launch_bounds__(HK_THREADS, HK_BLOCKS)
    predict(const __grid_constant__ struct hk_residual_resident t, double *r)
{
  const uint32_t i = blockIdx.x * HK_THREADS + threadIdx.x;
  if (i < t.of.room)
    predict_node<Q>(t, i, r, NULL);
}

/* The same where many look at few: blocks that stay, as many as there are processors, each with a copy of the records of these
 * few. */
template <int Q>
static __global__ void __launch_bounds__(HK_HOT_THREADS, 1)
    predict_hot(const __grid_constant__ struct hk_residual_resident t, double *r)
{
  extern __shared__ float2 hot[];
  const float2 *from = (const float2 *)&t.of.now.seen[t.of.room];
  for (uint32_t k = threadIdx.x; k < t.n_hot; k += HK_HOT_THREADS)
    hot[k] = from[k];
  __syncthreads();
  for (uint32_t i = blockIdx.x * HK_HOT_THREADS + threadIdx.x; i < t.of.room; i += gridDim.x * HK_HOT_THREADS)
    predict_node<Q>(t, i, r, hot);
}

/* --- learning ---------------------------------------------------------------------------------------------------------- */

/* Counts the rows with a value of each neighbour; there: one bit for each neighbour. All lanes call it. */
static __device__ void ripen(const struct hk_residual_resident &t, uint32_t i, uint32_t there)
{
  const uint32_t q = t.of.rule.neighbours;
  bool all = true;
  for (uint32_t k = 0; k < q; k++) {
    const uint32_t ripe = t.of.ripe[hk_residual_at(q, k, i)];
    all &= ripe >= HK_RESIDUAL_SETTLE || t.of.neighbour[hk_residual_at(q, k, i)] == HK_RESIDUAL_NONE;
    if ((there >> k & 1) && ripe < HK_RESIDUAL_SETTLE)
      t.of.ripe[hk_residual_at(q, k, i)] = ripe + 1;
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

template <int Q>
static __global__ void __launch_bounds__(HK_THREADS, HK_BLOCKS) learn(const __grid_constant__ struct hk_residual_resident t)
{
  const struct hk_residual &f = t.of;
  const uint32_t i = blockIdx.x * HK_THREADS + threadIdx.x, q = f.rule.neighbours;
  if (i >= f.room)
    return;
  const uint32_t before = t.waiting > 0 ? t.learns[i] : 0;
  const struct hk_residual_slice slice = t.slice[i / HK_RESIDUAL_LANES];
  uint32_t word[WORDS(Q)], there = 0, wild = 0;
  residual_first_words<Q>(t, i, word);
  const struct hk_residual_lesson own = f.now.lesson[i];
  const struct hk_residual_means means = hk_residual_means_of(&f, i);
  const struct hk_residual_count count = hk_residual_count_of(&f, i);
  struct hk_residual_use use = { false, false, 0 };
  float u[Q];
  residual_each<Q>(t, i, slice.bits, word, f.now.lesson, NULL, [&](int k, const float2 &from, bool none) {
    const uint32_t kind = none ? 0 : __float_as_uint(from.y);
    u[k] = none ? 0 : from.x;
    there |= (kind & HK_RESIDUAL_THERE) << k;
    wild |= kind;
  });
  if ((own.guess & HK_RESIDUAL_THERE) || f.made[i])
    f.last[i] = own.h;
  if (own.guess & HK_RESIDUAL_THERE)
    use = hk_residual_use_of(&f, i, &means, &own, (wild & HK_RESIDUAL_WILD) != 0);
  if (use.out)
    atomicAdd(t.out, 1u);
  if (!slice.ripe)
    ripen(t, i, use.learns ? there : 0);
  t.learns[i] = before | (uint32_t)use.learns << t.waiting;
  if (!use.learns)
    return;
#pragma unroll
  for (int k = 0; k < Q; k++)
    if (residual_has<Q>(t, k))
      __stcs(heard_at(t, t.waiting, (uint32_t)k, i), u[k]);
  __stcs(heard_at(t, t.waiting, q, i), use.z);
  hk_residual_count_row(&f, i, &count);
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

/* Whether row a of the sums is one of those of a warp: rows are dealt to and fro, the longest first, so that all warps have about
 * as many numbers. */
template <int Q> static __device__ __forceinline__ constexpr bool sum_has(int warp, int a)
{
  const int turn = (Q - a) % (2 * HK_SUM_WARPS);
  return turn == warp || turn == 2 * HK_SUM_WARPS - 1 - warp;
}

/* What 32 nodes heard in the waiting rows: u of the neighbours, from number q on 1, and z'. */
template <int Q> struct hk_residual_heard {
  float u[HK_RESIDUAL_WAITING][Q + 2][HK_RESIDUAL_LANES];
};

/* hk_residual_add for each of the waiting rows, of a warp's rows of sums. All of these are loaded before anything is computed,
 * and remain in registers until they are stored; meanwhile other blocks load or store. */
template <int Q, int WARP>
static __device__ __forceinline__ void sum_rows(const struct hk_residual_resident &t, uint32_t i, uint32_t learns,
                                                const struct hk_residual_heard<Q> &heard)
{
  const struct hk_residual &f = t.of;
  const uint32_t lane = i % HK_RESIDUAL_LANES, q = f.rule.neighbours, products = hk_residual_products(&f.rule);
  double product[(Q + 1) * (Q + 2) / 2], target[Q + 1];
#pragma unroll
  for (int a = Q; a >= 0; a--) {
    if (!sum_has<Q>(WARP, a) || (uint32_t)a > q)
      continue;
#pragma unroll
    for (int b = 0; b <= Q; b++)
      if (b <= a)
        product[hk_residual_packed(a, b)] = __ldcs(&f.product[hk_residual_at(products, hk_residual_packed(a, b), i)]);
    target[a] = __ldcs(&f.target[hk_residual_at(q + 1, a, i)]);
  }
  /* All warps have written what was heard. Each WARP's form of this function has the barrier, four places of the code: bar.sync 0
   * counts the warps that come, wherever, and each warp of the block calls exactly one form, with all of its lanes. */
  __syncthreads();
  for (uint32_t row = 0; row < t.waiting; row++) {
    if (!(learns >> row & 1))
      continue;
    float u[Q + 2];
#pragma unroll
    for (int k = 0; k < Q + 2; k++)
      u[k] = heard.u[row][k][lane];
#pragma unroll
    for (int a = Q; a >= 0; a--) {
      if (!sum_has<Q>(WARP, a) || (uint32_t)a > q)
        continue;
#pragma unroll
      for (int b = 0; b <= Q; b++)
        if (b <= a)
          product[hk_residual_packed(a, b)] = hk_residual_sum(&f, product[hk_residual_packed(a, b)], u[a], u[b]);
      target[a] = hk_residual_sum(&f, target[a], u[a], u[Q + 1]);
    }
  }
  if (!learns)
    return;
#pragma unroll
  for (int a = 0; a <= Q; a++) {
    if (!sum_has<Q>(WARP, a) || (uint32_t)a > q)
      continue;
#pragma unroll
    for (int b = 0; b <= Q; b++)
      if (b <= a)
        __stcs(&f.product[hk_residual_at(products, hk_residual_packed(a, b), i)], product[hk_residual_packed(a, b)]);
    __stcs(&f.target[hk_residual_at(q + 1, a, i)], target[a]);
  }
}

/* A block adds the waiting rows of 32 nodes. */
template <int Q>
static __global__ void __launch_bounds__(HK_SUM_WARPS *HK_RESIDUAL_LANES)
    sum(const __grid_constant__ struct hk_residual_resident t)
{
  __shared__ struct hk_residual_heard<Q> heard;
  const uint32_t warp = threadIdx.x / HK_RESIDUAL_LANES, lane = threadIdx.x % HK_RESIDUAL_LANES, q = t.of.rule.neighbours;
  const uint32_t i = blockIdx.x * HK_RESIDUAL_LANES + lane, learns = t.learns[i];
  for (uint32_t row = warp; row < t.waiting; row += HK_SUM_WARPS) {
#pragma unroll
    for (int k = 0; k <= Q; k++)
      heard.u[row][k][lane] = (uint32_t)k < q ? __ldcs(heard_at(t, row, (uint32_t)k, i)) : 1;
    heard.u[row][Q + 1][lane] = __ldcs(heard_at(t, row, q, i));
  }
  if (warp == 0)
    sum_rows<Q, 0>(t, i, learns, heard);
  else if (warp == 1)
    sum_rows<Q, 1>(t, i, learns, heard);
  else if (warp == 2)
    sum_rows<Q, 2>(t, i, learns, heard);
  else
    sum_rows<Q, 3>(t, i, learns, heard);
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
  if (n_ripe < 2)
    t.slice[i / HK_RESIDUAL_LANES].settled = 0;
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

template <int Q> static int launch_predict(const struct hk_residual_resident *t, double *r, struct CUstream_st *stream)
{
  const int bytes = (int)(t->n_hot * sizeof(float2));
  int device, processors;
  if (t->n_hot == 0) {
    predict<Q><<<blocks_of(t, HK_THREADS), HK_THREADS, 0, stream>>>(*t, r);
    return (int)cudaGetLastError();
  }
  cudaError_t failed = cudaGetDevice(&device);
  if (!failed)
    failed = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (!failed)
    failed = cudaFuncSetAttribute(predict_hot<Q>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (failed)
    return (int)failed;
  predict_hot<Q><<<(uint32_t)processors, HK_HOT_THREADS, bytes, stream>>>(*t, r);
  return (int)cudaGetLastError();
}

extern "C" int hk_residual_launch_predict(const struct hk_residual_resident *t, const double *, double *r,
                                          struct CUstream_st *stream)
{
  const uint32_t q = t->of.rule.neighbours;
  return q <= 4    ? launch_predict<4>(t, r, stream)
         : q <= 8  ? launch_predict<8>(t, r, stream)
         : q <= 12 ? launch_predict<12>(t, r, stream)
                   : launch_predict<16>(t, r, stream);
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

extern "C" int hk_residual_launch_sum(const struct hk_residual_resident *t, const double *, double *, struct CUstream_st *stream)
{
  const uint32_t q = t->of.rule.neighbours, slices = t->of.room / HK_RESIDUAL_LANES, threads = HK_SUM_WARPS * HK_RESIDUAL_LANES;
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
