/* Time to a limit: algorithm = limit. MATHEMATICS.md has the definition.
 *
 * Time is divided into blocks of window / 24, from 1970 on. The median of the samples of each block is kept; when a block ends,
 * the trend of the last 24 medians is computed: its significance by the test of Mann and Kendall (H. B. Mann, Econometrica 13,
 * 1945; M. G. Kendall, Rank Correlation Methods, 1948, for ties), its slope by the median of all pairwise slopes (H. Theil, 1950;
 * P. K. Sen, J. Am. Stat. Assoc. 63, 1968). If the trend leads to a limit, the time at which it reaches the limit follows.
 * alert.h decides.
 *
 * A block with less than a quarter of the samples that its length has room for is missing; with fewer than 18 of 24 blocks there
 * is no result. Of a block of more than HK_LIMIT_KEPT samples every 2nd, 4th and so on is kept: at least 16, equally spaced.
 *
 * If a block falls back from the farthest one by more than half of the growth by the trend, the window begins anew with it:
 * earlier blocks are forgotten. So a disk that was cleaned up, or a server that was restarted, is not judged by its former
 * trend.
 *
 * Written once, in hk_real (see window.h), for every backend, to be computed by one thread. The window's own rules of holes and
 * spans do not apply; its ring holds the newest samples, for display. Cannot fail.
 *
 * Thread: the current owner of the sensor; nothing here locks. */
#ifndef HK_LIMIT_H
#define HK_LIMIT_H

#include "cpu/rules/window.h"

#define HK_LIMIT_LEAST 18 /* minimum number of present blocks, of HK_LIMIT_BLOCKS */
#define HK_LIMIT_KEPT 32  /* samples kept of a block; even */
#define HK_LIMIT_SLOPES (HK_LIMIT_BLOCKS * (HK_LIMIT_BLOCKS - 1) / 2)

/* State of one sensor, before its columns. All zero: no points. Blocks are counted from 1970 on. */
struct hk_limit {
  int64_t block;    /* the current block */
  int64_t first;    /* the block with which the window began: the window is full HK_LIMIT_BLOCKS later */
  int64_t told;     /* ns: when the limit is reached, by the last event */
  double slope;     /* slope of the trend of the last check, per block; 0: no trend */
  uint32_t present; /* bit b % HK_LIMIT_BLOCKS: block b before the current one is not missing */
  uint32_t there;   /* number of present blocks */
  uint32_t came;    /* samples of the current block, saturating */
  uint32_t kept;    /* number of them in `sample` */
  uint32_t every;   /* every so many-th sample is kept: a power of two; 0 before the first sample */
  uint32_t under;   /* successive checks without a reason for an alert, saturating */
};

struct hk_limit_view {
  struct hk_limit *limit;
  const struct hk_detector *detector;
  hk_real *median; /* of block b at b % HK_LIMIT_BLOCKS; less the window's reference, like all that is kept */
  hk_real *sample; /* samples of the current block, in order of time: HK_LIMIT_KEPT */
};

/* The trend of the blocks. */
struct hk_limit_trend {
  double z;         /* z of Mann and Kendall: its sign is that of the trend */
  double slope;     /* per block, */
  double low, high; /* and the quartiles of the pairwise slopes */
  double level;     /* of the line where the last block ends */
  double spread;    /* of the medians about the line: 1.4826 times their median distance */
};

/* The outlook: where the trend leads. */
struct hk_limit_outlook {
  double eta;                        /* ns from the point until the limit is reached; infinity: the trend leads to no limit */
  double limit;                      /* the limit to which the trend leads */
  int64_t earliest, reached, latest; /* ns: when, by the steeper quartile, the slope, the gentler quartile; INT64_MAX: never */
};

/* Result of a point. */
struct hk_limit_check {
  bool closed; /* a block has ended; otherwise all else is invalid; trend and outlook also if the step has no score */
  bool beyond; /* the last block lies at or beyond a limit */
  struct hk_limit_trend trend;
  struct hk_limit_outlook outlook;
};

/* Nanoseconds of a block. */
HK_INLINE int64_t hk_limit_length(const struct hk_detector *d)
{
  return d->limit.window / HK_LIMIT_BLOCKS;
}

/* Bytes after the ring, with numbers of `size` bytes. */
HK_INLINE size_t hk_limit_bytes(size_t size)
{
  return sizeof(struct hk_limit) + (HK_LIMIT_BLOCKS + HK_LIMIT_KEPT) * size;
}

