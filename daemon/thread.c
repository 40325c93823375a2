/* Threads have names that tools show, and ends that may be long in coming. */
#include "daemon/thread.h"

#include <stdio.h>
#include <time.h>

void hk_thread_name(const char *what, uint32_t number)
{
  char name[16];
  snprintf(name, sizeof name, "%s %u", what, number);
  (void)pthread_setname_np(pthread_self(), name);
}

bool hk_thread_join(pthread_t thread, unsigned seconds)
{
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += seconds;
  return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == 0;
}
