/* The graph residual of a large field on the GPU: what cpu/field/residual.h computes, to the last bit, a thread to a node.
 *
 * A handle holds the columns of one field in device memory. Rows go up and residuals come down, 8 bytes a node each; all that is
 * learned stays on the device until it is asked for.
 *
 * Handle: one thread at a time; calls wait until the device is done. There is no such routine in a build without nvcc: opening
 * says -ENODEV. */
#ifndef HK_RESIDUAL_GPU_H
#define HK_RESIDUAL_GPU_H

#include "cpu/field/residual.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hk_residual_gpu;

/* Bytes of device memory for a field of so many nodes. */
uint64_t hk_residual_gpu_bytes(const struct hk_residual_rule *rule, uint32_t room);

/* A copy of `host` on GPU number `device`. 0 and *out, or a negative errno with a message: -ENODEV no usable GPU (compute
 * capability 8.0) or a build without nvcc, -ENOMEM with the figure, -EIO. */
int hk_residual_gpu_open(struct hk_residual_gpu **out, const struct hk_residual *host, uint32_t device, char *error, size_t size);
void hk_residual_gpu_close(struct hk_residual_gpu *g); /* NULL is allowed */

/* hk_residual_row of n rows, one after the other: x and r have n times room values, a row after a row. 0, -ENOMEM or -EIO; then
 * nothing is said of what the device holds. */
int hk_residual_gpu_rows(struct hk_residual_gpu *g, const double *x, double *r, uint32_t n);
/* For who measures: the same with x and r in device memory; and the columns there. */
int hk_residual_gpu_rows_there(struct hk_residual_gpu *g, const double *x, double *r, uint32_t n);
const struct hk_residual *hk_residual_gpu_columns(const struct hk_residual_gpu *g);

/* Copies the columns up from, or down to, a field of the same rule and room. 0 or -EIO. */
int hk_residual_gpu_write(struct hk_residual_gpu *g, const struct hk_residual *host);
int hk_residual_gpu_read(struct hk_residual_gpu *g, struct hk_residual *host);

#ifdef __cplusplus
}
#endif
#endif
