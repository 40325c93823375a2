/* A kind of simulated process, beside lines of pipes, which pipe_simulation.c simulates itself. Thread: the caller's. */
#ifndef HK_SIMULATION_KIND_H
#define HK_SIMULATION_KIND_H

#include "daemon/cli/simulation_rule.h"

struct hk_simulation_kind {
  /* Makes a process in its steady state; the plan and the rule must stay. chance: of erand48. Returns 0 and *out; -EINVAL: there
   * is no steady state; -E2BIG or -ENOMEM. */
  int (*open)(void **out, const struct hk_model_plan *plan, const struct hk_simulation_rule *rule, unsigned short chance[3]);
  void (*close)(void *process);
  /* Advances to a time of the recording, in s, by dt. Returns 0, -EDOM, -ERANGE or -ENOMEM. */
  int (*step)(void *process, double time, double dt);
  /* The reading of a sensor of the plan, without noise. */
  double (*reading)(const void *process, uint32_t sensor);
};

/* Heat lines (heat_simulation.c): the temperature at the first node follows the day and wanders, the flow is moved now and then
 * and wanders, and places cool. */
extern const struct hk_simulation_kind hk_heat_simulation;
/* Networks of pipes (network_simulation.c): pumps and customers' valves are moved now and then and wander, the outflow at nodes
 * without a meter wanders, and pipes leak. */
extern const struct hk_simulation_kind hk_network_simulation;
/* Processes given as matrices (matrix_simulation.c): boundaries are moved now and then and wander, and an unknown loses
 * something. */
extern const struct hk_simulation_kind hk_matrix_simulation;

#endif
