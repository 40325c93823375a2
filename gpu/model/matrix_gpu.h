/* Processes given as matrices (cpu/model/matrix.h) whose wide bands a GPU solves (gpu/band/wide_gpu.h). The unknowns stay on the
 * host. Threads: as the kind's. */
#ifndef HK_MATRIX_GPU_H
#define HK_MATRIX_GPU_H

#include "cpu/model/pipelines_matrix.h"

extern const struct hk_pipelines_kind hk_matrix_gpu; /* `open` returns -ENODEV in a build without nvcc */
/* Bytes of device memory for a plan; 0: a build without nvcc. */
uint64_t hk_matrix_gpu_bytes(const struct hk_model_plan *plan);

#endif
