/* Novelty: algorithm = novelty. The distance of the present from the sensor's whole resident past, and how rare such a distance
 * is among its earlier distances. MATHEMATICS.md has the definition.
 *
 * Three distances, in spreads of the sensor, each to the nearest resident item:
 *
 *   value     |v - v_j| over the last H values that are at least HK_NOVELTY_RECENT points old
 *   context   of three slow means to their rows; one row every HK_NOVELTY_ROW_EVERY points, at least HK_NOVELTY_ROW_AGE old
 *   shape     the exponentially weighted variance of v_t - v_{t-l}, over the lags l
 *
 * tail.h computes a score from each, alert.h decides, distances.h has the passes over the resident data. Written once, in hk_real
 * (see window.h), for every backend; a backend may have its own passes with the same bits (hk_novelty_pass).
 *
 * Points are processed in runs of up to HK_BATCH_PER_SENSOR: distances do not depend on decisions, so the values of a run are
 * appended first, then one pass over the resident past computes all distances, then each point is judged. A minimum does not
 * depend on the order, and each lag gets the points in sequence, so the results do not depend on the division into runs.
 *
 * Cannot fail. Thread: the current owner of the sensor; nothing here locks. */
#ifndef HK_NOVELTY_H
#define HK_NOVELTY_H

#include "cpu/backend.h"
#include "cpu/rules/window.h"

#define HK_NOVELTY_CHANNELS 3
enum hk_novelty_channel { HK_NOVELTY_VALUE, HK_NOVELTY_CONTEXT, HK_NOVELTY_SHAPE };

#define HK_NOVELTY_RECENT 10                       /* newer points are not compared */
#define HK_NOVELTY_MEANS 3                         /* slow means, over 16, 64 and 256 points */
#define HK_NOVELTY_FEATURES (1 + HK_NOVELTY_MEANS) /* the value first */
#define HK_NOVELTY_ROW_EVERY 4
#define HK_NOVELTY_ROW_AGE 200
#define HK_NOVELTY_PENDING (HK_NOVELTY_ROW_AGE / HK_NOVELTY_ROW_EVERY) /* rows not yet admitted */
#define HK_NOVELTY_LAG_MIN 100
#define HK_NOVELTY_LAG_MAX 5000
#define HK_NOVELTY_OVERLAP 100    /* minimum points of a lag before it counts */
#define HK_NOVELTY_FORGET 0.98f   /* weight of the past in the distance at each lag */
#define HK_NOVELTY_SPREAD 10000.0 /* time constant of mean and spread of a feature, points */
#define HK_NOVELTY_HOLE 256       /* more missing samples are a hole: see hk_novelty_begins */
#define HK_NOVELTY_PROBATION 150  /* points without a score at first, and without an alert after a hole */

/* Of a square in the variance of a lag. */
#define HK_NOVELTY_LAG_SHARE ((double)HK_NOVELTY_FORGET * (1 - (double)HK_NOVELTY_FORGET))
/* Limit of the distance of a value from the reference: V of a lag, up to (2 of it)^2 / HK_NOVELTY_LAG_SHARE, fits into float32.
 */
#define HK_NOVELTY_FAR 1e18

#if HK_NOVELTY_SPARE < HK_NOVELTY_RECENT + HK_BATCH_PER_SENSOR
#error "a run overwrites what its first point is compared with"
#endif

#define HK_NOVELTY_TOP 60 /* number of largest block maxima kept */

/* Largest block maxima of one distance, and the current block. */
struct hk_novelty_tail {
  float top[HK_NOVELTY_TOP]; /* the largest first */
  float most;                /* maximum of the current block */
  uint32_t n;                /* length of `top` */
  uint32_t blocks;           /* closed blocks, less the forgotten ones: tail.h */
  uint32_t length;           /* points of the current block */
};

/* What a list says of all distances. */
struct hk_novelty_fit {
  double usual;    /* u: the usual distance, including the floor; 0 before the first block */
  double common;   /* s0 */
  uint32_t fitted; /* number of maxima to which the tail is fitted; 0: too few blocks for a rating */
};

/* What the lists said last, until they change: so a point takes few logarithms. */
struct hk_novelty_memo {
  struct hk_novelty_fit fit[HK_NOVELTY_CHANNELS][2];
  double hill[HK_NOVELTY_CHANNELS][2]; /* h of S */
  uint32_t fits, hills;                /* which are known, a bit each: 2 channel + list */
  uint32_t unused[2];                  /* padding to a multiple of 16 bytes */
};

