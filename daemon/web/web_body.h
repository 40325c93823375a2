/* Bodies of requests that bring points: how they come, and what they are packed in.
 *
 * Bounds: HK_WEB_BODY bytes as they are sent, HK_WEB_UNPACKED of what is in them, HK_WEB_BODIES of all of them that are there at
 * a time; past that a request is answered 429 and is to come again. Thread: the web's. */
#ifndef HK_WEB_BODY_H
#define HK_WEB_BODY_H

#include "daemon/web/web_internal.h"

#define HK_WEB_BODY (16u << 20)     /* bytes */
#define HK_WEB_UNPACKED (32u << 20) /* bytes */
#define HK_WEB_BODIES (128u << 20)  /* bytes */

/* The body's length that the headers tell; -1: none. What is no number is more than any bound. */
long long hk_web_body_length(struct lws *wsi);
/* Whether the body of a request may come. False: it was answered, as *status says. */
bool hk_web_body_begin(struct lws *wsi, struct hk_web_peer *p, int *status);
/* Part of it has come. True: that was the last, of a body whose length the headers do not tell; those of others end with an event
 * of libwebsockets. False: more has to come; or it was answered, p->route is NULL, and *status not 0 where the connection is to
 * be closed. */
bool hk_web_body_came(struct lws *wsi, struct hk_web_peer *p, const char *data, size_t size, int *status);
/* It is there: unpacks it in p->asked as Content-Encoding says. False: it was answered, as *status says. */
bool hk_web_body_unpack(struct lws *wsi, struct hk_web_peer *p, int *status);
/* p->asked is to have another content than what has come, of `size` bytes: whether there is room for that too. */
bool hk_web_body_reserve(struct hk_web_peer *p, size_t size);
/* Frees it. */
void hk_web_body_drop(struct hk_web_peer *p);
/* Answers that there is no room for what has come. As hk_web_reply. */
int hk_web_body_full(struct lws *wsi, struct hk_web_peer *p);

#endif
