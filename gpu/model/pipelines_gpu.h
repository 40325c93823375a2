/* The lines of a plan on a GPU (cpu/model/pipelines.h), with a thread for each line; number: of the GPU. States remain on the
 * device; a step copies the ends to it, and the values of the sensors back.
 *
 * The values differ from the host's by rounding (sums in another order, fused products); backward errors are as small. The same
 * rows give the same bits on the same model of GPU. In a build without nvcc `open` returns -ENODEV. */
#ifndef HK_PIPELINES_GPU_H
#define HK_PIPELINES_GPU_H

#include "cpu/model/pipelines.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct hk_pipelines_kind hk_pipelines_gpu;

/* Bytes of device memory for a plan; 0 in a build without nvcc. */
uint64_t hk_pipelines_gpu_bytes(const struct hk_model_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
