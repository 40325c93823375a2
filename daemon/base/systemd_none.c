/* Built where libsystemd is not. */
#include "daemon/base/systemd.h"

#include <stddef.h>

void hk_notify(const char *state)
{
  (void)state;
}

uint64_t hk_notify_watchdog(void)
{
  return 0;
}

int hk_notify_sockets(int *first, char ***names)
{
  *first = 0;
  *names = NULL;
  return 0;
}
