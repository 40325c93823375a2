/* Lanczos steps, one matrix in each lane. A lane whose Krylov space is complete continues with a zero vector: its T decouples
 * into the part that counts and zeros. */
#include "cpu/sst/lanes.h"

/* Vectors of Q processed at once. */
#define BLOCK 8
/* Part of the largest |alpha| + beta: if less is left of a vector, some of it may be rounding. */
#define AGAIN 0x1p-6f

void krylov_begin(struct krylov *k, struct hk_work *work, const float *x, bool gram, bool reorthogonalise)
{
  *k = (struct krylov){ .work = work, .x = x, .gram = gram, .reorthogonalise = reorthogonalise };
  hankel_split(work->tree, x, &work->shape);
}

void krylov_operator(const struct krylov *k, float *u, const float *v)
{
  struct hk_work *const work = k->work;
  if (!k->gram) {
    hankel_product(u, k->x, work->tree, v, work->sum, &work->shape);
    return;
  }
  hankel_product(work->v, k->x, work->tree, v, work->sum, &work->shape);
  for (uint32_t i = work->shape.window; i < work->shape.padded; i++)
    ((vec *)work->v)[i] = (vec){ 0 };
  hankel_product(u, k->x, work->tree, work->v, work->sum, &work->shape);
}

ALWAYS_INLINE void dots_block(vec *restrict dots, const vec *restrict q, size_t stride, const vec *restrict u, uint32_t w,
                              const uint32_t count)
{
  vec sum[BLOCK] = { 0 };
  for (uint32_t i = 0; i < w; i++) {
    const vec ui = u[i];
    UNROLL for (uint32_t t = 0; t < count; t++) sum[t] += q[t * stride + i] * ui;
  }
  UNROLL for (uint32_t t = 0; t < count; t++) dots[t] = sum[t];
}

/* Returns the resulting |u|^2. */
ALWAYS_INLINE vec subtract_block(vec *restrict u, const vec *restrict q, size_t stride, const vec *restrict dots, uint32_t w,
                                 const uint32_t count)
{
  vec by[BLOCK], squares = { 0 };
  UNROLL for (uint32_t t = 0; t < count; t++) by[t] = dots[t];
  for (uint32_t i = 0; i < w; i++) {
    vec even = u[i], odd = { 0 };
    UNROLL for (uint32_t t = 0; t < count; t++)
    {
      if (t % 2 == 0)
        even -= q[t * stride + i] * by[t];
      else
        odd -= q[t * stride + i] * by[t];
    }
    even += odd;
    u[i] = even;
    squares += even * even;
  }
  return squares;
}

vec krylov_take_out(float *from, const float *basis, size_t stride, float *products, uint32_t w, uint32_t count, mask lanes)
{
  vec *const u = (vec *)from, *const dots = (vec *)products;
  const vec *const q = (const vec *)basis;
#define EACH_BLOCK(call)                                                                                                         \
  for (uint32_t t = 0; t < count; t += BLOCK) {                                                                                  \
    const uint32_t left = count - t;                                                                                             \
    const vec *const qt = q + t * stride;                                                                                        \
    if (left >= 8)                                                                                                               \
      call(8);                                                                                                                   \
    else if (left == 7)                                                                                                          \
      call(7);                                                                                                                   \
    else if (left == 6)                                                                                                          \
      call(6);                                                                                                                   \
    else if (left == 5)                                                                                                          \
      call(5);                                                                                                                   \
    else if (left == 4)                                                                                                          \
      call(4);                                                                                                                   \
    else if (left == 3)                                                                                                          \
      call(3);                                                                                                                   \
    else if (left == 2)                                                                                                          \
      call(2);                                                                                                                   \
    else                                                                                                                         \
      call(1);                                                                                                                   \
  }
#define DOTS(n) dots_block(dots + t, qt, stride, u, w, n)
#define SUBTRACT(n) squares = subtract_block(u, qt, stride, dots + t, w, n)
  vec squares = { 0 };
  EACH_BLOCK(DOTS)
  for (uint32_t t = 0; t < count; t++)
    dots[t] = keep(lanes, dots[t]);
  EACH_BLOCK(SUBTRACT)
  return squares;
}

/* u, which is A q_s less its parts along q_s and q_(s-1), made as orthogonal to other vectors as is asked for. Where little of it
 * is left, much of that may be rounding, along those vectors as any other way; of the next vector it would be a large part, and
 * an eigenvalue would be found again and again, even of a constant. In these lanes all is taken out once more, which is enough
 * (B. N. Parlett, "The Symmetric Eigenvalue Problem", 6.9). Returns |u|^2. */
static vec orthogonalise(const struct krylov *k, uint32_t s)
{
  struct hk_work *const work = k->work;
  const uint32_t w = work->shape.window, n = work->shape.padded;
  const vec *const u = (const vec *)work->u;
  const mask all = ~(mask){ 0 };
  const vec squares = k->reorthogonalise ? krylov_take_out(work->u, work->q, n, work->dots, w, s + 1, all) : dot(u, u, w);
  const mask again = ~k->complete & (squares < k->top * k->top * (AGAIN * AGAIN));
  if (!any(again))
    return squares;
  const uint32_t first = k->reorthogonalise || s == 0 ? 0 : s - 1;
  const float *const from = (const float *)((const vec *)work->q + (size_t)first * n);
  return pick(again, krylov_take_out(work->u, from, n, work->dots, w, s + 1 - first, again), squares);
}

void krylov_step(struct krylov *k, uint32_t s, bool last)
{
  struct hk_work *const work = k->work;
  const uint32_t w = work->shape.window, n = work->shape.padded;
  vec *const u = (vec *)work->u, *const q = (vec *)work->q + (size_t)s * n;
  vec *const alpha = (vec *)work->alpha, *const beta = (vec *)work->beta;
  krylov_operator(k, work->u, (const float *)q);
  const vec a = alpha[s] = dot(q, u, w);
  if (last)
    return;
  const vec b = s > 0 ? beta[s - 1] : every(0);
  if (s > 0) {
    for (uint32_t i = 0; i < w; i++) {
      const vec part = u[i] - a * q[i];
      u[i] = part - b * q[(ptrdiff_t)i - n];
    }
  } else {
    for (uint32_t i = 0; i < w; i++)
      u[i] -= a * q[i];
  }
  k->top = larger(k->top, magnitude(a) + b);
  const vec norm = root(orthogonalise(k, s));
  k->complete |= norm <= k->top * 0x1p-20f;
  beta[s] = keep(~k->complete, norm);
  scale(q + n, u, inverse(beta[s]), w, n);
}

void krylov_combine(struct hk_work *work, float *out, const float *y, uint32_t m)
{
  const uint32_t w = work->shape.window, n = work->shape.padded;
  const vec *const q = (const vec *)work->q, *const by = (const vec *)y;
  vec *const u = (vec *)work->u;
  for (uint32_t i = 0; i < w; i++)
    u[i] = by[0] * q[i];
  for (uint32_t s = 1; s < m; s++)
    for (uint32_t i = 0; i < w; i++)
      u[i] += by[s] * q[s * (size_t)n + i];
  scale((vec *)out, u, inverse(root(dot(u, u, w))), w, n);
}
