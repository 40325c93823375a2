/* Estimates the change instant of an alert from the samples in the ring.
 *
 * Each candidate instant splits the span, and each part gets its own linear predictor: an intercept and HK_INSTANT_LAGS earlier
 * samples, up to a quarter of a window back, with Gaussian errors. The split with the highest likelihood of the prediction errors
 * of both parts is chosen: the two-model likelihood ratio of M. Basseville and I. V. Nikiforov, Detection of Abrupt Changes
 * (1993), ch. 8, with a ridge and a prior on the error variance that prevent short parts from overfitting. It detects changes of
 * level, frequency and amplitude.
 *
 * Called only for events: a coarse pass over the candidates, then a fine one around the best. Cannot fail; without a change any
 * candidate may be chosen. */
#ifndef HK_INSTANT_H
#define HK_INSTANT_H

#include "cpu/rules/window.h"

#define HK_INSTANT_LAGS 4
#define HK_INSTANT_ROW (HK_INSTANT_LAGS + 2) /* 1, the earlier samples, the sample */
#define HK_INSTANT_SUMS (HK_INSTANT_ROW * (HK_INSTANT_ROW + 1) / 2)
#define HK_INSTANT_COARSE 64 /* candidates of the coarse pass */
#define HK_INSTANT_RIDGE 10  /* weight of the prior that a coefficient is 0, in predictions, in units of the error variance */

struct hk_instant {
  uint32_t age;         /* samples since the change: the first of the new behaviour came at T - (age - 1) intervals */
  double before, after; /* levels: means of the ring's samples on either side, in the sensor's units */
  double spread_before, spread_after; /* standard deviations on either side */
};

/* The span in the form for the predictors. */
struct hk_instant_view {
  const hk_real *ring;
  uint32_t head, span;
  uint32_t lag[HK_INSTANT_LAGS]; /* ascending */
  double mean, scale;            /* sample = (ring - mean) * scale: mean 0, mean square 1 */
};

/* Sums over predictions of row * row^T (lower triangle, row by row). */
struct hk_instant_sum {
  double of[HK_INSTANT_SUMS];
  double rows;
};

/* Sample i of the span, 0 is the oldest. */
HK_INLINE double hk_instant_sample(const struct hk_instant_view *v, uint32_t i)
{
  const uint32_t at = v->head + i;
  return ((double)v->ring[at < v->span ? at : at - v->span] - v->mean) * v->scale;
}

/* Adds the predictions of samples from..to-1; from >= the longest lag. */
HK_INLINE void hk_instant_add(struct hk_instant_sum *sum, const struct hk_instant_view *v, uint32_t from, uint32_t to)
{
  for (uint32_t t = from; t < to; t++) {
    double row[HK_INSTANT_ROW];
    row[0] = 1;
    for (int k = 0; k < HK_INSTANT_LAGS; k++)
      row[k + 1] = hk_instant_sample(v, t - v->lag[k]);
    row[HK_INSTANT_ROW - 1] = hk_instant_sample(v, t);
    for (int i = 0, at = 0; i < HK_INSTANT_ROW; i++)
      for (int j = 0; j <= i; j++, at++)
        sum->of[at] += row[i] * row[j];
    sum->rows += 1;
  }
}

/* Sum of the squared errors of the best predictor: the last pivot of L D L^T. sums is overwritten. */
HK_INLINE double hk_instant_error(double *sums, double ridge)
{
  for (int i = 0; i < HK_INSTANT_ROW - 1; i++)
    sums[i * (i + 1) / 2 + i] += ridge;
  for (int k = 0; k < HK_INSTANT_ROW - 1; k++) {
    const double pivot = fmax(sums[k * (k + 1) / 2 + k], ridge);
    for (int i = k + 1; i < HK_INSTANT_ROW; i++) {
      double *row = sums + i * (i + 1) / 2;
      const double factor = row[k] / pivot;
      for (int j = k + 1; j <= i; j++)
        row[j] -= factor * sums[j * (j + 1) / 2 + k];
    }
  }
  return fmax(sums[HK_INSTANT_SUMS - 1], 0.0);
}

/* Log likelihood, up to a constant, of the predictions in `all` less those in `less`. noise: prior error variance. */
HK_INLINE double hk_instant_likelihood(const struct hk_instant_sum *all, const struct hk_instant_sum *less, double ridge,
                                       double noise)
{
  double sums[HK_INSTANT_SUMS];
  for (int i = 0; i < HK_INSTANT_SUMS; i++)
    sums[i] = all->of[i] - less->of[i];
  const double half = 0.5 * (all->rows - less->rows) + 1;
  return -half * log((noise + 0.5 * hk_instant_error(sums, ridge)) / half);
}

