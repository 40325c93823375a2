/* Access control for HTTP. Thread: the web's. */
#ifndef HK_WEB_ACCESS_H
#define HK_WEB_ACCESS_H

#include "daemon/web/web_internal.h"

/* Whether the listener accepts the Host of a request: a listener on loopback accepts loopback names only, because a page whose
 * name was made to resolve to 127.0.0.1 (DNS rebinding) sends that name. */
bool hk_web_host_is_ours(struct lws *wsi, const struct hk_web_peer *p);
/* Whether a request that may change something comes from the daemon's own page, or from no page: by Origin and Sec-Fetch-Site,
 * which browsers send and pages cannot forge. */
bool hk_web_origin_is_ours(struct lws *wsi);
/* Sets p->request.scopes and p->request.shown: by a token in Authorization or in the cookie or, if none is required, by the
 * listener's rules. argument: also accepts the token in the query argument `p`, which clients of InfluxDB 1 send. Returns
 * NULL, or the reason why there are no scopes. */
const char *hk_web_know(struct lws *wsi, struct hk_web_peer *p, bool argument);
/* As hk_web_know, with a token of `length` bytes. */
const char *hk_web_know_token(struct hk_web_peer *p, const char *token, size_t length);
/* Counts an unauthenticated request, and answers it. Returns as hk_web_reply. */
int hk_web_unauthorized(struct lws *wsi, struct hk_web_peer *p, const char *why);
/* The same of a request that needs one of the scopes and has none of them. */
int hk_web_forbidden(struct lws *wsi, struct hk_web_peer *p, const char *what, uint32_t scopes);

#define HK_WEB_COOKIE "hankel_token"

#endif
