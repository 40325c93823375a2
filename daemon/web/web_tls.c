/* See web_tls.h. */
#include "daemon/web/web_tls.h"

#include "daemon/net/tls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAITS_MOST 65536u /* bytes that may wait for one side before the other is no longer read */
#define LINGER 2          /* s for the last records to be taken */
#define CHUNK 4096u
#define REVOKED 256 /* bytes of the reason why a certificate is no longer valid */

/* One of its sockets. */
struct side {
  enum hk_web_what what; /* HK_WEB_TLS; first */
  struct hk_web_tls *tls;
  struct lws *wsi; /* NULL: it is closed */
  int fd;
  struct hk_buffer out;
  size_t sent; /* bytes of it */
  bool held;   /* it is not read now */
};

struct hk_web_tls {
  struct hk_web_tls *next, **link; /* of the web's list */
  struct hk_web_peer *peer;        /* NULL: it is gone */
  struct hk_tls *tls;
  struct side outer, inner; /* the peer's socket; our end of the pair */
  bool ending;              /* the peer gets the rest of its records, and no more */
};

static size_t web_tls_waits(const struct side *s)
{
  return s->out.size - s->sent;
}

static void web_tls_hold(struct side *s, bool held)
{
  if (!s->wsi || s->held == held)
    return;
  s->held = held;
  (void)lws_rx_flow_control(s->wsi, !held);
}

static void close_side(struct side *s)
{
  if (s->wsi)
    lws_set_timeout(s->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
}

/* Sends what the socket takes. False: it is broken. */
static bool web_tls_flush(struct side *s)
{
  while (s->wsi && web_tls_waits(s) > 0) {
    const ssize_t n = send(s->fd, s->out.data + s->sent, web_tls_waits(s), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      (void)lws_callback_on_writable(s->wsi);
      return true;
    }
    if (n <= 0)
      return false;
    s->sent += (size_t)n;
  }
  s->out.size = s->sent = 0;
  return !s->out.failed;
}

/* Takes TLS's own messages to the peer. */
static void take_output(struct hk_web_tls *t)
{
  struct hk_buffer *said = hk_tls_output(t->tls);
  if (said->size > 0)
    hk_buffer_put(&t->outer.out, said->data, said->size);
  said->size = 0;
}

/* Sends both ways, and reads if there is room. False: the peer's socket is broken, or its last record was sent. */
static bool web_tls_go_on(struct hk_web_tls *t)
{
  take_output(t);
  if (!web_tls_flush(&t->inner))
    close_side(&t->inner);
  if (!web_tls_flush(&t->outer) || (t->ending && web_tls_waits(&t->outer) == 0))
    return false;
  web_tls_hold(&t->outer, web_tls_waits(&t->inner) > WAITS_MOST);
  web_tls_hold(&t->inner, web_tls_waits(&t->outer) > WAITS_MOST);
  return true;
}

static void web_tls_refuse(const struct hk_web_tls *t, const char *why)
{
  struct hk_web_peer *p = t->peer;
  struct hk_net *net = p->web->net;
  if (p->newcomer) {
    hk_count(&p->web->counters.unauthorized, 1);
    hk_audit_refused(&net->audit, &p->audit, p->peer, p->gate->name, "%s", why);
    (void)hk_address_limits_fail(net->limits, &p->most, p->place, hk_now());
  } else {
    hk_log_peer(net->log, &p->audit, HK_LOG_WARNING, p->peer, "closed: %s", why);
  }
}

/* Whether the peer's certificate is revoked by now; logs it. */
static bool web_tls_revoked(const struct hk_web_tls *t)
{
  char why[REVOKED];
  struct hk_credentials *credentials = hk_gate_credentials(t->peer->gate);
  const bool is = credentials->tls && hk_tls_revoked(t->tls, credentials->tls, why, sizeof why);
  hk_credentials_release(credentials);
  if (is)
    web_tls_refuse(t, why);
  return is;
}

/* The handshake is complete: identifies the peer by its certificate, and admits it if it needs no token. False: its certificate
 * was revoked since the handshake began. */
static bool know(struct hk_web_tls *t)
{
  if (web_tls_revoked(t))
    return false;
  struct hk_web_peer *p = t->peer;
  struct hk_credentials *credentials = hk_gate_credentials(p->gate);
  if (!hk_tls_peer(t->tls, p->certificate))
    p->certificate[0] = 0;
  const bool enough = !credentials->tokens || (p->certificate[0] && hk_tokens_certificate(credentials->tokens, p->certificate));
  hk_credentials_release(credentials);
  if (enough && p->newcomer) {
    hk_address_limits_admit(p->web->net->limits, p->place);
    p->newcomer = false;
  }
  lws_set_timeout(t->outer.wsi, NO_PENDING_TIMEOUT, 0); /* HTTP has its own */
  return true;
}

/* Records of the peer. False: it is over. */
static bool from_peer(struct hk_web_tls *t, const void *data, size_t size)
{
  char text[CHUNK];
  ssize_t status;
  if (t->ending || !t->peer)
    return false;
  hk_tls_feed(t->tls, data, size);
  const bool was_through = hk_tls_through(t->tls);
  status = was_through ? 1 : hk_tls_handshake(t->tls);
  if (status > 0 && !was_through && !know(t))
    return false;
  while (status > 0 && (status = hk_tls_read(t->tls, text, sizeof text)) > 0)
    hk_buffer_put(&t->inner.out, text, (size_t)status);
  if (status == HK_TLS_MORE && hk_tls_settle(t->tls) == 0)
    return web_tls_go_on(t);
  if (status == HK_TLS_FAILED)
    web_tls_refuse(t, hk_tls_fault(t->tls));
  (void)web_tls_go_on(t); /* it is over either way */
  return false;
}

/* Bytes of HTTP. */
static void from_us(struct hk_web_tls *t, const void *data, size_t size)
{
  if (hk_tls_write(t->tls, data, size, &t->outer.out) != 0 || !web_tls_go_on(t))
    close_side(&t->outer);
}

/* Our end of the pair is being closed. Bytes that HTTP has written and that are still unread are the end of an answer, which must
 * be read here: if HTTP has left part of a request unread, libwebsockets does not deliver them. */
static void web_tls_drain(struct side *s)
{
  char text[CHUNK];
  ssize_t n;
  while (s->tls->outer.wsi && (n = recv(s->fd, text, sizeof text, MSG_DONTWAIT)) > 0)
    if (hk_tls_write(s->tls->tls, text, (size_t)n, &s->tls->outer.out) != 0)
      return;
}

/* Our end of the pair is closed: HTTP has ended. */
static void web_tls_end(struct hk_web_tls *t)
{
  if (!t->outer.wsi)
    return;
  hk_tls_end(t->tls);
  t->ending = true;
  if (web_tls_go_on(t))
    lws_set_timeout(t->outer.wsi, PENDING_TIMEOUT_USER_OK, LINGER);
  else
    close_side(&t->outer);
}

static void web_tls_release(struct hk_web_tls *t)
{
  if (t->peer || t->outer.wsi || t->inner.wsi)
    return;
  *t->link = t->next;
  if (t->next)
    t->next->link = t->link;
  hk_tls_free(t->tls);
  hk_buffer_free(&t->outer.out);
  hk_buffer_free(&t->inner.out);
  free(t);
}

static void web_tls_gone(struct side *s)
{
  struct hk_web_tls *t = s->tls;
  s->wsi = NULL;
  if (s == &t->inner)
    web_tls_end(t);
  else
    close_side(&t->inner);
  web_tls_release(t);
}

void hk_web_tls_leave(struct hk_web_tls *t)
{
  if (!t)
    return;
  t->peer = NULL;
  close_side(&t->inner);
  web_tls_release(t);
}

void hk_web_tls_again(struct hk_web *web)
{
  for (struct hk_web_tls *t = web->tls, *next; t; t = next) {
    next = t->next;
    if (t->peer && !t->ending && hk_tls_through(t->tls) && web_tls_revoked(t)) {
      close_side(&t->inner);
      web_tls_end(t);
    }
  }
}

int hk_web_tls_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t size)
{
  struct side *s = wsi ? lws_get_opaque_user_data(wsi) : NULL;
  (void)user;
  if (!s)
    return 0;
  switch (reason) {
  case LWS_CALLBACK_RAW_RX:
    if (s == &s->tls->outer)
      return from_peer(s->tls, in, size) ? 0 : -1;
    from_us(s->tls, in, size);
    return 0;
  case LWS_CALLBACK_RAW_WRITEABLE:
    return web_tls_go_on(s->tls) || s != &s->tls->outer ? 0 : -1;
  case LWS_CALLBACK_RAW_CLOSE:
    if (s == &s->tls->inner)
      web_tls_drain(s);
    return 0;
  case LWS_CALLBACK_WSI_DESTROY:
    lws_set_opaque_user_data(wsi, NULL);
    web_tls_gone(s);
    return 0;
  default:
    return 0;
  }
}

