/* Shutdown of the daemon; described in server.h. Thread: main. */
#ifndef HK_DRAIN_H
#define HK_DRAIN_H

#include "daemon/server/server.h"

/* Begins the shutdown. */
void hk_server_end(struct hk_server *server);
/* Ends the daemon at once. */
void hk_server_end_now(struct hk_server *server);

#endif
