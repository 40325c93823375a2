/* Processes given as matrices: see matrix.h. */
#include "cpu/model/matrix.h"

#include "cpu/lapack.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDE_LEAST ((uint64_t)1 << 20) /* unknowns times diagonals on a side from which a GPU is worth it */
#define COLUMNS 6u                     /* of memory, by unknown */

static bool fits(const struct hk_matrix_shape *s)
{
  const struct hk_band_shape band = hk_matrix_band_of(s);
  return hk_band_is_sound(&band) && (uint64_t)s->n * (2 * (uint64_t)s->below + s->above + 1) <= HK_MATRIX_NUMBERS_MAX;
}

bool hk_matrix_is_wide(const struct hk_matrix_shape *s)
{
  const struct hk_band_shape band = hk_matrix_band_of(s);
  const uint64_t half = s->below > s->above ? s->below : s->above;
  return !s->symmetric && !hk_band_is_thin(&band) && half * s->n >= WIDE_LEAST;
}

/* --- the band on the host ----------------------------------------------------------------------------------------------- */

struct host_band {
  struct hk_band_shape shape;
  struct hk_band_work work;
};

static int matrix_open_host(void **out, const struct hk_band_shape *shape, uint32_t number, char *error, size_t size)
{
  (void)number;
  if (hk_lapack_load(error, size) != 0)
    return -ELIBACC;
  struct host_band *h = calloc(1, sizeof *h);
  if (!h || hk_band_open(&h->work, shape) != 0) {
    free(h);
    snprintf(error, size, "out of memory");
    return -ENOMEM;
  }
  h->shape = *shape;
  *out = h;
  return 0;
}

static void matrix_close_host(void *solver)
{
  struct host_band *h = solver;
  if (h)
    hk_band_close(&h->work);
  free(h);
}

static int solve_host(void *solver, const double *a, const double *b, double *x, struct hk_band_outcome *outcome)
{
  struct host_band *h = solver;
  *outcome = hk_band_solve_one(&h->work, &h->shape, 0, a, b, x);
  return 0;
}

static int solve_with_host(void *solver, const double *a, const double *b, double *x, struct hk_band_outcome *outcome)
{
  struct host_band *h = solver;
  *outcome = hk_band_solve_with(&h->work, &h->shape, 0, a, b, x);
  return 0;
}

const struct hk_matrix_band hk_matrix_band_host = { matrix_open_host, matrix_close_host, solve_host, solve_with_host, false };

/* --- life --------------------------------------------------------------------------------------------------------------- */

/* Columns of the memory. */
static double *column_of(const struct hk_matrix *w, uint32_t k)
{
  return w->memory + (size_t)k * w->shape->n;
}

static double *right_of(const struct hk_matrix *w) /* b, and what is solved for */
{
  return column_of(w, 0);
}

static double *matrix_next_of(const struct hk_matrix *w)
{
  return column_of(w, 1);
}

static double *value_of(const struct hk_matrix *w) /* of given unknowns */
{
  return column_of(w, 2);
}

static double *matrix_scale_of(const struct hk_matrix *w)
{
  return column_of(w, 3);
}

static double *spare_of(const struct hk_matrix *w)
{
  return column_of(w, 4);
}

static double *inputs_of(const struct hk_matrix *w) /* u, behind the columns */
{
  return column_of(w, COLUMNS);
}

static int open_sparse(struct hk_matrix *w)
{
  const struct hk_matrix_shape *s = w->shape;
  const struct hk_market *a = &s->equations;
  uint32_t(*edge)[2] = malloc(((size_t)s->edges + 1) * sizeof *edge), n = 0;
  if (!edge)
    return -ENOMEM;
  for (uint32_t i = 0; i < s->n; i++)
    for (uint32_t k = a->at[i]; k < a->at[i + 1]; k++)
      if (a->column[k] > i && hk_matrix_counts(s, i, a->column[k])) {
        edge[n][0] = i;
        edge[n++][1] = a->column[k];
      }
  const int status = hk_sparse_open(&w->sparse, NULL, s->n, (const uint32_t(*)[2])edge, s->edges);
  free(edge);
  return status;
}

