/* window = auto: determines the window of a neighbour graph from the first samples of the sensor. MATHEMATICS.md has the
 * definition.
 *
 * The window is half the lag of the first peak of the samples' autocorrelation, so that a node contains half a period: the first
 * lag at which it rises again, by HK_GRAPH_RISE, to more than HK_GRAPH_PEAK. A sensor without such a peak gets HK_GRAPH_FALLBACK.
 * Sums are in double, in the order of time, on every backend: equal samples give the same window. */
#ifndef HK_WINDOW_SEARCH_H
#define HK_WINDOW_SEARCH_H

#include "cpu/rules/window.h"

#define HK_GRAPH_LEARN 400 /* samples used, if as many are kept */
#define HK_GRAPH_PEAK 0.2  /* minimum height of a peak, in variances, */
#define HK_GRAPH_RISE 0.1  /* and above the lowest value before it */
#define HK_GRAPH_FALLBACK 20

/* Number of samples from which the window is determined. */
HK_INLINE uint32_t hk_graph_learn(const struct hk_detector *d)
{
  return d->resident < HK_GRAPH_LEARN ? d->resident : HK_GRAPH_LEARN;
}

/* Number of lags: 0 .. hk_graph_lags - 1. d->window is the widest possible result. */
HK_INLINE uint32_t hk_graph_lags(const struct hk_detector *d)
{
  const uint32_t widest = 2 * d->window + 2, half = hk_graph_learn(d) / 2;
  return widest < half ? widest : half;
}

/* Mean of the first n samples. */
HK_INLINE double hk_graph_window_mean(const hk_real *x, uint32_t n)
{
  double sum = 0;
  for (uint32_t t = 0; t < n; t++)
    sum += (double)x[t];
  return sum / n;
}

/* Autocovariance of n samples at a lag. */
HK_INLINE double hk_graph_covariance(const hk_real *x, uint32_t n, double mean, uint32_t lag)
{
  double sum = 0;
  for (uint32_t t = 0; t + lag < n; t++)
    sum = fma((double)x[t] - mean, (double)x[t + lag] - mean, sum);
  return sum / (n - lag);
}

/* The window by the autocovariances at lags 0 .. hk_graph_lags - 1. */
HK_INLINE uint32_t hk_graph_pick_window(const double *covariance, const struct hk_detector *d)
{
  const uint32_t n = hk_graph_lags(d), least = 2 * HK_GRAPH_WINDOW_MIN;
  const double variance = covariance[0];
  double lowest = variance;
  for (uint32_t lag = 2; lag + 1 < n; lag++) {
    const double before = covariance[lag - 1], at = covariance[lag];
    lowest = fmin(lowest, before);
    if (lag >= least && at >= before && at > covariance[lag + 1] && at > HK_GRAPH_PEAK * variance &&
        at - lowest > HK_GRAPH_RISE * variance)
      return lag / 2 < d->window ? lag / 2 : d->window;
  }
  return d->window < HK_GRAPH_FALLBACK ? d->window : HK_GRAPH_FALLBACK;
}

/* The window by the samples x, hk_graph_learn of them in the order of time. */
HK_INLINE uint32_t hk_graph_find_window(const hk_real *x, const struct hk_detector *d)
{
  double covariance[2 * HK_WINDOW_MAX + 2];
  const uint32_t n = hk_graph_learn(d);
  const double mean = hk_graph_window_mean(x, n);
  for (uint32_t lag = 0; lag < hk_graph_lags(d); lag++)
    covariance[lag] = hk_graph_covariance(x, n, mean, lag);
  return hk_graph_pick_window(covariance, d);
}

#endif
