/* The CUDA backend: see cpu/backend.h for what it promises. Scores on one GPU; needs compute capability 8.0 or newer.
 *
 * Built without nvcc, hk_cuda_open always answers -ENODEV and says so: callers need no #ifdef. */
#ifndef HK_CUDA_H
#define HK_CUDA_H

#include "cpu/backend.h"
#include "cpu/field/offload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* GPUs of this host that the process may use (CUDA_VISIBLE_DEVICES picks among them); 0 where there is none, or no driver. */
uint32_t hk_cuda_devices(void);

/* Opens the backend on GPU number config->device. 0 and *out, or a negative errno with a message: -ENODEV no usable GPU of that
 * number or no driver, -ENOMEM no room on the device (the message has the figures), -EINVAL, -EIO. Its calls, and this one, leave
 * that GPU the current one of the calling thread. */
int hk_cuda_open(struct hk_backend **out, const struct hk_backend_config *config, char *error, size_t size);

/* The latest failure of the device in words, for the log: set when a batch came back with a status, or when add answered
 * HK_FULL or an error. "" when nothing has failed. b: a backend opened by hk_cuda_open; the text is valid until the next call
 * of it. Thread: the shard's. */
const char *hk_cuda_failure(struct hk_backend *b);

/* The residual of large fields on a GPU; in a build without nvcc, opening it answers -ENODEV. */
extern const struct hk_residual_device hk_cuda_residual;

#ifdef __cplusplus
}
#endif
#endif
