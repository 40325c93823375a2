/* Launcher of the kernel that factorises a panel of wide bands. All launchers are asynchronous and return a cudaError_t. */
#ifndef HK_WIDE_PANEL_H
#define HK_WIDE_PANEL_H

#include "gpu/band/wide_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t points to it */

/* Factorises the panel of HK_WIDE_PANEL columns from `row` on. */
int hk_wide_panel(const struct hk_wide_layout *layout, uint32_t row, struct CUstream_st *stream);
/* Whether the current device has clusters of thread blocks and kernels that begin early, and these kernels were built for it. */
int hk_wide_has_clusters(bool *has);

#ifdef __cplusplus
}
#endif
#endif
