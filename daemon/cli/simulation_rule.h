/* What happens in a simulated recording (pipe_simulation.h). */
#ifndef HK_SIMULATION_RULE_H
#define HK_SIMULATION_RULE_H

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
  uint32_t node; /* of a network, in place of `place`: of the plan; of matrices: an unknown */
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
  double level;     /* of matrices: what boundaries read at first, on the average */
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

#endif
