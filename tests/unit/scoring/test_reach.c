/* Reach of a shard's data: which points of a batch are behind others that arrived before them. */
#include "daemon/scoring/reach.h"

#include "daemon/base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#define NONE UINT32_MAX

static struct hk_batch batch_of(int64_t *times, uint32_t n)
{
  return (struct hk_batch){ .kind = HK_BATCH_POINTS, .n = n, .time = times };
}

static void a_point_is_behind_what_came_before_it(void **state)
{
  struct hk_reach r = { 0 };
  struct hk_batch_reach first, second;
  int64_t ahead[] = { 100, 40, 101, 41 }, more[] = { 50, 120, 51 };
  const struct hk_batch a = batch_of(ahead, 4), b = batch_of(more, 3);
  (void)state;
  hk_reach_take(&r, &first, &a, 0, NONE, INT64_MAX);
  hk_reach_take(&r, &second, &b, 0, NONE, INT64_MAX);
  assert_int_equal(hk_reach_before(&r, &first, &a, 0), 0);
  assert_int_equal(hk_reach_before(&r, &first, &a, 1), 100);
  assert_int_equal(hk_reach_before(&r, &first, &a, 1), 100);
  assert_int_equal(hk_reach_before(&r, &first, &a, 3), 101);
  assert_int_equal(hk_reach_before(&r, &first, &a, NONE), 0); /* its events are not logged yet */
  hk_reach_pass(&r, &first);
  assert_int_equal(hk_reach_before(&r, &second, &b, 0), 101); /* of the batch before */
  assert_int_equal(hk_reach_before(&r, &second, &b, 2), 120);
  assert_int_equal(hk_reach_before(&r, &second, NULL, 0), 101);
}

static void points_of_chains_are_behind_what_came_before_the_chains(void **state)
{
  struct hk_reach r = { 0 };
  struct hk_batch_reach first, second;
  int64_t times[] = { 10, 11, 90 }, chained[] = { 12, 13, 95 };
  const struct hk_batch a = batch_of(times, 3), b = batch_of(chained, 3);
  (void)state;
  hk_reach_take(&r, &first, &a, 0, 2, 12); /* after two points one was put into a chain, and then 90 came */
  hk_reach_take(&r, &second, &b, 2, NONE, INT64_MAX);
  assert_int_equal(first.reached, 12);
  hk_reach_pass(&r, &first);
  assert_int_equal(hk_reach_before(&r, &second, &b, 0), 12); /* not 90, which came later */
  assert_int_equal(hk_reach_before(&r, &second, &b, 1), 12);
  assert_int_equal(hk_reach_before(&r, &second, &b, 2), 90);
}

static void a_chain_that_begins_after_data_that_are_ahead(void **state)
{
  struct hk_reach r = { 0 };
  struct hk_batch_reach first, second;
  int64_t times[] = { 90, 11 }, chained[] = { 12 };
  const struct hk_batch a = batch_of(times, 2), b = batch_of(chained, 1);
  (void)state;
  hk_reach_take(&r, &first, &a, 0, 2, 12);
  hk_reach_take(&r, &second, &b, 1, NONE, INT64_MAX);
  hk_reach_pass(&r, &first);
  assert_int_equal(hk_reach_before(&r, &second, &b, 0), 90);
}

static void a_clock_ahead_counts_as_now(void **state)
{
  struct hk_reach r = { 0 };
  struct hk_batch_reach of;
  int64_t times[] = { INT64_MAX, 5 };
  const struct hk_batch b = batch_of(times, 2);
  (void)state;
  hk_reach_take(&r, &of, &b, 0, NONE, INT64_MAX);
  assert_in_range(r.latest, 1, hk_wall());
  assert_int_equal(of.reached, r.latest);
  assert_int_equal(hk_reach_before(&r, &of, &b, 1), r.latest);
}

static void after_a_start(void **state)
{
  struct hk_reach r = { 0 };
  struct hk_batch_reach of;
  int64_t times[] = { 50, 60 };
  const struct hk_batch b = batch_of(times, 2);
  (void)state;
  hk_reach_restore(&r, 100);
  hk_reach_restore(&r, 90); /* of another file: the latest counts */
  hk_reach_take(&r, &of, &b, 0, NONE, INT64_MAX);
  assert_int_equal(hk_reach_before(&r, &of, &b, 0), 100);
  assert_int_equal(of.reached, 100);
  r = (struct hk_reach){ 0 };
  hk_reach_restore(&r, INT64_MAX); /* the clock was wrong then */
  assert_in_range(r.latest, 1, hk_wall());
  r = (struct hk_reach){ 0 };
  hk_reach_restore(&r, INT64_MIN);
  assert_int_equal(r.latest, 0);
  hk_reach_learn(&r, 100);
  hk_reach_learn(&r, 200); /* it has data by now */
  assert_int_equal(r.latest, 100);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_point_is_behind_what_came_before_it),
    cmocka_unit_test(points_of_chains_are_behind_what_came_before_the_chains),
    cmocka_unit_test(a_chain_that_begins_after_data_that_are_ahead),
    cmocka_unit_test(a_clock_ahead_counts_as_now),
    cmocka_unit_test(after_a_start),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
