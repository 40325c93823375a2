/* IKA-SST in lanes: the direction of the present by Ritz vector or power iteration, the score from k Lanczos steps on the past.
 * MATHEMATICS.md has the definitions. */
#include "cpu/sst/lanes.h"

/* Eigenvalues up to this part of the largest do not count. */
#define COUNTS_HANKEL 0x1p-17f
#define COUNTS_GRAM 0x1p-21f

/* Ritz: the eigenvector of T of largest |theta|. */
static vec ritz(struct hk_work *work, const struct hk_detector *d)
{
  const bool gram = d->operator_ == HK_OPERATOR_GRAM;
  const uint32_t steps = gram ? d->products / 2 : d->products, m = steps < d->window ? steps : d->window;
  struct krylov k;
  krylov_begin(&k, work, work->present, gram, d->reorthogonalise);
  for (uint32_t s = 0; s < m; s++)
    krylov_step(&k, s, s + 1 == m);
  eigen_identity(work->rows, m);
  eigen_solve(work->alpha, work->beta, m, work->rows, m);
  const vec *const theta = (const vec *)work->alpha, *const row = (const vec *)work->rows;
  vec *const y = (vec *)work->dots;
  vec top = magnitude(theta[0]);
  for (uint32_t s = 0; s < m; s++)
    y[s] = row[s * m];
  for (uint32_t i = 1; i < m; i++) {
    const mask better = magnitude(theta[i]) > top;
    top = pick(better, magnitude(theta[i]), top);
    for (uint32_t s = 0; s < m; s++)
      y[s] = pick(better, row[s * m + i], y[s]);
  }
  const vec sign = y[0];
  for (uint32_t s = 0; s < m; s++)
    y[s] = (vec)((mask)y[s] ^ ((mask)sign & INT32_MIN));
  krylov_combine(work, work->mu, work->dots, m);
  return gram ? top : top * top;
}

static vec power(struct hk_work *work, const struct hk_detector *d)
{
  const uint32_t w = work->shape.window, n = work->shape.padded;
  vec *const mu = (vec *)work->mu, *const u = (vec *)work->u;
  const vec *const a = (const vec *)work->q;
  vec last = { 0 };
  mask going = ~(mask){ 0 };
  struct krylov k;
  krylov_begin(&k, work, work->present, true, false);
  for (uint32_t i = 0; i < n; i++)
    mu[i] = a[i];
  for (uint32_t product = 0; product + 1 < d->products; product += 2) {
    krylov_operator(&k, work->u, work->mu);
    const vec norm = root(dot(u, u, w));
    going &= norm != 0;
    last = pick(going, norm, last);
    const vec by = inverse(norm);
    for (uint32_t i = 0; i < w; i++)
      mu[i] = pick(going, u[i] * by, mu[i]);
  }
  return last;
}

vec ika_present(struct hk_work *work, const struct hk_detector *d)
{
  return d->present == HK_PRESENT_POWER ? power(work, d) : ritz(work, d);
}

vec ika_score(struct hk_work *work, const struct hk_detector *d)
{
  const bool gram = d->operator_ == HK_OPERATOR_GRAM;
  const uint32_t steps = d->krylov;
  vec *const q = (vec *)work->q;
  const vec *const mu = (const vec *)work->mu;
  struct krylov k;
  krylov_begin(&k, work, work->past, gram, d->reorthogonalise);
  for (uint32_t i = 0; i < work->shape.padded; i++)
    q[i] = mu[i];
  for (uint32_t s = 0; s < steps; s++)
    krylov_step(&k, s, s + 1 == steps);
  vec *const first = (vec *)work->rows, *const theta = (vec *)work->alpha;
  for (uint32_t i = 0; i < steps; i++)
    first[i] = every(i == 0);
  eigen_solve(work->alpha, work->beta, steps, work->rows, 1);

  /* The r largest, one by one; used ones are marked by -1. */
  vec held = { 0 }, least = { 0 };
  for (uint32_t i = 0; i < steps; i++) {
    theta[i] = magnitude(theta[i]);
    least = larger(least, theta[i]);
  }
  least *= gram ? COUNTS_GRAM : COUNTS_HANKEL;
  for (uint32_t pair = 0; pair < d->rank; pair++) {
    vec top = theta[0], part = first[0];
    mask at = { 0 };
    for (uint32_t i = 1; i < steps; i++) {
      const mask better = theta[i] > top;
      top = pick(better, theta[i], top);
      part = pick(better, first[i], part);
      at = (better & (int32_t)i) | (~better & at);
    }
    held += keep(top > least, part * part);
    for (uint32_t i = 0; i < steps; i++)
      theta[i] = pick(at == (int32_t)i, every(-1), theta[i]);
  }
  return 1 - held;
}
