/* Histograms: compared with the sorted times. */
#include "daemon/base/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TIMES = 20000 };

static int compare(const void *a, const void *b)
{
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static uint64_t one(int64_t ns)
{
  struct hk_histogram h = { 0 };
  hk_histogram_add(&h, ns, 1);
  return hk_histogram_quantile(&h, 0.5);
}

/* A bucket ends at the time or later, by 1/32 of it at most. */
static void test_width(void **state)
{
  (void)state;
  for (int64_t t = 0; t < (int64_t)1 << HK_HISTOGRAM_BITS; t += 1 + t / 97) {
    const uint64_t end = one(t);
    assert_in_range(end, (uint64_t)t, (uint64_t)t + (uint64_t)t / 32);
  }
  for (int64_t power = 1; power < (int64_t)1 << HK_HISTOGRAM_BITS; power *= 2)
    assert_true(one(power - 1) < one(power));
}

static void test_ends(void **state)
{
  (void)state;
  const uint64_t most = ((uint64_t)1 << HK_HISTOGRAM_BITS) - 1;
  struct hk_histogram empty = { 0 };
  assert_int_equal(hk_histogram_quantile(&empty, 0.99), 0);
  assert_int_equal(hk_histogram_count(&empty), 0);
  assert_int_equal(one(-5), 0);
  assert_int_equal(one(0), 0);
  assert_int_equal(one(INT64_MAX), most);
  assert_int_equal(one((int64_t)most), most);
}

static void test_quantiles(void **state)
{
  (void)state;
  static int64_t times[TIMES];
  struct hk_histogram parts[2] = { 0 }, sum = { 0 };
  srand(1);
  for (int i = 0; i < TIMES; i++) {
    times[i] = (int64_t)1 << (rand() % 38);
    times[i] += rand() % times[i];
    hk_histogram_add(&parts[i % 2], times[i], 3);
  }
  qsort(times, TIMES, sizeof *times, compare);
  hk_histogram_sum(&sum, &parts[0]);
  hk_histogram_sum(&sum, &parts[1]);
  assert_int_equal(hk_histogram_count(&sum), 3 * TIMES);
  static const double shares[] = { 0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1 };
  for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
    const uint64_t exact = (uint64_t)times[(int)(shares[i] * TIMES + 0.5) - 1];
    assert_in_range(hk_histogram_quantile(&sum, shares[i]), exact, exact + exact / 32);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_width), cmocka_unit_test(test_ends),
                                      cmocka_unit_test(test_quantiles) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
