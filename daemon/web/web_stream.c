/* Of Server-Sent Events a line is an event of the stream: results are unnamed, alerts `alert`, incidents `incident`, notices
 * `notice`, gaps `gap`, faults of the daemon `fault`; the position of an alert or incident is its id, so that a client that
 * reconnects continues from there (Last-Event-ID).
 *
 * While a peer does not read, its inner connection is not read either: its results wait in the daemon, in the queue of a slow
 * subscriber, and are then dropped and reported as a gap. */
#include "daemon/web/web_stream.h"

#include "daemon/net/protocol_text.h"
#include "daemon/web/web_inner.h"
#include "daemon/web/web_reply.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define LOOK 1000000 /* us between two checks whether the peer is still there: libwebsockets does not read while it answers */
#define BEAT 15      /* checks between two comments, which keep the connection alive and reveal a dead peer */
#define WAITS_MOST 32768u  /* bytes that may wait for the peer here */
#define LINE_MOST 1048576u /* bytes of a line of the daemon's: none is nearly as long */
#define ASKED_MAX 160      /* bytes of `what`, with the 0 */

static const struct name {
  const char *begins, *event;
} names[] = { { "{\"event\":", "alert" },
              { "{\"incident\":", "incident" },
              { "{\"notice\":", "notice" },
              { "{\"gap\":", "gap" },
              { "{\"error\":", "fault" } };

static const char *web_stream_name_of(const char *line)
{
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strncmp(line, names[i].begins, strlen(names[i].begins)) == 0)
      return names[i].event;
  return NULL;
}

static void put_event(struct hk_buffer *out, const char *event, const char *line, size_t length)
{
  static const char position[] = ",\"position\":";
  const bool placed = event && (strcmp(event, "alert") == 0 || strcmp(event, "incident") == 0);
  const char *at = placed ? strstr(line, position) : NULL;
  if (at) {
    at += sizeof position - 1;
    hk_buffer_print(out, "id: %.*s\n", (int)strspn(at, "0123456789"), at);
  }
  if (event)
    hk_buffer_print(out, "event: %s\n", event);
  hk_buffer_put(out, "data: ", 6);
  hk_buffer_put(out, line, length);
  hk_buffer_put(out, "\n\n", 2);
}

/* line: ends with 0. A quotation mark within a string has a backslash in front, so no sensor's name can look like a member. */
static void web_stream_pass(const struct hk_web_inner *inner, const char *line, size_t length)
{
  static const char channel[] = ",\"channel\":\"";
  struct hk_web_peer *p = inner->peer;
  const char *event = web_stream_name_of(line), *of = NULL;
  if (event && strcmp(event, "alert") == 0 && inner->channel[0])
    of = strstr(line, channel);
  if (of) {
    const size_t name = strlen(inner->channel);
    if (strncmp(of + sizeof channel - 1, inner->channel, name) != 0 || of[sizeof channel - 1 + name] != '"')
      return;
  }
  if (!p->stream.socket) {
    put_event(&p->answer.body, event, line, length);
    return;
  }
  hk_buffer_put(&p->answer.body, line, length);
  hk_buffer_put(&p->answer.body, "\n", 1);
}

static void web_stream_came(struct hk_web_inner *inner, const char *data, size_t size)
{
  struct hk_web_peer *p = inner->peer;
  struct hk_buffer *partial = &inner->partial;
  hk_buffer_put(partial, data, size);
  char *begin = partial->data, *end = partial->data + partial->size, *feed;
  while (partial->size > 0 && (feed = memchr(begin, '\n', (size_t)(end - begin)))) {
    *feed = 0;
    web_stream_pass(inner, begin, (size_t)(feed - begin));
    begin = feed + 1;
  }
  partial->size = partial->size > 0 ? (size_t)(end - begin) : 0;
  if (partial->size > 0)
    memmove(partial->data, begin, partial->size);
  if (partial->failed || partial->size > LINE_MOST)
    p->answer.last = p->answer.body.failed = true;
  hk_web_inner_hold(inner, p->answer.body.size - p->answer.sent > WAITS_MOST);
  (void)lws_callback_on_writable(p->wsi);
}

