/* Requests of a connection. Thread: the web's. */
#ifndef HK_WEB_REQUEST_H
#define HK_WEB_REQUEST_H

#include "daemon/web/web_internal.h"

/* Answers a request. Returns nonzero if the connection must be closed. uri: the path, without the query. */
int hk_web_request(struct lws *wsi, struct hk_web_peer *p, const char *uri);
/* Handles a request for another protocol. Returns 0: libwebsockets continues; otherwise the request was refused, and the
 * connection must be closed. */
int hk_web_request_upgrade(struct lws *wsi, struct hk_web_peer *p, const char *protocol);
/* A part of the request's body was received; the last part was received. */
int hk_web_request_body(struct lws *wsi, struct hk_web_peer *p, const char *data, size_t size);
int hk_web_request_whole(struct lws *wsi, struct hk_web_peer *p);

#endif
