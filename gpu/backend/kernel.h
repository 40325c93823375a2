/* A kernel as the host sees it, and which there are for each algorithm; kernel_choice.h chooses among them. */
#ifndef HK_CUDA_KERNEL_H
#define HK_CUDA_KERNEL_H

#include "gpu/backend/device_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel as compiled. `size` is what a detector's room grows with: see below. */
struct hk_cuda_kernel {
  uint32_t window;                    /* widest that it holds */
  uint32_t side;                      /* sensors that a warp scores side by side */
  uint32_t warps;                     /* of a block; 1: a block scores as one */
  uint32_t (*shared)(uint32_t size);  /* bytes of shared memory a block */
  uint64_t (*scratch)(uint32_t size); /* bytes of device memory that a block works in */
  /* Lets blocks have up to `most` bytes of shared memory, and tells how many with `shared` bytes fit a multiprocessor. 0 or a
   * cudaError_t. */
  int (*fit)(uint32_t most, uint32_t shared, uint32_t *blocks);
  int (*launch)(struct CUstream_st *stream, uint32_t blocks, uint32_t shared, const struct hk_cuda_launch *launch);
};

/* The kernel for a detector, and its size: for ika the most Lanczos steps, for svd and shift the window, for graph
 * samples of the ring, for novelty the longest lag, for limit the blocks. */
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
