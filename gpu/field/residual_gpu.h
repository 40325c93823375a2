/* The graph residual of a large field on the GPU: computes what cpu/field/residual.h does, to the last bit, with a thread for
 * each node.
 *
 * A handle holds the columns of one field in device memory. Rows are copied to the device and residuals back, 8 bytes for each
 * node; what is learned remains on the device until it is read.
 *
 * Handle: one thread at a time; calls wait for the device. In a build without nvcc hk_residual_gpu_open returns -ENODEV. */
#ifndef HK_RESIDUAL_GPU_H
#define HK_RESIDUAL_GPU_H

#include "cpu/field/residual.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hk_residual_gpu;
struct hk_residual_resident; /* residual_kernels.h */

/* Bytes of device memory for a field with room for `room` nodes. */
uint64_t hk_residual_gpu_bytes(const struct hk_residual_rule *rule, uint32_t room);

/* Copies `host` to GPU number `device`. Returns 0 and *out, or a negative errno with a message: -ENODEV no usable GPU (compute
 * capability 8.0) or a build without nvcc, -ENOMEM with the number of bytes, -EIO. */
int hk_residual_gpu_open(struct hk_residual_gpu **out, const struct hk_residual *host, uint32_t device, char *error, size_t size);
void hk_residual_gpu_close(struct hk_residual_gpu *g); /* NULL is allowed */

/* Processes n rows as hk_residual_row: x and r have n times room values, row after row. Returns 0, -ENOMEM or -EIO; after an
 * error the columns on the device are undefined. */
int hk_residual_gpu_rows(struct hk_residual_gpu *g, const double *x, double *r, uint32_t n);
/* For benchmarks: the same with x and r in device memory; and the field there. */
int hk_residual_gpu_rows_there(struct hk_residual_gpu *g, const double *x, double *r, uint32_t n);
const struct hk_residual_resident *hk_residual_gpu_field(const struct hk_residual_gpu *g);

/* Copies the columns from (write) or to (read) a field with the same rule and room. Returns 0, -ETIMEDOUT or -EIO. */
int hk_residual_gpu_write(struct hk_residual_gpu *g, const struct hk_residual *host);
int hk_residual_gpu_read(struct hk_residual_gpu *g, struct hk_residual *host);

#ifdef __cplusplus
}
#endif
#endif
