/* The reference backend: hk_reference_open. One thread, one point after the other, everything in double.
 *
 * Its exported states hold samples and feedback vector rounded to float32, so a sensor that goes through one continues to
 * within that rounding. */
#define HK_REAL double
#define HK_REAL_BITS uint64_t
#include "cpu/backend/alone.h"
#include "cpu/graph/reference.h"
#include "cpu/sst/reference.h"

#include <errno.h>
#include <stdlib.h>

/* Work space of the thread. */
struct worker {
  struct hk_reference *reference;
  struct hk_alone_means alone;
  double x[HK_SPAN_MAX], past[2 * HK_WINDOW_MAX - 1], a0[HK_WINDOW_MAX];
};

static void reference_backend_worker_free(void *worker)
{
  struct worker *self = worker;
  if (self) {
    hk_reference_free(self->reference);
    hk_alone_means_free(&self->alone);
  }
  free(self);
}

static int reference_backend_worker_new(void **out, const struct hk_detector *detectors, uint32_t n_detectors)
{
  uint32_t widest = 0;
  for (uint32_t i = 0; i < n_detectors; i++)
    widest = detectors[i].window > widest ? detectors[i].window : widest;
  struct worker *self = calloc(1, sizeof *self);
  if (!self || hk_reference_new(&self->reference, widest) < 0 || !hk_alone_means_new(&self->alone, detectors, n_detectors)) {
    reference_backend_worker_free(self);
    return -ENOMEM;
  }
  self->alone.graph = (struct hk_graph_kind){ hk_graph_reference_add, hk_graph_profile };
  self->alone.novelty = hk_novelty_pass_plain;
  *out = self;
  return 0;
}

static double *reference_backend_feedback_of(struct hk_sensor *sensor, const struct hk_detector *d)
{
  return (double *)hk_sensor_samples(sensor) + hk_detector_span(d);
}

static void reference_backend_reset(struct hk_sensor *sensor, const struct hk_detector *d)
{
  if (hk_alone(d))
    hk_alone_reset(sensor, d);
  else
    hk_reference_random(reference_backend_feedback_of(sensor, d), sensor->window.seed, d->window);
}

/* Scores a sensor's current window. */
static int reference_backend_score(struct worker *self, struct hk_sensor *sensor, const struct hk_detector *d,
                                   struct hk_reference_score *out)
{
  hk_window_copy(&sensor->window, hk_sensor_samples(sensor), hk_detector_span(d), self->x);
  const struct hk_span_kind kind = hk_span_prepare(&sensor->window, d, self->x, self->past);
  hk_reference_random(self->a0, sensor->window.seed, d->window);
  return hk_reference_score(self->reference, d, kind.past_zero ? NULL : self->past, kind.present_zero ? NULL : self->x + d->gap,
                            self->a0, reference_backend_feedback_of(sensor, d), out);
}

static void reference_backend_run(void *worker, const struct hk_detector *detectors, struct hk_batch *batch,
                                  const struct hk_chain *chain, uint32_t *next, uint32_t n)
{
  for (const struct hk_chain *end = chain + n; chain < end; chain++) {
    struct hk_sensor *sensor = chain->sensor;
    const struct hk_detector *d = &detectors[sensor->detector];
    if (hk_alone(d)) {
      hk_alone_run(&((struct worker *)worker)->alone, sensor, d, batch, chain->first, next);
      continue;
    }
    double *ring = hk_sensor_samples(sensor);
    for (uint32_t i = chain->first, following; i != HK_CHAIN_END; i = following) {
      following = next[i];
      const struct hk_step step =
          hk_window_take(&sensor->window, ring, d, batch->time[i], batch->value[i], batch->arrival, sensor->alert.raised);
      batch->state[i] = step.state;
      batch->score[i] = NAN;
      if (step.state == HK_STATE_LATE || step.state == HK_STATE_REJECTED)
        continue;
      if (step.restarted)
        reference_backend_reset(sensor, d);
      struct hk_reference_score result;
      double z = NAN, share = NAN;
      if (step.score && reference_backend_score(worker, sensor, d, &result) == 0) {
        z = result.z;
        share = result.share;
        batch->score[i] = (float)z;
      }
      struct hk_event event;
      if (hk_alert_decide(&sensor->alert, &sensor->window, ring, d, step, z, share, &event))
        hk_engine_event(batch, next, i, &event);
    }
  }
}

