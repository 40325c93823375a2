/* libhankel against a small server in the same thread, over real sockets on the loopback. The server answers as PROTOCOL.md
 * says, remembers every point, and can be told to misbehave. */
#include "proto/client.h"

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

/* What the client called back. */
struct heard {
  uint32_t connected, disconnected, refused, errors, scores, events, gaps;
  uint64_t in_doubt, gap_results;
  char text[256];
};

static struct server *server_new(void)
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

static void hang_up(struct server *s)
{
  if (s->fd >= 0)
    close(s->fd);
  s->fd = -1;
  hk_inbox_free(&s->in);
  s->w.size = 0;
}

static void server_free(struct server *s)
{
  hang_up(s);
  close(s->listener);
  close(s->udp);
  free(s);
}

static void take_points(struct server *s, const struct hk_points *p)
{
  assert_true(s->n + p->n <= POINTS);
  hk_points_handles(p, 0, p->n, s->handle + s->n);
  hk_points_times(p, 0, p->n, 0, s->time + s->n);
  hk_points_values(p, 0, p->n, s->value + s->n);
  s->n += p->n;
  s->kinds[p->time_kind][0] = 1;
  s->kinds[p->value_kind][1] = 1;
}

static void answer(struct server *s, const struct hk_frame *f)
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
    assert_int_equal(hk_welcome_write(&s->w, f->tag, &(struct hk_welcome){ 4711, HK_FRAME_MAX, hk_string("test"), hk_string("") }), 0);
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

/* Does what there is to do, without waiting. */
static void serve(struct server *s)
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

static void on_connected(void *arg, const char *server)
{
  assert_string_equal(server, "test");
  ((struct heard *)arg)->connected++;
}
static void on_disconnected(void *arg, uint64_t in_doubt, const char *reason)
{
  struct heard *heard = arg;
  heard->disconnected++;
  heard->in_doubt += in_doubt;
  snprintf(heard->text, sizeof heard->text, "%s", reason);
}
static void on_refused(void *arg, const char *name, int refusal)
{
  assert_int_equal(refusal, HANKEL_NO_DETECTOR);
  assert_string_equal(name, "sensor 1");
  ((struct heard *)arg)->refused++;
}
static void on_error(void *arg, int code, const char *message)
{
  struct heard *heard = arg;
  assert_true(code > 0);
  heard->errors++;
  snprintf(heard->text, sizeof heard->text, "%s", message);
}
static void on_scores(void *arg, const struct hankel_scores *s)
{
  ((struct heard *)arg)->scores += s->n;
  assert_int_equal(s->n, 2);
  assert_string_equal(s->name[0], "pump");
  assert_string_equal(s->name[1], "valve");
  assert_true(s->time[0] == 5 && s->time[1] == 6 && s->value[0] == 1.5 && s->score[0] == 0.5f && isnan(s->score[1]));
  assert_true(s->state[0] == HANKEL_OK && s->state[1] == HANKEL_LATE);
}
static void on_event(void *arg, const struct hankel_event *e)
{
  ((struct heard *)arg)->events++;
  assert_string_equal(e->name, "valve");
  assert_true(e->number == 3 && e->kind == HANKEL_RAISED && e->instant == 20 && e->after == 2.5);
}
static void on_gap(void *arg, uint64_t results, uint64_t events)
{
  struct heard *heard = arg;
  heard->gaps++;
  heard->gap_results += results;
  assert_int_equal(events, 7);
}

static hankel *client(const struct server *s, struct heard *heard, bool udp, bool once)
{
  struct hankel_options o = HANKEL_OPTIONS_DEFAULT;
  o.address = s->address;
  o.udp = udp ? s->udp_address : NULL;
  o.once = once;
  o.buffer = 8192;
  o.arg = heard;
  o.callbacks = (struct hankel_callbacks){ on_scores, on_event, on_gap, on_connected, on_disconnected, on_refused, on_error };
  hankel *h = hankel_open(&o);
  assert_non_null(h);
  return h;
}

/* Both take turns until the condition holds. */
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
static void make_point(uint64_t i, uint32_t n_sensors, uint32_t *sensor, int64_t *time, double *value)
{
  const uint64_t part = i / 20000 % 4;
  *sensor = (uint32_t)(i % n_sensors);
  *time = part == 0 ? 42 : part == 1 ? (int64_t)i * 1000 : (int64_t)(i * i % 1000003);
  *value = part == 3 ? (double)i / 3 : (double)(i % 1000);
}

