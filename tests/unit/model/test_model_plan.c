/* Model files: their plans, and the errors of invalid files, with line and column. */
#include "cpu/model/model_plan.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define assert_near(is, wanted, by) assert_true(fabs((is) - (wanted)) <= (by))

#define LINE                                                                                                                     \
  "edge a b 1000 0.5 0.02 1000 10\n"                                                                                             \
  "edge b c 500 0.4 0.02 1250 5\n"
#define SENSORS                                                                                                                  \
  "sensor p.a p a boundary\n"                                                                                                    \
  "sensor p.c p c boundary\n"                                                                                                    \
  "sensor q.a q a check\n"

static const struct hk_model_plan *parsed(const char *text)
{
  const struct hk_model_plan *plan;
  char error[256] = "";
  if (hk_model_plan_parse(&plan, text, strlen(text), error, sizeof error) != 0)
    fail_msg("%s", error);
  return plan;
}

static uint32_t find(const struct hk_model_plan *plan, const char *name)
{
  return hk_model_plan_find(plan, name, strlen(name));
}

static void line(void **state)
{
  (void)state;
  const struct hk_model_plan *p = parsed("# of oil\r\nfluid 850\nunits bar m3/h # as they measure\n\n" LINE SENSORS
                                         "\tsensor  p.b p b check\nheight b 20\nheight c 5");
  assert_int_equal(p->pipes, 2);
  assert_int_equal(p->cells, 15);
  assert_int_equal(p->sensors, 4);
  assert_near(p->line->transit, 1.4, 1e-12);
  assert_near(p->line->shortest, 0.08, 1e-12);
  const double a = 3.14159265358979 / 4 * 0.25, b = 3.14159265358979 / 4 * 0.16;
  assert_near(p->line->impedance, 850 * 1000 / a, 1);
  assert_near(p->line->loss, 0.02 * 850 / 2 * (1000 / 0.5 / a / a + 500 / 0.4 / b / b), 1);
  assert_near(p->cell[3].wave, 1000 / 100.0, 1e-9);
  assert_near(p->cell[3].push, 1000 / 100.0, 1e-9);
  assert_near(p->cell[12].wave * p->cell[12].push, 12.5 * 12.5, 1e-9);
  assert_near(p->cell[0].lift, a * 9.80665 * 0.02, 1e-9);
  assert_near(p->cell[14].lift, -b * 9.80665 * 0.03, 1e-9);
  const struct hk_model_sensor *q = &p->sensor[find(p, "q.a")], *middle = &p->sensor[find(p, "p.b")];
  assert_true(q->flow && !q->boundary && q->point == 0 && q->loss == 0);
  assert_near(q->unit, 1.0 / 3600, 1e-15);
  assert_true(!middle->flow && middle->point == 10 && middle->unit == 1e5);
  assert_near(middle->loss, 0.02 * 850 / 2 * 1000 / 0.5 / a / a, 1);
  assert_int_equal(p->line->boundary[0], find(p, "p.a"));
  assert_int_equal(p->line->boundary[1], find(p, "p.c"));
  assert_int_equal(find(p, "p.d"), HK_MODEL_NONE);
  assert_int_equal(hk_model_plan_pipe(p, 0, 10)->first, 0);
  assert_int_equal(hk_model_plan_pipe(p, 0, 11)->first, 10);
  hk_model_plan_release(hk_model_plan_hold(p));
  hk_model_plan_release(p);
}

/* Plans that differ have different marks; files that are only written differently have the same. */
static void marks(void **state)
{
  (void)state;
  const char *texts[] = { LINE SENSORS,
                          "fluid 999\n" LINE SENSORS,
                          "units bar m3/h\n" LINE SENSORS,
                          "height b 1\n" LINE SENSORS,
                          LINE SENSORS "sensor p.b p b check\n",
                          LINE "edge c d 1 1 1 1 1\n" SENSORS "sensor x p c check\n" };
  uint32_t mark[5];
  const struct hk_model_plan *same = parsed("fluid 1000 # water\n" LINE "\n" SENSORS);
  for (size_t i = 0; i < 5; i++) {
    const struct hk_model_plan *p = parsed(texts[i]);
    mark[i] = p->mark;
    hk_model_plan_release(p);
    assert_true(mark[i] != 0 && (i == 0) == (mark[i] == same->mark));
    for (size_t k = 0; k < i; k++)
      assert_int_not_equal(mark[i], mark[k]);
  }
  hk_model_plan_release(same);
}

