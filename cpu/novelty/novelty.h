/* Novelty: algorithm = novelty. How far is the present from everything resident of the sensor's own past, and how rare is so
 * large a distance among the sensor's own past distances? MATHEMATICS.md has the definition.
 *
 * Three distances, in spreads of the sensor, each to the nearest of what is resident:
 *
 *   value     |v - v_j| over the last H values that are at least HK_NOVELTY_RECENT points old
 *   context   of three slow means, to their rows; a row every HK_NOVELTY_ROW_EVERY points, at least HK_NOVELTY_ROW_AGE old
 *   shape     the exponentially weighted variance of v_t - v_{t-l}, over the lags l
 *
 * tail.h makes a score of each, alert.h decides, distances.h holds the passes over what is resident. Written once, in hk_real
 * (see window.h), for every backend; a backend may bring passes of its own that give the same bits (struct hk_novelty_passes).
 *
 * Points go through in runs of up to HK_BATCH_PER_SENSOR: nothing that decides reaches back into a distance, so a run's values
 * are appended first, then one pass over the resident past serves them all, then each point is judged. A minimum does not depend
 * on its order and each lag sees the points one after the other, so the results do not depend on how points are cut into runs.
 *
 * Cannot fail. Thread: whoever owns the sensor at the time; nothing here locks. */
#ifndef HK_NOVELTY_H
#define HK_NOVELTY_H

#include "cpu/backend.h"
#include "cpu/rules/window.h"

#define HK_NOVELTY_CHANNELS 3
enum hk_novelty_channel { HK_NOVELTY_VALUE, HK_NOVELTY_CONTEXT, HK_NOVELTY_SHAPE };

#define HK_NOVELTY_RECENT 10                       /* points so new are not compared */
#define HK_NOVELTY_MEANS 3                         /* slow means, over 16, 64 and 256 points */
#define HK_NOVELTY_FEATURES (1 + HK_NOVELTY_MEANS) /* the value first */
#define HK_NOVELTY_ROW_EVERY 4
#define HK_NOVELTY_ROW_AGE 200
#define HK_NOVELTY_PENDING (HK_NOVELTY_ROW_AGE / HK_NOVELTY_ROW_EVERY) /* rows not yet admitted */
#define HK_NOVELTY_LAG_MIN 100
#define HK_NOVELTY_LAG_MAX 5000
#define HK_NOVELTY_OVERLAP 100    /* points that a lag must have seen before it counts */
#define HK_NOVELTY_FORGET 0.98f   /* weight of the past in the distance at each lag */
#define HK_NOVELTY_SPREAD 10000.0 /* points over which mean and spread of a feature forget */
#define HK_NOVELTY_FAR 1e18       /* farther from the reference a value counts as so far: its square must fit in float32 */
#define HK_NOVELTY_HOLE 256       /* missing samples after which means and lags begin anew */
#define HK_NOVELTY_PROBATION 150  /* points without a score at first, and without an alert after such a hole */

#if HK_NOVELTY_SPARE < HK_NOVELTY_RECENT + HK_BATCH_PER_SENSOR
#error "a run overwrites what its first point is compared with"
#endif

#define HK_NOVELTY_TOP 60 /* largest block maxima that are remembered */

/* Largest block maxima of one distance, and the block under way. */
struct hk_novelty_tail {
  float top[HK_NOVELTY_TOP]; /* the largest first */
  float most;                /* of the block under way */
  uint32_t n;                /* of `top` */
  uint32_t blocks;           /* closed, less those that are forgotten: tail.h */
  uint32_t length;           /* points of the block under way */
};

