/* Requests of clients of InfluxDB 1 and 2: POST /write and /api/v2/write, /ping, /health, and the part of /query that clients of
 * version 1 need before they write. As in web_api.h. */
#ifndef HK_WEB_INFLUX_H
#define HK_WEB_INFLUX_H

#include "daemon/web/web_internal.h"

int hk_web_influx_write(struct lws *wsi, struct hk_web_peer *p);
int hk_web_influx_query(struct lws *wsi, struct hk_web_peer *p);
int hk_web_influx_ping(struct lws *wsi, struct hk_web_peer *p);
int hk_web_influx_health(struct lws *wsi, struct hk_web_peer *p);

#endif
