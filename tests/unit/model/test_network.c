/* Networks of pipes: a network that is a line equals the line; loops and branches against known results; the
 * derivatives against differences; and, of `kind network` as a model, departures of checks, friction, states and losses. */
#include "cpu/model/model_state.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define assert_near(is, wanted, by) assert_true(fabs((is) - (wanted)) <= (by))

static const struct hk_pipelines_place HOST = { &hk_pipelines_host, 1 };

static const struct hk_model_plan *parse(const char *text)
{
  const struct hk_model_plan *plan;
  char error[256] = "";
  const int status = hk_model_plan_parse(&plan, text, strlen(text), error, sizeof error);
  if (status != 0)
    fail_msg("%s", error);
  return plan;
}

static struct hk_network open_network(const struct hk_model_plan *plan, const struct hk_sparse_kind *kind)
{
  struct hk_network w;
  assert_int_equal(hk_network_open(&w, plan->network, plan->line->impedance, kind), 0);
  return w;
}

static double value_of(struct hk_network *w, enum hk_network_what what, uint32_t at)
{
  double value;
  hk_network_read(w, &(struct hk_network_place){ what, at }, 1, &value);
  return value;
}

/* --- as a line ---------------------------------------------------------------------------------------------------------- */

#define PIPES "edge a b 6000 0.5 0.02 1000 12\nedge b c 4000 0.4 0.02 1100 8\nheight b 20\nsensor p p b check\n"

static void test_line(void **state)
{
  const struct hk_model_plan *line = parse(PIPES "sensor a p a boundary\nsensor c q c boundary\n"),
                             *plan = parse("kind network\n" PIPES "sensor a p a boundary\nsensor c out c boundary\n");
  const struct hk_sparse_kind *kind[2] = { hk_sparse_band, hk_sparse_ldl };
  (void)state;
  for (uint32_t k = 0; k < 2; k++) {
    struct hk_pipeline one;
    if (!kind[k])
      continue;
    struct hk_network w = open_network(plan, kind[k]);
    assert_int_equal(hk_pipeline_open(&one, line->cell, line->cells, line->line->impedance), 0);
    for (uint32_t row = 0; row < 200; row++) {
      const double is[2] = { 3e6 + 1e5 * sin(row / 9.0), 0.2 + (row > 50 && row < 120 ? -0.25 : 0) };
      const struct hk_pipeline_end end[2] = { { 1, 0, 0, is[0] }, { 0, 1, 0, is[1] } };
      if (row == 0) {
        assert_int_equal(hk_pipeline_steady(&one, end, 1.1), 0);
        assert_int_equal(hk_network_steady(&w, is, 1.1), 0);
      } else {
        assert_int_equal(hk_pipeline_step(&one, end, NULL, 0.7, 1.1), 0);
        assert_int_equal(hk_network_step(&w, is, NULL, 0.7, 1.1), 0);
        assert_true(w.error <= HK_BAND_ERROR);
      }
      assert_near(value_of(&w, HK_NETWORK_PRESSURE, 1), hk_pipeline_pressure(&one, 12), 1e-3);
      assert_near(value_of(&w, HK_NETWORK_PRESSURE, 2), hk_pipeline_pressure(&one, 20), 1e-3);
      assert_near(value_of(&w, HK_NETWORK_FROM, 0), hk_pipeline_flow(&one, 0), 1e-9);
      assert_near(value_of(&w, HK_NETWORK_OUT, 0), -hk_pipeline_flow(&one, 0), 1e-9);
      assert_near(value_of(&w, HK_NETWORK_INTO, 11), -hk_pipeline_flow(&one, 12), 1e-9);
    }
    hk_pipeline_close(&one);
    hk_network_close(&w);
  }
  hk_model_plan_release(line);
  hk_model_plan_release(plan);
}

/* --- loops -------------------------------------------------------------------------------------------------------------- */

