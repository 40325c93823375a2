/* The host's description of a kernel, and the kernels for each algorithm; kernel_choice.h chooses among them. */
#ifndef HK_CUDA_KERNEL_H
#define HK_CUDA_KERNEL_H

#include "gpu/backend/device_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A compiled kernel. `size` determines the memory of a detector: see below. */
struct hk_cuda_kernel {
  uint32_t window;                    /* the widest window */
  uint32_t side;                      /* sensors that a warp scores concurrently */
  uint32_t warps;                     /* warps of a block; 1: the whole block scores together */
  uint32_t (*shared)(uint32_t size);  /* bytes of shared memory for each block */
  uint64_t (*scratch)(uint32_t size); /* bytes of device memory for each block */
  /* Allows blocks up to `most` bytes of shared memory, and determines how many with `shared` bytes fit on a multiprocessor.
   * Returns 0 or a cudaError_t. */
  int (*fit)(uint32_t most, uint32_t shared, uint32_t *blocks);
  int (*launch)(struct CUstream_st *stream, uint32_t blocks, uint32_t shared, const struct hk_cuda_launch *launch);
};

/* Returns the kernel for a detector, and its size: ika: maximum of Lanczos steps; svd and shift: the window; graph: samples of
 * the ring; novelty: the longest lag; limit: the blocks. */
const struct hk_cuda_kernel *hk_ika_choose(const struct hk_detector *d, uint32_t *size);
const struct hk_cuda_kernel *hk_svd_choose(const struct hk_detector *d, uint32_t *size);
const struct hk_cuda_kernel *hk_graph_choose(const struct hk_detector *d, uint32_t *size);
const struct hk_cuda_kernel *hk_shift_choose(const struct hk_detector *d, uint32_t *size);
const struct hk_cuda_kernel *hk_novelty_choose(const struct hk_detector *d, uint32_t *size);
const struct hk_cuda_kernel *hk_limit_choose(const struct hk_detector *d, uint32_t *size);

#ifdef __cplusplus
}
#endif
#endif
