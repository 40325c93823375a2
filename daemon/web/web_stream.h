/* Streams: the lines of a connection of the text protocol, as Server-Sent Events or as messages of a WebSocket. Thread: the
 * web's.
 */
#ifndef HK_WEB_STREAM_H
#define HK_WEB_STREAM_H

#include "daemon/web/web_internal.h"

/* Begins an answer of Server-Sent Events. Not 0: the connection is to be closed. */
int hk_web_stream(struct lws *wsi, struct hk_web_peer *p);
/* Subscribes to what the arguments behind ? say: from now on what comes is put into p->body. 0; or the status of an answer, and
 * its text. */
unsigned hk_web_stream_begin(struct lws *wsi, struct hk_web_peer *p, const char **why);
/* The timer has fired: checks the peer. Not 0: the connection is to be closed. */
int hk_web_stream_beat(struct lws *wsi, struct hk_web_peer *p);
/* All was sent: reads more. */
void hk_web_stream_room(struct hk_web_peer *p);

#endif
