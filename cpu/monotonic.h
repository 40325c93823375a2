/* The monotonic clock, and conditions whose limits are its times. Thread: any. */
#ifndef HK_MONOTONIC_H
#define HK_MONOTONIC_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* The time since some moment in the past: ns; and s, for what is measured. */
int64_t hk_monotonic(void);
static inline double hk_monotonic_seconds(void)
{
  return (double)hk_monotonic() * 1e-9;
}

/* Initialises a condition whose limits are times of the monotonic clock: by the wall clock, which is pthread_cond_init's, a
 * thread would sleep for as long as that clock is set back. */
void hk_monotonic_condition(pthread_cond_t *condition);
/* The time in ns from now, at least 0, for pthread_cond_timedwait on such a condition. */
struct timespec hk_monotonic_limit(int64_t ns);

#endif
