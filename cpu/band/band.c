/* Band matrices on the host: see band.h. */
#include "cpu/band/band.h"
#include "cpu/lapack.h"
#include "cpu/workers.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of a column in the format of dgbtrf, with room for the fill-in of row exchanges. */
static uint32_t stride_of(const struct hk_band_shape *s)
{
  return 2 * s->below + s->above + 1;
}

/* Rows that are laid out together: two cache lines of a column. */
#define LINES 16u

static uint32_t first_column(const struct hk_band_shape *s, uint32_t row)
{
  return row < s->below ? 0 : row - s->below;
}

static uint32_t last_column(const struct hk_band_shape *s, uint32_t row)
{
  return s->n - 1 - row < s->above ? s->n - 1 : row + s->above;
}

/* A system's numbers in the columns of all. */
struct system {
  const double *a, *b;
  double *x;
  size_t lanes;
};

static struct system system_of(const struct hk_band_shape *s, uint32_t i, const double *a, const double *b, double *x)
{
  const size_t of = hk_band_of(s, i, 0);
  return (struct system){ a + hk_band_place(hk_band_lanes(s), i, 0, (size_t)s->n * hk_band_width(s)), b ? b + of : NULL,
                          x ? x + of : NULL, hk_band_lanes(s) };
}

/* Address of A[row][0], if it existed. */
static const double *band_row_of(const struct hk_band_shape *s, const struct system *is, uint32_t row)
{
  return is->a + ((ptrdiff_t)row * hk_band_width(s) + s->below - row) * (ptrdiff_t)is->lanes;
}

/* --- one system --------------------------------------------------------------------------------------------------------- */

int hk_band_open(struct hk_band_work *w, const struct hk_band_shape *s)
{
  *w = (struct hk_band_work){ 0 };
  if (hk_lapack_load(NULL, 0) != 0)
    return -ELIBACC;
  *w = (struct hk_band_work){ .factor = malloc((size_t)s->n * stride_of(s) * sizeof *w->factor),
                              .x = malloc(s->n * sizeof *w->x),
                              .residual = malloc(s->n * sizeof *w->residual),
                              .sum = malloc(s->n * sizeof *w->sum),
                              .pivot = malloc(s->n * sizeof *w->pivot) };
  if (w->factor && w->x && w->residual && w->sum && w->pivot)
    return 0;
  hk_band_close(w);
  return -ENOMEM;
}

void hk_band_close(struct hk_band_work *w)
{
  free(w->factor);
  free(w->x);
  free(w->residual);
  free(w->sum);
  free(w->pivot);
  *w = (struct hk_band_work){ 0 };
}

uint64_t hk_band_need(const struct hk_band_shape *s)
{
  return (uint64_t)s->n * ((stride_of(s) + 3) * sizeof(double) + sizeof(int));
}

/* Copies the band to the format of dgbtrf, and finds the largest number of each column. By LINES rows at a time: those of a
 * column follow one another there, so that a wide band is not written in strides. */
static void band_lay_out(struct hk_band_work *w, const struct hk_band_shape *s, const struct system *is)
{
  const size_t stride = stride_of(s);
  memset(w->factor, 0, s->n * stride * sizeof *w->factor);
  memset(w->sum, 0, s->n * sizeof *w->sum);
  for (uint32_t from = 0; from < s->n; from += LINES) {
    const uint32_t to = s->n - from < LINES ? s->n : from + LINES;
    for (uint32_t column = first_column(s, from), last = last_column(s, to - 1); column <= last; column++) {
      const uint32_t top = column > from + s->above ? column - s->above : from,
                     bottom = column + s->below + 1 < to ? column + s->below + 1 : to;
      double *there = w->factor + column * stride + s->below + s->above - column, largest = w->sum[column];
      for (uint32_t row = top; row < bottom; row++) {
        const double value = band_row_of(s, is, row)[column * is->lanes];
        there[row] = value;
        largest = fmax(largest, fabs(value));
      }
      w->sum[column] = largest;
    }
  }
}

/* Returns the first column without a pivot; n: all have one. */
static uint32_t find_singular(const struct hk_band_work *w, const struct hk_band_shape *s)
{
  const uint32_t stride = stride_of(s);
  for (uint32_t column = 0; column < s->n; column++)
    if (!(fabs(w->factor[(size_t)column * stride + s->below + s->above]) >= HK_BAND_PIVOT * w->sum[column]) ||
        w->sum[column] == 0)
      return column;
  return s->n;
}

/* Solves with the factors, in place of `right`. */
static bool substitute(const struct hk_band_work *w, const struct hk_band_shape *s, double *right)
{
  const lapack_int n = (lapack_int)s->n, below = (lapack_int)s->below, above = (lapack_int)s->above;
  return hk_lapack.dgbtrs_work(LAPACK_COL_MAJOR, 'N', n, below, above, 1, w->factor, (lapack_int)stride_of(s), w->pivot, right,
                               n) == 0;
}

/* The remainder of b[row] - A x, and the sum of the row's magnitudes. SUMMED products at a time are summed plainly; the rounding
 * error of subtracting such a sum from the remainder is kept (Knuth's two-sum), because a row of thousands would otherwise lose
 * more than the error to be measured. */
#define SUMMED 16u

