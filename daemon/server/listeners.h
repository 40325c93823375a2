/* The listeners of the configuration, on their own or on passed sockets. */
#ifndef HK_SERVER_LISTENERS_H
#define HK_SERVER_LISTENERS_H

#include "daemon/server/server.h"

/* Opens all of them; a passed socket without a listener is closed, and logged. Returns 0, or a negative errno with a message.
 * Thread: main, before the loops run. */
int hk_server_listen(struct hk_server *server, char *error, size_t size);

#endif