static void send_and_check(struct server *s, hankel *h, uint64_t first, uint64_t n, uint32_t n_sensors)
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

static void points_arrive_in_order(void **state)
{
  (void)state;
  struct server *s = server_new();
  struct heard heard = { 0 };
  hankel *h = client(s, &heard, false, false);
  for (int i = 0; i < SENSORS; i++) {
    char name[32];
    snprintf(name, sizeof name, "sensor %d", i);
    assert_int_equal(hankel_sensor(h, name), i);
    assert_int_equal(hankel_sensor(h, name), i);
  }
  send_and_check(s, h, 0, 100000, SENSORS);
  assert_int_equal(s->names, SENSORS);
  assert_string_equal(s->name[599], "sensor 599");
  assert_true(s->kinds[HK_TIME_ONE][0] && s->kinds[HK_TIME_EVEN][0] && s->kinds[HK_TIME_EACH][0]);
  assert_true(s->kinds[HK_VALUE_F64][1] && s->kinds[HK_VALUE_F32][1]);
  assert_int_equal(heard.connected, 1);
  assert_in_range(s->pings, 1, 2); /* now and then, unasked */
  /* what a double can be goes through unchanged */
  const double odd[] = { NAN, INFINITY, -0.0, 4.9e-324, 1e300 };
  for (size_t i = 0; i < 5; i++)
    assert_int_equal(hankel_send(h, 0, INT64_MIN + (int64_t)i, odd[i]), 0);
  assert_int_equal(hankel_send(h, SENSORS, 0, 0), -EINVAL);
  until(s->n == 100005);
  assert_memory_equal(s->value + 100000, odd, sizeof odd);
  assert_true(s->time[100000] == INT64_MIN);
  hankel_close(h);
  server_free(s);
}

static void columns_are_taken_as_far_as_they_fit(void **state)
{
  (void)state;
  struct server *s = server_new();
  struct heard heard = { 0 };
  hankel *h = client(s, &heard, false, false);
  static uint32_t sensor[20000];
  static int64_t time[20000];
  static double value[20000];
  const int number = hankel_sensor(h, "pump");
  assert_int_equal(number, 0);
  for (int i = 0; i < 20000; i++) {
    time[i] = i;
    value[i] = i;
  }
  /* nobody answers: the buffer fills and no more is taken */
  s->deaf = true;
  assert_int_equal(hankel_send_columns(h, 20000, sensor, time, value), 8192);
  assert_int_equal(hankel_send(h, 0, 0, 0), -EAGAIN);
  assert_int_equal(hankel_flush(h, 20), -ETIMEDOUT);
  s->deaf = false;
  until(hankel_connected(h));
  int64_t taken = 8192;
  while (taken < 20000) {
    const int64_t more = hankel_send_columns(h, (uint32_t)(20000 - taken), sensor + taken, time + taken, value + taken);
    assert_true(more >= 0);
    taken += more;
    serve(s);
    (void)hankel_step(h, 1);
  }
  until(s->n == 20000);
  for (int i = 0; i < 20000; i++)
    assert_true(s->time[i] == i && s->value[i] == i);
  hankel_close(h);
  server_free(s);
}

