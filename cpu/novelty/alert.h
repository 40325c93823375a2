/* The alert rule of a sensor with algorithm = novelty, and the contents of its events. Written once, for every backend (see
 * window.h for how). cpu/rules/alert.h has the rule of ika and svd, and the structs.
 *
 * S of tail.h gives a score z = S / (S + 2), so the key `alert`, a score, determines the S that raises an alert: 0.5 is S = 2,
 * 0.6 is S = 3.
 *
 * Decision, once for each accepted point (not for late and rejected points), in this order. Missing samples before the point
 * count as quiet points.
 *  1. Raised, and the missing samples alone suffice to clear (rule 3): *cleared*. This point raises no alert.
 *  2. S at least the threshold: *raised* if no alert is raised; if one is and S exceeds its peak by HK_NOVELTY_ESCALATE:
 *     *corrected*, with this point's instant and levels, and its duration begins anew. S above the threshold less
 *     HK_NOVELTY_SLACK prolongs a raised alert.
 *  3. Raised, and HK_NOVELTY_QUIET points were quiet, or the alert is HK_NOVELTY_LONGEST points old: *cleared*.
 *  4. Raised, and the highest severity so far has passed another multiple of HK_NOVELTY_GRAVER: *corrected*, with this point's
 *     instant and levels. So receivers who want alerts from a severity on get this one when it reaches that severity, not only at
 *     its end.
 *
 * No alert is raised in the states warming and gap. No other suppression is needed: what has happened is resident, so its
 * repetition is quiet. In struct hk_alert, `top` is the peak's S, `since` the points since the alert was raised or corrected by
 * rule 2, `quiet` the points since the last one that was not quiet, `mean` the highest severity of its points. */
#ifndef HK_NOVELTY_ALERT_H
#define HK_NOVELTY_ALERT_H

#include "cpu/novelty/tail.h"
#include "cpu/rules/alert.h"

#define HK_NOVELTY_QUIET 60    /* quiet points after which an alert is cleared */
#define HK_NOVELTY_LONGEST 300 /* maximum duration of an alert, points */
#define HK_NOVELTY_SLACK 0.3
#define HK_NOVELTY_ESCALATE 1.5
#define HK_NOVELTY_GRAVER 0.25

HK_INLINE double hk_novelty_score(double s)
{
  return s / (s + HK_NOVELTY_UNIT);
}

/* S of a score below 1. */
HK_INLINE double hk_novelty_s(double score)
{
  return HK_NOVELTY_UNIT * score / (1 - score);
}

/* Age, in points before p, of the resident value, row or lag nearest to p; of several, the newest. *row: the row's place. */
HK_INLINE uint32_t hk_novelty_nearest(const struct hk_novelty_view *v, const hk_real *ring, const struct hk_novelty_point *p,
                                      uint32_t channel, uint32_t *row)
{
  const struct hk_detector *d = v->detector;
  const uint32_t span = hk_detector_span(d), values = hk_novelty_values(d, p);
  uint32_t at = 0;
  switch (channel) {
  case HK_NOVELTY_VALUE:
    while (at + 1 < values && hk_novelty_value_distance(ring, span, p, HK_NOVELTY_RECENT + at) > p->nearest[HK_NOVELTY_VALUE])
      at++;
    return HK_NOVELTY_RECENT + at;
  case HK_NOVELTY_CONTEXT:
    while (at + 1 < p->rows && hk_novelty_row_distance(v, p, hk_novelty_row_place(d, p, at)) > p->nearest[HK_NOVELTY_CONTEXT])
      at++;
    *row = hk_novelty_row_place(d, p, at);
    return HK_NOVELTY_ROW_AGE + p->phase + at * HK_NOVELTY_ROW_EVERY;
  default:
    return p->lag;
  }
}

/* The past in a note. */
struct hk_novelty_past {
  uint32_t age, row; /* from hk_novelty_nearest */
  double low, high;  /* range of the values to compare with; infinities, low above high, if there are none */
};

