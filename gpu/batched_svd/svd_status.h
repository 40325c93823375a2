/* Limits and results of the batched singular value decomposition (svd_batch.h), for the host and for kernels. */
#ifndef HK_SVD_STATUS_H
#define HK_SVD_STATUS_H

#define HK_SVD_SIDE_MAX 1024u

/* Status of a matrix. Matrices are independent. */
enum hk_svd_status {
  HK_SVD_FINE = 0,
  HK_SVD_NOT_FINITE = 1, /* it has a NaN or an infinity: all its results are NaN */
  HK_SVD_UNSOLVED = 2,   /* the iteration ended without singular values: all its results are NaN */
};

#endif