/* Two tanks, a loop between them, a dead end, and customers. */
static const char TOWN[] =
    "kind network\nunits bar l/s\n"
    "edge west  m1 800 0.30 0.02 1100 4\nedge m1 m2 600 0.20 0.022 1100 3\nedge m2 m3 500 0.15 0.025 1100 2\n"
    "edge m4 m3 400 0.20 0.02 1100 2\nedge m1 m4 700 0.20 0.02 1100 3\nedge m4 east 900 0.25 0.02 1100 4\n"
    "edge m3 end 300 0.10 0.03 1100 1\nedge m2 m3 520 0.15 0.025 1100 2\n"
    "height west 55\nheight east 52\nheight m3 12\ndemand m2 4\ndemand m4 3\n"
    "sensor west.p p west boundary\nsensor east.p p east boundary\nsensor m3.out out m3 boundary\n"
    "sensor west.in in west check\nsensor east.in in east check\nsensor m2.p p m2 check\n"
    "sensor m3.p p m3 check\nsensor m14 q m4 m1 check\n";

enum { WEST_P, EAST_P, M3_OUT, WEST_IN, EAST_IN, M2_P, M3_P, M14, SENSORS };

static const double FEEDS[3] = { 3e5, 3.2e5, 0.015 };

/* In the steady state flows balance at nodes, pressures fall along pipes by friction and height, and all sums around a loop are
 * zero: which is that of pressures. */
static void test_steady(void **state)
{
  const struct hk_model_plan *plan = parse(TOWN);
  struct hk_network w = open_network(plan, NULL);
  double out[3] = { 0 };
  (void)state;
  assert_int_equal(plan->nodes, 7);
  assert_int_equal(plan->network->points, 7 + 21 - 8);
  assert_int_equal(hk_network_steady(&w, FEEDS, 1), 0);
  for (uint32_t i = 0; i < plan->cells; i++) {
    const struct hk_pipeline_cell *c = &plan->cell[i];
    const uint32_t *end = plan->network->end[i];
    const double q = value_of(&w, HK_NETWORK_FROM, i), fall = w.state[end[0]] - w.state[end[1]];
    assert_near(c->push * fall, c->lift + c->friction * q * fabs(q), 1e-7 * c->push * fabs(w.state[end[0]]));
    assert_near(q, -value_of(&w, HK_NETWORK_INTO, i), 1e-15);
  }
  for (uint32_t i = 0; i < 2; i++)
    out[i] = value_of(&w, HK_NETWORK_OUT, plan->network->drive[i].point);
  assert_near(out[0] + out[1], -(0.015 + 0.004 + 0.003), 1e-10);
  assert_near(value_of(&w, HK_NETWORK_FROM, 18), 0, 1e-8); /* the dead end */
  /* it stays there */
  const double before = value_of(&w, HK_NETWORK_PRESSURE, 3);
  for (uint32_t k = 0; k < 50; k++)
    assert_int_equal(hk_network_step(&w, FEEDS, NULL, 1, 1), 0);
  assert_near(value_of(&w, HK_NETWORK_PRESSURE, 3), before, 1e-3 * 1e5);
  assert_near(value_of(&w, HK_NETWORK_OUT, plan->network->drive[0].point), out[0], 1e-6);
  hk_network_close(&w);
  hk_model_plan_release(plan);
}

/* The outflow of a leak: after a while it comes from the tanks. */
static void test_leak(void **state)
{
  const struct hk_model_plan *plan = parse(TOWN);
  struct hk_network w = open_network(plan, NULL);
  double leak[20] = { 0 }, before, after;
  (void)state;
  leak[10] = 0.002;
  assert_int_equal(hk_network_steady(&w, FEEDS, 1), 0);
  before = value_of(&w, HK_NETWORK_OUT, 0) + value_of(&w, HK_NETWORK_OUT, plan->network->drive[1].point);
  for (uint32_t k = 0; k < 400; k++)
    assert_int_equal(hk_network_step(&w, FEEDS, leak, 1, 1), 0);
  after = value_of(&w, HK_NETWORK_OUT, 0) + value_of(&w, HK_NETWORK_OUT, plan->network->drive[1].point);
  assert_near(after, before - 0.002, 1e-7);
  hk_network_close(&w);
  hk_model_plan_release(plan);
}

