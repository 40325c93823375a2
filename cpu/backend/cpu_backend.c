/* The cpu backend: hk_cpu_open. float32, worker threads, scores computed in groups.
 *
 * A thread gets a run of sensors with their points. It processes them in rounds, the first point of every sensor, then the
 * second, and so on, and collects due scores until a group is full, so that the small eigenproblems of several sensors are solved
 * side by side. What follows a score (the alert, and with it the hold of the baseline) needs the score, so a sensor with a
 * pending score waits until its group is scored.
 *
 * Sensors with algorithm = graph, shift, novelty or limit are scored alone, one after the other, each with all of its points.
 *
 * A score does not depend on its group, so results depend neither on the number of threads nor on the division into batches. */
#include "cpu/backend/alone.h"
#include "cpu/sst/kernels.h"
#include "cpu/sst/score.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

/* A point whose score is pending. */
struct pending {
  struct hk_sensor *sensor;
  uint32_t point;
  struct hk_step step;
};

/* Work space of one thread. */
struct worker {
  struct hk_scorer *scorer;
  struct hk_alone_means alone;
  uint32_t n; /* tasks in the group */
  struct hk_task task[HK_GROUP];
  struct pending pending[HK_GROUP];
};

static void cpu_backend_worker_free(void *worker)
{
  struct worker *self = worker;
  if (self) {
    hk_scorer_free(self->scorer);
    hk_alone_means_free(&self->alone);
  }
  free(self);
}

static int cpu_backend_worker_new(void **out, const struct hk_detector *detectors, uint32_t n_detectors)
{
  const size_t lines = (sizeof(struct worker) + 63) / 64;
  struct worker *self = aligned_alloc(64, lines * 64); /* shares no cache line with another thread's */
  if (!self)
    return -ENOMEM;
  memset(self, 0, sizeof *self);
  self->alone.graph = (struct hk_graph_kind){ hk_kernels()->add_node, hk_kernels()->best_split };
  self->alone.novelty = hk_kernels()->novelty_pass;
  if (hk_scorer_new(&self->scorer, detectors, n_detectors) < 0 || !hk_alone_means_new(&self->alone, detectors, n_detectors)) {
    cpu_backend_worker_free(self);
    return -ENOMEM;
  }
  *out = self;
  return 0;
}

static float *cpu_backend_feedback_of(struct hk_sensor *sensor, const struct hk_detector *d)
{
  return (float *)hk_sensor_samples(sensor) + hk_detector_span(d);
}

static void cpu_backend_reset(struct hk_sensor *sensor, const struct hk_detector *d)
{
  if (hk_alone(d))
    hk_alone_reset(sensor, d);
  else
    hk_feedback_reset(cpu_backend_feedback_of(sensor, d), sensor->window.seed, d->window);
}

static void cpu_backend_decide(struct hk_sensor *sensor, const struct hk_detector *d, struct hk_batch *batch, uint32_t *next,
                               uint32_t point, struct hk_step step, double z, double share)
{
  struct hk_event event;
  if (hk_alert_decide(&sensor->alert, &sensor->window, hk_sensor_samples(sensor), d, step, z, share, &event))
    hk_engine_event(batch, next, point, &event);
}

/* Scores the group and applies the alert rule to each of its points. All are of detector d. */
static void flush(struct worker *self, const struct hk_detector *d, struct hk_batch *batch, uint32_t *next)
{
  hk_score(self->scorer, d, self->task, self->n);
  for (uint32_t i = 0; i < self->n; i++) {
    const struct pending *p = &self->pending[i];
    batch->score[p->point] = self->task[i].z;
    cpu_backend_decide(p->sensor, d, batch, next, p->point, p->step, (double)self->task[i].z, (double)self->task[i].share);
  }
  self->n = 0;
}

/* Processes one point; adds its score, if due, to the group. Returns whether a score was added. Flattened, because hk_window_take
 * has other callers and would not be inlined: 70 instructions for each point. */
__attribute__((flatten)) static bool take(struct worker *self, struct hk_sensor *sensor, const struct hk_detector *d,
                                          struct hk_batch *batch, uint32_t *next, uint32_t point)
{
  float *ring = hk_sensor_samples(sensor);
  const struct hk_step step =
      hk_window_take(&sensor->window, ring, d, batch->time[point], batch->value[point], batch->arrival, sensor->alert.raised);
  batch->state[point] = step.state;
  batch->score[point] = NAN;
  if (step.state == HK_STATE_LATE || step.state == HK_STATE_REJECTED)
    return false;
  if (step.restarted)
    cpu_backend_reset(sensor, d);
  if (!step.score) {
    cpu_backend_decide(sensor, d, batch, next, point, step, NAN, NAN);
    return false;
  }
  self->task[self->n] =
      (struct hk_task){ .window = &sensor->window, .ring = ring, .feedback = cpu_backend_feedback_of(sensor, d) };
  self->pending[self->n] = (struct pending){ sensor, point, step };
  self->n++;
  return true;
}

