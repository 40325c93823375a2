/* The float32 multiply-add peak of this machine's cores, measured. */
#ifndef HK_MACHINE_PEAK_H
#define HK_MACHINE_PEAK_H

#include <stdint.h>

struct hk_peak {
  double rate; /* multiply-adds a second of all threads together */
  double core; /* multiply-adds a second of processor time: the same on a machine that has other work to do */
};

/* Runs `threads` threads, each with independent chains in the widest registers that the processor has, for about `seconds`.
 * All 0 when no thread could be started. */
struct hk_peak hk_peak_measure(uint32_t threads, double seconds);

/* Processor time, ns, of the whole process. */
int64_t hk_peak_process_time(void);

#endif
