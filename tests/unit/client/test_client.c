/* libhankel: points, results, names, datagrams. */
#include "proto/wire/columns.h"
#include "proto/wire/event_message.h"
#include "proto/wire/scores.h"
#include "tests/unit/support/client_server.h"

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
  /* every kind of double goes through unchanged */
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
  /* without answers the buffer fills, and no more is taken */
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
  const uint32_t handles[2] = { 9, 73 }; /* these may collide in a table of 64: both cases must work */
  const struct hk_string first[2] = { hk_string("old"), hk_string("valve") }, renamed[1] = { hk_string("pump") };
  const int64_t time[2] = { 5, 6 };
  const double value[2] = { 1.5, 2.5 };
  const float score[2] = { 0.5f, NAN };
  const uint8_t states[2] = { HANKEL_OK, HANKEL_LATE };
  const struct hk_event_message event = { 73, 3, HANKEL_RAISED, 0.75f, 30, 10, 20, 1.5, 2.5, .severity = 0.5f };
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

/* Invalid names are reported at once. */
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
    send_and_check(s, h, (uint64_t)i * 8000, 8000, 2); /* in portions of what the socket holds; nothing is lost */
  struct hankel_counters counters;
  hankel_count(h, &counters);
  assert_int_equal(counters.points, 80000);
  assert_int_equal(counters.datagrams, s->datagrams);
  assert_in_range(s->datagrams, 80000 / 170, 80000 / 50);
  assert_int_equal(s->before, 80000);
  hankel_close(h);
  server_free(s);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(points_arrive_in_order),
    cmocka_unit_test(columns_are_taken_as_far_as_they_fit),
    cmocka_unit_test(results_are_called_back),
    cmocka_unit_test(results_by_handle),
    cmocka_unit_test(handles_that_went_stale_are_asked_for_again),
    cmocka_unit_test(points_of_refused_sensors_are_dropped),
    cmocka_unit_test(bad_names_and_addresses),
    cmocka_unit_test(points_over_udp_are_numbered),
  };
  return cmocka_run_group_tests_name("client", tests, NULL, NULL);
}
