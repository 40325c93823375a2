/* Simulated recordings of a line of pipes, of a heat line (heat_simulation.h) or a network (network_simulation.h): the readings
 * of a model file's sensors while a pump at the first node and a valve at the last one are moved from time to time, pipes leak,
 * and sensors fail.
 *
 * The simulated line is the model's (cpu/model/pipeline.h), but with a finer grid and another friction than in the file, so that
 * a model of the same file has errors like models of real lines. The same rule gives the same numbers. Thread: the caller's. */
#ifndef HK_PIPE_SIMULATION_H
#define HK_PIPE_SIMULATION_H

#include "cpu/model/model_plan.h"

#define HK_SIMULATED_MAX 16 /* leaks, and faults */

enum hk_simulated_fault {
  HK_FAULT_BIAS,   /* reads too much by `size`, in the sensor's unit */
  HK_FAULT_DRIFT,  /* by `size` more each hour */
  HK_FAULT_FROZEN, /* reads what it read when it began */
  HK_FAULT_GAP,    /* reads nothing */
};

/* From `begin` to `end`, in s of the recording. */
struct hk_simulated_leak {
  double begin, end;
  double share;  /* of the flow at first; what leaves grows as the root of the pressure. Of a heat line: heat that is lost at the
                  * place beside that of the file, as a share of the whole line's */
  double place;  /* m from the first node */
  uint32_t line; /* of the plan */
  uint32_t node; /* of a network, in place of `place`: of the plan; */
  uint32_t pipe; /* if it is not HK_MODEL_NONE: the middle of that pipe */
};

struct hk_simulated_bad_sensor {
  double begin, end;
  uint32_t sensor; /* of the plan */
  enum hk_simulated_fault fault;
  double size;
};

struct hk_simulation_rule {
  uint32_t line;    /* of the plan, that is simulated */
  double interval;  /* s between readings */
  uint64_t seed;    /* of all that happens by chance */
  double velocity;  /* m/s in the first pipe, at first */
  double noise;     /* standard deviation of readings, as a share of what each sensor reads at first */
  double unmetered; /* of a network: standard deviation of what leaves at a node without a meter, as a share of it */
  double moves;     /* s between two moves of pump or valve, on the average; 0: they stand still */
  double friction;  /* of the line, as a multiple of what the file says, */
  double wave;      /* and its wave speed */
  uint32_t finer;   /* cells that one of the file's is cut into */
  uint32_t leaks, faults;
  struct hk_simulated_leak leak[HK_SIMULATED_MAX];
  struct hk_simulated_bad_sensor bad[HK_SIMULATED_MAX];
};

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
