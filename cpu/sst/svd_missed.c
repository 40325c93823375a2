/* Whether a converged Krylov iteration may have missed a vector of a leading eigenvalue: see "Repeated eigenvalues" in
 * MATHEMATICS.md.
 *
 * A vector that the start has nothing of is orthogonal to the whole Krylov space, so another iteration is begun outside it. It
 * goes on until an eigenvalue of size `least` or more would have shown in it but for a chance of 2^-15. */
#include "cpu/sst/lanes.h"

#define SURE 0x1p30f /* p_0^2 + p_1^2 + ... for each dimension: the start has more of any vector but for a chance of 2^-15 */
#define BUCKETS 8    /* for each number */

/* Number i of a sequence, or its second difference there. */
ALWAYS_INLINE vec number(const vec *x, uint32_t i, bool differences)
{
  return differences ? x[i] - 2 * x[i + 1] + x[i + 2] : x[i];
}

/* The lanes in which n numbers fall into fewer than half as many of BUCKETS * n equal parts of their range. */
ALWAYS_INLINE mask few(struct hk_work *work, const vec *x, uint32_t n, bool differences, mask lanes)
{
  vec low = number(x, 0, differences), high = low;
  for (uint32_t i = 1; i < n; i++) {
    const vec v = number(x, i, differences);
    low = pick(v < low, v, low);
    high = larger(high, v);
  }
  const vec by = (float)(BUCKETS * n - 1) * inverse(keep(high - low > 0x1p-60f, high - low));
  int32_t *const bucket = (int32_t *)work->sum;
  for (uint32_t i = 0; i < n; i++)
    ((mask *)bucket)[i] = __builtin_convertvector((number(x, i, differences) - low) * by, mask);
  uint8_t *const seen = (uint8_t *)work->u;
  for (uint32_t l = 0; l < HK_LANES; l++) {
    if (!lanes[l])
      continue;
    uint32_t count = 0;
    memset(seen, 0, BUCKETS * n);
    for (uint32_t i = 0; i < n; i++) {
      uint8_t *const at = seen + bucket[i * HK_LANES + l];
      count += *at == 0;
      *at = 1;
    }
    lanes[l] = 2 * count < n ? -1 : 0;
  }
  return lanes;
}

mask svd_repeats(struct hk_work *work, const float *x, mask lanes)
{
  const uint32_t n = 2 * work->shape.window - 1;
  const mask repeats = few(work, (const vec *)x, n, false, lanes);
  return repeats | few(work, (const vec *)x, n - 2, true, lanes & ~repeats);
}

/* The second iteration's own vectors stand apart from the first's, so that a lane's sums do not depend on how many steps its
 * neighbours took. */
static vec svd_missed_outside(struct hk_work *work, uint32_t steps, uint32_t own)
{
  const uint32_t w = work->shape.window, n = work->shape.padded;
  const mask all = ~(mask){ 0 };
  (void)krylov_take_out(work->u, work->q, n, work->dots, w, steps, all);
  return krylov_take_out(work->u, own > 0 ? work->again : work->q, n, work->dots, w, own > 0 ? own : steps, all);
}

mask svd_missed(struct krylov *k, uint32_t steps, mask lanes, vec least)
{
  struct hk_work *const work = k->work;
  const uint32_t w = work->shape.window, n = work->shape.padded;
  vec *const u = (vec *)work->u, *const q = (vec *)work->again;
  mask found = { 0 };
  for (uint32_t i = 0; i < w; i++)
    u[i] = every((float)hk_random_element(1, i));
  scale(q, u, inverse(root(svd_missed_outside(work, steps, 0))), w, n);
  /* Orthonormal polynomials of the iteration at least and, but for signs that take turns, at -least: positive as long as all its
   * Ritz values lie between. */
  vec up = every(1), down = every(1), up_before = { 0 }, down_before = { 0 }, up_sum = every(1), down_sum = every(1), b = { 0 };
  for (uint32_t s = 0; s < HK_SVD_AGAIN && any(lanes); s++) {
    const vec *const at = q + (size_t)s * n;
    krylov_operator(k, work->u, (const float *)at);
    const vec a = dot(at, u, w);
    const vec next_up = (least - a) * up - b * up_before, next_down = (least + a) * down - b * down_before;
    const mask beyond = lanes & ~((next_up > 0) & (next_down > 0)); /* NaN is, too */
    found |= beyond;
    lanes &= ~beyond;
    b = root(svd_missed_outside(work, steps, s + 1));
    const mask over = b <= least * 0x1p-20f; /* nothing is left that could hide */
    const vec by = inverse(b);
    up_before = up;
    down_before = down;
    up = next_up * by;
    down = next_down * by;
    up_sum += up * up;
    down_sum += down * down;
    lanes &= ~(over | ((up_sum > SURE * (float)w) & (down_sum > SURE * (float)w)));
    scale(q + (size_t)(s + 1) * n, u, by, w, n);
  }
  return found | lanes;
}
