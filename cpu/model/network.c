/* Networks of pipes: see network.h. */
#include "cpu/model/network.h"
#include "cpu/model/pipeline_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STEADY_STEPS 200
#define STEADY_DONE 1e-8  /* change of a flow in the last of them, as a share of the scale of flows, */
#define STEADY_LEAST 1e-5 /* and the least flow by which friction changes */
#define STEADY_RUB 1e-9   /* least derivative of a cell's friction, in its push */

/* Columns of the work memory. */
struct network_columns {
  double *next;                      /* new state */
  double *diagonal, *right, *change; /* by point */
  double *beside;                    /* by cell, as */
  double *rest;                      /* two numbers: negative residuals of the cell's equations, */
  double *rub;                       /* and R */
};

static struct network_columns network_columns_of(const struct hk_network *w)
{
  const size_t points = w->shape->points, cells = w->shape->cells;
  struct network_columns c = { .next = w->memory };
  c.diagonal = c.next + hk_network_numbers(w->shape);
  c.right = c.diagonal + points;
  c.change = c.right + points;
  c.beside = c.change + points;
  c.rest = c.beside + cells;
  c.rub = c.rest + 2 * cells;
  return c;
}

static size_t numbers_of_work(const struct hk_network_shape *shape)
{
  return hk_network_numbers(shape) + 3 * (size_t)shape->points + 4 * (size_t)shape->cells;
}

int hk_network_open(struct hk_network *w, const struct hk_network_shape *shape, double impedance,
                    const struct hk_sparse_kind *kind)
{
  *w = (struct hk_network){ .shape = shape, .impedance = impedance };
  w->state = calloc(hk_network_numbers(shape), sizeof *w->state);
  w->memory = malloc(numbers_of_work(shape) * sizeof *w->memory);
  w->given = calloc(shape->points, sizeof *w->given);
  int status = w->state && w->memory && w->given ? 0 : -ENOMEM;
  if (status == 0)
    status = hk_sparse_open(&w->matrix, kind, shape->points, shape->end, shape->cells);
  for (uint32_t i = 0; i < shape->drives && status == 0; i++)
    w->given[shape->drive[i].point] |= !shape->drive[i].flow;
  if (status != 0)
    hk_network_close(w);
  return status;
}

void hk_network_close(struct hk_network *w)
{
  free(w->state);
  free(w->memory);
  free(w->given);
  hk_sparse_close(w->matrix);
  *w = (struct hk_network){ 0 };
}

uint64_t hk_network_bytes(const struct hk_network *w)
{
  return (hk_network_numbers(w->shape) + numbers_of_work(w->shape)) * sizeof(double) + w->shape->points +
         hk_sparse_facts(w->matrix).bytes;
}

/* --- what steps and the steady state share ------------------------------------------------------------------------------- */

/* Begins the equations of the points: what leaves there beside the cells; and gives the pressures. */
static void begin_points(const struct hk_network *w, const struct network_columns *c, const double *is, const double *leak)
{
  for (uint32_t i = 0; i < w->shape->points; i++) {
    c->diagonal[i] = w->given[i];
    c->right[i] = -w->shape->demand[i] - (leak ? leak[i] : 0);
  }
  for (uint32_t i = 0; i < w->shape->drives; i++) {
    const struct hk_network_drive *d = &w->shape->drive[i];
    if (d->flow)
      c->right[d->point] -= is[i];
    else
      c->next[d->point] = is[i] / w->impedance;
  }
}

/* Adds a cell to the equations of its points: `own` and `other` are the coefficients of the two pressures, `from` and `to` what
 * flows out of the first point and into the second one by the numbers at hand. The pressure of a given point does not change. */
static void add_cell(const struct hk_network *w, const struct network_columns *c, uint32_t cell, double own, double other,
                     double from, double to)
{
  const uint32_t *end = w->shape->end[cell];
  const bool given[2] = { w->given[end[0]], w->given[end[1]] };
  for (uint32_t k = 0; k < 2; k++)
    c->diagonal[end[k]] += given[k] ? 0 : own;
  c->right[end[0]] -= from;
  c->right[end[1]] += to;
  c->beside[cell] = given[0] || given[1] ? 0 : other;
}

