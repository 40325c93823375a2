/* The lines of a plan, which are advanced together, by an implementation: a kind. The host's is in pipelines.h, that of networks
 * in pipelines_network.h, that of matrices in pipelines_matrix.h, a GPU's in gpu/model/pipelines_gpu.h. Kinds differ only by
 * rounding.
 *
 * Thread: the owner's. */
#ifndef HK_PIPELINES_KIND_H
#define HK_PIPELINES_KIND_H

#include "cpu/model/model_plan.h"

/* Input and result of one line in a step. */
struct hk_pipelines_line {
  struct hk_pipeline_end end[2];
  double friction;   /* factor of the friction of all cells */
  uint32_t active;   /* 0: the line is unchanged, and no field below is written */
  int32_t status;    /* 0; -EDOM, -ERANGE: as hk_pipeline_step, and the line is unchanged */
  uint32_t singular; /* point, after -EDOM */
  uint32_t unused;
  const double *drive; /* of a network, in place of `end`: values of its boundaries, as hk_network_step takes them */
};

/* Values of the lines after a step. */
struct hk_pipelines_seen {
  double *value; /* by sensor of the plan: Pa or m^3/s */
  double *flow;  /* m^3/s, two for each line: at its first and at its last node */
};

struct hk_pipelines; /* private to the kind */

/* All functions return 0 or a negative errno; -EIO: a device failed, and the lines are lost. */
struct hk_pipelines_kind {
  /* Makes the lines at rest. number: of threads, or of the device. Returns 0, or -ENOMEM, -ENODEV or -EIO with a message. */
  int (*open)(struct hk_pipelines **out, const struct hk_model_plan *plan, uint32_t number, char *error, size_t size);
  void (*close)(struct hk_pipelines *lines); /* NULL is allowed */
  /* Advances all active lines by dt seconds. */
  int (*step)(struct hk_pipelines *lines, struct hk_pipelines_line *line, double dt, const struct hk_pipelines_seen *seen);
  /* put: sets s and q of all points of one line. get: copies them for all lines, one after the other. */
  int (*put)(struct hk_pipelines *lines, uint32_t line, const double *state);
  int (*get)(struct hk_pipelines *lines, double *state);
  int (*get_line)(struct hk_pipelines *lines, uint32_t line, double *state); /* as `put` sets them; NULL: it cannot */
  bool on_device;                                                            /* a GPU computes */
};

/* Where a model is computed. */
struct hk_pipelines_place {
  const struct hk_pipelines_kind *kind;
  uint32_t number;
};

#endif
