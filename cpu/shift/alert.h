/* The alert rule of a sensor with algorithm = shift. Written once, for every backend (see window.h for how). cpu/rules/alert.h
 * has the rule of ika and svd, and the structs.
 *
 * Decision, once for each accepted point (not for late and rejected points), in this order:
 *  1. The window restarted before this point: over = 0; a raised alert is cleared. Nothing else.
 *  2. quiet, if over 0, is counted down by 1; the point still counts as quiet.
 *  3. Raised before this point: the alert keeps the highest score. since is incremented, and the alert is *cleared* when
 *     it reaches two windows. Then quiet = cooldown and over = 0. Nothing else.
 *  4. A score in state ok is over if it exceeds the detector's fixed alert. `over` counts consecutive scores that are.
 *  5. The previous score was over, with over >= hold, and this one is lower: a peak. In state ok, not quiet: *raised*,
 *     with the peak as the score.
 *
 * The change instant is the first sample of the newer span at the greatest difference of the two spans, of the differences in the
 * smoothed value; it is not estimated again. The levels are the means of the kept samples before and after it. */
#ifndef HK_SHIFT_ALERT_H
#define HK_SHIFT_ALERT_H

#include "cpu/rules/alert.h"
#include "cpu/shift/shift.h"

/* Mean and standard deviation of n samples, the newest of which is `age` samples old, in the sensor's units. */
HK_INLINE double hk_shift_level(const struct hk_window *w, const hk_real *ring, uint32_t span, uint32_t age, uint32_t n,
                                float *spread)
{
  double sum = 0;
  for (uint32_t i = 0; i < n; i++)
    sum += (double)hk_shift_sample(w, ring, span, age + i);
  *spread = hk_alert_spread(ring, span, (w->head + 2 * span - age - n) % span, n, sum / n);
  return sum / n + w->reference;
}

/* Number of scores since the greatest difference of the spans. */
HK_INLINE uint32_t hk_shift_farthest(const struct hk_shift_view *v)
{
  const uint32_t smooth = hk_shift_smooth(v->detector);
  uint32_t found = 0;
  hk_real most = -1;
  for (uint32_t ago = 0; ago < smooth; ago++) {
    const hk_real difference = v->raw[(v->shift->raw + 2 * smooth - 1 - ago) % smooth];
    if (difference > most) {
      most = difference;
      found = ago;
    }
  }
  return found;
}

/* Sets the score and the margin of the alert from `above`. */
HK_INLINE void hk_shift_stands_at(struct hk_alert *a, const struct hk_detector *d, double above)
{
  const double most = (double)d->threshold;
  a->peak = (float)hk_shift_score(above);
  a->margin = hk_alert_margin(above * (1 - most), HK_SHIFT_UNIT * most);
}

/* Rules 1 to 5: returns the kind of event at this point, 0 for none. above: from hk_shift_take. */
HK_INLINE int hk_shift_judge(struct hk_alert *a, const struct hk_shift_view *v, const struct hk_window *w, const hk_real *ring,
                             struct hk_step step, double above)
{
  const struct hk_detector *d = v->detector;
  const bool quiet = a->quiet > 0;
  if (step.restarted)
    return hk_alert_end(a);
  a->quiet -= quiet;
  const float before = v->shift->last;
  if (step.score)
    v->shift->last = (float)above;
  if (a->raised) {
    if (step.score && (float)hk_shift_score(above) > a->peak)
      hk_shift_stands_at(a, d, above);
    if (++a->since < 2 * d->window)
      return 0;
    a->raised = 0;
    a->quiet = d->cooldown;
    a->over = 0;
    return HK_EVENT_CLEARED;
  }
  if (!step.score)
    return 0;
  const bool peak = a->over >= d->hold && (float)above < before;
  const bool over = step.state == HK_STATE_OK && hk_shift_score(above) > (double)d->threshold;
  a->over = !over ? 0 : a->over < UINT32_MAX ? a->over + 1 : a->over;
  if (!peak || quiet || step.state != HK_STATE_OK)
    return 0;
  const int64_t interval = hk_alert_interval(w, d);
  const uint32_t span = hk_detector_span(d), after = hk_shift_farthest(v) * d->stride + d->window;
  const uint32_t newer = after < w->count ? after : w->count - 1;
  a->raised = 1;
  a->since = 0;
  a->number++;
  hk_shift_stands_at(a, d, (double)before);
  a->from = hk_alert_back(w->last_time, (int64_t)w->count - 1, interval);
  a->instant = hk_alert_back(w->last_time, (int64_t)newer - 1, interval);
  a->before = hk_shift_level(w, ring, span, newer, w->count - newer, &a->spread_before);
  a->after = hk_shift_level(w, ring, span, 0, newer, &a->spread_after);
  return HK_EVENT_RAISED;
}

/* Processes one accepted point (state warming, ok or gap). Returns 1 if an event was written to *e (all fields but index and
 * slot), else 0. */
HK_INLINE int hk_shift_decide(struct hk_alert *a, const struct hk_shift_view *v, const struct hk_window *w, const hk_real *ring,
                              struct hk_step step, double above, struct hk_event *e)
{
  const int kind = v->detector->alert == HK_ALERT_OFF ? hk_alert_end(a) : hk_shift_judge(a, v, w, ring, step, above);
  if (kind == 0)
    return 0;
  *e = hk_alert_event(a, w, kind, HK_CHANNEL_SHIFT);
  return 1;
}

#endif
