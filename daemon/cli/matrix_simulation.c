/* Simulated processes given as matrices: see simulation_kind.h. */
#include "daemon/cli/simulated_moves.h"
#include "daemon/cli/simulation_kind.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define LOWEST 0.8 /* lowest and highest value of a boundary, as a multiple of its first value, */
#define HIGHEST 1.2
#define WANDERING 0.01 /* standard deviation of its random changes, likewise, */
#define TAKES 600.0    /* and s that it takes */
#define RISE 60.0      /* s for a move from the lowest to the highest */

struct matrix_simulation {
  const struct hk_model_plan *plan;
  const struct hk_simulation_rule *rule;
  unsigned short *chance;
  struct hk_matrix process;
  double *is, *wander, *more;     /* by boundary; by boundary; by unknown */
  struct hk_simulated_move *move; /* by boundary */
  double sink[HK_SIMULATED_MAX];  /* what leaves by a leak */
  uint32_t *of;                   /* boundary of a sensor; HK_MODEL_NONE: it is a check */
};

/* The values of the boundaries. */
static void drive(struct matrix_simulation *s)
{
  for (uint32_t k = 0; k < s->plan->boundaries; k++)
    s->is[k] = s->rule->level * (s->move[k].now + s->wander[k]);
}

static int matrix_make_parts(struct matrix_simulation *s)
{
  const uint32_t n = s->plan->boundaries;
  char error[160];
  s->is = calloc(n, sizeof *s->is);
  s->wander = calloc(n, sizeof *s->wander);
  s->move = calloc(n, sizeof *s->move);
  s->more = calloc(s->plan->matrix->n, sizeof *s->more);
  s->of = calloc(s->plan->sensors, sizeof *s->of);
  if (!s->is || !s->wander || !s->move || !s->more || !s->of)
    return -ENOMEM;
  for (uint32_t i = 0; i < s->plan->sensors; i++)
    s->of[i] = HK_MODEL_NONE;
  for (uint32_t k = 0; k < n; k++) {
    const double share = LOWEST + (HIGHEST - LOWEST) * erand48(s->chance), wait = n * s->rule->moves;
    s->of[s->plan->line->boundary[k]] = k;
    s->move[k] =
        (struct hk_simulated_move){ share, share, LOWEST, HIGHEST, wait > 0 ? hk_simulated_wait(s->chance, wait) : INFINITY };
  }
  return hk_matrix_open(&s->process, s->plan->matrix, NULL, 0, error, sizeof error) == 0 ? 0 : -ENOMEM;
}

/* The flow out of a leak: a share of the unknown's own term at first. */
static void make_sinks(struct matrix_simulation *s)
{
  const struct hk_market *a = &s->plan->matrix->equations;
  for (uint32_t i = 0; i < s->rule->leaks; i++) {
    const struct hk_simulated_leak *l = &s->rule->leak[i];
    const uint32_t own = hk_market_place(a, l->node, l->node);
    s->sink[i] = own == UINT32_MAX ? 0 : l->share * a->value[own] * s->process.state[l->node];
  }
}

static void matrix_simulation_close(void *process)
{
  struct matrix_simulation *s = process;
  hk_matrix_close(&s->process);
  free(s->is);
  free(s->wander);
  free(s->move);
  free(s->more);
  free(s->of);
  free(s);
}

static int matrix_simulation_open(void **out, const struct hk_model_plan *plan, const struct hk_simulation_rule *rule,
                                  unsigned short chance[3])
{
  struct matrix_simulation *s = calloc(1, sizeof *s);
  if (!s)
    return -ENOMEM;
  s->plan = plan;
  s->rule = rule;
  s->chance = chance;
  int status = matrix_make_parts(s);
  if (status == 0) {
    drive(s);
    status = hk_matrix_steady(&s->process, s->is, rule->friction) == 0 ? 0 : -EINVAL;
  }
  if (status != 0) {
    matrix_simulation_close(s);
    return status;
  }
  make_sinks(s);
  *out = s;
  return 0;
}

static int matrix_simulation_step(void *process, double time, double dt)
{
  struct matrix_simulation *s = process;
  for (uint32_t k = 0; k < s->plan->boundaries; k++) {
    hk_simulated_move_on(&s->move[k], time, dt, RISE, s->plan->boundaries * s->rule->moves, s->chance);
    if (s->rule->moves > 0)
      hk_simulated_wander(&s->wander[k], WANDERING, TAKES, dt, s->chance);
  }
  for (uint32_t i = 0; i < s->rule->leaks; i++)
    s->more[s->rule->leak[i].node] = 0;
  for (uint32_t i = 0; i < s->rule->leaks; i++)
    if (time >= s->rule->leak[i].begin && time < s->rule->leak[i].end)
      s->more[s->rule->leak[i].node] -= s->sink[i];
  drive(s);
  return hk_matrix_step(&s->process, s->is, s->more, dt, s->rule->friction);
}

static double matrix_simulation_reading(const void *process, uint32_t sensor)
{
  const struct matrix_simulation *s = process;
  double value;
  if (s->of[sensor] != HK_MODEL_NONE)
    return s->is[s->of[sensor]];
  hk_matrix_read(&s->process, &s->plan->where[sensor], 1, &value);
  return value;
}

const struct hk_simulation_kind hk_matrix_simulation = { matrix_simulation_open, matrix_simulation_close, matrix_simulation_step,
                                                         matrix_simulation_reading };
