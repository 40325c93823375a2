/* Rates of counters. */
#include "cpu/rules/rate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define S 1000000000LL

static void differences_a_second(void **state)
{
  (void)state;
  struct hk_rate r = { 0 };
  assert_true(isnan(hk_rate_next(&r, 10 * S, 100))); /* nothing before it */
  assert_true(hk_rate_next(&r, 12 * S, 150) == 25);
  assert_true(hk_rate_next(&r, 12 * S, 151) == 151); /* late, as it is */
  assert_true(hk_rate_next(&r, 11 * S, 9) == 9);
  assert_true(hk_rate_next(&r, 13 * S, 150) == 0);
  assert_true(isnan(hk_rate_next(&r, 14 * S, 30))); /* it began anew */
  assert_true(isinf(hk_rate_next(&r, 15 * S, INFINITY)) && isnan(hk_rate_next(&r, 16 * S, NAN)));
  assert_true(hk_rate_next(&r, -1, 5) == 5);
  assert_true(hk_rate_next(&r, 24 * S, 50) == 2); /* these changed nothing */
  assert_true(isnan(hk_rate_next(&r, 25 * S, -1)));
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(differences_a_second) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