/* Lines of a file equal the same lines alone, wherever they are in the file. */
static void lines(void **state)
{
  (void)state;
  const struct hk_model_plan
      *alone = parsed(LINE SENSORS "height b 20\n"),
      *p = parsed("line first\nedge a b 100 0.2 0.02 1200 3\nsensor x p a boundary\nsensor y q b boundary\nsensor z p b check\n"
                  "line second\n" LINE SENSORS "height b 20\n");
  const struct hk_model_line *l = &p->line[1];
  assert_int_equal(p->lines, 2);
  assert_int_equal(p->cells, alone->cells + 3);
  assert_int_equal(p->longest, alone->cells);
  assert_int_equal(hk_model_all_points(p), alone->cells + 3 + 2);
  assert_int_equal(hk_model_first_point(p, 1), 4);
  assert_true(l->name.length == 6 && memcmp(l->name.text, "second", 6) == 0);
  assert_true(l->pipe == 1 && l->pipes == 2 && l->cell == 3 && l->cells == alone->cells);
  assert_true(l->impedance == alone->line->impedance && l->loss == alone->line->loss && l->transit == alone->line->transit);
  assert_memory_equal(&p->cell[3], alone->cell, alone->cells * sizeof *alone->cell);
  for (uint32_t i = 0; i < alone->sensors; i++) {
    const struct hk_model_sensor *there = &p->sensor[i + 3], *here = &alone->sensor[i];
    assert_true(there->line == 1 && there->point == here->point && there->loss == here->loss);
    assert_int_equal(find(p, i == 0 ? "p.a" : "q.a") < p->sensors, 1);
  }
  assert_int_equal(l->boundary[0], alone->line->boundary[0] + 3);
  assert_true(p->line[0].boundary[0] == 0 && p->line[0].boundary[1] == 1);
  assert_int_equal(hk_model_plan_pipe(p, 1, 11)->first, 10);
  hk_model_plan_release(alone);
  hk_model_plan_release(p);
}

