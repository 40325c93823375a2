/* Processes the points of a sensor with algorithm = limit in a backend on the host: from batch to scores, states and events.
 * Written once, in hk_real. */
#ifndef HK_LIMIT_RUN_H
#define HK_LIMIT_RUN_H

#include "cpu/backend/engine.h"
#include "cpu/limit/alert.h"

/* The blocks of a sensor, which are after the ring. */
HK_INLINE struct hk_limit_view hk_sensor_limit(struct hk_sensor *sensor, const struct hk_detector *d)
{
  return hk_limit_view((hk_real *)hk_sensor_samples(sensor) + hk_detector_span(d), d);
}

/* Processes all points of one sensor. */
HK_INLINE void hk_limit_run(struct hk_sensor *sensor, const struct hk_detector *d, struct hk_batch *batch, uint32_t first,
                            uint32_t *next)
{
  const struct hk_limit_view v = hk_sensor_limit(sensor, d);
  hk_real *ring = (hk_real *)hk_sensor_samples(sensor);
  for (uint32_t i = first, following; i != HK_CHAIN_END; i = following) {
    following = next[i];
    struct hk_limit_check check;
    const struct hk_step step =
        hk_limit_take(&v, &sensor->window, ring, batch->time[i], batch->value[i], batch->arrival, sensor->alert.raised, &check);
    batch->state[i] = step.state;
    batch->score[i] = step.score ? (float)hk_limit_score(d, &check.outlook) : (float)NAN;
    if (step.state == HK_STATE_LATE || step.state == HK_STATE_REJECTED)
      continue;
    struct hk_event event;
    if (hk_limit_decide(&sensor->alert, &v, &sensor->window, step, &check, &event))
      hk_engine_event(batch, next, i, &event);
  }
}

#endif
