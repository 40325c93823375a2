/* What gpu/band/band_gpu.c launches of band_kernels.cu. */
#ifndef HK_BAND_KERNELS_H
#define HK_BAND_KERNELS_H

#include "cpu/band/band.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t points to it */

/* Numbers of a row that kernels keep of a shape, for each system that hk_band_vector counts. */
uint32_t hk_band_kept(const struct hk_band_shape *shape);

/* Solves all systems; done: hk_band_kept numbers for each of a vector's, residual: a vector. All in device memory. It is launched
 * and not waited for; returns a cudaError_t. */
int hk_band_launch(const struct hk_band_shape *shape, const double *a, const double *b, double *x,
                   struct hk_band_outcome *outcome, double *done, double *residual, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
