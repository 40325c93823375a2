/* Processes the points of a sensor with algorithm = graph in a backend on the host: from batch to scores, states and events.
 * Written once, in hk_real; a backend provides its own functions to add a node and to find the best split. */
#ifndef HK_GRAPH_RUN_H
#define HK_GRAPH_RUN_H

#include "cpu/backend/engine.h"
#include "cpu/graph/alert.h"

/* The functions of a backend. */
struct hk_graph_kind {
  hk_graph_add_node *add;
  struct hk_graph_split (*profile)(const struct hk_graph_view *v, const struct hk_graph_counts *counts);
};

/* Allocates the counts for any of the detectors, in one piece that begins at `earlier`, which the caller frees. False: out of
 * memory. */
HK_INLINE bool hk_graph_counts_new(struct hk_graph_counts *counts, const struct hk_detector *detectors, uint32_t n_detectors)
{
  uint32_t room = 0;
  for (uint32_t i = 0; i < n_detectors; i++) {
    if (detectors[i].algorithm == HK_ALGORITHM_GRAPH && hk_graph_room(&detectors[i]) > room)
      room = hk_graph_room(&detectors[i]);
  }
  const size_t each = room + HK_GRAPH_LANES; /* whole vectors */
  counts->earlier = aligned_alloc(64, each * (2 * sizeof *counts->earlier + sizeof *counts->f1));
  if (!counts->earlier)
    return false;
  counts->later = counts->earlier + each;
  counts->f1 = (float *)(counts->later + each);
  return true;
}

/* The graph of a sensor, which is after the ring. */
HK_INLINE struct hk_graph_view hk_sensor_graph(struct hk_sensor *sensor, const struct hk_detector *d)
{
  return hk_graph_view((hk_real *)hk_sensor_samples(sensor) + hk_detector_span(d), d);
}

/* Estimates the change instant again: as hk_graph_moved. */
HK_INLINE int32_t hk_graph_look_again(const struct hk_alert *a, const struct hk_graph_view *v, const struct hk_window *w,
                                      const hk_real *ring)
{
  int32_t nearest[HK_AGAIN_ROWS];
  const struct hk_graph_sides sides = hk_graph_sides(a, v, w);
  for (uint32_t row = 0; row < hk_again_rows(v); row++)
    nearest[row] = hk_graph_nearest(v, w, ring, sides, row);
  return hk_graph_moved(v, nearest);
}

/* Processes all points of one sensor. */
HK_INLINE void hk_graph_run(const struct hk_graph_kind *kind, const struct hk_graph_counts *counts, struct hk_sensor *sensor,
                            const struct hk_detector *d, struct hk_batch *batch, uint32_t first, uint32_t *next)
{
  struct hk_graph_view v = hk_sensor_graph(sensor, d);
  hk_real *ring = (hk_real *)hk_sensor_samples(sensor);
  for (uint32_t i = first, following; i != HK_CHAIN_END; i = following) {
    following = next[i];
    const struct hk_step step = hk_graph_take(&v, &sensor->window, ring, batch->time[i], batch->value[i], batch->arrival,
                                              sensor->alert.raised, kind->add);
    batch->state[i] = step.state;
    batch->score[i] = (float)NAN;
    if (step.state == HK_STATE_LATE || step.state == HK_STATE_REJECTED)
      continue;
    struct hk_graph_split split = { 0, 0 };
    if (step.score) {
      split = kind->profile(&v, counts);
      batch->score[i] = (float)hk_graph_score(split.z, v.window);
    }
    const bool again = hk_graph_looks_again(&sensor->alert, &v, &sensor->window, step);
    const int32_t moved = again ? hk_graph_look_again(&sensor->alert, &v, &sensor->window, ring) : 0;
    struct hk_event event;
    struct hk_graph_sides sides = { 0, 0 };
    if (!hk_graph_decide(&sensor->alert, &v, &sensor->window, ring, step, &split, moved, &sides, &event))
      continue;
    for (uint32_t q = 0; hk_graph_has_sketches(&event) && q < HK_GRAPH_SKETCHES; q++)
      hk_graph_sketch(&event, &v, &sensor->window, ring, sides, q);
    if (event.kind == HK_EVENT_RAISED)
      hk_graph_cut(&v, split.at);
    hk_engine_event(batch, next, i, &event);
  }
}

#endif
