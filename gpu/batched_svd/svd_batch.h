/* Bidiagonal forms and singular value decompositions of many small float32 matrices of one shape on the GPU, a matrix to a
 * block of threads: the method of Ueno and Suzumura ("GPU task parallelism"). gpu/MATHEMATICS.md has the arithmetic and why it
 * is cut this way. The daemon's exact mode does not use it.
 *
 * Matrices are m x n, column by column without gaps, one after the other. (A matrix stored row by row is its transpose: swap m
 * and n, u and v.) k = min(m, n). All arrays named below are device memory of the caller, aligned for float, and are neither
 * kept nor freed. Singular vectors are the thin ones: u is m x k, v is n x k, both column by column.
 *
 * Handle: not shared between threads; one call at a time, and its next call on the same stream or after that stream is done.
 * There is no such routine in a build without nvcc. */
#ifndef HK_SVD_BATCH_H
#define HK_SVD_BATCH_H

#include "gpu/batched_svd/svd_status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t points to it */
struct hk_svd_batch;

struct hk_svd_config {
  uint32_t m, n;         /* 1..HK_SVD_SIDE_MAX */
  uint32_t batch;        /* maximum number of matrices in a call, >= 1 */
  bool vectors;          /* room for vectors; without it u and v must be NULL */
  uint32_t host_threads; /* 0: singular values by QR on the device; else on so many CPU threads, next to the device's work */
};

/* Opens a handle. Returns 0 and *out, or a negative errno with a message: -EINVAL, -ENODEV no usable GPU (compute capability
 * 8.0), -ENOMEM (with the number of bytes), -EIO. */
int hk_svd_batch_open(struct hk_svd_batch **out, const struct hk_svd_config *config, char *error, size_t size);
void hk_svd_batch_close(struct hk_svd_batch *b);

/* A = U B V^T for `count` matrices, count <= batch; Householder reflectors stay in the handle for hk_svd_batch_basis. d: k
 * numbers a matrix, the diagonal of B. e: k - 1 a matrix, above the diagonal where m >= n, below it where m < n. status: one of
 * enum hk_svd_status a matrix. Runs on `stream` and does not wait. 0, -EINVAL, or -EIO. */
int hk_svd_batch_bidiagonalise(struct hk_svd_batch *b, const float *a, uint32_t count, float *d, float *e, uint32_t *status,
                               struct CUstream_st *stream);

/* U and V of the last hk_svd_batch_bidiagonalise; either may be NULL. Runs on `stream` and does not wait. 0 or -EIO. */
int hk_svd_batch_basis(struct hk_svd_batch *b, float *u, float *v, struct CUstream_st *stream);

/* A = U diag(s) V^T, s falling, k numbers a matrix. u and v both or neither. Comes back when all is done, so that the arrays
 * may be read. 0, -EINVAL, -ENOMEM (threads), or -EIO. */
int hk_svd_batch_decompose(struct hk_svd_batch *b, const float *a, uint32_t count, float *s, float *u, float *v, uint32_t *status,
                           struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
