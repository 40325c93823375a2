/* The listeners of the configuration, on sockets of their own or on those that were passed. */
#ifndef HK_SERVER_LISTENERS_H
#define HK_SERVER_LISTENERS_H

#include "daemon/server/server.h"

/* Opens all of them; a socket that was passed and is no listener's is closed, and logged. 0, or a negative errno with a message.
 * Thread: main, before the loops run. */
int hk_server_listen(struct hk_server *server, char *error, size_t size);

#endif