/* Makes the solver of the band. */
static int open_solver(struct hk_matrix *w, char *error, size_t size)
{
  const struct hk_band_shape band = hk_matrix_band_of(w->shape);
  if (!fits(w->shape)) {
    snprintf(error, size, "the matrix has %u and %u diagonals beside the main one in the best order that was found: too many",
             w->shape->below, w->shape->above);
    return -E2BIG;
  }
  return w->band->open(&w->solver, &band, w->number, error, size);
}

int hk_matrix_open(struct hk_matrix *w, const struct hk_matrix_shape *s, const struct hk_matrix_band *band, uint32_t number,
                   char *error, size_t size)
{
  *w = (struct hk_matrix){ .shape = s, .band = band ? band : &hk_matrix_band_host, .number = number };
  w->state = calloc(s->n, sizeof *w->state);
  w->memory = calloc((size_t)COLUMNS * s->n + s->inputs.columns, sizeof *w->memory);
  int status = w->state && w->memory ? 0 : -ENOMEM;
  if (status == 0 && s->symmetric)
    status = open_sparse(w);
  if (status == -E2BIG)
    status = 0; /* as a band, then */
  if (status == -ENOMEM)
    snprintf(error, size, "out of memory");
  if (status == 0 && !w->sparse)
    status = open_solver(w, error, size);
  if (status != 0)
    hk_matrix_close(w);
  return status;
}

void hk_matrix_close(struct hk_matrix *w)
{
  if (w->solver)
    w->band->close(w->solver);
  hk_sparse_close(w->sparse);
  free(w->state);
  free(w->memory);
  free(w->numbers);
  *w = (struct hk_matrix){ 0 };
}

const char *hk_matrix_solver(const struct hk_matrix *w)
{
  return w->sparse && !w->banded ? hk_sparse_facts(w->sparse).solver : "band LU";
}

uint64_t hk_matrix_bytes(const struct hk_matrix_shape *s)
{
  const struct hk_band_shape band = hk_matrix_band_of(s);
  const uint64_t own = sizeof(struct hk_matrix) + ((COLUMNS + 1) * (uint64_t)s->n + s->inputs.columns) * sizeof(double);
  struct hk_matrix w = { .shape = s };
  if (s->symmetric && open_sparse(&w) == 0) {
    const uint64_t bytes = hk_sparse_facts(w.sparse).bytes;
    hk_sparse_close(w.sparse);
    return own + bytes;
  }
  return own + hk_band_need(&band) + hk_band_matrix(&band) * sizeof(double);
}

/* --- factors ------------------------------------------------------------------------------------------------------------ */

/* The number of S at a place of A. */
static double matrix_number_at(const struct hk_matrix *w, uint32_t k, double dt, double times)
{
  return times * w->shape->equations.value[k] + (w->shape->storage ? w->shape->storage[k] / dt : 0);
}

/* The power of two nearest below the root of 1 / value, or (whole) below 1 / value. */
static double scale_for(double value, bool whole)
{
  int exponent = 0;
  (void)frexp(value, &exponent);
  return value > 0 && isfinite(value) ? ldexp(1, -(whole ? exponent : exponent / 2)) : 1;
}

/* As D S D with powers of two in D. Returns 0, or -EDOM: S is not positive definite. */
static int factorise_sparse(struct hk_matrix *w, double dt, double times)
{
  const struct hk_matrix_shape *s = w->shape;
  const struct hk_market *a = &s->equations;
  double *scale = matrix_scale_of(w), *diagonal = spare_of(w), *beside = malloc(((size_t)s->edges + 1) * sizeof *beside);
  uint32_t n = 0;
  if (!beside)
    return -ENOMEM;
  for (uint32_t i = 0; i < s->n; i++) {
    const double own = s->given[i] ? 1 : matrix_number_at(w, hk_market_place(a, i, i), dt, times);
    scale[i] = scale_for(own, false);
    diagonal[i] = own * scale[i] * scale[i];
  }
  for (uint32_t i = 0; i < s->n; i++)
    for (uint32_t k = a->at[i]; k < a->at[i + 1]; k++)
      if (a->column[k] > i && hk_matrix_counts(s, i, a->column[k]))
        beside[n++] = matrix_number_at(w, k, dt, times) * scale[i] * scale[a->column[k]];
  const int status = hk_sparse_factorise(w->sparse, diagonal, beside);
  free(beside);
  return status;
}

