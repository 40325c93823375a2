/* The window of one sensor: the processing of a point before it is scored. Written once, for every backend.
 *
 * Inline functions that compile for the host (C) and for the device (CUDA). A backend stores samples as hk_real: float32
 * for the cpu and cuda backends; the reference backend defines HK_REAL as double before it includes this header.
 *
 * The rules, in the order of application to a point (time, value):
 *  1. not finite, or farther than 1e30 from the sensor's reference, or a time before 1970: rejected; changes nothing.
 *  2. time not after the last accepted one: late; changes nothing.
 *  3. `missing` samples are missing between the last point and this one (the distance in intervals, rounded, less one). None
 *     before the interval is known: given by the detector, or learned from HK_INTERVAL_LEARN spacings. 0 < missing <= max_fill:
 *     the gap is filled (hold or linear). More, a *hole*: the window and the baseline start anew, and the sensor warms up again;
 *     the learned interval is kept, and so is what alerts have learned. But the window continues over the hole if fewer than
 *     HK_HOLE_MEMORY spans of points came since the last such hole, or since the first point: so holes cost at most one score of
 *     20. After HK_HOLES_MANY successive holes, each less than a span of points after the previous one, the sensor is irregular:
 *     samples count, not their times, and nothing is filled, until HK_HOLE_MEMORY spans of points came without a hole.
 *  4. the sample is put into the ring as value - reference; the slow baseline is updated, unless held.
 *  5. until the ring holds a span: warming. Then a score is due every `stride` samples, on a point that arrived, never on a
 *     filled one. gap (scored, but no alert): more than 10 % of the span is filled; or, for ika, svd and shift, it contains a
 *     hole and the sensor is not irregular; or, for ika and svd, the sensor is irregular and the threshold is fixed.
 *
 * Ring: span samples; `head` is the place of the next one, and so of the oldest one when the ring is full. The lowest bit of a
 * sample's mantissa marks it as filled in: this counts the filled share exactly without more memory, and costs one unit in the
 * last place.
 *
 * Thread: the current owner of the sensor; nothing here locks. */
#ifndef HK_WINDOW_H
#define HK_WINDOW_H

#include "cpu/detector.h"
#include "cpu/rules/event.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifndef HK_REAL
#define HK_REAL float
#define HK_REAL_BITS uint32_t
#endif
typedef HK_REAL hk_real;
typedef HK_REAL_BITS hk_real_bits; /* unsigned integer of the same size */

#define HK_VALUE_MAX 1e30         /* maximum distance of a value from the reference */
#define HK_INTERVAL_LEARN 8       /* spacings seen before a learned interval is used */
#define HK_HOLE_MEMORY 20         /* spans of points for which a hole longer than max_fill is remembered */
#define HK_HOLES_MANY 3           /* this many holes, close together, make a sensor irregular */
#define HK_ZERO_ABSOLUTE 0x1p-100 /* a centred span below this counts as constant: float32 has no digits left */
#define HK_ZERO_RELATIVE 0x1p-20  /* and so does one within the rounding noise of the ring's samples */

/* State of one sensor's window, besides its ring. All zero except `seed`: a sensor without points. */
struct hk_window {
  double reference;  /* subtracted from every value before it becomes a sample; 0 before the first */
  double mean;       /* slow baseline: exponential mean of the samples (value - reference) */
  double variance;   /* exponential variance about it */
  int64_t last_time; /* ns, of the last accepted point */
  int64_t interval;  /* ns, learned spacing; 0 = not learned */
  int64_t seen; /* ns on the arrival clock: when the last point was accepted; before the first point: when a sweep first found the
                   sensor, 0 = not yet */
  uint64_t seed;     /* FNV-1a-64 of the sensor's name */
  uint32_t count;    /* samples in the ring, 0..span */
  uint32_t head;     /* place of the next sample, 0..span-1 */
  uint32_t filled;   /* samples in the ring that were filled in */
  uint32_t spacings; /* number of spacings learned from, saturating */
  uint32_t age;      /* number of samples in the baseline, saturating */
  uint32_t due;      /* samples since the last score */
  uint32_t rebase;   /* samples since the reference was last checked */
  uint32_t held;     /* samples for which the baseline has been held in the current alert */
  uint8_t started;   /* 1 once a point was accepted */
  uint8_t stale;     /* 1 while the sensor is reported silent (hk_window_sweep) */
  uint8_t holes;     /* holes close together; HK_HOLES_MANY means this many or more, the sensor is irregular: see rule 3 */
  uint8_t anew;      /* 1: the window starts anew with the next point: see hk_anew */
  uint32_t holed;    /* points for which the last hole, or the sensor's first point, is still remembered */
};

