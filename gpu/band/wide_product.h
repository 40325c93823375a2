/* Launcher of the kernel that subtracts the product of a block from the rest. Asynchronous; returns a cudaError_t. */
#ifndef HK_WIDE_PRODUCT_H
#define HK_WIDE_PRODUCT_H

#include "gpu/band/wide_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t points to it */

/* Subtracts the product of the rows below the block and the columns beside it from the rest. */
int hk_wide_product(const struct hk_wide_layout *layout, const struct hk_wide_step *step, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
