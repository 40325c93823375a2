/* Moves of partitions that operators want: what becomes of a request, when it is sent again, and which partition goes first. */
#include "daemon/bridge/cluster_moves.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define N 4u

static int begin(void **state)
{
  return hk_moves_new((struct hk_moves **)state, N);
}

static int end(void **state)
{
  hk_moves_free(*state);
  return 0;
}

static enum hk_move_state state_of(struct hk_moves *m, uint32_t partition)
{
  struct hk_move move;
  hk_moves_look(m, partition, &move);
  return move.state;
}

/* A request whose holder takes no notice is sent again, so that it counts up to the end and no longer. */
static void sent_again(void **state)
{
  struct hk_moves *m = *state;
  int64_t last = 0, now = SECOND;
  hk_moves_ask(m, 1, now);
  for (; hk_moves_wait(m); now += SECOND / 5) {
    assert_false(hk_moves_turn(m, 0, HK_WISH_NONE, now));
    if (hk_moves_turn(m, 1, HK_WISH_OURS, now)) {
      assert_true(now - last <= HK_MOVES_AGAIN + SECOND);
      last = now;
    } else if (last == 0) {
      last = now;
    }
  }
  assert_int_equal(state_of(m, 1), HK_MOVE_OVER);
  assert_true(now - SECOND >= HK_MOVES_OVER && now - SECOND <= HK_MOVES_OVER + SECOND);
  assert_true(last + HK_HOLDERS_WISH <= SECOND + HK_MOVES_OVER &&
              last + HK_HOLDERS_WISH >= SECOND + HK_MOVES_OVER - HK_MOVES_AGAIN);
}

static void done(void **state)
{
  struct hk_moves *m = *state;
  struct hk_move move;
  hk_moves_ask(m, 2, SECOND);
  hk_moves_fail(m, 2, "the disk is away");
  hk_moves_look(m, 2, &move);
  assert_string_equal(move.why, "the disk is away");
  assert_false(move.heard);
  hk_moves_take(m, 2, false, 2 * SECOND); /* late: the wish counts no longer */
  hk_moves_leave(m, 2);
  assert_int_equal(state_of(m, 2), HK_MOVE_DONE); /* also for a client that looks only now */
  assert_false(hk_moves_wait(m));
  hk_moves_ask(m, 2, 3 * SECOND);
  hk_moves_look(m, 2, &move);
  assert_int_equal(move.state, HK_MOVE_WAITS);
  assert_string_equal(move.why, "");
}

/* A wish of another machine overrules the request, unless it is one of before. */
static void overruled(void **state)
{
  struct hk_moves *m = *state;
  hk_moves_ask(m, 0, SECOND);
  assert_false(hk_moves_turn(m, 0, HK_WISH_OTHERS, 2 * SECOND));
  assert_int_equal(state_of(m, 0), HK_MOVE_WAITS);
  assert_false(hk_moves_turn(m, 0, HK_WISH_OURS, 3 * SECOND));
  assert_false(hk_moves_turn(m, 0, HK_WISH_OTHERS, 30 * SECOND)); /* and is not sent again, which would overrule the other one */
  assert_int_equal(state_of(m, 0), HK_MOVE_OVERRULED);
}

/* What came by itself goes first, then what was moved here, the last move last. */
static void shed(void **state)
{
  struct hk_moves *m = *state;
  bool may[N] = { false, true, true, true };
  hk_moves_take(m, 1, true, SECOND);
  hk_moves_ask(m, 3, 2 * SECOND);
  hk_moves_take(m, 3, true, 3 * SECOND);
  hk_moves_take(m, 2, false, 4 * SECOND);
  static const uint32_t order[] = { 2, 1, 3 };
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(hk_moves_shed(m, may), order[i]);
    may[order[i]] = false;
  }
  assert_int_equal(hk_moves_shed(m, may), UINT32_MAX);
  memset(may, true, sizeof may);
  hk_moves_leave(m, 3);
  hk_moves_take(m, 3, false, 5 * SECOND); /* it is here by itself now */
  assert_int_equal(hk_moves_shed(m, may), 3);
}

/* A machine that cannot take the partition does not keep it from others; the request stays until its time is over. */
static void not_sent_in_vain(void **state)
{
  struct hk_moves *m = *state;
  hk_moves_ask(m, 1, SECOND);
  assert_true(hk_moves_turn(m, 1, HK_WISH_OURS, 12 * SECOND));
  hk_moves_fail(m, 1, "the disk is away");
  assert_false(hk_moves_turn(m, 1, HK_WISH_OURS, 24 * SECOND));
  assert_int_equal(state_of(m, 1), HK_MOVE_WAITS);
  assert_true(hk_moves_ask(m, 1, 25 * SECOND)); /* by an operator who has mended it */
  assert_true(hk_moves_turn(m, 1, HK_WISH_OURS, 36 * SECOND));
}

static void ended(void **state)
{
  struct hk_moves *m = *state;
  struct hk_move move;
  struct hk_event_shared *log;
  assert_int_equal(hk_shared_open(&log), 0);
  hk_moves_ask(m, 0, SECOND);
  hk_moves_ask(m, 3, SECOND);
  hk_moves_take(m, 0, true, 2 * SECOND);
  hk_moves_end(m, log, "this machine is draining");
  hk_moves_end(m, log, "this machine is draining, still");
  assert_int_equal(hk_shared_appended(log), 1); /* that of partition 3 is withdrawn */
  hk_shared_free(log);
  assert_false(hk_moves_wait(m));
  hk_moves_look(m, 3, &move);
  assert_int_equal(move.state, HK_MOVE_OVER);
  assert_string_equal(move.why, "this machine is draining");
  assert_int_equal(state_of(m, 0), HK_MOVE_DONE);
  assert_int_equal(state_of(m, 1), HK_MOVE_NONE);
}

/* What is here is not asked for; a request that could not be sent leaves nothing that waits. */
static void not_asked(void **state)
{
  struct hk_moves *m = *state;
  hk_moves_take(m, 2, false, SECOND);
  assert_false(hk_moves_ask(m, 2, 2 * SECOND));
  assert_int_equal(state_of(m, 2), HK_MOVE_NONE);
  hk_moves_leave(m, 2);
  assert_true(hk_moves_ask(m, 2, 3 * SECOND));
  hk_moves_withdraw(m, 2);
  assert_false(hk_moves_wait(m));
  assert_int_equal(state_of(m, 2), HK_MOVE_NONE);
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(sent_again, begin, end),       cmocka_unit_test_setup_teardown(done, begin, end),
    cmocka_unit_test_setup_teardown(overruled, begin, end),        cmocka_unit_test_setup_teardown(shed, begin, end),
    cmocka_unit_test_setup_teardown(not_sent_in_vain, begin, end), cmocka_unit_test_setup_teardown(ended, begin, end),
    cmocka_unit_test_setup_teardown(not_asked, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
