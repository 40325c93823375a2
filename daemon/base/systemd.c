#include "daemon/base/systemd.h"

#include <systemd/sd-daemon.h>

void hk_notify(const char *state)
{
  (void)sd_notify(0, state); /* nobody to tell it to is no fault */
}

uint64_t hk_notify_watchdog(void)
{
  uint64_t us = 0;
  return sd_watchdog_enabled(0, &us) > 0 ? us : 0;
}

int hk_notify_sockets(int *first, char ***names)
{
  *first = SD_LISTEN_FDS_START;
  return sd_listen_fds_with_names(1, names);
}
