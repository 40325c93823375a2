/* The members of a model, for model.c and model_state.c. */
#ifndef HK_MODEL_INTERNAL_H
#define HK_MODEL_INTERNAL_H

#include "cpu/model/model.h"

#include <math.h>

#define HK_MODEL_FRICTION_MIN 0.2 /* phi */
#define HK_MODEL_FRICTION_MAX 5.0

/* The state of a model: this head, its lines, their boundaries, its checks, and the states of all points. All numbers have their
 * form in memory, which is little-endian. */
struct hk_model_head {
  uint32_t sensors, points, lines, unused;
  int64_t last; /* row */
};
_Static_assert(sizeof(struct hk_model_head) == 24, "no padding");

struct hk_model_course {
  uint32_t running; /* 0 or 1 */
  uint32_t silent;  /* rows left */
  uint32_t failing; /* successive failed steps */
  uint32_t unused;
  double friction;     /* phi */
  uint64_t taught;     /* number of rows from which friction was learned */
  uint64_t said;       /* number of rows with output, of which there are: */
  double recent, past; /* means of phi, with the weights of those of checks */
};
_Static_assert(sizeof(struct hk_model_course) == 56, "no padding");

struct hk_model_drive {
  double at;     /* last value */
  uint32_t held; /* rows without one */
  uint32_t unused;
};
_Static_assert(sizeof(struct hk_model_drive) == 16, "no padding");

/* Sums over the checks of a line, from which its friction is learned. */
struct hk_model_lesson {
  double above, below;
};

/* Adds a value to a mean, with weight 1/n for the first values, and `slowly` for later ones. */
static inline void hk_model_take(double *mean, double value, uint64_t n, double slowly)
{
  *mean += (value - *mean) * fmax(slowly, 1 / (double)n);
}

static inline double hk_model_within(double value, double bound)
{
  return fmax(-bound, fmin(bound, value));
}

struct hk_model {
  const struct hk_model_plan *plan;
  struct hk_model_rule rule;
  struct hk_pipelines_place place;
  struct hk_pipelines *pipes; /* NULL: the device failed, and there was no memory to continue on the host */
  struct hk_model_head now;
  struct hk_model_drive *drive; /* by boundary, as */
  double *is;                   /* their values in Pa and m^3/s, as hk_network_step takes them */
  struct hk_model_course *line; /* by line, as */
  struct hk_pipelines_line *step;
  enum hk_model_turn *turn;
  uint32_t *singular;             /* point at which a step failed last */
  struct hk_model_lesson *lesson; /* of the current row */
  struct hk_model_check *check;   /* by sensor, as */
  double *nu, *reading, *slope;   /* slope: of a network, derivatives by phi */
  struct hk_pipelines_seen seen;
  double age; /* of a process given as matrices: s, as it was when it began; 0: not since this model was made */
};

#endif
