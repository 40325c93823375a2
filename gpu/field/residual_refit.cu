/* Fits w of all nodes to their sums (cpu/field/residual_refit.h). Four warps share 32 nodes as in residual_sum.cu: rows of the
 * triangle lie in the registers of their warp, and columns of L pass through shared memory, where the way back reads them.
 *
 * Where hk_residual_solve takes from an element all columns before it at once, here each column is taken from all elements
 * behind it as soon as it is known: from each element in the same order, so that the bits are the same. */
#include "cpu/field/residual_refit.h"
#include "gpu/field/residual_rows.cuh"

#include <cuda_runtime_api.h>

#define HK_REFIT_BLOCKS 4 /* of a processor */

/* Of 32 nodes: L with its pivots, packed; v, then L^-1 v; and for each warp the ripe neighbours that it has seen, and whether its
 * pivots are large enough. */
template <int Q> struct hk_residual_fit {
  double matrix[(Q + 1) * (Q + 2) / 2][HK_RESIDUAL_LANES], side[Q + 1][HK_RESIDUAL_LANES];
  uint32_t ones[HK_SUM_WARPS][HK_RESIDUAL_LANES], good[HK_SUM_WARPS][HK_RESIDUAL_LANES];
};

/* hk_residual_ripe_ones, with all four warps. */
template <int Q>
static __device__ __forceinline__ uint32_t refit_ones(const struct hk_residual &f, uint32_t i, uint32_t warp, uint32_t lane,
                                                      struct hk_residual_fit<Q> *fit)
{
  const uint32_t q = f.rule.neighbours;
  uint32_t ones = 1u << q;
  for (uint32_t k = warp; k < q; k += HK_SUM_WARPS)
    ones |= (uint32_t)(f.ripe[hk_residual_at(q, k, i)] >= HK_RESIDUAL_SETTLE) << k;
  fit->ones[warp][lane] = ones;
  __syncthreads();
  for (int w = 0; w < HK_SUM_WARPS; w++)
    ones |= fit->ones[w][lane];
  return ones;
}

/* Makes a warp's sums its rows of the ridge matrix and of v. */
template <int Q>
static __device__ __forceinline__ void refit_ridge(const struct hk_residual &f, uint32_t i, uint32_t warp, uint32_t ones,
                                                   struct hk_residual_rows<Q> &rows)
{
  rows_each<Q>(f.rule.neighbours, warp, [&](int s, uint32_t a) {
#pragma unroll
    for (int b = 0; b <= Q; b++)
      if (rows_have<Q>(s, a, b))
        rows.product[HK_SLOT(Q, s) + b] = hk_residual_ridge_product(&f, i, ones, a, (uint32_t)b, rows.product[HK_SLOT(Q, s) + b]);
    rows.target[s] = hk_residual_ridge_target(&f, i, ones, (uint32_t)__popc(ones) - 1, a, rows.target[s]);
  });
}

/* Shows the pivot of row k and its part of v. Returns false if it is the warp's, and too small. */
template <int Q>
static __device__ __forceinline__ bool refit_pivot(int k, uint32_t q, uint32_t warp, uint32_t lane,
                                                   struct hk_residual_fit<Q> *fit, const struct hk_residual_rows<Q> &rows,
                                                   const double (&diagonal)[HK_SLOTS(Q)])
{
  bool good = true;
  rows_each<Q>(q, warp, [&](int s, uint32_t a) {
    if (a != (uint32_t)k || k > Q - HK_SUM_WARPS * s)
      return;
    const double pivot = rows.product[HK_SLOT(Q, s) + k];
    good = pivot >= HK_RESIDUAL_PIVOT * diagonal[s] && pivot > 0;
    fit->matrix[hk_residual_packed(a, a)][lane] = pivot;
    fit->side[k][lane] = rows.target[s];
  });
  return good;
}

/* Takes column k from a warp's elements behind it, and from its part of v. */
template <int Q>
static __device__ __forceinline__ void refit_column(int k, uint32_t q, uint32_t warp, uint32_t lane,
                                                    const struct hk_residual_fit<Q> *fit, struct hk_residual_rows<Q> &rows)
{
  const double y = fit->side[k][lane];
  double ld[HK_SLOTS(Q)] = {};
  rows_each<Q>(q, warp, [&](int s, uint32_t a) {
    if (a <= (uint32_t)k || k > Q - HK_SUM_WARPS * s)
      return;
    ld[s] = rows.product[HK_SLOT(Q, s) + k];
    rows.target[s] -= fit->matrix[hk_residual_packed(a, (uint32_t)k)][lane] * y;
  });
#pragma unroll
  for (int j = 0; j <= Q; j++) {
    if (j <= k || (uint32_t)j > q)
      continue;
    const double l = fit->matrix[hk_residual_packed((uint32_t)j, (uint32_t)k)][lane];
#pragma unroll
    for (int s = 0; s < HK_SLOTS(Q); s++) /* in a slot without a row nothing is meant, and nothing stored */
      if (rows_have<Q>(s, rows_of<Q>(s, warp), j))
        rows.product[HK_SLOT(Q, s) + j] -= ld[s] * l;
  }
}

