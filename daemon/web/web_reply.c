/* Answers: headers at once, the body as fast as the peer takes it. */
#include "daemon/web/web_reply.h"

#include "daemon/web/web_body.h"
#include "daemon/web/web_inner.h"
#include "daemon/web/web_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PART 16384u  /* bytes that are given to libwebsockets at a time */
#define HEADERS 2048 /* bytes of an answer's headers */
/* For the page; on other answers it prevents that a browser takes them for one. */
#define POLICY                                                                                                                   \
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "         \
  "form-action 'none'; frame-ancestors 'none'"

const struct hk_web_header hk_web_retry = { "retry-after:", "1" };

/* A peer that takes nothing for so long is closed: by libwebsockets while there is more to hand over, by the kernel afterwards
 * (TCP_USER_TIMEOUT, web.c). */
static void web_reply_be_patient(struct lws *wsi, const struct hk_web_peer *p)
{
  lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, p->stuck);
}

static int over(struct lws *wsi, struct hk_web_peer *p)
{
  hk_web_inner_close(p->inner);
  hk_buffer_free(&p->answer.body);
  hk_web_body_drop(p);
  return p->answer.last || lws_http_transaction_completed(wsi) ? -1 : 0;
}

static int web_reply_add(struct lws *wsi, const char *name, const char *value, unsigned char **at, unsigned char *end)
{
  return lws_add_http_header_by_name(wsi, (const unsigned char *)name, (const unsigned char *)value, (int)strlen(value), at, end);
}

/* The status, and what the content is. */
static int begin_headers(struct lws *wsi, const struct hk_web_peer *p, unsigned code, const char *type, unsigned char **at,
                         unsigned char *end)
{
  if (code == 204) /* has no content, not even of length 0 */
    return lws_add_http_header_status(wsi, code, at, end);
  return lws_add_http_common_headers(wsi, code, type, p->stream.open ? LWS_ILLEGAL_HTTP_CONTENT_LEN : p->answer.body.size, at,
                                     end);
}

int hk_web_reply(struct lws *wsi, struct hk_web_peer *p, unsigned code, const char *type, const struct hk_web_header *extra)
{
  unsigned char room[LWS_PRE + HEADERS], *at = room + LWS_PRE, *end = room + sizeof room - 1;
  if (p->answer.body.failed) /* no memory */
    return -1;
  p->answer.sent = 0;
  p->answer.begun = true;
  if (begin_headers(wsi, p, code, type, &at, end) != 0 || web_reply_add(wsi, "cache-control:", "no-store", &at, end) != 0 ||
      web_reply_add(wsi, "content-security-policy:", POLICY, &at, end) != 0 ||
      web_reply_add(wsi, "referrer-policy:", "no-referrer", &at, end) != 0 ||
      web_reply_add(wsi, "cross-origin-resource-policy:", "same-origin", &at, end) != 0 ||
      web_reply_add(wsi, "x-content-type-options:", "nosniff", &at, end) != 0 ||
      (extra && web_reply_add(wsi, extra->name, extra->value, &at, end) != 0) ||
      (p->request.points.told[0] && web_reply_add(wsi, "hankel-points:", p->request.points.told, &at, end) != 0) ||
      (p->answer.last && !p->stream.open && web_reply_add(wsi, "connection:", "close", &at, end) != 0) ||
      lws_finalize_write_http_header(wsi, room + LWS_PRE, &at, end) != 0)
    return -1;
  if (p->answer.head || p->answer.body.size == 0)
    return over(wsi, p);
  web_reply_be_patient(wsi, p);
  return lws_callback_on_writable(wsi) < 0 ? -1 : 0;
}

void hk_web_ready(struct hk_web_peer *p, unsigned code, const char *type)
{
  p->answer.ready = code;
  p->answer.type = type;
  (void)lws_callback_on_writable(p->wsi);
}

void hk_web_problem(struct hk_buffer *out, unsigned code, const char *detail)
{
  hk_buffer_print(out, "{\"type\":\"about:blank\",\"status\":%u,\"detail\":", code);
  hk_json_string(out, detail, strlen(detail));
  hk_buffer_put(out, "}\n", 2);
}

int hk_web_argument(struct lws *wsi, const char *name, char *out, size_t size)
{
  char part[1024];
  const size_t length = strlen(name);
  out[0] = 0;
  for (int i = 0, n; (n = lws_hdr_copy_fragment(wsi, part, sizeof part, WSI_TOKEN_HTTP_URI_ARGS, i)) != -1; i++) {
    if (n < 0) /* longer than any argument */
      return -E2BIG;
    if ((size_t)n > length && part[length] == '=' && memcmp(part, name, length) == 0)
      return (size_t)snprintf(out, size, "%s", part + length + 1) < size ? 0 : -E2BIG;
  }
  return 0;
}

bool hk_web_number(struct lws *wsi, const char *name, uint64_t most, uint64_t *out)
{
  char text[24], *end;
  if (hk_web_argument(wsi, name, text, sizeof text) != 0)
    return false;
  if (!text[0])
    return true;
  if (strspn(text, "0123456789") != strlen(text))
    return false;
  errno = 0;
  *out = strtoull(text, &end, 10);
  return errno == 0 && *out <= most;
}

int hk_web_fault(struct lws *wsi, struct hk_web_peer *p, unsigned code, const char *detail, const struct hk_web_header *extra)
{
  p->answer.body.size = 0;
  p->stream.open = false;
  hk_web_problem(&p->answer.body, code, detail);
  return hk_web_reply(wsi, p, code, "application/problem+json", extra);
}

/* Part of a stream was sent: drops it, and allows more. */
static int go_on_streaming(struct lws *wsi, struct hk_web_peer *p)
{
  const size_t left = p->answer.body.size - p->answer.sent;
  if (p->answer.body.failed)
    return -1;
  if (left > 0)
    memmove(p->answer.body.data, p->answer.body.data + p->answer.sent, left);
  p->answer.body.size = left;
  p->answer.sent = 0;
  hk_web_stream_room(p);
  if (left == 0) {
    lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0);
    return 0;
  }
  web_reply_be_patient(wsi, p);
  return lws_callback_on_writable(wsi) < 0 ? -1 : 0;
}

/* An answer from another part of the daemon. */
static int begin_ready(struct lws *wsi, struct hk_web_peer *p)
{
  const unsigned code = p->answer.ready;
  p->answer.ready = 0;
  return hk_web_reply(wsi, p, code,
                      p->answer.type ? p->answer.type
                      : code == 200  ? "application/json"
                                     : "application/problem+json",
                      code == 503 ? &hk_web_retry : NULL);
}

int hk_web_go_on(struct lws *wsi, struct hk_web_peer *p)
{
  unsigned char room[LWS_PRE + PART];
  const size_t left = p->answer.body.size - p->answer.sent, n = left < PART ? left : PART;
  if (p->answer.ready)
    return begin_ready(wsi, p);
  if (n == 0) /* nothing is being sent, or an empty stream has ended */
    return p->answer.last && p->answer.begun && !p->stream.open ? -1 : 0;
  memcpy(room + LWS_PRE, p->answer.body.data + p->answer.sent, n);
  if (lws_write(wsi, room + LWS_PRE, n, n == left && !p->stream.open ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) < (int)n)
    return -1;
  p->answer.sent += n;
  if (n == left && !p->stream.open)
    return over(wsi, p);
  if (p->stream.open)
    return go_on_streaming(wsi, p);
  web_reply_be_patient(wsi, p);
  return lws_callback_on_writable(wsi) < 0 ? -1 : 0;
}
