/* WebSocket: a stream (web_stream.h) whose lines of JSON are text messages. A text message of the peer is a line of the text
 * protocol: it replaces the selection; an invalid one is answered with {"error":...}.
 *
 * Bounds: HK_WEB_SAID bytes of a message of the peer; unread messages that fit into a socket. Beyond these, and for messages that
 * are not text, the connection is closed with a code of RFC 6455 and a reason.
 *
 * Not 0: the connection is to be closed. Thread: the web's. */
#ifndef HK_WEB_SOCKET_H
#define HK_WEB_SOCKET_H

#include "daemon/web/web_internal.h"

#define HK_WEB_SAID 1024u      /* bytes */
#define HK_WEB_SOCKET_RX 4096u /* bytes of a message that are read at a time: the size of each connection's buffer */

/* Answers an ordinary request for this path. */
int hk_web_socket_plainly(struct lws *wsi, struct hk_web_peer *p);
/* The request is authorised: subscribes. 0: libwebsockets continues; otherwise the status of an answer, and its text. */
unsigned hk_web_socket_begin(struct lws *wsi, struct hk_web_peer *p, const char **why);
/* Handles events of the WebSocket. */
int hk_web_socket_event(struct lws *wsi, struct hk_web_peer *p, enum lws_callback_reasons reason, const char *in, size_t size);

#endif
