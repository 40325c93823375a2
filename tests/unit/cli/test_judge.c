/* Judging alerts: hits, chance, delays and covering, against numbers worked out by hand. */
#include "daemon/cli/judge.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static bool near(double a, double b)
{
  return fabs(a - b) < 1e-12;
}

static void hits_and_misses(void **state)
{
  (void)state;
  static const struct hk_marked marked[] = { { 100, 120 }, { 500, 500 }, { 800, 900 } };
  /* at the edge of the first label with its margin; again within it; one point before the second and one after it; nowhere */
  static const struct hk_found found[] = { { 90, 130, 0 }, { 130, 160, 0 }, { 489, 520, 0 }, { 511, 540, 0 }, { 0, 700, 0 } };
  double delay[3];
  const struct hk_verdict v = hk_judge(1000, 0, 10, found, 5, marked, 3, delay);
  assert_int_equal(v.points, 1000);
  assert_int_equal(v.labels, 3);
  assert_int_equal(v.alerts, 5);
  assert_int_equal(v.hits, 1);
  assert_int_equal(v.misplaced, 3);
  assert_true(near(delay[0], 30));
  assert_int_equal(hk_judge(1000, 0, 11, found, 5, marked, 3, delay).hits, 2);
  assert_true(near(delay[1], 20));
  assert_int_equal(hk_judge(1000, 0, 9, found, 5, marked, 3, delay).misplaced, 5);
}

static void chance(void **state)
{
  (void)state;
  static const struct hk_marked marked[] = { { 5, 5 }, { 400, 499 }, { 995, 999 } };
  static const struct hk_found found[] = { { 700, 700, 0 }, { 710, 710, 0 } };
  double delay[3];
  /* of 800 points from 200 on, the first label is before all, the second has 120, the third the rest to the end */
  const struct hk_verdict v = hk_judge(1000, 200, 10, found, 2, marked, 3, delay);
  assert_true(near(v.chance, (1 - pow(1 - 120. / 800, 2)) + (1 - pow(1 - 15. / 800, 2))));
  assert_true(near(hk_judge(1000, 1000, 10, found, 2, marked, 3, delay).chance, 0));
  assert_true(near(hk_judge(1000, 200, 10, found, 0, marked, 3, delay).chance, 0));
}

static void covering(void **state)
{
  (void)state;
  static const struct hk_marked marked[] = { { 400, 400 }, { 700, 700 } };
  static const struct hk_found same[] = { { 400, 0, 0 }, { 700, 0, 0 } }, one[] = { { 500, 0, 0 } };
  assert_true(near(hk_judge_covering(1000, same, 2, marked, 2), 1));
  assert_true(near(hk_judge_covering(1000, same, 0, marked, 0), 1));
  assert_true(near(hk_judge_covering(1000, NULL, 0, marked, 2), .4 * .4 + .3 * .3 + .3 * .3));
  /* 0..399 by 0..499; 400..699 by 500..999 (2/6, more than 1/7); 700..999 by 500..999 */
  assert_true(near(hk_judge_covering(1000, one, 1, marked, 2), .4 * .8 + .3 * (200. / 600) + .3 * (300. / 500)));
  assert_true(near(hk_judge_covering(0, NULL, 0, NULL, 0), 0));
}

static void recordings_without_a_score(void **state)
{
  double delay[1];
  (void)state;
  const struct hk_verdict scored = hk_judge(100, 99, 5, NULL, 0, NULL, 0, delay),
                          none = hk_judge(100, 100, 5, NULL, 0, NULL, 0, delay);
  assert_true(scored.recordings == 1 && scored.unscored == 0);
  assert_true(none.recordings == 1 && none.unscored == 1 && none.longest == none.points && scored.longest == 0);
}

static void sums(void **state)
{
  (void)state;
  struct hk_verdict sum = { 0 };
  const struct hk_verdict one = { 6, 5, 7, 1, 2, 3, 4, 5, .5, .25, 1 };
  hk_verdict_add(&sum, &one);
  hk_verdict_add(&sum, &one);
  assert_true(sum.points == 2 && sum.labels == 4 && sum.alerts == 6 && sum.hits == 8 && sum.misplaced == 10 && sum.covered == 2);
  assert_true(near(sum.chance, 1) && near(sum.covering, .5) && sum.recordings == 12 && sum.unscored == 10 && sum.longest == 7);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(hits_and_misses),
    cmocka_unit_test(chance),
    cmocka_unit_test(covering),
    cmocka_unit_test(recordings_without_a_score),
    cmocka_unit_test(sums),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
