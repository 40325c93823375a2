/* Maximum size of states (cpu/rules/state.h) of a detector. */
#ifndef HK_STATE_SIZE_H
#define HK_STATE_SIZE_H

#include "cpu/detector.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum bytes of a state, for any algorithm. */
size_t hk_state_most(const struct hk_detector *d);

#ifdef __cplusplus
}
#endif

#endif