/* One sensor's numbers, before its columns. All zero is a sensor without points. */
struct hk_novelty {
  double feature[HK_NOVELTY_FEATURES]; /* exponential means of value - reference; the first is the value itself */
  double mean[HK_NOVELTY_FEATURES];    /* running mean and variance of each */
  double variance[HK_NOVELTY_FEATURES];
  double last;                                         /* value - reference of the last point */
  double quantum;                                      /* the least step between two points that was not 0; 0: none yet */
  uint32_t points;                                     /* accepted, saturating */
  uint32_t age;                                        /* accepted since the last long hole, saturating */
  uint32_t phase;                                      /* points since the last row was kept, 0..HK_NOVELTY_ROW_EVERY - 1 */
  uint32_t rows, row;                                  /* rows admitted and resident, and the place of the next */
  uint32_t pending;                                    /* place of the oldest row that waits to be admitted */
  uint32_t unused[3];                                  /* to a multiple of 16 bytes */
  uint32_t seen[HK_NOVELTY_CHANNELS];                  /* distances of each channel, saturating */
  struct hk_novelty_tail tail[HK_NOVELTY_CHANNELS][2]; /* two lists: the blocks of the second begin half a block later */
};

struct hk_novelty_view {
  struct hk_novelty *novelty;
  const struct hk_detector *detector;
  hk_real *row[HK_NOVELTY_MEANS];     /* columns of rows, hk_novelty_rows_room each. Each column begins at four numbers */
  hk_real *pending[HK_NOVELTY_MEANS]; /* HK_NOVELTY_PENDING each */
  hk_real *square, *mean; /* D and M of each lag, hk_novelty_lags each; that of lag l stands at place hk_novelty_lag_max - l, so
                             that places and samples run the same way */
};

/* A point of a run: in, its numbers; out, its distances. */
struct hk_novelty_point {
  double off;                       /* value - reference, not farther than HK_NOVELTY_FAR */
  hk_real value;                    /* sample, as the ring has it */
  hk_real mean[HK_NOVELTY_MEANS];   /* slow means, */
  hk_real weight[HK_NOVELTY_MEANS]; /* and one over their spreads */
  double spread[HK_NOVELTY_FEATURES];
  double unit;                          /* one over the value's spread */
  double quantum;                       /* least step of the sensor so far, this point's with it; 0: none yet */
  int64_t time;                         /* ns */
  int64_t missing;                      /* samples that are missing before it */
  uint32_t at;                          /* its place in the ring */
  uint32_t before;                      /* samples before it that are resident, at most the ring's room less 1 */
  uint32_t rows, row;                   /* rows that it is compared with, and the place behind the newest of them */
  uint32_t phase;                       /* points since the newest of them was admitted */
  uint32_t age;                         /* points since the last long hole, before it */
  hk_real nearest[HK_NOVELTY_CHANNELS]; /* least |v - v_j|; least square of the context's distance; least variance. Where `has` */
  bool has[HK_NOVELTY_CHANNELS];
  uint32_t lag; /* the lag of the least variance; of several, the shortest */
};

/* H. */
HK_INLINE uint32_t hk_novelty_resident(const struct hk_detector *d)
{
  return d->resident;
}

/* Columns have room for a multiple of four numbers, so that each begins where four can be read at once. */
HK_INLINE uint32_t hk_novelty_column(uint32_t n)
{
  return (n + 3) & ~3u;
}

/* Rows that a point is compared with, at most; and room for them and those that a run admits. */
HK_INLINE uint32_t hk_novelty_rows_most(const struct hk_detector *d)
{
  return d->resident / HK_NOVELTY_ROW_EVERY;
}

HK_INLINE uint32_t hk_novelty_rows_room(const struct hk_detector *d)
{
  return hk_novelty_column(hk_novelty_rows_most(d) + HK_BATCH_PER_SENSOR / HK_NOVELTY_ROW_EVERY);
}

HK_INLINE uint32_t hk_novelty_lag_max(const struct hk_detector *d)
{
  return d->resident / 2 < HK_NOVELTY_LAG_MAX ? d->resident / 2 : HK_NOVELTY_LAG_MAX;
}

HK_INLINE uint32_t hk_novelty_lags(const struct hk_detector *d)
{
  return hk_novelty_lag_max(d) - HK_NOVELTY_LAG_MIN + 1;
}

