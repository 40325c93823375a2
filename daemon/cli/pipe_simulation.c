/* Simulated lines of pipes: see pipe_simulation.h. */
#include "daemon/cli/pipe_simulation.h"
#include "daemon/cli/simulated_moves.h"
#include "daemon/cli/simulation_kind.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 64     /* of an interval */
#define NETWORK_STEPS 4  /* the same of networks */
#define RAMP 30.0        /* s that a move takes */
#define WANDER 300.0     /* time scale of the pump's random speed, s, */
#define WANDERS 5e-4     /* and its standard deviation */
#define LAST 1e6         /* Pa at the last node, at first; more where the line would run dry */
#define LEAST 1e5        /* Pa anywhere, at first */
#define PUMP_LOSS 0.2    /* share of its pressure that a pump loses to its own flow */
#define BEHIND_VALVE 0.5 /* pressure behind the valve, as a share of that before it */
#define OPEN 0.7         /* how far the valve is open at first */

struct hk_simulation {
  const struct hk_model_plan *plan;
  const struct hk_model_line *of; /* the line of the plan */
  struct hk_simulation_rule rule;
  const struct hk_simulation_kind *kind; /* of another process; NULL: pipes */
  void *process;                         /* of the kind */
  struct hk_pipeline line;
  struct hk_pipeline_cell *cell;
  double *sink, *first, *frozen; /* by cell; by sensor: readings without a fault at first, and when it froze */
  unsigned short chance[3];      /* erand48 */
  struct hk_simulated_move pump, valve;
  double wander;
  double lift, loss, through, behind; /* pump: Pa at rest, Pa s^2/m^6; valve: (m^3/s)^2/Pa when open, Pa behind it */
  double leak[HK_SIMULATED_MAX];      /* m^3/s by the root of a Pa */
  uint32_t leaking[HK_SIMULATED_MAX]; /* cells */
  double flow;                        /* m^3/s, at first */
  double time;                        /* s of the recording: 0 at the first reading */
  uint64_t count;                     /* of steps */
  uint32_t steps;                     /* of an interval */
};

struct hk_simulation_rule hk_simulation_default(void)
{
  return (struct hk_simulation_rule){ .interval = 1,
                                      .seed = 1,
                                      .velocity = 1,
                                      .level = 100,
                                      .noise = 5e-4,
                                      .unmetered = 0.05,
                                      .moves = 2400,
                                      .friction = 1.03,
                                      .wave = 1,
                                      .finer = 2 };
}

/* --- the line at first ------------------------------------------------------------------------------------------------- */

static int pipe_simulation_make_sensors(struct hk_simulation *s)
{
  s->first = calloc(s->plan->sensors, sizeof *s->first);
  s->frozen = calloc(s->plan->sensors, sizeof *s->frozen);
  return s->first && s->frozen ? 0 : -ENOMEM;
}

static int make_cells(struct hk_simulation *s)
{
  const struct hk_model_plan *p = s->plan;
  const uint32_t finer = s->rule.finer, cells = s->of->cells * finer;
  s->cell = calloc(cells, sizeof *s->cell);
  s->sink = calloc(cells, sizeof *s->sink);
  if (!s->cell || !s->sink)
    return -ENOMEM;
  for (uint32_t j = 0; j < cells; j++) {
    s->cell[j] = p->cell[s->of->cell + j / finer];
    s->cell[j].wave *= finer * s->rule.wave * s->rule.wave;
    s->cell[j].push *= finer;
  }
  return hk_pipeline_open(&s->line, s->cell, cells, s->of->impedance);
}

/* The steady state at the wanted flow, with no pressure below LEAST. */
static int pipe_simulation_settle(struct hk_simulation *s)
{
  double last = LAST, least = 0;
  int status = 0;
  for (uint32_t k = 0; k < 2 && status == 0; k++, last += LEAST - least) {
    const struct hk_pipeline_end end[2] = { { 0, 1, 0, s->flow }, { 1, 0, 0, last } };
    status = hk_pipeline_steady(&s->line, end, s->rule.friction);
    least = LEAST;
    for (uint32_t i = 0; i < s->line.points && status == 0; i++)
      least = fmin(least, hk_pipeline_pressure(&s->line, i));
  }
  return status == 0 ? 0 : -EINVAL;
}

