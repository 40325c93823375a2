/* Kernels for the vectors of the batched singular value decomposition. All launchers return a cudaError_t. */
#ifndef HK_BIDIAGONAL_VECTORS_H
#define HK_BIDIAGONAL_VECTORS_H

#include "gpu/batched_svd/bidiagonal.h"

#ifdef __cplusplus
extern "C" {
#endif

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
