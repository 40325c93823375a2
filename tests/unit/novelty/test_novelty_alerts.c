/* Novelty: the alert rule. */
#include "cpu/novelty/state.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The kinds of events as S takes these values, one a point, with a hole only before the last point. */
static void alerts_are_raised_escalated_and_cleared(void **state)
{
  (void)state;
  struct hk_detector d;
  const struct hk_step ok = { HK_STATE_OK, 1, 0 }, gap = { HK_STATE_GAP, 1, 0 };
  struct hk_novelty_point p = { .missing = 0 };
  struct hk_alert a = { .number = 0 };
  bool tells;
  char error[256];
  assert_int_equal(hk_detector_parse("algorithm=novelty,resident=1000,interval=1s", &d, error, sizeof error), 0);
  assert_int_equal(hk_novelty_judge(&a, &d, &p, ok, 1.9, 1.9 * 0.5, &tells), 0);
  assert_int_equal(hk_novelty_judge(&a, &d, &p, gap, 9, 9 * 0.5, &tells), 0); /* after a long hole no alert is raised */
  assert_int_equal(hk_novelty_judge(&a, &d, &p, ok, 2.01, 2.01 * 0.5, &tells), HK_EVENT_RAISED);
  assert_int_equal(a.number, 1);
  assert_int_equal(hk_novelty_judge(&a, &d, &p, ok, 3.5, 1.2, &tells), 0); /* not far enough over the old peak, but the new one */
  assert_int_equal(hk_novelty_judge(&a, &d, &p, ok, 4.99, 1.24, &tells), 0);
  assert_false(tells);
  /* A higher quarter of severity, while S stays, makes an event; the same quarter, or a lower one, makes none, and none is made
   * after a hole. */
  assert_int_equal(hk_novelty_judge(&a, &d, &p, ok, 4.99, 1.25, &tells), HK_EVENT_CORRECTED);
  assert_true(tells && a.mean == 1.25 && a.since == 3);
  assert_int_equal(hk_novelty_judge(&a, &d, &p, ok, 4.99, 1.49, &tells), 0);
  assert_int_equal(hk_novelty_judge(&a, &d, &p, ok, 4.99, 1.1, &tells), 0);
  assert_int_equal(hk_novelty_judge(&a, &d, &p, gap, 4.99, 2, &tells), 0);
  assert_true(!tells && a.mean == 2);
  assert_int_equal(hk_novelty_judge(&a, &d, &p, ok, 6.5, 6.5 * 0.5, &tells), HK_EVENT_CORRECTED);
  assert_true(tells);
  assert_int_equal(a.number, 1);
  assert_true(a.mean == 3.25);
  for (uint32_t i = 0; i < HK_NOVELTY_QUIET - 1; i++)
    assert_int_equal(hk_novelty_judge(&a, &d, &p, ok, 1, 1 * 0.5, &tells), 0);
  assert_int_equal(hk_novelty_judge(&a, &d, &p, ok, 1.71, 1.71 * 0.5, &tells), 0); /* prolongs */
  for (uint32_t i = 0; i < HK_NOVELTY_QUIET - 1; i++)
    assert_int_equal(hk_novelty_judge(&a, &d, &p, ok, 1.69, 1.69 * 0.5, &tells), 0);
  assert_int_equal(hk_novelty_judge(&a, &d, &p, ok, 1.69, 1.69 * 0.5, &tells), HK_EVENT_CLEARED);
  assert_true(a.mean == 3.25); /* the highest since it was raised */
  assert_int_equal(hk_novelty_judge(&a, &d, &p, ok, 2.5, 2.5 * 0.5, &tells), HK_EVENT_RAISED);
  assert_int_equal(a.number, 2);
  assert_true(a.mean == 1.25);
  for (uint32_t i = 0; i < HK_NOVELTY_LONGEST - 1; i++)
    assert_int_equal(hk_novelty_judge(&a, &d, &p, ok, 2.5, 2.5 * 0.5, &tells), 0);
  assert_int_equal(hk_novelty_judge(&a, &d, &p, ok, 2.5, 2.5 * 0.5, &tells), HK_EVENT_CLEARED);
  assert_int_equal(hk_novelty_judge(&a, &d, &p, ok, 2.5, 2.5 * 0.5, &tells), HK_EVENT_RAISED);
  p.missing = HK_NOVELTY_QUIET;
  assert_int_equal(hk_novelty_judge(&a, &d, &p, ok, 9, 9 * 0.5, &tells), HK_EVENT_CLEARED);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(alerts_are_raised_escalated_and_cleared),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