static void results_are_called_back(void **state)
{
  (void)state;
  struct server *s = server_new();
  struct heard heard = { 0 };
  hankel *h = client(s, &heard, false, false);
  assert_int_equal(hankel_subscribe(h, "*", 0.25f, HANKEL_VALUES), -EINVAL);
  assert_int_equal(hankel_subscribe(h, "*", 2, HANKEL_SCORES), -EINVAL);
  assert_int_equal(hankel_subscribe(h, "*", 0.25f, HANKEL_SCORES | HANKEL_VALUES), 0);
  until(s->subscriptions == 1);
  assert_true(s->subscription.what == (HANKEL_SCORES | HANKEL_VALUES) && s->subscription.min_score == 0.25f);
  const uint32_t handles[2] = { 9, 73 }; /* collide in a table of 64 or not: either must do */
  const struct hk_string first[2] = { hk_string("old"), hk_string("valve") }, renamed[1] = { hk_string("pump") };
  const int64_t time[2] = { 5, 6 };
  const double value[2] = { 1.5, 2.5 };
  const float score[2] = { 0.5f, NAN };
  const uint8_t states[2] = { HANKEL_OK, HANKEL_LATE };
  const struct hk_event_message event = { 73, 3, HANKEL_RAISED, 0.75f, 30, 10, 20, 1.5, 2.5, .confidence = 0.5f };
  assert_int_equal(hk_names_write(&s->w, 2, handles, first), 0);
  assert_int_equal(hk_names_write(&s->w, 1, handles, renamed), 0);
  assert_int_equal(hk_scores_write(&s->w, 2, time, value, NULL, handles, score, states), 0);
  assert_int_equal(hk_events_write(&s->w, 1, &event, false), 0);
  assert_int_equal(hk_gap_write(&s->w, 12, 7), 0);
  assert_int_equal(hk_error_write(&s->w, 0, HANKEL_INTERNAL, HK_STATUS, hk_string("no memory")), 0);
  until(heard.errors == 1);
  assert_true(heard.scores == 2 && heard.events == 1 && heard.gaps == 1 && heard.gap_results == 12);
  assert_string_equal(heard.text, "internal (STATUS): no memory");
  assert_true(hankel_connected(h));
  /* many names, so that the table grows */
  for (uint32_t i = 100; i < 5000; i++)
    assert_int_equal(hk_names_write(&s->w, 1, &i, first), 0);
  assert_int_equal(hk_scores_write(&s->w, 2, time, value, NULL, handles, score, states), 0);
  until(heard.scores == 4);
  hankel_close(h);
  server_free(s);
}

static void on_handles(void *arg, const struct hankel_scores *s)
{
  ((struct heard *)arg)->scores += s->n;
  assert_null(s->name);
  assert_true(s->n == 2 && s->handle[0] == 9 && s->handle[1] == 73);
  assert_true(s->time[0] == 5 && s->time[1] == 5 && !s->value && s->score[1] == 0.75f);
  assert_true(s->state[0] == HANKEL_OK && s->state[1] == HANKEL_OK);
}

static void results_by_handle(void **state)
{
  (void)state;
  struct server *s = server_new();
  struct heard heard = { 0 };
  struct hankel_options o = HANKEL_OPTIONS_DEFAULT;
  o.address = s->address;
  o.handles = 1;
  o.arg = &heard;
  o.callbacks.scores = on_handles;
  hankel *h = hankel_open(&o);
  assert_non_null(h);
  assert_int_equal(hankel_subscribe(h, "", 0, HANKEL_SCORES), 0);
  until(s->subscriptions == 1);
  const uint32_t handles[2] = { 9, 73 };
  const struct hk_string names[2] = { hk_string("pump"), hk_string("valve") };
  const int64_t time[2] = { 5, 5 };
  const float score[2] = { 0.5f, 0.75f };
  const uint8_t states[2] = { HANKEL_OK, HANKEL_OK };
  assert_null(hankel_name(h, 9));
  assert_int_equal(hk_names_write(&s->w, 2, handles, names), 0);
  assert_int_equal(hk_scores_write(&s->w, 2, time, NULL, NULL, handles, score, states), 0);
  until(heard.scores == 2);
  assert_string_equal(hankel_name(h, 9), "pump");
  assert_string_equal(hankel_name(h, 73), "valve");
  assert_null(hankel_name(h, 10));
  hankel_close(h);
  server_free(s);
}

static void a_broken_connection_is_made_again(void **state)
{
  (void)state;
  struct server *s = server_new();
  struct heard heard = { 0 };
  hankel *h = client(s, &heard, false, false);
  hankel_sensor(h, "sensor 0");
  hankel_sensor(h, "sensor 1");
  hankel_subscribe(h, "s*", 0, HANKEL_EVENTS);
  send_and_check(s, h, 0, 1000, 2);
  hang_up(s);
  until(heard.disconnected == 1);
  assert_int_equal(heard.in_doubt, 1000);
  assert_false(hankel_connected(h));
  assert_int_equal(hankel_send(h, 0, 1, 1), 0); /* kept for later */
  assert_int_equal(hankel_send(h, 1, 2, 2), 0);
  until(heard.connected == 2);
  until(s->n == 1002);
  assert_true(s->handle[1000] == 1000 && s->handle[1001] == 1001 && s->value[1001] == 2);
  assert_int_equal(s->names, 2);
  until(s->subscriptions == 2);
  struct hankel_counters counters;
  hankel_count(h, &counters);
  assert_true(counters.points == 1002 && counters.reconnected == 1 && counters.in_doubt == 1000);
  /* the daemon is gone for good: waiting ends */
  hang_up(s);
  s->deaf = true;
  close(s->listener);
  s->listener = -1;
  assert_int_equal(hankel_wait(h, 0), 0); /* not known yet */
  assert_int_equal(hankel_sync(h, 300), -ETIMEDOUT);
  assert_non_null(strstr(hankel_error(h), "refused"));
  hankel_close(h);
  server_free(s);
}

