/* The launchers of pipes_kernels.cu for gpu/model/pipelines_gpu.c: lines of a plan, in interleaved groups of 32, padded to the
 * longest line of the group. All pointers are to device memory. */
#ifndef HK_PIPES_KERNELS_H
#define HK_PIPES_KERNELS_H

#include "cpu/model/pipelines.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t points to it */

#define HK_PIPES_COLUMNS 10u /* numbers of an unknown beside its state: next, change, residual, and what is done */

struct hk_pipes_batch {
  uint32_t lines;
  const uint32_t *cells;   /* by line */
  const uint64_t *first;   /* by group: number of points before it, with padding, for one line of each group */
  const double *impedance; /* by line */
  const double *cell;      /* by point, four numbers, in the format of gpu/model/pipes_step.cuh */
  double *state;           /* by point, two numbers */
  double *work;            /* by point, two times HK_PIPES_COLUMNS - 1 numbers */
  uint64_t points;         /* points of one of the 32 interleaved lines, over all groups */
};

/* Index of number `at` of a line, in an array with `each` numbers for each point. */
static inline uint64_t hk_pipes_place(uint64_t first, uint32_t line, uint64_t at, uint64_t each)
{
  return (first * each + at) * 32 + line % 32;
}

/* All launchers are asynchronous and return a cudaError_t. This one makes a step of all active lines. */
int hk_pipes_launch_step(const struct hk_pipes_batch *batch, struct hk_pipelines_line *line, double dt,
                         struct CUstream_st *stream);
/* seen[i] = state[place[i]] * scale[i], i < n. */
int hk_pipes_launch_see(const double *state, const uint64_t *place, const double *scale, double *seen, uint32_t n,
                        struct CUstream_st *stream);
/* state[place + 32 i] = from[i], i < n. */
int hk_pipes_launch_put(double *state, uint64_t place, const double *from, uint32_t n, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
