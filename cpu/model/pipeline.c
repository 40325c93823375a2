/* One line of pipes: see pipeline.h. */
#include "cpu/model/pipeline_rows.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define STEADY_FLOW_MAX 1e6 /* m^3/s; a thousand times that of the largest river, more than in any pipe */

/* Columns of a step. */
struct step {
  double *next;   /* the new state */
  double *rest;   /* negative residuals of the equations */
  double *change; /* change of the state */
  double *band;
};

#define STEP (3 + HK_PIPELINE_WIDTH) /* numbers of an unknown */

static struct hk_band_shape shape_of(uint32_t points)
{
  return (struct hk_band_shape){ 1, 2 * points, HK_PIPELINE_BELOW, HK_PIPELINE_ABOVE };
}

static struct step step_of(const struct hk_pipeline *l)
{
  const size_t n = 2 * (size_t)l->points;
  double *at = l->memory;
  return (struct step){ at, at + n, at + 2 * n, at + 3 * n };
}

uint64_t hk_pipeline_need(uint32_t cells)
{
  const struct hk_band_shape shape = shape_of(cells + 1);
  return (uint64_t)shape.n * (1 + STEP) * sizeof(double) + hk_band_need(&shape);
}

int hk_pipeline_open(struct hk_pipeline *l, const struct hk_pipeline_cell *cell, uint32_t cells, double impedance)
{
  const struct hk_band_shape shape = shape_of(cells + 1);
  *l = (struct hk_pipeline){ .cell = cell, .points = cells + 1, .impedance = impedance };
  l->state = calloc(shape.n, sizeof *l->state);
  l->memory = malloc((size_t)shape.n * STEP * sizeof *l->memory);
  const int status = l->state && l->memory ? hk_band_open(&l->work, &shape) : -ENOMEM;
  if (status != 0)
    hk_pipeline_close(l);
  return status;
}

void hk_pipeline_close(struct hk_pipeline *l)
{
  free(l->state);
  free(l->memory);
  hk_band_close(&l->work);
  l->state = l->memory = NULL;
}

/* --- a step ------------------------------------------------------------------------------------------------------------- */

static double *pipeline_row_of(const struct step *t, size_t row)
{
  return &t->band[row * HK_PIPELINE_WIDTH];
}

/* Computes the equations at t->next. */
static void put_all(const struct hk_pipeline *l, const struct step *t, const struct hk_pipeline_end end[2], const double *sink,
                    double dt, double friction)
{
  const uint32_t cells = l->points - 1;
  const size_t last = 2 * (size_t)cells + 1;
  memset(pipeline_row_of(t, 0), 0, HK_PIPELINE_WIDTH * sizeof *t->band);
  memset(pipeline_row_of(t, last), 0, HK_PIPELINE_WIDTH * sizeof *t->band);
  hk_pipeline_end_row(&end[0], l->impedance, t->next[0], t->next[1], pipeline_row_of(t, 0) + 2, &t->rest[0]);
  for (size_t j = 0; j < cells; j++)
    hk_pipeline_cell_rows(&l->cell[j], sink ? sink[j] : 0, dt, friction, l->state + 2 * j, t->next + 2 * j,
                          (double(*)[HK_PIPELINE_WIDTH])pipeline_row_of(t, 2 * j + 1), &t->rest[2 * j + 1]);
  hk_pipeline_end_row(&end[1], l->impedance, t->next[last - 1], t->next[last], pipeline_row_of(t, last) + 1, &t->rest[last]);
}

/* Makes one Newton step. Returns 0, -EDOM or -ERANGE. */
static int pipeline_solve(struct hk_pipeline *l, const struct step *t)
{
  const struct hk_band_shape shape = shape_of(l->points);
  const struct hk_band_outcome o = hk_band_solve_one(&l->work, &shape, 0, t->band, t->rest, t->change);
  l->refined += o.refined;
  l->error = fmax(l->error, o.error);
  if (o.status == -EDOM)
    l->singular = o.singular / 2;
  return o.status;
}

