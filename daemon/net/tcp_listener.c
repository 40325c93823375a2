/* TCP listeners. Above max_connections, a peer gets the reason and is closed; hk_server_open makes sure that max_connections is
 * reached before descriptors run out. If they run out nevertheless (other parts of the process use some, or the limit is
 * lowered), a reserved descriptor is used to accept a peer and close it, so that it does not wait in vain. If that fails, too,
 * the listener pauses, because a listening socket that cannot be emptied would wake the loop endlessly. It tries again every
 * second. */
#include "daemon/net/tcp_listener.h"

#include "daemon/base/address.h"
#include "daemon/net/admission.h"
#include "daemon/net/connection.h"
#include "daemon/net/loop.h"
#include "daemon/net/net.h"
#include "daemon/net/socket_activation.h"
#include "daemon/net/udp_listener.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 512
#define TOGETHER 64 /* connections that are accepted before the loop continues with other work */

static void say_refused(struct hk_listener *l, const char *why)
{
  hk_count(&l->loop->counters.refused, 1);
  hk_log_peer(l->net->log, &l->quota, HK_LOG_ERROR, l->address, "a connection could not be accepted: %s", why);
}

/* Makes a connection of fd, and gives it to a loop. False: no memory. */
static bool tcp_listener_hand_over(struct hk_listener *l, const struct hk_connection_kind *kind, int fd,
                                   struct hk_address_limits_place *place)
{
  struct hk_net *net = l->net;
  struct hk_connection *c = hk_connection_new(net, l->config, kind, l->gate, fd);
  if (!c)
    return false;
  c->identity.place = place;
  c->loop = hk_loop_least_busy(net);
  c->peer_feed = hk_peer_feeds_take(&net->peer_feeds);
  hk_loop_hand(c->loop, c);
  return true;
}

/* Makes a connection of fd, or closes it. */
static void tcp_listener_take(struct hk_listener *l, int fd)
{
  struct hk_net *net = l->net;
  struct hk_address_limits_place *place;
  if (!hk_admission_enter(net, l->gate, fd, &l->audit, &place)) {
    close(fd);
    return;
  }
  const char *why = "no memory";
  const struct hk_connection_kind *kind = hk_connection_kind_of(l->config->protocol);
  if (kind ? tcp_listener_hand_over(l, kind, fd, place) : net->requests.http(l, fd, place, &why))
    return;
  hk_address_limits_leave(net->limits, place, hk_gate_shut(l->gate));
  close(fd);
  say_refused(l, why);
}

static void pause_accept(struct hk_listener *l, const char *why)
{
  uv_poll_stop(&l->poll);
  l->polling = false;
  hk_log_peer(l->net->log, &l->quota, HK_LOG_ERROR, l->address, "no connections are accepted for a second: %s", why);
}

/* Accepts one peer with the reserved descriptor, and closes it. False: that failed, too. */
static bool turn_away(struct hk_listener *l)
{
  int *reserve = &l->net->sockets.reserve;
  if (*reserve < 0)
    return false;
  close(*reserve);
  const int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
  if (fd >= 0)
    close(fd);
  *reserve = hk_listener_reserve();
  if (fd >= 0)
    say_refused(l, "no descriptor is left (ulimit -n, LimitNOFILE=)");
  return fd >= 0;
}

static void on_acceptable(uv_poll_t *poll, int status, int events)
{
  struct hk_listener *l = poll->data;
  (void)status; /* accept reports an error of the socket */
  (void)events;
  for (unsigned i = 0; i < TOGETHER; i++) {
    const int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    const int error = fd < 0 ? errno : 0;
    if (fd >= 0) {
      tcp_listener_take(l, fd);
    } else if (error == EAGAIN || error == EWOULDBLOCK) {
      return;
    } else if (error == EMFILE || error == ENFILE) {
      if (!turn_away(l)) {
        pause_accept(l, "no descriptor is left (ulimit -n, LimitNOFILE=)");
        return;
      }
    } else if (error == ENOMEM || error == ENOBUFS || error == EBADF || error == EINVAL) {
      pause_accept(l, strerror(error));
      return;
    } /* otherwise it is an error of the peer: it closed before it was accepted */
  }
}

int hk_listener_reserve(void)
{
  return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void hk_listener_retry(struct hk_listener *l)
{
  if (!l->open || l->polling)
    return;
  if (l->net->sockets.reserve < 0)
    l->net->sockets.reserve = hk_listener_reserve();
  l->polling = uv_poll_start(&l->poll, UV_READABLE, on_acceptable) == 0;
}

static int tcp_open(struct hk_listener *l, char *error, size_t size)
{
  const struct sockaddr *address = (const struct sockaddr *)l->bind_to;
  const int on = 1;
  struct sockaddr_storage bound;
  socklen_t length = address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
  int status = 0;
  if (l->fd >= 0) {
    if (listen(l->fd, BACKLOG) != 0 || hk_activation_unblock(l->fd) != 0)
      status = -errno;
  } else {
    l->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (l->fd < 0 || setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 || bind(l->fd, address, length) != 0 ||
        listen(l->fd, BACKLOG) != 0)
      status = -errno;
  }
  length = sizeof bound;
  if (status == 0 && getsockname(l->fd, (struct sockaddr *)&bound, &length) != 0)
    status = -errno;
  if (status == 0)
    status = uv_poll_init(&l->loop->uv, &l->poll, l->fd);
  if (status == 0) {
    l->open = true;
    l->poll.data = l;
    status = uv_poll_start(&l->poll, UV_READABLE, on_acceptable);
    l->polling = status == 0;
  }
  if (status != 0) {
    snprintf(error, size, "[listen %s]: %s over tcp: %s", l->config->name, l->address, strerror(-status));
    return status;
  }
  hk_address_format((const struct sockaddr *)&bound, l->address);
  return 0;
}

static void tcp_listener_on_close(uv_handle_t *handle)
{
  struct hk_listener *l = handle->data;
  close(l->fd);
  l->fd = -1;
}

static void tcp_close(struct hk_listener *l)
{
  if (l->open)
    uv_close((uv_handle_t *)&l->poll, tcp_listener_on_close);
  else if (l->fd >= 0)
    close(l->fd);
  if (!l->open)
    l->fd = -1;
}

int hk_listener_open(struct hk_listener *l, struct hk_loop *loop, const struct hk_config_listener *config, struct hk_gate *gate,
                     struct sockaddr_storage *bind_to, int fd, char *error, size_t size)
{
  *l = (struct hk_listener){ .net = loop->net, .loop = loop, .config = config, .gate = gate, .bind_to = bind_to, .fd = fd };
  hk_address_format((const struct sockaddr *)bind_to, l->address);
  const int status = config->transport == HK_TRANSPORT_UDP ? hk_udp_open(l, error, size) : tcp_open(l, error, size);
  if (status != 0) {
    hk_listener_close(l);
    return status;
  }
  if (loop->number == 0)
    hk_log_bare("listening %s %s %s", hk_protocol_name(config->protocol), hk_transport_name(config->transport), l->address);
  return 0;
}

void hk_listener_close(struct hk_listener *l)
{
  if (!l->config)
    return;
  if (l->config->transport == HK_TRANSPORT_UDP)
    hk_udp_close(l);
  else
    tcp_close(l);
  l->open = false;
}
