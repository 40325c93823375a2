/* The float32 multiply-add peak of this machine's cores, measured. */
#ifndef HK_PEAK_H
#define HK_PEAK_H

#include <stdint.h>

/* Multiply-adds a second of `threads` threads together, each with independent chains in the widest registers that the
 * processor has, over about `seconds`; 0 when no thread could be started. */
double hk_peak_measure(uint32_t threads, double seconds);

#endif
