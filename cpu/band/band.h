/* Solves systems of linear equations A x = b with band matrices of one shape, in double precision, by Gaussian elimination with
 * partial pivoting, as LAPACK's dgbtrf and dgbtrs do, which the host uses.
 *
 * Which function for which size, where `half` is the larger of the diagonals below and above:
 *   half to HK_BAND_THIN, many systems     hk_band_solve, threads over systems; gpu/band/band_gpu.h: thousands on a GPU
 *   any half, one system                   hk_band_solve_one; on OpenBLAS's threads (cpu/lapack.h has it use one)
 *   one matrix, many right sides in time   hk_band_factorise once, hk_band_solve_with for each: 4 n half^2 operations once, and
 *                                          8 n half with the backward error of each
 *   one wide band that is full, on a GPU   gpu/band/wide_gpu.h
 * A network of pipes is nearly a tree, and its wide band nearly empty: it is solved by cpu/sparse/, on one core six to ten times
 * as fast as by the band on a GPU (tests/bench/results/band-wide.txt).
 * Work memory: about n (3 half + 4) numbers (hk_band_need), for A as it is stored n (2 half + 1).
 *
 * A system's matrix is stored by rows of below + 1 + above numbers, from column row - below on, so that A[row][column] is number
 * column - row + below; those of columns that do not exist are not read. If there are several systems with at most
 * HK_BAND_SIDE_BY_SIDE diagonals on a side, the numbers of HK_BAND_LANES systems are interleaved (each thread of a GPU solves
 * one, and neighbouring threads read neighbouring numbers); otherwise those of a system are contiguous. hk_band_at and hk_band_of
 * return the index of a number.
 *
 * Promise of each solution, unless its outcome has a status: the backward error |b - A x| / (|A| |x| + |b|), in the maximum norm,
 * is at most HK_BAND_ERROR. A solution with a larger error is refined once. A matrix with a pivot below HK_BAND_PIVOT times the
 * largest number of its column of A is singular.
 *
 * On one machine the same numbers give the same bits, with any number of threads. */
#ifndef HK_BAND_H
#define HK_BAND_H

#include "cpu/detector.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HK_BAND_HALF_MAX (1u << 14) /* diagonals on a side */
#define HK_BAND_THIN 16u            /* the same, for thousands of systems on a GPU */
#define HK_BAND_N_MAX (1u << 25)    /* equations */
#define HK_BAND_SIDE_BY_SIDE 4u     /* maximum diagonals on a side for interleaved systems */
#define HK_BAND_LANES 32u           /* number of interleaved systems */
#define HK_BAND_ERROR (8 * 2.220446049250313e-16)
#define HK_BAND_PIVOT 9.094947017729282e-13 /* 2^-40 */

struct hk_band_shape {
  uint32_t systems;      /* at least 1 */
  uint32_t n;            /* equations of each; 1..HK_BAND_N_MAX */
  uint32_t below, above; /* diagonals; 0..HK_BAND_HALF_MAX */
};

/* Result of a system. */
struct hk_band_outcome {
  double error;      /* backward error of its solution */
  int32_t status;    /* 0; -EDOM: A is singular; -ERANGE: no solution with a small backward error. After an error x is invalid. */
  uint32_t singular; /* after -EDOM: the first column without a pivot */
  uint32_t refined;  /* 0 or 1 */
  uint32_t whole;    /* of gpu/band/wide_gpu.h */
};

/* Whether a shape is within its limits. */
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

HK_INLINE bool hk_band_is_thin(const struct hk_band_shape *s)
{
  return s->below <= HK_BAND_THIN && s->above <= HK_BAND_THIN;
}

/* Index of number `at` of a system with `numbers` numbers. */
HK_INLINE size_t hk_band_place(uint32_t lanes, uint32_t system, size_t at, size_t numbers)
{
  return (system / lanes * numbers + at) * lanes + system % lanes;
}

/* Index of b[row] and x[row], and of A[row][column], of a system. */
HK_INLINE size_t hk_band_of(const struct hk_band_shape *s, uint32_t system, uint32_t row)
{
  return hk_band_place(hk_band_lanes(s), system, row, s->n);
}

HK_INLINE size_t hk_band_at(const struct hk_band_shape *s, uint32_t system, uint32_t row, uint32_t column)
{
  const size_t width = hk_band_width(s);
  return hk_band_place(hk_band_lanes(s), system, row * width + column + s->below - row, s->n * width);
}

/* Size of all right sides or solutions, and of all matrices, in numbers. */
HK_INLINE size_t hk_band_vector(const struct hk_band_shape *s)
{
  const size_t lanes = hk_band_lanes(s);
  return (s->systems + lanes - 1) / lanes * lanes * s->n;
}

HK_INLINE size_t hk_band_matrix(const struct hk_band_shape *s)
{
  return hk_band_vector(s) * hk_band_width(s);
}

/* Work memory to solve systems one after another. */
struct hk_band_work {
  double *factor;             /* in the format of dgbtrf */
  double *x, *residual, *sum; /* for one system */
  int *pivot;
};

/* hk_band_open returns 0, -ENOMEM, or -ELIBACC (cpu/lapack.h). hk_band_close: all zero is allowed. hk_band_need: bytes of the
 * work memory. */
int hk_band_open(struct hk_band_work *work, const struct hk_band_shape *shape);
void hk_band_close(struct hk_band_work *work);
uint64_t hk_band_need(const struct hk_band_shape *shape);

/* Factorises the matrix of a system for hk_band_solve_with, which the work memory then holds. Status: 0 or -EDOM. */
struct hk_band_outcome hk_band_factorise(struct hk_band_work *work, const struct hk_band_shape *shape, uint32_t system,
                                         const double *a);
/* Solves a system with the factors of its matrix, which hk_band_factorise left in the work memory with status 0; `a` is read
 * again for the backward error. */
struct hk_band_outcome hk_band_solve_with(struct hk_band_work *work, const struct hk_band_shape *shape, uint32_t system,
                                          const double *a, const double *b, double *x);
/* Both: solves one system: reads a and b, and writes x, at the system's indices. */
struct hk_band_outcome hk_band_solve_one(struct hk_band_work *work, const struct hk_band_shape *shape, uint32_t system,
                                         const double *a, const double *b, double *x);

/* Solves all systems with `threads` threads (at least 1). outcome: one for each. Returns 0; -EINVAL: the shape exceeds its
 * limits; or -ENOMEM. Errors of single systems are in their outcomes. */
int hk_band_solve(const struct hk_band_shape *shape, const double *a, const double *b, double *x, struct hk_band_outcome *outcome,
                  uint32_t threads);

#ifdef __cplusplus
}
#endif
#endif
