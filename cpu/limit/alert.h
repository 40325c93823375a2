/* The alert rule of a sensor with algorithm = limit. Written once, for every backend (see window.h for how). cpu/rules/alert.h
 * has the structs.
 *
 * Decision, once for each accepted point (not for late and rejected points), in this order:
 *  1. The window began anew: over = under = 0; a raised alert is cleared. End.
 *  2. No block has ended: end.
 *  3. The check is *near* if it has a score and the trend reaches a limit within the horizon. `over` counts successive checks
 *     that are near; `under` those that are not near, and whose last block is within the limits: so the alert of a full disk
 *     stays raised.
 *  4. Not raised, over >= hold: *raised*. Its instant is the point's time: a trend has no instant of its own.
 *  5. Raised, under >= hold: *cleared*.
 *  6. Raised and near: *corrected*, if the time at which the limit is reached has moved by more than a block and more than half
 *     of the remaining time. */
#ifndef HK_LIMIT_ALERT_H
#define HK_LIMIT_ALERT_H

#include "cpu/limit/limit.h"
#include "cpu/rules/alert.h"

#define HK_LIMIT_MARGIN_MAX 100.0 /* an alert's margin is computed as if the limit were at least horizon / this away */

/* Sets the values of the alert from a check. */
HK_INLINE void hk_limit_stands_at(struct hk_alert *a, const struct hk_limit_view *v, const struct hk_window *w,
                                  const struct hk_limit_check *check)
{
  const struct hk_limit_trend *t = &check->trend;
  const int64_t length = hk_limit_length(v->detector), end = v->limit->block * length;
  v->limit->told = check->outlook.reached;
  a->before = fma(-t->slope, (double)(end - a->from) / (double)length, t->level) + w->reference;
  a->after = t->level + w->reference;
  a->spread_before = a->spread_after = (float)fmin(t->spread, (double)FLT_MAX);
}

/* Updates the highest score, and the margin: how much nearer than the horizon the limit was. */
HK_INLINE void hk_limit_most(struct hk_alert *a, const struct hk_detector *d, const struct hk_limit_outlook *o)
{
  const double horizon = (double)d->limit.horizon;
  a->peak = fmaxf(a->peak, (float)hk_limit_score(d, o));
  a->margin = fmaxf(a->margin, hk_alert_margin(horizon, fmax(o->eta, horizon / HK_LIMIT_MARGIN_MAX)));
}

/* Whether a check differs enough from the last event. */
HK_INLINE bool hk_limit_moved(const struct hk_limit_view *v, const struct hk_limit_outlook *o, int64_t time)
{
  const int64_t told = v->limit->told > time ? v->limit->told : time; /* a limit that was reached stays reached */
  const double moved = fabs((double)(o->reached - told));
  return moved > (double)hk_limit_length(v->detector) && 2 * moved > o->eta;
}

/* Rules 1 to 6: the kind of event that happens at this point, 0 for none. */
HK_INLINE int hk_limit_judge(struct hk_alert *a, const struct hk_limit_view *v, const struct hk_window *w, struct hk_step step,
                             const struct hk_limit_check *check)
{
  const struct hk_detector *d = v->detector;
  struct hk_limit *s = v->limit;
  if (step.restarted) {
    s->under = 0;
    return hk_alert_end(a);
  }
  if (!check->closed)
    return 0;
  const bool near = check->outlook.eta < (double)d->limit.horizon;
  a->over = !near ? 0 : a->over < UINT32_MAX ? a->over + 1 : a->over;
  s->under = near || check->beyond ? 0 : s->under < UINT32_MAX ? s->under + 1 : s->under;
  if (!a->raised) {
    if (a->over < d->hold)
      return 0;
    a->raised = 1;
    a->number++;
    a->peak = a->margin = 0;
    a->from = (s->block - HK_LIMIT_BLOCKS) * hk_limit_length(d);
    a->instant = w->last_time;
    hk_limit_most(a, d, &check->outlook);
    hk_limit_stands_at(a, v, w, check);
    return HK_EVENT_RAISED;
  }
  if (s->under >= d->hold)
    return hk_alert_end(a);
  if (!near)
    return 0;
  hk_limit_most(a, d, &check->outlook);
  if (!hk_limit_moved(v, &check->outlook, w->last_time))
    return 0;
  hk_limit_stands_at(a, v, w, check);
  return HK_EVENT_CORRECTED;
}

/* Writes the note on the limit of a raised or corrected event. */
HK_INLINE void hk_limit_note(struct hk_limit_note *note, const struct hk_limit_view *v, const struct hk_limit_check *check)
{
  const double seconds = (double)hk_limit_length(v->detector) / 1e9;
  note->kind = HK_NOTE_LIMIT;
  note->earliest = check->outlook.earliest;
  note->reached = check->outlook.reached;
  note->latest = check->outlook.latest;
  note->limit = check->outlook.limit;
  note->slope = (float)(check->trend.slope / seconds);
  note->blocks = (uint16_t)v->limit->there;
}

/* Processes one accepted point (state warming, ok or gap). Returns 1 if an event was written to *e (all fields but index and
 * slot), else 0. */
HK_INLINE int hk_limit_decide(struct hk_alert *a, const struct hk_limit_view *v, const struct hk_window *w, struct hk_step step,
                              const struct hk_limit_check *check, struct hk_event *e)
{
  const int kind = v->detector->alert == HK_ALERT_OFF ? hk_alert_end(a) : hk_limit_judge(a, v, w, step, check);
  if (kind == 0)
    return 0;
  *e = hk_alert_event(a, w, kind, HK_CHANNEL_LIMIT);
  if (kind != HK_EVENT_CLEARED)
    hk_limit_note(&e->limit, v, check);
  return 1;
}

#endif
