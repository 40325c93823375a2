/* The feed of libhankel against a small daemon in the same thread that forgets, acknowledges when it likes, and breaks the
 * connection at any time: in the end it has every point once, in order. And events by position, over the same breaks. */
#include "proto/client/client.h"
#include "proto/wire/columns.h"
#include "proto/wire/event_message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { POINTS = 60000, SENSORS = 7, REFUSED = 3, EVENTS = 3000 };

struct server {
  int listener, fd;
  char address[32];
  struct hk_inbox in;
  uint8_t out[1 << 20];
  struct hk_writer w;
  uint32_t random;
  uint64_t received, committed; /* points of the feed */
  uint32_t hellos;
  uint64_t told; /* events that were sent on this connection, of EVENTS in all */
  bool subscribed;
};

static uint32_t number(struct server *s, uint32_t below)
{
  s->random = s->random * 1664525 + 1013904223;
  return (uint32_t)((uint64_t)s->random * below >> 32);
}

static void hang_up(struct server *s)
{
  if (s->fd >= 0)
    close(s->fd);
  s->fd = -1;
  hk_inbox_free(&s->in);
  s->w.size = 0;
  s->subscribed = false;
}

/* Point i of the feed is sensor i % SENSORS's, at time i, with value i. */
static void take_points(struct server *s, const struct hk_points *p)
{
  int64_t *time = malloc(p->n * sizeof *time);
  double *value = malloc(p->n * sizeof *value);
  uint32_t *handle = malloc(p->n * sizeof *handle);
  hk_points_times(p, 0, p->n, 0, time);
  hk_points_values(p, 0, p->n, value);
  hk_points_handles(p, 0, p->n, handle);
  for (uint64_t i = s->received; i < p->before; i++) /* skipped: only refused points */
    assert_int_equal(i % SENSORS, REFUSED);
  for (uint32_t i = 0; i < p->n; i++) {
    assert_true(time[i] == (int64_t)(p->before + i) && value[i] == (double)(p->before + i));
    assert_int_equal(handle[i], (p->before + i) % SENSORS);
  }
  if (s->received < p->before + p->n)
    s->received = p->before + p->n;
  free(time);
  free(value);
  free(handle);
}

static void answer(struct server *s, const struct hk_frame *f)
{
  struct hk_hello hello;
  struct hk_string name;
  struct hk_list list;
  struct hk_points p;
  struct hk_subscription m;
  uint32_t handles[SENSORS], reasons[SENSORS];
  uint64_t token;
  switch (f->type) {
  case HK_HELLO:
    assert_int_equal(hk_hello_read(f, &hello), 0);
    s->hellos++;
    hk_welcome_write(&s->w, f->tag, &(struct hk_welcome){ 4711, HK_FRAME_MAX, hk_string("test"), hk_string("") });
    break;
  case HK_FEED:
    assert_int_equal(hk_feed_read(f, &name), 0);
    assert_int_equal(name.length, 4);
    hk_feed_at_write(&s->w, f->tag, &(struct hk_feed_at){ s->committed, HANKEL_JOURNALED });
    break;
  case HK_REGISTER:
    assert_int_equal(hk_register_read(f, &list), 0);
    for (uint32_t i = 0; i < list.n; i++) {
      (void)hk_name_next(&list);
      reasons[i] = f->tag + i == REFUSED ? HANKEL_NO_DETECTOR : 0;
      handles[i] = reasons[i] ? HK_NO_HANDLE : f->tag + i;
    }
    hk_registered_write(&s->w, f->tag, list.n, handles, reasons);
    break;
  case HK_POINTS:
    assert_int_equal(hk_points_read(f, &p), 0);
    take_points(s, &p);
    break;
  case HK_PING:
    assert_int_equal(hk_ping_read(f, &token), 0);
    hk_ping_write(&s->w, HK_PONG, f->tag, token);
    break;
  case HK_SUBSCRIBE:
    assert_int_equal(hk_subscribe_read(f, &m), 0);
    assert_true(m.what & HANKEL_POSITIONS);
    s->told = m.since == HANKEL_NOW ? 0 : m.since;
    hk_done_write(&s->w, f->tag, &s->told);
    s->subscribed = true;
    break;
  default:
    fail_msg("a frame of type %u", f->type);
  }
}

/* The next events, a few. */
static void tell(struct server *s)
{
  struct hk_event_message events[10];
  const uint32_t handle = 0xffffff;
  const struct hk_string name = hk_string("a sensor");
  uint32_t n = 0;
  while (n < number(s, 10) && s->told < EVENTS)
    events[n++] =
        (struct hk_event_message){ .handle = handle, .kind = HANKEL_RAISED, .position = ++s->told, .sequence = s->told };
  if (n == 0)
    return;
  hk_names_write(&s->w, 1, &handle, &name);
  hk_events_write(&s->w, n, events, true);
}

