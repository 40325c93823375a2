/* What systemd is told. Without systemd, or outside of it, nothing happens. */
#ifndef HK_NOTIFY_H
#define HK_NOTIFY_H

#include <stdint.h>

/* A state as sd_notify(3) has it, such as "READY=1". */
void hk_notify(const char *state);
/* us within which the watchdog must be told that all is well; 0 = there is none. */
uint64_t hk_notify_watchdog(void);

/* Sockets that were passed (sd_listen_fds(3)): how many, with descriptors from *first on; *names and each of them is the caller's
 * to free. To be asked once. Or a negative errno. */
int hk_notify_sockets(int *first, char ***names);

#endif