/* Sets pump and valve so that they hold the state. */
static void make_ends(struct hk_simulation *s)
{
  const double p0 = hk_pipeline_pressure(&s->line, 0), p1 = hk_pipeline_pressure(&s->line, s->line.points - 1), q = s->flow;
  s->loss = PUMP_LOSS * p0 / (q * q);
  s->lift = (1 + PUMP_LOSS) * p0;
  s->behind = BEHIND_VALVE * p1;
  s->through = q * q / (OPEN * OPEN * (p1 - s->behind));
  s->pump = (struct hk_simulated_move){ 1, 1, 0.94, 1.03, INFINITY };
  s->valve = (struct hk_simulated_move){ OPEN, OPEN, 0.55, 0.85, INFINITY };
  if (s->rule.moves > 0) {
    s->pump.next = hk_simulated_wait(s->chance, 2 * s->rule.moves);
    s->valve.next = hk_simulated_wait(s->chance, 2 * s->rule.moves);
  }
}

uint32_t hk_simulation_cell(const struct hk_model_plan *p, uint32_t line, uint32_t finer, double place)
{
  const struct hk_model_line *l = &p->line[line];
  for (uint32_t i = l->pipe; i < l->pipe + l->pipes; place -= p->pipe[i++].length) {
    const struct hk_model_pipe *pipe = &p->pipe[i];
    const uint32_t cells = pipe->cells * finer, at = (uint32_t)(place / pipe->length * cells);
    if (place < pipe->length)
      return pipe->first * finer + (at < cells ? at : cells - 1);
  }
  return l->cells * finer - 1;
}

static double reading(const struct hk_simulation *s, uint32_t sensor)
{
  const struct hk_model_sensor *is = &s->plan->sensor[sensor];
  if (s->kind)
    return s->kind->reading(s->process, sensor);
  const uint32_t point = is->point * s->rule.finer;
  return (is->flow ? hk_pipeline_flow(&s->line, point) : hk_pipeline_pressure(&s->line, point)) / is->unit;
}

/* Makes a line of pipes in its steady state, and what moves it. */
static int make_pipes(struct hk_simulation *s)
{
  const struct hk_simulation_rule *rule = &s->rule;
  int status = make_cells(s);
  if (status == 0)
    status = pipe_simulation_settle(s);
  if (status != 0)
    return status;
  make_ends(s);
  for (uint32_t i = 0; i < rule->leaks; i++) {
    s->leaking[i] = hk_simulation_cell(s->plan, rule->line, rule->finer, rule->leak[i].place);
    s->leak[i] = (rule->leak[i].line == rule->line ? rule->leak[i].share : 0) * s->flow /
                 sqrt(hk_pipeline_pressure(&s->line, s->leaking[i]));
  }
  return 0;
}

/* The number of steps in an interval: neither a wave nor the water of a heat line crosses more than a cell in a step. */
static uint32_t steps_of(const struct hk_simulation *s)
{
  const double crossed = s->plan->heat ? s->of->shortest / s->flow : s->of->shortest / s->rule.wave; /* s, of a cell */
  return (uint32_t)fmin(s->plan->network ? NETWORK_STEPS : STEPS_MAX, ceil(s->rule.interval / (crossed / s->rule.finer)));
}

