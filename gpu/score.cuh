/* The score of one window by one block: "The present's direction" and "The score" in cpu/MATHEMATICS.md. */
#ifndef HK_SCORE_CUH
#define HK_SCORE_CUH

#include "gpu/lanczos.cuh"

/* Most Lanczos steps that a detector makes. */
HK_INLINE uint32_t hk_present_steps(const struct hk_detector *d)
{
  const uint32_t steps = d->operator_ == HK_OPERATOR_GRAM ? d->products / 2 : d->products;
  return steps < d->window ? steps : d->window;
}

HK_INLINE uint32_t hk_steps_max(const struct hk_detector *d)
{
  if (d->algorithm == HK_ALGORITHM_SVD)
    return d->window;
  const uint32_t steps = d->present == HK_PRESENT_RITZ ? hk_present_steps(d) : 1;
  return steps > d->krylov ? steps : d->krylov;
}

/* Centres and scales the span as hk_span_prepare does, into room->past and room->present. */
static __device__ struct hk_span_kind hk_block_prepare(const struct hk_room *room, const struct hk_window *w, const float *ring,
                                                       const struct hk_detector *d)
{
  const uint32_t span = hk_detector_span(d), reach = 2 * d->window - 1, head = w->head;
  double past_mean = 0, present_mean = 0, held = 0, past_top = 0, present_top = 0;
  for HK_EACH (i, span)
    held = fmax(held, fabs((double)ring[i]));
  held = hk_block_max(room, held);
  for HK_EACH (i, 2 * room->padded) {
    const uint32_t at = head + i, from = at + d->gap;
    room->past[i] = i < reach ? ring[at < span ? at : at - span] : 0;
    room->present[i] = i < reach ? ring[from < span ? from : from - span] : 0;
  }
  if (d->scale == HK_SCALE_BASELINE) {
    past_mean = present_mean = w->mean;
  } else if (d->scale == HK_SCALE_NONE) {
    past_mean = present_mean = -w->reference;
  } else {
    for HK_EACH (i, reach) {
      past_mean += (double)room->past[i];
      present_mean += (double)room->present[i];
    }
    past_mean = hk_block_sum(room, past_mean) / reach;
    present_mean = hk_block_sum(room, present_mean) / reach;
  }
  for HK_EACH (i, reach) {
    room->past[i] = (float)((double)room->past[i] - past_mean);
    room->present[i] = (float)((double)room->present[i] - present_mean);
    past_top = fmax(past_top, fabs((double)room->past[i]));
    present_top = fmax(present_top, fabs((double)room->present[i]));
  }
  past_top = hk_block_max(room, past_top);
  present_top = hk_block_max(room, present_top);
  const double zero = fmax(HK_ZERO_ABSOLUTE, held * HK_ZERO_RELATIVE);
  const struct hk_span_kind kind = { (uint8_t)(past_top <= zero), (uint8_t)(present_top <= zero) };
  int exponent;
  (void)frexp(past_top, &exponent);
  const float past_factor = kind.past_zero ? 1 : (float)ldexp(1.0, -exponent);
  (void)frexp(present_top, &exponent);
  const float present_factor = kind.present_zero ? 1 : (float)ldexp(1.0, -exponent);
  for HK_EACH (i, reach) {
    room->past[i] *= past_factor;
    room->present[i] *= present_factor;
  }
  __syncthreads();
  return kind;
}

/* mu = normalise(Q y), y the first column of room->y and m long. */
static __device__ void hk_ritz_vector(const struct hk_room *room, uint32_t m, uint32_t columns)
{
  for HK_EACH (i, room->window) {
    double sum = 0;
    for (uint32_t s = 0; s < m; s++)
      sum += room->y[(size_t)s * columns] * (double)room->q[(size_t)s * room->padded + i];
    room->mu[i] = (float)sum;
  }
  const double norm = sqrt(hk_block_dot(room, room->mu, room->mu));
  for HK_EACH (i, room->window)
    room->mu[i] = (float)((double)room->mu[i] / norm);
}