static void handles_that_went_stale_are_asked_for_again(void **state)
{
  (void)state;
  struct server *s = server_new();
  struct heard heard = { 0 };
  hankel *h = client(s, &heard, false, false);
  hankel_sensor(h, "sensor 0");
  send_and_check(s, h, 0, 10, 1);
  s->names = 5; /* it will get another handle */
  assert_int_equal(hk_error_write(&s->w, 0, HANKEL_UNKNOWN_HANDLE, HK_POINTS, hk_string("evicted")), 0);
  until(heard.errors == 1);
  assert_int_equal(hankel_send(h, 0, 1, 1), 0);
  until(s->n == 11);
  assert_int_equal(s->handle[10], 1005);
  hankel_close(h);
  server_free(s);
}

static void points_of_refused_sensors_are_dropped(void **state)
{
  (void)state;
  struct server *s = server_new();
  struct heard heard = { 0 };
  s->refuse = 2;
  hankel *h = client(s, &heard, false, false);
  for (int i = 0; i < 3; i++) {
    char name[32];
    snprintf(name, sizeof name, "sensor %d", i);
    hankel_sensor(h, name);
  }
  for (uint32_t i = 0; i < 9; i++)
    hankel_send(h, i % 3, i, i);
  until(s->n == 6);
  assert_int_equal(heard.refused, 1);
  struct hankel_counters counters;
  hankel_count(h, &counters);
  assert_true(counters.points == 6 && counters.refused == 3);
  for (uint32_t i = 0; i < 6; i++)
    assert_true(s->handle[i] == (i % 2 ? 1002u : 1000u));
  hankel_close(h);
  server_free(s);
}

/* Names that cannot be are told at once. */
static void bad_names_and_addresses(void **state)
{
  (void)state;
  struct server *s = server_new();
  struct heard heard = { 0 };
  hankel *h = client(s, &heard, false, false);
  char longest[HK_NAME_MAX + 2];
  memset(longest, 'x', sizeof longest);
  longest[HK_NAME_MAX + 1] = 0;
  assert_int_equal(hankel_sensor(h, longest), -EINVAL);
  assert_int_equal(hankel_sensor(h, ""), -EINVAL);
  assert_int_equal(hankel_sensor(h, "a\nb"), -EINVAL);
  longest[HK_NAME_MAX] = 0;
  assert_int_equal(hankel_sensor(h, longest), 0);
  hankel_close(h);
  static const char *const addresses[] = { "127.0.0.1:no-port", ":7410", "[::1:7410", "" };
  for (size_t i = 0; i < 4; i++) {
    struct hankel_options o = HANKEL_OPTIONS_DEFAULT;
    o.address = addresses[i];
    o.once = 1;
    h = hankel_open(&o);
    assert_true(hankel_wait(h, 1000) < 0);
    assert_true(strlen(hankel_error(h)) > 5);
    hankel_close(h);
  }
  server_free(s);
}