static double rest_of(const struct hk_band_work *w, const struct hk_band_shape *s, const struct system *is, uint32_t row,
                      double *magnitude)
{
  const double *a = band_row_of(s, is, row);
  double rest = is->b[row * is->lanes], lost = 0;
  *magnitude = 0;
  for (uint32_t from = first_column(s, row), last = last_column(s, row); from <= last; from += SUMMED) {
    double part = 0, sum = 0;
    for (uint32_t column = from; column <= last && column < from + SUMMED; column++) {
      const double value = a[column * is->lanes];
      part += value * w->x[column];
      sum += fabs(value);
    }
    const double less = rest - part, taken = less - rest;
    lost += (rest - (less - taken)) - (part + taken);
    rest = less;
    *magnitude += sum;
  }
  return rest + lost;
}

/* Returns the backward error of w->x, and sets w->residual to b - A x. */
static double backward_error(struct hk_band_work *w, const struct hk_band_shape *s, const struct system *is)
{
  double matrix = 0, solution = 0, right = 0, largest = 0;
  for (uint32_t row = 0; row < s->n; row++) {
    double magnitude;
    const double rest = rest_of(w, s, is, row, &magnitude);
    w->residual[row] = rest;
    right = fmax(right, fabs(is->b[row * is->lanes]));
    matrix = fmax(matrix, magnitude);
    solution = fmax(solution, fabs(w->x[row]));
    largest = isnan(rest) ? INFINITY : fmax(largest, fabs(rest));
  }
  return largest > 0 ? largest / (matrix * solution + right) : 0; /* infinite or NaN if there is no finite solution */
}

struct hk_band_outcome hk_band_factorise(struct hk_band_work *w, const struct hk_band_shape *s, uint32_t system, const double *a)
{
  const lapack_int n = (lapack_int)s->n, below = (lapack_int)s->below, above = (lapack_int)s->above;
  const struct system is = system_of(s, system, a, NULL, NULL);
  struct hk_band_outcome out = { 0 };
  band_lay_out(w, s, &is);
  const lapack_int status =
      hk_lapack.dgbtrf_work(LAPACK_COL_MAJOR, n, n, below, above, w->factor, (lapack_int)stride_of(s), w->pivot);
  out.singular = status < 0 ? 0 : find_singular(w, s);
  if (out.singular < s->n)
    out.status = -EDOM;
  else
    out.singular = 0;
  return out;
}

struct hk_band_outcome hk_band_solve_with(struct hk_band_work *w, const struct hk_band_shape *s, uint32_t system, const double *a,
                                          const double *b, double *x)
{
  const struct system is = system_of(s, system, a, b, x);
  struct hk_band_outcome out = { 0 };
  for (uint32_t row = 0; row < s->n; row++)
    w->x[row] = is.b[row * is.lanes];
  if (!substitute(w, s, w->x)) {
    out.status = -EDOM;
    return out;
  }
  out.error = backward_error(w, s, &is);
  if (out.error > HK_BAND_ERROR && substitute(w, s, w->residual)) {
    out.refined = 1;
    for (uint32_t i = 0; i < s->n; i++)
      w->x[i] += w->residual[i];
    out.error = backward_error(w, s, &is);
  }
  out.status = out.error <= HK_BAND_ERROR ? 0 : -ERANGE; /* also if it is NaN */
  for (uint32_t row = 0; row < s->n; row++)
    is.x[row * is.lanes] = w->x[row];
  return out;
}

struct hk_band_outcome hk_band_solve_one(struct hk_band_work *w, const struct hk_band_shape *s, uint32_t system, const double *a,
                                         const double *b, double *x)
{
  const struct hk_band_outcome out = hk_band_factorise(w, s, system, a);
  return out.status == 0 ? hk_band_solve_with(w, s, system, a, b, x) : out;
}

/* --- all of them -------------------------------------------------------------------------------------------------------- */

struct all {
  const struct hk_band_shape *shape;
  const double *a, *b;
  double *x;
  struct hk_band_outcome *outcome;
  atomic_uint next; /* next system to take */
};

struct worker {
  struct hk_worker thread;
  struct all *all;
  struct hk_band_work work;
};

static void *work_on(void *argument)
{
  struct worker *w = argument;
  struct all *all = w->all;
  for (uint32_t i; (i = atomic_fetch_add_explicit(&all->next, 1, memory_order_relaxed)) < all->shape->systems;)
    all->outcome[i] = hk_band_solve_one(&w->work, all->shape, i, all->a, all->b, all->x);
  return NULL;
}

int hk_band_solve(const struct hk_band_shape *s, const double *a, const double *b, double *x, struct hk_band_outcome *outcome,
                  uint32_t threads)
{
  if (!hk_band_is_sound(s) || threads == 0)
    return -EINVAL;
  struct all all = { .shape = s, .a = a, .b = b, .x = x, .outcome = outcome };
  const uint32_t workers = threads < s->systems ? threads : s->systems;
  struct worker *worker = calloc(workers, sizeof *worker);
  int status = worker ? 0 : -ENOMEM;
  for (uint32_t i = 0; i < workers && status == 0; i++) {
    worker[i].all = &all;
    status = hk_band_open(&worker[i].work, s);
  }
  if (status == 0)
    hk_workers_run(work_on, worker, sizeof *worker, workers);
  for (uint32_t i = 0; i < workers && worker; i++)
    hk_band_close(&worker[i].work);
  free(worker);
  return status;
}