/* Bytes behind the ring with numbers of `size` bytes. */
HK_INLINE size_t hk_novelty_bytes(const struct hk_detector *d, size_t size)
{
  return sizeof(struct hk_novelty) +
         (HK_NOVELTY_MEANS * ((size_t)hk_novelty_rows_room(d) + hk_novelty_column(HK_NOVELTY_PENDING)) +
          2 * (size_t)hk_novelty_column(hk_novelty_lags(d))) *
             size;
}

/* What lies in `memory`: hk_novelty_bytes, aligned for a double; on a GPU to 16 bytes. */
HK_INLINE struct hk_novelty_view hk_novelty_view(void *memory, const struct hk_detector *d)
{
  struct hk_novelty_view v;
  v.novelty = (struct hk_novelty *)memory;
  v.detector = d;
  hk_real *at = (hk_real *)(v.novelty + 1);
  for (int k = 0; k < HK_NOVELTY_MEANS; k++, at += hk_novelty_rows_room(d))
    v.row[k] = at;
  for (int k = 0; k < HK_NOVELTY_MEANS; k++, at += hk_novelty_column(HK_NOVELTY_PENDING))
    v.pending[k] = at;
  v.square = at;
  v.mean = at + hk_novelty_column(hk_novelty_lags(d));
  return v;
}

HK_INLINE void hk_novelty_reset(const struct hk_novelty_view *v)
{
  memset(v->novelty, 0, sizeof *v->novelty);
}

HK_INLINE uint32_t hk_novelty_next(uint32_t n)
{
  return n < UINT32_MAX ? n + 1 : n;
}

/* Points over which mean k - 1 is taken; of feature 0, the value, 1. */
HK_INLINE uint32_t hk_novelty_reach(uint32_t feature)
{
  return feature == 0 ? 1 : feature == 1 ? 16 : feature == 2 ? 64 : 256;
}

/* A point goes through three steps: hk_novelty_accept, which says whether it counts; hk_novelty_feature for each feature, in any
 * order or side by side; hk_novelty_append. */

/* The rules 1 to 3 of window.h, of which a hole makes no samples. A point that makes the sensor begin anew (w->anew) is to come
 * when those before it were judged. Returns its state, HK_STATE_OK where it counts; *p has its
 * numbers of the window then. */
HK_INLINE uint8_t hk_novelty_accept(const struct hk_novelty_view *v, struct hk_window *w, int64_t time, double value,
                                    int64_t arrival, struct hk_novelty_point *p)
{
  struct hk_novelty *s = v->novelty;
  const struct hk_detector *d = v->detector;
  if (!(fabs(value - w->reference) <= HK_VALUE_MAX) || time < 0) {
    hk_window_refuse(w, d, value);
    return HK_STATE_REJECTED;
  }
  if (w->started && time <= w->last_time)
    return HK_STATE_LATE;
  p->missing = 0;
  if (w->started) {
    const int64_t missing = hk_window_missing(w, d, time);
    p->missing = missing > 0 ? missing : 0;
    if (d->interval <= 0)
      hk_interval_learn(w, time - w->last_time);
  }
  if (!w->started || w->anew) {
    hk_novelty_reset(v);
    w->reference = value;
    w->count = w->head = 0;
    w->started = 1;
    w->anew = 0;
  }
  if (p->missing > HK_NOVELTY_HOLE)
    s->age = 0;
  const uint32_t span = hk_detector_span(d);
  p->off = fmax(fmin(value - w->reference, HK_NOVELTY_FAR), -HK_NOVELTY_FAR);
  const double step = fabs(p->off - s->last);
  if (step > 0 && (s->quantum <= 0 || step < s->quantum))
    s->quantum = step;
  s->last = p->off;
  p->quantum = s->quantum;
  p->value = hk_sample_tag((hk_real)p->off, false);
  p->time = time;
  p->at = w->head;
  p->before = w->count < span ? w->count : span - 1;
  p->age = s->age;
  p->phase = s->phase;
  w->last_time = time;
  w->seen = arrival;
  return HK_STATE_OK;
}

