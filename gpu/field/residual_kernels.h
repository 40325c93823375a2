/* The launchers of residual.cu for gpu/field/residual_gpu.c. */
#ifndef HK_RESIDUAL_KERNELS_H
#define HK_RESIDUAL_KERNELS_H

#include "cpu/field/residual.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t points to it */

/* The passes of one row of a field whose columns are in device memory, in the order of cpu/field/residual.h; x and r have room
 * values there. refit: after the rows at which w is fitted again. All are asynchronous and return a cudaError_t. */
int hk_residual_launch_standardise(const struct hk_residual *field, const double *x, double *r, struct CUstream_st *stream);
int hk_residual_launch_show(const struct hk_residual *field, const double *x, double *r, struct CUstream_st *stream);
int hk_residual_launch_predict(const struct hk_residual *field, const double *x, double *r, struct CUstream_st *stream);
int hk_residual_launch_learn(const struct hk_residual *field, const double *x, double *r, struct CUstream_st *stream);
int hk_residual_launch_refit(const struct hk_residual *field, const double *x, double *r, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
