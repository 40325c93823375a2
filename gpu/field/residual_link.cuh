/* How a field's neighbours are packed on the device, for residual.cu, which reads them, and residual_pack.cu. */
#ifndef HK_RESIDUAL_LINK_CUH
#define HK_RESIDUAL_LINK_CUH

#include "gpu/field/residual_kernels.h"

#define ALL 0xffffffffu /* lanes */

/* Words of `link` that a node has; Q is its neighbours rounded up to a multiple of 4. */
#define WORDS(Q) ((Q) / 4 * 3)

/* Of a field. */
static __device__ __forceinline__ uint32_t residual_words(const struct hk_residual_resident &t)
{
  return WORDS((t.of.rule.neighbours + 3) / 4 * 4);
}

/* Where the records of node j of a slice are that another one is far from: in their place, or among those that many look at. */
static __device__ __forceinline__ uint32_t residual_place(const struct hk_residual_resident &t, uint32_t j)
{
  const struct hk_residual_slice slice = t.slice[j / HK_RESIDUAL_LANES];
  const uint32_t lane = j % HK_RESIDUAL_LANES;
  return slice.hot >> lane & 1 ? t.of.room + slice.first + __popc(slice.hot & ((1u << lane) - 1)) : j;
}

static inline uint32_t blocks_of(const struct hk_residual_resident *t, uint32_t threads)
{
  return (t->of.room + threads - 1) / threads;
}

#endif
