/* The three distances of a run of points to the resident data: the passes in plain form, point by point. The reference backend
 * computes with these; cpu/sst/kernels_novelty.c has them for the CPU's vector registers.
 *
 * Indices are ages: the sample `age` points before another is `age` places before it in the ring. */
#ifndef HK_NOVELTY_DISTANCES_H
#define HK_NOVELTY_DISTANCES_H

#include "cpu/fused.h"
#include "cpu/novelty/novelty.h"

/* Computes the distances of n successive points of one sensor, of which only the first may have age 0: fills in `nearest` and
 * `has`. The lags begin anew at a point of age 0. ring: hk_detector_span(v->detector) samples. */
typedef void hk_novelty_pass(const struct hk_novelty_view *v, const hk_real *ring, struct hk_novelty_point *p, uint32_t n);

/* Number of values to compare a point with, from age HK_NOVELTY_RECENT on. */
HK_INLINE uint32_t hk_novelty_values(const struct hk_detector *d, const struct hk_novelty_point *p)
{
  const uint32_t old = p->before + 1 > HK_NOVELTY_RECENT ? p->before + 1 - HK_NOVELTY_RECENT : 0;
  return old < hk_novelty_resident(d) ? old : hk_novelty_resident(d);
}

/* Number of lags that a point updates: those from HK_NOVELTY_LAG_MIN on that reach a sample. */
HK_INLINE uint32_t hk_novelty_lags_seen(const struct hk_detector *d, const struct hk_novelty_point *p)
{
  const uint32_t most = p->before < hk_novelty_lag_max(d) ? p->before : hk_novelty_lag_max(d);
  return most >= HK_NOVELTY_LAG_MIN ? most - HK_NOVELTY_LAG_MIN + 1 : 0;
}

/* Number of these lags that count: those with enough points. */
HK_INLINE uint32_t hk_novelty_lags_counted(const struct hk_detector *d, const struct hk_novelty_point *p)
{
  const uint32_t seen = p->before < HK_NOVELTY_OVERLAP ? 0 : p->before - HK_NOVELTY_OVERLAP;
  const uint32_t most = seen < hk_novelty_lag_max(d) ? seen : hk_novelty_lag_max(d);
  return p->age >= HK_NOVELTY_OVERLAP && most >= HK_NOVELTY_LAG_MIN ? most - HK_NOVELTY_LAG_MIN + 1 : 0;
}

/* The sample of an age before a point; age <= p->before. */
HK_INLINE hk_real hk_novelty_sample(const hk_real *ring, uint32_t span, const struct hk_novelty_point *p, uint32_t age)
{
  return ring[p->at >= age ? p->at - age : p->at + span - age];
}

HK_INLINE hk_real hk_novelty_value_distance(const hk_real *ring, uint32_t span, const struct hk_novelty_point *p, uint32_t age)
{
  return (hk_real)fabs((double)(hk_novelty_sample(ring, span, p, age) - p->value));
}

/* Place of the row that was admitted `ago` rows before the newest one to compare with; ago < p->rows. */
HK_INLINE uint32_t hk_novelty_row_place(const struct hk_detector *d, const struct hk_novelty_point *p, uint32_t ago)
{
  const uint32_t room = hk_novelty_rows_room(d);
  return (p->row + room - 1 - ago) % room;
}

/* a b + c with one rounding; the reference backend's numbers have bits enough for two. */
HK_INLINE hk_real hk_novelty_fused(hk_real a, hk_real b, hk_real c)
{
  return sizeof(hk_real) == sizeof(float) ? (hk_real)hk_fused((float)a, (float)b, (float)c) : a * b + c;
}

/* Squared distance of a point's slow means from a row. */
HK_INLINE hk_real hk_novelty_row_distance(const struct hk_novelty_view *v, const struct hk_novelty_point *p, uint32_t place)
{
  hk_real sum = 0;
  for (int k = 0; k < HK_NOVELTY_MEANS; k++) {
    const hk_real off = (v->row[k][place] - p->mean[k]) * p->weight[k];
    sum = hk_novelty_fused(off, off, sum);
  }
  return sum;
}

/* Updates V and M of a lag with a point, and returns V. It is at least HK_NOVELTY_FORGET times what it was, rounded: the square
 * that is added to that is not negative, and a single rounding keeps the order of numbers. */
