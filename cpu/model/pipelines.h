/* The lines of a plan, each a pipeline.h, which go on together: what computes them is a kind, of which the host's is here and a
 * GPU's is gpu/model/pipelines_gpu.h. Kinds differ by rounding alone.
 *
 * Thread: the owner's. */
#ifndef HK_PIPELINES_H
#define HK_PIPELINES_H

#include "cpu/model/model_plan.h"

/* A line in a step. */
struct hk_pipelines_line {
  struct hk_pipeline_end end[2];
  double friction;   /* what that of all cells is multiplied by */
  uint32_t active;   /* 0: it stays as it is, and nothing below is written */
  int32_t status;    /* 0; -EDOM, -ERANGE: as hk_pipeline_step; then it stays as it is */
  uint32_t singular; /* point, after -EDOM */
  uint32_t unused;
};

/* What the lines have after a step. */
struct hk_pipelines_seen {
  double *value; /* by sensor of the plan: Pa or m^3/s */
  double *flow;  /* m^3/s, two of each line: at its first and at its last node */
};

struct hk_pipelines; /* the kind's own */

/* All return 0 or a negative errno; -EIO: a device failed, and nothing is said of the lines any more. */
struct hk_pipelines_kind {
  /* At rest. number: threads, or which device. *error: why not. -ENOMEM, -ENODEV, -EIO. */
  int (*open)(struct hk_pipelines **out, const struct hk_model_plan *plan, uint32_t number, char *error, size_t size);
  void (*close)(struct hk_pipelines *lines); /* NULL is allowed */
  /* dt seconds on, all lines that are active. */
  int (*step)(struct hk_pipelines *lines, struct hk_pipelines_line *line, double dt, const struct hk_pipelines_seen *seen);
  /* s and q of all points, of one line; of all, one after the other. */
  int (*put)(struct hk_pipelines *lines, uint32_t line, const double *state);
  int (*get)(struct hk_pipelines *lines, double *state);
};

/* Of the host; number: threads, 0: one for each core; no more than lines. */
extern const struct hk_pipelines_kind hk_pipelines_host;
/* Bytes of it with one thread, more or less. */
uint64_t hk_pipelines_need(const struct hk_model_plan *plan);

/* The seconds that a step of all lines takes on one thread here: that of the longest line, the median of some, times what all
 * have. Negative errno: it cannot be solved. */
int hk_pipelines_measure(const struct hk_model_plan *plan, double interval, double *seconds);

/* Lines from which on a GPU is the faster one: one alone takes it several times as long as a core. */
#define HK_PIPELINES_DEVICE_LEAST 32u

/* Where a model is computed. */
struct hk_pipelines_place {
  const struct hk_pipelines_kind *kind;
  uint32_t number;
};

#endif
