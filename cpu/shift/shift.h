/* Level shifts and short events: algorithm = shift. MATHEMATICS.md has the definition.
 *
 * Two adjacent spans of w samples, each kept sorted, are compared by ten quantiles; their difference, smoothed over a span, is
 * compared with its own last 400 values. A peak far above them is an event. The window (window.h) takes a point; then
 * hk_shift_take updates the spans and scores, and hk_shift_decide (alert.h) raises and clears. Written once, in hk_real (see
 * window.h), for every backend, to be computed by one thread. Cannot fail.
 *
 * Thread: the current owner of the sensor; nothing here locks. */
#ifndef HK_SHIFT_H
#define HK_SHIFT_H

#include "cpu/rules/window.h"

#define HK_SHIFT_QUANTILES 10
#define HK_SHIFT_HISTORY 400 /* values that the newest is held against, */
#define HK_SHIFT_LEAST 200   /* and with how many it begins */
#define HK_SHIFT_FLOOR 0.02  /* least spread of these, in running spreads of the samples */
#define HK_SHIFT_UNIT 5      /* spreads above the median that score 1/2 */

/* State of one sensor, before its columns. All zero: no points. */
struct hk_shift {
  uint32_t late, early;   /* samples in the newest span, and in the previous one */
  uint32_t raws, raw;     /* number of differences kept, and the place of the next */
  uint32_t values, value; /* number of values kept, and the place of the next */
  float last;             /* spreads above the median at the previous score; 0: no score */
  uint32_t unused;
};

struct hk_shift_view {
  struct hk_shift *shift;
  const struct hk_detector *detector;
  hk_real *late, *early; /* the spans' samples, sorted: w each */
  hk_real *raw;          /* differences, for the smoothing: hk_shift_smooth */
  hk_real *value;        /* smoothed differences, a ring: HK_SHIFT_HISTORY */
  hk_real *sorted;       /* the same, sorted */
};

/* Number of differences whose mean is a value: those of one span. */
HK_INLINE uint32_t hk_shift_smooth(const struct hk_detector *d)
{
  return (d->window + d->stride - 1) / d->stride;
}

/* Bytes after the ring, with numbers of `size` bytes. */
HK_INLINE size_t hk_shift_bytes(const struct hk_detector *d, size_t size)
{
  return sizeof(struct hk_shift) + (2 * (size_t)d->window + hk_shift_smooth(d) + 2 * HK_SHIFT_HISTORY) * size;
}

/* The view of `memory`: hk_shift_bytes, aligned for a number. */
HK_INLINE struct hk_shift_view hk_shift_view(void *memory, const struct hk_detector *d)
{
  struct hk_shift_view v;
  v.shift = (struct hk_shift *)memory;
  v.detector = d;
  v.late = (hk_real *)(v.shift + 1);
  v.early = v.late + d->window;
  v.raw = v.early + d->window;
  v.value = v.raw + hk_shift_smooth(d);
  v.sorted = v.value + HK_SHIFT_HISTORY;
  return v;
}

HK_INLINE void hk_shift_reset(const struct hk_shift_view *v)
{
  memset(v->shift, 0, sizeof *v->shift);
}

