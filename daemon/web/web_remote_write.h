/* POST /api/v1/push: Prometheus' remote write 1.0. As in web_api.h. */
#ifndef HK_WEB_REMOTE_WRITE_H
#define HK_WEB_REMOTE_WRITE_H

#include "daemon/web/web_internal.h"

int hk_web_remote_write(struct lws *wsi, struct hk_web_peer *p);

#endif
