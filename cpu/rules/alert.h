/* The alert rule of one sensor: from scores to events. Written once, for every backend (see window.h for how).
 *
 * A score has two numbers: z, and share, the share of the present's energy in its leading direction. The *evidence* is compared
 * with the threshold:
 *
 *   alert = adaptive   evidence = sqrt(z * share / (1 - share)), with share at most 1 - 1e-6: the amplitude of what is new in the
 *                      present over that of the rest. A window of noise scores high for no reason, but weighs little
 *   alert = 0.8 ...    evidence = z
 *
 * Learning (adaptive). The evidence of a sensor is divided into blocks of one window, B = ceil(w / stride) scores; only scores of
 * state ok count. The maxima of blocks follow a Gumbel distribution (E. J. Gumbel, Statistics of Extremes, 1958), fitted by
 * moments:
 *
 *   p = min(false_alarms * B / 1e6, 1/2)               desired probability of a false alarm in a block
 *   y = -ln(-ln(1 - p))                                reduced variate of the quantile 1 - p
 *   K = sqrt(6)/pi * (y - 0.5772156649) * (1 + (1.4 + y/2) / (n - 1))
 *   threshold = mean + K * sqrt(variance * n / (n - 1))
 *
 * mean and variance: over the n maxima so far, each with weight 1/n; from n = HK_ALERT_BLOCKS on, exponential with weight
 * 1/HK_ALERT_BLOCKS (mean += weight d; variance = (1 - weight) (variance + weight d^2), d = maximum - previous mean). The second
 * factor of K makes p the probability for the *next* block when only n are known (determined by simulation, n from 4 to 64). A
 * threshold exists from the end of block HK_ALERT_LEARN on; before, for 4 w points after the warm-up, there is no alert. A later
 * maximum above the threshold counts as the threshold itself, so that a change has little influence. A new threshold holds from
 * the next score on. A restart of the window drops the current block and keeps what was learned.
 *
 * Decision, once for each accepted point (not for late and rejected points), in this order:
 *  1. The window restarted before this point: over = 0; a raised alert is cleared, with its last estimate. Nothing else.
 *  2. quiet, if > 0, is decremented; the point still counts as quiet. While an alert is raised, `since` is incremented.
 *  3. A score in state ok: it is *over* if evidence > threshold (adaptive) or >= threshold (fixed), z >= min_score, and
 *       share / (1 - share) >= signal * white / (1 - white),     white = (1.4 + 0.6 ln w) / w,
 *     the average share of the leading direction in white noise (within 4 % for w = 8..320). `over` counts
 *     consecutive scores that are over; any other score, and any in state gap, makes it 0. Points with no score leave it.
 *  4. Not raised, over >= hold on a score in state ok, not quiet: *raised*. since = 0, peak = z.
 *  5. Raised before this point: peak = max(peak, z) on a score. The alert is *cleared* on a score (state ok or gap) with
 *     evidence < clear * threshold, and on any point when since = span, since by then the past holds nothing older than
 *     the alert. Then quiet = cooldown and over = 0.
 *     Otherwise, when since = w, the change instant is estimated again: *corrected*, if it moved by more than w/8 samples.
 *  6. The threshold learns from the score (adaptive, state ok).
 *
 * The change instant is estimated (instant.h) when the alert is raised, among the samples of [T-2w+2, T], and once more, in the
 * same interval, after w points or when the alert is cleared, whichever is first. cooldown, since and w are counted in accepted
 * points, without filled samples. All arithmetic is in double. */
#ifndef HK_ALERT_H
#define HK_ALERT_H

#include "cpu/rules/event.h"
#include "cpu/rules/instant.h"
#include "cpu/rules/severity.h"
#include "cpu/rules/sketch.h"
#include "cpu/rules/window.h"

#include <stddef.h>

#define HK_ALERT_LEARN 4   /* blocks before an adaptive threshold is used */
#define HK_ALERT_BLOCKS 64 /* number of blocks that the threshold remembers */

/* State of a sensor's alerts. All zero: no alerts, nothing learned. */
struct hk_alert {
  int64_t from;    /* ns: start of the interval on which the alert was raised */
  int64_t instant; /* ns: last estimate of the change instant, and the levels around it */
  double before, after;
  double mean, variance; /* mean and variance of the maxima of blocks */
  double learned;        /* adaptive threshold; valid once blocks >= HK_ALERT_LEARN */
  double top;            /* highest evidence in the current block */
  float peak;            /* highest score since the alert was raised */
  float margin;          /* and the highest evidence / threshold */
  float spread_before, spread_after;
  uint32_t number; /* number of the last alert */
  uint32_t over;   /* consecutive scores over the threshold, saturating */
  uint32_t quiet;  /* points of cool-down left */
  uint32_t since;  /* points since the alert was raised */
  uint32_t scores; /* scores in the current block; graph: samples of the ended segment, after a raised alert */
  uint8_t raised;
  uint8_t settled; /* the instant has been estimated again */
  uint8_t blocks;  /* maxima learned from, at most HK_ALERT_BLOCKS */
  uint8_t unused;
};