/* Factorises the matrix of 32 nodes, and solves L y = v. Returns whether the warp's pivots are large enough. */
template <int Q>
static __device__ __forceinline__ bool refit_factorise(uint32_t q, uint32_t warp, uint32_t lane, struct hk_residual_fit<Q> *fit,
                                                       struct hk_residual_rows<Q> &rows)
{
  double diagonal[HK_SLOTS(Q)] = {};
  bool good = true;
  rows_each<Q>(q, warp, [&](int s, uint32_t a) {
#pragma unroll
    for (int b = 0; b <= Q; b++)
      if (b <= Q - HK_SUM_WARPS * s && (uint32_t)b == a)
        diagonal[s] = rows.product[HK_SLOT(Q, s) + b];
  });
#pragma unroll
  for (int k = 0; k <= Q; k++) {
    if ((uint32_t)k > q)
      break;
    good &= refit_pivot<Q>(k, q, warp, lane, fit, rows, diagonal);
    __syncthreads();
    const double pivot = fit->matrix[hk_residual_packed((uint32_t)k, (uint32_t)k)][lane];
    rows_each<Q>(q, warp, [&](int s, uint32_t a) {
      if (a > (uint32_t)k && k <= Q - HK_SUM_WARPS * s)
        fit->matrix[hk_residual_packed(a, (uint32_t)k)][lane] = rows.product[HK_SLOT(Q, s) + k] / pivot;
    });
    __syncthreads();
    refit_column<Q>(k, q, warp, lane, fit, rows);
  }
  return good;
}

/* Solves D L^T w = y in the order of hk_residual_solve, and writes w. */
template <int Q>
static __device__ __forceinline__ void refit_back(const struct hk_residual &f, uint32_t i, uint32_t lane,
                                                  const struct hk_residual_fit<Q> *fit)
{
  const uint32_t q = f.rule.neighbours;
  double w[Q + 1];
#pragma unroll
  for (int a = Q; a >= 0; a--) {
    if ((uint32_t)a > q)
      continue;
    w[a] = fit->side[a][lane] / fit->matrix[hk_residual_packed((uint32_t)a, (uint32_t)a)][lane];
#pragma unroll
    for (int k = 0; k <= Q; k++)
      if (k > a && (uint32_t)k <= q)
        w[a] -= fit->matrix[hk_residual_packed((uint32_t)k, (uint32_t)a)][lane] * w[k];
    f.weight[hk_residual_at(q + 1, (uint32_t)a, i)] = (float)w[a];
  }
}

/* A block fits 32 nodes. */
template <int Q>
static __global__ void __launch_bounds__(HK_SUM_THREADS, HK_REFIT_BLOCKS)
    refit(const __grid_constant__ struct hk_residual_resident t)
{
  extern __shared__ double numbers[];
  struct hk_residual_fit<Q> *fit = (struct hk_residual_fit<Q> *)(void *)numbers;
  const uint32_t warp = threadIdx.x / HK_RESIDUAL_LANES, lane = threadIdx.x % HK_RESIDUAL_LANES;
  const uint32_t i = blockIdx.x * HK_RESIDUAL_LANES + lane;
  struct hk_residual_rows<Q> rows = {
  };
  rows_move<Q>(t.of, i, warp, rows, [&](double *where, double &number) { number = __ldcs(where); });
  const uint32_t ones = refit_ones<Q>(t.of, i, warp, lane, fit), n_ripe = (uint32_t)__popc(ones) - 1;
  refit_ridge<Q>(t.of, i, warp, ones, rows);
  fit->good[warp][lane] = refit_factorise<Q>(t.of.rule.neighbours, warp, lane, fit, rows);
  __syncthreads();
  if (warp > 0)
    return;
  if (n_ripe < 2)
    t.slice[i / HK_RESIDUAL_LANES].settled = 0;
  if (!hk_residual_is_due(&t.of, i, n_ripe))
    return;
  for (int w = 0; w < HK_SUM_WARPS; w++)
    if (!fit->good[w][lane]) {
      t.of.refused[i]++;
      return;
    }
  refit_back<Q>(t.of, i, lane, fit);
  t.of.made[i] = 1;
}

/* --- launch ------------------------------------------------------------------------------------------------------------ */

template <int Q> static int launch_refit(const struct hk_residual_resident *t, struct CUstream_st *stream)
{
  refit<Q><<<t->of.room / HK_RESIDUAL_LANES, HK_SUM_THREADS, sizeof(struct hk_residual_fit<Q>), stream>>>(*t);
  return (int)cudaGetLastError();
}

extern "C" int hk_residual_launch_refit(const struct hk_residual_resident *t, const double *, double *,
                                        struct CUstream_st *stream)
{
  const uint32_t q = t->of.rule.neighbours;
  return q <= 4    ? launch_refit<4>(t, stream)
         : q <= 8  ? launch_refit<8>(t, stream)
         : q <= 12 ? launch_refit<12>(t, stream)
                   : launch_refit<16>(t, stream);
}
