/* Sensors that a backend on the host scores one by one, algorithm = graph, shift, novelty or limit: common functions to reset
 * them, process their points, export and import them. Written once, in hk_real; a state has a ring of float32 whatever hk_real
 * is. */
#ifndef HK_ALONE_H
#define HK_ALONE_H

#include "cpu/backend/graph_run.h"
#include "cpu/backend/limit_run.h"
#include "cpu/backend/novelty_run.h"
#include "cpu/backend/shift_run.h"
#include "cpu/graph/state.h"
#include "cpu/limit/state.h"
#include "cpu/novelty/state.h"
#include "cpu/shift/state.h"

/* What a thread of the backend needs for such sensors. Zero-initialise. */
struct hk_alone_means {
  struct hk_graph_kind graph; /* functions of the backend */
  hk_novelty_pass *novelty;
  struct hk_graph_counts counts; /* work space */
  struct hk_novelty_waiting *waiting;
};

/* Allocates the work space for any of the detectors. False: out of memory. Call hk_alone_means_free in both cases. */
HK_INLINE bool hk_alone_means_new(struct hk_alone_means *means, const struct hk_detector *detectors, uint32_t n_detectors)
{
  means->waiting = (struct hk_novelty_waiting *)calloc(1, sizeof *means->waiting);
  return means->waiting && hk_graph_counts_new(&means->counts, detectors, n_detectors);
}

HK_INLINE void hk_alone_means_free(struct hk_alone_means *means)
{
  free(means->counts.earlier);
  free(means->waiting);
}

HK_INLINE bool hk_alone(const struct hk_detector *d)
{
  return d->algorithm != HK_ALGORITHM_IKA && d->algorithm != HK_ALGORITHM_SVD;
}

/* Resets the data after the ring to that of a sensor without points. */
HK_INLINE void hk_alone_reset(struct hk_sensor *sensor, const struct hk_detector *d)
{
  if (d->algorithm == HK_ALGORITHM_GRAPH) {
    struct hk_graph_view v = hk_sensor_graph(sensor, d);
    hk_graph_reset(&v, false);
  } else if (d->algorithm == HK_ALGORITHM_SHIFT) {
    const struct hk_shift_view v = hk_sensor_shift(sensor, d);
    hk_shift_reset(&v);
  } else if (d->algorithm == HK_ALGORITHM_LIMIT) {
    const struct hk_limit_view v = hk_sensor_limit(sensor, d);
    hk_limit_reset(&v);
  } else {
    const struct hk_novelty_view v = hk_sensor_novelty(sensor, d);
    hk_novelty_reset(&v);
  }
}

/* Processes all points of one sensor. */
HK_INLINE void hk_alone_run(const struct hk_alone_means *means, struct hk_sensor *sensor, const struct hk_detector *d,
                            struct hk_batch *batch, uint32_t first, uint32_t *next)
{
  if (d->algorithm == HK_ALGORITHM_GRAPH)
    hk_graph_run(&means->graph, &means->counts, sensor, d, batch, first, next);
  else if (d->algorithm == HK_ALGORITHM_SHIFT)
    hk_shift_run(sensor, d, batch, first, next);
  else if (d->algorithm == HK_ALGORITHM_LIMIT)
    hk_limit_run(sensor, d, batch, first, next);
  else
    hk_novelty_run(means->novelty, means->waiting, sensor, d, batch, first, next);
}

/* Writes the state of a sensor whose samples are in `ring`. Returns its bytes, and writes nothing if they exceed `size`. */
HK_INLINE int64_t hk_alone_export(struct hk_sensor *sensor, const struct hk_detector *d, const float *ring, void *state,
                                  size_t size)
{
  if (d->algorithm == HK_ALGORITHM_GRAPH) {
    const struct hk_graph_view v = hk_sensor_graph(sensor, d);
    return hk_graph_export(&sensor->window, &sensor->alert, &v, ring, state, size);
  }
  if (d->algorithm == HK_ALGORITHM_NOVELTY) {
    const struct hk_novelty_view v = hk_sensor_novelty(sensor, d);
    return hk_novelty_export(&sensor->window, &sensor->alert, &v, ring, state, size);
  }
  if (d->algorithm == HK_ALGORITHM_LIMIT) {
    const struct hk_limit_view v = hk_sensor_limit(sensor, d);
    return hk_limit_export(&sensor->window, &sensor->alert, &v, ring, state, size);
  }
  const struct hk_shift_view v = hk_sensor_shift(sensor, d);
  return hk_shift_export(&sensor->window, &sensor->alert, &v, ring, state, size);
}

/* Reads a state and copies its samples to `ring`, room for hk_detector_span(d). The backend then copies them into the sensor's
 * ring and calls hk_alone_imported, which updates the rest. Returns 0, -EINVAL (not a valid state) or -ENOMEM; after an error the
 * sensor is unchanged. */
HK_INLINE int hk_alone_import(struct hk_sensor *sensor, const struct hk_detector *d, float *ring, const void *state, size_t size)
{
  if (d->algorithm == HK_ALGORITHM_GRAPH) {
    const struct hk_graph_view v = hk_sensor_graph(sensor, d);
    return hk_graph_import(&sensor->window, &sensor->alert, &v, ring, state, size);
  }
  if (d->algorithm == HK_ALGORITHM_NOVELTY) {
    const struct hk_novelty_view v = hk_sensor_novelty(sensor, d);
    return hk_novelty_import(&sensor->window, &sensor->alert, &v, ring, state, size);
  }
  if (d->algorithm == HK_ALGORITHM_LIMIT) {
    const struct hk_limit_view v = hk_sensor_limit(sensor, d);
    return hk_limit_import(&sensor->window, &sensor->alert, &v, ring, state, size);
  }
  const struct hk_shift_view v = hk_sensor_shift(sensor, d);
  return hk_shift_import(&sensor->window, &sensor->alert, &v, ring, state, size);
}

HK_INLINE void hk_alone_imported(struct hk_sensor *sensor, const struct hk_detector *d)
{
  if (d->algorithm != HK_ALGORITHM_SHIFT)
    return;
  const struct hk_shift_view v = hk_sensor_shift(sensor, d);
  hk_shift_spans(&v, &sensor->window, hk_sensor_samples(sensor));
}

#endif