/* Brings feature k along. Of a mean a row is kept every HK_NOVELTY_ROW_EVERY points, and admitted when it is HK_NOVELTY_ROW_AGE
 * points old. */
HK_INLINE void hk_novelty_feature(const struct hk_novelty_view *v, const struct hk_window *w, struct hk_novelty_point *p,
                                  uint32_t k)
{
  struct hk_novelty *s = v->novelty;
  const double reach = fmin((double)s->age + 1, (double)hk_novelty_reach(k)),
               slow = fmin((double)s->points + 1, HK_NOVELTY_SPREAD);
  const double feature = s->feature[k] + (p->off - s->feature[k]) / reach, off = feature - s->mean[k];
  const double mean = s->mean[k] + off / slow, variance = s->variance[k] + (off * (feature - mean) - s->variance[k]) / slow;
  s->feature[k] = feature;
  s->mean[k] = mean;
  s->variance[k] = variance;
  p->spread[k] = sqrt(fmax(variance, 0.0));
  const double weight = 1 / (p->spread[k] + 1e-9 * fabs(w->reference) + 1e-30);
  if (k == 0) {
    p->unit = weight;
    return;
  }
  p->mean[k - 1] = (hk_real)feature;
  p->weight[k - 1] = (hk_real)weight;
  if (s->phase == 0) {
    if (s->points >= HK_NOVELTY_ROW_AGE)
      v->row[k - 1][s->row] = v->pending[k - 1][s->pending];
    v->pending[k - 1][s->pending] = (hk_real)feature;
  }
}

/* Puts the sample into the ring and counts the point. */
HK_INLINE struct hk_step hk_novelty_append(const struct hk_novelty_view *v, struct hk_window *w, hk_real *ring,
                                           struct hk_novelty_point *p)
{
  struct hk_novelty *s = v->novelty;
  const uint32_t span = hk_detector_span(v->detector);
  if (s->phase == 0) {
    s->pending = s->pending + 1 < HK_NOVELTY_PENDING ? s->pending + 1 : 0;
    if (s->points >= HK_NOVELTY_ROW_AGE) {
      s->row = s->row + 1 < hk_novelty_rows_room(v->detector) ? s->row + 1 : 0;
      s->rows += s->rows < hk_novelty_rows_most(v->detector);
    }
  }
  s->phase = s->phase + 1 < HK_NOVELTY_ROW_EVERY ? s->phase + 1 : 0;
  p->rows = s->rows;
  p->row = s->row;
  ring[w->head] = p->value;
  w->head = w->head + 1 == span ? 0 : w->head + 1;
  w->count += w->count < span;
  s->points = hk_novelty_next(s->points);
  s->age = hk_novelty_next(s->age);
  struct hk_step step = { HK_STATE_OK, 1, 0 };
  if (s->points <= HK_NOVELTY_PROBATION) {
    step.state = HK_STATE_WARMING;
    step.score = 0;
  } else if (s->age <= HK_NOVELTY_PROBATION) {
    step.state = HK_STATE_GAP;
  }
  return step;
}

/* All three steps. Only where the step's state is warming, ok or gap has *p its numbers. */
HK_INLINE struct hk_step hk_novelty_take(const struct hk_novelty_view *v, struct hk_window *w, hk_real *ring, int64_t time,
                                         double value, int64_t arrival, struct hk_novelty_point *p)
{
  struct hk_step step = { hk_novelty_accept(v, w, time, value, arrival, p), 0, 0 };
  if (step.state != HK_STATE_OK)
    return step;
  for (uint32_t k = 0; k < HK_NOVELTY_FEATURES; k++)
    hk_novelty_feature(v, w, p, k);
  return hk_novelty_append(v, w, ring, p);
}

#endif
