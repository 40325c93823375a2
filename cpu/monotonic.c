/* See monotonic.h. Its calls cannot fail: every Linux has this clock, and a condition's attributes take no memory. */
#include "cpu/monotonic.h"

#define SECOND 1000000000ll /* ns */

int64_t hk_monotonic(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * SECOND + now.tv_nsec;
}

void hk_monotonic_condition(pthread_cond_t *condition)
{
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

struct timespec hk_monotonic_limit(int64_t ns)
{
  const int64_t limit = hk_monotonic() + ns;
  return (struct timespec){ limit / SECOND, limit % SECOND };
}