/* Closes fd when it fails. */
static bool web_tls_adopt(struct hk_web_tls *t, struct side *s, int fd)
{
  const lws_sock_file_fd_type socket = { .sockfd = fd };
  s->what = HK_WEB_TLS;
  s->tls = t;
  s->fd = fd;
  s->wsi = lws_adopt_descriptor_vhost(t->peer->web->vhost, LWS_ADOPT_SOCKET, socket, "tls", NULL);
  if (!s->wsi)
    return false;
  lws_set_opaque_user_data(s->wsi, s);
  lws_set_timeout(s->wsi, NO_PENDING_TIMEOUT, 0);
  return true;
}

int hk_web_tls_begin(struct hk_web_peer *p)
{
  struct hk_credentials *credentials = hk_gate_credentials(p->gate);
  struct hk_web_tls *t = calloc(1, sizeof *t);
  int pair[2] = { -1, -1 }, status = 0;
  if (t)
    t->tls = hk_tls_new(credentials->tls);
  hk_credentials_release(credentials);
  if (!t || !t->tls)
    status = -ENOMEM;
  else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0)
    status = -errno;
  if (status != 0) {
    if (t)
      hk_tls_free(t->tls);
    free(t);
    close(p->fd);
    return status;
  }
  t->peer = p;
  t->link = &p->web->tls;
  t->next = *t->link;
  if (t->next)
    t->next->link = &t->next;
  *t->link = t;
  p->tls = t;
  const bool outer = web_tls_adopt(t, &t->outer, p->fd), inner = web_tls_adopt(t, &t->inner, pair[0]);
  p->fd = pair[1];
  if (outer && inner) {
    lws_set_timeout(t->outer.wsi, PENDING_TIMEOUT_USER_OK, p->web->handshake);
    return 0;
  }
  close_side(&t->outer);
  close(p->fd);
  return -ENOMEM;
}
