/* Looks at one sensor, and lists of sensors: requests that shards answer. */
#ifndef HK_WEB_LOOK_H
#define HK_WEB_LOOK_H

#include "daemon/web/web_internal.h"

/* The path before a sensor's name; without a name in the path, the argument `name` has it. */
#define HK_WEB_LOOK_PATH "/api/v1/sensors/"

/* Return nonzero if the connection must be closed. Thread: the web's. */
int hk_web_look(struct lws *wsi, struct hk_web_peer *p);
int hk_web_sensors(struct lws *wsi, struct hk_web_peer *p);
int hk_web_groups(struct lws *wsi, struct hk_web_peer *p);
int hk_web_lines(struct lws *wsi, struct hk_web_peer *p);
/* Answers the peers whose shards have answered. Thread: the web's. */
void hk_web_look_go_on(struct hk_web *web);
/* Ends a peer's look or list, because the peer is gone or its request is over. Thread: the web's. */
void hk_web_look_end(struct hk_web_peer *p);

#endif