/* The view of `memory`: hk_limit_bytes, aligned for a double. */
HK_INLINE struct hk_limit_view hk_limit_view(void *memory, const struct hk_detector *d)
{
  struct hk_limit_view v;
  v.limit = (struct hk_limit *)memory;
  v.detector = d;
  v.median = (hk_real *)(v.limit + 1);
  v.sample = v.median + HK_LIMIT_BLOCKS;
  return v;
}

HK_INLINE void hk_limit_reset(const struct hk_limit_view *v)
{
  memset(v->limit, 0, sizeof *v->limit);
}

/* Sorts n numbers, n <= HK_LIMIT_SLOPES, by Shell's method with the gaps of M. Ciura, "Best increments for the average case of
 * Shellsort", 2001. */
HK_INLINE void hk_limit_sort(double *x, uint32_t n)
{
  for (uint32_t gap = 132; gap > 0; gap = gap > 57 ? 57 : gap > 23 ? 23 : gap > 10 ? 10 : gap > 4 ? 4 : gap > 1 ? 1 : 0) {
    for (uint32_t i = gap; i < n; i++) {
      const double moved = x[i];
      uint32_t at = i;
      for (; at >= gap && x[at - gap] > moved; at -= gap)
        x[at] = x[at - gap];
      x[at] = moved;
    }
  }
}

/* Quantile q of n sorted numbers, n > 0, with linear interpolation. */
HK_INLINE double hk_limit_quantile(const double *x, uint32_t n, double q)
{
  const double place = q * (n - 1);
  const uint32_t at = (uint32_t)place, next = at + 1 < n ? at + 1 : at;
  return fma(x[next] - x[at], place - at, x[at]);
}

/* The test statistic of n medians: the number of pairs whose later one is larger, less the number of pairs whose later one is
 * smaller, in standard deviations of this difference without a trend. */
HK_INLINE double hk_limit_z(const double *m, uint32_t n)
{
  int32_t score = 0, ties = 0;
  for (uint32_t i = 0; i < n; i++) {
    int32_t alike = 0;
    for (uint32_t j = 0; j < n; j++) {
      alike += m[j] == m[i];
      score += j > i ? (m[j] > m[i]) - (m[j] < m[i]) : 0;
    }
    ties += (alike - 1) * (2 * alike + 5);
  }
  const int32_t all = (int32_t)n, eighteen = all * (all - 1) * (2 * all + 5) - ties,
                less = score > 0   ? score - 1
                       : score < 0 ? score + 1
                                   : 0;
  return eighteen > 0 ? less / sqrt(eighteen / 18.0) : 0;
}

/* The trend of the present blocks, at least HK_LIMIT_LEAST. Places are 0, of the oldest block of the window, to HK_LIMIT_BLOCKS -
 * 1. */
HK_INLINE struct hk_limit_trend hk_limit_find(const struct hk_limit_view *v)
{
  const struct hk_limit *s = v->limit;
  double m[HK_LIMIT_BLOCKS], place[HK_LIMIT_BLOCKS], work[HK_LIMIT_SLOPES];
  uint32_t n = 0, slopes = 0;
  for (uint32_t i = 0; i < HK_LIMIT_BLOCKS; i++) {
    const uint32_t at = (uint32_t)((s->block + i) % HK_LIMIT_BLOCKS);
    if (s->present >> at & 1) {
      m[n] = (double)v->median[at];
      place[n++] = i;
    }
  }
  struct hk_limit_trend t;
  t.z = hk_limit_z(m, n);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = i + 1; j < n; j++)
      work[slopes++] = (m[j] - m[i]) / (place[j] - place[i]);
  hk_limit_sort(work, slopes);
  t.low = hk_limit_quantile(work, slopes, 0.25);
  t.slope = hk_limit_quantile(work, slopes, 0.5);
  t.high = hk_limit_quantile(work, slopes, 0.75);
  for (uint32_t i = 0; i < n; i++)
    work[i] = fma(-t.slope, place[i], m[i]);
  hk_limit_sort(work, n);
  const double begin = hk_limit_quantile(work, n, 0.5); /* value of the line at the middle of the oldest block */
  t.level = fma(t.slope, HK_LIMIT_BLOCKS - 0.5, begin);
  for (uint32_t i = 0; i < n; i++)
    work[i] = fabs(m[i] - fma(t.slope, place[i], begin));
  hk_limit_sort(work, n);
  t.spread = 1.4826 * hk_limit_quantile(work, n, 0.5);
  return t;
}

