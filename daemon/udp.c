/* Datagrams: read many at a time, never answered. When there is no room for the points that could come, the socket is left
 * alone: the kernel's buffer fills and it counts what it must throw away (SO_RXQ_OVFL), so that nothing is lost uncounted. */
#include "daemon/lines.h"
#include "daemon/listener.h"
#include "daemon/server.h"
#include "proto/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DATAGRAMS 32 /* of one recvmmsg */
#define DATAGRAM_MAX 65536
#define POINTS_MAX 16384u /* in a datagram: 8 bytes each in a frame, 4 in a line of many fields */
#define RECEIVE_BUFFER (8 << 20)
#define TURNS 8 /* calls of recvmmsg before others have their turn */

struct hk_udp_buffers {
  struct mmsghdr messages[DATAGRAMS];
  struct iovec parts[DATAGRAMS];
  struct sockaddr_storage peers[DATAGRAMS];
  char control[DATAGRAMS][CMSG_SPACE(sizeof(uint32_t)) + CMSG_SPACE(sizeof(struct timespec))];
  uint8_t bytes[DATAGRAMS][DATAGRAM_MAX];
};

static void bad(struct hk_listener *l, const struct sockaddr_storage *peer, const char *why)
{
  char address[HK_ADDRESS_MAX];
  hk_address_format((const struct sockaddr *)peer, address);
  hk_count(&l->loop->counters.bad_datagrams, 1);
  hk_log_peer(&l->server->log, &l->quota, HK_LOG_WARNING, l->address, "datagram from %s dropped: %s", address, why);
}

static void take_binary(struct hk_listener *l, const struct sockaddr_storage *peer, const uint8_t *data, size_t size)
{
  struct hk_server *server = l->server;
  struct hk_frame f;
  struct hk_points p;
  if (hk_frame_read(data, size, DATAGRAM_MAX, &f) != HK_FRAME_WHOLE || hk_frame_size(&f) != size || f.type != HK_POINTS ||
      hk_points_read(&f, &p) != 0) {
    bad(l, peer, "not one whole POINTS frame");
    return;
  }
  struct hk_connection *c = hk_server_feed(server, p.feed);
  if (!c) {
    hk_count(&l->loop->counters.strangers, 1);
    hk_log_peer(&server->log, &l->quota, HK_LOG_NOTICE, l->address, "points of no open feed dropped");
    return;
  }
  if (hk_feed_take(&c->feed, p.sequence, p.before, p.n) == HK_FEED_TAKE) {
    c->heard = hk_now();
    (void)hk_intake_points(&l->loop->intake, c->source, &p);
  }
}

static void take_lines(struct hk_listener *l, const struct sockaddr_storage *peer, const char *data, size_t size)
{
  char address[HK_ADDRESS_MAX];
  hk_address_format((const struct sockaddr *)peer, address);
  struct hk_lines_from from = { address, &l->quota, l->config->precision, l->source, 0 };
  for (size_t at = 0; at < size;) {
    const char *feed = memchr(data + at, '\n', size - at);
    const size_t length = feed ? (size_t)(feed - data) - at : size - at;
    from.number++;
    if (length <= l->server->config->max_line) {
      hk_lines_take(l->loop, &from, data + at, length);
    } else {
      hk_count(&l->loop->counters.bad_lines, 1);
      hk_log_peer(&l->server->log, &l->quota, HK_LOG_WARNING, address, "line %llu dropped: longer than max_line",
                  (unsigned long long)from.number);
    }
    at += length + 1;
  }
}

/* How many datagrams there is room for. Half of the stage is left to connections, which wait for their turn: datagrams do not. */
static unsigned room(const struct hk_listener *l)
{
  const struct hk_server *server = l->server;
  const uint32_t kept = server->config->backlog / 2;
  if (!hk_intake_open(&l->loop->intake, l->source, kept + POINTS_MAX))
    return 0;
  const uint32_t n = (hk_stage_room(server->stage) - kept) / POINTS_MAX;
  return n < DATAGRAMS ? n : DATAGRAMS;
}

/* What the kernel says of a datagram: how many it has thrown away, and when this one came. */
static void take_control(struct hk_listener *l, struct msghdr *m)
{
  for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
    uint32_t lost;
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
      struct timespec came;
      memcpy(&came, CMSG_DATA(c), sizeof came);
      l->read_to = (int64_t)came.tv_sec * 1000000000 + came.tv_nsec;
    }
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_RXQ_OVFL)
      continue;
    memcpy(&lost, CMSG_DATA(c), sizeof lost);
    if (lost != l->kernel_lost)
      hk_log_peer(&l->server->log, &l->quota, HK_LOG_WARNING, l->address,
                  "%u datagrams lost: they came faster than they were read", lost - l->kernel_lost);
    hk_count(&l->loop->counters.kernel_lost, lost - l->kernel_lost);
    l->kernel_lost = lost;
  }
}