/* Number of elements of a sorted list that are below x. */
HK_INLINE uint32_t hk_sorted_below(const hk_real *list, uint32_t n, hk_real x)
{
  uint32_t low = 0, high = n;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (list[middle] < x)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Inserts x into a sorted list of n in place of its element `gone`; NULL: the list grows. */
HK_INLINE void hk_sorted_put(hk_real *list, uint32_t n, hk_real x, const hk_real *gone)
{
  uint32_t at = gone ? hk_sorted_below(list, n, *gone) : n;
  const uint32_t end = gone ? n : n + 1;
  for (; at + 1 < end && list[at + 1] < x; at++)
    list[at] = list[at + 1];
  for (; at > 0 && list[at - 1] > x; at--)
    list[at] = list[at - 1];
  list[at] = x;
}

/* Sample `age` samples before the newest. */
HK_INLINE hk_real hk_shift_sample(const struct hk_window *w, const hk_real *ring, uint32_t span, uint32_t age)
{
  return ring[(w->head + 2 * span - 1 - age) % span];
}

/* Updates the spans with the sample of an age; older samples must have been pushed before. */
HK_INLINE void hk_shift_push(const struct hk_shift_view *v, const struct hk_window *w, const hk_real *ring, uint32_t age)
{
  struct hk_shift *s = v->shift;
  const uint32_t n = v->detector->window, span = hk_detector_span(v->detector);
  const hk_real x = hk_shift_sample(w, ring, span, age);
  if (s->late < n) {
    hk_sorted_put(v->late, s->late++, x, NULL);
    return;
  }
  const hk_real passed = hk_shift_sample(w, ring, span, age + n);
  if (s->early < n) {
    hk_sorted_put(v->early, s->early++, passed, NULL);
  } else {
    const hk_real gone = hk_shift_sample(w, ring, span, age + 2 * n);
    hk_sorted_put(v->early, n, passed, &gone);
  }
  hk_sorted_put(v->late, n, x, &passed);
}

/* Rebuilds the spans from the samples. */
HK_INLINE void hk_shift_spans(const struct hk_shift_view *v, const struct hk_window *w, const hk_real *ring)
{
  const uint32_t reach = 2 * v->detector->window;
  v->shift->late = v->shift->early = 0;
  for (uint32_t age = w->count < reach ? w->count : reach; age-- > 0;)
    hk_shift_push(v, w, ring, age);
}

/* Quantile q of a sorted list, with linear interpolation. */
HK_INLINE double hk_sorted_quantile(const hk_real *list, uint32_t n, double q)
{
  const double place = q * (n - 1);
  const uint32_t at = (uint32_t)place < n - 1 ? (uint32_t)place : n - 2;
  return fma((double)list[at + 1] - (double)list[at], place - at, (double)list[at]);
}

/* The difference of the spans: the root-mean-square difference of their quantiles, in running spreads of the sensor. */
HK_INLINE double hk_shift_difference(const struct hk_shift_view *v, const struct hk_window *w)
{
  double sum = 0;
  for (uint32_t i = 0; i < HK_SHIFT_QUANTILES; i++) {
    const double q = 0.05 + 0.9 * i / (HK_SHIFT_QUANTILES - 1);
    const double off = hk_sorted_quantile(v->late, v->detector->window, q) - hk_sorted_quantile(v->early, v->detector->window, q);
    sum = fma(off, off, sum);
  }
  const double least = fmax(HK_ZERO_ABSOLUTE, HK_ZERO_RELATIVE * fabs(w->mean));
  return w->variance > least * least ? fmin(sqrt(sum / HK_SHIFT_QUANTILES / w->variance), 1e6) : 0;
}

/* How many spreads x is above the median of the kept values. The spread is that of the upper half, from its upper end, scaled to
 * the standard deviation of a normal distribution: the middle of such values is a poor predictor of their tail. */
HK_INLINE double hk_shift_above(const struct hk_shift_view *v, double x)
{
  const uint32_t n = v->shift->values;
  const double median = (double)v->sorted[n / 2], high = (double)v->sorted[(n - 1) * 19 / 20];
  return (x - median) / fmax((high - median) / 1.645, HK_SHIFT_FLOOR);
}

/* Adds the newest difference. Returns how many spreads the smoothed one is above the median of the earlier ones; NaN: not known
 * yet. */
HK_INLINE double hk_shift_value(const struct hk_shift_view *v, double difference)
{
  struct hk_shift *s = v->shift;
  const uint32_t smooth = hk_shift_smooth(v->detector);
  v->raw[s->raw] = (hk_real)difference;
  s->raw = s->raw + 1 < smooth ? s->raw + 1 : 0;
  s->raws += s->raws < smooth;
  if (s->raws < smooth)
    return NAN;
  double sum = 0;
  for (uint32_t i = 0, at = s->raw; i < smooth; i++, at = at + 1 < smooth ? at + 1 : 0) /* the oldest first */
    sum += (double)v->raw[at];
  const hk_real value = (hk_real)(sum / smooth);
  const double above = s->values >= HK_SHIFT_LEAST ? hk_shift_above(v, (double)value) : NAN;
  const bool full = s->values == HK_SHIFT_HISTORY;
  const hk_real gone = full ? v->value[s->value] : 0;
  hk_sorted_put(v->sorted, s->values, value, full ? &gone : NULL);
  v->value[s->value] = value;
  s->value = s->value + 1 < HK_SHIFT_HISTORY ? s->value + 1 : 0;
  s->values += !full;
  return above;
}

/* Processes a point: the window's rules, then the spans and, if a score is due, *above: as hk_shift_value. The sensor warms up
 * until that is known. */
HK_INLINE struct hk_step hk_shift_take(const struct hk_shift_view *v, struct hk_window *w, hk_real *ring, int64_t time,
                                       double value, int64_t arrival, bool alerted, double *above)
{
  const struct hk_detector *d = v->detector;
  const uint32_t head = w->head, span = hk_detector_span(d);
  const double reference = w->reference;
  *above = NAN;
  struct hk_step step = hk_window_take(w, ring, d, time, value, arrival, alerted);
  if (step.state == HK_STATE_LATE || step.state == HK_STATE_REJECTED)
    return step;
  if (w->count == 1)
    hk_shift_reset(v);
  if (w->count == 1 || w->reference != reference) /* all samples have changed */
    hk_shift_spans(v, w, ring);
  else
    for (uint32_t came = (w->head + span - head) % span; came-- > 0;)
      hk_shift_push(v, w, ring, came);
  if (step.score)
    *above = hk_shift_value(v, hk_shift_difference(v, w));
  if (v->shift->values <= HK_SHIFT_LEAST)
    step.state = HK_STATE_WARMING;
  step.score = !isnan(*above);
  return step;
}

/* The score of `above` spreads, [0, 1): 1/2 at one unit. */
HK_INLINE double hk_shift_score(double above)
{
  return above > 0 ? above / (above + HK_SHIFT_UNIT) : 0;
}

#endif
