/* The life of a connection; see the table in connection.h. Every way out passes through hk_connection_close. */
#include "daemon/net/connection.h"

#include "daemon/base/address.h"
#include "daemon/net/admission.h"
#include "daemon/net/loop.h"
#include "daemon/net/net.h"
#include "daemon/net/peer_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINGER 2000000000         /* ns */
#define LINGER_UNSENT 30000000000 /* ns more, while data remains to be sent */
#define TURN_ALL (4u << 20)       /* approximate bytes that a turn takes from all connections together, */
#define TURN_LEAST (64u << 10)    /* and from one of them at most */
#define REPLIES_MAX (256u << 10)  /* bytes of waiting replies above which no requests are read */

const struct hk_connection_kind *hk_connection_kind_of(enum hk_protocol protocol)
{
  static const struct hk_connection_kind *const kinds[] = {
    [HK_PROTOCOL_BINARY] = &hk_binary_kind,
    [HK_PROTOCOL_LINE] = &hk_line_kind,
    [HK_PROTOCOL_TEXT] = &hk_text_kind,
  };
  return (size_t)protocol < sizeof kinds / sizeof *kinds ? kinds[protocol] : NULL;
}

static void connection_on_close(uv_handle_t *handle)
{
  struct hk_connection *c = handle->data;
  c->kind->free(c);
  hk_loop_remove(c->loop, c);
  hk_admission_leave(c);
  if (c->peer_feed)
    hk_peer_feeds_give(&c->net->peer_feeds, c->peer_feed, &c->loop->counters);
  free(c);
}

void hk_connection_close(struct hk_connection *c)
{
  if (c->state == HK_CLOSED)
    return;
  if (c->state == HK_OPEN)
    hk_admission_dropped(c);
  c->state = HK_CLOSED;
  hk_log_peer_gone(c->net->log, &c->quota, c->peer);
  hk_loop_unsubscribe(c->loop, c);
  if (c->feeding.feed) {
    hk_loop_feeds_no_more(c->loop, c);
    hk_feed_give_up(c->feeding.feed, c->feeding.turn);
  }
  hk_peer_feed_shut(c->peer_feed);
  hk_source_close(c->source);
  uv_close((uv_handle_t *)&c->tcp, connection_on_close);
}

/* Returns the number of bytes that one connection may send in a turn: an equal part for each connection that sends. */
static size_t share(const struct hk_loop *loop)
{
  const uint32_t readers = loop->pace.readers > loop->pace.readers_before ? loop->pace.readers : loop->pace.readers_before;
  const size_t part = TURN_ALL / (readers + 1);
  return part > HK_LOOP_BUFFER ? HK_LOOP_BUFFER : part > TURN_LEAST ? part : TURN_LEAST;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
  struct hk_connection *c = handle->data;
  (void)suggested;
  const size_t may = share(c->loop), came = c->flow.turn == c->loop->pace.turn ? c->flow.came : 0;
  c->flow.sated = came >= may;
  if (c->flow.sated) {
    *out = uv_buf_init(NULL, 0); /* libuv continues with other sockets, and returns in the next turn */
    return;
  }
  size_t size = c->tls ? HK_ADMISSION_CHUNK : HK_LOOP_BUFFER;
  char *space = c->state != HK_OPEN ? (char *)c->loop->buffer : c->tls ? (char *)c->loop->records : c->kind->space(c, &size);
  if (c->identity.newcomer && size > HK_ADMISSION_READ)
    size = HK_ADMISSION_READ;
  *out = uv_buf_init(space, space ? (unsigned)(size < may - came ? size : may - came) : 0);
}

struct hk_intake *hk_connection_intake(const struct hk_connection *c)
{
  return c->binary.scored ? &c->loop->scored.intake : &c->loop->peers->intake;
}

static void connection_go_on(struct hk_connection *c);
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer);

static void read_start(struct hk_connection *c)
{
  if (c->flow.reading || c->flow.ended || (c->flow.draining && c->state == HK_OPEN))
    return;
  if (uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) == 0)
    c->flow.reading = true;
  else
    hk_connection_close(c);
}

static void read_stop(struct hk_connection *c)
{
  uv_read_stop((uv_stream_t *)&c->tcp);
  c->flow.reading = false;
}