/* The minimum of share/(1 - share) for a present that is more than white noise. */
HK_INLINE double hk_alert_signal(const struct hk_detector *d)
{
  const double white = (1.4 + 0.6 * log((double)d->window)) / d->window;
  return (double)d->signal * white / (1 - white);
}

/* The time `samples` intervals before `time`, at least 0 (1970). */
HK_INLINE int64_t hk_alert_back(int64_t time, int64_t samples, int64_t interval)
{
  return samples > 0 && interval > time / samples ? 0 : time - samples * interval;
}

/* Learns from one score's evidence. */
HK_INLINE void hk_alert_learn(struct hk_alert *a, const struct hk_detector *d, double evidence)
{
  const uint32_t block = (d->window + d->stride - 1) / d->stride;
  a->top = a->scores == 0 ? evidence : fmax(a->top, evidence);
  if (++a->scores < block)
    return;
  const double top = a->blocks >= HK_ALERT_LEARN ? fmin(a->top, a->learned) : a->top;
  a->scores = 0;
  if (a->blocks < HK_ALERT_BLOCKS)
    a->blocks++;
  const double n = a->blocks, off = top - a->mean;
  a->mean = fma(off, 1 / n, a->mean);
  a->variance = (1 - 1 / n) * fma(off / n, off, a->variance);
  if (a->blocks < HK_ALERT_LEARN)
    return;
  const double p = fmin((double)d->false_alarms * block / 1e6, 0.5), y = -log(-log(1 - p));
  const double k = 0.7796968012 * (y - 0.5772156649) * (1 + (1.4 + 0.5 * y) / (n - 1));
  a->learned = a->mean + k * sqrt(a->variance * n / (n - 1));
}

/* Estimates the change instant in [from, from + 2w-2 intervals] and the levels. Returns by how many samples it moved. */
HK_INLINE double hk_alert_estimate(struct hk_alert *a, const struct hk_window *w, const hk_real *ring,
                                   const struct hk_detector *d, int64_t interval)
{
  const int64_t span = hk_detector_span(d), reach = 2 * (int64_t)d->window - 2, oldest = (w->last_time - a->from) / interval + 1;
  const int64_t last = oldest < span ? oldest : span, newest = oldest - reach < 1 ? 1 : oldest - reach;
  const struct hk_instant found = hk_instant_estimate(w, ring, d, (uint32_t)(newest < last ? newest : last), (uint32_t)last);
  /* Times may be irregular, and the ring too short: the result is limited to the stated interval. */
  const int64_t told = hk_alert_back(w->last_time, (int64_t)found.age - 1, interval);
  const int64_t most = hk_alert_back(w->last_time, newest - 1, interval);
  const int64_t instant = told < a->from ? a->from : told > most ? most : told;
  const double moved = fabs((double)(instant - a->instant)) / (double)interval;
  a->instant = instant;
  a->before = found.before;
  a->after = found.after;
  a->spread_before = (float)found.spread_before;
  a->spread_after = (float)found.spread_after;
  return moved;
}

/* The distance of samples in ns, to count an alert's times back in samples: the interval in force; before it is known the
 * interval learned so far; 1 if there is none. */
HK_INLINE int64_t hk_alert_interval(const struct hk_window *w, const struct hk_detector *d)
{
  return hk_window_interval(w, d) > 0 ? hk_window_interval(w, d) : w->interval > 0 ? w->interval : 1;
}

/* Standard deviation about `mean` of n > 0 samples of a ring, from place `at` on. */
HK_INLINE float hk_alert_spread(const hk_real *ring, uint32_t span, uint32_t at, uint32_t n, double mean)
{
  double sum = 0;
  for (uint32_t i = 0; i < n; i++, at = at + 1 < span ? at + 1 : 0) {
    const double off = (double)ring[at] - mean;
    sum = fma(off, off, sum);
  }
  return (float)sqrt(sum / n);
}

/* The ratio of a statistic to its threshold, for an event. */
HK_INLINE float hk_alert_margin(double statistic, double threshold)
{
  return (float)fmin(statistic / fmax(threshold, 1e-9), 1e6);
}

/* Ends the alert without a rule: the window began anew, or the detector's alerts were switched off by a restart. Returns the kind
 * of event, 0 for none. */
HK_INLINE int hk_alert_end(struct hk_alert *a)
{
  const int kind = a->raised ? HK_EVENT_CLEARED : 0;
  a->over = a->raised = 0;
  return kind;
}

