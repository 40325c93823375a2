/* Threads have names that tools show, and ends that may be long in coming. */
#include "daemon/base/thread.h"

#include <stdio.h>

void hk_thread_name(const char *what, uint32_t number)
{
  char name[16];
  snprintf(name, sizeof name, "%s %u", what, number);
  (void)pthread_setname_np(pthread_self(), name);
}

/* Looks again and again: waiting until a time of the monotonic clock is a call that ThreadSanitizer takes for no join. */
bool hk_thread_join(pthread_t thread, unsigned seconds)
{
  const struct timespec moment = { 0, 500000 };
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const time_t until = now.tv_sec + (time_t)seconds;
  while (pthread_tryjoin_np(thread, NULL) != 0) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > until)
      return false;
    (void)nanosleep(&moment, NULL);
  }
  return true;
}
