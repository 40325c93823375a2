/* The kernels of gpu/batched_svd/svd_batch.h, and the types that they share with its host side.
 *
 * Internally each matrix is `rows` x `columns` with rows >= columns: one with m < n is transposed. Leading dimensions are whole
 * warps; rows past the end are zero. Numbers are scaled by a power of two that brings the largest one of the matrix into [1, 2),
 * so that squares neither overflow nor, where it matters, underflow. */
#ifndef HK_BIDIAGONAL_H
#define HK_BIDIAGONAL_H

#include "gpu/batched_svd/bidiagonal_qr.h"
#include "gpu/batched_svd/svd_status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t points to it */

struct hk_bidiagonal {
  uint32_t rows, columns;         /* rows >= columns */
  uint32_t row_step, column_step; /* distance of elements in the caller's matrix */
  uint32_t ld_left, ld_right;     /* hk_bidiagonal_rows(rows), and columns rounded up to whole warps */
  uint32_t shared_columns;        /* columns in shared memory: the last ones */
  /* A column a reflector. left: ld_left x columns a matrix, reflector t is zero above row t and 1 there; while the matrix is
   * being reduced, its first columns themselves live here. right: ld_right x columns, zero up to t, 1 at t + 1. */
  float *left, *right;
  float *tau_left, *tau_right; /* columns a matrix; 0: no reflection */
  float *scale;                /* divisor of the matrix */
};

/* Number of rows with which the reduction processes a matrix of `rows` rows; the additional ones are zero. */
uint32_t hk_bidiagonal_rows(uint32_t rows);

/* Prepares the kernel for b and fills in shared_columns. Returns a cudaError_t. */
int hk_bidiagonal_plan(struct hk_bidiagonal *b);

/* d: `columns` numbers a matrix, e: columns - 1; multiplied by the scale if `scaled_back`. All launchers return a cudaError_t. */
int hk_bidiagonal_reduce(const struct hk_bidiagonal *b, const float *a, uint32_t count, float *d, float *e, uint32_t *status,
                         bool scaled_back, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
