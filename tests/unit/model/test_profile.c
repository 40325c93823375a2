/* Profiles of lines: pressure and flow along them, and the cause of the departures of checks: a leak, with its place, or one
 * sensor; for lines that are driven by two pressures, and by a flow and a pressure. The truth is a line that is stepped until it
 * is steady, so the derivatives of profile.c are compared with the equations of pipeline.c. */
#include "cpu/model/profile.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CELLS 20u
#define BEFORE 2000u /* rows before the fault */
#define SPREAD 1e-4  /* of noise, as a share */

enum { P_A, P_B, P_C, Q_A, Q_C, SENSORS };

static const struct hk_pipelines_place HOST = { &hk_pipelines_host, 1 };

struct bench {
  const struct hk_model_plan *plan;
  struct hk_model *model;
  struct hk_pipeline line;
  bool flow[2]; /* the boundaries */
  double leak;  /* m^3/s */
  uint32_t cell;
  double bias[SENSORS]; /* in the sensor's unit */
  int64_t row;
  unsigned short chance[3];
};

static struct bench start_with(bool first, bool last, double adapt)
{
  struct bench b = { .flow = { first, last }, .chance = { 1, 2, 3 } };
  const struct hk_model_rule rule = { 1, adapt, 3.75, 4 };
  const struct hk_pipeline_end end[2] = { { 1, 0, 0, 3e6 }, { 1, 0, 0, 2.5e6 } };
  char error[256], text[1024];
  snprintf(text, sizeof text,
           "units bar m3/h\nedge a b 6000 0.5 0.02 1000 12\nedge b c 4000 0.4 0.02 1000 8\nheight b 20\n"
           "sensor p.a p a %s\nsensor p.b p b check\nsensor p.c p c %s\nsensor q.a q a %s\nsensor q.c q c %s\n",
           first ? "check" : "boundary", last ? "check" : "boundary", first ? "boundary" : "check", last ? "boundary" : "check");
  assert_int_equal(hk_model_plan_parse(&b.plan, text, strlen(text), error, sizeof error), 0);
  assert_int_equal(hk_model_new(&b.model, b.plan, &rule, &HOST, error, sizeof error), 0);
  assert_int_equal(hk_pipeline_open(&b.line, b.plan->cell, CELLS, b.plan->line->impedance), 0);
  assert_int_equal(hk_pipeline_steady(&b.line, end, 1), 0);
  return b;
}

static struct bench start(bool first, bool last)
{
  return start_with(first, last, 0);
}

static void stop(struct bench *b)
{
  hk_model_free(b->model);
  hk_pipeline_close(&b->line);
  hk_model_plan_release(b->plan);
}

/* Rows of a line that does not change, whose ends hold their pressures. */
static void run(struct bench *b, uint32_t rows)
{
  const struct hk_pipeline_end end[2] = { { 1, 0, 0, 3e6 }, { 1, 0, 0, 2.5e6 } };
  double sink[CELLS] = { 0 }, y[SENSORS];
  sink[b->cell] = b->leak;
  for (; rows > 0; rows--) {
    assert_int_equal(hk_pipeline_step(&b->line, end, sink, 1, 1), 0);
    for (uint32_t i = 0; i < SENSORS; i++) {
      const struct hk_model_sensor *s = &b->plan->sensor[i];
      const double is = s->flow ? hk_pipeline_flow(&b->line, s->point) : hk_pipeline_pressure(&b->line, s->point);
      y[i] = is / s->unit * (1 + SPREAD * (2 * erand48(b->chance) - 1)) + b->bias[i];
    }
    (void)hk_model_row(b->model, b->row++, y);
  }
}

static const bool DRIVEN[][2] = { { false, false }, { true, false }, { false, true } };

