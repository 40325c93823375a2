/* Focus: finds a change that travels along a line of sensors, such as the pressure wave of a leak in a pipe.
 *
 * A sensor at x_j has the change |x_j - p| / c after the place p where it began. The changes of all sensors near p, each looked
 * at with its own delay, are added, as a light-field camera refocuses by shifting and adding its views (cf. R. Ng et al., Light
 * Field Photography with a Hand-Held Plenoptic Camera, 2005). Noise adds up as the root of the number of sensors, the change as
 * the number itself; what all sensors have at once, or one sensor alone, is not brought into focus.
 *
 * With e_j(r) the mean of the newest `block` rows of sensor j up to row r less the mean of the block before, c_j the slow mean of
 * |e_j|, and M the greatest lag:
 *
 *   d_j(r) = e_j(r) / (1.2533 c_j + |e_j(r)| / HK_FOCUS_BOUND)       1.2533 = sqrt(pi / 2): the spread of normal values
 *   F(p, a, r) = | sum of d_j(r - (M - lag)) over the sensors j of p | / sqrt of their number,   lag = round(|x_j - p| / speed)
 *
 * a is an aim: one of the speeds and, if changes travel onward, a direction. Changes that travel outward are looked for in the
 * sensors within `reach` on both sides of p, with `flow` added to the speed upwards and subtracted downwards; those that travel
 * onward in the sensors above p, or below p. A sensor has `places` places, evenly within its stretch, which is nearer to it than
 * to other sensors; its strength in a row is the greatest F of these. F is not known with fewer than half of the sensors, or
 * fewer than 3.
 *
 * c is the plain mean of the first HK_FOCUS_SETTLE |e|, and then a mean with weight 1 - forget, in which each |e| is limited to
 * 5 c. A block with fewer than half of its rows has no mean.
 *
 * Blame. A change is seen weakly from other places, too: from p + s by the sensors beyond it, up to M rows earlier or later. So a
 * strength is the sensor's value only M rows later, and each sensor remembers its greatest strength of the last 2 M to 4 M rows:
 * one within reach whose is greater is to blame. A change that begins in row k has its greatest value in row k + hk_focus_delay.
 *
 * A change is found in the row in which a sensor has a value of at least `threshold`, the greatest that it remembers, and no
 * other is to blame: once, at its best place and time. In a row only the strongest is found. One sensor alone has at most
 * HK_FOCUS_BOUND / sqrt(HK_FOCUS_LEAST) = 4.6. The line has settled 2 * `period` rows after the last change.
 *
 * A row takes four passes. Within a pass sensors, or places, are independent and may be processed in any order by any number of
 * threads:
 *
 *   1 hk_focus_sense    by sensor  reads x                         writes past, change, error
 *   2 hk_focus_aim      by place   reads change of the sensors     writes strength, aimed
 *   3 hk_focus_gather   by sensor  reads strength of its places    writes held, peak, top, top_at
 *   4 hk_focus_judge    by sensor  reads top of those in reach     writes blamed, value
 *
 * Arithmetic, the same on every backend to the last bit: means in double, from the oldest row to the newest; all else in float,
 * each operation rounded separately, sums over sensors by their order on the line.
 *
 * Costs sensors * (2 block + places * aims * sensors in reach) operations a row. Thread: the owner's. */
#ifndef HK_FOCUS_H
#define HK_FOCUS_H

#include "cpu/detector.h"
#include "cpu/field/focus_keys.h"
#include "cpu/rules/severity.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HK_FOCUS_LAG_MAX 4095    /* rows */
#define HK_FOCUS_REACH_MAX 4096u /* sensors within reach of a place */
#define HK_FOCUS_SETTLE 96u
#define HK_FOCUS_LEAST 3u    /* sensors */
#define HK_FOCUS_AT_ONCE 16u /* rows: pass 1 may be so many rows ahead of the others */
#define HK_FOCUS_NONE UINT32_MAX
#define HK_FOCUS_SPREAD 1.2533141f
#define HK_FOCUS_BOUND 8.0f /* |d| is less */
#define HK_FOCUS_SEVERITY_AT 2.5
#define HK_FOCUS_SEVERITY_SLOPE 2.0

