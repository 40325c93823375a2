/* Simulated networks of pipes: see simulation_kind.h. */
#include "daemon/cli/simulated_moves.h"
#include "daemon/cli/simulation_kind.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RAMP 30.0      /* s that a move takes */
#define WANDER 300.0   /* time scale of a pump's random pressure, s, */
#define WANDERS 5e-4   /* and its standard deviation, as a share */
#define DRAWING 1800.0 /* time scale of the demand at nodes without a meter; the rule has its size */
#define DRAWS 0.02     /* standard deviation of the demand of metered customers, as a share */
#define LEAST 2e5      /* Pa anywhere, at first */
#define PUMP_LOW 0.96  /* of a pump's pressure at first */
#define PUMP_HIGH 1.02
#define TAKEN_LOW 0.6 /* as a share of a customer's first demand */
#define TAKEN_HIGH 1.4
#define GRAVITY 9.80665 /* m/s^2 */

/* Drives the network at a boundary. */
struct drive {
  double base;                   /* Pa or m^3/s, at first */
  struct hk_simulated_move move; /* as a multiple of that */
  double wander;
};

struct network_simulation {
  const struct hk_model_plan *plan;
  const struct hk_simulation_rule *rule;
  unsigned short *chance;
  struct hk_network network;
  struct hk_network_shape shape; /* a finer network than the plan's, whose points come first; owned columns: */
  struct hk_pipeline_cell *cell;
  uint32_t (*end)[2];
  double *demand, *at_first; /* by point: with random changes, and without */
  double *draws;             /* relative difference of a node's demand, by point */
  double *leak;              /* m^3/s by point */
  struct hk_network_place *place;
  double *value; /* by sensor: Pa and m^3/s */
  double *is;    /* values of the drives, which are */
  struct drive *drive;
  double escape[HK_SIMULATED_MAX]; /* m^3/s by the root of a Pa */
  uint32_t point[HK_SIMULATED_MAX];
};

/* --- the network at first ------------------------------------------------------------------------------------------------ */

/* Cuts each cell into finer ones. */
static int network_refine(struct network_simulation *s)
{
  const struct hk_network_shape *of = s->plan->network;
  const uint32_t finer = s->rule->finer, cells = of->cells * finer, points = of->points + of->cells * (finer - 1);
  uint32_t next = of->points;
  s->cell = calloc(cells, sizeof *s->cell);
  s->end = calloc(cells, sizeof *s->end);
  s->demand = calloc(points, sizeof *s->demand);
  s->at_first = calloc(points, sizeof *s->at_first);
  s->draws = calloc(points, sizeof *s->draws);
  s->leak = calloc(points, sizeof *s->leak);
  s->place = calloc(s->plan->sensors, sizeof *s->place);
  s->value = calloc(s->plan->sensors, sizeof *s->value);
  s->is = calloc(of->drives, sizeof *s->is);
  s->drive = calloc(of->drives, sizeof *s->drive);
  if (!s->cell || !s->end || !s->demand || !s->at_first || !s->draws || !s->leak || !s->place || !s->value || !s->is || !s->drive)
    return -ENOMEM;
  for (uint32_t i = 0; i < cells; i++) {
    const uint32_t k = i % finer;
    s->cell[i] = of->cell[i / finer];
    s->cell[i].wave *= finer * s->rule->wave * s->rule->wave;
    s->cell[i].push *= finer;
    s->end[i][0] = k == 0 ? of->end[i / finer][0] : next - 1;
    s->end[i][1] = k + 1 == finer ? of->end[i / finer][1] : next++;
  }
  memcpy(s->at_first, of->demand, of->points * sizeof *s->at_first);
  memcpy(s->demand, of->demand, of->points * sizeof *s->demand);
  for (uint32_t i = 0; i < s->plan->sensors; i++) {
    s->place[i] = s->plan->place[i];
    if (s->place[i].what == HK_NETWORK_FROM || s->place[i].what == HK_NETWORK_INTO)
      s->place[i].at = s->place[i].at * finer + (s->place[i].what == HK_NETWORK_INTO ? finer - 1 : 0);
  }
  s->shape = (struct hk_network_shape){ .points = points,
                                        .cells = cells,
                                        .drives = of->drives,
                                        .cell = s->cell,
                                        .end = (const uint32_t(*)[2])s->end,
                                        .drive = of->drive,
                                        .demand = s->demand };
  return hk_network_open(&s->network, &s->shape, s->plan->line->impedance, NULL);
}

