/* Processes the points of a sensor with algorithm = novelty in a backend on the host: from batch to scores, states and events.
 * Written once, in hk_real; a backend provides its own pass over the resident data. */
#ifndef HK_NOVELTY_RUN_H
#define HK_NOVELTY_RUN_H

#include "cpu/backend/engine.h"
#include "cpu/novelty/alert.h"

/* The columns of a sensor, which are after the ring. */
HK_INLINE struct hk_novelty_view hk_sensor_novelty(struct hk_sensor *sensor, const struct hk_detector *d)
{
  return hk_novelty_view((hk_real *)hk_sensor_samples(sensor) + hk_detector_span(d), d);
}

/* Accepted points of a sensor that wait for the pass. */
struct hk_novelty_waiting {
  struct hk_novelty_point point[HK_BATCH_PER_SENSOR];
  struct hk_step step[HK_BATCH_PER_SENSOR];
  uint32_t index[HK_BATCH_PER_SENSOR]; /* index in the batch */
  uint32_t n;
};

/* Makes the pass over the resident data for the waiting points, and judges them one after the other. */
HK_INLINE void hk_novelty_judge_all(hk_novelty_pass *pass, struct hk_sensor *sensor, const struct hk_novelty_view *v,
                                    struct hk_novelty_waiting *waiting, struct hk_batch *batch, uint32_t *next)
{
  const hk_real *ring = (const hk_real *)hk_sensor_samples(sensor);
  const double threshold = v->detector->alert == HK_ALERT_OFF ? (double)INFINITY : hk_novelty_s((double)v->detector->threshold);
  pass(v, ring, waiting->point, waiting->n);
  for (uint32_t i = 0; i < waiting->n; i++) {
    const uint32_t at = waiting->index[i];
    const struct hk_novelty_result rating = hk_novelty_rate_from(v->novelty, &waiting->point[i], &v->novelty->memo,
                                                                 sensor->alert.raised ? -(double)INFINITY : threshold);
    if (waiting->step[i].score)
      batch->score[at] = (float)hk_novelty_score(rating.s);
    struct hk_event event;
    if (hk_novelty_decide(&sensor->alert, v, &sensor->window, ring, &waiting->point[i], waiting->step[i], &rating, &event))
      hk_engine_event(batch, next, at, &event);
  }
  waiting->n = 0;
}

/* Processes all points of one sensor. waiting: work space, without points. */
HK_INLINE void hk_novelty_run(hk_novelty_pass *pass, struct hk_novelty_waiting *waiting, struct hk_sensor *sensor,
                              const struct hk_detector *d, struct hk_batch *batch, uint32_t first, uint32_t *next)
{
  const struct hk_novelty_view v = hk_sensor_novelty(sensor, d);
  for (uint32_t i = first, following; i != HK_CHAIN_END; i = following) {
    following = next[i];
    struct hk_novelty_point point;
    if (sensor->window.anew) /* this point may overwrite what the earlier ones are compared with */
      hk_novelty_judge_all(pass, sensor, &v, waiting, batch, next);
    const struct hk_step step = hk_novelty_take(&v, &sensor->window, (hk_real *)hk_sensor_samples(sensor), batch->time[i],
                                                batch->value[i], batch->arrival, &point);
    batch->state[i] = step.state;
    batch->score[i] = (float)NAN;
    if (step.state == HK_STATE_LATE || step.state == HK_STATE_REJECTED)
      continue;
    if (point.age == 0) /* the lags start over with this point, so the earlier ones are judged first */
      hk_novelty_judge_all(pass, sensor, &v, waiting, batch, next);
    waiting->point[waiting->n] = point;
    waiting->step[waiting->n] = step;
    waiting->index[waiting->n++] = i;
  }
  hk_novelty_judge_all(pass, sensor, &v, waiting, batch, next);
}

#endif
