/* Many systems of linear equations A x = b with thin band matrices, all of one shape, in double precision, by Gaussian
 * elimination with partial pivoting: on the host by LAPACK's dgbtrf and dgbtrs, threads over systems; gpu/band/band_gpu.h is the
 * same on a GPU.
 *
 * A system's matrix is stored by rows: below + 1 + above numbers of a row, from column row - below on, so that A[row][column] is
 * number column - row + below; those of columns that do not exist are not looked at. Numbers of HK_BAND_LANES systems lie side by
 * side where there are several with up to HK_BAND_SIDE_BY_SIDE diagonals on a side (a thread of a GPU solves one, and
 * neighbouring threads read neighbouring numbers); else a system's numbers lie together. hk_band_at and hk_band_of say where a
 * number is.
 *
 * Promise of each solution, else its outcome has a status: the backward error |b - A x| / (|A| |x| + |b|), in the maximum norm,
 * is at most HK_BAND_ERROR. A solution for which it is larger is refined once. A pivot below HK_BAND_PIVOT times the largest
 * number of its column of A is none.
 *
 * The same numbers give the same bits, on one machine, however many threads there are. */
#ifndef HK_BAND_H
#define HK_BAND_H

#include "cpu/detector.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HK_BAND_HALF_MAX 16u     /* diagonals on a side */
#define HK_BAND_N_MAX (1u << 25) /* equations */
#define HK_BAND_SIDE_BY_SIDE 4u  /* diagonals on a side, up to which */
#define HK_BAND_LANES 32u        /* so many systems lie side by side */
#define HK_BAND_ERROR (8 * 2.220446049250313e-16)
#define HK_BAND_PIVOT 9.094947017729282e-13 /* 2^-40 */

struct hk_band_shape {
  uint32_t systems;      /* at least 1 */
  uint32_t n;            /* equations of each; 1..HK_BAND_N_MAX */
  uint32_t below, above; /* diagonals; 0..HK_BAND_HALF_MAX */
};

/* What became of a system. */
struct hk_band_outcome {
  double error;      /* backward error of its solution */
  int32_t status;    /* 0; -EDOM: A is singular; -ERANGE: no solution with a small backward error. Then x is not one. */
  uint32_t singular; /* after -EDOM: the first column without a pivot */
  uint32_t refined;  /* 0 or 1 */
  uint32_t unused;
};

/* Whether it is within its limits. */
HK_INLINE bool hk_band_is_sound(const struct hk_band_shape *s)
{
  return s->systems > 0 && s->n > 0 && s->n <= HK_BAND_N_MAX && s->below <= HK_BAND_HALF_MAX && s->above <= HK_BAND_HALF_MAX;
}

HK_INLINE uint32_t hk_band_width(const struct hk_band_shape *s)
{
  return s->below + 1 + s->above;
}

HK_INLINE uint32_t hk_band_lanes(const struct hk_band_shape *s)
{
  const uint32_t half = s->below > s->above ? s->below : s->above;
  return s->systems > 1 && half <= HK_BAND_SIDE_BY_SIDE ? HK_BAND_LANES : 1;
}

/* Place of number `at` of a system's `numbers`. */
HK_INLINE size_t hk_band_place(uint32_t lanes, uint32_t system, size_t at, size_t numbers)
{
  return (system / lanes * numbers + at) * lanes + system % lanes;
}

/* Place of b[row] and x[row], and of A[row][column], of a system. */
HK_INLINE size_t hk_band_of(const struct hk_band_shape *s, uint32_t system, uint32_t row)
{
  return hk_band_place(hk_band_lanes(s), system, row, s->n);
}

HK_INLINE size_t hk_band_at(const struct hk_band_shape *s, uint32_t system, uint32_t row, uint32_t column)
{
  const size_t width = hk_band_width(s);
  return hk_band_place(hk_band_lanes(s), system, row * width + column + s->below - row, s->n * width);
}

/* Numbers of all systems together: of the right sides or solutions, and of the matrices. */
HK_INLINE size_t hk_band_vector(const struct hk_band_shape *s)
{
  const size_t lanes = hk_band_lanes(s);
  return (s->systems + lanes - 1) / lanes * lanes * s->n;
}

HK_INLINE size_t hk_band_matrix(const struct hk_band_shape *s)
{
  return hk_band_vector(s) * hk_band_width(s);
}

/* Memory to solve one system after another in. */
struct hk_band_work {
  double *factor;             /* as dgbtrf has it */
  double *x, *residual, *sum; /* of a system */
  int *pivot;
};

/* 0 or -ENOMEM; hk_band_close: also one that is all zero. hk_band_need: bytes of it. */
int hk_band_open(struct hk_band_work *work, const struct hk_band_shape *shape);
void hk_band_close(struct hk_band_work *work);
uint64_t hk_band_need(const struct hk_band_shape *shape);

/* Solves one system: reads a and b and writes x at its places. */
struct hk_band_outcome hk_band_solve_one(struct hk_band_work *work, const struct hk_band_shape *shape, uint32_t system,
                                         const double *a, const double *b, double *x);

/* Solves all, by so many threads (at least 1). outcome: of each. 0; -EINVAL: the shape is out of its limits; -ENOMEM. What came
 * of single systems their outcomes say. */
int hk_band_solve(const struct hk_band_shape *shape, const double *a, const double *b, double *x, struct hk_band_outcome *outcome,
                  uint32_t threads);

#ifdef __cplusplus
}
#endif
#endif
