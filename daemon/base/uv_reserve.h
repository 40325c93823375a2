/* Reserve: memory that event loops need before they serve, so that libuv never aborts the process for lack of memory. */
#ifndef HK_UV_RESERVE_H
#define HK_UV_RESERVE_H

#include <uv.h>

/* Replaces libuv's allocator. To call before any other function of libuv. Returns 0 or a negative errno. */
int hk_reserve_memory(void);
/* Prepares a loop for descriptors with numbers up to n, or up to the limit of the process. To call before the loop runs, on its
 * thread. Without memory the process reports this and exits with 1. Returns 0 or a negative errno. */
int hk_reserve_descriptors(uv_loop_t *loop, unsigned n);

#endif