static void serve(struct server *s)
{
  struct hk_frame f;
  size_t room;
  if (s->fd < 0)
    s->fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK);
  if (s->fd < 0)
    return;
  uint8_t *space = hk_inbox_space(&s->in, &room);
  const ssize_t n = recv(s->fd, space, room < 5000 ? room : 5000, 0);
  if (n > 0)
    hk_inbox_wrote(&s->in, (size_t)n);
  while (hk_inbox_next(&s->in, &f) == HK_FRAME_WHOLE)
    answer(s, &f);
  if (number(s, 3) == 0 && s->received > s->committed) {
    s->committed += 1 + number(s, (uint32_t)(s->received - s->committed));
    hk_ack_write(&s->w, s->committed);
  }
  if (s->subscribed)
    tell(s);
  if (s->w.size > 0 && send(s->fd, s->out, s->w.size, MSG_NOSIGNAL) == (ssize_t)s->w.size)
    s->w.size = 0;
  if (n == 0 || number(s, 150) == 0) {
    hang_up(s);
    if (number(s, 2) == 0)
      s->received = s->committed; /* killed, and started again */
  }
}

struct heard {
  uint64_t events, position, in_doubt;
};

static void on_event(void *arg, const struct hankel_event *e)
{
  struct heard *heard = arg;
  assert_int_equal(e->position, heard->position + 1);
  assert_int_equal(e->sequence, e->position);
  heard->position = e->position;
  heard->events++;
}

static void on_disconnected(void *arg, uint64_t in_doubt, const char *reason)
{
  struct heard *heard = arg;
  (void)reason;
  heard->in_doubt += in_doubt;
}

static struct server *server_new(void)
{
  struct server *s = calloc(1, sizeof *s);
  struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t size = sizeof a;
  assert_non_null(s);
  s->fd = -1;
  s->random = 3;
  s->in.max_length = HK_FRAME_MAX;
  s->w = (struct hk_writer)HK_WRITER(s->out, sizeof s->out);
  s->received = s->committed = 10; /* from before a restart */
  s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  assert_true(bind(s->listener, (struct sockaddr *)&a, sizeof a) == 0 && listen(s->listener, 5) == 0);
  getsockname(s->listener, (struct sockaddr *)&a, &size);
  snprintf(s->address, sizeof s->address, "127.0.0.1:%d", ntohs(a.sin_port));
  return s;
}

static void test_feed(void **state)
{
  struct server *s = server_new();
  struct heard heard = { 0 };
  (void)state;
  struct hankel_options o = HANKEL_OPTIONS_DEFAULT;
  o.address = s->address;
  o.buffer = 2048;
  o.feed = "feed";
  o.arg = &heard;
  o.callbacks.event = on_event;
  o.callbacks.disconnected = on_disconnected;
  hankel *h = hankel_open(&o);
  for (int i = 0; i < SENSORS; i++) {
    char name[16];
    snprintf(name, sizeof name, "sensor %d", i);
    assert_int_equal(hankel_sensor(h, name), i);
  }
  assert_int_equal(hankel_subscribe_since(h, "*", 0, HANKEL_EVENTS, 0), 0);
  while (!hankel_connected(h)) {
    serve(s);
    assert_int_equal(hankel_step(h, 1), 0);
    h->link.pause = 1; /* ms; it would grow */
  }
  assert_int_equal(hankel_durability(h), HANKEL_JOURNALED);
  assert_int_equal(hankel_feed_position(h), 10);
  const uint64_t end = 10 + POINTS;
  uint64_t i = 10, acknowledged = 10;
  while (hankel_feed_position(h) < end || heard.events < EVENTS) {
    for (uint32_t n = number(s, 200); n > 0 && i < end; n--) {
      const int status = hankel_send(h, (uint32_t)(i % SENSORS), (int64_t)i, (double)i);
      assert_true(status == 0 || status == -EAGAIN);
      i += status == 0;
    }
    serve(s);
    assert_int_equal(hankel_step(h, 0), 0);
    h->link.pause = 1;
    if (h->phase == HK_CLIENT_CLOSED)
      h->link.retry_at = 0;
    assert_true(hankel_feed_position(h) >= acknowledged); /* it never falls back */
    acknowledged = hankel_feed_position(h);
  }
  assert_int_equal(hankel_feed_position(h), end);
  assert_int_equal(heard.events, EVENTS);
  assert_int_equal(heard.in_doubt, 0);
  assert_true(s->hellos > 10);
  hankel_close(h);
  hang_up(s);
  close(s->listener);
  free(s);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_feed) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
