/* Symmetric tridiagonal eigenproblems, one in each lane: QR sweeps with implicit shifts (Francis; the form for tridiagonal
 * matrices is that of Bowdler, Martin, Reinsch and Wilkinson 1968, from the other end: T of a Lanczos run is large at its
 * beginning). The lanes advance together; a lane with no work at a place is masked out, and its rotation is the identity. An
 * off-diagonal number below 2^-25 of the matrix's norm counts as zero: errors are relative to the norm, as those of the matrix
 * are. Cannot fail: after 40 sweeps for one eigenvalue the current value is used. */
#include "cpu/sst/lanes.h"

#define SWEEPS 40
#define TINY 0x1p-100f /* squares of numbers that count as zero */

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
  for (uint32_t last = n - 1; last > 0; last--) {
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
      /* The active block: from the last place where the matrix decouples to `last`. */
      mask start = { 0 };
      vec corner = d[0];
      for (uint32_t i = 0; i < last; i++) {
        const mask apart = magnitude(e[i]) <= small;
        start = (apart & (int32_t)(i + 1)) | (~apart & start);
        corner = pick(apart, d[i + 1], corner);
      }
      mask active = start < (int32_t)last;
      if (!any(active))
        break;
      const vec near = pick(active, e[last - 1], every(1));
      vec g = (d[last - 1] - d[last]) / (2 * near);
      g = corner - d[last] + near / (g + with_sign(root(g * g + 1), g));
      vec s = every(1), c = every(1), p = { 0 };
      for (uint32_t i = 0; i < last; i++) {
        const mask on = active & (start <= (int32_t)i);
        const vec f = s * e[i], b = c * e[i];
        const vec square = f * f + g * g;
        const mask ended = on & (square < TINY); /* the matrix decouples here */
        const mask go = on & ~ended;
        active &= ~ended;
        d[i] = pick(ended, d[i] - p, d[i]);
        const vec r = keep(~ended, root(square)), by = r / pick(go, square, every(1)); /* root and division side by side */
        if (i > 0)
          e[i - 1] = pick(on & (start < (int32_t)i), r, e[i - 1]);
        s = pick(go, f * by, s);
        c = pick(go, g * by, c);
        const vec base = d[i] - p;
        const vec turn = (d[i + 1] - base) * s + c * (b + b);
        p = pick(go, s * turn, p);
        d[i] = pick(go, base + p, d[i]);
        g = pick(go, c * turn - b, g);
        const vec rs = keep(go, s), rc = pick(go, c, every(1));
        for (uint32_t row = 0; row < n_rows; row++) {
          vec *const zi = z + row * n + i;
          const vec here = zi[0], next = zi[1];
          zi[0] = rs * next + rc * here;
          zi[1] = rc * next - rs * here;
        }
      }
      d[last] = pick(active, d[last] - p, d[last]);
      e[last - 1] = pick(active, g, e[last - 1]);
    }
  }
}
