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
  assert_true(isnan(hk_rate_next(&r, HK_RATE_YES, 10 * S, 100))); /* nothing before it */
  assert_true(hk_rate_next(&r, HK_RATE_YES, 12 * S, 150) == 25);
  assert_true(hk_rate_next(&r, HK_RATE_YES, 12 * S, 151) == 151); /* late, as it is */
  assert_true(hk_rate_next(&r, HK_RATE_YES, 11 * S, 9) == 9);
  assert_true(hk_rate_next(&r, HK_RATE_YES, 13 * S, 150) == 0);
  assert_true(isnan(hk_rate_next(&r, HK_RATE_YES, 14 * S, 30))); /* it began anew */
  assert_true(isinf(hk_rate_next(&r, HK_RATE_YES, 15 * S, INFINITY)) && isnan(hk_rate_next(&r, HK_RATE_YES, 16 * S, NAN)));
  assert_true(hk_rate_next(&r, HK_RATE_YES, -1, 5) == 5);
  assert_true(hk_rate_next(&r, HK_RATE_YES, 24 * S, 50) == 2); /* these changed nothing */
  assert_true(isnan(hk_rate_next(&r, HK_RATE_YES, 25 * S, -1)));
}

/* The number of values until a sensor's kind is decided; 0: it is not. *kind: its kind. In any case the window contains one kind
 * only: after the value that restarts it come rates or values, and none before. */
static uint32_t decided(const double *values, uint32_t n, uint8_t *kind)
{
  struct hk_rate r = { 0 };
  uint32_t at = 0;
  for (uint32_t i = 0; i < n; i++) {
    const uint8_t before = r.kind;
    const double out = hk_rate_next(&r, HK_RATE_AUTO, (i + 1) * S, values[i]);
    const bool turned = (before == HK_RATE_COUNTER) != (r.kind == HK_RATE_COUNTER);
    assert_int_equal(hk_anew(out), turned);
    if (!turned && r.kind == HK_RATE_COUNTER)
      assert_true(values[i] >= values[i - 1] ? fabs(out - (values[i] - values[i - 1])) < 1e-9 : isnan(out));
    else if (!turned)
      assert_true(out == values[i]);
    if (at == 0 && r.kind != HK_RATE_UNDECIDED)
      at = i + 1;
  }
  *kind = r.kind;
  return at;
}

static void counters_are_recognised(void **state)
{
  (void)state;
  double v[300];
  uint8_t kind;
  for (int i = 0; i < 300; i++)
    v[i] = 1e12 + 3.5 * i + i % 3;
  assert_int_equal(decided(v, 300, &kind), HK_RATE_RISES + 1);
  assert_int_equal(kind, HK_RATE_COUNTER);
  for (int i = 0; i < 300; i++)
    v[i] = i / 2; /* rises with every other value */
  assert_int_equal(decided(v, 300, &kind), HK_RATE_LOOK);
  assert_int_equal(kind, HK_RATE_GAUGE);
  v[0] = -1; /* one rise more, but not below 0 */
  assert_int_equal(decided(v, 300, &kind), 1);
  for (int i = 0; i < 300; i++)
    v[i] = 5 + i / 2 - 5 * (i == 0);
  assert_int_equal(decided(v, 300, &kind), HK_RATE_LOOK - 1);
  assert_int_equal(kind, HK_RATE_COUNTER);
  for (int i = 0; i < 300; i++)
    v[i] = i % 20 * 7; /* began anew every 20 values */
  assert_int_equal(decided(v, 20 + HK_RATE_RISES, &kind), HK_RATE_RISES + 2);
  assert_int_equal(kind, HK_RATE_COUNTER);
  assert_int_equal(decided(v, 300, &kind), HK_RATE_RISES + 2);
  assert_int_equal(kind, HK_RATE_COUNTER); /* after the decision, this is no evidence against a counter */
  for (int i = 0; i < 300; i++)
    v[i] = i % 2 * 7; /* spikes of a gauge */
  assert_int_equal(decided(v, 300, &kind), 5);
  assert_int_equal(kind, HK_RATE_GAUGE);
}

static void gauges_stay_what_they_are(void **state)
{
  (void)state;
  double v[300];
  uint8_t kind;
  for (int i = 0; i < 300; i++)
    v[i] = 20; /* constant */
  assert_int_equal(decided(v, 300, &kind), HK_RATE_LOOK);
  assert_int_equal(kind, HK_RATE_GAUGE);
  for (int i = 0; i < 300; i++)
    v[i] = 20 + i % 7;
  assert_int_equal(decided(v, 300, &kind), 8);
  for (int i = 0; i < 300; i++)
    v[i] = 20 + 5 * sin(i / 50.0); /* looked like a counter for too long */
  assert_int_equal(decided(v, 300, &kind), HK_RATE_RISES + 1);
  assert_int_equal(kind, HK_RATE_GAUGE);
}

/* Values of peers do not restart a window, and rejected values are ignored. */
static void what_does_not_count(void **state)
{
  (void)state;
  struct hk_rate r = { 0 };
  for (int i = 0; i < 40; i++) {
    const double out = hk_rate_next(&r, HK_RATE_AUTO, 10 * S + i, hk_rate_anew());
    assert_true(isnan(out) && !hk_anew(out));
    assert_true(isinf(hk_rate_next(&r, HK_RATE_AUTO, 10 * S + i, -INFINITY)));
    assert_true(hk_rate_next(&r, HK_RATE_AUTO, -1, i) == i);
  }
  assert_true(r.known == 0 && r.seen == 0);
  (void)hk_rate_next(&r, HK_RATE_AUTO, 10 * S, 5);
  for (int i = 0; i < 40; i++)
    assert_true(hk_rate_next(&r, HK_RATE_AUTO, 10 * S - i, 5 - i) == 5 - i); /* late */
  assert_true(r.seen == 1 && r.kind == HK_RATE_UNDECIDED);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(differences_a_second), cmocka_unit_test(counters_are_recognised),
                                      cmocka_unit_test(gauges_stay_what_they_are), cmocka_unit_test(what_does_not_count) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
