/* The kernels of gpu/batched_svd/svd_batch.h, and the types that they share with its host side.
 *
 * Internally each matrix is `rows` x `columns` with rows >= columns: one with m < n is transposed. Leading dimensions are whole
 * warps; rows past the end are zero. Numbers are scaled by a power of two that brings the largest one of the matrix into [1, 2),
 * so that squares neither overflow nor, where it matters, underflow. */
#ifndef HK_BIDIAGONAL_H
#define HK_BIDIAGONAL_H

#include "gpu/batched_svd/bidiagonal_qr.h"
#include "gpu/batched_svd/svd_batch.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* Computes orthonormal columns from reflectors: out = H_0 H_1 ... (first `columns` of I), rows x columns with leading dimension
 * ld. */
int hk_bidiagonal_form(const struct hk_bidiagonal *b, bool right, float *out, uint32_t ld, uint32_t count, const uint32_t *status,
                       struct CUstream_st *stream);

/* Does a round of the QR iteration of every matrix: see gpu/batched_svd/bidiagonal_qr.h. rotations: NULL or batch x hk_qr_bytes.
 * Adds to *unsolved (on the device) the number of matrices that need another round. */
int hk_bidiagonal_qr(struct hk_qr *qr, float *d, float *e, uint32_t columns, unsigned char *rotations, uint32_t count,
                     const uint32_t *status, uint32_t *unsolved, struct CUstream_st *stream);

/* Applies the rotations of a round to the columns of left (rows x columns, ld_left) and right (columns x columns, ld_right). */
int hk_bidiagonal_rotate(const struct hk_bidiagonal *b, const unsigned char *rotations, float *left, float *right, uint32_t count,
                         struct CUstream_st *stream);

/* Sorts values and vectors in falling order, makes values positive, and copies them to the caller's arrays (vectors without
 * gaps). place: work space, `columns` numbers a matrix. Sets the status HK_SVD_UNSOLVED of matrices whose iteration failed. */
int hk_bidiagonal_arrange(const struct hk_bidiagonal *b, const struct hk_qr *qr, const float *d, const float *left,
                          const float *right, float *s, float *out_left, float *out_right, int32_t *place, uint32_t count,
                          uint32_t *status, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