bool hk_udp_read(struct hk_listener *l)
{
  struct hk_udp_buffers *b = l->buffers;
  struct hk_server *server = l->server;
  l->loop->intake.wall = hk_wall();
  for (unsigned turn = 0; turn < TURNS; turn++) {
    const unsigned limit = room(l);
    if (limit == 0) {
      uv_poll_stop(&l->poll);
      l->polling = false;
      return false;
    }
    for (unsigned i = 0; i < limit; i++) {
      b->parts[i] = (struct iovec){ b->bytes[i], DATAGRAM_MAX };
      b->messages[i].msg_hdr = (struct msghdr){ .msg_name = &b->peers[i],
                                                .msg_namelen = sizeof b->peers[i],
                                                .msg_iov = &b->parts[i],
                                                .msg_iovlen = 1,
                                                .msg_control = b->control[i],
                                                .msg_controllen = sizeof b->control[i] };
    }
    const int64_t now = hk_wall();
    const int n = recvmmsg(l->fd, b->messages, limit, MSG_DONTWAIT, NULL);
    if (n < 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        hk_log_peer(&server->log, &l->quota, HK_LOG_ERROR, l->address, "datagrams cannot be read: %s", strerror(errno));
      l->read_to = now;
      return true;
    }
    for (int i = 0; i < n; i++) {
      hk_count(&l->loop->counters.datagrams, 1);
      take_control(l, &b->messages[i].msg_hdr);
      if (l->config->protocol == HK_PROTOCOL_BINARY)
        take_binary(l, &b->peers[i], b->bytes[i], b->messages[i].msg_len);
      else
        take_lines(l, &b->peers[i], (const char *)b->bytes[i], b->messages[i].msg_len);
    }
    if ((unsigned)n < limit) {
      l->read_to = now;
      return true;
    }
  }
  return false;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
  (void)status; /* an error of the socket is told by the read */
  (void)events;
  (void)hk_udp_read(poll->data);
}

void hk_udp_go_on(struct hk_listener *l)
{
  if (l->open && !l->polling && room(l) > 0)
    l->polling = uv_poll_start(&l->poll, UV_READABLE, on_poll) == 0;
}

static int fail(const struct hk_listener *l, int status, char *error, size_t size)
{
  snprintf(error, size, "[listen %s]: %s over udp: %s", l->config->name, l->address, strerror(-status));
  return status;
}

int hk_udp_open(struct hk_listener *l, char *error, size_t size)
{
  const struct sockaddr *address = (const struct sockaddr *)&l->config->address;
  const int on = 1, buffer = RECEIVE_BUFFER;
  struct sockaddr_storage bound;
  socklen_t length = address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
  l->fd = socket(address->sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (l->fd < 0 || bind(l->fd, address, length) != 0 || setsockopt(l->fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on) != 0 ||
      setsockopt(l->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) != 0)
    return fail(l, -errno, error, size);
  (void)setsockopt(l->fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer); /* as much of it as net.core.rmem_max allows */
  length = sizeof bound;
  if (getsockname(l->fd, (struct sockaddr *)&bound, &length) != 0)
    return fail(l, -errno, error, size);
  hk_address_format((const struct sockaddr *)&bound, l->address);
  l->buffers = calloc(1, sizeof *l->buffers);
  if (!l->buffers)
    return fail(l, -ENOMEM, error, size);
  int status = hk_stage_open(l->server->stage, &l->source);
  if (status == 0)
    status = uv_poll_init(&l->loop->uv, &l->poll, l->fd);
  if (status != 0)
    return fail(l, status, error, size);
  l->poll.data = l;
  l->open = true;
  hk_udp_go_on(l);
  return l->polling ? 0 : fail(l, -EIO, error, size);
}

static void on_close(uv_handle_t *handle)
{
  struct hk_listener *l = handle->data;
  close(l->fd);
  l->fd = -1;
}

void hk_udp_close(struct hk_listener *l)
{
  free(l->buffers);
  l->buffers = NULL;
  if (l->open) {
    hk_stage_close(l->server->stage, l->source);
    uv_close((uv_handle_t *)&l->poll, on_close);
  } else if (l->fd >= 0) {
    close(l->fd);
    l->fd = -1;
  }
}