/* State of one sensor, before its columns. All zero: no points. */
struct hk_novelty {
  double feature[HK_NOVELTY_FEATURES]; /* exponential means of value - reference; the first is the value itself */
  double mean[HK_NOVELTY_FEATURES];    /* running mean and variance of each */
  double variance[HK_NOVELTY_FEATURES];
  double last;                                         /* value - reference of the last point */
  double quantum;                                      /* smallest nonzero step between two points; 0: none yet */
  uint32_t points;                                     /* accepted points, saturating */
  uint32_t age;                                        /* points accepted since the last hole, saturating */
  uint32_t phase;                                      /* points since the last row was kept, 0..HK_NOVELTY_ROW_EVERY - 1 */
  uint32_t rows, row;                                  /* number of admitted, resident rows, and the place of the next */
  uint32_t pending;                                    /* place of the oldest pending row */
  uint32_t nearest;                                    /* place of a lag that had the least variance lately; a hint */
  uint32_t unused[2];                                  /* padding to a multiple of 16 bytes */
  uint32_t seen[HK_NOVELTY_CHANNELS];                  /* number of distances of each channel, saturating */
  struct hk_novelty_tail tail[HK_NOVELTY_CHANNELS][2]; /* two lists: the blocks of the second begin half a block later */
  struct hk_novelty_memo memo;                         /* of the tails; CPU: a GPU rates without */
};

struct hk_novelty_view {
  struct hk_novelty *novelty;
  const struct hk_detector *detector;
  hk_real *row[HK_NOVELTY_MEANS];     /* columns of rows, hk_novelty_rows_room each, aligned to four numbers */
  hk_real *pending[HK_NOVELTY_MEANS]; /* HK_NOVELTY_PENDING each */
  hk_real *variance, *mean; /* V, which is the variance / HK_NOVELTY_LAG_SHARE, and M of each lag, hk_novelty_lags each; that of
                               lag l stands at place hk_novelty_lag_max - l, so that places and samples run the same way */
};

/* A point of a run. In: its numbers; out: its distances. */
struct hk_novelty_point {
  double off;                       /* value - reference, limited to HK_NOVELTY_FAR */
  hk_real value;                    /* sample in the ring */
  hk_real mean[HK_NOVELTY_MEANS];   /* slow means, */
  hk_real weight[HK_NOVELTY_MEANS]; /* and 1 / their spreads */
  double spread[HK_NOVELTY_FEATURES];
  double unit;                          /* 1 / the value's spread */
  double quantum;                       /* smallest step of the sensor so far, including this point's; 0: none yet */
  int64_t time;                         /* ns */
  int64_t missing;                      /* number of missing samples before it */
  uint32_t at;                          /* its place in the ring */
  uint32_t before;                      /* resident samples before it, at most the ring's room less 1 */
  uint32_t rows, row;                   /* number of rows to compare with, and the place after the newest of them */
  uint32_t phase;                       /* points since the newest of these rows was admitted */
  uint32_t age;                         /* points between the last hole and this point */
  hk_real nearest[HK_NOVELTY_CHANNELS]; /* least |v - v_j|; least square of the context's distance; least V. Where `has` */
  bool has[HK_NOVELTY_CHANNELS];
  uint32_t lag; /* the lag of the least variance; of several, the shortest */
};

/* Whether only the distance of the value counts: then there are no rows and no lags. */
HK_INLINE bool hk_novelty_value_alone(const struct hk_detector *d)
{
  return d->channels == HK_CHANNELS_VALUE;
}

/* Number of features that are computed. */
HK_INLINE uint32_t hk_novelty_features(const struct hk_detector *d)
{
  return hk_novelty_value_alone(d) ? 1 : HK_NOVELTY_FEATURES;
}

/* H. */
HK_INLINE uint32_t hk_novelty_resident(const struct hk_detector *d)
{
  return d->resident;
}

/* Room of a column: a multiple of four numbers, so that vectors of four are aligned. */
HK_INLINE uint32_t hk_novelty_column(uint32_t n)
{
  return (n + 3) & ~3u;
}

/* Maximum number of rows to compare with; and room for them and the rows that a run admits. */
HK_INLINE uint32_t hk_novelty_rows_most(const struct hk_detector *d)
{
  return hk_novelty_value_alone(d) ? 0 : d->resident / HK_NOVELTY_ROW_EVERY;
}

