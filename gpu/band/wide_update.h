/* Launchers of the kernels that follow the panels of wide bands. All launchers are asynchronous and return a cudaError_t. */
#ifndef HK_WIDE_UPDATE_H
#define HK_WIDE_UPDATE_H

#include "gpu/band/wide_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t points to it */

/* Multiplies the rows of the border by the inverse of the panel's upper triangle. */
int hk_wide_border(const struct hk_wide_layout *layout, uint32_t row, struct CUstream_st *stream);
/* Exchanges rows, and solves with the block's lower triangle. */
int hk_wide_sides(const struct hk_wide_layout *layout, const struct hk_wide_step *step, struct CUstream_st *stream);
/* Back substitution of block `block`, counted from the end: writes its unknowns to x, and subtracts their columns from the right
 * side. */
int hk_wide_back(const struct hk_wide_layout *layout, uint32_t block, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
