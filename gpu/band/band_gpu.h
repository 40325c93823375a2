/* Solves many band systems on a GPU: as hk_band_solve of cpu/band/band.h, with the same layout and the same promises. Solutions
 * differ from the host's by rounding, because of another order of sums and fused products.
 *
 * A thread solves a system with at most HK_BAND_SIDE_BY_SIDE diagonals on a side, a warp a wider one. So a GPU needs thousands of
 * systems to be busy, and the host solves a single one faster.
 *
 * Handle: one thread at a time; calls wait for the device. In a build without nvcc hk_band_gpu_open returns -ENODEV. */
#ifndef HK_BAND_GPU_H
#define HK_BAND_GPU_H

#include "cpu/band/band.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hk_band_gpu;

/* Opens a handle on GPU number `device`. Returns 0 and *out, or a negative errno with a message: -EINVAL the shape exceeds its
 * limits, -ENODEV no usable GPU or a build without nvcc, -ENOMEM with the number of bytes, -EIO. */
int hk_band_gpu_open(struct hk_band_gpu **out, const struct hk_band_shape *shape, uint32_t device, char *error, size_t size);
void hk_band_gpu_close(struct hk_band_gpu *gpu); /* NULL is allowed */

/* As hk_band_solve. Returns 0 or -EIO; after an error x and outcome are undefined. */
int hk_band_gpu_solve(struct hk_band_gpu *gpu, const double *a, const double *b, double *x, struct hk_band_outcome *outcome);
/* For benchmarks: the same with all arrays in device memory. */
int hk_band_gpu_solve_there(struct hk_band_gpu *gpu, const double *a, const double *b, double *x,
                            struct hk_band_outcome *outcome);

#ifdef __cplusplus
}
#endif
#endif
