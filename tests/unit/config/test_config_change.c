/* The effects of another configuration on a running daemon. */
#include "daemon/config/config_diff.h"
#include "daemon/sensors/detector_rules.h"
#include "tests/unit/support/config_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Compares a file with the one that a daemon runs with. */
static void test_change(void **state)
{
  (void)state;
  struct hk_config running, read;
  struct faults faults = { 0 };
  struct hk_buffer told = { 0 };
  bool taken[HK_DETECTORS_MAX] = { [0] = true, [1] = true, [2] = true, [3] = true }; /* 3 is another one's, that goes */
  assert_int_equal(read_text(&running,
                             "[daemon]\nmax_sensors = 10\nstuck = off\nqueue = 1 MiB\n"
                             "[listen in]\nprotocol = line\naddress = 127.0.0.1:1\n"
                             "[detector a]\nmatch = a*\n[detector b]\nmatch = b*\n[detector c]\nmatch = c*\n",
                             &faults),
                   0);
  assert_int_equal(read_text(&read,
                             "[daemon]\nmax_sensors = 11\nstuck = 90s\nqueue = 1536 KiB\n"
                             "[listen in]\nprotocol = line\naddress = 127.0.0.1:2\n"
                             "[detector d]\nmatch = d*\n[detector b]\nmatch = x*\n[detector a]\nmatch = a*\nwindow = 9\n",
                             &faults),
                   0);
  assert_true(hk_change_make(&running, &read, taken, &told));
  hk_buffer_put(&told, "", 1);
  assert_string_equal(told.data, "max_sensors: 10 -> 11 needs a restart; it stays 10\n"
                                 "queue: 1MiB -> 1536KiB\n"
                                 "stuck: off -> 90s\n"
                                 "[listen in] is changed: needs a restart; it stays as it was\n"
                                 "[detector d] is new\n"
                                 "[detector b]: match = b* -> x*\n"
                                 "[detector a] is changed (window, gap, krylov, cooldown): its sensors warm up again\n"
                                 "[detector c] was removed\n"
                                 "detectors or groups stand in another order\n");
  assert_int_equal(read.detectors[0].number, 4);
  assert_int_equal(read.detectors[1].number, 1);
  assert_int_equal(read.detectors[2].number, 5);
  assert_int_equal(read.max_sensors, 10);
  assert_ptr_equal(read.listeners, running.listeners);
  read.listeners = NULL;
  hk_config_free(&read);
  told.size = 0;
  assert_int_equal(read_text(&read,
                             "[daemon]\nmax_sensors = 10\nstuck = off\nqueue = 1024 KiB\n"
                             "[listen in]\nprotocol = line\naddress = 127.0.0.1:1\n"
                             "[detector a]\nmatch = a*\n[detector b]\nmatch = b*\n[detector c]\nmatch = c*\n",
                             &faults),
                   0);
  assert_false(hk_change_make(&running, &read, taken, &told));
  read.listeners = NULL;
  hk_config_free(&read);
  hk_config_free(&running);
  hk_buffer_free(&told);
}

/* Values that derive from keys that need a restart stay the same, unless they are set. */
static void test_change_of_defaults(void **state)
{
  (void)state;
  struct hk_config running, read;
  struct faults faults = { 0 };
  struct hk_buffer told = { 0 };
  bool taken[HK_DETECTORS_MAX] = { true };
  assert_int_equal(read_text(&running, "[daemon]\nmax_connections = 10\nbackend = cpu\n" DETECTOR, &faults), 0);
  assert_int_equal(read_text(&read, "[daemon]\nmax_connections = 20\nbackend = cuda\n" DETECTOR, &faults), 0);
  assert_int_equal(read.max_connections_per_address, 10);
  assert_true(hk_change_make(&running, &read, taken, &told));
  assert_int_equal(read.max_connections_per_address, 5);
  assert_int_equal(read.on_device_failure, HK_DEVICE_FAILURE_CPU);
  read.listeners = NULL;
  hk_config_free(&read);
  assert_int_equal(
      read_text(&read, "[daemon]\nmax_connections = 10\nmax_connections_per_address = 7\nbackend = cpu\n" DETECTOR, &faults), 0);
  assert_true(hk_change_make(&running, &read, taken, &told));
  hk_buffer_put(&told, "", 1);
  assert_string_equal(told.data, "backend: cpu -> cuda needs a restart; it stays cpu\n"
                                 "max_connections: 10 -> 20 needs a restart; it stays 10\n"
                                 "max_connections_per_address: 5 -> 7\n");
  read.listeners = NULL;
  hk_config_free(&read);
  hk_config_free(&running);
  hk_buffer_free(&told);
}

