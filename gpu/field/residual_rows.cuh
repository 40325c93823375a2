/* The sums of 32 nodes in the registers of four warps, a lane to a node: which warp has which rows, for residual_sum.cu and
 * residual_refit.cu. */
#ifndef HK_RESIDUAL_ROWS_CUH
#define HK_RESIDUAL_ROWS_CUH

#include "gpu/field/residual_link.cuh"

#define HK_SUM_WARPS 4
#define HK_SUM_THREADS (HK_SUM_WARPS * HK_RESIDUAL_LANES)
#define HK_SLOTS(Q) ((Q) / HK_SUM_WARPS + 1)                               /* rows of a warp, at most */
#define HK_SLOT(Q, s) ((s) * ((Q) + 1) - HK_SUM_WARPS * (s) * ((s)-1) / 2) /* where those of slot s begin */

/* A warp's rows: row a of G has a + 1 products, and one of b. */
template <int Q> struct hk_residual_rows {
  double product[HK_SLOT(Q, HK_SLOTS(Q))], target[HK_SLOTS(Q)];
};

/* The row in slot s of a warp; one of a larger number than Q: none. Rows are dealt to and fro, the longest first, so that all
 * warps have about as many numbers; slot s has room for Q + 1 - 4 s. */
template <int Q> static __device__ __forceinline__ uint32_t rows_of(int s, uint32_t warp)
{
  return Q - HK_SUM_WARPS * s - (s % 2 == 0 ? warp : HK_SUM_WARPS - 1 - warp);
}

/* Whether row a in slot s has number b. */
template <int Q> static __device__ __forceinline__ bool rows_have(int s, uint32_t a, int b)
{
  return b <= Q - HK_SUM_WARPS * s && (b <= Q - HK_SUM_WARPS * (s + 1) + 1 || (uint32_t)b <= a);
}

/* Calls each(s, a) for every slot s of a warp that has a row, a. */
template <int Q, class EACH> static __device__ __forceinline__ void rows_each(uint32_t q, uint32_t warp, EACH each)
{
#pragma unroll
  for (int s = 0; s < HK_SLOTS(Q); s++) {
    const uint32_t a = rows_of<Q>(s, warp);
    if (a <= q)
      each(s, a);
  }
}

/* Calls each(where, number) for the sums of node i that a warp has: where one lies in memory, and its register. */
template <int Q, class EACH>
static __device__ __forceinline__ void rows_move(const struct hk_residual &f, uint32_t i, uint32_t warp,
                                                 struct hk_residual_rows<Q> &rows, EACH each)
{
  const uint32_t q = f.rule.neighbours, products = hk_residual_products(&f.rule);
  rows_each<Q>(q, warp, [&](int s, uint32_t a) {
#pragma unroll
    for (int b = 0; b <= Q; b++)
      if (rows_have<Q>(s, a, b))
        each(&f.product[hk_residual_at(products, hk_residual_packed(a, (uint32_t)b), i)], rows.product[HK_SLOT(Q, s) + b]);
    each(&f.target[hk_residual_at(q + 1, a, i)], rows.target[s]);
  });
}

#endif