/* Solves for the changes of the pressures. */
static int solve_points(struct hk_network *w, const struct network_columns *c)
{
  double error = 0;
  for (uint32_t i = 0; i < w->shape->points; i++)
    if (w->given[i])
      c->right[i] = 0;
  const int status = hk_sparse_solve(w->matrix, c->right, c->change, &error);
  w->error = fmax(w->error, error);
  return status;
}

/* --- a step ------------------------------------------------------------------------------------------------------------- */

/* s, q at both sides of a cell. */
static void sides_of(const struct hk_network *w, const double *state, uint32_t cell, double out[4])
{
  const double *flow = state + w->shape->points + 2 * (size_t)cell;
  out[0] = state[w->shape->end[cell][0]];
  out[1] = flow[0];
  out[2] = state[w->shape->end[cell][1]];
  out[3] = flow[1];
}

static void put_cell(const struct hk_network *w, const struct network_columns *c, uint32_t cell, double dt, double friction)
{
  double row[2][HK_PIPELINE_WIDTH], was[4], now[4], *rest = c->rest + 2 * (size_t)cell;
  sides_of(w, w->state, cell, was);
  sides_of(w, c->next, cell, now);
  hk_pipeline_cell_rows(&w->shape->cell[cell], 0, dt, friction, was, now, row, rest);
  const double wave = row[0][4], push = row[1][2], rub = row[1][1];
  c->rub[cell] = rub;
  add_cell(w, c, cell, (push / rub + 1 / wave) / 2, (1 / wave - push / rub) / 2, now[1] + (rest[1] / rub - rest[0] / wave) / 2,
           now[3] + (rest[1] / rub + rest[0] / wave) / 2);
}

/* The changes of a cell's flows that follow from those of its pressures. */
static void follow(const struct hk_network *w, const struct network_columns *c, uint32_t cell, double dt)
{
  const struct hk_pipeline_cell *is = &w->shape->cell[cell];
  const double wave = 2 * dt * is->wave * HK_PIPELINE_WEIGHT, push = 2 * dt * is->push * HK_PIPELINE_WEIGHT;
  const double *rest = c->rest + 2 * (size_t)cell, first = c->change[w->shape->end[cell][0]],
               second = c->change[w->shape->end[cell][1]];
  const double sum = (rest[1] + push * (first - second)) / c->rub[cell], away = (rest[0] - first - second) / wave;
  double *flow = c->next + w->shape->points + 2 * (size_t)cell;
  flow[0] += (sum - away) / 2;
  flow[1] += (sum + away) / 2;
}

static int newton(struct hk_network *w, const struct network_columns *c, const double *is, const double *leak, double dt,
                  double friction)
{
  begin_points(w, c, is, leak);
  for (uint32_t i = 0; i < w->shape->cells; i++)
    put_cell(w, c, i, dt, friction);
  int status = hk_sparse_factorise(w->matrix, c->diagonal, c->beside);
  if (status == 0)
    status = solve_points(w, c);
  for (uint32_t i = 0; i < w->shape->points && status == 0; i++)
    c->next[i] += c->change[i];
  for (uint32_t i = 0; i < w->shape->cells && status == 0; i++)
    follow(w, c, i, dt);
  return status;
}

int hk_network_step(struct hk_network *w, const double *is, const double *leak, double dt, double friction)
{
  const struct network_columns c = network_columns_of(w);
  const size_t n = hk_network_numbers(w->shape);
  bool finite = true;
  int status = 0;
  memcpy(c.next, w->state, n * sizeof *c.next);
  w->error = 0;
  for (uint32_t k = 0; k < HK_PIPELINE_NEWTON && status == 0; k++)
    status = newton(w, &c, is, leak, dt, friction);
  for (size_t i = 0; i < n; i++)
    finite = finite && isfinite(c.next[i]);
  if (status == 0 && finite)
    memcpy(w->state, c.next, n * sizeof *c.next);
  return status == 0 && !finite ? -ERANGE : status;
}

/* --- steady ------------------------------------------------------------------------------------------------------------- */

/* A scale of the flows: of all that leaves or enters, or of the cells. */
static double scale_of(const struct hk_network *w, const double *is, const double *flow)
{
  double all = 1e-6, most = 0;
  for (uint32_t i = 0; i < w->shape->points && is; i++)
    all += fabs(w->shape->demand[i]);
  for (uint32_t i = 0; i < w->shape->drives && is; i++)
    all += w->shape->drive[i].flow ? fabs(is[i]) : 0;
  for (uint32_t i = 0; i < w->shape->cells && flow; i++)
    most = fmax(most, fabs(flow[2 * (size_t)i]));
  return fmax(all, most);
}