/* Lays S out as a band, each row times a power of two. Returns 0 or an error of the solver. */
static int lay_band_out(struct hk_matrix *w, double dt, double times)
{
  const struct hk_matrix_shape *s = w->shape;
  const struct hk_market *a = &s->equations;
  const struct hk_band_shape band = hk_matrix_band_of(s);
  char error[160];
  int status = w->solver ? 0 : open_solver(w, error, sizeof error);
  if (status == 0 && !w->numbers && !(w->numbers = malloc(hk_band_matrix(&band) * sizeof *w->numbers)))
    status = -ENOMEM;
  if (status != 0)
    return status;
  memset(w->numbers, 0, hk_band_matrix(&band) * sizeof *w->numbers);
  for (uint32_t i = 0; i < s->n; i++) {
    double largest = s->given[i];
    for (uint32_t k = a->at[i]; k < a->at[i + 1] && !s->given[i]; k++)
      largest = fmax(largest, fabs(matrix_number_at(w, k, dt, times)));
    matrix_scale_of(w)[i] = scale_for(largest, true);
    for (uint32_t k = a->at[i]; k < a->at[i + 1] && !s->given[i]; k++)
      if (hk_matrix_counts(s, i, a->column[k]))
        w->numbers[hk_band_at(&band, 0, s->order[i], s->order[a->column[k]])] =
            matrix_number_at(w, k, dt, times) * matrix_scale_of(w)[i];
    if (s->given[i])
      w->numbers[hk_band_at(&band, 0, s->order[i], s->order[i])] = matrix_scale_of(w)[i];
  }
  w->fresh = true;
  return 0;
}

/* Factorises S, unless its factors are there. */
static int matrix_factorise(struct hk_matrix *w, double dt, double times)
{
  if (w->dt > 0 && !(w->dt < dt) && !(w->dt > dt) && !(w->times < times) && !(w->times > times))
    return 0;
  w->dt = 0;
  w->banded = !w->sparse;
  int status = w->sparse ? factorise_sparse(w, dt, times) : -EDOM;
  if (status == -EDOM) { /* indefinite, or not symmetric */
    w->banded = true;
    status = lay_band_out(w, dt, times);
  }
  if (status == 0) {
    w->dt = dt;
    w->times = times;
  }
  return status;
}

/* Solves the band for the right side, and says which unknown is singular. */
static int solve_band_for(struct hk_matrix *w, double *x)
{
  const struct hk_matrix_shape *s = w->shape;
  double *right = spare_of(w), *there = column_of(w, 5);
  struct hk_band_outcome o;
  for (uint32_t i = 0; i < s->n; i++)
    right[s->order[i]] = right_of(w)[i] * matrix_scale_of(w)[i];
  const int failed = (w->fresh ? w->band->solve : w->band->solve_with)(w->solver, w->numbers, right, there, &o);
  if (failed)
    return failed;
  w->error = o.error;
  w->fresh = false;
  for (uint32_t i = 0; i < s->n && o.status == -EDOM; i++)
    if (s->order[i] == o.singular)
      w->singular = i;
  for (uint32_t i = 0; i < s->n && o.status == 0; i++)
    x[i] = there[s->order[i]];
  if (w->band->keeps) {
    free(w->numbers);
    w->numbers = NULL;
  }
  return o.status;
}