/* A value that no sensor can have: with rate = auto it makes the window start anew with the next point, and is itself rejected.
 * Only rate.h produces it: in the values of peers it has been replaced before. */
#define HK_ANEW_BITS UINT64_C(0x7ff8000000616e77)
HK_INLINE bool hk_anew(double value)
{
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits == HK_ANEW_BITS;
}

/* Result of a point. */
struct hk_step {
  uint8_t state;     /* enum hk_state */
  uint8_t score;     /* 1: a score is due now */
  uint8_t restarted; /* 1: the window started anew before this point: reset the feedback vector, clear an alert */
};

HK_INLINE hk_real hk_sample_tag(hk_real x, bool filled)
{
  hk_real_bits bits;
  memcpy(&bits, &x, sizeof bits);
  bits = (bits & ~(hk_real_bits)1) | (hk_real_bits)filled;
  memcpy(&x, &bits, sizeof bits);
  return x;
}

HK_INLINE bool hk_sample_filled(hk_real x)
{
  hk_real_bits bits;
  memcpy(&bits, &x, sizeof bits);
  return bits & 1;
}

/* Learned interval: follows the median of the spacings, by at most a factor of 2 for each spacing at first, by 1/64 later, so
 * that one hole hardly moves it. */
HK_INLINE void hk_interval_learn(struct hk_window *w, int64_t spacing)
{
  if (w->spacings == 0) {
    w->interval = spacing;
  } else {
    uint32_t shift = w->spacings / 4 < 6 ? w->spacings / 4 : 6;
    int64_t up = w->interval >> shift, down = shift == 0 ? w->interval / 2 : up;
    int64_t step = spacing - w->interval;
    w->interval += step > up ? up : step < -down ? -down : step;
    if (w->interval < 1)
      w->interval = 1;
  }
  if (w->spacings < UINT32_MAX)
    w->spacings++;
}

/* The interval in force, ns; 0 while it is not known. */
HK_INLINE int64_t hk_window_interval(const struct hk_window *w, const struct hk_detector *d)
{
  return d->interval > 0 ? d->interval : w->spacings >= HK_INTERVAL_LEARN ? w->interval : 0;
}

/* Number of missing samples between the last accepted point and one at `time`, by rule 3; <= 0 if there are none, and before the
 * interval is known. */
HK_INLINE int64_t hk_window_missing(const struct hk_window *w, const struct hk_detector *d, int64_t time)
{
  const int64_t spacing = time - w->last_time, interval = hk_window_interval(w, d);
  if (interval <= 0)
    return 0;
  const int64_t whole = spacing / interval, rest = spacing % interval;
  return whole + (rest >= interval - rest) - 1;
}

/* Appends one sample (value - reference) and updates the baseline. */
HK_INLINE void hk_window_push(struct hk_window *w, hk_real *ring, const struct hk_detector *d, double sample, bool filled,
                              bool alerted)
{
  const uint32_t span = hk_detector_span(d);
  if (fabs(sample) < FLT_MIN)
    sample = 0; /* the same in every backend: float32 has no full precision below FLT_MIN */
  const hk_real x = hk_sample_tag((hk_real)sample, filled);
  if (w->count == span)
    w->filled -= hk_sample_filled(ring[w->head]);
  else
    w->count++;
  w->filled += filled;
  ring[w->head] = x;
  w->head = w->head + 1 == span ? 0 : w->head + 1;
  w->due++;
  w->rebase++;

  /* The baseline is held while an alert is raised, two spans at most. */
  if (alerted && w->held < 2 * span) {
    w->held++;
    return;
  }
  if (!alerted)
    w->held = 0;
  const uint32_t slow = d->baseline * span;
  if (w->age < slow)
    w->age++;
  const double weight = 1.0 / w->age, off = (double)x - w->mean;
  w->mean = fma(weight, off, w->mean);
  w->variance = (1 - weight) * fma(weight * off, off, w->variance);
}

/* Moves the reference to the baseline if the samples have drifted far from it, so that a float32 ring keeps its digits. Checked
 * once a span, so its cost for each sample is small. */
HK_INLINE void hk_window_rebase(struct hk_window *w, hk_real *ring, const struct hk_detector *d)
{
  const uint32_t span = hk_detector_span(d);
  if (w->count < span || w->rebase < span)
    return;
  w->rebase = 0;
  if (w->mean * w->mean <= 256 * w->variance)
    return;
  const double shift = (double)(float)w->mean; /* few digits, so that reference + shift stays exact as long as possible */
  w->reference += shift;
  w->mean -= shift;
  for (uint32_t i = 0; i < span; i++)
    ring[i] = hk_sample_tag((hk_real)((double)ring[i] - shift), hk_sample_filled(ring[i]));
}

