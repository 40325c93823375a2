/* The alert rule of a sensor with algorithm = graph. Written once, for every backend (see window.h for how). alert.h has the
 * rule of the other algorithms, and the structs.
 *
 * Deciding, once for each accepted point (late and rejected points never come here), in this order:
 *  1. The window restarted before this point: over = 0; a raised alert is cleared. Nothing else.
 *  2. quiet, if over 0, is counted down by 1; the point still counts as quiet.
 *  3. Raised before this point: it is *cleared* once the new segment is about to be long enough for a score. Then quiet =
 *     cooldown and over = 0. Nothing else.
 *  4. A score in state ok: it is over if the statistic z > unit * a / (1 - a), where a is the detector's fixed alert, so that the
 *     score is over a. `over` counts consecutive scores that are over; any other score makes it 0.
 *  5. over >= hold, not quiet: *raised*, and the segment begins anew at the split: what is older is dropped from the graph.
 *
 * The change instant is the time of the first sample of the split's node, taken `interval` apart from the last point; it is not
 * estimated again. The levels are the means of what is resident before and after it. */
#ifndef HK_GRAPH_ALERT_H
#define HK_GRAPH_ALERT_H

#include "cpu/alert.h"
#include "cpu/graph_split.h"

/* Mean of n samples, the newest of which is `age` samples old, in the sensor's units, and their standard deviation. */
HK_INLINE double hk_graph_level(const struct hk_window *w, const hk_real *ring, uint32_t span, uint32_t age, uint32_t n,
                                float *spread)
{
  const uint32_t oldest = (w->head + span - age - n) % span;
  double sum = 0;
  for (uint32_t i = 0, at = oldest; i < n; i++, at = at + 1 < span ? at + 1 : 0)
    sum += (double)ring[at];
  *spread = hk_alert_spread(ring, span, oldest, n, sum / n);
  return sum / n + w->reference;
}

/* Rules 1 to 5: the kind of event that happens at this point, 0 for none. */
HK_INLINE int hk_graph_judge(struct hk_alert *a, const struct hk_graph_view *v, const struct hk_window *w, const hk_real *ring,
                             struct hk_step step, const struct hk_graph_split *split)
{
  const struct hk_detector *d = v->detector;
  const bool quiet = a->quiet > 0;
  if (step.restarted) {
    const int kind = a->raised ? HK_EVENT_CLEARED : 0;
    a->over = a->raised = 0;
    return kind;
  }
  a->quiet -= quiet;
  if (a->raised) {
    if (v->graph->live + 1 < 2 * hk_graph_shortest(v))
      return 0;
    a->raised = 0;
    a->quiet = d->cooldown;
    a->over = 0;
    return HK_EVENT_CLEARED;
  }
  if (!step.score)
    return 0;
  const double most = (double)d->threshold;
  const bool over = step.state == HK_STATE_OK && split->z * (1 - most) > hk_graph_unit(v->window) * most;
  a->over = !over ? 0 : a->over < UINT32_MAX ? a->over + 1 : a->over;
  if (a->over < d->hold || quiet)
    return 0;
  const int64_t interval = hk_alert_interval(w, d);
  const uint32_t span = hk_detector_span(d), resident = v->graph->live + v->window - 1, after = resident - split->at;
  a->raised = 1;
  a->number++;
  a->peak = (float)hk_graph_score(split->z, v->window);
  a->from = hk_alert_back(w->last_time, (int64_t)resident - 1, interval);
  a->instant = hk_alert_back(w->last_time, (int64_t)after - 1, interval);
  a->margin = hk_alert_margin(split->z * (1 - most), hk_graph_unit(v->window) * most);
  a->before = hk_graph_level(w, ring, span, after, split->at, &a->spread_before);
  a->after = hk_graph_level(w, ring, span, 0, after, &a->spread_after);
  return HK_EVENT_RAISED;
}

/* Takes one accepted point (state warming, ok or gap). split: what the profile says, looked at when a score is due. Returns 1
 * when an event was written to *e (all fields but index and slot), else 0. After HK_EVENT_RAISED the graph is to be cut at the
 * split. */
HK_INLINE int hk_graph_decide(struct hk_alert *a, const struct hk_graph_view *v, const struct hk_window *w, const hk_real *ring,
                              struct hk_step step, const struct hk_graph_split *split, struct hk_event *e)
{
  const int kind = v->detector->alert == HK_ALERT_OFF ? 0 : hk_graph_judge(a, v, w, ring, step, split);
  if (kind == 0)
    return 0;
  *e = hk_alert_event(a, w, kind, HK_CHANNEL_CHANGE);
  return 1;
}

#endif