/* Bytes arrived, the stream has ended (UV_EOF), or there is an error. */
static void connection_take_read(struct hk_connection *c, uv_stream_t *stream, ssize_t n)
{
  if (n == 0)
    return;
  if (n > 0) {
    c->heard = hk_now();
    c->loop->pace.busy = c->loop->pace.turn;
    if (c->flow.turn != c->loop->pace.turn) {
      c->flow.turn = c->loop->pace.turn;
      c->flow.came = 0;
      c->loop->pace.readers++;
    }
    c->flow.came += (size_t)n;
    if (c->identity.newcomer)
      c->identity.unproven += (size_t)n;
    if (c->state != HK_OPEN && c->identity.unproven > 2 * HK_ADMISSION_BYTES)
      hk_connection_close(c); /* giving it time to read our message is not worth more memory */
    if (c->state != HK_OPEN)
      return;
    struct hk_intake *const intake = hk_connection_intake(c);
    intake->wall = hk_intake_clock(intake);
    if (c->tls)
      hk_tls_feed(c->tls, c->loop->records, (size_t)n);
    else
      c->kind->wrote(c, (size_t)n);
    connection_go_on(c);
    return;
  }
  if (n == UV_EOF && c->state == HK_OPEN) {
    c->flow.ended = true;
    read_stop(c);
    connection_go_on(c);
    return;
  }
  if (n == UV_EOF && c->state == HK_LINGERING && uv_stream_get_write_queue_size(stream) > 0) {
    c->flow.ended = true; /* it still reads: the connection is closed when all is sent, or at the deadline */
    read_stop(c);
    return;
  }
  if (n != UV_EOF && c->state == HK_OPEN)
    hk_log_peer(c->net->log, &c->quota, HK_LOG_INFO, c->peer, "connection lost: %s",
                n == UV_ENOBUFS ? "no memory to read it" : uv_strerror((int)n));
  hk_connection_close(c);
}

int hk_connection_settle(struct hk_connection *c)
{
  if (c->kind->settle(c) == 0)
    return 0;
  if (c->state == HK_OPEN) {
    hk_log_peer(c->net->log, &c->quota, HK_LOG_ERROR, c->peer, "closed: no memory for its unread bytes");
    hk_connection_close(c);
  }
  return -ENOMEM;
}

static void connection_settle(struct hk_connection *c)
{
  if (hk_connection_settle(c) == 0 && c->tls && hk_tls_settle(c->tls) != 0)
    hk_connection_close(c);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
  struct hk_connection *c = stream->data;
  (void)buffer;
  if (n == UV_ENOBUFS && c->flow.sated)
    return;
  connection_take_read(c, stream, n);
  connection_settle(c);
}

static void park(struct hk_connection *c)
{
  read_stop(c);
  if (!c->links.parked)
    hk_loop_park(c->loop, c);
}

/* Takes received bytes, as far as there is room. */
static void connection_go_on(struct hk_connection *c)
{
  while (c->state == HK_OPEN) {
    c->flow.unread = c->subscriber.replies > REPLIES_MAX;
    const enum hk_turn step = c->flow.unread                                  ? HK_TURN_WAIT
                              : c->identity.newcomer && c->kind->authenticate ? c->kind->authenticate(c)
                                                                              : c->kind->step(c);
    if (step == HK_TURN_MORE)
      continue;
    if (step == HK_TURN_NEED && c->tls && hk_admission_decrypt(c))
      continue;
    if (step == HK_TURN_WAIT) {
      park(c);
    } else if (step == HK_TURN_NEED && hk_admission_spent(c)) {
      return;
    } else if (step == HK_TURN_NEED && c->flow.ended) {
      hk_admission_dropped(c);
      if (c->identity.newcomer && c->kind->authenticate)
        hk_connection_finish(c); /* the rest of a line is dropped: the peer has not authenticated */
      else
        c->kind->end(c);
    } else if (step == HK_TURN_NEED) {
      read_start(c);
    }
    return;
  }
}

void hk_connection_go_on(struct hk_connection *c)
{
  connection_go_on(c);
  connection_settle(c);
}

/* Takes the bytes that have arrived, as far as there is room. */
static void take_rest(struct hk_connection *c)
{
  int fd;
  for (size_t taken = 0;
       taken < TURN_ALL && c->state == HK_OPEN && c->flow.reading && uv_fileno((uv_handle_t *)&c->tcp, &fd) == 0;) {
    size_t size = c->tls ? HK_ADMISSION_CHUNK : HK_LOOP_BUFFER;
    char *space = c->tls ? (char *)c->loop->records : c->kind->space(c, &size);
    const ssize_t n = space ? recv(fd, space, size, MSG_DONTWAIT) : -1;
    if (n <= 0)
      return;
    connection_take_read(c, (uv_stream_t *)&c->tcp, n);
    connection_settle(c);
    taken += (size_t)n;
  }
}

