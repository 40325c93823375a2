/* Kernels for several points of a sensor, which share a pass over its resident data: see runs.cu. */
#ifndef HK_NOVELTY_RUNS_H
#define HK_NOVELTY_RUNS_H

#include "gpu/backend/device_types.h"

/* What they leave to the kernel for points one by one. */
struct hk_novelty_left {
  const uint32_t *tasks;            /* on the device: number of tasks that have points; NULL: all have, nothing was launched */
  const struct hk_cuda_task *small; /* on the device: the tasks of a small batch as they are now; NULL: as in the launch */
};

/* Loads the kernels and allows them the shared memory that they need. Returns 0 or a cudaError_t. */
int hk_novelty_runs_fit(void);

/* Bytes of scratch memory for each block of the launch. */
uint64_t hk_novelty_runs_bytes(void);

/* Takes and scores runs: they are removed from the tasks. blocks: of the launch. Asynchronous. Returns 0 or a cudaError_t. */
int hk_novelty_runs_launch(struct CUstream_st *stream, uint32_t blocks, const struct hk_cuda_launch *l,
                           struct hk_novelty_left *left);

#endif