/* Derivative of the friction in a cell by its flow, kept from zero. */
static double rub_of(const struct hk_pipeline_cell *cell, double flow, double least, double friction)
{
  return fmax(2 * friction * cell->friction * fmax(fabs(flow), least), STEADY_RUB * cell->push);
}

/* Makes one step towards the steady state. Returns 0 or a negative errno; *moved: the largest change of a flow. */
static int towards(struct hk_network *w, const struct network_columns *c, const double *is, double friction, double least,
                   double share, double *moved)
{
  double *flow = c->next + w->shape->points;
  begin_points(w, c, is, NULL);
  for (uint32_t i = 0; i < w->shape->cells; i++) {
    const struct hk_pipeline_cell *cell = &w->shape->cell[i];
    const uint32_t *end = w->shape->end[i];
    const double q = flow[2 * (size_t)i], rub = rub_of(cell, q, least, friction), open = cell->push / rub;
    const double rest = cell->push * (c->next[end[0]] - c->next[end[1]]) - cell->lift - friction * cell->friction * q * fabs(q);
    c->rub[i] = rub;
    c->rest[i] = rest;
    add_cell(w, c, i, open, -open, q + rest / rub, q + rest / rub);
  }
  int status = hk_sparse_factorise(w->matrix, c->diagonal, c->beside);
  if (status == 0)
    status = solve_points(w, c);
  *moved = 0;
  for (uint32_t i = 0; i < w->shape->cells && status == 0; i++) {
    const uint32_t *end = w->shape->end[i];
    const double by = share * (c->rest[i] + w->shape->cell[i].push * (c->change[end[0]] - c->change[end[1]])) / c->rub[i];
    *moved = fabs(by) > *moved || isnan(by) ? fabs(by) : *moved;
    flow[2 * (size_t)i] += by;
    flow[2 * (size_t)i + 1] = flow[2 * (size_t)i];
  }
  for (uint32_t i = 0; i < w->shape->points && status == 0; i++)
    c->next[i] += c->change[i];
  return status;
}

int hk_network_steady(struct hk_network *w, const double *is, double friction)
{
  const struct network_columns c = network_columns_of(w);
  double *flow = c.next + w->shape->points, scale = scale_of(w, is, NULL), moved = INFINITY;
  int status = 0;
  memset(c.next, 0, w->shape->points * sizeof *c.next);
  for (size_t i = 0; i < 2 * (size_t)w->shape->cells; i++)
    flow[i] = scale / 10;
  for (uint32_t k = 0; k < STEADY_STEPS && status == 0 && !(moved <= STEADY_DONE * scale); k++) {
    status = towards(w, &c, is, friction, STEADY_LEAST * scale, k < STEADY_STEPS / 4 ? 1 : 0.5, &moved);
    scale = scale_of(w, is, flow);
  }
  if (status != 0 || !(moved <= STEADY_DONE * scale))
    return status == -ENOMEM ? status : -EDOM;
  memcpy(w->state, c.next, hk_network_numbers(w->shape) * sizeof *w->state);
  return 0;
}

/* --- values and their derivatives --------------------------------------------------------------------------------------- */

/* Sums at each point what its cells bring. */
static void sum_flows(const struct hk_network *w, const double *flow, uint32_t stride, double *out)
{
  memset(out, 0, w->shape->points * sizeof *out);
  for (size_t i = 0; i < w->shape->cells; i++) {
    out[w->shape->end[i][0]] -= flow[stride * i];
    out[w->shape->end[i][1]] += flow[stride * i + stride - 1];
  }
}

void hk_network_read(struct hk_network *w, const struct hk_network_place *place, uint32_t n, double *value)
{
  const struct network_columns c = network_columns_of(w);
  const double *flow = w->state + w->shape->points;
  sum_flows(w, flow, 2, c.right);
  for (uint32_t i = 0; i < n; i++)
    switch (place[i].what) {
    case HK_NETWORK_PRESSURE:
      value[i] = w->state[place[i].at] * w->impedance;
      break;
    case HK_NETWORK_OUT:
      value[i] = c.right[place[i].at];
      break;
    case HK_NETWORK_FROM:
      value[i] = flow[2 * (size_t)place[i].at];
      break;
    default:
      value[i] = -flow[2 * (size_t)place[i].at + 1];
    }
}