/* Whether a reload keeps the numbers of unchanged detectors, and finds new and removed ones. */
static void test_change_of_algorithms(void **state)
{
  (void)state;
  struct hk_config before, after;
  struct faults faults;
  bool in_use[HK_DETECTORS_MAX] = { true, true, true };
  struct hk_buffer told = { 0 };
  assert_int_equal(read_text(&before, DETECTOR "algorithm = ika, graph, shift\nwindow = 20\n", &faults), 0);
  assert_int_equal(read_text(&after, DETECTOR "algorithm = ika, svd, shift\nwindow = 20\nshift.stride = 2\n", &faults), 0);
  assert_true(hk_change_make(&before, &after, in_use, &told));
  assert_int_equal(after.detectors[0].number, 0); /* the sensors' own windows stay */
  assert_int_equal(after.detectors[1].number, 3);
  assert_int_equal(after.detectors[2].number, 4);
  hk_buffer_put(&told, "", 1);
  assert_string_equal(told.data,
                      "[detector all#svd] is new\n[detector all#shift] is changed (stride): its sensors warm up again\n"
                      "[detector all#graph] was removed\n");
  hk_buffer_free(&told);
  after.listeners = NULL; /* the other's */
  hk_config_free(&before);
  hk_config_free(&after);
}

/* The series of a group continue if its keys are unchanged, for any glob and at any place of the file. */
static void test_change_of_groups(void **state)
{
  (void)state;
  static const char before[] =
      "[detector a]\nmatch = *\n[group g]\nmatch = (*).x\n[group h]\nmatch = (*).y\nhop = 2\n[group i]\nmatch = (*).z\n";
  struct hk_config running, read;
  struct faults faults = { 0 };
  struct hk_buffer told = { 0 };
  bool taken[HK_DETECTORS_MAX] = { [0] = true, [1] = true, [2] = true, [3] = true };
  struct hk_sections *sections;
  struct hk_machine_name found;
  assert_int_equal(read_text(&running, before, &faults), 0);
  assert_int_equal(read_text(&read,
                             "[detector a]\nmatch = *\n[group j]\nmatch = (*).j\n[group h]\nmatch = (*).y\nhop = 3\n"
                             "[group g]\nmatch = (*).xx\n",
                             &faults),
                   0);
  assert_true(hk_change_of_groups(&running, &read));
  assert_true(hk_change_make(&running, &read, taken, &told));
  hk_buffer_put(&told, "", 1);
  assert_string_equal(told.data,
                      "[group j] is new\n[group h] is changed: its machines warm up again\n[group g]: match = (*).x -> (*).xx\n"
                      "[group i] was removed\ndetectors or groups stand in another order\n");
  assert_int_equal(read.n_detectors, 4);
  assert_int_equal(read.detectors[0].number, 0);
  assert_int_equal(read.detectors[1].number, 4); /* j */
  assert_int_equal(read.detectors[2].number, 5); /* h */
  assert_int_equal(read.detectors[3].number, 1); /* g */
  assert_int_equal(hk_sections_new(&sections, &read), 0);
  assert_true(hk_sections_grouped(sections));
  assert_true(hk_sections_group(sections, "m.y", 3, &found));
  assert_int_equal(found.number, 5);
  assert_int_equal(found.rule->hop, 3);
  assert_true(hk_sections_group_by(sections, 1, &found));
  assert_string_equal(found.group, "g");
  assert_false(hk_sections_group_by(sections, 2, &found));
  hk_sections_release(sections);
  read.listeners = NULL;
  hk_config_free(&read);
  told.size = 0;
  assert_int_equal(read_text(&read, before, &faults), 0);
  assert_false(hk_change_of_groups(&running, &read));
  assert_false(hk_change_make(&running, &read, taken, &told));
  read.listeners = NULL;
  hk_config_free(&read);
  hk_config_free(&running);
  hk_buffer_free(&told);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_change), cmocka_unit_test(test_change_of_defaults),
                                      cmocka_unit_test(test_change_of_algorithms), cmocka_unit_test(test_change_of_groups) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
