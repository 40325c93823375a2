/* See web_inner.h. */
#include "daemon/web/web_inner.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int hk_web_inner_open(struct hk_web_peer *p, const struct hk_web_inner_kind *kind, int64_t unit)
{
  struct hk_web_inner *inner = calloc(1, sizeof *inner);
  if (!inner)
    return -ENOMEM;
  const struct hk_inner what = { .protocol = kind->protocol,
                                 .listener = p->listener,
                                 .gate = p->gate,
                                 .peer = p->peer,
                                 .scopes = p->request.scopes,
                                 .shown = p->request.shown.scopes ? &p->request.shown : NULL,
                                 .unit = unit };
  const int fd = hk_inner_open(p->web->net, &what);
  if (fd < 0) {
    free(inner);
    return fd;
  }
  const lws_sock_file_fd_type socket = { .sockfd = fd };
  inner->what = HK_WEB_INNER;
  inner->fd = fd;
  inner->kind = kind;
  inner->inbox.max_length = HK_FRAME_MAX;
  inner->wsi = lws_adopt_descriptor_vhost(p->web->vhost, LWS_ADOPT_SOCKET, socket, "inner", NULL); /* closes fd when it fails */
  if (!inner->wsi) {
    free(inner);
    return -ENOMEM;
  }
  lws_set_opaque_user_data(inner->wsi, inner);
  lws_set_timeout(inner->wsi, NO_PENDING_TIMEOUT, 0);
  inner->peer = p;
  p->inner = inner;
  return 0;
}

int hk_web_inner_send(struct hk_web_inner *inner, const void *data, size_t size)
{
  const ssize_t n = send(inner->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  return n == (ssize_t)size ? 0 : n < 0 ? -errno : -EAGAIN;
}

/* Not 0: the socket is to be closed. */
static int send_rest(struct hk_web_inner *inner)
{
  while (inner->n_rest > 0) {
    const ssize_t n = send(inner->fd, inner->rest, inner->n_rest, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return errno == EAGAIN && lws_callback_on_writable(inner->wsi) >= 0 ? 0 : -1;
    inner->rest += n;
    inner->n_rest -= (size_t)n;
  }
  inner->sends = false;
  return shutdown(inner->fd, SHUT_WR);
}

void hk_web_inner_send_all(struct hk_web_inner *inner, const char *data, size_t size)
{
  inner->sends = true;
  inner->rest = data;
  inner->n_rest = size;
  if (lws_callback_on_writable(inner->wsi) < 0)
    lws_set_timeout(inner->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
}

void hk_web_inner_hold(struct hk_web_inner *inner, bool hold)
{
  if (inner->held == hold)
    return;
  inner->held = hold;
  (void)lws_rx_flow_control(inner->wsi, !hold);
}

void hk_web_inner_close(struct hk_web_inner *inner)
{
  if (!inner)
    return;
  inner->peer->inner = NULL;
  inner->peer = NULL;
  lws_set_timeout(inner->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
}

static void web_inner_gone(struct hk_web_inner *inner)
{
  if (inner->peer) {
    inner->peer->inner = NULL;
    inner->kind->ended(inner);
  }
  hk_buffer_free(&inner->partial);
  hk_inbox_free(&inner->inbox);
  free(inner);
}

int hk_web_inner_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t size)
{
  struct hk_web_inner *inner = wsi ? lws_get_opaque_user_data(wsi) : NULL;
  (void)user;
  if (!inner)
    return 0;
  switch (reason) {
  case LWS_CALLBACK_RAW_RX:
    if (!inner->peer)
      return -1;
    inner->kind->came(inner, in, size);
    return 0;
  case LWS_CALLBACK_RAW_WRITEABLE:
    return inner->peer && inner->sends ? send_rest(inner) : 0;
  case LWS_CALLBACK_WSI_DESTROY:
    lws_set_opaque_user_data(wsi, NULL);
    web_inner_gone(inner);
    return 0;
  default:
    return 0;
  }
}
