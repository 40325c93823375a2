/* The launchers of residual.cu for gpu/field/residual_gpu.c. */
#ifndef HK_RESIDUAL_KERNELS_H
#define HK_RESIDUAL_KERNELS_H

#include "cpu/field/residual.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t points to it */

#ifndef HK_RESIDUAL_WAITING
#define HK_RESIDUAL_WAITING 8u /* most rows that wait to be added to the sums */
#endif

/* Of the 32 nodes beside each other whose numbers are contiguous. */
struct hk_residual_slice {
  uint32_t bits; /* of a neighbour in `offset`, 8 or 16; 32: they are too far apart, and only in `neighbour` */
  uint32_t ripe; /* 1: all their neighbours are ripe, until the host writes the columns */
};

/* A field in device memory, with what only the device has. `of` is up to date except for the sums, product and target: to these
 * the waiting rows are still to be added, in their order. */
struct hk_residual_resident {
  struct hk_residual of;
  uint32_t waiting;                /* rows */
  uint32_t *offset;                /* (q + 1)/2: neighbours, less the node's own number, packed; 0: none */
  struct hk_residual_slice *slice; /* room / 32 */
  float *heard;                    /* HK_RESIDUAL_WAITING columns of q + 1: of a waiting row h of the neighbours, and z' */
  uint32_t *learns;                /* a bit for each waiting row that the node learns */
  uint32_t *out;                   /* of.out, one for the field */
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