struct hk_focus_rule {
  struct hk_focus_keys keys;
  double interval; /* s, from row to row */
  float forget;
};

/* The sensors of a place for an aim: `n` from `first` on, with lags from `at` on, `step` apart. */
struct hk_focus_view {
  uint32_t first, n, at;
};

/* The sensors within reach of a sensor. */
struct hk_focus_near {
  uint32_t first, end;
};

/* What a sensor remembers: its greatest strengths in this period of `period` rows and in the one before, and where they were. */
struct hk_focus_peak {
  float now, before;
  uint32_t now_at, before_at; /* place * aims + aim; HK_FOCUS_NONE: none */
};

/* Columns of a row, all written anew by it. */
struct hk_focus_now {
  float *strength;  /* by place: the greatest F; NaN: none */
  uint32_t *aimed;  /* by place: its aim */
  float *top;       /* by sensor: the greatest remembered value */
  uint32_t *top_at; /* and where it was, as in its peak */
  float *value;     /* by sensor: its strength M rows before; NaN: none */
  uint32_t *blamed; /* by sensor: the sensor that is to blame; HK_FOCUS_NONE: none */
};

/* Tables of a line, immutable, and columns of its state, in the memory of the host or of a device. Sensors are numbered by their
 * order on the line, places upwards. Rings have a row of `wide` numbers after the other, by sensor. */
struct hk_focus {
  uint32_t n, places; /* sensors, and places of each */
  uint32_t aims;
  uint32_t block, period; /* rows */
  uint32_t keep;          /* M, rows */
  uint32_t room, past;    /* rows of the rings: of `change` and `held`, and of `sample`; powers of 2 */
  uint32_t wide, step;    /* numbers in a row of a ring; distance of a view's lags */
  float slowly, threshold;
  bool any;                         /* there was a row: */
  int64_t row;                      /* the last one */
  const struct hk_focus_view *view; /* by aim and place */
  const uint16_t *lag;
  const struct hk_focus_near *near;
  double *sample; /* ring of values, NaN: none */
  float *change;  /* ring of d, NaN: none */
  float *held;    /* ring of strengths, NaN: none */
  float *error;   /* c */
  uint32_t *errors;
  struct hk_focus_peak *peak;
  struct hk_focus_now now;
};

/* Rows from the beginning of a change to its greatest F. */
HK_INLINE uint32_t hk_focus_delay(const struct hk_focus *f)
{
  return 2 * f->keep + f->block - 1;
}

HK_INLINE float hk_focus_nothing(void)
{
  return (float)NAN;
}

/* The place in a ring of `rows` rows of a sensor's number. */
HK_INLINE size_t hk_focus_at(const struct hk_focus *f, uint32_t rows, int64_t row, uint32_t j)
{
  return ((uint64_t)row & (rows - 1)) * f->wide + j;
}

/* Mean of a sensor's `block` rows from `from` on; NaN: fewer than half of them have a value. */
HK_INLINE double hk_focus_mean(const struct hk_focus *f, int64_t from, uint32_t j)
{
  double sum = 0;
  uint32_t n = 0;
  for (uint32_t k = 0; k < f->block; k++) {
    const double x = f->sample[hk_focus_at(f, f->past, from + k, j)];
    sum += x == x ? x : 0;
    n += x == x;
  }
  return 2 * n >= f->block ? sum / n : (double)NAN;
}

/* Adds |e| to a sensor's mean c. */
HK_INLINE void hk_focus_learn(const struct hk_focus *f, uint32_t j, float size)
{
  const float c = f->error[j], n = (float)(f->errors[j] += f->errors[j] < UINT32_MAX), first = 1 / n;
  const bool settled = f->errors[j] > HK_FOCUS_SETTLE;
  const float e = settled && size > 5 * c ? 5 * c : size;
  f->error[j] = c + (e - c) * (settled && first < f->slowly ? f->slowly : first);
}

