/* Launchers of the kernels between a wide band and its segments, and of those that judge a solution. All launchers are
 * asynchronous and return a cudaError_t. */
#ifndef HK_WIDE_WHOLE_H
#define HK_WIDE_WHOLE_H

#include "gpu/band/wide_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t points to it */

/* Copies A, or the right side, to the segments; numbers that they do not write must be zero before. */
int hk_wide_spread(const struct hk_wide_layout *layout, const struct hk_wide_matrix *a, struct CUstream_st *stream);
int hk_wide_spread_right(const struct hk_wide_layout *layout, const double *right, struct CUstream_st *stream);
/* Makes the system of the separators, the only segment of `whole`, from the remainders of the segments and from A. */
int hk_wide_join(const struct hk_wide_layout *layout, const struct hk_wide_layout *whole, const struct hk_wide_matrix *a,
                 struct CUstream_st *stream);
int hk_wide_join_right(const struct hk_wide_layout *layout, const struct hk_wide_layout *whole, const double *right,
                       struct CUstream_st *stream);
/* Gives segments the unknowns of their separators, and subtracts those from the right sides. */
int hk_wide_part(const struct hk_wide_layout *layout, const struct hk_wide_layout *whole, struct CUstream_st *stream);
/* Writes x, or adds to it. whole: NULL if there are no separators. */
int hk_wide_gather(const struct hk_wide_layout *layout, const struct hk_wide_layout *whole, double *x, bool add,
                   struct CUstream_st *stream);
/* The largest magnitude of each column of A. */
int hk_wide_largest(const struct hk_wide_matrix *a, double *largest, struct CUstream_st *stream);
/* Lowers sums->singular to the first column of A whose pivot is below `least` times its largest number. */
int hk_wide_find_singular(const struct hk_wide_layout *layout, const struct hk_wide_layout *whole, const double *largest,
                          double least, struct hk_wide_sums *sums, struct CUstream_st *stream);
/* Computes b - A x and its sums (except `singular`), which must be zero before. */
int hk_wide_residual(const struct hk_wide_matrix *a, const double *b, const double *x, double *residual,
                     struct hk_wide_sums *sums, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
