/* The alert rule of a sensor with algorithm = graph. Written once, for every backend (see window.h for how). cpu/rules/alert.h
 * has the rule of the other algorithms, and the structs.
 *
 * Decision, once for each accepted point (not for late and rejected points), in this order:
 *  1. The window restarted before this point: over = 0; a raised alert is cleared. Nothing else.
 *  2. quiet, if over 0, is counted down by 1; the point still counts as quiet.
 *  3. Raised before this point: it is *cleared* once the new segment is about to be long enough for a score. Then quiet =
 *     cooldown and over = 0. A point before that, where the segment has grown, the change instant is estimated again
 *     (reestimate.h), and with it the levels: *corrected*. Nothing else.
 *  4. A score in state ok: it is over if the statistic z > unit * a / (1 - a), where a is the detector's fixed alert, so that the
 *     score is over a. `over` counts consecutive scores that are over; any other score makes it 0.
 *  5. over >= hold, not quiet: *raised*, and the segment starts over at the split: what is older is dropped from the graph.
 *
 * The change instant is the time of the first sample of the split's node, counted back in steps of `interval` from the last
 * point. The levels are the means of the resident samples before and after it. *raised* and *corrected* carry the sketches of
 * both segments (sketch.h), whose numbers any thread may compute. */
#ifndef HK_GRAPH_ALERT_H
#define HK_GRAPH_ALERT_H

#include "cpu/graph/reestimate.h"
#include "cpu/graph/split.h"

/* Mean and standard deviation of n samples, the newest of which is `age` samples old, in the sensor's units. */
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

/* Sets the instant of the change between older and newer samples, and the levels of both. */
HK_INLINE void hk_graph_place_change(struct hk_alert *a, const struct hk_window *w, const hk_real *ring,
                                     const struct hk_detector *d, struct hk_graph_sides sides)
{
  const uint32_t span = hk_detector_span(d);
  a->instant = hk_alert_back(w->last_time, (int64_t)sides.newer - 1, hk_alert_interval(w, d));
  a->before = hk_graph_level(w, ring, span, sides.newer, sides.older, &a->spread_before);
  a->after = hk_graph_level(w, ring, span, 0, sides.newer, &a->spread_after);
}

/* Rule 3. */
HK_INLINE int hk_graph_go_on(struct hk_alert *a, const struct hk_graph_view *v, const struct hk_window *w, const hk_real *ring,
                             struct hk_step step, int32_t moved, struct hk_graph_sides *sides)
{
  const bool clear = v->graph->live + 1 >= 2 * hk_graph_shortest(v);
  if (hk_graph_looks_again(a, v, w, step)) {
    *sides = hk_graph_sides(a, v, w);
    sides->older = (uint32_t)((int32_t)sides->older + moved);
    sides->newer = (uint32_t)((int32_t)sides->newer - moved);
    hk_graph_place_change(a, w, ring, v->detector, *sides);
    a->settled = 1;
    if (!clear)
      return HK_EVENT_CORRECTED;
  }
  a->since++;
  if (!clear)
    return 0;
  a->raised = 0;
  a->quiet = v->detector->cooldown;
  a->over = 0;
  return HK_EVENT_CLEARED;
}

/* Rules 1 to 5: returns the kind of event at this point, 0 for none. sides: set if it is raised or corrected. */
HK_INLINE int hk_graph_judge(struct hk_alert *a, const struct hk_graph_view *v, const struct hk_window *w, const hk_real *ring,
                             struct hk_step step, const struct hk_graph_split *split, int32_t moved, struct hk_graph_sides *sides)
{
  const struct hk_detector *d = v->detector;
  const bool quiet = a->quiet > 0;
  if (step.restarted)
    return hk_alert_end(a);
  a->quiet -= quiet;
  if (a->raised)
    return hk_graph_go_on(a, v, w, ring, step, moved, sides);
  if (!step.score)
    return 0;
  const double most = (double)d->threshold;
  const bool over = step.state == HK_STATE_OK && split->z * (1 - most) > hk_graph_unit(v->window) * most;
  a->over = !over ? 0 : a->over < UINT32_MAX ? a->over + 1 : a->over;
  if (a->over < d->hold || quiet)
    return 0;
  const uint32_t resident = v->graph->live + v->window - 1;
  sides->older = split->at;
  sides->newer = resident - split->at;
  a->raised = 1;
  a->settled = 0;
  a->since = 0;
  a->number++;
  a->scores = sides->older;
  a->peak = (float)hk_graph_score(split->z, v->window);
  a->from = hk_alert_back(w->last_time, (int64_t)resident - 1, hk_alert_interval(w, d));
  a->margin = hk_alert_margin(split->z * (1 - most), hk_graph_unit(v->window) * most);
  hk_graph_place_change(a, w, ring, d, *sides);
  return HK_EVENT_RAISED;
}

/* Processes one accepted point (state warming, ok or gap). split: result of the profile, read if a score is due. moved: result of
 * hk_graph_moved, read if hk_graph_looks_again. Returns 1 if an event was written to *e (all fields but index, slot and the
 * sketches), else 0. After HK_EVENT_RAISED the caller cuts the graph at the split; that event and HK_EVENT_CORRECTED get sketches
 * of `sides`. */
HK_INLINE int hk_graph_decide(struct hk_alert *a, const struct hk_graph_view *v, const struct hk_window *w, const hk_real *ring,
                              struct hk_step step, const struct hk_graph_split *split, int32_t moved,
                              struct hk_graph_sides *sides, struct hk_event *e)
{
  const int kind =
      v->detector->alert == HK_ALERT_OFF ? hk_alert_end(a) : hk_graph_judge(a, v, w, ring, step, split, moved, sides);
  if (kind == 0)
    return 0;
  *e = hk_alert_event(a, w, kind, HK_CHANNEL_CHANGE);
  return 1;
}

#define HK_GRAPH_SKETCHES (2 * HK_SKETCH_NUMBERS) /* numbers in the sketches of both segments */

/* Whether an event of hk_graph_decide has sketches. */
HK_INLINE bool hk_graph_has_sketches(const struct hk_event *e)
{
  return e->kind == HK_EVENT_RAISED || e->kind == HK_EVENT_CORRECTED;
}

/* Computes number q of the event's sketches, q < HK_GRAPH_SKETCHES. */
HK_INLINE void hk_graph_sketch(struct hk_event *e, const struct hk_graph_view *v, const struct hk_window *w, const hk_real *ring,
                               struct hk_graph_sides sides, uint32_t q)
{
  const uint32_t span = hk_detector_span(v->detector);
  const bool after = q >= HK_SKETCH_NUMBERS;
  struct hk_sketch_view sketch;
  sketch.ring = ring;
  sketch.span = span;
  sketch.n = after ? sides.newer : sides.older;
  sketch.oldest = (w->head + 2 * span - sides.newer - (after ? 0 : sides.older)) % span;
  sketch.window = v->window;
  sketch.mean = (after ? e->after : e->before) - w->reference;
  sketch.spread = (double)(after ? e->spread_after : e->spread_before);
  if (after)
    e->sketch_after.of[q - HK_SKETCH_NUMBERS] = hk_sketch_number(&sketch, q - HK_SKETCH_NUMBERS);
  else
    e->sketch_before.of[q] = hk_sketch_number(&sketch, q);
}

#endif