/* Derivatives by friction, by what leaves at each point, and by given pressures, against differences of steady states. */
static void test_derivatives(void **state)
{
  const struct hk_model_plan *plan = parse(TOWN);
  struct hk_network w = open_network(plan, NULL), other = open_network(plan, NULL);
  double by_friction[SENSORS], at[2][SENSORS], by_point[20];
  (void)state;
  assert_int_equal(hk_network_steady(&w, FEEDS, 1), 0);
  assert_int_equal(hk_network_linearise(&w, 1), 0);
  assert_int_equal(hk_network_by_friction(&w, plan->place, SENSORS, by_friction), 0);
  for (int k = 0; k < 2; k++) {
    assert_int_equal(hk_network_steady(&other, FEEDS, 1 + (k ? 1e-3 : -1e-3)), 0);
    hk_network_read(&other, plan->place, SENSORS, at[k]);
  }
  for (uint32_t i = WEST_IN; i < SENSORS; i++)
    assert_near(by_friction[i], (at[1][i] - at[0][i]) / 2e-3, 1e-3 * fabs(by_friction[i]) + 1e-9);
  for (uint32_t i = WEST_IN; i < SENSORS; i++) {
    assert_int_equal(hk_network_by_point(&w, &plan->place[i], by_point), 0);
    for (uint32_t drive = 0; drive < 3; drive++) {
      const double by = plan->network->drive[drive].flow ? 1e-5 : 100;
      for (int k = 0; k < 2; k++) {
        double is[3] = { FEEDS[0], FEEDS[1], FEEDS[2] };
        is[drive] += k ? by : -by;
        assert_int_equal(hk_network_steady(&other, is, 1), 0);
        hk_network_read(&other, plan->place, SENSORS, at[k]);
      }
      const double wanted = (at[1][i] - at[0][i]) / (2 * by), is = by_point[plan->network->drive[drive].point];
      assert_near(is, wanted, 2e-3 * fabs(wanted) + 1e-12);
    }
  }
  hk_network_close(&w);
  hk_network_close(&other);
  hk_model_plan_release(plan);
}

/* --- as a model --------------------------------------------------------------------------------------------------------- */

struct bench {
  const struct hk_model_plan *plan;
  struct hk_model *model;
  struct hk_network town; /* what there is */
  double friction, leak[20];
  int64_t row;
  double y[SENSORS];
  const double *nu;
};

static struct bench start(double friction, double adapt)
{
  struct bench b = { .plan = parse(TOWN), .friction = friction };
  const struct hk_model_rule rule = { 1, adapt, 3.75, 4 };
  char error[256];
  b.town = open_network(b.plan, NULL);
  assert_int_equal(hk_model_new(&b.model, b.plan, &rule, &HOST, error, sizeof error), 0);
  assert_int_equal(hk_network_steady(&b.town, FEEDS, friction), 0);
  return b;
}

static void stop(struct bench *b)
{
  hk_model_free(b->model);
  hk_network_close(&b->town);
  hk_model_plan_release(b->plan);
}

/* The sensors' readings one row later. */
static void measure(struct bench *b)
{
  const double t = (double)b->row++,
               is[3] = { FEEDS[0] + 2e4 * sin(t / 40), FEEDS[1] + 1e4 * sin(t / 7), 0.015 + 0.003 * sin(t / 90) };
  assert_int_equal(hk_network_step(&b->town, is, b->leak, 1, b->friction), 0);
  hk_network_read(&b->town, b->plan->place, SENSORS, b->y);
  for (uint32_t i = 0; i < SENSORS; i++)
    b->y[i] = (i < 3 ? is[i] : b->y[i]) / b->plan->sensor[i].unit;
}

static enum hk_model_turn row(struct bench *b, int64_t at)
{
  b->nu = hk_model_row(b->model, at, b->y);
  return hk_model_turn_of(b->model, 0);
}

static void go(struct bench *b, uint32_t rows)
{
  for (uint32_t i = 0; i < rows; i++) {
    measure(b);
    (void)row(b, b->row);
  }
}

