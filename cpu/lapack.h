/* LAPACK's functions, by OpenBLAS: for singular values, the reference, and systems of linear equations. Loaded when first needed.
 */
#ifndef HK_LAPACK_H
#define HK_LAPACK_H

#include "cpu/library.h"

#include <cblas.h>
#include <lapacke.h>

#define HK_LAPACK_CALLS(_)                                                                                                       \
  _(LAPACKE_, dgbtrf_work)                                                                                                       \
  _(LAPACKE_, dgbtrs_work)                                                                                                       \
  _(LAPACKE_, dormtr_work)                                                                                                       \
  _(LAPACKE_, dpbtrf_work)                                                                                                       \
  _(LAPACKE_, dpbtrs_work)                                                                                                       \
  _(LAPACKE_, dstebz_work)                                                                                                       \
  _(LAPACKE_, dstein_work)                                                                                                       \
  _(LAPACKE_, dstev_work)                                                                                                        \
  _(LAPACKE_, dsyevd_work)                                                                                                       \
  _(LAPACKE_, dsytrd_work)
#define HK_BLAS_CALLS(_)                                                                                                         \
  _(cblas_, ddot)                                                                                                                \
  _(openblas_, set_num_threads)

struct hk_lapack {
  HK_LAPACK_CALLS(HK_LIBRARY_CALL)
};
struct hk_blas {
  HK_BLAS_CALLS(HK_LIBRARY_CALL)
};
extern struct hk_lapack hk_lapack;
extern struct hk_blas hk_blas;

/* To be called before the functions are, which then compute on their caller's thread alone. Returns 0, or -ELIBACC with the
 * reason. Thread: any. */
int hk_lapack_load(char *why, size_t size);

#endif
