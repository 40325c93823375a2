/* Packs the neighbours of a field, once they are chosen: numbers of 8 or 16 bits, less the node's own, where a slice has all of
 * its neighbours so near, else of 24.
 *
 * Records of nodes that many others look at from afar lie twice: in their place, and beside each other behind all others, so
 * that they share sectors of memory, and that a block can keep them (predict_hot). */
#include "gpu/field/residual_link.cuh"

#include <cuda_runtime_api.h>

#define HK_PACK_THREADS 128u

static __global__ void __launch_bounds__(HK_PACK_THREADS) residual_degree(const __grid_constant__ struct hk_residual_resident t)
{
  const uint32_t i = blockIdx.x * HK_PACK_THREADS + threadIdx.x, q = t.of.rule.neighbours;
  if (i >= t.of.room)
    return;
  for (uint32_t k = 0; k < q; k++) {
    const uint32_t j = t.of.neighbour[hk_residual_at(q, k, i)];
    const int64_t apart = (int64_t)j - (int64_t)i;
    if (j != HK_RESIDUAL_NONE && (apart < INT16_MIN || apart > INT16_MAX))
      atomicAdd(&t.lookers[j], 1u);
  }
}

/* Whether at least so many look at a node from afar: step 0 is twice, step 4 four times, step 8 eight times q. */
static __device__ __forceinline__ bool residual_reaches(const struct hk_residual_resident &t, uint32_t i, uint32_t step)
{
  return t.lookers[i] >= t.of.rule.neighbours * ((4 + step % 4) << step / 4) / 2;
}

static __global__ void __launch_bounds__(HK_PACK_THREADS) residual_census(const __grid_constant__ struct hk_residual_resident t)
{
  const uint32_t i = blockIdx.x * HK_PACK_THREADS + threadIdx.x;
  for (uint32_t s = 0; i < t.of.room && s < HK_RESIDUAL_HOT_STEPS && residual_reaches(t, i, s); s++)
    atomicAdd(&t.census[s], 1u);
}

/* Chooses the nodes that most look at, as many as there is room for. */
static __global__ void __launch_bounds__(HK_PACK_THREADS) residual_choose(const __grid_constant__ struct hk_residual_resident t)
{
  const uint32_t i = blockIdx.x * HK_PACK_THREADS + threadIdx.x;
  uint32_t step = 0;
  if (i >= t.of.room)
    return;
  while (step < HK_RESIDUAL_HOT_STEPS && t.census[step] > HK_RESIDUAL_HOT)
    step++;
  const uint32_t hot = __ballot_sync(ALL, step < HK_RESIDUAL_HOT_STEPS && residual_reaches(t, i, step));
  if (hot >> (i % HK_RESIDUAL_LANES) & 1)
    atomicAdd(&t.census[HK_RESIDUAL_HOT_STEPS + 1], t.lookers[i]);
  if (i % HK_RESIDUAL_LANES == 0)
    t.slice[i / HK_RESIDUAL_LANES] = { 32, 0, 0, hot, hot ? atomicAdd(&t.census[HK_RESIDUAL_HOT_STEPS], __popc(hot)) : 0 };
}

static __global__ void __launch_bounds__(HK_PACK_THREADS) residual_pack(const __grid_constant__ struct hk_residual_resident t)
{
  const uint32_t i = blockIdx.x * HK_PACK_THREADS + threadIdx.x, q = t.of.rule.neighbours;
  bool other = true, near = true, close = true;
  if (i >= t.of.room)
    return;
  for (uint32_t k = 0; k < q; k++) {
    const uint32_t j = t.of.neighbour[hk_residual_at(q, k, i)];
    const int64_t apart = j == HK_RESIDUAL_NONE ? 1 : (int64_t)j - (int64_t)i;
    other &= apart != 0;
    near &= apart >= INT16_MIN && apart <= INT16_MAX;
    close &= apart >= INT8_MIN && apart <= INT8_MAX;
  }
  other = __all_sync(ALL, other && t.of.room + HK_RESIDUAL_HOT < 1u << 24);
  near = __all_sync(ALL, near);
  close = __all_sync(ALL, close);
  const uint32_t bits = !other ? 32 : close ? 8 : near ? 16 : 24, words = residual_words(t);
  if (i % HK_RESIDUAL_LANES == 0)
    t.slice[i / HK_RESIDUAL_LANES].bits = bits;
  uint64_t packed = 0;
  for (uint32_t k = 0, full = 0, w = 0; bits < 32 && w < words; k++) {
    const uint32_t j = k < q ? t.of.neighbour[hk_residual_at(q, k, i)] : HK_RESIDUAL_NONE;
    const uint32_t link = bits == 24 ? (j == HK_RESIDUAL_NONE ? i : residual_place(t, j)) : j == HK_RESIDUAL_NONE ? 0 : j - i;
    packed |= (uint64_t)(link & ((1u << bits) - 1)) << full;
    full += bits;
    for (; full >= 32 && w < words; full -= 32, packed >>= 32, w++)
      t.link[hk_residual_at(words, w, i)] = (uint32_t)packed;
  }
}

extern "C" int hk_residual_launch_pack(const struct hk_residual_resident *t, const double *, double *, struct CUstream_st *stream)
{
  const uint32_t blocks = blocks_of(t, HK_PACK_THREADS);
  cudaError_t failed = cudaMemsetAsync(t->lookers, 0, t->of.room * sizeof *t->lookers, stream);
  if (!failed)
    failed = cudaMemsetAsync(t->census, 0, HK_RESIDUAL_CENSUS * sizeof *t->census, stream);
  if (failed)
    return (int)failed;
  residual_degree<<<blocks, HK_PACK_THREADS, 0, stream>>>(*t);
  residual_census<<<blocks, HK_PACK_THREADS, 0, stream>>>(*t);
  residual_choose<<<blocks, HK_PACK_THREADS, 0, stream>>>(*t);
  residual_pack<<<blocks, HK_PACK_THREADS, 0, stream>>>(*t);
  return (int)cudaGetLastError();
}
