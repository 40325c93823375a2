/* Simulated heat lines: see simulation_kind.h. */
#include "daemon/cli/pipe_simulation.h"
#include "daemon/cli/simulated_moves.h"
#include "daemon/cli/simulation_kind.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define DAY 86400.0    /* s */
#define EXCESS 72.0    /* over the ground at the first node, on the average, */
#define DAILY 6.0      /* and by how much it is higher in the morning than that */
#define TURNS 1.5      /* standard deviation of what wanders of the temperature, */
#define TURNING 7200.0 /* and s that it takes */
#define DRAWS 0.05     /* the same of the flow, as a share */
#define DRAWING 1800.0
#define RAMP 300.0 /* s for a move of the flow from its lowest to its highest */
#define LOW 0.7    /* flow at its lowest and highest, as a multiple of that at first */
#define HIGH 1.2

struct heat_simulation {
  const struct hk_model_plan *plan;
  const struct hk_simulation_rule *rule;
  unsigned short *chance;
  struct hk_heat_line line;
  struct hk_heat_cell *cell;
  struct hk_band_work work;
  double *more;         /* m^3/s by cell */
  double flow;          /* m^3/s at first */
  double turned, drawn; /* what the temperature and the share of the flow wander by */
  struct hk_simulated_move share;
};

static double inlet(const struct heat_simulation *s, double time)
{
  return s->plan->ground + EXCESS + DAILY * sin(2 * 3.14159265358979323846 * time / DAY) + s->turned;
}

static double flow_of(const struct heat_simulation *s)
{
  return s->flow * fmax(0.1, s->share.now + s->drawn);
}

static void heat_simulation_close(void *process)
{
  struct heat_simulation *s = process;
  hk_band_close(&s->work);
  free(s->cell);
  free(s->more);
  free(s->line.state);
  free(s->line.memory);
  free(s);
}

static int heat_simulation_open(void **out, const struct hk_model_plan *plan, const struct hk_simulation_rule *rule,
                                unsigned short chance[3])
{
  const struct hk_model_line *of = &plan->line[rule->line];
  const uint32_t finer = rule->finer, cells = of->cells * finer;
  const struct hk_band_shape shape = hk_heat_shape(cells + 1);
  struct heat_simulation *s = calloc(1, sizeof *s);
  if (!s)
    return -ENOMEM;
  s->plan = plan;
  s->rule = rule;
  s->chance = chance;
  s->flow = rule->velocity * plan->pipe[of->pipe].area;
  s->share = (struct hk_simulated_move){ 1, 1, LOW, HIGH, rule->moves > 0 ? hk_simulated_wait(chance, rule->moves) : INFINITY };
  s->cell = calloc(cells, sizeof *s->cell);
  s->more = calloc(cells, sizeof *s->more);
  s->line = (struct hk_heat_line){ .cell = s->cell,
                                   .points = cells + 1,
                                   .ground = plan->ground,
                                   .state = calloc(2 * (size_t)shape.n, sizeof *s->line.state),
                                   .memory = calloc(HK_HEAT_MEMORY * (size_t)shape.n, sizeof *s->line.memory),
                                   .work = &s->work };
  int status = s->cell && s->more && s->line.state && s->line.memory ? hk_band_open(&s->work, &shape) : -ENOMEM;
  for (uint32_t i = 0; i < cells && status == 0; i++)
    s->cell[i] =
        (struct hk_heat_cell){ plan->heat[of->cell + i / finer].volume / finer, plan->heat[of->cell + i / finer].loss / finer };
  if (status == 0)
    status = hk_heat_steady(&s->line, inlet(s, 0), s->flow, rule->friction) == 0 ? 0 : -EINVAL;
  if (status == 0)
    *out = s;
  else
    heat_simulation_close(s);
  return status;
}

static int heat_simulation_step(void *process, double time, double dt)
{
  struct heat_simulation *s = process;
  if (s->rule->moves > 0) {
    hk_simulated_wander(&s->turned, TURNS, TURNING, dt, s->chance);
    hk_simulated_wander(&s->drawn, DRAWS, DRAWING, dt, s->chance);
  }
  hk_simulated_move_on(&s->share, time, dt, RAMP, s->rule->moves, s->chance);
  for (uint32_t i = 0; i < s->line.points - 1; i++)
    s->more[i] = 0;
  for (uint32_t i = 0; i < s->rule->leaks; i++) {
    const struct hk_simulated_leak *l = &s->rule->leak[i];
    if (l->line == s->rule->line && time >= l->begin && time < l->end)
      s->more[hk_simulation_cell(s->plan, l->line, s->rule->finer, l->place)] += l->share * s->plan->line[l->line].loss;
  }
  return hk_heat_step(&s->line, inlet(s, time), flow_of(s), s->more, dt, s->rule->friction);
}

static double heat_simulation_reading(const void *process, uint32_t sensor)
{
  const struct heat_simulation *s = process;
  const struct hk_model_sensor *is = &s->plan->sensor[sensor];
  return s->line.state[2 * (size_t)is->point * s->rule->finer + is->flow] / is->unit;
}

const struct hk_simulation_kind hk_heat_simulation = { heat_simulation_open, heat_simulation_close, heat_simulation_step,
                                                       heat_simulation_reading };
