/* Quiet hours: times within them, over midnight, and when clocks are put forward and back. */
#include "daemon/config/notify_quiet.h"

#include "daemon/base/zone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define SECOND 1000000000ll

static int64_t at(const char *utc)
{
  struct tm tm = { 0 };
  const char *end = strptime(utc, "%Y-%m-%dT%H:%M:%S", &tm);
  assert_true(end && *end == 0);
  return timegm(&tm) * SECOND;
}

static struct hk_notify_quiet quiet(const char *hours, const char *zone)
{
  struct hk_notify_quiet q = { 0 };
  assert_null(hk_notify_quiet_hours(&q, hours));
  assert_null(hk_notify_quiet_zone(&q, zone));
  return q;
}

static void test_hours(void **state)
{
  (void)state;
  const struct hk_notify_quiet night = quiet("22:00-06:00", "UTC"), noon = quiet("12:00-13:30", "UTC"),
                               late = quiet("20:00-24:00", "UTC");
  static const struct {
    const char *time;
    bool night, noon, late;
  } cases[] = {
    { "2026-03-01T00:00:00", true, false, false },  { "2026-03-01T05:59:59", true, false, false },
    { "2026-03-01T06:00:00", false, false, false }, { "2026-03-01T12:00:00", false, true, false },
    { "2026-03-01T13:29:59", false, true, false },  { "2026-03-01T13:30:00", false, false, false },
    { "2026-03-01T21:59:59", false, false, true },  { "2026-03-01T22:00:00", true, false, true },
    { "2026-03-01T23:59:59", true, false, true },   { "1969-12-31T23:00:00", true, false, true },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(hk_notify_quiet_at(&night, at(cases[i].time)), cases[i].night);
    assert_int_equal(hk_notify_quiet_at(&noon, at(cases[i].time)), cases[i].noon);
    assert_int_equal(hk_notify_quiet_at(&late, at(cases[i].time)), cases[i].late);
  }
  const struct hk_notify_quiet never = { 0 };
  assert_false(hk_notify_quiet_at(&never, at("2026-03-01T00:00:00")));
}

/* Berlin: UTC + 1 h, in summer + 2 h; in 2026 from 29 March 01:00 UTC to 25 October 01:00 UTC. */
static void test_zones(void **state)
{
  (void)state;
  if (!hk_zone_known("Europe/Berlin"))
    skip(); /* no GLib, or no tzdata */
  const struct hk_notify_quiet q = quiet("22:00-06:00", "Europe/Berlin");
  assert_false(hk_notify_quiet_at(&q, at("2026-03-28T20:59:59")));
  assert_true(hk_notify_quiet_at(&q, at("2026-03-28T21:00:00")));
  assert_true(hk_notify_quiet_at(&q, at("2026-03-29T03:59:59")));
  assert_false(hk_notify_quiet_at(&q, at("2026-03-29T04:00:00"))); /* one hour before that of the day before */
  assert_true(hk_notify_quiet_at(&q, at("2026-03-29T20:00:00")));
  assert_true(hk_notify_quiet_at(&q, at("2026-10-25T04:59:59")));
  assert_false(hk_notify_quiet_at(&q, at("2026-10-25T05:00:00")));
  assert_true(hk_notify_quiet_at(&q, at("2062-07-01T20:30:00"))); /* by the rule that follows the times that the file lists */
  assert_false(hk_notify_quiet_at(&q, at("2062-07-01T19:30:00")));
  assert_int_equal(hk_zone_second("Asia/Kolkata", at("2026-01-01T00:00:00") / SECOND), 19800);
  assert_int_equal(hk_zone_second("America/St_Johns", at("2026-01-01T00:00:00") / SECOND), 86400 - 12600);
}

static void test_local(void **state)
{
  (void)state;
  time_t now = time(NULL);
  struct tm here;
  localtime_r(&now, &here);
  assert_int_equal(hk_zone_second("local", now), here.tm_hour * 3600 + here.tm_min * 60 + here.tm_sec);
  assert_int_equal(hk_zone_second("UTC", -1), 86399);
}

static void test_bad(void **state)
{
  (void)state;
  static const char *const hours[] = { "22-6", "22:00-22:00", "25:00-06:00", "22:00-06:00 " };
  static const char *const zones[] = { "Mars/Base", "", "../etc/passwd" };
  struct hk_notify_quiet q = { 0 };
  for (size_t i = 0; i < sizeof hours / sizeof *hours; i++)
    assert_non_null(hk_notify_quiet_hours(&q, hours[i]));
  for (size_t i = 0; i < sizeof zones / sizeof *zones; i++)
    assert_non_null(hk_notify_quiet_zone(&q, zones[i]));
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_hours), cmocka_unit_test(test_zones), cmocka_unit_test(test_local),
                                      cmocka_unit_test(test_bad) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
