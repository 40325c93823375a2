/* Systems with band matrices of many shapes and kinds, and the check of a solution: its backward error, computed in long double
 * by code that solvers do not use. For C and C++. */
#ifndef HK_TEST_BAND_CASES_H
#define HK_TEST_BAND_CASES_H

#include "cpu/band/band.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum band_kind {
  BAND_RANDOM,
  BAND_DOMINANT, /* rows' diagonals are larger than the rest of the row */
  BAND_WEAK,     /* diagonals are near zero: every step exchanges rows */
  BAND_GRADED,   /* rows of very different scales */
  BAND_PIPES,    /* continuity and momentum of cells, as a model of pipes has them */
  BAND_TIES,     /* numbers -1, 0 and 1: pivots are equally large */
  BAND_SINGULAR, /* a column of zeros */
  BAND_KINDS
};

struct band_case {
  struct hk_band_shape shape;
  enum band_kind kind;
  double *a, *b, *x;
  struct hk_band_outcome *outcome;
};

static inline double band_uniform(uint64_t *seed) /* -1..1 */
{
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(*seed >> 11) / 4503599627370496.0 - 1;
}

static inline uint32_t band_singular_column(const struct hk_band_shape *s, uint32_t system)
{
  return (system * 7 + 3) % s->n;
}

static inline double band_number(const struct hk_band_shape *s, enum band_kind kind, uint32_t system, uint32_t row,
                                 uint32_t column, uint64_t *seed)
{
  const double u = band_uniform(seed), width = hk_band_width(s);
  switch (kind) {
  case BAND_DOMINANT:
    return row == column ? 2 * width + u : u;
  case BAND_WEAK:
    return row == column ? 1e-9 * u : u;
  case BAND_GRADED:
    return (row == column ? width + u : u) * exp(6 * sin(row * 0.7 + system));
  case BAND_PIPES: {
    const bool momentum = row % 2 == 0;
    const uint32_t from = row - (momentum ? 2 : 1), at = column - from;
    if (row == 0 || row + 1 == s->n)
      return column == (row == 0 ? system % 2 : s->n - 1 - system % 2);
    if (at > 3)
      return 0;
    return at % 2 == momentum ? 1 + (momentum ? 1e-3 * (row % 5) : 0) : (at < 2 ? -1 : 1) * (0.2 + system % 9);
  }
  case BAND_TIES:
    return row == column ? 1 : rint(u);
  case BAND_SINGULAR:
    return column == band_singular_column(s, system) ? 0 : row == column ? 2 * width : u;
  default:
    return u;
  }
}

/* False: no memory. x is poisoned, and so are numbers that solvers must not read. */
static inline bool band_make(struct band_case *c, struct hk_band_shape shape, enum band_kind kind, uint64_t seed)
{
  c->shape = shape;
  c->kind = kind;
  c->a = (double *)malloc(hk_band_matrix(&shape) * sizeof(double));
  c->b = (double *)malloc(hk_band_vector(&shape) * sizeof(double));
  c->x = (double *)malloc(hk_band_vector(&shape) * sizeof(double));
  c->outcome = (struct hk_band_outcome *)malloc(shape.systems * sizeof *c->outcome);
  if (!c->a || !c->b || !c->x || !c->outcome)
    return false;
  for (size_t i = 0; i < hk_band_matrix(&shape); i++)
    c->a[i] = NAN;
  for (size_t i = 0; i < hk_band_vector(&shape); i++)
    c->b[i] = c->x[i] = NAN;
  memset(c->outcome, 0xff, shape.systems * sizeof *c->outcome);
  for (uint32_t i = 0; i < shape.systems; i++)
    for (uint32_t row = 0; row < shape.n; row++) {
      c->b[hk_band_of(&shape, i, row)] = band_uniform(&seed);
      for (uint32_t column = row < shape.below ? 0 : row - shape.below; column < shape.n && column <= row + shape.above; column++)
        c->a[hk_band_at(&shape, i, row, column)] = band_number(&shape, kind, i, row, column, &seed);
    }
  return true;
}

static inline void band_drop(struct band_case *c)
{
  free(c->a);
  free(c->b);
  free(c->x);
  free(c->outcome);
}

