/* Fuzz target: libhankel with an arbitrary server. The input is a row of frames (type, tag, length as two bytes, payload), which
 * get a valid header and go to a connected client over a socket; the last one may be cut. The client must not crash, its counters
 * must balance, and its callbacks must get valid data only. */
#include "proto/client/client.h"
#include "proto/client/client_receive.h"
#include "proto/client/client_send.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
  if (!good)
    abort();
}

static void on_scores(void *arg, const struct hankel_scores *s)
{
  uint64_t *sum = arg;
  for (uint32_t i = 0; i < s->n; i++) {
    *sum += strlen(s->name[i]) + (uint64_t)s->time[i] + (uint64_t)isnan(s->score[i]) + s->state[i];
    if (s->value)
      *sum += (uint64_t)isnan(s->value[i]);
    require(hk_name_valid(s->name[i], strlen(s->name[i])));
  }
}
static void on_event(void *arg, const struct hankel_event *e)
{
  *(uint64_t *)arg += strlen(e->name) + strlen(hankel_event_name(e->kind));
}
static void on_incident(void *arg, const struct hankel_incident *i)
{
  *(uint64_t *)arg += strlen(i->text) + strlen(i->about) + strlen(hankel_incident_name(i->kind));
  require(i->id > 0 && i->told <= 1);
}
static void on_text(void *arg, int code, const char *text)
{
  *(uint64_t *)arg += strlen(text) + strlen(hankel_error_name(code));
}
static void on_refused(void *arg, const char *name, int refusal)
{
  *(uint64_t *)arg += strlen(name) + strlen(hankel_refusal_name(refusal));
}
static void on_disconnected(void *arg, uint64_t in_doubt, const char *why)
{
  *(uint64_t *)arg += strlen(why) + in_doubt;
}
static void on_connected(void *arg, const char *server)
{
  *(uint64_t *)arg += strlen(server);
}
static void on_gap(void *arg, uint64_t results, uint64_t events)
{
  *(uint64_t *)arg += results + events;
}

/* A client that was connected to one end of a pair of sockets; the other end is *peer. */
static hankel *client(int *peer, uint64_t *sum, bool greeted)
{
  int pair[2];
  struct hankel_options o = HANKEL_OPTIONS_DEFAULT;
  o.address = "no port"; /* it gives up at once, so that the socket can be put in its place */
  o.buffer = 1024;
  o.arg = sum;
  o.callbacks =
      (struct hankel_callbacks){ on_scores, on_event, on_gap, on_connected, on_disconnected, on_refused, on_text, on_incident };
  hankel *h = hankel_open(&o);
  require(h && h->phase == HK_CLIENT_OVER && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
  h->options.once = 1;
  h->link.fd = pair[0];
  h->phase = greeted ? HK_CLIENT_READY : HK_CLIENT_GREETING;
  h->fault = 0;
  h->link.last_read = h->link.last_sent = hk_client_now();
  *peer = pair[1];
  return h;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static uint8_t buffer[1 << 16];
  uint64_t sum = 0;
  int peer;
  if (size < 1 || size > 1 << 14)
    return 0;
  hankel *h = client(&peer, &sum, data[0] & 1);
  const int first = hankel_sensor(h, "a"), second = hankel_sensor(h, "b");
  require(first == 0 && second == 1);
  if (data[0] & 2)
    (void)hankel_subscribe_since(h, "*", 0, HANKEL_SCORES | HANKEL_EVENTS, data[0] & 32 ? HANKEL_NOW : 7);
  (void)hankel_send(h, 0, 1, 1);
  (void)hankel_send(h, 1, 2, 2);
  if (data[0] & 8) { /* it has a feed */
    h->options.feed = strdup("feed");
    h->points.fed = data[0] & 16;
    h->datagrams.feed = data[0] & 1; /* greeted */
  }
  h->ping_wanted = h->request.status_wanted = true;
  h->bye_wanted = data[0] & 4;
  hk_client_pump(h);
  for (size_t at = 1; at + 4 <= size && h->link.fd >= 0;) {
    const size_t length = data[at + 2] | (size_t)data[at + 3] << 8, left = size - at - 4, n = length < left ? length : left;
    struct hk_writer w = HK_WRITER(buffer, sizeof buffer);
    const size_t place = hk_frame_begin(&w, data[at], data[at + 1]);
    hk_put(&w, data + at + 4, n);
    require(hk_frame_end(&w, place) == 0);
    require(send(peer, buffer, w.size, MSG_NOSIGNAL) == (ssize_t)w.size);
    hk_client_read(h);
    hk_client_pump(h);
    require(h->confirmed <= h->written && h->points.kept <= h->points.first && h->points.first <= h->points.n &&
            h->own.asked <= h->own.n && h->pongs <= h->pings);
    while (recv(peer, buffer, sizeof buffer, 0) > 0)
      ;
    at += 4 + n;
  }
  close(peer);
  hankel_close(h);
  return 0;
}
