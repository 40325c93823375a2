/* Streams: the lines of a text protocol connection, as Server-Sent Events or as WebSocket messages. Thread: the web's. */
#ifndef HK_WEB_STREAM_H
#define HK_WEB_STREAM_H

#include "daemon/web/web_internal.h"

/* Starts an answer of Server-Sent Events. Returns nonzero if the connection must be closed. */
int hk_web_stream(struct lws *wsi, struct hk_web_peer *p);
/* Subscribes as the query's arguments say: from now on received lines are put into p->answer.body. Returns 0; or the status of
 * an answer, and its text in *why. */
unsigned hk_web_stream_begin(struct lws *wsi, struct hk_web_peer *p, const char **why);
/* Checks the peer when the timer has fired. Returns nonzero if the connection must be closed. */
int hk_web_stream_beat(struct lws *wsi, struct hk_web_peer *p);
/* Continues reading when everything was sent. */
void hk_web_stream_room(struct hk_web_peer *p);

#endif