/* The flow of a steady cell: the mean of both ends. */
static double network_flow_of(const struct hk_network *w, uint32_t cell)
{
  const double *flow = w->state + w->shape->points + 2 * (size_t)cell;
  return (flow[0] + flow[1]) / 2;
}

int hk_network_linearise(struct hk_network *w, double friction)
{
  const struct network_columns c = network_columns_of(w);
  const double least = STEADY_LEAST * scale_of(w, NULL, w->state + w->shape->points);
  for (uint32_t i = 0; i < w->shape->points; i++) {
    c.diagonal[i] = w->given[i];
    c.right[i] = 0;
  }
  for (uint32_t i = 0; i < w->shape->cells; i++) {
    c.rub[i] = rub_of(&w->shape->cell[i], network_flow_of(w, i), least, friction);
    add_cell(w, &c, i, w->shape->cell[i].push / c.rub[i], -w->shape->cell[i].push / c.rub[i], 0, 0);
  }
  return hk_sparse_factorise(w->matrix, c.diagonal, c.beside);
}

int hk_network_by_friction(struct hk_network *w, const struct hk_network_place *place, uint32_t n, double *out)
{
  const struct network_columns c = network_columns_of(w);
  double *by = c.rest; /* derivative of the flow by cell */
  for (uint32_t i = 0; i < w->shape->cells; i++)
    by[i] = -w->shape->cell[i].friction * network_flow_of(w, i) * fabs(network_flow_of(w, i)) / c.rub[i];
  sum_flows(w, by, 1, c.right);
  const int status = solve_points(w, &c);
  if (status != 0)
    return status;
  for (uint32_t i = 0; i < w->shape->cells; i++)
    by[i] += w->shape->cell[i].push / c.rub[i] * (c.change[w->shape->end[i][0]] - c.change[w->shape->end[i][1]]);
  sum_flows(w, by, 1, c.right);
  for (uint32_t i = 0; i < n; i++)
    out[i] = place[i].what == HK_NETWORK_PRESSURE ? c.change[place[i].at] * w->impedance
             : place[i].what == HK_NETWORK_OUT    ? c.right[place[i].at]
             : place[i].what == HK_NETWORK_FROM   ? by[place[i].at]
                                                  : -by[place[i].at];
  return 0;
}

/* Weights of the pressures of all points in a value. */
static void weigh(const struct hk_network *w, const struct network_columns *c, const struct hk_network_place *place,
                  double *weight)
{
  const struct hk_network_shape *shape = w->shape;
  memset(weight, 0, shape->points * sizeof *weight);
  if (place->what == HK_NETWORK_PRESSURE)
    weight[place->at] = w->impedance;
  for (uint32_t i = 0; i < shape->cells && place->what != HK_NETWORK_PRESSURE; i++) {
    const uint32_t *end = shape->end[i];
    const double open = shape->cell[i].push / c->rub[i];
    double of = 0; /* the part of the cell's flow in the value */
    if (place->what == HK_NETWORK_OUT)
      of = (end[1] == place->at) - (end[0] == place->at);
    else if (i == place->at)
      of = place->what == HK_NETWORK_FROM ? 1 : -1;
    weight[end[0]] += of * open;
    weight[end[1]] -= of * open;
  }
}

int hk_network_by_point(struct hk_network *w, const struct hk_network_place *place, double *out)
{
  const struct network_columns c = network_columns_of(w);
  weigh(w, &c, place, out);
  memcpy(c.right, out, w->shape->points * sizeof *out);
  const int status = solve_points(w, &c);
  if (status != 0)
    return status;
  for (uint32_t i = 0; i < w->shape->points; i++)
    out[i] = w->given[i] ? out[i] : -c.change[i];
  for (uint32_t i = 0; i < w->shape->cells; i++)
    for (uint32_t k = 0; k < 2; k++) {
      const uint32_t point = w->shape->end[i][k], other = w->shape->end[i][1 - k];
      if (w->given[point] && !w->given[other])
        out[point] += w->shape->cell[i].push / c.rub[i] * c.change[other];
    }
  for (uint32_t i = 0; i < w->shape->points; i++)
    out[i] /= w->given[i] ? w->impedance : 1;
  return 0;
}
