/* Symmetric tridiagonal eigenproblems, one a lane: QL with implicit shifts (Bowdler, Martin, Reinsch and Wilkinson 1968).
 *
 * The lanes walk together; a lane with nothing to do at a place is masked out, and rotates by nothing. A number beside the
 * diagonal is taken as zero below 2^-25 of the matrix's norm: errors are relative to the norm, as those of the matrix are.
 * Cannot fail: after 40 sweeps for one eigenvalue what there is, is taken. */
#include "cpu/lanes.h"

#define SWEEPS 40

void eigen_identity(float *rows, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < n; j++)
      ((vec *)rows)[i * n + j] = every(i == j);
}

void eigen_solve(float *diagonal, float *beside, uint32_t n, float *rows, uint32_t n_rows)
{
  vec *const d = (vec *)diagonal, *const e = (vec *)beside, *const z = (vec *)rows;
  vec small = { 0 };
  for (uint32_t i = 0; i < n; i++)
    small = larger(small, magnitude(d[i]) + (i + 1 < n ? magnitude(e[i]) : every(0)));
  small *= 0x1p-25f;
  for (uint32_t first = 0; first + 1 < n; first++) {
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
      /* The block to work on: from first to the first place where the matrix falls apart. */
      mask end = (mask){ 0 } + (int32_t)(n - 1);
      vec corner = d[n - 1];
      for (uint32_t i = n - 1; i-- > first;) {
        const mask apart = magnitude(e[i]) <= small;
        end = (apart & (int32_t)i) | (~apart & end);
        corner = pick(apart, d[i], corner);
      }
      const mask active = end > (int32_t)first;
      if (!any(active))
        break;
      const vec near = pick(active, e[first], every(1));
      vec g = (d[first + 1] - d[first]) / (2 * near);
      g = corner - d[first] + near / (g + with_sign(root(g * g + 1), g));
      vec s = every(1), c = every(1), p = { 0 };
      mask whole = active; /* lanes whose sweep has not ended early */
      for (uint32_t i = n - 1; i-- > first;) {
        const mask on = whole & (end > (int32_t)i);
        const vec f = s * e[i], b = c * e[i];
        const vec r = root(f * f + g * g);
        const mask ended = on & (r == 0); /* underflow: the matrix falls apart here */
        const mask go = on & ~ended;
        d[i + 1] = pick(ended, d[i + 1] - p, d[i + 1]);
        e[i + 1] = pick(on, r, e[i + 1]);
        whole &= ~ended;
        const vec by = 1 / pick(go, r, every(1));
        s = pick(go, f * by, s);
        c = pick(go, g * by, c);
        const vec base = d[i + 1] - p;
        const vec turn = (d[i] - base) * s + 2 * c * b;
        p = pick(go, s * turn, p);
        d[i + 1] = pick(go, base + p, d[i + 1]);
        g = pick(go, c * turn - b, g);
        const vec rs = keep(go, s), rc = pick(go, c, every(1));
        for (uint32_t row = 0; row < n_rows; row++) {
          vec *const zi = z + row * n + i;
          const vec upper = zi[0], lower = zi[1];
          zi[1] = rs * upper + rc * lower;
          zi[0] = rc * upper - rs * lower;
        }
      }
      d[first] = pick(whole, d[first] - p, d[first]);
      e[first] = pick(whole, g, e[first]);
      for (uint32_t i = first; i < n; i++)
        e[i] = keep(~(active & (end == (int32_t)i)), e[i]);
    }
  }
}