void hk_connection_drain(struct hk_connection *c)
{
  if (c->state != HK_OPEN)
    return;
  const bool silent = c->kind->silent && !c->identity.newcomer;
  if (silent)
    take_rest(c);
  if (c->state != HK_OPEN)
    return;
  if (silent && !c->links.parked) { /* its sender gets no replies; it learns from the close that it must connect again */
    hk_connection_refuse(c, HANKEL_SHUTTING_DOWN, "the daemon ends");
    return;
  }
  read_stop(c);
  c->flow.draining = true;
}

static void connection_wrote(struct hk_connection *c, struct hk_subscriber *s, int status)
{
  if (c->state == HK_CLOSED)
    return;
  if (status < 0) {
    hk_connection_close(c);
    return;
  }
  hk_send_gap(s, c->loop->config->queue / 2);
  if (s == &c->subscriber && hk_publish_events_to(c->loop->publisher, s))
    hk_wake_up(&c->loop->wake, HK_WAKE_WORK);
  if ((c->flow.unread && c->subscriber.replies <= REPLIES_MAX / 2) || c->flow.leaving)
    connection_go_on(c);
}

static void on_wrote(struct hk_subscriber *s, int status)
{
  connection_wrote((struct hk_connection *)((char *)s - offsetof(struct hk_connection, subscriber)), s, status);
}

static void on_wrote_others(struct hk_subscriber *s, int status)
{
  connection_wrote((struct hk_connection *)((char *)s - offsetof(struct hk_connection, others)), s, status);
}

struct hk_connection *hk_connection_new(struct hk_net *net, const struct hk_config_listener *listener,
                                        const struct hk_connection_kind *kind, struct hk_gate *gate, int fd)
{
  struct hk_connection *c = calloc(1, sizeof *c);
  if (!c || !(c->source = hk_source_new())) {
    free(c);
    return NULL;
  }
  c->fd = fd;
  c->net = net;
  c->listener = listener;
  c->identity.gate = gate;
  c->identity.newcomer = true;
  c->kind = kind;
  c->lines.unit = listener->precision;
  c->lines.buffer.splitter.max_line = HK_LINE_MAX_LEAST; /* counts as a newcomer until it is admitted */
  return c;
}

void hk_connection_forget(struct hk_connection *c)
{
  hk_source_close(c->source);
  c->kind->free(c);
  free(c);
}

void hk_connection_abandon(struct hk_connection *c)
{
  close(c->fd);
  hk_source_close(c->source);
  hk_admission_leave(c);
  if (c->peer_feed)
    hk_peer_feeds_give(&c->net->peer_feeds, c->peer_feed, &c->loop->counters);
  atomic_fetch_sub(&c->loop->shared.n_connections, 1);
  c->kind->free(c);
  free(c);
}

void hk_connection_start(struct hk_connection *c)
{
  struct hk_net *net = c->net;
  if (uv_tcp_init(&c->loop->uv, &c->tcp) != 0) {
    hk_connection_abandon(c);
    return;
  }
  c->tcp.data = c;
  hk_loop_add(c->loop, c);
  if (uv_tcp_open(&c->tcp, c->fd) != 0) {
    close(c->fd);
    hk_connection_close(c);
    return;
  }
  c->fd = -1;
  if (!c->inner) {
    if (!hk_peer_name(&c->tcp, c->peer))
      snprintf(c->peer, sizeof c->peer, "%s client", hk_protocol_name(c->listener->protocol));
    int fd;
    if (uv_fileno((const uv_handle_t *)&c->tcp, &fd) == 0)
      hk_peer_prepare(fd, c->loop->config);
  }
  c->subscriber.stream = (uv_stream_t *)&c->tcp;
  c->subscriber.wrote = on_wrote;
  c->others.stream = c->subscriber.stream;
  c->others.wrote = on_wrote_others;
  c->opened = c->heard = hk_now();
  if (!c->peer_feed && !c->inner) {
    hk_count(&c->loop->counters.refused, 1);
    hk_log_peer(net->log, &net->crowded, HK_LOG_WARNING, "connections",
                "%s was refused: there are %u connections already (max_connections)", c->peer, net->capacity.connections);
    if (c->identity.gate->rules.certificate[0])
      hk_connection_close(c); /* a message would have to be encrypted */
    else
      hk_connection_refuse(c, HANKEL_LIMIT, "too many connections");
    return;
  }
  if (!c->inner)
    hk_count(&c->loop->counters.accepted, 1);
  hk_admission_begin(c);
  connection_go_on(c);
}

void hk_connection_reply(struct hk_connection *c, const void *data, size_t size)
{
  if (c->state != HK_CLOSED && hk_send(&c->subscriber, data, size) != 0)
    hk_connection_close(c);
}

