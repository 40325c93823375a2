/* Groups and fields of the configuration: which sensors belong to them, and the names of their series. */
#include "daemon/sensors/detector_rules.h"
#include "tests/unit/support/config_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GROUPS                                                                                                                   \
  "[detector all]\nmatch = *\n[group press]\nmatch = plant/(*)/*\nwait = 9\n"                                                    \
  "[detector more]\nmatch = *\nalgorithm = ika, graph\n[group pumps]\nmatch = (*).pump?\n"                                       \
  "[group racks]\nmatch = (*): disk\n[group last]\nmatch = 7(*)\n"

/* Which sensors belong to a machine, and its name. */
static void test_groups(void **state)
{
  (void)state;
  static const struct {
    const char *name, *series;
  } sensors[] = { { "plant/a/x", "press#a" },
                  { "plant/a/b/x", "press#a" },
                  { "plant/a/", "press#a" },
                  { "plant/a", NULL },
                  { "plant//x", NULL },
                  { "plant//x/y", "press#/x" },
                  { "a.pump1", "pumps#a" },
                  { ".pump1", NULL },
                  { "a.b.pump1", "pumps#a.b" },
                  { "a.pump12", NULL },
                  { "", NULL },
                  { "plant/\xc3\xa4/x", "press#\xc3\xa4" },
                  { "7: disk", "racks#7: disk" },
                  { "77: disk", "racks#77: disk" } };
  struct hk_config c;
  struct faults faults;
  struct hk_sections *sections;
  assert_int_equal(read_text(&c, GROUPS, &faults), 0);
  assert_int_equal(c.n_groups, 4);
  assert_int_equal(c.groups[0].rule.wait, 9);
  assert_int_equal(c.n_detectors, 3 + 4);
  for (uint32_t i = 0; i < 4; i++) {
    const struct hk_config_detector *d = &c.detectors[3 + i];
    assert_true(d->group && d->derived && d->number == 3 + i && d->name[0] == '#' && strcmp(d->name + 1, c.groups[i].name) == 0);
  }
  assert_int_equal(hk_sections_new(&sections, &c), 0);
  for (size_t i = 0; i < sizeof sensors / sizeof *sensors; i++) {
    struct hk_machine_name machine;
    char series[HK_NAME_MAX];
    const bool any = hk_sections_group(sections, sensors[i].name, strlen(sensors[i].name), &machine);
    const bool racks = sensors[i].series && strncmp(sensors[i].series, "racks", 5) == 0;
    assert_int_equal(any, sensors[i].series != NULL);
    if (!any)
      continue;
    const size_t n = hk_sections_series(&machine, series), wanted = strcspn(sensors[i].series, racks ? ":" : "");
    assert_int_equal(n, wanted);
    assert_memory_equal(series, sensors[i].series, n);
  }
  hk_sections_release(sections);
  hk_config_free(&c);
}

/* Names of machines up to the longest, and beyond. */
static void test_long_names(void **state)
{
  (void)state;
  struct hk_config c;
  struct faults faults;
  struct hk_sections *sections;
  assert_int_equal(read_text(&c, GROUPS, &faults), 0);
  assert_int_equal(hk_sections_new(&sections, &c), 0);
  char long_name[HK_NAME_MAX], series[HK_NAME_MAX];
  struct hk_machine_name machine;
  memset(long_name, 'x', sizeof long_name);
  memcpy(long_name + sizeof long_name - 6, ".pump1", 6);
  assert_true(hk_sections_group(sections, long_name, sizeof long_name, &machine));
  assert_int_equal(hk_sections_series(&machine, series), sizeof long_name);
  memcpy(long_name + sizeof long_name - 6, ": disk", 6);
  assert_true(hk_sections_group(sections, long_name, sizeof long_name, &machine));
  assert_int_equal(hk_sections_series(&machine, series), sizeof long_name);
  memcpy(long_name, "7", 1);
  memcpy(long_name + sizeof long_name - 6, "yyyyyy", 6);
  assert_true(hk_sections_group(sections, long_name, sizeof long_name, &machine));
  assert_int_equal(hk_sections_series(&machine, series), 0);
  hk_sections_release(sections);
  hk_config_free(&c);
}

