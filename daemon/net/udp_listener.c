/* Datagrams: many are read at a time, none is answered. Without room for the points that could arrive, the socket is not read:
 * the kernel's buffer fills, and the kernel counts the datagrams that it drops (SO_MEMINFO), so every loss is counted. */
#include "daemon/net/udp_listener.h"
#include "daemon/base/address.h"
#include "daemon/intake/decode_lines.h"
#include "daemon/net/admission.h"
#include "daemon/net/connection.h"
#include "daemon/net/loop.h"
#include "daemon/net/net.h"
#include "daemon/net/socket_activation.h"
#include "proto/line/line_quick.h"
#include "proto/line/split.h"
#include "proto/wire/columns.h"
#include "proto/wire/message.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DATAGRAMS 64 /* datagrams of one recvmmsg */
#define TURNS 4      /* calls of recvmmsg before the loop continues with other work */
#define DATAGRAM_MAX 65536
#define DATAGRAM_LEAST 512 /* bytes of the buffer for the smallest datagram: the kernel's structures for it are larger */
#define RECEIVE_BUFFER (8 << 20)
#define ASK 64 /* calls of recvmmsg that return senders' addresses after a fault */

/* Arguments of recvmmsg; set up once, because the call changes none that the next one needs. The sender's address costs a
 * seventh of the time of reading a datagram: `named` requests it, `plain` does not. */
struct hk_udp_buffers {
  struct mmsghdr named[DATAGRAMS], plain[DATAGRAMS];
  struct iovec parts[DATAGRAMS];
  struct sockaddr_in6 peers[DATAGRAMS];                        /* the larger of the two kinds */
  uint8_t bytes[DATAGRAMS][DATAGRAM_MAX + 2 + HK_LINE_BEHIND]; /* two: for an LF after the last line, and one more */
};

static struct hk_udp_buffers *buffers_new(void)
{
  struct hk_udp_buffers *b = malloc(sizeof *b); /* 4 MiB that datagrams fill: cleared, they would be touched at each start */
  if (b)
    memset(b, 0, offsetof(struct hk_udp_buffers, bytes));
  for (unsigned i = 0; b && i < DATAGRAMS; i++) {
    b->parts[i] = (struct iovec){ b->bytes[i], DATAGRAM_MAX };
    b->plain[i].msg_hdr = b->named[i].msg_hdr = (struct msghdr){ .msg_iov = &b->parts[i], .msg_iovlen = 1 };
    b->named[i].msg_hdr.msg_name = &b->peers[i];
    b->named[i].msg_hdr.msg_namelen = sizeof b->peers[i];
  }
  return b;
}

/* peer: NULL: not requested. Then it is requested for some calls, if it would be logged. */
static void udp_listener_bad(struct hk_listener *l, const struct sockaddr *peer, const char *why)
{
  hk_count(&l->loop->counters.bad_datagrams, 1);
  if (hk_log_spent(l->net->log, &l->quota, HK_LOG_WARNING))
    return;
  l->ask = ASK;
  if (peer) {
    char address[HK_ADDRESS_MAX];
    hk_address_format(peer, address);
    hk_log_peer(l->net->log, &l->quota, HK_LOG_WARNING, l->address, "datagram from %s dropped: %s", address, why);
  } else {
    hk_log_peer(l->net->log, &l->quota, HK_LOG_WARNING, l->address, "datagram dropped: %s", why);
  }
}