HK_INLINE uint32_t hk_novelty_rows_room(const struct hk_detector *d)
{
  const uint32_t most = hk_novelty_rows_most(d);
  return most > 0 ? hk_novelty_column(most + HK_BATCH_PER_SENSOR / HK_NOVELTY_ROW_EVERY) : 0;
}

/* The longest lag; with the value alone the age of the newest value that is not compared, as if lags ended there. */
HK_INLINE uint32_t hk_novelty_lag_max(const struct hk_detector *d)
{
  if (hk_novelty_value_alone(d))
    return HK_NOVELTY_RECENT - 1;
  return d->resident / 2 < HK_NOVELTY_LAG_MAX ? d->resident / 2 : HK_NOVELTY_LAG_MAX;
}

HK_INLINE uint32_t hk_novelty_lags(const struct hk_detector *d)
{
  return hk_novelty_value_alone(d) ? 0 : hk_novelty_lag_max(d) - HK_NOVELTY_LAG_MIN + 1;
}

/* Bytes after the ring, with numbers of `size` bytes. */
HK_INLINE size_t hk_novelty_bytes(const struct hk_detector *d, size_t size)
{
  return sizeof(struct hk_novelty) +
         (HK_NOVELTY_MEANS * ((size_t)hk_novelty_rows_room(d) + hk_novelty_column(HK_NOVELTY_PENDING)) +
          2 * (size_t)hk_novelty_column(hk_novelty_lags(d))) *
             size;
}

/* The view of `memory`: hk_novelty_bytes, aligned for a double; on a GPU to 16 bytes. */
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
  v.variance = at;
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

/* Points in mean `feature` - 1; 1 for feature 0, the value. */
HK_INLINE uint32_t hk_novelty_reach(uint32_t feature)
{
  return feature == 0 ? 1 : feature == 1 ? 16 : feature == 2 ? 64 : 256;
}

/* A point is processed in three steps: hk_novelty_accept, which decides whether it counts; hk_novelty_feature for each feature,
 * in any order or in parallel; hk_novelty_append. */

/* Whether means and lags begin anew after `missing` samples; updates the window's memory of holes. They do after a hole, but not
 * where holes are usual: after HK_HOLES_MANY of them, each fewer than HK_HOLE_MEMORY probations of points after the one before,
 * samples count and not their times, until so many points came without one. So at most one point in HK_HOLE_MEMORY is kept from
 * alerts by holes, in the long run. */
HK_INLINE bool hk_novelty_begins(struct hk_window *w, int64_t missing)
{
  if (missing <= HK_NOVELTY_HOLE) {
    w->holed -= w->holed > 0;
    w->holes = w->holed > 0 ? w->holes : 0;
    return false;
  }
  w->holes += w->holes < HK_HOLES_MANY;
  w->holed = HK_HOLE_MEMORY * HK_NOVELTY_PROBATION;
  return w->holes < HK_HOLES_MANY;
}

/* Rules 1 to 3 of window.h, but gaps are not filled. Before a point that makes the sensor begin anew (w->anew) is accepted,
 * earlier points must have been judged. Returns its state, HK_STATE_OK if it counts; then *p has its numbers from the window. */
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
  if (hk_novelty_begins(w, p->missing))
    s->age = 0;
  if (w->holes == HK_HOLES_MANY)
    p->missing = 0;
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

/* Updates feature k. For a mean, a row is kept every HK_NOVELTY_ROW_EVERY points, and admitted when it is HK_NOVELTY_ROW_AGE
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

/* Puts the sample into the ring (NULL: the caller does, at the place w->head) and counts the point. */
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
  if (ring)
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

/* All three steps; ring: as above. *p is set only if the step's state is warming, ok or gap. */
HK_INLINE struct hk_step hk_novelty_take(const struct hk_novelty_view *v, struct hk_window *w, hk_real *ring, int64_t time,
                                         double value, int64_t arrival, struct hk_novelty_point *p)
{
  struct hk_step step = { hk_novelty_accept(v, w, time, value, arrival, p), 0, 0 };
  if (step.state != HK_STATE_OK)
    return step;
  for (uint32_t k = 0; k < hk_novelty_features(v->detector); k++)
    hk_novelty_feature(v, w, p, k);
  return hk_novelty_append(v, w, ring, p);
}

#endif