/* Rules 1 to 5: returns the kind of event at this point, 0 for none. */
HK_INLINE int hk_alert_judge(struct hk_alert *a, const struct hk_window *w, const hk_real *ring, const struct hk_detector *d,
                             struct hk_step step, double z, double share, double evidence)
{
  const bool quiet = a->quiet > 0, adaptive = d->alert == HK_ALERT_ADAPTIVE;
  const double threshold = adaptive ? a->learned : (double)d->threshold;
  const int64_t interval = hk_alert_interval(w, d);
  if (step.restarted) {
    a->scores = 0;
    return hk_alert_end(a);
  }
  a->quiet -= quiet;
  if (step.score) {
    const bool over = step.state == HK_STATE_OK &&
                      (adaptive ? a->blocks >= HK_ALERT_LEARN && evidence > threshold : evidence >= threshold) &&
                      z >= (double)d->min_score && share >= (1 - share) * hk_alert_signal(d);
    a->over = !over ? 0 : a->over < UINT32_MAX ? a->over + 1 : a->over;
  }
  if (!a->raised) {
    if (!step.score || a->over < d->hold || quiet)
      return 0;
    a->raised = 1;
    a->settled = 0;
    a->since = 0;
    a->number++;
    a->peak = (float)z;
    a->margin = hk_alert_margin(evidence, threshold);
    a->from = hk_alert_back(w->last_time, 2 * (int64_t)d->window - 2, interval);
    (void)hk_alert_estimate(a, w, ring, d, interval);
    return HK_EVENT_RAISED;
  }
  a->since++;
  if (step.score && (float)z > a->peak)
    a->peak = (float)z;
  if (step.score && hk_alert_margin(evidence, threshold) > a->margin)
    a->margin = hk_alert_margin(evidence, threshold);
  const bool clear = (step.score && evidence < (double)d->clear * threshold) || a->since >= hk_detector_span(d);
  if (!clear && a->since < d->window)
    return 0;
  const double moved = a->settled ? 0 : hk_alert_estimate(a, w, ring, d, interval);
  a->settled = 1;
  if (clear) {
    a->raised = 0;
    a->quiet = d->cooldown;
    a->over = 0;
    return HK_EVENT_CLEARED;
  }
  return 8 * moved > d->window ? HK_EVENT_CORRECTED : 0;
}

/* Severity of an alert of a channel with a margin, at least about 1; 0 for channels without a rule by margin. */
HK_INLINE float hk_alert_severity(int channel, float margin)
{
  double at = 0, slope = 0;
  if (channel == HK_CHANNEL_SCORE) {
    at = HK_SEVERITY_SCORE_AT;
    slope = HK_SEVERITY_SCORE_SLOPE;
  } else if (channel == HK_CHANNEL_CHANGE) {
    at = HK_SEVERITY_CHANGE_AT;
    slope = HK_SEVERITY_CHANGE_SLOPE;
  } else if (channel == HK_CHANNEL_SHIFT) {
    at = HK_SEVERITY_SHIFT_AT;
    slope = HK_SEVERITY_SHIFT_SLOPE;
  } else if (channel == HK_CHANNEL_GROUP) {
    at = HK_SEVERITY_GROUP_AT;
    slope = HK_SEVERITY_GROUP_SLOPE;
  } else if (channel == HK_CHANNEL_LIMIT) {
    at = HK_SEVERITY_LIMIT_AT;
    slope = HK_SEVERITY_LIMIT_SLOPE;
  }
  return (float)fmin(at + slope * log10(fmax((double)margin, 1.0)), HK_SEVERITY_MEASURED);
}

/* Makes an event of a kind from the alert and the last point: all fields but index and slot. */
HK_INLINE struct hk_event hk_alert_event(const struct hk_alert *a, const struct hk_window *w, int kind, int channel)
{
  struct hk_event e;
  memset(&e, 0, sizeof e);
  e.kind = (uint8_t)kind;
  e.channel = (uint8_t)channel;
  e.time = w->last_time;
  e.number = a->number;
  e.from = a->from;
  e.instant = a->instant;
  e.score = a->peak;
  e.margin = a->margin;
  e.severity = hk_alert_severity(channel, a->margin);
  e.before = a->before;
  e.after = a->after;
  e.spread_before = a->spread_before;
  e.spread_after = a->spread_after;
  return e;
}

/* Processes one accepted point (state warming, ok or gap). z and share: the score and the share of the present's energy in its
 * leading direction, both NaN if no score was due. ring: the window's ring. Returns 1 if an event was written to *e (all fields
 * but index and slot), else 0. At most one event for each point. */
HK_INLINE int hk_alert_decide(struct hk_alert *a, const struct hk_window *w, const hk_real *ring, const struct hk_detector *d,
                              struct hk_step step, double z, double share, struct hk_event *e)
{
  share = share < 1 - 1e-6 ? share : 1 - 1e-6; /* without a score z is NaN, and evidence is not read */
  const double evidence = d->alert == HK_ALERT_ADAPTIVE ? sqrt(z * share / (1 - share)) : z;
  const int kind = d->alert == HK_ALERT_OFF ? hk_alert_end(a) : hk_alert_judge(a, w, ring, d, step, z, share, evidence);
  if (d->alert == HK_ALERT_ADAPTIVE && step.score && step.state == HK_STATE_OK)
    hk_alert_learn(a, d, evidence);
  if (kind == 0)
    return 0;
  *e = hk_alert_event(a, w, kind, HK_CHANNEL_SCORE);
  return 1;
}

#endif