int hk_pipeline_step(struct hk_pipeline *l, const struct hk_pipeline_end end[2], const double *sink, double dt, double friction)
{
  const struct step t = step_of(l);
  const size_t n = 2 * (size_t)l->points;
  bool finite = true;
  int status = 0;
  memcpy(t.next, l->state, n * sizeof *t.next);
  l->error = 0;
  for (uint32_t k = 0; k < HK_PIPELINE_NEWTON && status == 0; k++) {
    put_all(l, &t, end, sink, dt, friction);
    status = pipeline_solve(l, &t);
    for (size_t i = 0; i < n && status == 0; i++)
      t.next[i] += t.change[i];
  }
  for (size_t i = 0; i < n; i++)
    finite = finite && isfinite(t.next[i]);
  if (status == 0 && finite)
    memcpy(l->state, t.next, n * sizeof *t.next);
  return status == 0 && !finite ? -ERANGE : status;
}

/* --- steady ------------------------------------------------------------------------------------------------------------- */

/* Decrease of s in a cell at the flow q. */
static double fall(const struct hk_pipeline_cell *cell, double q, double friction)
{
  return (cell->lift + friction * cell->friction * q * fabs(q)) / cell->push;
}

/* The pressure that an end sets at the flow q. */
static double set_by(const struct hk_pipeline_end *e, double q)
{
  return (e->is - e->q * q - e->square * q * fabs(q)) / e->p;
}

/* Residual of the last end's equation if the flow is q everywhere and the first end sets the pressure. */
static double left_over(const struct hk_pipeline_end end[2], double q, double loss, double lift)
{
  const double p = set_by(&end[0], q) - loss * q * fabs(q) - lift;
  return end[1].p * p + end[1].q * q + end[1].square * q * fabs(q) - end[1].is;
}

/* Finds the flow between two ends, each of which may set a pressure, by bisection. */
static int find_flow(const struct hk_pipeline_end end[2], double loss, double lift, double *out)
{
  double low = -1e-6, high = 1e-6;
  while (low > -STEADY_FLOW_MAX && (left_over(end, low, loss, lift) > 0) == (left_over(end, high, loss, lift) > 0)) {
    low *= 2;
    high *= 2;
  }
  if ((left_over(end, low, loss, lift) > 0) == (left_over(end, high, loss, lift) > 0))
    return -EDOM;
  const bool below = left_over(end, low, loss, lift) > 0;
  for (;;) {
    const double middle = (low + high) / 2;
    if (middle <= low || middle >= high)
      break;
    if ((left_over(end, middle, loss, lift) > 0) == below)
      low = middle;
    else
      high = middle;
  }
  *out = high;
  return 0;
}

int hk_pipeline_steady(struct hk_pipeline *l, const struct hk_pipeline_end end[2], double friction)
{
  const uint32_t cells = l->points - 1;
  const bool first = end[0].p != 0, last = end[1].p != 0;
  double loss = 0, lift = 0, q = 0;
  int status = first || last ? 0 : -EDOM;
  for (uint32_t j = 0; j < cells; j++) {
    loss += friction * l->cell[j].friction / l->cell[j].push * l->impedance;
    lift += l->cell[j].lift / l->cell[j].push * l->impedance;
  }
  if (status == 0 && first && last)
    status = find_flow(end, loss, lift, &q);
  else if (status == 0) /* the other one sets the flow */
    q = first ? end[1].is / end[1].q : end[0].is / end[0].q;
  const double p = first ? set_by(&end[0], q) : set_by(&end[1], q) + loss * q * fabs(q) + lift;
  if (status != 0 || !isfinite(q) || !isfinite(p))
    return -EDOM;
  for (uint32_t j = 0; j < l->points; j++) {
    l->state[2 * (size_t)j] = j == 0 ? p / l->impedance : l->state[2 * (size_t)j - 2] - fall(&l->cell[j - 1], q, friction);
    l->state[2 * (size_t)j + 1] = q;
  }
  return 0;
}
