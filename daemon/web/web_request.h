/* Requests of a connection. Thread: the web's. */
#ifndef HK_WEB_REQUEST_H
#define HK_WEB_REQUEST_H

#include "daemon/web/web_internal.h"

/* Answers a request. Not 0: the connection is to be closed. uri: the path, without the query. */
int hk_web_request(struct lws *wsi, struct hk_web_peer *p, const char *uri);
/* A request for another protocol. 0: libwebsockets continues with it; otherwise it was refused, and the connection is to be
 * closed. */
int hk_web_request_upgrade(struct lws *wsi, struct hk_web_peer *p, const char *protocol);
/* A part of its body was received; the last part was. */
int hk_web_request_body(struct lws *wsi, struct hk_web_peer *p, const char *data, size_t size);
int hk_web_request_whole(struct lws *wsi, struct hk_web_peer *p);

#endif
