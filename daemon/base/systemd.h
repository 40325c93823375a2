/* Notifications to systemd, and what it passes on. Not started by systemd, they do nothing. Thread: main. */
#ifndef HK_SYSTEMD_H
#define HK_SYSTEMD_H

#include <stdint.h>

/* Sends a state of sd_notify(3), such as "READY=1". */
void hk_notify(const char *state);
/* Period within which the watchdog expects a notification, us; 0: no watchdog. */
uint64_t hk_notify_watchdog(void);

/* Passed sockets (sd_listen_fds(3)). Returns their number or a negative errno; their descriptors begin at *first. The caller
 * frees *names and each name; NULL: it has none. Call once. */
int hk_notify_sockets(int *first, char ***names);

#endif