HK_INLINE struct hk_novelty_past hk_novelty_past(const struct hk_novelty_view *v, const hk_real *ring,
                                                 const struct hk_novelty_point *p, uint32_t channel)
{
  const uint32_t span = hk_detector_span(v->detector), values = hk_novelty_values(v->detector, p);
  struct hk_novelty_past past = { 0, 0, INFINITY, -INFINITY };
  past.age = hk_novelty_nearest(v, ring, p, channel, &past.row);
  for (uint32_t i = 0; i < values; i++) {
    const double x = (double)hk_novelty_sample(ring, span, p, HK_NOVELTY_RECENT + i);
    past.low = fmin(past.low, x);
    past.high = fmax(past.high, x);
  }
  return past;
}

/* Writes to an alert and to an event's note what is new about a point: the expected and the observed level, and since when. */
HK_INLINE void hk_novelty_note(struct hk_alert *a, struct hk_novelty_note *note, const struct hk_novelty_view *v,
                               const struct hk_window *w, const hk_real *ring, const struct hk_novelty_point *p,
                               const struct hk_novelty_result *r, const struct hk_novelty_past *past)
{
  const struct hk_detector *d = v->detector;
  const uint32_t span = hk_detector_span(d), values = hk_novelty_values(d, p), age = past->age, row = past->row;
  const double usual = fmax(r->usual - HK_NOVELTY_FLOOR, 0.0);
  const int64_t interval = hk_alert_interval(w, d);
  uint32_t reach = 1;
  a->spread_before = a->spread_after = 0;
  if (r->channel == HK_NOVELTY_VALUE) {
    a->before = (double)hk_novelty_sample(ring, span, p, age) + w->reference;
    a->after = (double)p->value + w->reference;
    a->spread_before = (float)(usual * p->spread[0]);
  } else if (r->channel == HK_NOVELTY_CONTEXT) {
    uint32_t k = 0;
    for (uint32_t i = 1; i < HK_NOVELTY_MEANS; i++) {
      const double share = fabs((double)(p->mean[i] - v->row[i][row])) * (double)p->weight[i];
      k = share > fabs((double)(p->mean[k] - v->row[k][row])) * (double)p->weight[k] ? i : k;
    }
    reach = hk_novelty_reach(k + 1);
    a->before = (double)v->row[k][row] + w->reference;
    a->after = (double)p->mean[k] + w->reference;
    a->spread_before = (float)(usual * p->spread[k + 1]);
  } else {
    reach = HK_NOVELTY_SHAPE_REACH;
    a->before = 0;
    a->after = fmax(r->distance - HK_NOVELTY_FLOOR, 0.0) * p->spread[0];
    a->spread_before = (float)(usual * p->spread[0]);
  }
  a->from = hk_alert_back(p->time, (int64_t)reach - 1, interval);
  a->instant = a->from;
  note->channel = (uint8_t)(r->channel + 1);
  note->reach = (uint16_t)reach;
  const uint32_t oldest = r->channel == HK_NOVELTY_VALUE ? HK_NOVELTY_RECENT + values - 1
                          : r->channel == HK_NOVELTY_CONTEXT
                              ? HK_NOVELTY_ROW_AGE + p->phase + (p->rows - 1) * HK_NOVELTY_ROW_EVERY
                              : HK_NOVELTY_LAG_MIN + hk_novelty_lags_counted(d, p) - 1;
  note->compared = r->channel == HK_NOVELTY_VALUE ? values : oldest;
  note->nearest = hk_alert_back(p->time, age, interval);
  note->oldest = hk_alert_back(p->time, oldest, interval);
  note->low = values > 0 ? past->low + w->reference : 0;
  note->high = values > 0 ? past->high + w->reference : 0;
}

/* Makes S what the alert is told with. */
HK_INLINE void hk_novelty_stands_at(struct hk_alert *a, const struct hk_detector *d, double s)
{
  a->top = s;
  a->peak = (float)hk_novelty_score(s);
  a->margin = hk_alert_margin(s, hk_novelty_s((double)d->threshold));
}

/* Counts n points of an alert that stands, all of them quiet: whether it is time to clear it. */
HK_INLINE bool hk_novelty_quiet(struct hk_alert *a, int64_t n)
{
  a->since = n < UINT32_MAX - a->since ? a->since + (uint32_t)n : UINT32_MAX;
  a->quiet = n < UINT32_MAX - a->quiet ? a->quiet + (uint32_t)n : UINT32_MAX;
  return a->quiet >= HK_NOVELTY_QUIET || a->since >= HK_NOVELTY_LONGEST;
}