int hk_simulation_open(struct hk_simulation **out, const struct hk_model_plan *plan, const struct hk_simulation_rule *rule)
{
  struct hk_simulation *s = calloc(1, sizeof *s);
  if (!s)
    return -ENOMEM;
  s->plan = plan;
  s->rule = *rule;
  s->of = &plan->line[rule->line];
  s->kind = plan->matrix    ? &hk_matrix_simulation
            : plan->network ? &hk_network_simulation
            : plan->heat    ? &hk_heat_simulation
                            : NULL;
  s->flow = plan->matrix ? 0 : rule->velocity * plan->pipe[s->of->pipe].area;
  s->steps = plan->matrix ? rule->finer : steps_of(s);
  memcpy(s->chance, &rule->seed, sizeof s->chance);
  for (uint32_t k = 0; k < 8; k++) /* neighbouring seeds begin alike */
    (void)erand48(s->chance);
  int status = pipe_simulation_make_sensors(s);
  if (status == 0)
    status = s->kind ? s->kind->open(&s->process, plan, &s->rule, s->chance) : make_pipes(s);
  if (status != 0) {
    hk_simulation_close(s);
    return status;
  }
  for (uint32_t i = 0; i < plan->sensors; i++)
    if (plan->sensor[i].line == rule->line)
      s->first[i] = reading(s, i);
  *out = s;
  return 0;
}

void hk_simulation_close(struct hk_simulation *s)
{
  if (!s)
    return;
  if (s->process)
    s->kind->close(s->process);
  hk_pipeline_close(&s->line);
  free(s->cell);
  free(s->sink);
  free(s->first);
  free(s->frozen);
  free(s);
}

/* --- from one reading to the next --------------------------------------------------------------------------------------- */

static void leak(struct hk_simulation *s)
{
  memset(s->sink, 0, (s->line.points - 1) * sizeof *s->sink);
  for (uint32_t i = 0; i < s->rule.leaks; i++)
    if (s->time >= s->rule.leak[i].begin && s->time < s->rule.leak[i].end)
      s->sink[s->leaking[i]] += s->leak[i] * sqrt(fmax(0, hk_pipeline_pressure(&s->line, s->leaking[i])));
}

static int pipe_simulation_step(struct hk_simulation *s, double dt)
{
  s->time = ((double)++s->count / s->steps - 1) * s->rule.interval;
  if (s->kind)
    return s->kind->step(s->process, s->time, dt);
  hk_simulated_move_on(&s->pump, s->time, dt, RAMP, 2 * s->rule.moves, s->chance);
  hk_simulated_move_on(&s->valve, s->time, dt, RAMP, 2 * s->rule.moves, s->chance);
  if (s->rule.moves > 0)
    hk_simulated_wander(&s->wander, WANDERS, WANDER, dt, s->chance);
  leak(s);
  const double speed = s->pump.now + s->wander, open = s->through * s->valve.now * s->valve.now;
  const struct hk_pipeline_end end[2] = { { 1, 0, s->loss, s->lift * speed * speed }, { -open, 0, 1, -open * s->behind } };
  return hk_pipeline_step(&s->line, end, s->sink, dt, s->rule.friction);
}

/* The reading of a faulty sensor. */
static double spoil(struct hk_simulation *s, const struct hk_simulated_bad_sensor *bad, double value)
{
  const bool begun = s->time >= bad->begin && s->time < bad->end;
  if (s->time < bad->begin) /* until then */
    s->frozen[bad->sensor] = value;
  if (!begun)
    return value;
  switch (bad->fault) {
  case HK_FAULT_BIAS:
    return value + bad->size;
  case HK_FAULT_DRIFT:
    return value + bad->size * (s->time - bad->begin) / 3600;
  case HK_FAULT_FROZEN:
    return s->frozen[bad->sensor];
  default:
    return NAN;
  }
}

int hk_simulation_read(struct hk_simulation *s, double *value)
{
  int status = 0;
  for (uint32_t k = 0; k < s->steps && status == 0; k++)
    status = pipe_simulation_step(s, s->rule.interval / s->steps);
  for (uint32_t i = 0; i < s->plan->sensors && status == 0; i++)
    if (s->plan->sensor[i].line == s->rule.line)
      value[i] = reading(s, i) + s->rule.noise * fabs(s->first[i]) * hk_simulated_normal(s->chance);
  for (uint32_t i = 0; i < s->rule.faults && status == 0; i++)
    if (s->plan->sensor[s->rule.bad[i].sensor].line == s->rule.line)
      value[s->rule.bad[i].sensor] = spoil(s, &s->rule.bad[i], value[s->rule.bad[i].sensor]);
  return status;
}
