/* Bodies of requests with points: transfer and compression.
 *
 * Bounds: HK_WEB_BODY bytes as sent, HK_WEB_UNPACKED bytes decompressed, HK_WEB_BODIES bytes of all current bodies together;
 * beyond that a request is answered 429. Thread: the web's. */
#ifndef HK_WEB_BODY_H
#define HK_WEB_BODY_H

#include "daemon/web/web_internal.h"

#define HK_WEB_BODY (16u << 20)     /* bytes */
#define HK_WEB_UNPACKED (32u << 20) /* bytes */
#define HK_WEB_BODIES (128u << 20)  /* bytes */

/* The body's length by the headers; -1: none. An invalid number counts as larger than any bound. */
long long hk_web_body_length(struct lws *wsi);
/* Whether the body of a request is accepted. False: the request was answered, with the result *status. */
bool hk_web_body_begin(struct lws *wsi, struct hk_web_peer *p, int *status);
/* Takes a part of the body. True: it was the last part of a chunked body; the end of other bodies is an event of
 * libwebsockets. False: more is to come; or the request was answered, p->request.route is NULL, and *status is nonzero if the
 * connection must be closed. */
bool hk_web_body_came(struct lws *wsi, struct hk_web_peer *p, const char *data, size_t size, int *status);
/* The body is complete: decompresses it in p->request.body, by Content-Encoding. False: the request was answered, with the
 * result *status. */
bool hk_web_body_unpack(struct lws *wsi, struct hk_web_peer *p, int *status);
/* Whether p->request.body may be replaced by `size` decoded bytes. */
bool hk_web_body_reserve(struct hk_web_peer *p, size_t size);
/* Frees the body. */
void hk_web_body_drop(struct hk_web_peer *p);
/* Answers that there is no room for the body. Returns as hk_web_reply. */
int hk_web_body_full(struct lws *wsi, struct hk_web_peer *p);

#endif
