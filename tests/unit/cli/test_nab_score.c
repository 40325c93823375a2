/* The scoring of the Numenta Anomaly Benchmark, against sums worked out by hand. */
#include "daemon/cli/nab_score.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static double curve(double y)
{
  return 2 / (1 + exp(5 * y)) - 1;
}

static bool near(double a, double b)
{
  return fabs(a - b) < 1e-6;
}

/* Two recordings of 10,000 points, with two windows and one. */
static struct hk_marked marked[2][2] = { { { 2000, 2099 }, { 5000, 5199 } }, { { 3000, 3100 } } };
static float score[2][10000];

static void run(struct hk_found *first, uint32_t n_first, struct hk_found *second, uint32_t n_second, struct hk_nab_result *out)
{
  struct hk_recording r[2] = { { .n_labels = 2 }, { .n_labels = 1 } };
  const struct hk_labelled set = { .recording = r, .n = 2 };
  struct hk_outcome all[2] = {
    { .points = 10000, .score = score[0], .found = first, .n_found = n_first, .marked = marked[0] },
    { .points = 10000, .score = score[1], .found = second, .n_found = n_second, .marked = marked[1] }
  };
  assert_int_equal(hk_nab_score(&set, all, out), 0);
}

static void nothing_is_worth_0_and_all_at_once_100(void **state)
{
  (void)state;
  struct hk_nab_result r[HK_NAB_PROFILES];
  struct hk_found two[] = { { 0, 2000, 0 }, { 0, 5000, 0 } }, one[] = { { 0, 3000, 0 } }, early[] = { { 0, 749, 0 } };
  run(two, 0, one, 0, r);
  assert_true(r[0].score == 0 && r[1].score == 0 && r[2].score == 0 && r[0].threshold > 1 && r[0].as_is == 0);
  score[0][2000] = score[0][5000] = score[1][3000] = 0.5f;
  run(two, 2, one, 1, r);
  assert_true(near(r[0].score, 100) && near(r[1].score, 100) && near(r[2].score, 100) && r[0].threshold == 0.5);
  score[0][749] = 0.9f;
  run(early, 1, one, 1, r); /* in the probation: nothing */
  assert_true(near(r[0].score, 100 / 3.0));
}

/* One window with two alerts, the better of which has the lower score; one without any; false alerts before all windows and
 * shortly after one. */
static void an_example(void **state)
{
  (void)state;
  struct hk_nab_result r[HK_NAB_PROFILES];
  struct hk_found first[] = { { 0, 1000, 0 }, { 0, 2050, 0 }, { 0, 2090, 0 }, { 0, 2149, 0 } }, second[] = { { 0, 3000, 0 } };
  score[0][1000] = 0.2f, score[0][2090] = 0.9f, score[0][2050] = 0.8f, score[0][2149] = 0.7f, score[1][3000] = 0.6f;
  run(first, 4, second, 1, r);
  const double inside = curve(-0.5) / curve(-1), behind = curve(50 / 99.0);
  const double standard = inside + 0.11 * behind + 1 - 1, few_missed = inside + 0.11 * behind + 1 - 2;
  assert_true(near(r[HK_NAB_STANDARD].score, 100 * (standard + 3) / 6));
  assert_true(near(r[HK_NAB_FEW_FALSE].score, 100 * (standard + 0.11 * behind + 3) / 6));
  assert_true(near(r[HK_NAB_FEW_MISSED].score, 100 * (few_missed + 6) / 9));
  assert_true(near(r[0].threshold, (double)0.6f)); /* the alert before any window stays out */
  assert_true(near(r[HK_NAB_STANDARD].as_is, 100 * (standard - 0.11 + 3) / 6));
  assert_true(near(r[HK_NAB_FEW_FALSE].as_is, 100 * (standard + 0.11 * behind - 0.22 + 3) / 6));
  second[0].raised = 2999; /* almost the same as a false alert: so only the alert in the first window is worth its cost */
  score[1][2999] = 0.6f;
  run(first, 4, second, 1, r);
  assert_true(near(r[0].score, 100 * (inside - 2 + 3) / 6) && near(r[0].threshold, (double)0.8f));
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(nothing_is_worth_0_and_all_at_once_100), cmocka_unit_test(an_example) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
