/* Answers: headers at once, the body as fast as the peer takes it. */
#include "daemon/web/web_reply.h"

#include <string.h>

#define PART 16384u  /* bytes that are handed over at a time */
#define HEADERS 1024 /* bytes of an answer's headers */

static int over(struct lws *wsi, struct hk_web_peer *p)
{
  hk_buffer_free(&p->body);
  p->body = (struct hk_buffer){ 0 };
  return p->last || lws_http_transaction_completed(wsi) ? -1 : 0;
}

static int add(struct lws *wsi, const char *name, const char *value, unsigned char **at, unsigned char *end)
{
  return lws_add_http_header_by_name(wsi, (const unsigned char *)name, (const unsigned char *)value, (int)strlen(value), at, end);
}

int hk_web_reply(struct lws *wsi, struct hk_web_peer *p, unsigned code, const char *type, const struct hk_web_header *extra)
{
  unsigned char room[LWS_PRE + HEADERS], *at = room + LWS_PRE, *end = room + sizeof room - 1;
  if (p->body.failed) /* no memory */
    return -1;
  p->sent = 0;
  if (lws_add_http_common_headers(wsi, code, type, p->body.size, &at, end) != 0 ||
      add(wsi, "cache-control:", "no-store", &at, end) != 0 ||
      add(wsi, "x-content-type-options:", "nosniff", &at, end) != 0 ||
      (extra && add(wsi, extra->name, extra->value, &at, end) != 0) ||
      (p->last && add(wsi, "connection:", "close", &at, end) != 0) ||
      lws_finalize_write_http_header(wsi, room + LWS_PRE, &at, end) != 0)
    return -1;
  if (p->head || p->body.size == 0)
    return over(wsi, p);
  lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, p->web->stuck);
  return lws_callback_on_writable(wsi) < 0 ? -1 : 0;
}

int hk_web_fault(struct lws *wsi, struct hk_web_peer *p, unsigned code, const char *detail, const struct hk_web_header *extra)
{
  hk_buffer_print(&p->body, "{\"type\":\"about:blank\",\"status\":%u,\"detail\":", code);
  hk_json_string(&p->body, detail, strlen(detail));
  hk_buffer_put(&p->body, "}\n", 2);
  return hk_web_reply(wsi, p, code, "application/problem+json", extra);
}

int hk_web_go_on(struct lws *wsi, struct hk_web_peer *p)
{
  unsigned char room[LWS_PRE + PART];
  const size_t left = p->body.size - p->sent, n = left < PART ? left : PART;
  if (n == 0) /* nothing is being sent */
    return 0;
  memcpy(room + LWS_PRE, p->body.data + p->sent, n);
  if (lws_write(wsi, room + LWS_PRE, n, n == left ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) < (int)n)
    return -1;
  p->sent += n;
  if (n == left)
    return over(wsi, p);
  lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, p->web->stuck);
  return lws_callback_on_writable(wsi) < 0 ? -1 : 0;
}
