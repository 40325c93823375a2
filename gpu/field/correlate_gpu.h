/* The choice of neighbours on the GPU. In a build without nvcc it returns -ENODEV. */
#ifndef HK_CORRELATE_GPU_H
#define HK_CORRELATE_GPU_H

#include "cpu/field/correlate.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Chooses neighbours as hk_correlate does (cpu/field/correlate.h), to the last bit, on GPU number `device`, whose memory it needs
 * for the kept rows twice. Returns 0, or a negative errno with a message: -ENODEV, -ENOMEM, -ETIMEDOUT or -EIO. Thread: any. */
int hk_correlate_gpu(const struct hk_correlate_task *task, uint32_t device, char *error, size_t size);

#ifdef __cplusplus
}
#endif
#endif
