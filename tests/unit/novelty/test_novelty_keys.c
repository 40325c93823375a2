/* The keys of algorithm = novelty: what they set, and the errors of refused ones. */
#include "cpu/novelty/alert.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void keys_are_checked(void **state)
{
  (void)state;
  static const struct {
    const char *text, *complaint;
  } bad[] = {
    { "algorithm=novelty,window=20", "window: does not apply to algorithm = novelty" },
    { "algorithm=novelty,max_fill=2", "max_fill: does not apply to algorithm = novelty" },
    { "algorithm=novelty,resident=900", "resident = 900: must be from 1000 to 10000 for algorithm = novelty" },
    { "algorithm=graph,resident=9000", "resident = 9000: must be at most 6000 for algorithm = graph" },
    { "algorithm=novelty,false_alarms=399", "must be from 400 to 10000" },
    { "algorithm=novelty,resident=4999,false_alarms=999", "must be from 1000 to 10000" },
    { "algorithm=novelty,false_alarms=1000,alert=0.6", "give one of the two" },
    { "algorithm=novelty,alert=1", "must be below 1" },
    { "algorithm=novelty,channels=valeu", "channels = valeu: not one of all, value" },
    { "algorithm=graph,channels=value", "channels: does not apply to algorithm = graph" },
    { "channels=value", "channels: a key of algorithm = novelty alone" },
  };
  struct hk_detector d;
  char error[256];
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_not_equal(hk_detector_parse(bad[i].text, &d, error, sizeof error), 0);
    if (!strstr(error, bad[i].complaint))
      fail_msg("%s: %s", bad[i].text, error);
  }
  assert_int_equal(hk_detector_parse("algorithm=novelty", &d, error, sizeof error), 0);
  assert_true(fabs(hk_novelty_s((double)d.threshold) - 2) < 1e-6);
  assert_int_equal(hk_detector_parse("algorithm=novelty,false_alarms=750", &d, error, sizeof error), 0);
  assert_true(fabs(hk_novelty_s((double)d.threshold) - 2) < 1e-5);
  assert_int_equal(d.channels, HK_CHANNELS_ALL);
  assert_int_equal(hk_detector_parse("algorithm=novelty,resident=5000,false_alarms=400", &d, error, sizeof error), 0);
  assert_int_equal(hk_detector_parse("algorithm=novelty,resident=4999,false_alarms=1000", &d, error, sizeof error), 0);
  assert_int_equal(hk_detector_parse("algorithm=novelty,channels=value", &d, error, sizeof error), 0);
  assert_int_equal(d.channels, HK_CHANNELS_VALUE);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(keys_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
