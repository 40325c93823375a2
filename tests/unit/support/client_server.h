/* A small server for tests of libhankel, in the same thread, over real sockets on loopback. It answers according to PROTOCOL.md,
 * remembers every point, and misbehaves on request. */
#ifndef HK_TEST_CLIENT_SERVER_H
#define HK_TEST_CLIENT_SERVER_H

#include "proto/client/client.h"
#include "proto/wire/columns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { POINTS = 300000, SENSORS = 600 };

struct server {
  int listener, fd, udp;
  char address[32], udp_address[32];
  struct hk_inbox in;
  uint8_t out[1 << 20];
  struct hk_writer w;
  bool mute;       /* reads, but answers nothing */
  bool deaf;       /* does not even read */
  uint32_t refuse; /* the name with this number, + 1, is refused */
  /* what has come */
  uint32_t hellos, names, pings, subscriptions;
  char name[SENSORS][64];
  struct hk_subscription subscription;
  uint64_t n;
  uint32_t handle[POINTS];
  int64_t time[POINTS];
  double value[POINTS];
  uint64_t datagrams, before, bye_datagrams, bye_points;
  uint8_t kinds[5][2]; /* time kind, value kind: were seen */
};

/* The client's callbacks. */
struct heard {
  uint32_t connected, disconnected, refused, errors, scores, events, gaps;
  uint64_t in_doubt, gap_results;
  char text[256];
};

static inline struct server *server_new(void)
{
  struct server *s = calloc(1, sizeof *s);
  struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t size = sizeof a;
  s->fd = -1;
  s->in.max_length = HK_FRAME_MAX;
  s->w = (struct hk_writer)HK_WRITER(s->out, sizeof s->out);
  s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  assert_int_equal(bind(s->listener, (struct sockaddr *)&a, sizeof a), 0);
  assert_int_equal(listen(s->listener, 5), 0);
  getsockname(s->listener, (struct sockaddr *)&a, &size);
  snprintf(s->address, sizeof s->address, "127.0.0.1:%d", ntohs(a.sin_port));
  s->udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  a.sin_port = 0;
  assert_int_equal(bind(s->udp, (struct sockaddr *)&a, sizeof a), 0);
  getsockname(s->udp, (struct sockaddr *)&a, &size);
  snprintf(s->udp_address, sizeof s->udp_address, "127.0.0.1:%d", ntohs(a.sin_port));
  return s;
}

static inline void hang_up(struct server *s)
{
  if (s->fd >= 0)
    close(s->fd);
  s->fd = -1;
  hk_inbox_free(&s->in);
  s->w.size = 0;
}

static inline void server_free(struct server *s)
{
  hang_up(s);
  close(s->listener);
  close(s->udp);
  free(s);
}

static inline void take_points(struct server *s, const struct hk_points *p)
{
  assert_true(s->n + p->n <= POINTS);
  hk_points_handles(p, 0, p->n, s->handle + s->n);
  hk_points_times(p, 0, p->n, 0, s->time + s->n);
  hk_points_values(p, 0, p->n, s->value + s->n);
  s->n += p->n;
  s->kinds[p->time_kind][0] = 1;
  s->kinds[p->value_kind][1] = 1;
}

static inline void answer(struct server *s, const struct hk_frame *f)
{
  struct hk_hello hello;
  struct hk_string text;
  struct hk_list list;
  struct hk_points p;
  uint64_t token;
  switch (f->type) {
  case HK_HELLO:
    assert_int_equal(hk_hello_read(f, &hello), 0);
    s->hellos++;
    s->names = 0;
    assert_int_equal(
        hk_welcome_write(&s->w, f->tag, &(struct hk_welcome){ 4711, HK_FRAME_MAX, hk_string("test"), hk_string("") }), 0);
    break;
  case HK_REGISTER: {
    uint32_t handles[HK_REGISTER_MAX], reasons[HK_REGISTER_MAX];
    assert_int_equal(hk_register_read(f, &list), 0);
    for (uint32_t i = 0; i < list.n; i++) {
      text = hk_name_next(&list);
      assert_true(s->names < SENSORS && text.length < 64);
      snprintf(s->name[s->names], 64, "%.*s", (int)text.length, text.data);
      s->names++;
      reasons[i] = s->names == s->refuse ? HANKEL_NO_DETECTOR : 0;
      handles[i] = reasons[i] ? HK_NO_HANDLE : 1000 + s->names - 1;
    }
    assert_int_equal(hk_registered_write(&s->w, f->tag, list.n, handles, reasons), 0);
    break;
  }
  case HK_POINTS:
    assert_int_equal(hk_points_read(f, &p), 0);
    take_points(s, &p);
    break;
  case HK_SUBSCRIBE:
    assert_int_equal(hk_subscribe_read(f, &s->subscription), 0);
    s->subscriptions++;
    assert_int_equal(hk_empty_write(&s->w, HK_DONE, f->tag), 0);
    break;
  case HK_PING:
    assert_int_equal(hk_ping_read(f, &token), 0);
    s->pings++;
    assert_int_equal(hk_ping_write(&s->w, HK_PONG, f->tag, token), 0);
    break;
  case HK_STATUS:
    assert_int_equal(hk_report_write(&s->w, f->tag, hk_string("{\"points\":3}")), 0);
    break;
  case HK_BYE:
    assert_int_equal(hk_bye_read(f, &s->bye_datagrams, &s->bye_points), 0);
    assert_int_equal(hk_empty_write(&s->w, HK_FAREWELL, f->tag), 0);
    break;
  default:
    fail_msg("a client sent %s", hk_frame_name(f->type));
  }
}

