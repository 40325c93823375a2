/* The graph residual, a thread to a node. The first three passes of cpu/field/residual.h are kernels, for each reads what the one
 * before wrote of other nodes. Of the fourth, learn does what concerns a node alone; what it learns of its neighbours waits for
 * some rows more (residual_sum.cu).
 *
 * All columns but what is read of neighbours are coalesced, a warp to the 32 nodes that lie together. Of neighbours the third
 * pass reads 8 bytes, one sector of memory each. It first loads all columns and the numbers of its neighbours, then many records,
 * and only then computes, so that a thread has many loads under way; Q is q rounded up, for loops over arrays in registers must
 * be unrolled. How the numbers of neighbours are packed is chosen once, by slices of 32 nodes (residual_pack.cu). With 16
 * neighbours the third pass moves 120 bytes a node where these are near, less than a product by a matrix with numbers of 32 bits,
 * and that, not its arithmetic, is what it takes. */
#include "cpu/field/residual_learn.h"
#include "gpu/field/residual_link.cuh"

#include <cuda_runtime_api.h>

#define HK_THREADS 128u
#define HK_BLOCKS 8 /* of a processor, for the pass that reads of neighbours: 64 registers a thread */
#define HK_GATHER 8 /* records of neighbours that are loaded at once */
#define HK_HOT_THREADS 1024u

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

/* Calls take(k, record) for each neighbour k of node i, whose first words are there. Many records are loaded at once. If there
 * is no neighbour k, the record is one of any node. hot: the block's copy; NULL: it has none. */
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
#pragma unroll
    for (int g = 0; g < HK_GATHER; g++) {
      const int k = begin + g;
      if (k >= Q)
        break;
      if (BITS == 32) {
        const uint32_t j = (uint32_t)k < q ? __ldcs(&t.of.neighbour[hk_residual_at(q, k, i)]) : HK_RESIDUAL_NONE;
        from[g] = __ldg(&records[j == HK_RESIDUAL_NONE ? i : j]);
      } else if (BITS == 24) {
        const uint32_t j = (uint32_t)residual_link<BITS>(word, k);
        from[g] = hot && j >= t.of.room ? hot[j - t.of.room] : __ldg(&records[j]);
      } else {
        const int32_t apart = residual_link<BITS>(word, k);
        from[g] = __ldg(records + i + apart);
      }
    }
#pragma unroll
    for (int g = 0; g < HK_GATHER; g++)
      if (begin + g < Q)
        take(begin + g, from[g]);
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
  const float level = __ldcs(&f.weight[hk_residual_at(q + 1, q, i)]);
  const double spread = f.spread[i];
  const float error = f.error[i];
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
  residual_each<Q>(t, i, slice.bits, word, f.now.seen, hot, [&](int k, const float2 &from) {
    const struct hk_residual_seen seen = { from.x, __float_as_uint(from.y) };
    hk_residual_look(&v, &seen, w[k], (uint32_t)k);
  });
  const struct hk_residual_verdict out =
      made && hk_residual_there(&own) ? hk_residual_judge(&f, &own, &v, level, spread, bound) : hk_residual_silence(&own);
  f.now.lesson[i] = out.lesson;
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

/* What a node learns of the row by itself: its errors, its h and z', which wait. */
static __global__ void __launch_bounds__(HK_THREADS) learn(const __grid_constant__ struct hk_residual_resident t)
{
  const struct hk_residual &f = t.of;
  const uint32_t i = blockIdx.x * HK_THREADS + threadIdx.x;
  if (i >= f.room)
    return;
  const struct hk_residual_lesson own = f.now.lesson[i];
  const struct hk_residual_means means = hk_residual_means_of(&f, i);
  const bool there = own.guess & HK_RESIDUAL_THERE;
  struct hk_residual_use use = { false, false, 0 };
  if (there || f.made[i])
    f.last[i] = own.h;
  if (there)
    use = hk_residual_use_of(&f, i, &means, &own, false);
  const struct hk_residual_told told = { __ballot_sync(ALL, use.learns), __ballot_sync(ALL, (own.guess & HK_RESIDUAL_WILD) != 0),
                                         __ballot_sync(ALL, there) };
  const uint32_t out = __ballot_sync(ALL, use.out);
  if (i % HK_RESIDUAL_LANES == 0) {
    t.told[i / HK_RESIDUAL_LANES * HK_RESIDUAL_WAITING + t.waiting] = told;
    if (out)
      atomicAdd(t.out, (uint32_t)__popc(out));
  }
  __stcs(&t.shown[(size_t)t.waiting * f.room + i], own.h);
  __stcs(&t.taught[(size_t)t.waiting * f.room + i], use.z);
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
  learn<<<blocks_of(t, HK_THREADS), HK_THREADS, 0, stream>>>(*t);
  return (int)cudaGetLastError();
}
