/* UDP listeners (listener.h). Thread: the loop's. */
#ifndef HK_UDP_LISTENER_H
#define HK_UDP_LISTENER_H

#include "daemon/net/listener.h"

/* Binds the listener's socket, unless it was passed, and starts reading. Returns 0, or a negative errno with a message. */
int hk_udp_open(struct hk_listener *l, char *error, size_t size);
void hk_udp_close(struct hk_listener *l);
/* Reads datagrams while there is room for their points, for a bounded time. Returns whether none is left. */
bool hk_udp_read(struct hk_listener *l);
/* Whether peers of its protocol wait, with a PING or BYE, until the datagrams are taken that they sent before. */
bool hk_udp_is_awaited(const struct hk_listener *l);
/* Counts the datagrams that the kernel dropped because the socket's buffer was full. Called every second. */
void hk_udp_look(struct hk_listener *l);
/* Resumes reading if it was paused for lack of room. */
void hk_udp_go_on(struct hk_listener *l);

#endif