static void take_binary(struct hk_listener *l, const struct sockaddr *peer, uint8_t *data, size_t size, int64_t now)
{
  struct hk_net *net = l->net;
  struct hk_frame f;
  struct hk_points p;
  const bool keyed = l->gate->rules.mac;
  if (keyed)
    size = size > HK_MAC_BYTES ? size - HK_MAC_BYTES : 0;
  if (hk_frame_read(data, size, DATAGRAM_MAX, &f) != HK_FRAME_WHOLE || hk_frame_size(&f) != size || f.type != HK_POINTS ||
      hk_points_read(&f, &p) != 0) {
    udp_listener_bad(l, peer, keyed ? "not one whole POINTS frame and its keyed checksum" : "not one whole POINTS frame");
    return;
  }
  struct hk_peer_feed *peer_feed = hk_peer_feed_enter(&net->peer_feeds, p.feed);
  if (!peer_feed) {
    hk_count(&l->loop->counters.strangers, 1);
    hk_log_peer(net->log, &l->quota, HK_LOG_NOTICE, l->address, "points dropped: no open connection has their feed number");
    return;
  }
  /* A feed with a key accepts no datagrams without one, on any listener: its number is readable in every datagram. */
  if (keyed ? !peer_feed->mac || !hk_mac_good(peer_feed->mac, data, size, data + size) : peer_feed->mac != NULL) {
    const bool has = peer_feed->mac;
    hk_peer_feed_leave(peer_feed);
    hk_count(&l->loop->counters.forged, 1);
    hk_audit_refused(&net->audit, &l->audit, l->address, l->gate->name,
                     !keyed ? "a datagram without the keyed checksum that its feed has"
                     : has  ? "a datagram whose keyed checksum does not match"
                            : "a datagram of a feed that has no key");
    return;
  }
  if (hk_udp_feed_take(&peer_feed->feed, p.sequence, p.before, p.n) == HK_FEED_TAKE) {
    peer_feed->heard = now;
    (void)hk_intake_points(&l->loop->peers->intake, peer_feed->source, &p);
  }
  hk_peer_feed_leave(peer_feed);
}

static void drop_http(struct hk_listener *l, const struct sockaddr *peer)
{
  char address[HK_ADDRESS_MAX];
  if (hk_log_spent(l->net->log, &l->quota, HK_LOG_WARNING))
    return;
  hk_address_format(peer, address);
  hk_log_peer(l->net->log, &l->quota, HK_LOG_WARNING, address, "datagram dropped: " HK_HTTP_REFUSED, l->config->name);
}

/* Gathers the points of all datagrams of a recvmmsg. */
static void udp_listener_take_lines(struct hk_listener *l, const struct sockaddr *peer, uint8_t *data, size_t size, int64_t now)
{
  (void)now;
  const struct hk_lines_from from = { l->address, peer, peer ? hk_admission_owner_at(peer) : 0, &l->quota, l->config->precision,
                                      l->source,  NULL };
  struct hk_splitter splitter = { .max_line = (uint32_t)l->loop->config->max_line };
  size_t used = 0;
  if (size > 0 && data[size - 1] != '\n')
    data[size++] = '\n'; /* so that the splitter never holds bytes back */
  enum hk_lines_turn turn = HK_LINES_MORE;
  while (turn == HK_LINES_MORE)
    turn = hk_lines_read(l->loop->lines, &from, &splitter, (char *)data, size, &used);
  if (turn == HK_LINES_HTTP)
    drop_http(l, peer);
}

/* A protocol over datagrams: an entry of the table below. */
struct datagram_kind {
  uint32_t least; /* bytes that a point takes of a datagram, at least */
  bool named;     /* sensors that it registers belong to the sender's address */
  bool awaited;   /* hk_udp_is_awaited */
  /* Takes a datagram of `size` bytes, behind which two more may be written; peer: NULL: not requested; now: ns, hk_now. */
  void (*take)(struct hk_listener *l, const struct sockaddr *peer, uint8_t *data, size_t size, int64_t now);
};

static const struct datagram_kind *kind_of(const struct hk_listener *l)
{
  static const struct datagram_kind kinds[] = {
    [HK_PROTOCOL_BINARY] = { .least = 8, .awaited = true, .take = take_binary },
    [HK_PROTOCOL_LINE] = { .least = 4 /* of a line with many fields */, .named = true, .take = udp_listener_take_lines },
  };
  return &kinds[l->config->protocol];
}