static void test_checks(void **state)
{
  struct bench b = start(1, 0);
  (void)state;
  measure(&b);
  assert_int_equal(row(&b, 1), HK_MODEL_BEGINS);
  go(&b, 300);
  assert_int_equal(hk_model_turn_of(b.model, 0), HK_MODEL_SAYS);
  for (uint32_t i = WEST_IN; i < SENSORS; i++)
    assert_near(b.nu[i], 0, 1e-6);
  assert_true(isnan(b.nu[WEST_P]) && isnan(b.nu[M3_OUT]));
  assert_near(hk_model_seen(b.model, WEST_IN), b.y[WEST_IN], 1e-6);
  assert_near(b.y[WEST_IN] + b.y[EAST_IN], 22, 4); /* l/s that the town takes */
  b.leak[10] = 0.001;
  go(&b, 300);
  assert_near(b.nu[WEST_IN] + b.nu[EAST_IN], 1, 1e-2); /* l/s */
  assert_true(b.nu[M3_P] < -1e-3);
  stop(&b);
}

static void test_friction(void **state)
{
  struct bench b = start(1.2, 0.002);
  (void)state;
  go(&b, 3000);
  assert_near(hk_model_friction(b.model, 0), 1.2, 5e-3);
  stop(&b);
}

/* A state that is read again continues with the same bits; another plan's is refused. */
static void test_state(void **state)
{
  struct bench b = start(1.1, 0.002);
  const size_t size = hk_model_state_size(b.plan);
  const struct hk_model_rule rule = { 1, 0.002, 3.75, 4 };
  struct hk_model *again;
  double *saved = malloc(size), *one = malloc(size), *other = malloc(size);
  char error[256];
  (void)state;
  go(&b, 200);
  b.y[M3_OUT] = NAN; /* a boundary that is held */
  (void)row(&b, ++b.row);
  hk_model_write(b.model, saved);
  assert_int_equal(hk_model_new(&again, b.plan, &rule, &HOST, error, sizeof error), 0);
  assert_true(hk_model_read(again, saved, size));
  for (uint32_t i = 0; i < 100; i++) {
    measure(&b);
    (void)row(&b, b.row);
    const double *nu = hk_model_row(again, b.row, b.y);
    assert_memory_equal(nu, b.nu, SENSORS * sizeof *nu);
  }
  hk_model_write(b.model, one);
  hk_model_write(again, other);
  assert_memory_equal(one, other, size);
  saved[size / sizeof *saved - 1] = NAN;
  assert_false(hk_model_read(again, saved, size));
  assert_false(hk_model_read(again, saved, size - 8));
  hk_model_free(again);
  free(saved);
  free(one);
  free(other);
  stop(&b);
}

/* A boundary that stays away is held, and then the network is lost, and begins again. */
static void test_lost(void **state)
{
  struct bench b = start(1, 0);
  (void)state;
  go(&b, 100);
  for (uint32_t i = 0; i < 4; i++) {
    measure(&b);
    b.y[M3_OUT] = NAN;
    assert_int_equal(row(&b, b.row), HK_MODEL_SAYS);
  }
  measure(&b);
  b.y[M3_OUT] = NAN;
  assert_int_equal(row(&b, b.row), HK_MODEL_MISSED);
  assert_int_equal(hk_model_missing(b.model, 0), M3_OUT);
  measure(&b);
  assert_int_equal(row(&b, b.row), HK_MODEL_BEGINS);
  b.row += 5;
  measure(&b);
  assert_int_equal(row(&b, b.row), HK_MODEL_MISSED);
  stop(&b);
}

/* --- files -------------------------------------------------------------------------------------------------------------- */

#define NET "kind network\nedge a b 100 0.1 0.02 1000 1\nedge b c 100 0.1 0.02 1000 1\nedge c a 100 0.1 0.02 1000 2\n"
#define ENDS "sensor p p a boundary\nsensor i in a check\n"