/* The backward error of a system's x, in units of eps; infinite if x has numbers that are not finite. */
static inline double band_error(const struct band_case *c, uint32_t system)
{
  const struct hk_band_shape *s = &c->shape;
  long double matrix = 0, solution = 0, right = 0, residual = 0;
  for (uint32_t row = 0; row < s->n; row++) {
    long double rest = c->b[hk_band_of(s, system, row)], sum = 0;
    right = fmaxl(right, fabsl(rest));
    for (uint32_t column = row < s->below ? 0 : row - s->below; column < s->n && column <= row + s->above; column++) {
      const long double value = c->a[hk_band_at(s, system, row, column)];
      rest -= value * c->x[hk_band_of(s, system, column)];
      sum += fabsl(value);
    }
    if (!isfinite((double)rest))
      return INFINITY;
    matrix = fmaxl(matrix, sum);
    solution = fmaxl(solution, fabsl((long double)c->x[hk_band_of(s, system, row)]));
    residual = fmaxl(residual, fabsl(rest));
  }
  return residual > 0 ? (double)(residual / (matrix * solution + right) / 2.220446049250313e-16L) : 0;
}

/* The error in a system's solution; NULL: none. A matrix of -1, 0, 1 may happen to be singular. */
static inline const char *band_fault(const struct band_case *c, uint32_t system)
{
  const struct hk_band_outcome *o = &c->outcome[system];
  if (c->kind == BAND_SINGULAR)
    return o->status != -EDOM                                       ? "a singular matrix has a solution"
           : o->singular != band_singular_column(&c->shape, system) ? "another column is said to have no pivot"
                                                                    : NULL;
  if (o->status == -EDOM && c->kind == BAND_TIES)
    return NULL;
  if (o->status != 0)
    return o->status == -EDOM ? "no pivot" : "no solution";
  return !(band_error(c, system) <= 8.1) ? "the backward error is too large"
         : !(fabs(o->error / 2.220446049250313e-16 - band_error(c, system)) <= 1.5)
             ? "another backward error is said" /* which has one of its own */
             : NULL;
}

/* Shapes: where lines, warps, chunks and windows end; all widths; more diagonals on one side than there are columns. */
static const struct hk_band_shape BAND_SHAPES[] = {
  { 1, 1, 0, 0 },    { 3, 1, 2, 2 },    { 33, 2, 2, 2 },   { 1, 3, 1, 2 },    { 40, 4, 1, 1 },    { 31, 5, 2, 2 },
  { 32, 6, 2, 2 },   { 65, 7, 2, 2 },   { 33, 64, 2, 2 },  { 5, 101, 2, 2 },  { 2, 402, 2, 2 },   { 1, 402, 2, 2 },
  { 7, 50, 0, 3 },   { 7, 51, 3, 0 },   { 9, 52, 3, 3 },   { 9, 53, 4, 4 },   { 9, 54, 1, 4 },    { 6, 90, 5, 5 },
  { 3, 10, 8, 8 },   { 3, 90, 8, 8 },   { 5, 91, 7, 6 },   { 2, 30, 9, 9 },   { 3, 120, 16, 16 }, { 2, 33, 16, 16 },
  { 2, 34, 16, 16 }, { 1, 12, 16, 16 }, { 2, 121, 16, 3 }, { 2, 122, 0, 16 }, { 2, 123, 16, 0 },  { 4, 66, 12, 11 },
};
#define BAND_SHAPE_COUNT (sizeof BAND_SHAPES / sizeof *BAND_SHAPES)

/* Wide bands: where blocks of 32 and 128 columns end, more diagonals on one side than there are columns, unequal sides. */
static const struct hk_band_shape BAND_WIDE_SHAPES[] = {
  { 1, 40, 17, 17 },  { 1, 63, 31, 33 },    { 1, 64, 32, 32 },     { 2, 65, 33, 31 },  { 1, 300, 20, 90 },
  { 1, 301, 90, 20 }, { 1, 513, 0, 40 },    { 1, 512, 40, 0 },     { 1, 900, 64, 64 }, { 1, 1025, 1, 96 },
  { 1, 1000, 96, 1 }, { 1, 200, 300, 400 }, { 1, 1200, 129, 127 },
};
#define BAND_WIDE_COUNT (sizeof BAND_WIDE_SHAPES / sizeof *BAND_WIDE_SHAPES)

/* Whether a kind makes sense for a shape: solutions of nearly triangular matrices whose diagonals do not dominate exceed the
 * range of numbers. */
static inline bool band_suits(const struct hk_band_shape *s, enum band_kind kind)
{
  if (kind != BAND_DOMINANT && kind != BAND_GRADED && kind != BAND_SINGULAR &&
      (20 * s->below < s->above + 1 || 20 * s->above < s->below + 1))
    return false;
  return kind != BAND_PIPES || (s->below == 2 && s->above == 2 && s->n % 2 == 0 && s->n >= 4);
}

#endif
