/* Fits the weights of a node to the sums that it has learned: the last step of residual.h; for host and device, like that. */
#ifndef HK_RESIDUAL_REFIT_H
#define HK_RESIDUAL_REFIT_H

#include "cpu/field/residual.h"

/* Work memory of the ridge regression: (q + 1)(q + 2)/2 + q + 1 numbers, `step` apart. */
struct hk_residual_ridge {
  double *at;
  uint32_t step, n; /* n = q + 1 */
};

HK_INLINE double *hk_residual_matrix(const struct hk_residual_ridge *m, uint32_t a, uint32_t b)
{
  return &m->at[hk_residual_packed(a, b) * m->step];
}

HK_INLINE double *hk_residual_side(const struct hk_residual_ridge *m, uint32_t a)
{
  return &m->at[((size_t)m->n * (m->n + 1) / 2 + a) * m->step];
}

/* A bit for each neighbour that is ripe, and one for the constant. */
HK_INLINE uint32_t hk_residual_ripe_ones(const struct hk_residual *f, uint32_t i)
{
  uint32_t ones = 1u << f->rule.neighbours;
  for (uint32_t k = 0; k < f->rule.neighbours; k++)
    ones |= (uint32_t)(f->ripe[hk_residual_at(f->rule.neighbours, k, i)] >= HK_RESIDUAL_SETTLE) << k;
  return ones;
}

/* Number of ripe neighbours. */
HK_INLINE uint32_t hk_residual_ripe_count(const struct hk_residual *f, uint32_t ones)
{
  uint32_t n = 0;
  for (uint32_t k = 0; k < f->rule.neighbours; k++)
    n += ones >> k & 1;
  return n;
}

/* Element a, b of the ridge matrix, where that of the sums G is g; hk_residual_ridge_target: element a of the right side, where
 * that of the sums b is t. What is not ripe gives 0. */
HK_INLINE double hk_residual_ridge_product(const struct hk_residual *f, uint32_t i, uint32_t ones, uint32_t a, uint32_t b,
                                           double g)
{
  if (!(ones >> a & ones >> b & 1))
    return a == b;
  return a != b ? g : g + (a < f->rule.neighbours ? HK_RESIDUAL_RIDGE : HK_RESIDUAL_RIDGE_LEVEL) * f->total[i];
}

HK_INLINE double hk_residual_ridge_target(const struct hk_residual *f, uint32_t i, uint32_t ones, uint32_t n_ripe, uint32_t a,
                                          double t)
{
  if (!(ones >> a & 1))
    return 0;
  return a < f->rule.neighbours ? t + HK_RESIDUAL_RIDGE * f->total[i] / n_ripe : t;
}

/* Whether a node is fitted again. With fewer than two ripe neighbours it loses its w. */
HK_INLINE bool hk_residual_is_due(const struct hk_residual *f, uint32_t i, uint32_t n_ripe)
{
  if (n_ripe < 2)
    f->made[i] = 0;
  return n_ripe >= 2 && f->learned[i] >= HK_RESIDUAL_SETTLE;
}

#define HK_RESIDUAL_SIDE_BY_SIDE 4u /* sums that do not wait for each other */

/* Column j of the rows from i on, less what the columns before it have of them. */
HK_INLINE void hk_residual_reduce(const struct hk_residual_ridge *m, uint32_t i, uint32_t j)
{
  double sum[HK_RESIDUAL_SIDE_BY_SIDE];
  for (uint32_t s = 0; s < HK_RESIDUAL_SIDE_BY_SIDE; s++)
    sum[s] = *hk_residual_matrix(m, i + s, j);
  for (uint32_t k = 0; k < j; k++) {
    const double l = *hk_residual_matrix(m, j, k);
    for (uint32_t s = 0; s < HK_RESIDUAL_SIDE_BY_SIDE; s++)
      sum[s] -= *hk_residual_matrix(m, i + s, k) * l;
  }
  for (uint32_t s = 0; s < HK_RESIDUAL_SIDE_BY_SIDE; s++)
    *hk_residual_matrix(m, i + s, j) = sum[s];
}