/* At first there is no fault, and the profile is that of the line. */
static void profiles(void **state)
{
  (void)state;
  for (size_t way = 0; way < 3; way++) {
    struct bench b = start(DRIVEN[way][0], DRIVEN[way][1]);
    struct hk_profile *p = hk_profile_new(b.model, 0);
    assert_non_null(p);
    assert_true(!p->running && p->points == 0 && p->sensors == SENSORS);
    assert_true(isnan(p->sensor[P_B].seen) && isnan(p->sensor[P_B].reading));
    hk_profile_free(p);
    run(&b, 600);
    p = hk_profile_new(b.model, 0);
    assert_non_null(p);
    assert_true(p->running);
    assert_int_equal(p->points, CELLS + 1);
    assert_float_equal(p->length, 10000, 1e-9);
    for (uint32_t i = 0; i < p->points; i++) {
      assert_float_equal(p->point[i].place, 500 * (double)i, 1e-9);
      assert_float_equal(p->point[i].pressure, hk_pipeline_pressure(&b.line, i) / 1e5, 0.02);
      assert_float_equal(p->point[i].flow, hk_pipeline_flow(&b.line, i) * 3600, 2);
    }
    assert_float_equal(p->sensor[P_B].place, 6000, 1e-9);
    assert_float_equal(p->sensor[P_B].reading, p->sensor[P_B].seen, 0.02);
    assert_int_equal(p->cause.kind, HK_CAUSE_NONE);
    hk_profile_free(p);
    stop(&b);
  }
}

static void leaks(void **state)
{
  (void)state;
  for (size_t way = 0; way < 3; way++)
    for (uint32_t cell = 3; cell < CELLS; cell += 7) {
      struct bench b = start(DRIVEN[way][0], DRIVEN[way][1]);
      run(&b, BEFORE);
      b.cell = cell;
      b.leak = 0.01 * hk_pipeline_flow(&b.line, 0);
      run(&b, 300);
      struct hk_profile *p = hk_profile_new(b.model, 0);
      assert_non_null(p);
      assert_int_equal(p->cause.kind, HK_CAUSE_LEAK);
      assert_float_equal(p->cause.place, 500 * cell + 250, 400);
      assert_true(p->cause.from <= p->cause.place && p->cause.to >= p->cause.place);
      assert_true(p->cause.from <= 500 * cell + 250 && p->cause.to >= 500 * cell + 250);
      assert_true(p->cause.share > 0.98);
      assert_float_equal(p->cause.size, b.leak * 3600, 0.3 * b.leak * 3600); /* the slow means follow */
      hk_profile_free(p);
      stop(&b);
    }
}

/* Friction that follows a leak does not move its place. */
static void leaks_while_friction_adapts(void **state)
{
  uint32_t followed = 0;
  (void)state;
  for (size_t way = 0; way < 3; way++)
    for (uint32_t cell = 3; cell < CELLS; cell += 7) {
      struct bench b = start_with(DRIVEN[way][0], DRIVEN[way][1], 0.005);
      run(&b, BEFORE);
      b.cell = cell;
      b.leak = 0.01 * hk_pipeline_flow(&b.line, 0);
      run(&b, 300);
      struct hk_profile *p = hk_profile_new(b.model, 0);
      assert_non_null(p);
      followed += fabs(p->friction - 1) > 1e-3;
      assert_int_equal(p->cause.kind, HK_CAUSE_LEAK);
      assert_float_equal(p->cause.place, 500 * cell + 250, 600);
      assert_true(p->cause.share > 0.95);
      hk_profile_free(p);
      stop(&b);
    }
  assert_true(followed >= 3);
}

static void sensors(void **state)
{
  (void)state;
  for (size_t way = 0; way < 3; way++)
    for (uint32_t i = 0; i < SENSORS; i++) {
      struct bench b = start(DRIVEN[way][0], DRIVEN[way][1]);
      run(&b, BEFORE);
      b.bias[i] = b.plan->sensor[i].flow ? 8 : 0.08;
      run(&b, 300);
      struct hk_profile *p = hk_profile_new(b.model, 0);
      assert_non_null(p);
      assert_int_equal(p->cause.kind, HK_CAUSE_SENSOR);
      assert_int_equal(p->cause.sensor, i);
      assert_true(p->cause.share > 0.95);
      assert_true(p->cause.size > 0.6 * b.bias[i] && p->cause.size < 1.1 * b.bias[i]);
      hk_profile_free(p);
      stop(&b);
    }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(profiles), cmocka_unit_test(leaks),
                                      cmocka_unit_test(leaks_while_friction_adapts), cmocka_unit_test(sensors) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