/* Area of the narrowest pipe at a node, m^2. */
static double area_at(const struct hk_model_plan *plan, uint32_t node)
{
  double least = INFINITY;
  for (uint32_t i = 0; i < plan->pipes; i++) {
    const struct hk_model_pipe *pipe = &plan->pipe[i];
    const uint32_t from = plan->network->end[pipe->first][0], to = plan->network->end[pipe->first + pipe->cells - 1][1];
    if (from == node || to == node)
      least = fmin(least, pipe->area);
  }
  return least;
}

/* The pressure at rest of a node relative to the first one's, Pa, from the heights on the way, which are in the cells' lift. */
static int find_heights(const struct network_simulation *s, double *out)
{
  const struct hk_network_shape *of = s->plan->network;
  bool *known = calloc(of->points, sizeof *known), more = true;
  if (!known)
    return -ENOMEM;
  known[0] = true;
  while (more) {
    more = false;
    for (uint32_t i = 0; i < of->cells; i++)
      for (uint32_t k = 0; k < 2; k++)
        if (known[of->end[i][k]] && !known[of->end[i][1 - k]]) {
          const double fall = of->cell[i].lift / of->cell[i].push * s->plan->line->impedance;
          out[of->end[i][1 - k]] = out[of->end[i][k]] + (k == 0 ? -fall : fall);
          known[of->end[i][1 - k]] = more = true;
        }
  }
  free(known);
  return 0;
}

/* The steady state in which customers take the demand of the given velocity, and no pressure is below LEAST. */
static int network_settle(struct network_simulation *s)
{
  const struct hk_network_shape *of = &s->shape;
  double *rest = calloc(of->points, sizeof *rest), level = LEAST, least = 0;
  int status = rest ? find_heights(s, rest) : -ENOMEM;
  for (uint32_t k = 0; k < 3 && status == 0; k++, level += fmax(0, LEAST - least)) {
    for (uint32_t i = 0; i < of->drives; i++) {
      const double way = s->plan->sensor[s->plan->line->boundary[i]].unit < 0 ? -1 : 1; /* into the network */
      s->is[i] =
          of->drive[i].flow ? way * s->rule->velocity * area_at(s->plan, of->drive[i].point) : level + rest[of->drive[i].point];
    }
    status = hk_network_steady(&s->network, s->is, s->rule->friction) == 0 ? 0 : -EINVAL;
    least = INFINITY;
    for (uint32_t i = 0; i < s->plan->nodes && status == 0; i++)
      least = fmin(least, s->network.state[i] * s->network.impedance);
  }
  free(rest);
  return status;
}

/* s between two moves of one drive, on the average. */
static double mean_wait(const struct network_simulation *s)
{
  return s->rule->moves * s->shape.drives / 2;
}

/* The flow out of the network at first, without leaks. */
static double consumption(const struct network_simulation *s)
{
  double all = 0;
  for (uint32_t i = 0; i < s->shape.points; i++)
    all += fmax(0, s->at_first[i]);
  for (uint32_t i = 0; i < s->shape.drives; i++)
    all += s->shape.drive[i].flow ? fmax(0, s->is[i]) : 0;
  return all;
}

/* The point of a leak: a node, or the middle of a pipe. */
static uint32_t point_of(const struct network_simulation *s, const struct hk_simulated_leak *leak)
{
  if (leak->pipe == HK_MODEL_NONE)
    return leak->node;
  const struct hk_model_pipe *pipe = &s->plan->pipe[leak->pipe];
  return s->end[pipe->first * s->rule->finer + pipe->cells * s->rule->finer / 2][0];
}