static void faults(void **state)
{
  (void)state;
  static const char *const wrong[][2] = {
    { "", "there is no edge: the line has no pipe" },
    { "# nothing\n\n  pipe a b",
      "line 3, column 3: pipe: a line of the file begins with kind, fluid, units, line, edge, height or sensor" },
    { "fluid\n", "line 1, column 1: fluid: the form is: fluid DENSITY" },
    { "fluid 1 2\n", "line 1, column 1: fluid: the form is: fluid DENSITY" },
    { "fluid -1\n", "line 1, column 7: -1: not a density in kg/m3, from 0.1 to 30000" },
    { "fluid nan\n", "line 1, column 7: nan: not a density in kg/m3, from 0.1 to 30000" },
    { "fluid 1\nfluid 1\n", "line 2, column 1: fluid: was said before" },
    { "units atm m3/s\n", "line 1, column 7: atm: no unit of pressure: Pa, kPa, bar or psi" },
    { "units bar  gpm\n", "line 1, column 12: gpm: no unit of flow: m3/s, m3/h or l/s" },
    { "edge a b 1 1 1 1\n", "line 1, column 1: edge: the form is: edge A B LENGTH DIAMETER FRICTION WAVE CELLS" },
    { "edge a b 0 1 1 1 1\n", "line 1, column 10: 0: not a length in m, from 0.01 to 1e+07" },
    { "edge a b 1 1x 1 1 1\n", "line 1, column 12: 1x: not a diameter in m, from 0.0001 to 50" },
    { "edge a b 1 1 1 1 1.5\n", "line 1, column 18: 1.5: not a whole number" },
    { "edge a b 1 1 1 1 60000\nedge b c 1 1 1 1 60000", "line 2, column 18: 60000: the line has over 100000 cells with these" },
    { LINE "edge d e 1 1 1 1 1\n", "line 3, column 6: d: the pipe before ends at another node; pipes of a line stand one after "
                                   "the other, without branches (kind network has them)" },
    { LINE "edge c a 1 1 1 1 1\n", "line 3, column 8: a: this node is on the line already; a line has no loops" },
    { "edge a a 1 1 1 1 1\n", "line 1, column 8: a: this node is on the line already; a line has no loops" },
    { LINE "height d 1\n", "line 3, column 8: d: no pipe begins or ends at this node" },
    { LINE "sensor s v a check\n", "line 3, column 10: v: neither p, a pressure, nor q, a flow" },
    { LINE "sensor s p a source\n",
      "line 3, column 14: source: neither boundary, what drives the model, nor check, what it is compared with" },
    { LINE "sensor s p d check\n", "line 3, column 12: d: no pipe begins or ends at this node" },
    { LINE "sensor s p b boundary\n", "line 3, column 8: s: a boundary stands at an end of the line; make this one a check" },
    { LINE "sensor s p a boundary\nsensor t q a boundary\n",
      "line 4, column 8: t: that end of the line has a boundary already; make one of them a check" },
    { LINE "sensor s q a boundary\nsensor t q c boundary\n",
      "line 4, column 8: t: both boundaries are flows, and nothing sets the pressure; make one a pressure" },
    { LINE SENSORS "sensor p.a p b check\n", "line 6, column 8: p.a: there is a sensor of that name already" },
    { LINE "sensor s p a boundary\n",
      "line 2, column 8: c: this end of the line has no boundary; a sensor there is needed, which drives the model" },
    { LINE "sensor s p c boundary\n",
      "line 1, column 6: a: this end of the line has no boundary; a sensor there is needed, which drives the model" },
    { LINE "sensor s p a boundary\nsensor t q c boundary\n", "no sensor is a check: there is nothing to compare the model with" },
    { "line\n", "line 1, column 1: line: the form is: line NAME" },
    { LINE SENSORS "line b\n",
      "line 6, column 6: b: what stands before the first line belongs to none: begin it with a line, too" },
    { "line a\nline b\n", "line 2, column 6: b: the line before has no pipe" },
    { "line a\n" LINE SENSORS "line b\n", "line 7, column 6: b: the line has no pipe" },
    { "line a\n" LINE SENSORS "line b\nedge a b 1 1 1 1 1\nsensor b p a boundary\n",
      "line 8, column 8: b: this end of the line has no boundary; a sensor there is needed, which drives the model" },
    { "line a\n" LINE SENSORS "line b\nedge x y 1 1 1 1 1\nsensor b p a boundary\n",
      "line 9, column 12: a: no pipe begins or ends at this node" },
    { "line a\n" LINE SENSORS "line b\nedge a b 1 1 1 1 1\nsensor q.a p a boundary\nsensor o p b boundary\n",
      "line 9, column 8: q.a: there is a sensor of that name already" },
    { "\x1b[31m\n", "line 1, column 1: ?[31m: a line of the file begins with kind, fluid, units, line, edge, height or sensor" },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const struct hk_model_plan *plan;
    char error[256] = "";
    assert_int_equal(hk_model_plan_parse(&plan, wrong[i][0], strlen(wrong[i][0]), error, sizeof error), -EINVAL);
    assert_string_equal(error, wrong[i][1]);
  }
}

/* From a file, whose name is in errors. */
static void files(void **state)
{
  (void)state;
  char path[] = "/tmp/plan-XXXXXX", error[256] = "";
  const struct hk_model_plan *plan;
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, LINE SENSORS, strlen(LINE SENSORS)), strlen(LINE SENSORS));
  assert_int_equal(hk_model_plan_read(&plan, path, error, sizeof error), 0);
  hk_model_plan_release(plan);
  assert_int_equal(write(fd, "x", 1), 1);
  assert_int_equal(hk_model_plan_read(&plan, path, error, sizeof error), -EINVAL);
  assert_non_null(strstr(error, path));
  assert_non_null(strstr(error, "line 6, column 1: x:"));
  assert_int_equal(ftruncate(fd, HK_MODEL_BYTES + 1), 0);
  assert_int_equal(hk_model_plan_read(&plan, path, error, sizeof error), -EFBIG);
  close(fd);
  unlink(path);
  assert_int_equal(hk_model_plan_read(&plan, path, error, sizeof error), -ENOENT);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(line), cmocka_unit_test(marks), cmocka_unit_test(lines),
                                      cmocka_unit_test(faults), cmocka_unit_test(files) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
