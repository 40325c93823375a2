/* Lanczos on a Hankel matrix H, or on H H^T, by one block: see "Lanczos" in cpu/MATHEMATICS.md.
 *
 * The basis grows in room->q, T in room->alpha and room->beta; room->v is the newest basis vector. */
#ifndef HK_LANCZOS_CUH
#define HK_LANCZOS_CUH

#include "gpu/tridiagonal.cuh"

#define HK_BREAKDOWN 0x1p-20 /* a beta below this share of the largest |alpha| + beta before: the Krylov space is complete */

/* a -= Q Q^T a over the first n basis vectors. */
static __device__ void hk_orthogonalise(const struct hk_room *room, float *a, uint32_t n)
{
  hk_block_project(room, a, n);
  for HK_EACH (i, room->window) {
    float x = a[i];
    for (uint32_t s = 0; s < n; s++)
      x = fmaf(-room->c[s], room->q[(size_t)s * room->padded + i], x);
    a[i] = x;
  }
}

/* Makes a / norm basis vector number s, in room->v and room->q. */
static __device__ void hk_basis_set(const struct hk_room *room, uint32_t s, const float *a, double norm)
{
  for HK_EACH (i, room->window) {
    const float x = (float)((double)a[i] / norm);
    room->v[i] = x;
    room->q[(size_t)s * room->padded + i] = x;
  }
}

/* Step s: alpha_s, and in room->u what A q_s has outside the basis, made orthogonal `passes` times. Returns beta_s. */
static __device__ double hk_lanczos_step(const struct hk_room *room, const float *x, bool gram, uint32_t passes, uint32_t s,
                                         double beta_before)
{
  hk_block_hankel(room, x, room->v, gram ? room->t : room->u);
  if (gram)
    hk_block_hankel(room, x, room->t, room->u);
  const double alpha = hk_block_dot(room, room->v, room->u);
  const float *before = room->q + (size_t)(s > 0 ? s - 1 : 0) * room->padded;
  for HK_EACH (i, room->window)
    room->u[i] = (float)((double)room->u[i] - alpha * (double)room->v[i] - (s > 0 ? beta_before * (double)before[i] : 0));
  for (uint32_t pass = 0; pass < passes; pass++)
    hk_orthogonalise(room, room->u, s + 1);
  const double beta = sqrt(hk_block_dot(room, room->u, room->u));
  if (threadIdx.x == 0) {
    room->alpha[s] = alpha;
    room->beta[s] = beta;
  }
  return beta;
}

/* At most `steps` Lanczos steps from the unit vector `start`. Returns the order of T, at least 1. */
static __device__ uint32_t hk_lanczos(const struct hk_room *room, const float *x, const struct hk_detector *d, const float *start,
                                      uint32_t steps)
{
  const bool gram = d->operator_ == HK_OPERATOR_GRAM;
  double beta = 0, top = 0;
  hk_basis_set(room, 0, start, 1);
  for (uint32_t s = 0;; s++) {
    const double before = beta;
    beta = hk_lanczos_step(room, x, gram, d->reorthogonalise, s, before);
    __syncthreads(); /* alpha_s is there for all */
    top = fmax(top, fabs(room->alpha[s]) + before);
    if (s + 1 == steps || beta <= HK_BREAKDOWN * top)
      return s + 1;
    hk_basis_set(room, s + 1, room->u, beta);
  }
}

/* A unit vector that depends on seed and number alone: number 0 is the sensor's a0. */
static __device__ void hk_random_vector(const struct hk_room *room, uint64_t seed, uint32_t number, float *out)
{
  const uint32_t first = number * room->window;
  double sum = 0;
  for HK_EACH (i, room->window) {
    const double x = hk_random_element(seed, first + i);
    sum += x * x;
  }
  const double norm = sqrt(hk_block_sum(room, sum));
  for HK_EACH (i, room->window)
    out[i] = (float)(hk_random_element(seed, first + i) / norm);
}

/* The r eigenpairs of H of largest |eigenvalue|, to working accuracy: Lanczos from a random vector, made orthogonal twice in
 * every step, until the residual of each of the r pairs is below 2^-24 of the largest eigenvalue, at the latest until the
 * basis spans the whole space. T has order m; eigenvectors are Q y. As hk_tridiagonal_leading, m through *order.
 *
 * Where a Krylov space is complete early, H may have more to it (eigenvalues that occur twice): the basis is continued with
 * another random vector, and only an H that gives nothing outside the basis, or a full basis, ends it. The start is random
 * and not the feedback vector, which may have next to nothing of a direction that has just become the leading one. */
static __device__ uint32_t hk_lanczos_exact(const struct hk_room *room, const float *x, uint64_t seed, uint32_t r, uint32_t *order)
{
  const uint32_t w = room->window;
  double beta = 0, top = 0;
  uint32_t restarts = 0, next_look = 2 * r + 16;
  hk_random_vector(room, seed, 0, room->t);
  hk_basis_set(room, 0, room->t, 1);
  for (uint32_t s = 0;; s++) {
    const double before = beta;
    beta = hk_lanczos_step(room, x, false, 2, s, before);
    __syncthreads();
    const double size = fabs(room->alpha[s]) + before;
    top = fmax(top, size);
    const bool broken = beta <= HK_BREAKDOWN * top, nothing = restarts > 0 && before == 0 && size <= HK_BREAKDOWN * top;
    *order = s + 1;
    if (s + 1 == w || (broken && nothing))
      return hk_tridiagonal_leading(room, s + 1, r);
    if (!broken && restarts == 0 && s + 1 >= next_look) {
      const uint32_t found = hk_tridiagonal_leading(room, s + 1, r);
      double residual = 0;
      for (uint32_t j = 0; j < found; j++)
        residual = fmax(residual, beta * fabs(room->y[(size_t)s * r + j]));
      if (residual <= 0x1p-24 * fabs(room->leading[0]))
        return found;
      next_look += next_look / 3;
    }
    if (broken) {
      beta = 0;
      restarts++;
      hk_random_vector(room, seed, restarts, room->t);
      for (uint32_t pass = 0; pass < 2; pass++)
        hk_orthogonalise(room, room->t, s + 1);
      const double norm = sqrt(hk_block_dot(room, room->t, room->t));
      if (threadIdx.x == 0)
        room->beta[s] = 0;
      hk_basis_set(room, s + 1, room->t, norm);
    } else {
      hk_basis_set(room, s + 1, room->u, beta);
    }
  }
}

#endif
