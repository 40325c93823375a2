/* One line of pipes: see pipeline.h. The equations' order is: the first end, then continuity and momentum of each cell, then the
 * last end; the unknowns' is s, q by point. */
#include "cpu/model/pipeline.h"

#include <errno.h>
#include <float.h>
#include <lapacke.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BELOW 2 /* diagonals */
#define ABOVE 2
#define STRIDE (2 * BELOW + ABOVE + 1) /* numbers of a column, as dgbtrf has them */
#define STEADY_FLOW_MAX 1e6            /* m^3/s; a thousand times the largest river's is no pipe's */

/* Columns of a step. */
struct step {
  double *next;   /* the state that is looked for */
  double *rest;   /* of the equations, with the opposite sign */
  double *change; /* of the state */
  double *residual, *row;
  double *band, *factor;
};

static struct step step_of(const struct hk_pipeline *l)
{
  const size_t n = 2 * (size_t)l->points;
  double *at = l->memory;
  return (struct step){ at, at + n, at + 2 * n, at + 3 * n, at + 4 * n, at + 5 * n, at + (5 + STRIDE) * n };
}

uint64_t hk_pipeline_need(uint32_t cells)
{
  return 2 * ((uint64_t)cells + 1) * ((6 + 2 * STRIDE) * sizeof(double) + sizeof(int));
}

int hk_pipeline_open(struct hk_pipeline *l, const struct hk_pipeline_cell *cell, uint32_t cells, double impedance)
{
  const size_t n = 2 * ((size_t)cells + 1);
  *l = (struct hk_pipeline){ .cell = cell, .points = cells + 1, .impedance = impedance };
  l->state = calloc(n, sizeof *l->state);
  l->memory = malloc((5 + 2 * STRIDE) * n * sizeof *l->memory);
  l->pivot = malloc(n * sizeof *l->pivot);
  if (l->state && l->memory && l->pivot)
    return 0;
  hk_pipeline_close(l);
  return -ENOMEM;
}

void hk_pipeline_close(struct hk_pipeline *l)
{
  free(l->state);
  free(l->memory);
  free(l->pivot);
  l->state = l->memory = NULL;
  l->pivot = NULL;
}

/* --- the equations ------------------------------------------------------------------------------------------------------ */

static double *at(double *band, size_t row, size_t column)
{
  return &band[column * STRIDE + BELOW + ABOVE + row - column];
}

/* Of an end, divided by its largest coefficient. */
static void put_end(const struct hk_pipeline *l, const struct step *t, const struct hk_pipeline_end *e, size_t row, size_t point)
{
  const double s = t->next[2 * point], q = t->next[2 * point + 1];
  const double by_s = e->p * l->impedance, by_q = e->q + 2 * e->square * fabs(q);
  const double largest = fmax(fabs(by_s), fabs(by_q)), scale = largest > 0 ? 1 / largest : 1;
  *at(t->band, row, 2 * point) = by_s * scale;
  *at(t->band, row, 2 * point + 1) = by_q * scale;
  t->rest[row] = -(by_s * s + e->q * q + e->square * q * fabs(q) - e->is) * scale;
}

/* Of cell j, times 2 dt. */
static void put_cell(const struct hk_pipeline *l, const struct step *t, uint32_t j, double sink, double dt, double friction)
{
  const struct hk_pipeline_cell *cell = &l->cell[j];
  const double *old = l->state + 2 * (size_t)j, *new = t->next + 2 * (size_t)j;
  const size_t row = 2 * (size_t)j + 1, column = 2 * (size_t)j;
  const double w = HK_PIPELINE_WEIGHT, wave = 2 * dt * cell->wave, push = 2 * dt * cell->push,
               rub = 2 * dt * friction * cell->friction;
  const double was = (old[1] + old[3]) / 2, is = (new[1] + new[3]) / 2;
  t->rest[row] = -(new[0] + new[2] - old[0] - old[2] + wave *(w * (new[3] - new[1]) + (1 - w) * (old[3] - old[1]) + sink));
  *at(t->band, row, column) = *at(t->band, row, column + 2) = 1;
  *at(t->band, row, column + 1) = -wave * w;
  *at(t->band, row, column + 3) = wave * w;
  t->rest[row + 1] = -(new[1] + new[3] - old[1] - old[3] + push *(w * (new[2] - new[0]) + (1 - w) * (old[2] - old[0])) +
                       2 * dt * cell->lift + rub *(w * is * fabs(is) + (1 - w) * was * fabs(was)));
  *at(t->band, row + 1, column) = -push * w;
  *at(t->band, row + 1, column + 2) = push * w;
  *at(t->band, row + 1, column + 1) = *at(t->band, row + 1, column + 3) = 1 + rub * w * fabs(is);
}

