/* Reserve: what event loops must have before they serve, so that they never end the process for want of memory. */
#ifndef HK_RESERVE_H
#define HK_RESERVE_H

#include <uv.h>

/* Before any other call to libuv: it gets its memory through us. 0 or a negative errno. */
int hk_reserve_memory(void);
/* Makes room in a loop for descriptors with numbers up to n, or as high as the process may have them. Before the loop runs; its
 * thread's. Where there is no memory the process ends with 1 and says so. 0 or a negative errno. */
int hk_reserve_descriptors(uv_loop_t *loop, unsigned n);

#endif
