#include "daemon/net/peer_socket.h"

#include <limits.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>

#define KEEPALIVE_PROBES 4   /* probes within `keepalive` that a peer may leave unanswered before it counts as lost */
#define KEEPALIVE_MOST 32767 /* s: the maximum that the kernel accepts */

bool hk_peer_name(const uv_tcp_t *tcp, char name[HK_ADDRESS_MAX])
{
  struct sockaddr_storage address;
  int length = sizeof address;
  if (uv_tcp_getpeername(tcp, (struct sockaddr *)&address, &length) != 0)
    return false;
  hk_address_format((const struct sockaddr *)&address, name);
  return true;
}

void hk_peer_prepare(int fd, const struct hk_config *config)
{
  const int64_t s = config->keepalive / 1000000000;
  const int idle = s < KEEPALIVE_MOST ? (int)s : KEEPALIVE_MOST,
            interval = idle / KEEPALIVE_PROBES > 0 ? idle / KEEPALIVE_PROBES : 1;
  const int probes = KEEPALIVE_PROBES, on = 1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (idle == 0)
    return;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  /* The kernel closes the connection of a peer whose window stays closed for that time: not earlier than `stuck` does. */
  const int64_t patience = config->stuck > 2 * config->keepalive ? config->stuck : 2 * config->keepalive;
  const unsigned ms = patience / 1000000 < INT_MAX ? (unsigned)(patience / 1000000) : INT_MAX;
  if (config->stuck > 0)
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

bool hk_peer_gone(const uv_tcp_t *tcp)
{
  struct pollfd look = { .events = 0 };
  return uv_fileno((const uv_handle_t *)tcp, &look.fd) == 0 && poll(&look, 1, 0) > 0 && (look.revents & (POLLERR | POLLHUP));
}

size_t hk_peer_unread(const uv_tcp_t *tcp)
{
  int fd, n = 0;
  if (uv_fileno((const uv_handle_t *)tcp, &fd) != 0 || ioctl(fd, FIONREAD, &n) != 0)
    n = 0;
  return (size_t)n;
}