static void put_all(const struct hk_pipeline *l, const struct step *t, const struct hk_pipeline_end end[2], const double *sink,
                    double dt, double friction)
{
  const uint32_t cells = l->points - 1;
  memset(t->band, 0, 2 * (size_t)l->points * STRIDE * sizeof *t->band);
  put_end(l, t, &end[0], 0, 0);
  for (uint32_t j = 0; j < cells; j++)
    put_cell(l, t, j, sink ? sink[j] : 0, dt, friction);
  put_end(l, t, &end[1], 2 * (size_t)l->points - 1, cells);
}

/* --- their solution ----------------------------------------------------------------------------------------------------- */

/* The backward error of `change`; residual = rest - band change. */
static double backward_error(const struct step *t, size_t n)
{
  double matrix = 0, solution = 0, right = 0, residual = 0;
  memcpy(t->residual, t->rest, n * sizeof *t->residual);
  memset(t->row, 0, n * sizeof *t->row);
  for (size_t column = 0; column < n; column++)
    for (size_t row = column < ABOVE ? 0 : column - ABOVE; row <= column + BELOW && row < n; row++) {
      const double value = *at(t->band, row, column);
      t->residual[row] -= value * t->change[column];
      t->row[row] += fabs(value);
    }
  for (size_t i = 0; i < n; i++) {
    matrix = fmax(matrix, t->row[i]);
    solution = fmax(solution, fabs(t->change[i]));
    right = fmax(right, fabs(t->rest[i]));
    residual = fmax(residual, fabs(t->residual[i]));
  }
  const double all = matrix * solution + right;
  return all > 0 ? residual / all : 0;
}

/* The unknown whose pivot is too small; n: none. */
static size_t find_small(const struct step *t, size_t n)
{
  for (size_t column = 0; column < n; column++) {
    double largest = 0;
    for (size_t k = BELOW; k < STRIDE; k++)
      largest = fmax(largest, fabs(t->band[column * STRIDE + k]));
    if (!(fabs(*at(t->factor, column, column)) >= HK_PIPELINE_PIVOT * largest) || largest == 0)
      return column;
  }
  return n;
}

/* `right`, n numbers, becomes what the factors make of it. */
static bool substitute(const struct hk_pipeline *l, const struct step *t, double *right, size_t n)
{
  return LAPACKE_dgbtrs_work(LAPACK_COL_MAJOR, 'N', (lapack_int)n, BELOW, ABOVE, 1, t->factor, STRIDE, l->pivot, right,
                             (lapack_int)n) == 0;
}

/* band change = rest. 0, -EDOM or -ERANGE. */
static int solve(struct hk_pipeline *l, const struct step *t)
{
  const size_t n = 2 * (size_t)l->points;
  memcpy(t->factor, t->band, n * STRIDE * sizeof *t->factor);
  memcpy(t->change, t->rest, n * sizeof *t->change);
  const lapack_int status =
      LAPACKE_dgbtrf_work(LAPACK_COL_MAJOR, (lapack_int)n, (lapack_int)n, BELOW, ABOVE, t->factor, STRIDE, l->pivot);
  const size_t small = status < 0 ? 0 : find_small(t, n);
  if (status < 0 || small < n || !substitute(l, t, t->change, n)) {
    l->singular = (uint32_t)(small / 2);
    return -EDOM;
  }
  double error = backward_error(t, n);
  if (error > HK_PIPELINE_ERROR && substitute(l, t, t->residual, n)) {
    l->refined++;
    for (size_t i = 0; i < n; i++)
      t->change[i] += t->residual[i];
    error = backward_error(t, n);
  }
  l->error = fmax(l->error, error);
  return error <= HK_PIPELINE_ERROR ? 0 : -ERANGE; /* also where it is NaN */
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
    status = solve(l, &t);
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

/* How far s falls in a cell at the flow q. */
static double fall(const struct hk_pipeline_cell *cell, double q, double friction)
{
  return (cell->lift + friction * cell->friction * q * fabs(q)) / cell->push;
}

/* The pressure that an end sets at the flow q. */
static double set_by(const struct hk_pipeline_end *e, double q)
{
  return (e->is - e->q * q - e->square * q * fabs(q)) / e->p;
}

/* What is left of the last end's equation if q flows everywhere and the first end sets the pressure. */
static double left_over(const struct hk_pipeline_end end[2], double q, double loss, double lift)
{
  const double p = set_by(&end[0], q) - loss * q * fabs(q) - lift;
  return end[1].p * p + end[1].q * q + end[1].square * q * fabs(q) - end[1].is;
}

/* The flow of two ends of which each may set a pressure, by halves. */
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
