/* Maintenance windows: the times and sensors that they cover, and the file of client-requested ones. */
#include "daemon/config/maintenance_rule.h"
#include "daemon/sensors/maintenance.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define HOUR 3600000000000ll
#define DAY (24 * HOUR)
#define TODAY (20000 * DAY)

static struct hk_maintenance *maintenance_new(const char *const keys[][2], size_t n)
{
  struct hk_maintenance_rule rule = { .name = "one" };
  char error[256];
  struct hk_maintenance *m;
  for (size_t i = 0; i < n; i++)
    assert_int_equal(hk_maintenance_key(&rule, keys[i][0], keys[i][1], error, sizeof error), 0);
  if (n > 0)
    assert_int_equal(hk_maintenance_finish(&rule, error, sizeof error), 0);
  const struct hk_config config = { .maintenance = &rule, .n_maintenance = n > 0 };
  assert_int_equal(hk_maintenance_new(&m, &config), 0);
  return m;
}

static void test_daily(void **state)
{
  static const char *const keys[][2] = { { "match", "a*" }, { "daily", "22:00-04:30" }, { "from", "2024-10-04T00:00:00Z" } };
  struct hk_maintenance *m = maintenance_new(keys, 3);
  const struct hk_string a = hk_string("ab"), b = hk_string("b");
  (void)state;
  assert_true(hk_maintenance_covers(m, a, TODAY + 22 * HOUR));
  assert_true(hk_maintenance_covers(m, a, TODAY + 4 * HOUR));
  assert_false(hk_maintenance_covers(m, a, TODAY + 4 * HOUR + HOUR / 2));
  assert_false(hk_maintenance_covers(m, a, TODAY + 22 * HOUR - 1));
  assert_false(hk_maintenance_covers(m, b, TODAY + 23 * HOUR));
  assert_false(hk_maintenance_covers(m, a, TODAY - DAY + 23 * HOUR)); /* before `from` */
  hk_maintenance_free(m);
}

/* Only valid days, also in leap years. */
static void test_days(void **state)
{
  static const char *const there[] = { "2024-02-29T23:59:59Z", "2028-02-29T00:00:00Z", "2000-02-29T00:00:00Z",
                                       "2026-12-31T23:59:60Z" };
  static const char *const none[] = { "2027-02-29T06:00:00Z", "2100-02-29T00:00:00Z", "2026-02-30T00:00:00Z",
                                      "2026-04-31T00:00:00Z" };
  struct hk_maintenance_rule rule = { .name = "one" };
  char error[256];
  (void)state;
  for (size_t i = 0; i < sizeof there / sizeof *there; i++)
    assert_int_equal(hk_maintenance_key(&rule, "from", there[i], error, sizeof error), 0);
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    assert_int_equal(hk_maintenance_key(&rule, "to", none[i], error, sizeof error), -EINVAL);
    assert_non_null(strstr(error, "there is no such day"));
  }
  assert_int_equal(rule.to, 0);
}

static void test_asked(void **state)
{
  struct hk_maintenance *m = maintenance_new(NULL, 0);
  const struct hk_string b = hk_string("b"), who = hk_string("otto");
  (void)state;
  assert_int_equal(hk_maintenance_begin(m, b, TODAY, TODAY + HOUR, who), 0);
  assert_true(hk_maintenance_covers(m, b, TODAY));
  assert_false(hk_maintenance_covers(m, b, TODAY + HOUR));
  assert_int_equal(hk_maintenance_end(m, hk_string("b*"), TODAY), 0);
  assert_int_equal(hk_maintenance_end(m, b, TODAY + HOUR / 2), 1);
  assert_false(hk_maintenance_covers(m, b, TODAY + HOUR / 2));
  assert_int_equal(hk_maintenance_end(m, b, TODAY + HOUR / 2), 0);
  const struct hk_string c = hk_string("c");
  assert_int_equal(hk_maintenance_begin(m, c, TODAY, TODAY + HOUR, who), 0);
  for (uint32_t i = 2; i < HK_MAINTENANCE_ASKED; i++)
    assert_int_equal(hk_maintenance_begin(m, b, TODAY + i, TODAY + 2 * HOUR, who), 0);
  assert_int_equal(hk_maintenance_begin(m, b, TODAY + 2, TODAY + 2 * HOUR, who),
                   -EEXIST); /* as a log that is read again has it */
  assert_int_equal(hk_maintenance_begin(m, b, TODAY + 1, TODAY + HOUR, who), -ENOSPC);
  assert_int_equal(hk_maintenance_end(m, c, TODAY + 3 * HOUR / 4), 1);
  /* If all places are taken, the window that ended first is removed, one at a time. */
  assert_int_equal(hk_maintenance_begin(m, b, TODAY + 3 * HOUR / 4, TODAY + 2 * HOUR, who), 0);
  assert_true(hk_maintenance_covers(m, c, TODAY)); /* points of that time may still come */
  assert_int_equal(hk_maintenance_begin(m, b, TODAY + 3 * HOUR / 4 + 1, TODAY + 2 * HOUR, who), 0);
  assert_false(hk_maintenance_covers(m, c, TODAY));
  assert_int_equal(hk_maintenance_begin(m, b, TODAY + 3 * HOUR / 4 + 2, TODAY + 2 * HOUR, who), -ENOSPC);
  assert_int_equal(hk_maintenance_begin(m, b, TODAY + 3 * DAY, TODAY + 4 * DAY, who), 0); /* those before are over for long */
  hk_maintenance_free(m);
}