/* Each of these ends the connection, with words; nothing is believed. */
static void a_server_that_misbehaves_is_left(void **state)
{
  (void)state;
  static const char *const why[] = {
    "bad magic",   "bad checksum", "bad payload",          "bad payload", "bad payload",
    "bad payload", "bad type",     "too many connections", "bad payload", "closed the connection"
  };
  for (int kind = 0; kind < 10; kind++) {
    struct server *s = server_new();
    struct heard heard = { 0 };
    hankel *h = client(s, &heard, false, true);
    until(hankel_connected(h));
    serve(s);
    const uint32_t handles[1] = { 5 };
    const int64_t time[1] = { 0 };
    const float score[1] = { 0 };
    const uint8_t states[1] = { 0 };
    const struct hk_event_message event = { 5, 3, HANKEL_RAISED, .held = 0 };
    switch (kind) {
    case 0:
      hk_put(&s->w, "HTTP/1.1 400", 12);
      break;
    case 1:
      hk_ping_write(&s->w, HK_PONG, 0, 0);
      s->out[s->w.size - 1] ^= 1;
      break;
    case 2: /* an answer to nothing */
      hk_ping_write(&s->w, HK_PONG, 0, 0);
      break;
    case 3: /* results of a sensor without a name */
      hk_scores_write(&s->w, 1, time, NULL, NULL, handles, score, states);
      break;
    case 4:
      hk_events_write(&s->w, 1, &event, false);
      break;
    case 5: /* handles that were not asked for */
      hk_registered_write(&s->w, 7, 1, handles, handles);
      break;
    case 6:
      hk_empty_write(&s->w, HK_STATUS, 0);
      break;
    case 7:
      hk_error_write(&s->w, 0, HANKEL_LIMIT, 0, hk_string("too many connections"));
      break;
    case 8: /* greeted twice */
      hk_welcome_write(&s->w, 0, &(struct hk_welcome){ 1, HK_FRAME_MAX, hk_string("test"), hk_string("") });
      break;
    default:
      hang_up(s);
    }
    until(heard.disconnected == 1);
    if (!strstr(hankel_error(h), why[kind]))
      fail_msg("%d: %s", kind, hankel_error(h));
    assert_true(hankel_step(h, 0) < 0);
    assert_true(hankel_flush(h, 10) < 0);
    assert_int_equal(hankel_timeout(h), -1);
    hankel_close(h);
    server_free(s);
  }
}

static void points_over_udp_are_numbered(void **state)
{
  (void)state;
  struct server *s = server_new();
  struct heard heard = { 0 };
  const int size = 1 << 22;
  (void)setsockopt(s->udp, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  hankel *h = client(s, &heard, true, false);
  hankel_sensor(h, "sensor 0");
  hankel_sensor(h, "sensor 1");
  for (int i = 0; i < 10; i++)
    send_and_check(s, h, (uint64_t)i * 8000, 8000, 2); /* in portions: what the socket holds, nothing is lost */
  struct hankel_counters counters;
  hankel_count(h, &counters);
  assert_int_equal(counters.points, 80000);
  assert_int_equal(counters.datagrams, s->datagrams);
  assert_in_range(s->datagrams, 80000 / 170, 80000 / 50);
  assert_int_equal(s->before, 80000);
  hankel_close(h);
  server_free(s);
}

/* The waiting calls, with the server in a process of its own. A call that waits for what has happened already hangs here. */
static void the_waiting_calls(void **state)
{
  (void)state;
  struct server *s = server_new();
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    for (int turn = 0; turn < 20000; turn++) {
      serve(s);
      usleep(200);
    }
    _exit(0);
  }
  struct heard heard = { 0 };
  struct hankel_counters counters;
  hankel *h = client(s, &heard, false, false);
  assert_int_equal(hankel_wait(h, 600000), 0);
  hankel_sensor(h, "sensor 0");
  for (int i = 0; i < 20000; i++) {
    while (hankel_send(h, 0, i, i) == -EAGAIN)
      assert_int_equal(hankel_flush(h, 600000), 0);
  }
  assert_int_equal(hankel_flush(h, 600000), 0);
  assert_int_equal(hankel_sync(h, 600000), 0);
  hankel_count(h, &counters);
  assert_true(counters.points == 20000 && counters.in_doubt == 0);
  char *text;
  assert_int_equal(hankel_status(h, &text, 600000), 0);
  assert_string_equal(text, "{\"points\":3}");
  free(text);
  assert_int_equal(hankel_finish(h, 600000), 0);
  assert_true(heard.disconnected == 1 && heard.in_doubt == 0);
  assert_true(hankel_step(h, 0) < 0); /* over */
  hankel_close(h);
  kill(child, SIGKILL);
  server_free(s);
}

/* Makes the client believe that so much time has gone by. */
static void let_pass(hankel *h, int64_t ms)
{
  h->last_sent -= ms;
  h->last_read -= ms;
}

