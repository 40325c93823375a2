/* Simulated processes given as matrices: their boundaries are moved now and then, and wander, and something leaves at an unknown.
 * A part of pipe_simulation.h. Thread: the caller's. */
#ifndef HK_MATRIX_SIMULATION_H
#define HK_MATRIX_SIMULATION_H

#include "daemon/cli/simulation_rule.h"

struct hk_matrix_simulation;

/* Makes a process in its steady state; the plan and the rule must stay. chance: of erand48. Returns 0 and *out, -EINVAL: there is
 * no steady state; or -ENOMEM. */
int hk_matrix_simulation_open(struct hk_matrix_simulation **out, const struct hk_model_plan *plan,
                              const struct hk_simulation_rule *rule, unsigned short chance[3]);
void hk_matrix_simulation_close(struct hk_matrix_simulation *simulation); /* NULL is allowed */
/* Advances to a time of the recording, in s, by dt. Returns 0, -EDOM, -ERANGE or -ENOMEM. */
int hk_matrix_simulation_step(struct hk_matrix_simulation *simulation, double time, double dt);
/* What a sensor of the plan would read without noise. */
double hk_matrix_simulation_reading(const struct hk_matrix_simulation *simulation, uint32_t sensor);

#endif
