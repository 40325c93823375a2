/* The profile of a line of a model after its last row: pressure and flow along the line, what its sensors read and what the model
 * has at their places, and what would explain that they differ.
 *
 * The cause. Each check departs by d = its recent mean of nu, less that of the past, in multiples of its mean error c (model.h).
 * Friction that adapts follows a leak, and hides the part of it that is like friction; so what phi moved from the past mean to
 * the recent one is taken out again: s (phi - phi of the past) is added, with s = d y / d phi of the steady line. Hypotheses: a
 * leak at any place of the line, or one sensor, check or boundary, that reads too much. On a steady line each of them would make
 * the checks depart in fixed proportions g, by the derivatives of the steady state (pipeline.h): with R the friction loss up to a
 * place, and k = 2 phi |q|, a flow changed by dq along the line changes the pressure by -k times the integral of dq dR. The
 * hypothesis with the largest share (g . d)^2 / (g . g)(d . d) is the cause. No cause is named while no check departs by
 * HK_PROFILE_DEPARTS, with a single check, or if the share is below HK_PROFILE_SHARE. It is an estimate of a line at rest: while
 * pumps and valves are moved, and within a few transits of a leak's begin, it is wrong.
 *
 * Of a heat line the pressure is the temperature, and only single checks are considered; likewise of a process given as matrices,
 * which has no points. Of a network there are no points, and a
 * leak at each node whose pressure is not given is considered, by the derivatives of the steady network (network.h); only the
 * first HK_PROFILE_CHECKS checks that have departures are, since each costs a solution. A leak at the node of a flow that is a
 * boundary does what that sensor does, and is then said to be the sensor.
 *
 * Thread: that of the model. A profile that was made is plain memory. */
#ifndef HK_MODEL_PROFILE_H
#define HK_MODEL_PROFILE_H

#include "cpu/model/model.h"

#define HK_PROFILE_POINTS 401u /* at most; lines of more cells are thinned out */
#define HK_PROFILE_DEPARTS 2.0 /* c */
#define HK_PROFILE_SHARE 0.6
#define HK_PROFILE_CHECKS 64u

enum hk_cause { HK_CAUSE_NONE, HK_CAUSE_LEAK, HK_CAUSE_SENSOR };

/* A point of the line, in the units of the plan. */
struct hk_profile_point {
  double place; /* m from the first node */
  double pressure, flow;
};

struct hk_profile_sensor {
  uint32_t sensor;      /* of the plan */
  double place;         /* m from the first node; of a network 0 */
  double reading, seen; /* of the last row: the sensor, and the model; NaN: none */
  double recent;        /* mean of the last nu less that of the past; NaN: a boundary, or not known yet */
  double error;         /* c; NaN: likewise */
  double explained;     /* hk_model_explains */
};

struct hk_profile_cause {
  enum hk_cause kind;
  double share;           /* of the departures that it explains, 0..1 */
  double size;            /* of a leak, in the unit of flows; of a sensor, in its own: what it reads too much */
  double place, from, to; /* of a leak in a line: m, and between which places it explains nearly as much */
  uint32_t sensor;        /* of the plan */
};

/* A node of a network where a leak would explain the departures nearly as well as at the best one. */
struct hk_profile_node {
  uint32_t node; /* of the plan */
  double share;
  double size; /* in the unit of flows */
};

struct hk_profile {
  const struct hk_model_plan *plan; /* a reference */
  uint32_t line;
  bool running;
  double friction; /* phi */
  double length;   /* m */
  uint32_t points, sensors;
  struct hk_profile_point *point; /* none if the line does not run */
  struct hk_profile_sensor *sensor;
  struct hk_profile_cause cause;
  uint32_t nodes;               /* if the cause is a leak in a network: */
  struct hk_profile_node *node; /* by falling share */
};

/* Makes the profile of a line of the plan. NULL: no memory. hk_profile_free: NULL is allowed. */
struct hk_profile *hk_profile_new(const struct hk_model *model, uint32_t line);
void hk_profile_free(struct hk_profile *profile);

#endif
