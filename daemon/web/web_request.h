/* Requests of a connection. Thread: the web's. */
#ifndef HK_WEB_REQUEST_H
#define HK_WEB_REQUEST_H

#include "daemon/web/web_internal.h"

/* A request is there: answers it. Not 0: the connection is to be closed. uri: the path, without what stands behind ?. */
int hk_web_request(struct lws *wsi, struct hk_web_peer *p, const char *uri);
/* It asks for another protocol. 0: libwebsockets goes on with that; else it was refused, and the connection is to be closed. */
int hk_web_request_upgrade(struct lws *wsi, struct hk_web_peer *p, const char *protocol);
/* Part of its body has come; all of it has. */
int hk_web_request_body(struct lws *wsi, struct hk_web_peer *p, const char *data, size_t size);
int hk_web_request_whole(struct lws *wsi, struct hk_web_peer *p);

#endif
