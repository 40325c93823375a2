/* The launchers of residual.cu, residual_pack.cu, residual_sum.cu and residual_refit.cu for gpu/field/residual_gpu.c. */
#ifndef HK_RESIDUAL_KERNELS_H
#define HK_RESIDUAL_KERNELS_H

#include "cpu/field/residual.h"

#include <stdalign.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t points to it */
struct float4;

#ifndef HK_RESIDUAL_WAITING
#define HK_RESIDUAL_WAITING 24u /* most rows that wait to be added to the sums; up to 32, a multiple of HK_RESIDUAL_TURN */
#endif
#define HK_RESIDUAL_TURN 8u /* of these, those whose h a node has beside each other: 32 bytes, a sector of memory */

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

/* Of a slice in a waiting row, a bit for each node. */
struct hk_residual_told {
  alignas(16) uint32_t learns; /* it learns the row, unless one of its neighbours was wild */
  uint32_t wild, there;        /* HK_RESIDUAL_WILD, HK_RESIDUAL_THERE */
};

/* A field in device memory, with what only the device has. `of` is up to date except for product, target, total,
 * learned and ripe: to these the waiting rows are still to be added, in their order. */
struct hk_residual_resident {
  struct hk_residual of;
  uint32_t waiting;                /* rows */
  uint32_t n_hot;                  /* nodes that many look at, if that is often enough for predict to keep them; else 0 */
  uint32_t *link;                  /* (q + 3)/4 times 3: neighbours, packed; the node itself: none */
  struct hk_residual_slice *slice; /* room / 32 */
  float *shown, *taught;           /* HK_RESIDUAL_WAITING columns each: h and z' of a waiting row */
  struct hk_residual_told *told;   /* HK_RESIDUAL_WAITING of each slice */
  struct float4 *history;          /* of HK_RESIDUAL_TURN rows each: of each node h, beside each other; NaN: it was wild */
  uint32_t *lookers;               /* while neighbours are packed: of a node, those that are far */
  uint32_t *out;                   /* of.out, one for the field */
  uint32_t *census;                /* nodes that each step reaches, then those chosen, and how often they are looked at */
};

/* Packs the neighbours of a field whose columns came from the host. */
int hk_residual_launch_pack(const struct hk_residual_resident *field, const double *x, double *r, struct CUstream_st *stream);

/* The passes of one row, in the order of cpu/field/residual.h; x and r have room values in device memory. learn makes the row
 * number `waiting` of those that wait. turn, then sum add the first `waiting` rows. refit: after the rows at
 * which w is fitted again, when none waits. All are asynchronous and return a cudaError_t. */
int hk_residual_launch_standardise(const struct hk_residual_resident *field, const double *x, double *r,
                                   struct CUstream_st *stream);
int hk_residual_launch_show(const struct hk_residual_resident *field, const double *x, double *r, struct CUstream_st *stream);
int hk_residual_launch_predict(const struct hk_residual_resident *field, const double *x, double *r, struct CUstream_st *stream);
int hk_residual_launch_learn(const struct hk_residual_resident *field, const double *x, double *r, struct CUstream_st *stream);
int hk_residual_launch_turn(const struct hk_residual_resident *field, const double *x, double *r, struct CUstream_st *stream);
int hk_residual_launch_sum(const struct hk_residual_resident *field, const double *x, double *r, struct CUstream_st *stream);
int hk_residual_launch_refit(const struct hk_residual_resident *field, const double *x, double *r, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