/* Finds mu, into room->mu, from the feedback vector a. Returns sigma^2. */
static __device__ double hk_block_present(const struct hk_room *room, const struct hk_detector *d, const float *a, uint64_t seed)
{
  double sigma2 = 0, sign = 1;
  if (d->algorithm == HK_ALGORITHM_SVD) {
    uint32_t m;
    (void)hk_lanczos_exact(room, room->present, seed, 1, &m);
    hk_ritz_vector(room, m, 1);
    sigma2 = room->leading[0] * room->leading[0];
    sign = hk_block_dot(room, room->mu, a);
  } else if (d->present == HK_PRESENT_RITZ) {
    const uint32_t m = hk_lanczos(room, room->present, d, a, hk_present_steps(d));
    (void)hk_tridiagonal_leading(room, m, 1);
    hk_ritz_vector(room, m, 1);
    sigma2 = d->operator_ == HK_OPERATOR_GRAM ? fabs(room->leading[0]) : room->leading[0] * room->leading[0];
    sign = room->y[0];
  } else {
    for HK_EACH (i, room->window)
      room->mu[i] = a[i];
    for (uint32_t turn = 0; turn < d->products / 2; turn++) {
      hk_block_hankel(room, room->present, room->mu, room->t);
      hk_block_hankel(room, room->present, room->t, room->u);
      const double norm = sqrt(hk_block_dot(room, room->u, room->u));
      if (!(norm > 0))
        break;
      sigma2 = norm;
      for HK_EACH (i, room->window)
        room->mu[i] = (float)((double)room->u[i] / norm);
    }
  }
  if (sign < 0)
    for HK_EACH (i, room->window)
      room->mu[i] = -room->mu[i];
  __syncthreads();
  return sigma2;
}

/* How much of mu lies outside the leading directions of the past. */
static __device__ double hk_block_past(const struct hk_room *room, const struct hk_detector *d, uint64_t seed)
{
  const uint32_t r = d->rank;
  const bool svd = d->algorithm == HK_ALGORITHM_SVD;
  uint32_t m, found;
  if (svd) {
    found = hk_lanczos_exact(room, room->past, seed, r, &m);
    hk_block_project(room, room->mu, m);
  } else {
    m = hk_lanczos(room, room->past, d, room->mu, d->krylov);
    found = hk_tridiagonal_leading(room, m, r);
  }
  /* below this an eigenvalue is rounding noise: a past of rank below r spans no more than its rank */
  const double least = (!svd && d->operator_ == HK_OPERATOR_GRAM ? 0x1p-34 : 0x1p-17) * fabs(room->leading[0]);
  double z = 1;
  for (uint32_t j = 0; j < found && fabs(room->leading[j]) > least; j++) {
    double dot = room->y[j]; /* mu is the first basis vector of ika */
    if (svd) {
      dot = 0;
      for HK_EACH (s, m)
        dot += (double)room->c[s] * room->y[(size_t)s * r + j];
      dot = hk_block_sum(room, dot);
    }
    z -= dot * dot;
  }
  return fmin(fmax(z, 0.0), 1.0);
}

/* What a score gives. */
struct hk_result {
  double z;     /* in [0, 1] */
  double share; /* of the present's energy held by mu, in [0, 1] */
};

/* Scores the window as it stands; a, the feedback vector, follows. */
static __device__ struct hk_result hk_block_score(const struct hk_room *room, const struct hk_detector *d,
                                                  const struct hk_window *w, const float *ring, float *a)
{
  const struct hk_span_kind kind = hk_block_prepare(room, w, ring, d);
  struct hk_result result = { 0, 0 };
  if (kind.present_zero)
    return result;
  const double sigma2 = hk_block_present(room, d, a, w->seed);
  double energy = 0; /* |H2|_F^2: element m of the present stands on an antidiagonal of w - |m - (w - 1)| */
  for HK_EACH (i, 2 * d->window - 1) {
    const uint32_t times = i < d->window ? i + 1 : 2 * d->window - 1 - i;
    energy += times * (double)room->present[i] * (double)room->present[i];
  }
  energy = hk_block_sum(room, energy);
  result.share = fmin(sigma2 / energy, 1.0);

  hk_random_vector(room, w->seed, 0, room->t);
  double norm = 0;
  for HK_EACH (i, room->window) {
    const double x = (double)room->mu[i] + 1e-3 * (double)room->t[i];
    norm += x * x;
  }
  norm = sqrt(hk_block_sum(room, norm));
  for HK_EACH (i, room->window)
    a[i] = (float)(((double)room->mu[i] + 1e-3 * (double)room->t[i]) / norm);

  result.z = kind.past_zero ? 1 : hk_block_past(room, d, w->seed);
  return result;
}

#endif