static void test_faults(void **state)
{
  static const struct {
    const char *text, *error;
  } wrong[] = {
    { NET "sensor i in b check\n", "line 5, column 8: i: the model is given what enters or leaves at that node" },
    { NET "sensor i in b boundary\nsensor q q a b check\n", "line 2, column 6: a: no pressure is a boundary" },
    { NET ENDS "edge x y 1 1 0 1000 1\n", "line 7, column 6: x: no way leads from here to a pressure" },
    { NET ENDS "sensor d p a boundary\n", "line 7, column 8: d: a boundary gives the pressure at that node already" },
    { NET ENDS "sensor d out a boundary\n", "line 7, column 8: d: a boundary gives the pressure at that node already" },
    { NET ENDS "sensor d q a b boundary\n", "line 7, column 16: boundary: a flow in a pipe cannot drive the model" },
    { NET ENDS "sensor d q a x check\n", "line 7, column 14: x: no pipe begins or ends at this node" },
    { NET ENDS "sensor d q a a check\n", "line 7, column 14: a: no pipe joins this node to the one before" },
    { NET ENDS "edge b a 5 0.1 0.02 1000 1\nsensor d q a b check\n", "line 8, column 14: b: several pipes join this node" },
    { NET ENDS "sensor d q a check\n", "line 7, column 1: sensor: the form is: sensor NAME q FROM TO check" },
    { NET ENDS "sensor d p a b check\n", "line 7, column 1: sensor: the form is: sensor NAME p|in|out NODE boundary|check" },
    { NET ENDS "sensor d t a check\n", "line 7, column 10: t: neither p, a pressure" },
    { NET ENDS "sensor d p a maybe\n", "line 7, column 14: maybe: neither boundary" },
    { NET ENDS "sensor d p\n", "line 7, column 1: sensor: the form is" },
    { NET ENDS "line x\n", "line 7, column 1: line: a line of the file of a network begins with" },
    { NET ENDS "demand x 1\n", "line 7, column 8: x: no pipe begins or ends at this node" },
    { NET ENDS "demand b much\n", "line 7, column 10: much: not a flow that leaves there" },
    { NET ENDS "height x 1\n", "line 7, column 8: x: no pipe begins or ends at this node" },
    { NET ENDS "edge b b 5 0.1 0.02 1000 1\n", "line 7, column 8: b: the pipe begins at this node, too" },
    { NET ENDS "edge b d 5 0.1 0.02 1000 999999\n", "line 7, column 26: 999999: not a number of cells" },
    { NET "sensor p p a boundary\n", "no sensor is a check" },
    { "kind network\nsensor p p a boundary\n", "there is no edge" },
    { "demand a 1\nedge a b 1 1 0 1000 1\n", "line 1, column 1: demand: a line of the file begins with" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const struct hk_model_plan *plan;
    char error[256] = "";
    assert_int_equal(hk_model_plan_parse(&plan, wrong[i].text, strlen(wrong[i].text), error, sizeof error), -EINVAL);
    if (strncmp(error, wrong[i].error, strlen(wrong[i].error)) != 0)
      fail_msg("%s", error);
  }
  hk_model_plan_release(parse(NET ENDS "sensor d out b boundary\nsensor e out b boundary\n")); /* two customers at a node */
}

/* The computation depends on the file, and so does its mark. */
static void test_mark(void **state)
{
  const struct hk_model_plan *a = parse(NET ENDS), *b = parse(NET ENDS "demand b 1\n"),
                             *c = parse("kind network\nedge a b 100 0.1 0.02 1000 1\nedge b c 100 0.1 0.02 1000 1\n"
                                        "edge a c 100 0.1 0.02 1000 2\n" ENDS);
  (void)state;
  assert_true(a->mark != b->mark && a->mark != c->mark && b->mark != c->mark);
  assert_near(a->line->transit, 2 * 0.1, 1e-12);
  hk_model_plan_release(a);
  hk_model_plan_release(b);
  hk_model_plan_release(c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_line),        cmocka_unit_test(test_steady), cmocka_unit_test(test_leak),
    cmocka_unit_test(test_derivatives), cmocka_unit_test(test_checks), cmocka_unit_test(test_friction),
    cmocka_unit_test(test_state),       cmocka_unit_test(test_lost),   cmocka_unit_test(test_faults),
    cmocka_unit_test(test_mark),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
