/* The CUDA backend: see cpu/backend.h for what it promises. Scores on one GPU; needs compute capability 8.0 or newer.
 *
 * Built without nvcc, hk_cuda_open always returns -ENODEV with a message: callers need no #ifdef. */
#ifndef HK_CUDA_H
#define HK_CUDA_H

#include "cpu/backend.h"
#include "cpu/field/offload.h"
#include "cpu/picture/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Number of GPUs of this host that the process may use (CUDA_VISIBLE_DEVICES selects them); 0 if there is none, or no driver. */
uint32_t hk_cuda_devices(void);

/* Opens the backend on GPU number config->device. Returns 0 and *out, or a negative errno with a message: -ENODEV no usable GPU
 * of that number or no driver, -ENOMEM not enough memory on the device (the message has the figures), -EINVAL, -EIO. This call,
 * and those of the backend, make that GPU the current one of the calling thread. */
int hk_cuda_open(struct hk_backend **out, const struct hk_backend_config *config, char *error, size_t size);

/* Describes the latest failure of the device, for the log: set when a batch returned with a status, or when add returned HK_FULL
 * or an error. "" if nothing has failed. b: a backend opened by hk_cuda_open; the text is valid until its next call. Thread: the
 * shard's. */
const char *hk_cuda_failure(struct hk_backend *b);

/* Large fields on a GPU; in a build without nvcc `open` returns -ENODEV. */
extern const struct hk_offload_kind hk_cuda_residual, hk_cuda_focus;
/* Pictures on a GPU, likewise. */
extern const struct hk_picture_device hk_cuda_pictures;

#ifdef __cplusplus
}
#endif
#endif
