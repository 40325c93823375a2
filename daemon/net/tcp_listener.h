/* Opens listeners of both transports, and accepts connections (listener.h). Thread: the loop's. */
#ifndef HK_TCP_LISTENER_H
#define HK_TCP_LISTENER_H

#include "daemon/net/listener.h"

/* Binds a socket (fd = -1), or takes over a bound one; listens on a loop, and prints the bare line `listening ...` (for one of
 * several sockets). Returns 0, or a negative errno with a message. */
int hk_listener_open(struct hk_listener *l, struct hk_loop *loop, const struct hk_config_listener *config, struct hk_gate *gate,
                     struct sockaddr_storage *bind_to, int fd, char *error, size_t size);
void hk_listener_close(struct hk_listener *l); /* may be called twice; the loop must run once more */

/* TCP: resumes accepting if paused. Called every second. */
void hk_listener_retry(struct hk_listener *l);
/* Opens a spare descriptor; -1: none is left. */
int hk_listener_reserve(void);

#endif
