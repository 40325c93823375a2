/* Simulated recordings of a line of pipes, or of another process (simulation_kind.h): the readings
 * of a model file's sensors while a pump at the first node and a valve at the last one are moved from time to time, pipes leak,
 * and sensors fail.
 *
 * The simulated line is the model's (cpu/model/pipeline.h), but with a finer grid and another friction than in the file, so that
 * a model of the same file has errors like models of real lines. The same rule gives the same numbers. Thread: the caller's. */
#ifndef HK_PIPE_SIMULATION_H
#define HK_PIPE_SIMULATION_H

#include "daemon/cli/simulation_rule.h"

struct hk_simulation;

struct hk_simulation_rule hk_simulation_default(void);
/* The cell of a line, `finer` times as many as the plan has, in which a place lies. */
uint32_t hk_simulation_cell(const struct hk_model_plan *plan, uint32_t line, uint32_t finer, double place);
/* 0 and *out; -EINVAL: the line has no steady state with these keys; -ENOMEM. The plan must stay. */
int hk_simulation_open(struct hk_simulation **out, const struct hk_model_plan *plan, const struct hk_simulation_rule *rule);
void hk_simulation_close(struct hk_simulation *simulation); /* NULL is fine */
/* The next reading of each sensor of the line, of the numbers by sensor of the plan; NaN: there is none. 0; -ERANGE or -EDOM: the
 * line cannot be solved. */
int hk_simulation_read(struct hk_simulation *simulation, double *value);

#endif