/* Multiples of HK_NOVELTY_GRAVER in a severity. */
HK_INLINE uint32_t hk_novelty_grade(double severity)
{
  return (uint32_t)(severity / HK_NOVELTY_GRAVER);
}

/* Rules 1 to 4: the kind of event that happens at this point, 0 for none. *tells: it has something new to say. */
HK_INLINE int hk_novelty_judge(struct hk_alert *a, const struct hk_detector *d, const struct hk_novelty_point *p,
                               struct hk_step step, double s, double severity, bool *tells)
{
  const double threshold = hk_novelty_s((double)d->threshold);
  const bool stood = a->raised;
  *tells = false;
  if (stood && p->missing > 0 && hk_novelty_quiet(a, p->missing))
    return hk_alert_end(a);
  if (step.state == HK_STATE_OK && s >= threshold && (!stood || s >= a->top + HK_NOVELTY_ESCALATE)) {
    *tells = true;
    a->raised = 1;
    a->number += !stood;
    a->since = a->quiet = 0;
    a->mean = stood ? fmax(a->mean, severity) : severity;
    hk_novelty_stands_at(a, d, s);
    return stood ? HK_EVENT_CORRECTED : HK_EVENT_RAISED;
  }
  if (!stood)
    return 0;
  const bool quiet = hk_novelty_quiet(a, 1), prolonged = s >= threshold - HK_NOVELTY_SLACK;
  const bool graver = hk_novelty_grade(severity) > hk_novelty_grade(a->mean);
  a->mean = fmax(a->mean, severity);
  if (s > a->top)
    hk_novelty_stands_at(a, d, s);
  if (prolonged)
    a->quiet = 0;
  if (prolonged ? a->since >= HK_NOVELTY_LONGEST : quiet)
    return hk_alert_end(a);
  *tells = graver && step.state == HK_STATE_OK;
  return *tells ? HK_EVENT_CORRECTED : 0;
}

/* The rules of a point: the kind of event that happens at it, 0 for none. *tells: hk_novelty_speak needs the past. */
HK_INLINE int hk_novelty_rule(struct hk_alert *a, const struct hk_novelty_view *v, const struct hk_novelty_point *p,
                              struct hk_step step, const struct hk_novelty_result *r, bool *tells)
{
  *tells = false;
  return v->detector->alert == HK_ALERT_OFF ? hk_alert_end(a)
                                            : hk_novelty_judge(a, v->detector, p, step, r->s, (double)r->severity, tells);
}

/* The event of a kind, all fields but index and slot. past: NULL where there is nothing new to tell. */
HK_INLINE struct hk_event hk_novelty_speak(struct hk_alert *a, const struct hk_novelty_view *v, const struct hk_window *w,
                                           const hk_real *ring, const struct hk_novelty_point *p,
                                           const struct hk_novelty_result *r, int kind, const struct hk_novelty_past *past)
{
  struct hk_novelty_note note;
  memset(&note, 0, sizeof note);
  if (past)
    hk_novelty_note(a, &note, v, w, ring, p, r, past);
  struct hk_event e = hk_alert_event(a, w, kind, HK_CHANNEL_NOVELTY);
  e.time = p->time; /* of a run's points this one need not be the last */
  e.severity = (float)a->mean;
  e.novelty = note;
  return e;
}

/* Takes one accepted point (state warming, ok or gap), rated. Returns 1 when an event was written to *e (all fields but index and
 * slot), else 0. */
HK_INLINE int hk_novelty_decide(struct hk_alert *a, const struct hk_novelty_view *v, const struct hk_window *w,
                                const hk_real *ring, const struct hk_novelty_point *p, struct hk_step step,
                                const struct hk_novelty_result *r, struct hk_event *e)
{
  bool tells;
  struct hk_novelty_past past;
  const int kind = hk_novelty_rule(a, v, p, step, r, &tells);
  if (kind == 0)
    return 0;
  if (tells)
    past = hk_novelty_past(v, ring, p, r->channel);
  *e = hk_novelty_speak(a, v, w, ring, p, r, kind, tells ? &past : NULL);
  return 1;
}

#endif