/* Pass 1, with the value of a row, NaN: none. Rows between the last one and `row` had no values. */
HK_INLINE void hk_focus_sense(const struct hk_focus *f, int64_t row, double x, uint32_t j)
{
  const uint32_t most = f->room > f->past ? f->room : f->past;
  int64_t missed = f->any ? f->row + 1 : row;
  for (missed = row - missed > most ? row - most : missed; missed < row; missed++) {
    f->sample[hk_focus_at(f, f->past, missed, j)] = (double)NAN;
    f->change[hk_focus_at(f, f->room, missed, j)] = f->held[hk_focus_at(f, f->room, missed, j)] = hk_focus_nothing();
  }
  f->sample[hk_focus_at(f, f->past, row, j)] = x;
  const float e = (float)(hk_focus_mean(f, row - f->block + 1, j) - hk_focus_mean(f, row - 2 * (int64_t)f->block + 1, j));
  const float spread = HK_FOCUS_SPREAD * f->error[j];
  const bool known = e == e && f->errors[j] >= HK_FOCUS_SETTLE && spread > 0;
  f->change[hk_focus_at(f, f->room, row, j)] = known ? e / (spread + fabsf(e) / HK_FOCUS_BOUND) : hk_focus_nothing();
  if (e == e)
    hk_focus_learn(f, j, fabsf(e));
}

/* F of a place and an aim; NaN: not known. */
HK_INLINE float hk_focus_sum(const struct hk_focus *f, int64_t row, const struct hk_focus_view *view)
{
  const int64_t from = row - f->keep;
  const uint16_t *lag = f->lag + view->at;
  float sum = 0;
  uint32_t n = 0;
  for (uint32_t k = 0; k < view->n; k++) {
    const float d = f->change[hk_focus_at(f, f->room, from + lag[(size_t)k * f->step], view->first + k)];
    sum += d == d ? d : 0;
    n += d == d;
  }
  return n >= HK_FOCUS_LEAST && 2 * n >= view->n ? fabsf(sum) / sqrtf((float)n) : hk_focus_nothing();
}

/* Pass 2. */
HK_INLINE void hk_focus_aim(const struct hk_focus *f, int64_t row, uint32_t place)
{
  const uint32_t all = f->n * f->places;
  float best = hk_focus_nothing();
  uint32_t aimed = 0;
  for (uint32_t a = 0; a < f->aims; a++) {
    const float strength = hk_focus_sum(f, row, &f->view[(size_t)a * all + place]);
    if (strength == strength && !(strength <= best)) {
      best = strength;
      aimed = a;
    }
  }
  f->now.strength[place] = best;
  f->now.aimed[place] = aimed;
}

/* Number of the period of a row. */
HK_INLINE int64_t hk_focus_period(const struct hk_focus *f, int64_t row)
{
  const int64_t rows = f->period;
  return row / rows - (row % rows < 0);
}

/* Pass 3. */
HK_INLINE void hk_focus_gather(const struct hk_focus *f, int64_t row, uint32_t j)
{
  const int64_t periods = f->any ? hk_focus_period(f, row) - hk_focus_period(f, f->row) : 0;
  const struct hk_focus_peak none = { 0, 0, HK_FOCUS_NONE, HK_FOCUS_NONE };
  struct hk_focus_peak peak = periods > 1 ? none : f->peak[j];
  float best = hk_focus_nothing();
  if (periods == 1) {
    peak.before = peak.now;
    peak.before_at = peak.now_at;
    peak.now = 0;
    peak.now_at = HK_FOCUS_NONE;
  }
  for (uint32_t p = j * f->places; p < (j + 1) * f->places; p++) {
    const float strength = f->now.strength[p];
    if (strength != strength || strength <= best)
      continue;
    best = strength;
    if (strength > peak.now) {
      peak.now = strength;
      peak.now_at = p * f->aims + f->now.aimed[p];
    }
  }
  const bool now = peak.now > peak.before;
  f->peak[j] = peak;
  f->now.top[j] = now ? peak.now : peak.before;
  f->now.top_at[j] = now ? peak.now_at : peak.before_at;
  f->held[hk_focus_at(f, f->room, row, j)] = best;
}

/* Pass 4. */
HK_INLINE void hk_focus_judge(const struct hk_focus *f, int64_t row, uint32_t j)
{
  const struct hk_focus_near near = f->near[j];
  float top = f->now.top[j];
  uint32_t blamed = HK_FOCUS_NONE;
  for (uint32_t k = near.first; k < near.end; k++) {
    const float other = f->now.top[k];
    if (other > top || (other == top && other > 0 && k < j && blamed == HK_FOCUS_NONE)) {
      top = other;
      blamed = k;
    }
  }
  f->now.blamed[j] = blamed;
  f->now.value[j] = f->held[hk_focus_at(f, f->room, row - f->keep, j)];
}

