/* The launcher of band_kernels.cu for gpu/band/band_gpu.c. */
#ifndef HK_BAND_KERNELS_H
#define HK_BAND_KERNELS_H

#include "cpu/band/band.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t points to it */

/* Numbers that the kernels keep for each number of hk_band_vector. */
uint32_t hk_band_kept(const struct hk_band_shape *shape);

/* Solves all systems; done: hk_band_kept numbers for each number of a vector; residual: a vector. All arrays are in device
 * memory. Asynchronous; returns a cudaError_t. */
int hk_band_launch(const struct hk_band_shape *shape, const double *a, const double *b, double *x,
                   struct hk_band_outcome *outcome, double *done, double *residual, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
