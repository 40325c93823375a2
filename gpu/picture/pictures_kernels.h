/* The launcher of pictures_kernels.cu for gpu/picture/pictures_gpu.c. */
#ifndef HK_PICTURES_KERNELS_H
#define HK_PICTURES_KERNELS_H

#include "gpu/picture/task.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t points to it */

/* Both passes. Asynchronous; returns a cudaError_t. */
int hk_pictures_launch(const struct hk_pictures_task *task, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