/* Converts the precision of a sample, with the bit that marks it as filled in. */
static float narrow(double x)
{
  float y = (float)x;
  uint32_t bits;
  memcpy(&bits, &y, sizeof bits);
  bits = (bits & ~1u) | hk_sample_filled(x);
  memcpy(&y, &bits, sizeof y);
  return y;
}

static double widen(float x)
{
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return hk_sample_tag((double)x, bits & 1);
}

static int64_t reference_backend_export(struct hk_sensor *sensor, const struct hk_detector *d, void *state, size_t size)
{
  const double *ring = hk_sensor_samples(sensor);
  float narrow_ring[HK_SPAN_MAX], narrow_feedback[HK_WINDOW_MAX];
  for (uint32_t i = 0; i < sensor->window.count; i++)
    narrow_ring[i] = narrow(ring[i]);
  if (hk_alone(d))
    return hk_alone_export(sensor, d, narrow_ring, state, size);
  const size_t bytes = hk_state_size(d, sensor->window.count);
  const double *feedback = reference_backend_feedback_of(sensor, d);
  for (uint32_t i = 0; i < d->window; i++)
    narrow_feedback[i] = (float)feedback[i];
  if (bytes <= size)
    hk_state_write(state, d, &sensor->window, &sensor->alert, narrow_ring, narrow_feedback);
  return (int64_t)bytes;
}

static int reference_backend_import(struct hk_backend *b, uint32_t slot, const void *state, size_t size)
{
  struct hk_engine *e = (struct hk_engine *)b;
  struct hk_sensor *sensor = hk_sensors_at(&e->sensors, slot);
  if (!sensor)
    return -ENOENT;
  const struct hk_detector *d = hk_sensor_detector(&e->sensors, sensor);
  const bool alone = hk_alone(d);
  float narrow_ring[HK_SPAN_MAX], narrow_feedback[HK_WINDOW_MAX];
  const int status = alone ? hk_alone_import(sensor, d, narrow_ring, state, size)
                           : hk_state_read(state, size, d, &sensor->window, &sensor->alert, narrow_ring, narrow_feedback);
  if (status < 0)
    return status;
  double *ring = hk_sensor_samples(sensor), *feedback = reference_backend_feedback_of(sensor, d);
  for (uint32_t i = 0; i < sensor->window.count; i++)
    ring[i] = widen(narrow_ring[i]);
  if (alone)
    hk_alone_imported(sensor, d);
  for (uint32_t i = 0; i < d->window && !alone; i++)
    feedback[i] = (double)narrow_feedback[i];
  return 0;
}

int hk_reference_open(struct hk_backend **out, const struct hk_backend_config *config, char *error, size_t size)
{
  static const struct hk_backend_ops ops = {
    .name = "reference",
    .need = hk_engine_need,
    .add = hk_engine_add,
    .define = hk_engine_define,
    .limit = hk_engine_limit,
    .remove = hk_engine_remove,
    .submit = hk_engine_submit,
    .reap = hk_engine_reap,
    .wait = hk_engine_wait,
    .export_ = hk_engine_export,
    .import_ = reference_backend_import,
    .image_most = hk_engine_image_most,
    .state_of = hk_engine_state_of,
    .alloc = hk_engine_alloc,
    .free = hk_engine_free,
    .close = hk_engine_close,
  };
  static const struct hk_engine_kind kind = {
    .sample_size = sizeof(hk_real),
    .lapack = true,
    .worker_new = reference_backend_worker_new,
    .worker_free = reference_backend_worker_free,
    .reset = reference_backend_reset,
    .run = reference_backend_run,
    .export_ = reference_backend_export,
  };
  return hk_engine_open(out, &ops, &kind, config, 1, error, size);
}
