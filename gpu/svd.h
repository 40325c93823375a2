/* The kernels of SVD-SST as the host sees them. */
#ifndef HK_SVD_H
#define HK_SVD_H

#include "gpu/score.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One for each number of vector elements a lane. A block is a warp, and takes a sensor at a time. */
struct hk_svd_variant {
  uint32_t rows;                        /* vector elements a lane: for windows up to 32 times that */
  uint32_t (*shared)(uint32_t window);  /* bytes of shared memory a block */
  uint64_t (*scratch)(uint32_t window); /* bytes of device memory a block */
  hk_cuda_fit *resident;
  /* As hk_cuda_score. */
  int (*launch)(struct CUstream_st *stream, uint32_t blocks, const struct hk_detector *d, const struct hk_cuda_plan *plan,
                void *scratch, const struct hk_cuda_task *tasks, const uint32_t *n_tasks, const struct hk_cuda_columns *columns);
};

/* hk_cuda_plan and hk_cuda_score, for detectors of algorithm svd. */
int hk_svd_plan(const struct hk_detector *d, struct hk_cuda_plan *plan);
int hk_svd_score(struct CUstream_st *stream, const struct hk_detector *d, const struct hk_cuda_plan *plan, void *scratch,
                 const struct hk_cuda_task *tasks, const uint32_t *n_tasks, uint32_t most, const struct hk_cuda_columns *columns);

#ifdef __cplusplus
}
#endif
#endif