/* Solves S x = right. */
static int solve_for(struct hk_matrix *w, double *x)
{
  int status = 0;
  if (w->banded) {
    status = solve_band_for(w, x);
  } else {
    for (uint32_t i = 0; i < w->shape->n; i++)
      right_of(w)[i] *= matrix_scale_of(w)[i];
    status = hk_sparse_solve(w->sparse, right_of(w), x, &w->error);
    for (uint32_t i = 0; i < w->shape->n; i++)
      x[i] *= matrix_scale_of(w)[i];
  }
  for (uint32_t i = 0; i < w->shape->n && status == 0; i++)
    if (!isfinite(x[i]))
      status = -ERANGE;
  if (status == -EDOM || status == -EIO)
    w->dt = 0;
  return status;
}

/* --- steps -------------------------------------------------------------------------------------------------------------- */

/* Puts B u, and what comes in beside, less what measured unknowns give, on the right side. dt: INFINITY: steady. */
static void put_right(struct hk_matrix *w, const double *is, const double *more, double dt, double times)
{
  const struct hk_matrix_shape *s = w->shape;
  const struct hk_market *a = &s->equations;
  double *right = right_of(w), *value = value_of(w), *u = inputs_of(w);
  if (s->inputs.columns > 0)
    memcpy(u, s->constant, s->inputs.columns * sizeof *u);
  for (uint32_t k = 0; k < s->drives; k++)
    *(s->drive[k].what == HK_MATRIX_INPUT ? &u[s->drive[k].at] : &value[s->drive[k].at]) = is[k];
  for (uint32_t i = 0; i < s->n; i++) {
    if (s->given[i]) {
      right[i] = value[i];
      continue;
    }
    double sum = (s->inputs.rows > 0 ? hk_market_times(&s->inputs, i, u) : 0) + (more ? more[i] : 0);
    for (uint32_t k = a->at[i]; k < a->at[i + 1]; k++) {
      const uint32_t j = a->column[k];
      if (s->storage)
        sum += s->storage[k] / dt * w->state[j];
      if (s->given[j])
        sum -= matrix_number_at(w, k, dt, times) * value[j];
    }
    right[i] = sum;
  }
}

/* The largest of A^-1 M 1, with A's factors. */
static int find_age(struct hk_matrix *w)
{
  const struct hk_matrix_shape *s = w->shape;
  w->age = 0;
  if (!s->storage)
    return 0;
  for (uint32_t i = 0; i < s->n; i++) {
    right_of(w)[i] = 0;
    for (uint32_t k = s->equations.at[i]; k < s->equations.at[i + 1] && !s->given[i]; k++)
      right_of(w)[i] += s->storage[k];
  }
  double *time = value_of(w); /* its numbers are put anew in each step */
  const int status = solve_for(w, time);
  for (uint32_t i = 0; i < s->n && status == 0; i++)
    w->age = fmax(w->age, fabs(time[i]));
  return status;
}

int hk_matrix_step(struct hk_matrix *w, const double *is, const double *more, double dt, double times)
{
  int status = matrix_factorise(w, dt, times);
  if (status != 0)
    return status;
  put_right(w, is, more, dt, times);
  status = solve_for(w, matrix_next_of(w));
  if (status == 0)
    memcpy(w->state, matrix_next_of(w), w->shape->n * sizeof *w->state);
  return status;
}

int hk_matrix_steady(struct hk_matrix *w, const double *is, double times)
{
  int status = matrix_factorise(w, INFINITY, times);
  if (status != 0)
    return status;
  put_right(w, is, NULL, INFINITY, times);
  status = solve_for(w, matrix_next_of(w));
  if (status == 0)
    status = find_age(w);
  if (status == 0)
    memcpy(w->state, matrix_next_of(w), w->shape->n * sizeof *w->state);
  return status;
}

void hk_matrix_read(const struct hk_matrix *w, const struct hk_matrix_place *place, uint32_t n, double *value)
{
  for (uint32_t i = 0; i < n; i++)
    value[i] = place[i].what == HK_MATRIX_UNKNOWN   ? w->state[place[i].at]
               : place[i].what == HK_MATRIX_READING ? hk_market_times(&w->shape->readings, place[i].at, w->state)
                                                    : NAN;
}
