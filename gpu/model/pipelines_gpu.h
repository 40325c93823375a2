/* The lines of a plan on a GPU (cpu/model/pipelines.h), a thread to each; number: of the GPU. States stay there; of a step, ends
 * go up, and what the sensors see comes down.
 *
 * The values that it gives differ from the host's by rounding (sums are taken in another order, products are fused); backward
 * errors are as small. The same rows give the same bits on the same kind of GPU. In a build without nvcc opening says -ENODEV. */
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
