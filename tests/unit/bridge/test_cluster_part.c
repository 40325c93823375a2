/* A partition that waits before a message of a later version is given up, so that it is read again from what the broker has, when
 * that message is gone: its log begins anew, or the retention is over. */
#include "daemon/bridge/cluster_part.h"
#include "daemon/net/admission.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND 1000000000ll
#define WANTED 7u

struct world {
  uint32_t acknowledged;
  struct hk_broker_engine engine;
  struct hk_log log;
  struct hk_shards shards;
  struct hk_net net;
  struct hk_cluster cluster;
  struct hk_cluster_part progress;
  struct hk_part_room room;
  struct hk_part part;
  int daemon; /* the other end of its inner connection */
};

static int took(struct hk_broker_engine *e)
{
  struct world *w = (struct world *)((char *)e - offsetof(struct world, engine));
  w->acknowledged++;
  return 0;
}

static const struct hk_broker_engine_kind kind = { .took = took };

/* A first frame of version 2, with its checksum. */
static const uint8_t later[] = { 'H', 'K', 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0x32, 0x75, 0xab, 0x85 };

static int came(struct world *w, uint64_t offset, int64_t sent)
{
  const struct hk_broker_engine_event e = {
    .what = HK_ENGINE_MESSAGE, .offset = offset, .sent = sent, .data = later, .size = sizeof later
  };
  return hk_part_came(&w->cluster, &w->part, &e);
}

static int setup(void **state)
{
  struct world *w = *state = calloc(1, sizeof *w);
  int pair[2];
  assert_non_null(w);
  hk_log_init(&w->log, HK_LOG_ERROR);
  w->engine.kind = &kind;
  w->net = (struct hk_net){ .log = &w->log, .shards = &w->shards };
  w->cluster.net = &w->net;
  w->cluster.kind = &kind;
  w->cluster.rule.partitions = 1;
  w->cluster.rule.retention = 8 * SECOND;
  w->cluster.part = &w->progress;
  pthread_mutex_init(&w->cluster.lock, NULL);
  hk_part_init(&w->part, 0, &w->room);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  w->part.engine = &w->engine;
  w->part.fd = pair[0];
  w->daemon = pair[1];
  w->part.wanted = WANTED;
  return 0;
}

static int teardown(void **state)
{
  struct world *w = *state;
  hk_part_close(&w->part);
  close(w->daemon);
  pthread_mutex_destroy(&w->cluster.lock);
  free(w);
  return 0;
}

static void it_waits(void **state)
{
  struct world *w = *state;
  assert_int_equal(came(w, WANTED, hk_wall()), 0);
  assert_int_equal(w->part.needs, 2);
  assert_int_equal(came(w, WANTED + 1, hk_wall()), 0);
  assert_int_equal(w->progress.next, WANTED);
  assert_int_equal(w->acknowledged, 2);
  assert_int_equal(hk_part_sign(&w->cluster, &w->part), 0);
}

static void a_log_that_begins_anew_is_read(void **state)
{
  struct world *w = *state;
  assert_int_equal(came(w, WANTED, hk_wall()), 0);
  assert_int_equal(came(w, 0, hk_wall()), -EPIPE);
  assert_non_null(strstr(w->engine.why, "its log was made anew"));
}

/* Not before the retention is over, nor at once if it was before: the broker may keep the message for longer. */
static void a_message_that_may_be_gone_is_looked_for(void **state)
{
  struct world *w = *state;
  const int64_t retention = w->cluster.rule.retention;
  const struct {
    int64_t sent, pause;
  } some[] = { { hk_wall(), retention }, { hk_wall() - retention / 2, retention / 2 }, { 1, retention / 4 }, { 0, retention } };
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    w->part.needs = 0;
    w->part.wanted = WANTED;
    const int64_t now = hk_now();
    assert_int_equal(came(w, WANTED, some[i].sent), 0);
    assert_in_range(w->part.look, now + some[i].pause - SECOND, now + some[i].pause + SECOND);
  }
  w->part.look = hk_now();
  assert_int_equal(hk_part_sign(&w->cluster, &w->part), -EPIPE);
  assert_non_null(strstr(w->engine.why, "retention"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(it_waits, setup, teardown),
    cmocka_unit_test_setup_teardown(a_log_that_begins_anew_is_read, setup, teardown),
    cmocka_unit_test_setup_teardown(a_message_that_may_be_gone_is_looked_for, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