/* The time when `blocks` blocks will have passed since the current one began, at least `time`; INT64_MAX if out of range. */
HK_INLINE int64_t hk_limit_when(const struct hk_limit_view *v, double blocks, int64_t time)
{
  const int64_t length = hk_limit_length(v->detector), end = v->limit->block * length;
  const double ns = blocks * (double)length;
  if (!(ns < 9e18 - (double)end))
    return INT64_MAX;
  return end + (int64_t)ns > time ? end + (int64_t)ns : time;
}

/* Computes where a trend leads, at a time. */
HK_INLINE struct hk_limit_outlook hk_limit_look(const struct hk_limit_view *v, const struct hk_window *w,
                                                const struct hk_limit_trend *t, int64_t time)
{
  const struct hk_limit_rule *rule = &v->detector->limit;
  struct hk_limit_outlook o = { INFINITY, 0, INT64_MAX, INT64_MAX, INT64_MAX };
  const bool up = rule->has_upper && t->z > (double)rule->confidence && t->slope > 0;
  const bool down = rule->has_lower && -t->z > (double)rule->confidence && t->slope < 0;
  if (!up && !down)
    return o;
  const double level = t->level + w->reference, gentle = up ? t->low : -t->high;
  o.limit = up ? rule->upper : rule->lower;
  const double left = fmax(up ? o.limit - level : level - o.limit, 0.0);
  o.earliest = hk_limit_when(v, left / (up ? t->high : -t->low), time);
  o.reached = hk_limit_when(v, left / fabs(t->slope), time);
  o.latest = gentle > 0 ? hk_limit_when(v, left / gentle, time) : INT64_MAX;
  o.eta = o.reached < INT64_MAX ? (double)(o.reached - time) : INFINITY;
  return o;
}

/* Whether the median of the current block has fallen back by more than half of the growth by the trend of the last check. */
HK_INLINE bool hk_limit_fell(const struct hk_limit_view *v, double median)
{
  const struct hk_limit *s = v->limit;
  const double way = s->slope < 0 ? -1 : 1;
  uint32_t oldest = HK_LIMIT_BLOCKS, newest = 0;
  double farthest = -INFINITY;
  for (uint32_t i = 0; i < HK_LIMIT_BLOCKS; i++) {
    const uint32_t at = (uint32_t)((s->block + i) % HK_LIMIT_BLOCKS);
    if (!(s->present >> at & 1))
      continue;
    oldest = oldest < i ? oldest : i;
    newest = i;
    farthest = fmax(farthest, way * (double)v->median[at]);
  }
  return newest > oldest && farthest - way * median > 0.5 * fabs(s->slope) * (newest - oldest) && fabs(s->slope) > 0;
}

/* Ends the current block and begins another. Returns whether the window begins anew with the ended block. *median: of the ended
 * block; NaN: it is missing. */
HK_INLINE bool hk_limit_close(const struct hk_limit_view *v, const struct hk_window *w, int64_t block, double *median)
{
  struct hk_limit *s = v->limit;
  const int64_t interval = hk_window_interval(w, v->detector), passed = block - s->block;
  const uint32_t place = (uint32_t)(s->block % HK_LIMIT_BLOCKS);
  bool anew = false;
  *median = NAN;
  if (s->kept > 0 && 4.0 * s->came * (double)interval >= (double)hk_limit_length(v->detector) * (interval > 0)) {
    double sorted[HK_LIMIT_KEPT];
    for (uint32_t i = 0; i < s->kept; i++)
      sorted[i] = (double)v->sample[i];
    hk_limit_sort(sorted, s->kept);
    *median = hk_limit_quantile(sorted, s->kept, 0.5);
    anew = hk_limit_fell(v, *median);
  }
  if (anew) {
    s->present = 0;
    s->first = s->block - (HK_LIMIT_BLOCKS - HK_LIMIT_LEAST);
  }
  s->present &= ~(1u << place);
  if (!isnan(*median)) {
    v->median[place] = (hk_real)*median;
    s->present |= 1u << place;
  }
  for (int64_t i = 1; i < passed && i < HK_LIMIT_BLOCKS; i++)
    s->present &= ~(1u << (s->block + i) % HK_LIMIT_BLOCKS);
  if (passed > HK_LIMIT_BLOCKS)
    s->present = 0;
  s->there = 0;
  for (uint32_t i = 0; i < HK_LIMIT_BLOCKS; i++)
    s->there += s->present >> i & 1;
  s->block = block;
  s->came = s->kept = 0;
  s->every = 1;
  return anew;
}

