/* What a heat line is that nobody has: the temperature at its first node follows the day and wanders, its flow is moved now and
 * then and wanders, and places cool. A part of pipe_simulation.h. Thread: the caller's. */
#ifndef HK_HEAT_SIMULATION_H
#define HK_HEAT_SIMULATION_H

#include "daemon/cli/pipe_simulation.h"

struct hk_heat_simulation;

/* Makes a line in its steady state; the plan and the rule must stay. chance: of erand48. Returns 0 and *out, -EINVAL: there is no
 * steady state; or -ENOMEM. */
int hk_heat_simulation_open(struct hk_heat_simulation **out, const struct hk_model_plan *plan,
                            const struct hk_simulation_rule *rule, unsigned short chance[3]);
void hk_heat_simulation_close(struct hk_heat_simulation *simulation); /* NULL is allowed */
/* Advances to a time of the recording, in s, by dt. Returns 0, -EDOM or -ERANGE. */
int hk_heat_simulation_step(struct hk_heat_simulation *simulation, double time, double dt);
/* What a sensor of the plan would read without noise. */
double hk_heat_simulation_reading(const struct hk_heat_simulation *simulation, uint32_t sensor);

#endif
