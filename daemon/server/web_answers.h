/* The server's side of HTTP (web/web.h). Thread: main. */
#ifndef HK_WEB_ANSWERS_H
#define HK_WEB_ANSWERS_H

#include "daemon/server/server.h"

/* Opens and starts server->web if a listener speaks HTTP. Returns 0, or a negative errno with a message. */
int hk_server_open_web(struct hk_server *server, char *error, size_t size);

#endif
