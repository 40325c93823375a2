/* libhankel with a server that is away, silent, slow or faulty: it reconnects, and every waiting call ends in time. */
#include "proto/wire/event_message.h"
#include "proto/wire/scores.h"
#include "tests/unit/support/client_server.h"

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

/* Each of these answers closes the connection with a reason, and none is used. */
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

/* The waiting calls, with the server in its own process. A call that waits for an event of the past would hang here. */
static void the_waiting_calls(void **state)
{
  (void)state;
  struct server *s = server_new();
  const pid_t parent = getpid(), child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    while (getppid() == parent) {
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

/* Makes the client believe that this much time has passed. */
static void let_pass(hankel *h, int64_t ms)
{
  h->link.last_sent -= ms;
  h->link.last_read -= ms;
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
  /* an unanswered one ends the connection */
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

/* Data that cannot be sent must not make a poll loop spin, however long it takes. */
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
    cmocka_unit_test(a_broken_connection_is_made_again),
    cmocka_unit_test(a_server_that_misbehaves_is_left),
    cmocka_unit_test(the_waiting_calls),
    cmocka_unit_test(silence_is_broken_by_a_ping),
    cmocka_unit_test(a_slow_daemon_is_waited_for_without_spinning),
    cmocka_unit_test(waiting_ends_in_time),
  };
  return cmocka_run_group_tests_name("client_waiting", tests, NULL, NULL);
}
