/* POST /v1/metrics: OTLP/HTTP. As in web_api.h. */
#ifndef HK_WEB_OTLP_H
#define HK_WEB_OTLP_H

#include "daemon/web/web_internal.h"

int hk_web_otlp(struct lws *wsi, struct hk_web_peer *p);

#endif
