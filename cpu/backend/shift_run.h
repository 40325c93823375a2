/* Processes the points of a sensor with algorithm = shift in a backend on the host: from batch to scores, states and events.
 * Written once, in hk_real. */
#ifndef HK_SHIFT_RUN_H
#define HK_SHIFT_RUN_H

#include "cpu/backend/engine.h"
#include "cpu/shift/alert.h"

/* The spans of a sensor, which are after the ring. */
HK_INLINE struct hk_shift_view hk_sensor_shift(struct hk_sensor *sensor, const struct hk_detector *d)
{
  return hk_shift_view((hk_real *)hk_sensor_samples(sensor) + hk_detector_span(d), d);
}

/* Processes all points of one sensor. */
HK_INLINE void hk_shift_run(struct hk_sensor *sensor, const struct hk_detector *d, struct hk_batch *batch, uint32_t first,
                            uint32_t *next)
{
  const struct hk_shift_view v = hk_sensor_shift(sensor, d);
  hk_real *ring = (hk_real *)hk_sensor_samples(sensor);
  for (uint32_t i = first, following; i != HK_CHAIN_END; i = following) {
    following = next[i];
    double above;
    const struct hk_step step =
        hk_shift_take(&v, &sensor->window, ring, batch->time[i], batch->value[i], batch->arrival, sensor->alert.raised, &above);
    batch->state[i] = step.state;
    batch->score[i] = step.score ? (float)hk_shift_score(above) : (float)NAN;
    if (step.state == HK_STATE_LATE || step.state == HK_STATE_REJECTED)
      continue;
    struct hk_event event;
    if (hk_shift_decide(&sensor->alert, &v, &sensor->window, ring, step, above, &event))
      hk_engine_event(batch, next, i, &event);
  }
}

#endif