static void silence_is_broken_by_a_ping(void **state)
{
  (void)state;
  struct server *s = server_new();
  struct heard heard = { 0 };
  hankel *h = client(s, &heard, false, false);
  until(hankel_connected(h));
  (void)hankel_step(h, 0);
  assert_in_range(hankel_timeout(h), HK_CLIENT_PING_MS / 2, HK_CLIENT_PING_MS);
  let_pass(h, HK_CLIENT_PING_MS);
  assert_int_equal(hankel_timeout(h), 0);
  until(s->pings == 1);
  until(h->pongs == 1);
  /* one that nobody answers ends the connection */
  s->mute = true;
  let_pass(h, HK_CLIENT_PING_MS);
  (void)hankel_step(h, 0);
  assert_in_range(hankel_timeout(h), HK_CLIENT_DEAD_MS / 2, HK_CLIENT_DEAD_MS);
  assert_int_equal(heard.disconnected, 0);
  let_pass(h, HK_CLIENT_DEAD_MS);
  (void)hankel_step(h, 0);
  assert_int_equal(heard.disconnected, 1);
  hankel_close(h);
  server_free(s);
}

/* What cannot be sent must not make a poll loop spin, however long it takes. */
static void a_slow_daemon_is_waited_for_without_spinning(void **state)
{
  (void)state;
  struct server *s = server_new();
  struct heard heard = { 0 };
  hankel *h = client(s, &heard, false, false);
  until(hankel_connected(h));
  s->mute = true; /* no handle comes */
  hankel_sensor(h, "sensor 0");
  hankel_send(h, 0, 1, 1);
  (void)hankel_step(h, 0);
  let_pass(h, HK_CLIENT_PING_MS);
  (void)hankel_step(h, 0);
  assert_int_equal(hankel_timeout(h), -1);
  assert_int_equal(heard.disconnected, 0);
  hankel_close(h);
  server_free(s);

  s = server_new();
  h = client(s, &heard, false, false);
  hankel_sensor(h, "sensor 0");
  hankel_send(h, 0, 1, 1);
  until(s->n == 1);
  s->deaf = true; /* the socket fills */
  for (int i = 0; i < 2000000 && hankel_send(h, 0, i, 1.0 / 3) == 0; i++)
    ;
  (void)hankel_step(h, 0);
  assert_true(hankel_events(h) & POLLOUT);
  let_pass(h, HK_CLIENT_PING_MS);
  (void)hankel_step(h, 0);
  assert_int_not_equal(hankel_timeout(h), 0);
  hankel_close(h);
  server_free(s);
}

/* The server answers nothing: every waiting call ends in time. */
static void waiting_ends_in_time(void **state)
{
  (void)state;
  struct server *s = server_new();
  struct heard heard = { 0 };
  s->mute = true;
  hankel *h = client(s, &heard, false, false);
  char *text;
  assert_int_equal(hankel_wait(h, 20), -ETIMEDOUT);
  assert_int_equal(hankel_flush(h, 20), -ETIMEDOUT);
  assert_int_equal(hankel_sync(h, 20), -ETIMEDOUT);
  assert_int_equal(hankel_status(h, &text, 20), -ETIMEDOUT);
  assert_int_equal(hankel_finish(h, 20), -ETIMEDOUT);
  hankel_close(h);
  hankel_close(NULL);
  server_free(s);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(points_arrive_in_order),
    cmocka_unit_test(columns_are_taken_as_far_as_they_fit),
    cmocka_unit_test(results_are_called_back),
    cmocka_unit_test(results_by_handle),
    cmocka_unit_test(a_broken_connection_is_made_again),
    cmocka_unit_test(handles_that_went_stale_are_asked_for_again),
    cmocka_unit_test(points_of_refused_sensors_are_dropped),
    cmocka_unit_test(bad_names_and_addresses),
    cmocka_unit_test(a_server_that_misbehaves_is_left),
    cmocka_unit_test(points_over_udp_are_numbered),
    cmocka_unit_test(the_waiting_calls),
    cmocka_unit_test(silence_is_broken_by_a_ping),
    cmocka_unit_test(a_slow_daemon_is_waited_for_without_spinning),
    cmocka_unit_test(waiting_ends_in_time),
  };
  return cmocka_run_group_tests_name("client", tests, NULL, NULL);
}
