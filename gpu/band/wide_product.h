/* Launcher of the kernel that takes a block's product from the rest of wide bands. Asynchronous; returns a cudaError_t. */
#ifndef HK_WIDE_PRODUCT_H
#define HK_WIDE_PRODUCT_H

#include "gpu/band/wide_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t points to it */

/* Takes the product of the block's rows below and its columns aside from the rest. */
int hk_wide_product(const struct hk_wide_layout *layout, const struct hk_wide_step *step, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
