/* The order of the unknowns of a process (matrix.h), and what its solvers ask about its shape. Thread: the caller's. */
#ifndef HK_MODEL_MATRIX_SHAPE_H
#define HK_MODEL_MATRIX_SHAPE_H

#include "cpu/model/matrix.h"

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
