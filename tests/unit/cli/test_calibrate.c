/* Severities compared with alerts: blocks outside labels, alerts in them, and the verdict, against numbers worked out by hand. */
#include "daemon/cli/calibrate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* 4,000 points from 100 on: 97 blocks. The label, 1000..1009, and the 250 points on either side exclude the blocks from point 740
 * to the one with point 1259. */
static void blocks_apart_from_labels_are_counted(void **state)
{
  (void)state;
  struct hk_found found[] = {
    { 1005, 1005, 6.0f },                       /* a hit, and in no block that counts */
    { 1200, 1200, 6.0f },                       /* false, but so near to the label that it does not count against the promise */
    { 2000, 2010, 2.6f }, { 2001, 2011, 2.1f }, /* of one block, 1980..2019 */
    { 2020, 2020, 1.6f },                       /* of the next */
    { 3999, 3999, 3.5f },                       /* behind the last whole block */
  };
  struct hk_marked marked[] = { { 1000, 1009 } };
  struct hk_outcome o = {
    .points = 4000, .scored = 100, .detector = { .window = 20 }, .found = found, .n_found = 6, .marked = marked
  };
  struct hk_calibration c = { 0 };
  assert_int_equal(hk_calibrate_add(&c, &o, 1), 0);
  assert_int_equal(c.blocks, 97 - 13);
  static const uint64_t grave[] = { 2, 2, 1, 1, 0, 0, 0, 0 }, alerts[] = { 6, 6, 5, 4, 3, 3, 2, 2 },
                        misplaced[] = { 5, 5, 4, 3, 2, 2, 1, 1 };
  for (uint32_t bin = 0; bin < HK_CALIBRATION_BINS; bin++) {
    assert_int_equal(c.grave[bin], grave[bin]);
    assert_int_equal(c.worth[bin].alerts, alerts[bin]);
    assert_int_equal(c.worth[bin].misplaced, misplaced[bin]);
    assert_int_equal(c.worth[bin].hits, 1);
  }
  assert_int_equal(hk_calibrate_add(&c, &o, 1), 0);
  assert_int_equal(c.blocks, 2 * 84);
  assert_int_equal(c.grave[0], 4);
  o.scored = 4000; /* no score at all */
  assert_int_equal(hk_calibrate_add(&c, &o, 1), 0);
  assert_int_equal(c.blocks, 2 * 84);
}

static void words(void **state)
{
  (void)state;
  struct hk_calibration c = { .blocks = 1000, .grave = { 900, 64, 20, 6, 3, 1, 1, 1 } };
  static const char *const expected[] = { "-", "breaks", "holds", "holds", "breaks", "-", "-", "-" };
  for (uint32_t bin = 0; bin < HK_CALIBRATION_BINS; bin++)
    assert_string_equal(hk_calibration_word(&c, bin), expected[bin]);
  c.grave[1] = 63;
  assert_string_equal(hk_calibration_word(&c, 1), "holds");
  c.grave[4] = 0;
  assert_string_equal(hk_calibration_word(&c, 4), "holds");
  c.blocks = 400; /* less than one alert would be expected */
  assert_string_equal(hk_calibration_word(&c, 4), "-");
  assert_true(hk_calibration_promise(3) < 1 && hk_calibration_promise(3.1) >= 1);
  assert_true(hk_calibration_promise(1.4) >= 1 && fabs(hk_calibration_promise(2) - 0.02) < 1e-12);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(blocks_apart_from_labels_are_counted),
    cmocka_unit_test(words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
