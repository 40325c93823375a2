/* Harms the GPU context of this process, for tests of how the CUDA backend reacts. Each function returns 0 or a cudaError_t. */
#ifndef HK_TEST_SABOTAGE_H
#define HK_TEST_SABOTAGE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel writes where there is no memory. The device is of no use to this process from then on. Does not wait for it. */
int sabotage_illegal(void);

/* A kernel keeps every core busy, so that no other gets a turn, until sabotage_release. */
int sabotage_hang(void);
void sabotage_release(void);

/* Takes all device memory but `leave` bytes, or a little less; gives it back. */
int sabotage_take(size_t leave);
void sabotage_give(void);

#ifdef __cplusplus
}
#endif
#endif