/* Standard deviation about `mean` of samples from..to-1, from < to. */
HK_INLINE double hk_instant_spread(const struct hk_instant_view *v, uint32_t from, uint32_t to, double mean)
{
  double sum = 0;
  for (uint32_t i = from; i < to; i++) {
    const double off = hk_instant_sample(v, i) - mean;
    sum = fma(off, off, sum);
  }
  return sqrt(sum / (to - from));
}

/* The view of a full ring: centred, scaled, with the lags of the predictors. */
HK_INLINE struct hk_instant_view hk_instant_look(const struct hk_window *w, const hk_real *ring, const struct hk_detector *d)
{
  const uint32_t span = hk_detector_span(d);
  struct hk_instant_view v = { ring, w->head, span, { 0 }, 0, 1 };
  double mean = 0, square = 0;
  for (uint32_t i = 0; i < span; i++)
    mean += (double)ring[i];
  mean /= span;
  for (uint32_t i = 0; i < span; i++)
    square += ((double)ring[i] - mean) * ((double)ring[i] - mean);
  v.mean = mean;
  v.scale = square > 0 ? sqrt(span / square) : 0;
  for (uint32_t k = 0; k < HK_INSTANT_LAGS; k++) { /* 1, then w/16, w/8, w/4, all different */
    const uint32_t wanted = k == 0 ? 1 : d->window >> (HK_INSTANT_LAGS + 1 - k), least = k == 0 ? 1 : v.lag[k - 1] + 1;
    v.lag[k] = wanted > least ? wanted : least;
  }
  return v;
}

/* The likeliest cut, the first sample of the new part, of those that make the new part first..last samples long; neither part is
 * empty. */
HK_INLINE uint32_t hk_instant_cut(const struct hk_instant_view *v, uint32_t first, uint32_t last)
{
  const struct hk_instant_sum nothing = { { 0 }, 0 };
  const uint32_t span = v->span, start = v->lag[HK_INSTANT_LAGS - 1];
  uint32_t from = last + start < span ? span - last : start + 1, to = first < span - from ? span - first : from;
  uint32_t best = from, step = (to - from) / HK_INSTANT_COARSE + 1;
  struct hk_instant_sum all = nothing;
  hk_instant_add(&all, v, start, span);
  double sums[HK_INSTANT_SUMS];
  memcpy(sums, all.of, sizeof sums);
  const double noise = hk_instant_error(sums, 1e-6 * span) / all.rows + 1e-9, ridge = HK_INSTANT_RIDGE * noise + 1e-6;
  for (;;) {
    struct hk_instant_sum old = nothing;
    double top = 0;
    for (uint32_t cut = from, done = start; cut <= to; cut += step) {
      hk_instant_add(&old, v, done, cut);
      done = cut;
      const double likelihood =
          hk_instant_likelihood(&old, &nothing, ridge, noise) + hk_instant_likelihood(&all, &old, ridge, noise);
      if (cut == from || likelihood > top) {
        top = likelihood;
        best = cut;
      }
    }
    if (step == 1)
      break;
    to = to - best > step ? best + step : to;
    from = best - from > step ? best - step : from;
    step = 1;
  }
  return best;
}

/* The likeliest change of age first..last (1 <= first <= last), as far as the ring can tell. The ring must be full. */
HK_INLINE struct hk_instant hk_instant_estimate(const struct hk_window *w, const hk_real *ring, const struct hk_detector *d,
                                                uint32_t first, uint32_t last)
{
  struct hk_instant_view v = hk_instant_look(w, ring, d);
  const uint32_t span = v.span, best = hk_instant_cut(&v, first, last);
  struct hk_instant found = { span - best, 0, 0, 0, 0 };
  v.mean = 0;
  v.scale = 1;
  for (uint32_t i = 0; i < best; i++)
    found.before += hk_instant_sample(&v, i);
  for (uint32_t i = best; i < span; i++)
    found.after += hk_instant_sample(&v, i);
  found.before /= best;
  found.after /= span - best;
  found.spread_before = hk_instant_spread(&v, 0, best, found.before);
  found.spread_after = hk_instant_spread(&v, best, span, found.after);
  found.before += w->reference;
  found.after += w->reference;
  return found;
}

#endif