HK_INLINE hk_real hk_novelty_lag_step(hk_real *variance, hk_real *mean, hk_real off)
{
  const hk_real keep = HK_NOVELTY_FORGET, weight = (hk_real)(1 - (double)HK_NOVELTY_FORGET);
  const hk_real away = off - *mean;
  *mean = hk_novelty_fused(weight, away, *mean);
  return *variance = hk_novelty_fused(away, away, keep * *variance);
}

/* The same for the lag at a place. */
HK_INLINE hk_real hk_novelty_lag_take(const struct hk_novelty_view *v, uint32_t place, hk_real off)
{
  return hk_novelty_lag_step(&v->variance[place], &v->mean[place], off);
}

HK_INLINE void hk_novelty_lags_reset(const struct hk_novelty_view *v)
{
  memset(v->variance, 0, hk_novelty_lags(v->detector) * sizeof *v->variance);
  memset(v->mean, 0, hk_novelty_lags(v->detector) * sizeof *v->mean);
}

/* Brings n lags along by a sample, compared with n others. */
typedef void hk_novelty_bring(hk_real *variance, hk_real *mean, const hk_real *others, uint32_t n, hk_real sample);

HK_INLINE void hk_novelty_bring_plain(hk_real *variance, hk_real *mean, const hk_real *others, uint32_t n, hk_real sample)
{
  for (uint32_t i = 0; i < n; i++)
    (void)hk_novelty_lag_step(&variance[i], &mean[i], sample - others[i]);
}

/* The smaller of two distances; NaN is ignored. */
HK_INLINE hk_real hk_novelty_nearer(hk_real a, hk_real b)
{
  return b < a ? b : a;
}

HK_INLINE void hk_novelty_pass_plain(const struct hk_novelty_view *v, const hk_real *ring, struct hk_novelty_point *point,
                                     uint32_t n)
{
  const struct hk_detector *d = v->detector;
  const uint32_t span = hk_detector_span(d), lags = hk_novelty_lags(d);
  const hk_real none = (hk_real)INFINITY;
  if (n > 0 && point->age == 0)
    hk_novelty_lags_reset(v);
  for (struct hk_novelty_point *p = point; p < point + n; p++) {
    const uint32_t values = hk_novelty_values(d, p), seen = hk_novelty_lags_seen(d, p), counted = hk_novelty_lags_counted(d, p);
    for (int c = 0; c < HK_NOVELTY_CHANNELS; c++)
      p->nearest[c] = none;
    p->lag = HK_NOVELTY_LAG_MIN;
    for (uint32_t i = 0; i < values; i++)
      p->nearest[HK_NOVELTY_VALUE] =
          hk_novelty_nearer(p->nearest[HK_NOVELTY_VALUE], hk_novelty_value_distance(ring, span, p, HK_NOVELTY_RECENT + i));
    for (uint32_t ago = 0; ago < p->rows; ago++)
      p->nearest[HK_NOVELTY_CONTEXT] =
          hk_novelty_nearer(p->nearest[HK_NOVELTY_CONTEXT], hk_novelty_row_distance(v, p, hk_novelty_row_place(d, p, ago)));
    for (uint32_t i = 0; i < seen; i++) {
      const hk_real off = p->value - hk_novelty_sample(ring, span, p, HK_NOVELTY_LAG_MIN + i);
      const hk_real variance = hk_novelty_lag_take(v, lags - 1 - i, off);
      if (i < counted && variance < p->nearest[HK_NOVELTY_SHAPE]) {
        p->nearest[HK_NOVELTY_SHAPE] = variance;
        p->lag = HK_NOVELTY_LAG_MIN + i;
      }
    }
    p->has[HK_NOVELTY_VALUE] = values > 0;
    p->has[HK_NOVELTY_CONTEXT] = p->rows > 0;
    p->has[HK_NOVELTY_SHAPE] = counted > 0;
  }
}

/* The distance of a channel, in spreads, 0..1e4; 1e4 where it is no number. */
HK_INLINE double hk_novelty_distance(const struct hk_novelty_point *p, uint32_t channel)
{
  const double nearest = (double)p->nearest[channel];
  const double distance = channel == HK_NOVELTY_VALUE     ? nearest * p->unit
                          : channel == HK_NOVELTY_CONTEXT ? sqrt(nearest)
                                                          : sqrt(nearest * HK_NOVELTY_LAG_SHARE) * p->unit;
  return distance < 1e4 ? distance : 1e4;
}

#endif