static void network_simulation_close(void *process)
{
  struct network_simulation *s = process;
  hk_network_close(&s->network);
  free(s->cell);
  free(s->end);
  free(s->demand);
  free(s->at_first);
  free(s->draws);
  free(s->leak);
  free(s->place);
  free(s->value);
  free(s->is);
  free(s->drive);
  free(s);
}

static int network_simulation_open(void **out, const struct hk_model_plan *plan, const struct hk_simulation_rule *rule,
                                   unsigned short chance[3])
{
  struct network_simulation *s = calloc(1, sizeof *s);
  if (!s)
    return -ENOMEM;
  s->plan = plan;
  s->rule = rule;
  s->chance = chance;
  int status = network_refine(s);
  if (status == 0)
    status = network_settle(s);
  if (status != 0) {
    network_simulation_close(s);
    return status;
  }
  for (uint32_t i = 0; i < s->shape.drives; i++) {
    const bool flow = s->shape.drive[i].flow;
    const double next = rule->moves > 0 ? hk_simulated_wait(chance, mean_wait(s)) : INFINITY;
    s->drive[i] = (struct drive){ s->is[i], { 1, 1, flow ? TAKEN_LOW : PUMP_LOW, flow ? TAKEN_HIGH : PUMP_HIGH, next }, 0 };
  }
  for (uint32_t i = 0; i < rule->leaks; i++) {
    s->point[i] = point_of(s, &rule->leak[i]);
    s->escape[i] = rule->leak[i].share * consumption(s) / sqrt(s->network.state[s->point[i]] * s->network.impedance);
  }
  hk_network_read(&s->network, s->place, plan->sensors, s->value);
  *out = s;
  return 0;
}

/* --- from one time to the next ------------------------------------------------------------------------------------------- */

static void network_move(struct network_simulation *s, uint32_t i, double time, double dt)
{
  struct drive *d = &s->drive[i];
  hk_simulated_move_on(&d->move, time, dt, RAMP, mean_wait(s), s->chance);
  if (s->rule->moves > 0 && s->shape.drive[i].flow)
    hk_simulated_wander(&d->wander, DRAWS, DRAWING, dt, s->chance);
  else if (s->rule->moves > 0)
    hk_simulated_wander(&d->wander, WANDERS, WANDER, dt, s->chance);
  s->is[i] = d->base * (d->move.now + d->wander);
}

static int network_simulation_step(void *process, double time, double dt)
{
  struct network_simulation *s = process;
  for (uint32_t i = 0; i < s->shape.drives; i++)
    network_move(s, i, time, dt);
  for (uint32_t i = 0; i < s->plan->nodes; i++)
    if (s->at_first[i] != 0 && s->rule->unmetered > 0) {
      hk_simulated_wander(&s->draws[i], s->rule->unmetered, DRAWING, dt, s->chance);
      s->demand[i] = s->at_first[i] * (1 + s->draws[i]);
    }
  for (uint32_t i = 0; i < s->rule->leaks; i++)
    s->leak[s->point[i]] = 0;
  for (uint32_t i = 0; i < s->rule->leaks; i++)
    if (time >= s->rule->leak[i].begin && time < s->rule->leak[i].end)
      s->leak[s->point[i]] += s->escape[i] * sqrt(fmax(0, s->network.state[s->point[i]] * s->network.impedance));
  const int status = hk_network_step(&s->network, s->is, s->leak, dt, s->rule->friction);
  if (status == 0)
    hk_network_read(&s->network, s->place, s->plan->sensors, s->value);
  for (uint32_t i = 0; i < s->shape.drives && status == 0; i++)
    s->value[s->plan->line->boundary[i]] = s->is[i];
  return status;
}

static double network_simulation_reading(const void *process, uint32_t sensor)
{
  const struct network_simulation *s = process;
  return s->value[sensor] / s->plan->sensor[sensor].unit;
}

const struct hk_simulation_kind hk_network_simulation = { network_simulation_open, network_simulation_close,
                                                          network_simulation_step, network_simulation_reading };
