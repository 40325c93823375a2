/* Many band systems at once on a GPU: what hk_band_solve of cpu/band/band.h does, with the same numbers at the same places and
 * the same promises. Solutions differ from the host's by rounding, since sums are taken in another order and products are fused.
 *
 * Up to HK_BAND_SIDE_BY_SIDE diagonals on a side a thread solves a system, else a warp. So a GPU needs thousands of systems to be
 * busy, and one alone is solved faster by the host.
 *
 * Handle: one thread at a time; calls wait until the device is done. In a build without nvcc opening says -ENODEV. */
#ifndef HK_BAND_GPU_H
#define HK_BAND_GPU_H

#include "cpu/band/band.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hk_band_gpu;

/* Bytes of device memory for systems of this shape. */
uint64_t hk_band_gpu_bytes(const struct hk_band_shape *shape);

/* For GPU number `device`. 0 and *out, or a negative errno with a message: -EINVAL the shape is out of its limits, -ENODEV no
 * usable GPU or a build without nvcc, -ENOMEM with the figure, -EIO. */
int hk_band_gpu_open(struct hk_band_gpu **out, const struct hk_band_shape *shape, uint32_t device, char *error, size_t size);
void hk_band_gpu_close(struct hk_band_gpu *gpu); /* NULL is allowed */

/* hk_band_solve. 0 or -EIO; then nothing is said of x and outcome. */
int hk_band_gpu_solve(struct hk_band_gpu *gpu, const double *a, const double *b, double *x, struct hk_band_outcome *outcome);
/* For who measures: the same with all of them in device memory. */
int hk_band_gpu_solve_there(struct hk_band_gpu *gpu, const double *a, const double *b, double *x,
                            struct hk_band_outcome *outcome);

#ifdef __cplusplus
}
#endif
#endif