static void web_stream_ended(struct hk_web_inner *inner)
{
  struct hk_web_peer *p = inner->peer;
  p->stream.open = false; /* the stream ends after its last bytes, so that the page reconnects */
  p->answer.last = true;
  (void)lws_callback_on_writable(p->wsi);
}

static const struct hk_web_inner_kind stream_kind = { HK_PROTOCOL_TEXT, web_stream_came, web_stream_ended };

void hk_web_stream_room(struct hk_web_peer *p)
{
  if (p->inner && p->answer.body.size - p->answer.sent <= WAITS_MOST / 2)
    hk_web_inner_hold(p->inner, false);
}

int hk_web_stream_beat(struct lws *wsi, struct hk_web_peer *p)
{
  char first;
  p->stream.behind = lws_partial_buffered(wsi) ? p->stream.behind + 1 : 0;
  if (p->stream.behind > p->stuck || p->stream.closing || recv(lws_get_socket_fd(wsi), &first, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
    return -1;
  lws_set_timer_usecs(wsi, LOOK);
  if (++p->stream.looks % BEAT != 0 || p->answer.body.size > p->answer.sent)
    return 0;
  if (p->stream.socket)
    p->stream.ping = true;
  else
    hk_buffer_put(&p->answer.body, ":\n\n", 3);
  return lws_callback_on_writable(wsi) < 0 ? -1 : 0;
}

static bool is_plain(const char *text)
{
  for (; *text; text++)
    if (iscntrl((unsigned char)*text))
      return false;
  return true;
}

/* The text protocol's line for a request. NULL, or the error. */
static const char *line_of(struct lws *wsi, char *line, size_t size)
{
  char what[ASKED_MAX] = "", glob[HK_GLOB_MAX + 1] = "", since[24] = "", channel[16];
  struct hk_wanted wanted;
  if (hk_web_argument(wsi, "what", what, sizeof what) != 0 || hk_web_argument(wsi, "glob", glob, sizeof glob) != 0 ||
      hk_web_argument(wsi, "since", since, sizeof since) != 0 || hk_web_argument(wsi, "channel", channel, sizeof channel) != 0)
    return "what, glob, since or channel is too long";
  static const char last[] = "last-event-id:";
  if (lws_hdr_custom_length(wsi, last, sizeof last - 1) > 0 &&
      lws_hdr_custom_copy(wsi, since, sizeof since, last, sizeof last - 1) < 0)
    return "Last-Event-ID is no position of an event";
  if (!is_plain(what) || !is_plain(glob) || !is_plain(since) || strchr(what, ' '))
    return "there is a blank or a control character in it";
  snprintf(line, size, "%s%s%s %s\n", what[0] ? what : "events,notices", since[0] ? ",since=" : "", since, glob);
  return hk_text_parse(line, strlen(line) - 1, &wanted);
}

unsigned hk_web_stream_begin(struct lws *wsi, struct hk_web_peer *p, const char **why)
{
  char line[ASKED_MAX + HK_GLOB_MAX + 40];
  *why = line_of(wsi, line, sizeof line);
  if (*why)
    return 400;
  if (p->answer.head)
    return 0;
  int status = hk_web_inner_open(p, &stream_kind, 1);
  if (status == -EACCES) {
    *why = "a stream needs the scope subscribe";
    return 403;
  }
  if (status == 0) {
    (void)hk_web_argument(wsi, "channel", p->inner->channel, sizeof p->inner->channel);
    status = hk_web_inner_send(p->inner, line, strlen(line));
  }
  if (status != 0) {
    hk_web_inner_close(p->inner);
    *why = "there is no memory, or no descriptor, for another stream";
    return 503;
  }
  p->stream.open = true;
  lws_set_timer_usecs(wsi, LOOK);
  return 0;
}

int hk_web_stream(struct lws *wsi, struct hk_web_peer *p)
{
  const char *why;
  const unsigned code = hk_web_stream_begin(wsi, p, &why);
  if (code != 0)
    return hk_web_fault(wsi, p, code, why, NULL);
  if (!p->answer.head)
    hk_buffer_print(&p->answer.body, "retry: 2000\n\n");
  return hk_web_reply(wsi, p, 200, "text/event-stream", NULL);
}
