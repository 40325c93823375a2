/* WebSocket: what a stream (web_stream.h) brings, each line of JSON a message of text. What the peer sends is a line of the text
 * protocol in a message of text: it chooses anew what is shown, and one that is not understood is answered with {"error":...}.
 *
 * Bounds: HK_WEB_SAID bytes of a message of the peer's; so many that the daemon has not read as fit into a socket. Past these,
 * and with messages that are not text, the connection is closed with a code of RFC 6455 and a reason.
 *
 * Not 0: the connection is to be closed. Thread: the web's. */
#ifndef HK_WEB_SOCKET_H
#define HK_WEB_SOCKET_H

#include "daemon/web/web_internal.h"

#define HK_WEB_SAID 1024u      /* bytes */
#define HK_WEB_SOCKET_RX 4096u /* bytes of a message that are read at a time: each connection has room for so many */

/* It is asked for by an ordinary request: answers that. */
int hk_web_socket_plainly(struct lws *wsi, struct hk_web_peer *p);
/* Who asks may have it: subscribes. 0: libwebsockets goes on; else the code of an answer, and what it says. */
unsigned hk_web_socket_begin(struct lws *wsi, struct hk_web_peer *p, const char **why);
/* Events of it. */
int hk_web_socket_event(struct lws *wsi, struct hk_web_peer *p, enum lws_callback_reasons reason, const char *in, size_t size);

#endif