/* Puts a sample into the current block. */
HK_INLINE void hk_limit_keep(const struct hk_limit_view *v, hk_real x)
{
  struct hk_limit *s = v->limit;
  if (s->came % s->every == 0) {
    if (s->kept == HK_LIMIT_KEPT) {
      for (uint32_t i = 0; i < HK_LIMIT_KEPT / 2; i++)
        v->sample[i] = v->sample[2 * i];
      s->kept = HK_LIMIT_KEPT / 2;
      s->every *= 2; /* `came` is a multiple of the new `every`: this sample is kept as well */
    }
    v->sample[s->kept++] = x;
  }
  s->came += s->came < UINT32_MAX;
}

/* Computes the trend after the end of a block. Returns whether there are enough blocks. */
HK_INLINE bool hk_limit_look_again(const struct hk_limit_view *v, const struct hk_window *w, int64_t time,
                                   struct hk_limit_check *check)
{
  struct hk_limit *s = v->limit;
  s->slope = 0;
  if (s->there < HK_LIMIT_LEAST || s->block - s->first < HK_LIMIT_BLOCKS)
    return false;
  check->trend = hk_limit_find(v);
  check->outlook = hk_limit_look(v, w, &check->trend, time);
  if (fabs(check->trend.z) > (double)v->detector->limit.confidence && check->trend.z * check->trend.slope > 0)
    s->slope = check->trend.slope;
  return true;
}

/* Whether a value lies at or beyond a limit. */
HK_INLINE bool hk_limit_beyond(const struct hk_limit_rule *rule, double value)
{
  return (rule->has_upper && value >= rule->upper) || (rule->has_lower && value <= rule->lower);
}

/* Processes a point: late and rejected ones as the window does; the others go into their block, and a score is due with the first
 * point after the end of one. The step is `restarted` if the window began anew. */
HK_INLINE struct hk_step hk_limit_take(const struct hk_limit_view *v, struct hk_window *w, hk_real *ring, int64_t time,
                                       double value, int64_t arrival, bool alerted, struct hk_limit_check *check)
{
  const struct hk_detector *d = v->detector;
  struct hk_limit *s = v->limit;
  struct hk_step step = { HK_STATE_REJECTED, 0, 0 };
  memset(check, 0, sizeof *check);
  check->outlook.eta = INFINITY;
  if (!(fabs(value - w->reference) <= HK_VALUE_MAX) || time < 0) {
    hk_window_refuse(w, d, value);
    return step;
  }
  if (w->started && time <= w->last_time) {
    step.state = HK_STATE_LATE;
    return step;
  }
  const int64_t block = time / hk_limit_length(d);
  if (w->started && d->interval <= 0)
    hk_interval_learn(w, time - w->last_time);
  if (!w->started || w->anew) {
    step.restarted = w->started;
    hk_limit_reset(v);
    w->reference = value;
    w->mean = w->variance = 0;
    w->count = w->head = w->filled = w->age = w->due = w->rebase = w->held = 0;
    w->started = 1;
    w->anew = 0;
    s->block = s->first = block;
    s->every = 1;
  }
  if (block > s->block) {
    double median;
    check->closed = true;
    step.restarted = hk_limit_close(v, w, block, &median);
    check->beyond = hk_limit_beyond(&d->limit, median + w->reference);
    step.score = hk_limit_look_again(v, w, time, check);
  }
  const double sample = value - w->reference;
  hk_limit_keep(v, (hk_real)(fabs(sample) < FLT_MIN ? 0 : sample));
  hk_window_push(w, ring, d, sample, false, alerted);
  w->last_time = time;
  w->seen = arrival;
  step.state = s->block - s->first < HK_LIMIT_BLOCKS ? HK_STATE_WARMING : s->there < HK_LIMIT_LEAST ? HK_STATE_GAP : HK_STATE_OK;
  return step;
}

/* The score of a check, [0, 1]: 1/2 if the limit is as far away as the horizon, 0 if the trend leads to no limit. */
HK_INLINE double hk_limit_score(const struct hk_detector *d, const struct hk_limit_outlook *o)
{
  return (double)d->limit.horizon / ((double)d->limit.horizon + o->eta);
}

#endif