/* Processes sensors of one detector. */
static void run_detector(struct worker *self, const struct hk_detector *d, struct hk_batch *batch, const struct hk_chain *chain,
                         uint32_t *next, uint32_t n)
{
  uint32_t alive[HK_RUN_MAX], point[HK_RUN_MAX]; /* sensors with points left, and their next ones */
  bool waits[HK_RUN_MAX] = { false };            /* the sensor's score is pending */
  for (uint32_t i = 0; i < n; i++) {
    alive[i] = i;
    point[i] = chain[i].first;
  }
  while (n > 0) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < n; i++) {
      const uint32_t at = alive[i], now = point[at];
      if (waits[at] || self->n == HK_GROUP) {
        flush(self, d, batch, next);
        memset(waits, 0, sizeof waits);
      }
      point[at] = next[now];
      waits[at] = take(self, chain[at].sensor, d, batch, next, now);
      if (point[at] != HK_CHAIN_END)
        alive[left++] = at;
    }
    n = left;
  }
  if (self->n > 0)
    flush(self, d, batch, next);
}

/* Processes sensors of one detector that are scored one by one. */
static void run_alone(struct worker *self, const struct hk_detector *d, struct hk_batch *batch, const struct hk_chain *chain,
                      uint32_t *next, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    hk_alone_run(&self->alone, chain[i].sensor, d, batch, chain[i].first, next);
}

static void cpu_backend_run(void *worker, const struct hk_detector *detectors, struct hk_batch *batch,
                            const struct hk_chain *chain, uint32_t *next, uint32_t n)
{
  for (uint32_t from = 0, to; from < n; from = to) {
    const uint32_t detector = chain[from].sensor->detector;
    for (to = from; to < n && chain[to].sensor->detector == detector; to++)
      continue;
    (hk_alone(&detectors[detector]) ? run_alone : run_detector)(worker, &detectors[detector], batch, chain + from, next,
                                                                to - from);
  }
}

static int64_t cpu_backend_export(struct hk_sensor *sensor, const struct hk_detector *d, void *state, size_t size)
{
  if (hk_alone(d))
    return hk_alone_export(sensor, d, hk_sensor_samples(sensor), state, size);
  const size_t bytes = hk_state_size(d, sensor->window.count);
  if (bytes <= size)
    hk_state_write(state, d, &sensor->window, &sensor->alert, hk_sensor_samples(sensor), cpu_backend_feedback_of(sensor, d));
  return (int64_t)bytes;
}

static int cpu_backend_import(struct hk_backend *b, uint32_t slot, const void *state, size_t size)
{
  struct hk_engine *e = (struct hk_engine *)b;
  struct hk_sensor *sensor = hk_sensors_at(&e->sensors, slot);
  if (!sensor)
    return -ENOENT;
  const struct hk_detector *d = hk_sensor_detector(&e->sensors, sensor);
  if (hk_alone(d)) {
    float ring[HK_SPAN_MAX];
    const int status = hk_alone_import(sensor, d, ring, state, size);
    if (status == 0) {
      memcpy(hk_sensor_samples(sensor), ring, sensor->window.count * sizeof *ring);
      hk_alone_imported(sensor, d);
    }
    return status;
  }
  return hk_state_read(state, size, d, &sensor->window, &sensor->alert, hk_sensor_samples(sensor),
                       cpu_backend_feedback_of(sensor, d));
}

/* Number of cores that this process may use. */
static uint32_t cores(void)
{
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

int hk_cpu_open(struct hk_backend **out, const struct hk_backend_config *config, char *error, size_t size)
{
  static const struct hk_backend_ops ops = {
    .name = "cpu",
    .need = hk_engine_need,
    .add = hk_engine_add,
    .define = hk_engine_define,
    .limit = hk_engine_limit,
    .remove = hk_engine_remove,
    .submit = hk_engine_submit,
    .reap = hk_engine_reap,
    .wait = hk_engine_wait,
    .export_ = hk_engine_export,
    .import_ = cpu_backend_import,
    .image_most = hk_engine_image_most,
    .state_of = hk_engine_state_of,
    .alloc = hk_engine_alloc,
    .free = hk_engine_free,
    .close = hk_engine_close,
  };
  static const struct hk_engine_kind kind = {
    .sample_size = sizeof(hk_real),
    .worker_new = cpu_backend_worker_new,
    .worker_free = cpu_backend_worker_free,
    .reset = cpu_backend_reset,
    .run = cpu_backend_run,
    .export_ = cpu_backend_export,
  };
  return hk_engine_open(out, &ops, &kind, config, config->threads ? config->threads : cores(), error, size);
}
