/* Solves a system with a wide band matrix on a GPU: as hk_band_solve_one of cpu/band/band.h, with the same layout (of one system)
 * and the same promises. Solutions differ from the host's by rounding, because of another order of sums and fused products.
 *
 * The method is Baranov's: blocks of columns, each factorised with row exchanges, then a solution with its lower triangle and a
 * product that is taken from the rest, the next block's columns first, so that its factorisation overlaps with the rest. The
 * panel is factorised on the device, and the whole band stays there, because solutions need it: with memory for 2 n (3 half + 1)
 * numbers or so. Beyond the paper: since each pivot waits for the one before, the equations are cut into segments that are
 * factorised side by side, and joined by a smaller system (wide_layout.h). A segment may be singular where the matrix is not, or
 * nearly so: then, or if the backward error is too large after one refinement, the matrix is factorised whole, and `whole` of the
 * outcome is 1.
 *
 * Products are computed by the tensor cores in double precision, in a kernel of its own: a launch for all segments at once, whose
 * windows have different sizes, is none of cuBLAS's, so that the daemon needs no library but CUDA's runtime.
 *
 * Only in builds with nvcc. Handle: one thread at a time; calls wait for the device. */
#ifndef HK_WIDE_GPU_H
#define HK_WIDE_GPU_H

#include "cpu/band/band.h"
#include "gpu/band/wide_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HK_BAND_WIDE_MAX 4096u /* diagonals on a side; without clusters of thread blocks (before Hopper) 544 */

struct hk_band_wide;

/* Bytes of device memory for a system of this shape, but for A, b and x. way: NULL is allowed. */
uint64_t hk_band_wide_bytes(const struct hk_band_shape *shape, const struct hk_band_wide_way *way);

/* Opens a handle on GPU number `device` for systems of a shape with systems = 1. Returns 0 and *out, or a negative errno with a
 * message: -EINVAL the shape exceeds its limits or the device's, -ENODEV no usable GPU, -ENOMEM with the
 * number of bytes, -EIO. */
int hk_band_wide_open(struct hk_band_wide **out, const struct hk_band_shape *shape, const struct hk_band_wide_way *way,
                      uint32_t device, char *error, size_t size);
void hk_band_wide_close(struct hk_band_wide *wide); /* NULL is allowed */

/* As hk_band_solve. Returns 0, -ENOMEM or -EIO; after an error x and outcome are undefined. */
int hk_band_wide_solve(struct hk_band_wide *wide, const double *a, const double *b, double *x, struct hk_band_outcome *outcome);
/* Solves with the factors of the last matrix, whose outcome had the status 0 or -ERANGE. */
int hk_band_wide_solve_with(struct hk_band_wide *wide, const double *b, double *x, struct hk_band_outcome *outcome);
/* The same with a, b and x in device memory, where `a` has to stay for solutions with its factors. */
int hk_band_wide_solve_there(struct hk_band_wide *wide, const double *a, const double *b, double *x,
                             struct hk_band_outcome *outcome);
int hk_band_wide_solve_with_there(struct hk_band_wide *wide, const double *b, double *x, struct hk_band_outcome *outcome);

/* The row of A that was the pivot of each column, of the matrix factorised last, as a whole: what dgbtrf chooses, but for ties,
 * of which the first in the order of A is taken. row: n numbers. Returns 0, -ENOMEM or -EIO; -EINVAL: it was factorised in
 * segments. */
int hk_band_wide_pivots(const struct hk_band_wide *wide, uint32_t *row);

#ifdef __cplusplus
}
#endif
#endif
