/* A sketch of a segment: a few numbers that identify similar segments of a sensor.
 *
 * It describes the samples x (mean m, standard deviation s, n of them) apart from level and spread, for the window w, with z = (x
 * - m) / s and e = z[t + h] - z[t], h = max(1, w/4), divided by the root of its mean square:
 *
 *   the autocorrelations of z at lags of max(1, round(w * 0, 1/16, 1/8, 1/4, 1/2, 3/4, 1, 2))
 *   mean |z|, 0.22 mean z^3, mean |e|, 0.22 mean e^3
 *
 * each in hundredths, rounded, at most 127. A constant segment has autocorrelations of 1 and otherwise 0. Sums are in double, in
 * the order of time, so that all backends with equal samples compute the same sketch.
 *
 * Cannot fail. Thread: the current owner of the sensor. */
#ifndef HK_SKETCH_H
#define HK_SKETCH_H

#include "cpu/rules/window.h"

/* The samples of a segment in a ring. */
struct hk_sketch_view {
  const hk_real *ring;
  uint32_t span;
  uint32_t oldest, n; /* place of the oldest, and their number */
  uint32_t window;
  double mean, spread; /* of the samples in the ring */
};

/* Sample i, about the mean. */
HK_INLINE double hk_sketch_sample(const struct hk_sketch_view *v, uint32_t i)
{
  const uint32_t at = v->oldest + i;
  return (double)v->ring[at < v->span ? at : at - v->span] - v->mean;
}

HK_INLINE int8_t hk_sketch_round(double x)
{
  return (int8_t)floor(fmin(fmax(100 * x, -127.0), 127.0) + 0.5);
}

HK_INLINE int8_t hk_sketch_autocorrelation(const struct hk_sketch_view *v, uint32_t sixteenths)
{
  const uint32_t rounded = (v->window * sixteenths + 8) / 16, lag = rounded > 0 ? rounded : 1;
  if (lag >= v->n)
    return 0;
  double sum = 0;
  for (uint32_t t = 0; t + lag < v->n; t++)
    sum = fma(hk_sketch_sample(v, t), hk_sketch_sample(v, t + lag), sum);
  return hk_sketch_round(sum / (v->n - lag) / (v->spread * v->spread));
}

/* Mean |x| or 0.22 mean x^3 of the samples, or of their differences over a lag, in units of their root mean square. */
HK_INLINE int8_t hk_sketch_moment(const struct hk_sketch_view *v, uint32_t lag, bool cubes)
{
  double square = 0, sum = 0;
  if (lag >= v->n)
    return 0;
  for (uint32_t t = 0; t + lag < v->n; t++) {
    const double x = lag > 0 ? hk_sketch_sample(v, t + lag) - hk_sketch_sample(v, t) : hk_sketch_sample(v, t);
    square = fma(x, x, square);
    sum = cubes ? fma(x * x, x, sum) : sum + fabs(x);
  }
  const double n = v->n - lag, root = sqrt(square / n);
  return !(root > 0) ? 0 : hk_sketch_round(cubes ? 0.22 * (sum / n) / (root * root * root) : sum / n / root);
}

/* Number q of a sketch, q < HK_SKETCH_NUMBERS; n > 0. */
HK_INLINE int8_t hk_sketch_number(const struct hk_sketch_view *v, uint32_t q)
{
  const uint8_t sixteenths[HK_SKETCH_LAGS] = { 0, 1, 2, 4, 8, 12, 16, 32 };
  const bool still = !(v->spread > fmax(HK_ZERO_RELATIVE * fabs(v->mean), HK_ZERO_ABSOLUTE));
  if (still)
    return q < HK_SKETCH_LAGS ? 100 : 0;
  if (q < HK_SKETCH_LAGS)
    return hk_sketch_autocorrelation(v, sixteenths[q]);
  const uint32_t lag = q < HK_SKETCH_LAGS + 2 ? 0 : v->window / 4 > 0 ? v->window / 4 : 1;
  return hk_sketch_moment(v, lag, q % 2 != 0);
}

#endif