bool hk_udp_is_awaited(const struct hk_listener *l)
{
  return kind_of(l)->awaited;
}

/* Returns the number of datagrams that there is room for. Half of the room is left to connections, which wait for their turn;
 * datagrams do not. */
static unsigned udp_listener_room(const struct hk_listener *l)
{
  const uint32_t kept = l->loop->room - l->loop->points / 2;
  const uint32_t most = DATAGRAM_MAX / kind_of(l)->least;
  if (!hk_intake_open(&l->loop->peers->intake, l->source, kept + most))
    return 0;
  const uint32_t n = (hk_chunk_pool_room(&l->loop->peers->pool) - kept) / most;
  return n < DATAGRAMS ? n : DATAGRAMS;
}

void hk_udp_look(struct hk_listener *l)
{
  uint32_t memory[SK_MEMINFO_VARS] = { 0 };
  socklen_t size = sizeof memory;
  const int64_t now = hk_now();
  if (!l->open || getsockopt(l->fd, SOL_SOCKET, SO_MEMINFO, memory, &size) != 0)
    return;
  const uint32_t lost = memory[SK_MEMINFO_DROPS] - l->kernel_lost;
  if (lost > 0)
    hk_log_peer(l->net->log, &l->quota, HK_LOG_WARNING, l->address, "%u datagrams lost: they came faster than they were read",
                lost);
  hk_count(&l->loop->counters.kernel_lost, lost);
  l->kernel_lost += lost;
  if (l->before_mark <= 0) {
    l->mark = now;
    l->before_mark = memory[SK_MEMINFO_RMEM_ALLOC];
  }
  if (memory[SK_MEMINFO_RMEM_ALLOC] == 0) /* the socket is empty: known even without room for what it might hold */
    l->read_to = now;
}

/* Takes n datagrams of a recvmmsg at the time `now`. */
static void udp_listener_take(struct hk_listener *l, const struct mmsghdr *messages, unsigned n, int64_t now)
{
  struct hk_udp_buffers *b = l->buffers;
  const struct datagram_kind *kind = kind_of(l);
  hk_count(&l->loop->counters.datagrams, n);
  for (unsigned i = 0; i < n; i++) {
    const struct sockaddr *peer = messages[i].msg_hdr.msg_name;
    const size_t size = messages[i].msg_len;
    l->before_mark -= (int64_t)(DATAGRAM_LEAST + size);
    kind->take(l, peer, b->bytes[i], size, now);
  }
  hk_lines_flush(l->loop->lines, l->source);
  if (l->before_mark <= 0)
    l->read_to = l->mark;
}

bool hk_udp_read(struct hk_listener *l)
{
  struct hk_udp_buffers *b = l->buffers;
  l->loop->peers->intake.wall = hk_intake_clock(&l->loop->peers->intake);
  hk_udp_look(l);
  for (unsigned turn = 0; turn < TURNS; turn++) {
    const unsigned limit = udp_listener_room(l);
    if (limit == 0) {
      uv_poll_stop(&l->poll);
      l->polling = false;
      return false;
    }
    /* Under a low load, the first call of a turn is the only one, and may cost more. */
    const bool owned = kind_of(l)->named && l->loop->config->max_sensors_per_peer > 0;
    struct mmsghdr *messages = turn == 0 || l->ask > 0 || owned ? b->named : b->plain;
    l->ask -= l->ask > 0;
    const int64_t now = hk_now();
    const int n = recvmmsg(l->fd, messages, limit, MSG_DONTWAIT, NULL);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
      hk_log_peer(l->net->log, &l->quota, HK_LOG_ERROR, l->address, "datagrams cannot be read: %s", strerror(errno));
    if (n > 0) {
      l->loop->pace.busy = l->loop->pace.turn;
      udp_listener_take(l, messages, (unsigned)n, now);
    }
    if (n < (int)limit) {
      l->read_to = now;
      l->before_mark = 0;
      return true;
    }
  }
  return false;
}