static void shows(struct hk_maintenance *m, int64_t now, const char *expected)
{
  struct hk_buffer out = { 0 };
  hk_maintenance_show(m, now, &out);
  hk_buffer_put(&out, "", 1);
  assert_string_equal(out.data, expected);
  hk_buffer_free(&out);
}

static void test_shown(void **state)
{
  static const char *const keys[][2] = {
    { "match", "a*" }, { "daily", "22:00-04:30" }, { "from", "2024-10-04T00:00:00Z" }, { "to", "2030-02-28T23:59:59Z" }
  };
  struct hk_maintenance *m = maintenance_new(keys, 2);
  (void)state;
  shows(m, TODAY, "[{\"match\":\"a*\",\"name\":\"one\",\"daily\":\"22:00-04:30\",\"now\":true}]");
  hk_maintenance_free(m);
  m = maintenance_new(keys, 4);
  assert_int_equal(hk_maintenance_begin(m, hk_string("b"), TODAY + 1, TODAY + HOUR + 999999999, hk_string("otto")), 0);
  shows(m, TODAY + 12 * HOUR,
        "[{\"match\":\"a*\",\"name\":\"one\",\"from\":\"2024-10-04T00:00:00Z\",\"to\":\"2030-02-28T23:59:59Z\",\"daily\":\"22:00-"
        "04:30\","
        "\"now\":false}]");
  shows(m, TODAY + 2,
        "[{\"match\":\"a*\",\"name\":\"one\",\"from\":\"2024-10-04T00:00:00Z\",\"to\":\"2030-02-28T23:59:59Z\",\"daily\":\"22:00-"
        "04:30\","
        "\"now\":true},{\"match\":\"b\",\"by\":\"otto\",\"from\":\"2024-10-04T00:00:00Z\",\"to\":\"2024-10-04T01:00:00Z\","
        "\"now\":true}]");
  hk_maintenance_free(m);
}

/* The file is written and read again; damaged lines are skipped, and the others are kept. */
static void test_kept(void **state)
{
  char path[] = "/tmp/hankeld-maintenance-XXXXXX";
  struct hk_disk disk = { NULL, NULL };
  struct hk_log log;
  int folder;
  (void)state;
  assert_non_null(mkdtemp(path));
  hk_log_init(&log, HK_LOG_ERROR);
  assert_int_equal(hk_disk_folder(&disk, AT_FDCWD, path, &folder), 0);
  struct hk_maintenance *m = maintenance_new(NULL, 0);
  hk_maintenance_open(m, &disk, folder, &log);
  assert_int_equal(hk_maintenance_begin(m, hk_string("press 4*"), TODAY, TODAY + HOUR, hk_string("otto at the desk")), 0);
  assert_int_equal(hk_maintenance_begin(m, hk_string(""), TODAY + DAY, TODAY + DAY + HOUR, hk_string("anna")), 0);
  assert_int_equal(hk_maintenance_save(m), 0);
  hk_maintenance_free(m);
  hk_maintenance_free(NULL);
  const int file = openat(folder, "maintenance", O_WRONLY | O_APPEND);
  static const char damaged[] = "12\tx\tanna\t*\n\n1\t2\t\t*\n5\t4\tanna\t*\n1\t2\tanna\t*\tmore\n1\t200000000000000000\tanna\ts*"
                                "\0w\n1\t200000000000000000\tanna\ts";
  assert_int_equal(write(file, damaged, sizeof damaged - 1), sizeof damaged - 1);
  close(file);
  m = maintenance_new(NULL, 0);
  hk_maintenance_open(m, &disk, folder, &log);
  assert_true(hk_maintenance_covers(m, hk_string("press 44"), TODAY + HOUR / 2));
  assert_false(hk_maintenance_covers(m, hk_string("saw"), TODAY + HOUR / 2));
  assert_true(hk_maintenance_covers(m, hk_string("saw"), TODAY + DAY));
  assert_false(hk_maintenance_covers(m, hk_string("saw"), 1));
  assert_false(hk_maintenance_covers(m, hk_string("s"), 1)); /* of a line that is cut off */
  assert_int_equal(hk_maintenance_end(m, hk_string("press 4*"), TODAY), 1);
  hk_maintenance_free(m);
  unlinkat(folder, "maintenance", 0);
  close(folder);
  rmdir(path);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_daily), cmocka_unit_test(test_days), cmocka_unit_test(test_asked),
                                      cmocka_unit_test(test_shown), cmocka_unit_test(test_kept) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