/* Whether the window continues over `missing` samples before a point; updates the memory of holes. */
HK_INLINE bool hk_window_bridge(struct hk_window *w, const struct hk_detector *d, int64_t missing)
{
  const uint32_t span = hk_detector_span(d), memory = HK_HOLE_MEMORY * span;
  if (missing <= (int64_t)d->max_fill) {
    w->holed -= w->holed > 0;
    w->holes = w->holed > 0 ? w->holes : 0;
    return true;
  }
  const bool recent = w->holed > 0, close = recent && memory - w->holed < span;
  if (w->holes < HK_HOLES_MANY)
    w->holes = close ? w->holes + 1 : 1;
  w->holed = memory;
  return recent;
}

/* Whether a hole over which the window continued prevents alerts: it would resemble a change, unless the sensor's threshold was
 * learned with such holes. A graph compares behaviour, which a hole does not change. */
HK_INLINE bool hk_window_holed(const struct hk_window *w, const struct hk_detector *d)
{
  const uint32_t span = hk_detector_span(d);
  if (w->holes == 0 || d->algorithm == HK_ALGORITHM_GRAPH)
    return false;
  if (w->holes == HK_HOLES_MANY)
    return d->algorithm != HK_ALGORITHM_SHIFT && d->alert == HK_ALERT_FIXED;
  return HK_HOLE_MEMORY * span - w->holed + 1 < span;
}

/* Processes a rejected value: it changes nothing, unless it is hk_anew's. */
HK_INLINE void hk_window_refuse(struct hk_window *w, const struct hk_detector *d, double value)
{
  if (d->rate == HK_RATE_AUTO && hk_anew(value))
    w->anew = w->started;
}

/* Processes a point: rules 1 to 5 above. ring: hk_detector_span(d) samples. alerted: an alert of this sensor is raised. */
HK_INLINE struct hk_step hk_window_take(struct hk_window *w, hk_real *ring, const struct hk_detector *d, int64_t time,
                                        double value, int64_t arrival, bool alerted)
{
  struct hk_step step = { HK_STATE_REJECTED, 0, 0 };
  if (!(fabs(value - w->reference) <= HK_VALUE_MAX) || time < 0) {
    hk_window_refuse(w, d, value);
    return step;
  }
  if (w->started && time <= w->last_time) {
    step.state = HK_STATE_LATE;
    return step;
  }
  const uint32_t span = hk_detector_span(d);
  int64_t missing = 0;
  bool goes_on = w->started && !w->anew;
  if (w->started) {
    missing = hk_window_missing(w, d, time);
    if (d->interval <= 0)
      hk_interval_learn(w, time - w->last_time);
    goes_on &= hk_window_bridge(w, d, missing);
  }
  if (!goes_on) {
    step.restarted = w->started;
    w->reference = value;
    w->mean = w->variance = 0;
    w->count = w->head = w->filled = w->age = w->due = w->rebase = w->held = 0;
    w->holed = w->started ? w->holed : HK_HOLE_MEMORY * span;
    w->started = 1;
    w->anew = 0;
    alerted = false;
  }
  if (!goes_on || w->holes == HK_HOLES_MANY || missing > (int64_t)d->max_fill)
    missing = 0; /* nothing is filled */
  const double sample = value - w->reference;
  if (missing > 0) {
    const double last = (double)ring[w->head == 0 ? span - 1 : w->head - 1];
    for (int64_t i = 1; i <= missing; i++) {
      const double made = d->fill == HK_FILL_LINEAR ? fma((sample - last) / (double)(missing + 1), (double)i, last) : last;
      hk_window_push(w, ring, d, made, true, alerted);
    }
  }
  hk_window_push(w, ring, d, sample, false, alerted);
  hk_window_rebase(w, ring, d);
  w->last_time = time;
  w->seen = arrival;

  if (w->count < span) {
    w->due = d->stride - 1; /* the first score comes with the sample that completes the span */
    step.state = HK_STATE_WARMING;
    return step;
  }
  step.state = w->filled * 10 > span || hk_window_holed(w, d) ? HK_STATE_GAP : HK_STATE_OK;
  if (w->due >= d->stride) {
    step.score = 1;
    w->due = 0;
  }
  return step;
}