static void udp_listener_on_poll(uv_poll_t *poll, int status, int events)
{
  (void)status; /* the read reports an error of the socket */
  (void)events;
  (void)hk_udp_read(poll->data);
}

void hk_udp_go_on(struct hk_listener *l)
{
  if (l->open && !l->polling && udp_listener_room(l) > 0)
    l->polling = uv_poll_start(&l->poll, UV_READABLE, udp_listener_on_poll) == 0;
}

static int udp_listener_fail(const struct hk_listener *l, int status, char *error, size_t size)
{
  snprintf(error, size, "[listen %s]: %s over udp: %s", l->config->name, l->address, strerror(-status));
  return status;
}

/* Makes a bound socket. The loops' sockets share a port, which SO_REUSEPORT allows. The first of them gets that option only
 * after it is bound, so that it does not share the port with another listener or another daemon. 0 or a negative errno. */
static int bind_socket(struct hk_listener *l)
{
  const struct sockaddr *address = (const struct sockaddr *)l->bind_to;
  const socklen_t length = address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
  const int share = l->net->n_loops > 1, first = l->loop->number == 0;
  l->fd = socket(address->sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (l->fd < 0 || (!first && setsockopt(l->fd, SOL_SOCKET, SO_REUSEPORT, &share, sizeof share) != 0) ||
      bind(l->fd, address, length) != 0 || (first && setsockopt(l->fd, SOL_SOCKET, SO_REUSEPORT, &share, sizeof share) != 0))
    return -errno;
  return 0;
}

int hk_udp_open(struct hk_listener *l, char *error, size_t size)
{
  const int buffer = RECEIVE_BUFFER;
  uint32_t memory[SK_MEMINFO_VARS];
  struct sockaddr_storage bound;
  socklen_t length = sizeof bound;
  int status = l->fd < 0 ? bind_socket(l) : hk_activation_unblock(l->fd) != 0 ? -errno : 0;
  if (status != 0)
    return udp_listener_fail(l, status, error, size);
  if (getsockopt(l->fd, SOL_SOCKET, SO_MEMINFO, memory, &(socklen_t){ sizeof memory }) != 0)
    return udp_listener_fail(l, -errno, error, size);
  (void)setsockopt(l->fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer); /* the kernel limits it to net.core.rmem_max */
  if (getsockname(l->fd, (struct sockaddr *)&bound, &length) != 0)
    return udp_listener_fail(l, -errno, error, size);
  hk_address_format((const struct sockaddr *)&bound, l->address);
  *l->bind_to = bound; /* the sockets of other loops take the same port */
  l->buffers = buffers_new();
  if (!l->buffers)
    return udp_listener_fail(l, -ENOMEM, error, size);
  l->source = hk_source_new();
  status = l->source ? 0 : -ENOMEM;
  if (status == 0)
    status = uv_poll_init(&l->loop->uv, &l->poll, l->fd);
  if (status != 0)
    return udp_listener_fail(l, status, error, size);
  l->poll.data = l;
  l->open = true;
  hk_udp_go_on(l);
  return l->polling ? 0 : udp_listener_fail(l, -EIO, error, size);
}

static void udp_listener_on_close(uv_handle_t *handle)
{
  struct hk_listener *l = handle->data;
  close(l->fd);
  l->fd = -1;
}

void hk_udp_close(struct hk_listener *l)
{
  hk_source_close(l->source);
  l->source = NULL;
  free(l->buffers);
  l->buffers = NULL;
  if (l->open) {
    hk_udp_look(l);         /* so that every loss is counted */
    l->read_to = INT64_MAX; /* and no thread waits for more */
    uv_close((uv_handle_t *)&l->poll, udp_listener_on_close);
  } else if (l->fd >= 0) {
    close(l->fd);
    l->fd = -1;
  }
}
