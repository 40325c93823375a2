/* Answers of a connection. Thread: the web's. */
#ifndef HK_WEB_REPLY_H
#define HK_WEB_REPLY_H

#include "daemon/web/web_internal.h"

#define HK_WEB_LIMIT 1000u /* of a list, where nothing is said */
#define HK_WEB_LIMIT_MOST 10000u

/* Begins to send the body of p->answer; extra: NULL, or one more header and its value. Not 0: the connection is to be closed. */
struct hk_web_header {
  const char *name, *value;
};
/* Whoever is answered that it cannot be now may come again in a second. */
extern const struct hk_web_header hk_web_retry;
/* type: NULL with code 204, which has no content. */
int hk_web_reply(struct lws *wsi, struct hk_web_peer *p, unsigned code, const char *type, const struct hk_web_header *extra);
/* The same with a fault as RFC 9457 has it; detail: a sentence. */
int hk_web_fault(struct lws *wsi, struct hk_web_peer *p, unsigned code, const char *detail, const struct hk_web_header *extra);
/* The body of p->answer is the answer to the request that p->wsi waits with; type: of its content, NULL: JSON, or a fault of RFC
 * 9457. */
void hk_web_ready(struct hk_web_peer *p, unsigned code, const char *type);
/* Appends such a fault. */
void hk_web_problem(struct hk_buffer *out, unsigned code, const char *detail);
/* The value of an argument behind ?, decoded; "" without one. 0, or -E2BIG: it, or another argument, is too long. */
int hk_web_argument(struct lws *wsi, const char *name, char *out, size_t size);
/* The same of a whole number; *out stays as it is without one. False: it is none, or over most. */
bool hk_web_number(struct lws *wsi, const char *name, uint64_t most, uint64_t *out);
/* Sends more of it. Not 0: the connection is to be closed. */
int hk_web_go_on(struct lws *wsi, struct hk_web_peer *p);

#endif
