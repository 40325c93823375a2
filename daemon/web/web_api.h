/* The paths below /api/v1/: answers complete, authorised requests. Each function returns nonzero if the connection must be
 * closed. Thread: the web's. */
#ifndef HK_WEB_API_H
#define HK_WEB_API_H

#include "daemon/web/web_internal.h"

int hk_web_api_status(struct lws *wsi, struct hk_web_peer *p);
int hk_web_api_alerts(struct lws *wsi, struct hk_web_peer *p);
int hk_web_api_incidents(struct lws *wsi, struct hk_web_peer *p);
int hk_web_api_events(struct lws *wsi, struct hk_web_peer *p);
int hk_web_api_told(struct lws *wsi, struct hk_web_peer *p); /* operators' actions */
int hk_web_api_acknowledge(struct lws *wsi, struct hk_web_peer *p);
int hk_web_api_cluster(struct lws *wsi, struct hk_web_peer *p);
int hk_web_api_feedback(struct lws *wsi, struct hk_web_peer *p);    /* marks of incidents */
int hk_web_api_say(struct lws *wsi, struct hk_web_peer *p);         /* marks an incident */
int hk_web_api_maintenance(struct lws *wsi, struct hk_web_peer *p); /* windows */
int hk_web_api_maintain(struct lws *wsi, struct hk_web_peer *p);
int hk_web_api_reload(struct lws *wsi, struct hk_web_peer *p);
int hk_web_api_login(struct lws *wsi, struct hk_web_peer *p);
int hk_web_api_logout(struct lws *wsi, struct hk_web_peer *p);

#endif
