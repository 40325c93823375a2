/* Which sensors are named because all their points are late. */
#include "daemon/scoring/late_points.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)

static void a_sensor_is_named_once_after_ten_seconds(void **state)
{
  struct hk_late_points l = { .n = 0 };
  uint32_t slot;
  (void)state;
  for (int64_t at = 100; at < 130; at++) {
    assert_int_equal(hk_late_take(&l, 7, at * SECOND), at == 110);
    hk_late_count(&l, 2, 2, at * SECOND);
    assert_int_equal(hk_late_shown(&l, at * SECOND, &slot), at >= 110);
  }
  assert_int_equal(slot, 7);
  assert_false(hk_late_shown(&l, 189 * SECOND, &slot)); /* it is silent */
}

/* As after a reconnection: the first point that is not late ends it. */
static void repeats_name_no_sensor(void **state)
{
  struct hk_late_points l = { .n = 0 };
  (void)state;
  for (int64_t at = 0; at < 200; at++) {
    assert_false(hk_late_take(&l, 7, at * SECOND));
    assert_false(hk_late_take(&l, 71, at * SECOND)); /* the same bit */
    if (at % 10 == 9) {
      hk_late_end(&l, 7);
      hk_late_end(&l, 71);
      assert_true(l.n == 0 && l.slots == 0);
    }
  }
}

static void the_status_names_it_only_while_most_points_are_late(void **state)
{
  struct hk_late_points l = { .n = 0 };
  uint32_t slot;
  (void)state;
  for (int64_t at = 0; at < 60; at++) {
    (void)hk_late_take(&l, 0, at * SECOND);
    hk_late_count(&l, at < 30 ? 2 : 1, 1, at * SECOND); /* half of them; then all */
    assert_int_equal(hk_late_shown(&l, at * SECOND, &slot), at >= 40);
  }
  hk_late_end(&l, 0);
  assert_false(hk_late_shown(&l, 60 * SECOND, &slot));
}

static void a_silent_sensor_leaves_its_place(void **state)
{
  struct hk_late_points l = { .n = 0 };
  (void)state;
  for (uint32_t slot = 0; slot < 2 * HK_LATE_SENSORS; slot++)
    (void)hk_late_take(&l, slot, SECOND);
  assert_int_equal(l.n, HK_LATE_SENSORS);
  assert_false(hk_late_take(&l, 30, 20 * SECOND)); /* it had no place */
  assert_false(hk_late_take(&l, 30, 61 * SECOND));
  assert_true(hk_late_take(&l, 30, 71 * SECOND));
  assert_int_equal(l.n, HK_LATE_SENSORS);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_sensor_is_named_once_after_ten_seconds),
    cmocka_unit_test(repeats_name_no_sensor),
    cmocka_unit_test(the_status_names_it_only_while_most_points_are_late),
    cmocka_unit_test(a_silent_sensor_leaves_its_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