/* Severity of a change by its strength in thresholds, as severity.h has it. It is a warning at the threshold, because the user
 * set that. Independent noise reaches the default one in less than one of 10^5 blocks; the slope was chosen, not measured. */
HK_INLINE float hk_focus_severity(float margin)
{
  return (float)fmin(HK_FOCUS_SEVERITY_AT + HK_FOCUS_SEVERITY_SLOPE * log10(fmax((double)margin, 1.0)), HK_SEVERITY_MEASURED);
}

/* Whether a sensor has found a change in the row, after pass 4. */
HK_INLINE bool hk_focus_finds(const struct hk_focus *f, int64_t row, uint32_t j)
{
  const float value = f->now.value[j], last = f->held[hk_focus_at(f, f->room, row - f->keep - 1, j)];
  return value >= f->threshold && f->now.blamed[j] == HK_FOCUS_NONE && value == f->now.top[j] && !(last >= value);
}

/* --- focus.c: a line on the host ------------------------------------------------------------------------------------------ */

/* What a row has found. */
struct hk_focus_found {
  bool changed, settled; /* at most one of them */
  float strongest;       /* the greatest value of all sensors; NaN: none has one */
  uint32_t sensor;       /* changed: where, from here on */
  double position;       /* of the place */
  double speed;          /* negative: downwards; of a change that travels outward positive */
};

/* A line: tables and columns in the memory of the host. */
struct hk_focus_line {
  struct hk_focus f;
  struct hk_focus_rule rule;
  uint32_t *rank; /* by node: the sensor, by its order on the line */
  uint32_t *node; /* by sensor */
  double *x;      /* by sensor: its position, ascending */
  size_t lags;    /* number of lags in the table */
  bool stands;    /* it has not settled since the change that was found in row `since` */
  int64_t since;
  struct hk_focus_found found; /* in the last row */
  uint32_t mark;               /* hash of positions and rule */
};

/* Makes a line of n sensors (nodes) with these positions. Returns 0 and *out; -EINVAL: too few or too many sensors, or lags; or
 * -ENOMEM; with a message. */
int hk_focus_new(struct hk_focus_line **out, const struct hk_focus_rule *rule, uint32_t n, const double *position, char *error,
                 size_t size);
void hk_focus_free(struct hk_focus_line *line); /* NULL is allowed */
/* Bytes of a line. */
uint64_t hk_focus_bytes(const struct hk_focus_line *line);
/* Position of a place, and speed of an aim, negative: downwards. */
double hk_focus_position(const struct hk_focus_line *line, uint32_t place);
double hk_focus_speed(const struct hk_focus_line *line, uint32_t aim);

/* Processes a row, later than the last one: x by sensor. The result is line->found, and value and blamed of line->f. */
void hk_focus_row(struct hk_focus_line *line, int64_t row, const double *x);
/* What the passes of a row have found: the greatest value, NaN: none; the sensor with the greatest value of those that find a
 * change, of equal ones the lowest, HK_FOCUS_NONE: none; and its top_at. */
struct hk_focus_find {
  float strongest;
  uint32_t sensor, at;
};
/* Sets line->found from what the passes of a row have found. */
void hk_focus_conclude(struct hk_focus_line *line, int64_t row, const struct hk_focus_find *find);

/* The sensor whose stretch a position is in. */
uint32_t hk_focus_nearest(const struct hk_focus_line *line, double position);

/* Writes the state to memory aligned to 8, hk_focus_state_size bytes, a multiple of 8. hk_focus_read: into a new line. Returns 0,
 * -EINVAL: it is the state of another line or rule; or -EBADMSG: it is not valid. FORMAT.md has the layout. */
size_t hk_focus_state_size(const struct hk_focus_line *line);
void hk_focus_write(const struct hk_focus_line *line, void *state);
int hk_focus_read(struct hk_focus_line *line, const void *state, size_t size);

#ifdef __cplusplus
}
#endif
#endif
