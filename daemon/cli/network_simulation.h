/* What a network of pipes is that nobody has: its pumps and its customers' valves are moved now and then and wander, what leaves
 * at nodes without a meter wanders, pipes leak. A part of pipe_simulation.h. Thread: the caller's. */
#ifndef HK_NETWORK_SIMULATION_H
#define HK_NETWORK_SIMULATION_H

#include "daemon/cli/pipe_simulation.h"

struct hk_network_simulation;

/* Makes a network in its steady state; the plan and the rule must stay. chance: of erand48. Returns 0 and *out, -EINVAL: there is
 * no steady state; -E2BIG or -ENOMEM. */
int hk_network_simulation_open(struct hk_network_simulation **out, const struct hk_model_plan *plan,
                               const struct hk_simulation_rule *rule, unsigned short chance[3]);
void hk_network_simulation_close(struct hk_network_simulation *simulation); /* NULL is allowed */
/* Advances to a time of the recording, in s, by dt. Returns 0, -EDOM or -ERANGE. */
int hk_network_simulation_step(struct hk_network_simulation *simulation, double time, double dt);
/* What a sensor of the plan would read without noise. */
double hk_network_simulation_reading(const struct hk_network_simulation *simulation, uint32_t sensor);

#endif