/* Copies the span out of the ring, oldest first. */
HK_INLINE void hk_window_copy(const struct hk_window *w, const hk_real *ring, uint32_t span, hk_real *out)
{
  const uint32_t tail = span - w->head;
  memcpy(out, ring + w->head, tail * sizeof *out);
  memcpy(out + tail, ring, w->head * sizeof *out);
}

/* Result of hk_span_prepare. */
struct hk_span_kind {
  uint8_t past_zero;    /* H1 = 0 after centring */
  uint8_t present_zero; /* H2 = 0 after centring: z = 0; if only H1 = 0, z = 1 */
};

/* Centres a span by the detector's `scale` and scales it by a power of two so that its largest magnitude is in [1/2, 1). x: span
 * samples, oldest first, replaced by the result. The past reads x[0..2w-2], the present x[g..g+2w-2]. With scale = window, past
 * and present may overlap (g < 2w - 1) and need different means, so in all modes `past` (2w - 1 numbers) receives the centred
 * past; the present is x + g. */
HK_INLINE struct hk_span_kind hk_span_prepare(const struct hk_window *w, const struct hk_detector *d, hk_real *x, hk_real *past)
{
  const uint32_t span = hk_detector_span(d), reach = 2 * d->window - 1;
  double past_mean = 0, present_mean = 0, held = 0, past_top = 0, present_top = 0;
  if (d->scale == HK_SCALE_BASELINE) {
    past_mean = present_mean = w->mean;
  } else if (d->scale == HK_SCALE_NONE) {
    past_mean = present_mean = -w->reference;
  } else {
    for (uint32_t i = 0; i < reach; i++) {
      past_mean += (double)x[i];
      present_mean += (double)x[d->gap + i];
    }
    past_mean /= reach;
    present_mean /= reach;
  }
  for (uint32_t i = 0; i < span; i++)
    held = fmax(held, fabs((double)x[i]));
  for (uint32_t i = 0; i < reach; i++) {
    past[i] = (hk_real)((double)x[i] - past_mean);
    past_top = fmax(past_top, fabs((double)past[i]));
  }
  for (uint32_t i = d->gap; i < span; i++) {
    x[i] = (hk_real)((double)x[i] - present_mean);
    present_top = fmax(present_top, fabs((double)x[i]));
  }
  const double zero = fmax(HK_ZERO_ABSOLUTE, held * HK_ZERO_RELATIVE);
  struct hk_span_kind kind = { (uint8_t)(past_top <= zero), (uint8_t)(present_top <= zero) };
  /* Past and present have a power of two each: z does not depend on their scales. */
  if (!kind.past_zero) {
    int exponent;
    (void)frexp(past_top, &exponent);
    const hk_real factor = (hk_real)ldexp(1.0, -exponent);
    for (uint32_t i = 0; i < reach; i++)
      past[i] *= factor;
  }
  if (!kind.present_zero) {
    int exponent;
    (void)frexp(present_top, &exponent);
    const hk_real factor = (hk_real)ldexp(1.0, -exponent);
    for (uint32_t i = d->gap; i < span; i++)
      x[i] *= factor;
  }
  return kind;
}

/* FNV-1a, 64 bits: the seed of a sensor from its name (Fowler, Noll, Vo). */
HK_INLINE uint64_t hk_seed(const char *name, size_t length)
{
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < length; i++)
    hash = (hash ^ (uint8_t)name[i]) * 0x100000001b3u;
  return hash;
}

/* Element i of the sensor's random vector before normalisation, in [-1, 1): splitmix64 (Steele, Lea, Flood 2014) of
 * seed + i. a0 = these w numbers divided by their norm in double. */
HK_INLINE double hk_random_element(uint64_t seed, uint32_t i)
{
  uint64_t z = seed + i + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return (double)(int64_t)(z >> 11) * 0x1p-52 - 1.0;
}

/* Detects silence; call periodically with the arrival clock (ns). Returns 1 if the sensor has become silent, -1 if it is back, 0
 * otherwise. Does not change window or alert. */
HK_INLINE int hk_window_sweep(struct hk_window *w, const struct hk_detector *d, int64_t now)
{
  if (!w->started || d->silent < 0)
    return 0;
  const int64_t interval = hk_window_interval(w, d), least = 10000000000;
  const int64_t ten = interval > INT64_MAX / 10 ? INT64_MAX : 10 * interval;
  const int64_t silent = d->silent > 0 ? d->silent : ten > least ? ten : least;
  const bool stale = now - w->seen > silent;
  if (stale == (w->stale != 0))
    return 0;
  w->stale = stale;
  return stale ? 1 : -1;
}

#endif
