/* Counting datagrams: against a model that remembers every one of them, for lost, repeated and shuffled numbers. */
#include "proto/wire/udp_feed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void in_order_nothing_is_lost(void **state)
{
  (void)state;
  struct hk_udp_feed f = { 0 };
  for (uint64_t i = 1; i <= 5000; i++)
    assert_int_equal(hk_udp_feed_take(&f, i, 10 * (i - 1), 10), HK_FEED_TAKE);
  assert_int_equal(f.taken, 5000);
  assert_int_equal(f.taken_points, 50000);
  assert_int_equal(hk_udp_feed_lost(&f), 0);
  assert_int_equal(hk_udp_feed_lost_points(&f), 0);
  hk_udp_feed_end(&f, 5003, 50030);
  assert_int_equal(hk_udp_feed_lost(&f), 3);
  assert_int_equal(hk_udp_feed_lost_points(&f), 30);
}

static void the_first_ones_may_be_lost_too(void **state)
{
  (void)state;
  struct hk_udp_feed f = { 0 };
  assert_int_equal(hk_udp_feed_take(&f, 4, 30, 10), HK_FEED_TAKE);
  assert_int_equal(hk_udp_feed_lost(&f), 3);
  assert_int_equal(hk_udp_feed_lost_points(&f), 30);
  assert_int_equal(hk_udp_feed_take(&f, 1, 0, 10), HK_FEED_TAKE);
  assert_int_equal(hk_udp_feed_lost(&f), 2);
  assert_int_equal(f.reordered, 1);
}

static void the_edge_of_the_reach(void **state)
{
  (void)state;
  struct hk_udp_feed f = { 0 };
  hk_udp_feed_take(&f, HK_FEED_REACH + 1, HK_FEED_REACH, 1);
  assert_int_equal(hk_udp_feed_take(&f, 1, 0, 1), HK_FEED_TOO_LATE);
  assert_int_equal(hk_udp_feed_take(&f, 2, 1, 1), HK_FEED_TAKE);
  assert_int_equal(hk_udp_feed_take(&f, 2, 1, 1), HK_FEED_REPEATED);
  /* a jump by exactly the reach, and by more: old bits must not count for new numbers */
  hk_udp_feed_take(&f, 2 * HK_FEED_REACH + 1, 2 * HK_FEED_REACH, 1);
  assert_int_equal(hk_udp_feed_take(&f, HK_FEED_REACH + 2, HK_FEED_REACH + 1, 1), HK_FEED_TAKE);
  hk_udp_feed_take(&f, 9 * HK_FEED_REACH, 9 * HK_FEED_REACH - 1, 1);
  assert_int_equal(hk_udp_feed_take(&f, 9 * HK_FEED_REACH - 1, 9 * HK_FEED_REACH - 2, 1), HK_FEED_TAKE);
}

static void nonsense_is_malformed_and_changes_nothing(void **state)
{
  (void)state;
  struct hk_udp_feed f = { 0 };
  hk_udp_feed_take(&f, 1, 0, 10);
  assert_int_equal(hk_udp_feed_take(&f, 0, 0, 1), HK_FEED_MALFORMED);
  assert_int_equal(hk_udp_feed_take(&f, UINT64_MAX, 10, 1), HK_FEED_MALFORMED);
  assert_int_equal(hk_udp_feed_take(&f, 2 + HK_FEED_JUMP, 10, 1), HK_FEED_MALFORMED);
  assert_int_equal(hk_udp_feed_take(&f, 2, UINT64_MAX, 1), HK_FEED_MALFORMED);
  assert_int_equal(hk_udp_feed_take(&f, 2, 9, 1), HK_FEED_MALFORMED); /* counts back */
  hk_udp_feed_end(&f, 0, 0);
  hk_udp_feed_end(&f, UINT64_MAX, UINT64_MAX);
  hk_udp_feed_end(&f, 1, 9);
  assert_int_equal(hk_udp_feed_take(&f, 2, 10, 1), HK_FEED_TAKE);
  assert_int_equal(f.malformed, 5);
  assert_int_equal(f.taken, 2);
  assert_int_equal(hk_udp_feed_lost(&f), 0);
  assert_int_equal(hk_udp_feed_lost_points(&f), 0);
}

/* Random loss, repeats and shuffling within the reach: the counts must be those of a model that remembers everything. */
static void against_a_model_that_remembers_all(void **state)
{
  (void)state;
  enum { SENT = 20000 };
  static uint8_t came[SENT + 1];
  static uint64_t before[SENT + 2], order[3 * SENT];
  srandom(1);
  for (int round = 0; round < 20; round++) {
    size_t n = 0;
    for (uint64_t i = 1; i <= SENT; i++) {
      before[i + 1] = before[i] + 1 + (uint64_t)random() % 167;
      const long fate = random() % 10;
      for (long copies = fate == 0 ? 0 : fate == 1 ? 2 : 1; copies > 0; copies--)
        order[n++] = i;
    }
    for (size_t i = 0; i + 1 < n; i++) { /* some travel ahead, by up to 300 places */
      const size_t other = i + (size_t)(random() % 8 == 0 ? random() % 300 : 0);
      const uint64_t swap = order[i];
      if (other < n) {
        order[i] = order[other];
        order[other] = swap;
      }
    }
    memset(came, 0, sizeof came);
    struct hk_udp_feed f = { 0 };
    uint64_t taken = 0, points = 0, repeated = 0, late = 0, highest = 0;
    for (size_t i = 0; i < n; i++) {
      const uint64_t s = order[i];
      const uint32_t size = (uint32_t)(before[s + 1] - before[s]);
      const enum hk_udp_feed_verdict verdict = hk_udp_feed_take(&f, s, before[s], size);
      highest = s > highest ? s : highest;
      if (highest - s >= HK_FEED_REACH) {
        assert_int_equal(verdict, HK_FEED_TOO_LATE);
        late++;
      } else if (came[s]) {
        assert_int_equal(verdict, HK_FEED_REPEATED);
        repeated++;
      } else {
        assert_int_equal(verdict, HK_FEED_TAKE);
        taken++;
        points += size;
        came[s] = 1;
      }
      assert_int_equal(hk_udp_feed_lost(&f), highest - taken);
      assert_int_equal(hk_udp_feed_lost_points(&f), before[highest + 1] - points);
    }
    assert_int_equal(f.taken, taken);
    assert_int_equal(f.repeated, repeated);
    assert_int_equal(f.too_late, late);
    assert_true(f.reordered > 100 && repeated > 100);
    hk_udp_feed_end(&f, SENT, before[SENT + 1]);
    assert_int_equal(hk_udp_feed_lost(&f), SENT - taken);
    assert_int_equal(hk_udp_feed_lost_points(&f), before[SENT + 1] - points);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(in_order_nothing_is_lost),
    cmocka_unit_test(the_first_ones_may_be_lost_too),
    cmocka_unit_test(the_edge_of_the_reach),
    cmocka_unit_test(nonsense_is_malformed_and_changes_nothing),
    cmocka_unit_test(against_a_model_that_remembers_all),
  };
  return cmocka_run_group_tests_name("feed", tests, NULL, NULL);
}
