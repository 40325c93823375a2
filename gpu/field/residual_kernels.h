/* The launchers of residual.cu and residual_pack.cu for gpu/field/residual_gpu.c. */
#ifndef HK_RESIDUAL_KERNELS_H
#define HK_RESIDUAL_KERNELS_H

#include "cpu/field/residual.h"

#include <stdalign.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t points to it */

#define HK_RESIDUAL_WAITING 8u /* most rows that wait to be added to the sums */

/* Of the 32 nodes beside each other whose numbers are contiguous. */
struct hk_residual_slice {
  alignas(16) uint32_t bits; /* of a neighbour in `link`: 8 or 16, less the node's own number; 24; 32: only in `neighbour` */
  uint16_t ripe;             /* 1: all their neighbours are ripe, until the host writes the columns */
  uint16_t settled;          /* 1: all have w and a bound, likewise */
  uint32_t hot, first;       /* a bit for each node that many look at, and where the first of these is among them */
};

/* Most nodes whose records lie twice, in their place and beside each other: 96 KB, which a block of any device may keep. */
#define HK_RESIDUAL_HOT 12288u
#define HK_RESIDUAL_HOT_STEPS 32u
#define HK_RESIDUAL_CENSUS (HK_RESIDUAL_HOT_STEPS + 2u)

/* A field in device memory, with what only the device has. `of` is up to date except for the sums, product and target: to these
 * the waiting rows are still to be added, in their order. */
struct hk_residual_resident {
  struct hk_residual of;
  uint32_t waiting;                /* rows */
  uint32_t n_hot;                  /* nodes that many look at, if that is often enough for predict to keep them; else 0 */
  uint32_t *link;                  /* (q + 3)/4 times 3: neighbours, packed; the node itself: none */
  struct hk_residual_slice *slice; /* room / 32 */
  float *heard;                    /* HK_RESIDUAL_WAITING columns of q + 1: of a waiting row h of the neighbours, and z' */
  uint32_t *learns;                /* a bit for each waiting row that the node learns */
  uint32_t *out;                   /* of.out, one for the field */
  uint32_t *census;                /* nodes that each step reaches, then those chosen, and how often they are looked at */
};

/* Packs the neighbours of a field whose columns came from the host. */
int hk_residual_launch_pack(const struct hk_residual_resident *field, const double *x, double *r, struct CUstream_st *stream);

/* The passes of one row, in the order of cpu/field/residual.h; x and r have room values in device memory. learn adds nothing to
 * the sums, but makes the row number `waiting` of those that wait; sum adds the first `waiting` rows. refit: after the rows at
 * which w is fitted again, when none waits. All are asynchronous and return a cudaError_t. */
int hk_residual_launch_standardise(const struct hk_residual_resident *field, const double *x, double *r,
                                   struct CUstream_st *stream);
int hk_residual_launch_show(const struct hk_residual_resident *field, const double *x, double *r, struct CUstream_st *stream);
int hk_residual_launch_predict(const struct hk_residual_resident *field, const double *x, double *r, struct CUstream_st *stream);
int hk_residual_launch_learn(const struct hk_residual_resident *field, const double *x, double *r, struct CUstream_st *stream);
int hk_residual_launch_sum(const struct hk_residual_resident *field, const double *x, double *r, struct CUstream_st *stream);
int hk_residual_launch_refit(const struct hk_residual_resident *field, const double *x, double *r, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
