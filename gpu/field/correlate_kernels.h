/* The launchers of correlate.cu for gpu/field/correlate_gpu.c. */
#ifndef HK_CORRELATE_KERNELS_H
#define HK_CORRELATE_KERNELS_H

#include "cpu/field/correlate.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HK_CORRELATE_TILE 32u /* members that one block compares with as many others at a time */

struct CUstream_st; /* cudaStream_t points to it */

/* A task whose pointers are to device memory, and its results there. */
struct hk_correlate_there {
  struct hk_correlate_task task;
  float *z;  /* by member: HK_FIELD_RESIDENT numbers, `tiles` times HK_CORRELATE_TILE members; those beyond n are 0 */
  bool *fit; /* by member: it has a z */
  uint32_t tiles;
};

/* Asynchronous; they return a cudaError_t. hk_correlate_launch: for `n` members of `due` from `from` on. */
int hk_correlate_launch_normalise(const struct hk_correlate_there *there, struct CUstream_st *stream);
int hk_correlate_launch(const struct hk_correlate_there *there, uint32_t from, uint32_t n, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
