/* The shape of a process (matrix.h): its matrices, where its sensors are, the order of its unknowns, and what its solvers ask
 * about them. Thread: the caller's. */
#ifndef HK_MODEL_MATRIX_SHAPE_H
#define HK_MODEL_MATRIX_SHAPE_H

#include "cpu/band/band.h"
#include "cpu/sparse/market.h"

enum hk_matrix_what {
  HK_MATRIX_UNKNOWN, /* x[at] */
  HK_MATRIX_READING, /* row `at` of H times x */
  HK_MATRIX_INPUT,   /* u[at]; boundaries only */
};

/* Where a sensor is. */
struct hk_matrix_place {
  enum hk_matrix_what what;
  uint32_t at; /* from 0 */
};

struct hk_matrix_shape {
  uint32_t n, drives;
  struct hk_market equations;          /* A, with all places of M */
  const double *storage;               /* M's numbers at the places of A; NULL: M = 0 */
  struct hk_market inputs, readings;   /* B and H; without rows: there is none */
  const struct hk_matrix_place *drive; /* boundaries: unknowns and inputs, none of them twice */
  const double *constant;              /* by column of B: the input, where no boundary gives it */
  const bool *given;                   /* by unknown: a boundary gives it */
  const uint32_t *order;               /* place of an unknown in the band; */
  uint32_t below, above;               /* its diagonals, */
  uint32_t edges;                      /* and numbers above the diagonal, if S is symmetric; */
  bool symmetric;                      /* bit for bit, with a positive diagonal */
};

/* Whether S has a number there: both unknowns have equations, or it is on the diagonal. */
static inline bool hk_matrix_counts(const struct hk_matrix_shape *s, uint32_t row, uint32_t column)
{
  return row == column || (!s->given[row] && !s->given[column]);
}

static inline struct hk_band_shape hk_matrix_band_of(const struct hk_matrix_shape *s)
{
  return (struct hk_band_shape){ 1, s->n, s->below, s->above };
}

/* Finds order, diagonals and symmetry of a shape, from its matrices and `given`; the caller frees *order. Returns 0 or -ENOMEM.
 */
int hk_matrix_order(struct hk_matrix_shape *shape, uint32_t **order);

#endif