/* Solves m x = v in place, m = L D L^T. False: a pivot is too small, and both are overwritten. */
HK_INLINE bool hk_residual_solve(const struct hk_residual_ridge *m)
{
  for (uint32_t j = 0; j < m->n; j++) {
    const double diagonal = *hk_residual_matrix(m, j, j);
    double pivot = diagonal;
    for (uint32_t k = 0; k < j; k++) { /* row j holds L up to here, then L D */
      const double ld = *hk_residual_matrix(m, j, k), l = ld / *hk_residual_matrix(m, k, k);
      pivot -= l * ld;
      *hk_residual_matrix(m, j, k) = l;
    }
    if (!(pivot >= HK_RESIDUAL_PIVOT * diagonal) || !(pivot > 0))
      return false;
    *hk_residual_matrix(m, j, j) = pivot;
    uint32_t i = j + 1;
    for (; i + HK_RESIDUAL_SIDE_BY_SIDE <= m->n; i += HK_RESIDUAL_SIDE_BY_SIDE)
      hk_residual_reduce(m, i, j);
    for (; i < m->n; i++) {
      double sum = *hk_residual_matrix(m, i, j);
      for (uint32_t k = 0; k < j; k++)
        sum -= *hk_residual_matrix(m, i, k) * *hk_residual_matrix(m, j, k);
      *hk_residual_matrix(m, i, j) = sum;
    }
  }
  for (uint32_t i = 0; i < m->n; i++) {
    double x = *hk_residual_side(m, i);
    for (uint32_t k = 0; k < i; k++)
      x -= *hk_residual_matrix(m, i, k) * *hk_residual_side(m, k);
    *hk_residual_side(m, i) = x;
  }
  for (uint32_t i = m->n; i-- > 0;) {
    double x = *hk_residual_side(m, i) / *hk_residual_matrix(m, i, i);
    for (uint32_t k = i + 1; k < m->n; k++)
      x -= *hk_residual_matrix(m, k, i) * *hk_residual_side(m, k);
    *hk_residual_side(m, i) = x;
  }
  return true;
}

/* Computes w of a node from its ridge regression. */
HK_INLINE void hk_residual_settle_weights(const struct hk_residual *f, uint32_t i, const struct hk_residual_ridge *m)
{
  if (!hk_residual_solve(m)) {
    f->refused[i]++;
    return;
  }
  for (uint32_t a = 0; a < m->n; a++)
    f->weight[hk_residual_at(m->n, a, i)] = (float)*hk_residual_side(m, a);
  f->made[i] = 1;
}

/* After pass 4: fits w of a node. */
HK_INLINE void hk_residual_refit(const struct hk_residual *f, uint32_t i)
{
  double room[(HK_RESIDUAL_NEIGHBOURS_MAX + 1) * (HK_RESIDUAL_NEIGHBOURS_MAX + 2) / 2 + HK_RESIDUAL_NEIGHBOURS_MAX + 1];
  const struct hk_residual_ridge m = { room, 1, f->rule.neighbours + 1 };
  const uint32_t ones = hk_residual_ripe_ones(f, i), n_ripe = hk_residual_ripe_count(f, ones);
  if (!hk_residual_is_due(f, i, n_ripe))
    return;
  for (uint32_t a = 0; a < m.n; a++) {
    for (uint32_t b = 0; b <= a; b++)
      *hk_residual_matrix(&m, a, b) = hk_residual_ridge_product(
          f, i, ones, a, b, f->product[hk_residual_at(hk_residual_products(&f->rule), hk_residual_packed(a, b), i)]);
    *hk_residual_side(&m, a) = hk_residual_ridge_target(f, i, ones, n_ripe, a, f->target[hk_residual_at(m.n, a, i)]);
  }
  hk_residual_settle_weights(f, i, &m);
}

#endif
