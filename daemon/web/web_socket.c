/* See web_socket.h. libwebsockets does the handshake, frames, masks, pings and closing. */
#include "daemon/web/web_socket.h"

#include "daemon/web/web_inner.h"
#include "daemon/web/web_reply.h"
#include "daemon/web/web_stream.h"

#include <string.h>

#define PART 16384u /* bytes of a message that are sent at a time */

int hk_web_socket_plainly(struct lws *wsi, struct hk_web_peer *p)
{
  static const struct hk_web_header upgrade = { "upgrade:", "websocket" };
  return hk_web_fault(wsi, p, 426, "this path is for WebSockets; /api/v1/stream has the same as Server-Sent Events", &upgrade);
}

unsigned hk_web_socket_begin(struct lws *wsi, struct hk_web_peer *p, const char **why)
{
  const unsigned code = hk_web_stream_begin(wsi, p, why);
  p->stream.socket = code == 0;
  return code;
}

/* Closes with a reason: the peer has a moment to close, too. */
static int web_socket_end(struct lws *wsi, struct hk_web_peer *p, enum lws_close_status code, const char *why)
{
  char text[123]; /* more does not fit into a frame that closes */
  const int length = snprintf(text, sizeof text, "%s", why);
  lws_close_reason(wsi, code, (unsigned char *)text, (size_t)length);
  hk_web_inner_close(p->inner);
  p->stream.closing = true;
  return -1;
}

/* Sends part of the message that is to be sent next. */
static int send_part(struct lws *wsi, struct hk_web_peer *p)
{
  unsigned char room[LWS_PRE + PART];
  struct hk_web_streaming *s = &p->stream;
  const char *line = p->answer.body.data + p->answer.sent;
  const size_t left = (size_t)((const char *)memchr(line, '\n', p->answer.body.size - p->answer.sent) - line),
               n = left < PART ? left : PART;
  memcpy(room + LWS_PRE, line, n);
  const int how = lws_write_ws_flags(LWS_WRITE_TEXT, !s->midst, n == left);
  if (lws_write(wsi, room + LWS_PRE, n, (enum lws_write_protocol)how) < (int)n)
    return -1;
  s->midst = n < left;
  p->answer.sent += n + (n == left); /* the line feed is not sent */
  return 0;
}

static int web_socket_ping(struct lws *wsi, struct hk_web_peer *p)
{
  unsigned char room[LWS_PRE];
  p->stream.ping = false;
  return lws_write(wsi, room + LWS_PRE, 0, LWS_WRITE_PING) < 0 ? -1 : 0;
}

/* Drops what was sent, and allows more. */
static int web_socket_go_on(struct lws *wsi, struct hk_web_peer *p)
{
  const size_t left = p->answer.body.size - p->answer.sent;
  if (left > 0)
    memmove(p->answer.body.data, p->answer.body.data + p->answer.sent, left);
  p->answer.body.size = left;
  p->answer.sent = 0;
  hk_web_stream_room(p);
  if (left == 0) {
    lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0);
    return p->stream.open ? 0
                          : web_socket_end(wsi, p, LWS_CLOSE_STATUS_GOINGAWAY,
                                           "the daemon is stopping, or credentials were revoked or expired");
  }
  lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, p->stuck);
  return lws_callback_on_writable(wsi) < 0 ? -1 : 0;
}

static int web_socket_send_some(struct lws *wsi, struct hk_web_peer *p)
{
  if (p->answer.body.failed)
    return web_socket_end(wsi, p, LWS_CLOSE_STATUS_UNEXPECTED_CONDITION, "no memory");
  if (p->stream.ping && !p->stream.midst && web_socket_ping(wsi, p) != 0)
    return -1;
  while (p->answer.sent < p->answer.body.size && !lws_send_pipe_choked(wsi))
    if (send_part(wsi, p) != 0)
      return -1;
  return web_socket_go_on(wsi, p);
}

/* A message of the peer is complete. */
static int web_socket_take(struct lws *wsi, struct hk_web_peer *p)
{
  struct hk_buffer *said = &p->stream.said;
  if (said->size > 0 && memchr(said->data, '\n', said->size))
    return web_socket_end(wsi, p, LWS_CLOSE_STATUS_PROTOCOL_ERR, "a message must be one line");
  hk_buffer_put(said, "\n", 1);
  if (said->failed)
    return web_socket_end(wsi, p, LWS_CLOSE_STATUS_UNEXPECTED_CONDITION, "no memory");
  if (p->inner && hk_web_inner_send(p->inner, said->data, said->size) != 0)
    return web_socket_end(wsi, p, LWS_CLOSE_STATUS_POLICY_VIOLATION, "messages arrive faster than they are processed");
  said->size = 0;
  return 0;
}

static int web_socket_receive(struct lws *wsi, struct hk_web_peer *p, const char *in, size_t size)
{
  struct hk_buffer *said = &p->stream.said;
  if (lws_frame_is_binary(wsi))
    return web_socket_end(wsi, p, LWS_CLOSE_STATUS_UNACCEPTABLE_OPCODE, "a message must be text");
  if (said->size + size > HK_WEB_SAID)
    return web_socket_end(wsi, p, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE, "a message has at most 1,024 bytes");
  if (size > 0)
    hk_buffer_put(said, in, size);
  return lws_is_final_fragment(wsi) && lws_remaining_packet_payload(wsi) == 0 ? web_socket_take(wsi, p) : 0;
}

int hk_web_socket_event(struct lws *wsi, struct hk_web_peer *p, enum lws_callback_reasons reason, const char *in, size_t size)
{
  switch (reason) {
  case LWS_CALLBACK_ESTABLISHED:
    lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0);
    lws_set_timer_usecs(wsi, LWS_USEC_PER_SEC);
    return lws_callback_on_writable(wsi) < 0 ? -1 : 0;
  case LWS_CALLBACK_SERVER_WRITEABLE:
    return web_socket_send_some(wsi, p);
  case LWS_CALLBACK_RECEIVE:
    return web_socket_receive(wsi, p, in, size);
  default:
    return 0;
  }
}