/* statistic = both makes a second group of the same machines, on the same shard as the first one. */
static void test_both(void **state)
{
  (void)state;
  struct hk_config c;
  struct faults faults = { 0 };
  struct hk_sections *sections;
  struct hk_machine_name first, second;
  char series[HK_NAME_MAX], room[HK_NAME_MAX];
  assert_int_equal(read_text(&c,
                             "[detector all]\nmatch = *\n[group g]\nmatch = (*)/a\nstatistic = both\nnovelty.threshold = 2\n"
                             "[group h]\nmatch = x(*)\nstatistic = novelty\n[group i]\nmatch = y(*)\n",
                             &faults),
                   0);
  assert_int_equal(c.n_groups, 4);
  assert_int_equal(c.n_detectors, 1 + 4);
  assert_true(c.groups[0].rule.statistic == HK_GROUP_JOINT && c.groups[3].rule.statistic == HK_GROUP_NOVELTY);
  assert_true(strcmp(c.groups[3].name, "g.novelty") == 0 && c.groups[3].second && c.groups[3].rule.novelty_threshold == 2);
  assert_true(c.detectors[4].group && c.detectors[4].second && !c.detectors[1].second);
  assert_int_equal(hk_sections_new(&sections, &c), 0);
  assert_true(hk_sections_seconded(sections));
  assert_true(hk_sections_group(sections, "m/a", 3, &first) && strcmp(first.group, "g") == 0 && !first.first);
  assert_true(hk_sections_second(sections, "m/a", 3, &second) && strcmp(second.first, "g") == 0);
  assert_true(hk_sections_group(sections, "x7", 2, &first) && first.rule->statistic == HK_GROUP_NOVELTY);
  assert_false(hk_sections_second(sections, "x7", 2, &first));
  const struct hk_string name = { series, hk_sections_series(&second, series) };
  assert_true(name.length == 11 && memcmp(series, "g.novelty#m", 11) == 0);
  struct hk_string home = hk_sections_home(sections, second.number, name, room);
  assert_true(home.length == 3 && memcmp(home.data, "g#m", 3) == 0);
  home = hk_sections_home(sections, 1, (struct hk_string){ "g#m", 3 }, room);
  assert_true(home.length == 3 && memcmp(home.data, "g#m", 3) == 0);
  hk_sections_release(sections);
  hk_config_free(&c);
  assert_int_not_equal(read_text(&c,
                                 "[detector all]\nmatch = *\n[group g]\nmatch = (*)/a\nstatistic = both\n"
                                 "[group g.novelty]\nmatch = x(*)\n",
                                 &faults),
                       0);
  hk_config_free(&c);
}

/* Which sensors belong to a field, the names of its series, and the detector of each member. */
static void test_fields(void **state)
{
  (void)state;
  struct hk_config c;
  struct faults faults = { 0 };
  struct hk_sections *sections;
  struct hk_machine_name found;
  char series[HK_NAME_MAX];
  assert_int_equal(
      read_text(&c,
                "[detector all]\nmatch = *\nrate = yes\n[detector f]\nmatch = none\nalgorithm = shift, graph\nrate = yes\n"
                "[group g]\nmatch = (*)/a\n[field roofs]\nmatch = roof/*\noperator = residual\ndetector = f\nq = 4\n"
                "[field halls]\nmatch = (*)/power\noperator = residual\ndetector = all\n",
                &faults),
      0);
  assert_int_equal(c.n_fields, 2);
  assert_int_equal(c.n_detectors, 3 + 1 + 3 + 2);
  static const char *const names[] = {
    "all", "f", "f#graph", "#g", "roofs#residual", "roofs#residual.graph", "#roofs", "halls#residual", "#halls"
  };
  for (uint32_t i = 0; i < c.n_detectors; i++) {
    const struct hk_config_detector *d = &c.detectors[i];
    assert_string_equal(d->name, names[i]);
    assert_true(d->field == (i > 3) && d->group == (i > 2) && d->residual == (i == 4 || i == 5 || i == 7) &&
                d->derived == (i > 1));
    assert_true(d->detector.rate == (i < 3)); /* a residual is no counter */
  }
  assert_int_equal(c.detectors[5].detector.algorithm, c.detectors[2].detector.algorithm);
  assert_int_equal(hk_sections_new(&sections, &c), 0);
  assert_true(hk_sections_field(sections, "roof/1", 6, &found) && found.field->q == 4 && found.series->n == 2);
  assert_string_equal(found.series->suffix[0], "#residual");
  assert_string_equal(found.series->suffix[1], "#residual.graph");
  assert_int_equal(hk_sections_series(&found, series), strlen("roofs#field"));
  assert_memory_equal(series, "roofs#field", strlen("roofs#field"));
  assert_true(hk_sections_field(sections, "hall 1/power", 12, &found));
  assert_int_equal(hk_sections_series(&found, series), strlen("halls#hall 1"));
  assert_true(hk_sections_field(sections, "roof/power", 10, &found) && strcmp(found.group, "roofs") == 0); /* the first one */
  assert_false(hk_sections_field(sections, "x", 1, &found));
  for (uint32_t number = 0; number < 9; number++)
    assert_true(hk_sections_group_by(sections, number, &found) == (number > 2) && (number < 4 || found.field));
  hk_sections_release(sections);
  hk_config_free(&c);
  static const char *const bad[] = { "[field a#b]\n",
                                     "[field x]\nmatch = *\n",
                                     "[field x]\nmatch = *\noperator = residual\n",
                                     "[field x]\nmatch = *\noperator = residual\ndetector = none\n",
                                     "[field x]\nmatch = (*)(*)\noperator = residual\ndetector = all\n",
                                     "[field x]\nmatch = *\noperator = residual\ndetector = all\nneighbours = nearest\n",
                                     "[group x]\nmatch = (*)\n[field x]\nmatch = *\noperator = residual\ndetector = all\n" };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char text[512];
    snprintf(text, sizeof text, "[detector all]\nmatch = *\n%s", bad[i]);
    assert_true(read_text(&c, text, &faults) != 0);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_groups), cmocka_unit_test(test_long_names),
                                      cmocka_unit_test(test_both), cmocka_unit_test(test_fields) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
