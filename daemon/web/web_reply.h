/* Answers of a connection. Thread: the web's. */
#ifndef HK_WEB_REPLY_H
#define HK_WEB_REPLY_H

#include "daemon/web/web_internal.h"

#define HK_WEB_LIMIT 1000u /* default length of a list */
#define HK_WEB_LIMIT_MOST 10000u

/* Starts sending the body of p->answer. extra: NULL, or one more header and its value. Returns nonzero if the connection must
 * be closed. */
struct hk_web_header {
  const char *name, *value;
};
/* Header of temporary refusals: try again in a second. */
extern const struct hk_web_header hk_web_retry;
/* type: NULL with code 204, which has no content. */
int hk_web_reply(struct lws *wsi, struct hk_web_peer *p, unsigned code, const char *type, const struct hk_web_header *extra);
/* As hk_web_reply, with an error according to RFC 9457; detail: a sentence. */
int hk_web_fault(struct lws *wsi, struct hk_web_peer *p, unsigned code, const char *detail, const struct hk_web_header *extra);
/* Marks the body of p->answer as the answer to the request that waits at p->wsi. type: its content type, NULL: JSON, or an
 * error according to RFC 9457. */
void hk_web_ready(struct hk_web_peer *p, unsigned code, const char *type);
/* Appends an error according to RFC 9457. */
void hk_web_problem(struct hk_buffer *out, unsigned code, const char *detail);
/* Gets the decoded value of a query argument; "" if there is none. Returns 0, or -E2BIG: this or another argument is too long. */
int hk_web_argument(struct lws *wsi, const char *name, char *out, size_t size);
/* Gets an integer query argument; without one, *out is unchanged. False: not a number, or over `most`. */
bool hk_web_number(struct lws *wsi, const char *name, uint64_t most, uint64_t *out);
/* Sends more of the body. Returns nonzero if the connection must be closed. */
int hk_web_go_on(struct lws *wsi, struct hk_web_peer *p);

#endif