static void on_shutdown(uv_shutdown_t *request, int status)
{
  struct hk_connection *c = request->data;
  if (status != 0 || c->flow.ended || (!c->kind->lingers && !c->flow.http))
    hk_connection_close(c);
}

void hk_connection_finish(struct hk_connection *c)
{
  if (c->state != HK_OPEN)
    return;
  if (c->kind->silent && !c->tls && !c->flow.http && !c->inner) { /* no farewell is needed */
    hk_connection_close(c);
    return;
  }
  c->state = HK_LINGERING;
  c->deadline = hk_now() + LINGER;
  hk_loop_unsubscribe(c->loop, c);
  hk_peer_feed_shut(c->peer_feed);
  if (c->tls)
    hk_admission_farewell(c);
  if (c->state == HK_CLOSED)
    return;
  c->shutdown.data = c;
  if (uv_shutdown(&c->shutdown, (uv_stream_t *)&c->tcp, on_shutdown) != 0) {
    hk_connection_close(c);
    return;
  }
  read_start(c);
}

void hk_connection_refuse(struct hk_connection *c, uint16_t code, const char *message)
{
  if (c->state != HK_OPEN)
    return;
  c->kind->tell(c, code, message);
  hk_connection_finish(c);
}

void hk_connection_refuse_http(struct hk_connection *c)
{
  c->flow.http = true;
  hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, c->peer, "closed: " HK_HTTP_REFUSED, c->identity.gate->name);
  hk_connection_refuse(c, HANKEL_FORBIDDEN, "this is HTTP, which this listener does not accept");
}

void hk_connection_tell(struct hk_connection *c, uint16_t code, const char *message)
{
  if (c->state == HK_OPEN && !c->identity.newcomer && !c->kind->silent)
    c->kind->tell(c, code, message);
}

/* ns: when data last arrived, over TCP or UDP. */
static int64_t heard(const struct hk_connection *c)
{
  const int64_t datagram = c->peer_feed ? c->peer_feed->heard : 0;
  return datagram > c->heard ? datagram : c->heard;
}

static void tell_gone(struct hk_connection *c)
{
  const size_t unread = hk_peer_unread(&c->tcp) + c->kind->left(c);
  if (unread > 0)
    hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, c->peer,
                "connection lost while reading was paused: %zu bytes that the peer had sent are lost", unread);
  else
    hk_log_peer(c->net->log, &c->quota, HK_LOG_INFO, c->peer, "connection lost while reading was paused");
}

void hk_connection_tick(struct hk_connection *c, int64_t now)
{
  const struct hk_config *config = c->loop->config;
  const bool stuck = hk_subscriber_stuck(&c->subscriber, now, config->stuck);
  if (c->state != HK_OPEN) {
    const bool sent = uv_stream_get_write_queue_size((uv_stream_t *)&c->tcp) == 0;
    if (c->state == HK_LINGERING && now > c->deadline + (sent ? 0 : LINGER_UNSENT))
      hk_connection_close(c);
  } else if (!c->flow.reading && hk_peer_gone(&c->tcp)) {
    tell_gone(c);
    hk_connection_close(c);
  } else if (stuck) {
    hk_count(&c->loop->counters.cut_off, 1);
    hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, c->peer,
                "closed: it read nothing for %.0f s while %zu bytes waited for it", (double)config->stuck * 1e-9,
                uv_stream_get_write_queue_size((uv_stream_t *)&c->tcp));
    hk_connection_close(c);
  } else if (!hk_admission_late(c, now) && config->idle > 0 && !c->subscriber.view && !c->links.parked &&
             now - heard(c) > config->idle) {
    hk_count(&c->loop->counters.timed_out, 1);
    hk_connection_refuse(c, HANKEL_TIMEOUT, "nothing was received within the idle time");
  }
}

char *hk_line_part_space(struct hk_connection *c, size_t *size)
{
  return hk_line_buffer_lend(&c->lines.buffer, c->loop->buffer, HK_LOOP_BUFFER,
                             size); /* reading continues only when all data was taken */
}

void hk_line_part_wrote(struct hk_connection *c, size_t n)
{
  hk_line_buffer_wrote(&c->lines.buffer, n);
}

int hk_line_part_settle(struct hk_connection *c)
{
  return hk_line_buffer_settle(&c->lines.buffer);
}

size_t hk_line_part_left(const struct hk_connection *c)
{
  return c->lines.buffer.size - c->lines.buffer.start;
}

void hk_line_part_free(struct hk_connection *c)
{
  hk_line_buffer_free(&c->lines.buffer);
  free(c->lines.told);
}
