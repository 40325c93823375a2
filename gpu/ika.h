/* The kernels of IKA-SST as the host sees them: one variant for each number of lanes to a sensor and of vector elements a lane,
 * each good for all parameters. */
#ifndef HK_IKA_H
#define HK_IKA_H

#include "gpu/score.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hk_ika_variant {
  uint32_t rows, lanes;                /* vector elements a lane, lanes a sensor */
  uint32_t warps;                      /* of a block */
  uint32_t (*floats)(uint32_t order);  /* of shared memory a warp, for so many Lanczos steps */
  uint64_t (*scratch)(uint32_t order); /* bytes of device memory a warp */
  hk_cuda_fit *resident;
  int (*launch)(struct CUstream_st *stream, uint32_t blocks, uint32_t shared, uint32_t order, const struct hk_detector *d,
                void *scratch, const struct hk_cuda_task *tasks, const uint32_t *n_tasks, const struct hk_cuda_columns *columns);
};

/* hk_cuda_plan and hk_cuda_score, for detectors of algorithm ika. */
int hk_ika_plan(const struct hk_detector *d, struct hk_cuda_plan *plan);
int hk_ika_score(struct CUstream_st *stream, const struct hk_detector *d, const struct hk_cuda_plan *plan, void *scratch,
                 const struct hk_cuda_task *tasks, const uint32_t *n_tasks, uint32_t most, const struct hk_cuda_columns *columns);

#ifdef __cplusplus
}
#endif
#endif
