/* Server-Sent Events: a connection of the text protocol, line by line. Thread: the web's. */
#ifndef HK_WEB_STREAM_H
#define HK_WEB_STREAM_H

#include "daemon/web/web_internal.h"

/* Begins the answer. Not 0: the connection is to be closed. */
int hk_web_stream(struct lws *wsi, struct hk_web_peer *p);
/* A moment has passed. Not 0: the connection is to be closed. */
int hk_web_stream_beat(struct lws *wsi, struct hk_web_peer *p);
/* What was read is sent: more is wanted. */
void hk_web_stream_room(struct hk_web_peer *p);

#endif