/* Handles everything that is ready, without waiting. */
static inline void serve(struct server *s)
{
  if (s->fd < 0) {
    s->fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK);
    if (s->fd < 0)
      return;
  }
  uint8_t datagram[65536];
  ssize_t n;
  struct hk_frame f;
  while ((n = recv(s->udp, datagram, sizeof datagram, 0)) > 0) {
    struct hk_points p;
    assert_in_range(n, 1, 1400);
    assert_int_equal(hk_frame_read(datagram, (size_t)n, HK_FRAME_MAX, &f), HK_FRAME_WHOLE);
    assert_int_equal(hk_points_read(&f, &p), 0);
    assert_int_equal(p.feed, 4711);
    assert_int_equal(p.sequence, ++s->datagrams);
    assert_int_equal(p.before, s->before);
    s->before += p.n;
    take_points(s, &p);
  }
  size_t room;
  uint8_t *space;
  while (!s->deaf && (space = hk_inbox_space(&s->in, &room)) && (n = recv(s->fd, space, room, 0)) > 0) {
    hk_inbox_wrote(&s->in, (size_t)n);
    while (hk_inbox_next(&s->in, &f) == HK_FRAME_WHOLE) {
      if (!s->mute)
        answer(s, &f);
    }
  }
  if (s->w.size > 0) {
    assert_int_equal(send(s->fd, s->out, s->w.size, MSG_NOSIGNAL), s->w.size);
    s->w.size = 0;
  }
}

static inline void on_connected(void *arg, const char *server)
{
  assert_string_equal(server, "test");
  ((struct heard *)arg)->connected++;
}
static inline void on_disconnected(void *arg, uint64_t in_doubt, const char *reason)
{
  struct heard *heard = arg;
  heard->disconnected++;
  heard->in_doubt += in_doubt;
  snprintf(heard->text, sizeof heard->text, "%s", reason);
}
static inline void on_refused(void *arg, const char *name, int refusal)
{
  assert_int_equal(refusal, HANKEL_NO_DETECTOR);
  assert_string_equal(name, "sensor 1");
  ((struct heard *)arg)->refused++;
}
static inline void on_error(void *arg, int code, const char *message)
{
  struct heard *heard = arg;
  assert_true(code > 0);
  heard->errors++;
  snprintf(heard->text, sizeof heard->text, "%s", message);
}
static inline void on_scores(void *arg, const struct hankel_scores *s)
{
  ((struct heard *)arg)->scores += s->n;
  assert_int_equal(s->n, 2);
  assert_string_equal(s->name[0], "pump");
  assert_string_equal(s->name[1], "valve");
  assert_true(s->time[0] == 5 && s->time[1] == 6 && s->value[0] == 1.5 && s->score[0] == 0.5f && isnan(s->score[1]));
  assert_true(s->state[0] == HANKEL_OK && s->state[1] == HANKEL_LATE);
}
static inline void on_event(void *arg, const struct hankel_event *e)
{
  ((struct heard *)arg)->events++;
  assert_string_equal(e->name, "valve");
  assert_true(e->number == 3 && e->kind == HANKEL_RAISED && e->instant == 20 && e->after == 2.5);
}
static inline void on_gap(void *arg, uint64_t results, uint64_t events)
{
  struct heard *heard = arg;
  heard->gaps++;
  heard->gap_results += results;
  assert_int_equal(events, 7);
}

static inline hankel *client(const struct server *s, struct heard *heard, bool udp, bool once)
{
  struct hankel_options o = HANKEL_OPTIONS_DEFAULT;
  o.address = s->address;
  o.udp = udp ? s->udp_address : NULL;
  o.once = once;
  o.buffer = 8192;
  o.arg = heard;
  o.callbacks =
      (struct hankel_callbacks){ on_scores, on_event, on_gap, on_connected, on_disconnected, on_refused, on_error, NULL };
  hankel *h = hankel_open(&o);
  assert_non_null(h);
  return h;
}

/* Runs client and server in turn until the condition holds. */
#define until(condition)                                                                                                         \
  do {                                                                                                                           \
    int turns = 0;                                                                                                               \
    while (!(condition)) {                                                                                                       \
      serve(s);                                                                                                                  \
      (void)hankel_step(h, 1);                                                                                                   \
      if (turns++ > 3000)                                                                                                        \
        fail_msg("%s did not come about: %s", #condition, hankel_error(h));                                                      \
    }                                                                                                                            \
  } while (0)

/* Point i of a series with every kind of times and values in it. */
static inline void make_point(uint64_t i, uint32_t n_sensors, uint32_t *sensor, int64_t *time, double *value)
{
  const uint64_t part = i / 20000 % 4;
  *sensor = (uint32_t)(i % n_sensors);
  *time = part == 0 ? 42 : part == 1 ? (int64_t)i * 1000 : (int64_t)(i * i % 1000003);
  *value = part == 3 ? (double)i / 3 : (double)(i % 1000);
}

static inline void send_and_check(struct server *s, hankel *h, uint64_t first, uint64_t n, uint32_t n_sensors)
{
  const uint64_t had = s->n;
  for (uint64_t i = first; i < first + n; i++) {
    uint32_t sensor;
    int64_t time;
    double value;
    make_point(i, n_sensors, &sensor, &time, &value);
    int status;
    while ((status = hankel_send(h, sensor, time, value)) == -EAGAIN) {
      serve(s);
      (void)hankel_step(h, 1);
    }
    assert_int_equal(status, 0);
  }
  until(s->n == had + n);
  for (uint64_t i = 0; i < n; i++) {
    uint32_t sensor;
    int64_t time;
    double value;
    make_point(first + i, n_sensors, &sensor, &time, &value);
    if (s->handle[had + i] != 1000 + sensor || s->time[had + i] != time || s->value[had + i] != value)
      fail_msg("point %llu", (unsigned long long)i);
  }
}

#endif
