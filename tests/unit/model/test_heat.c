/* Heat lines: compared with the exact solution of the steady state, and with a scheme of dense matrices by Gaussian elimination
 * without a band; a front that travels with the water; and the values of a model when a pipe loses more heat. */
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

#define POINTS 31u
#define GROUND 8.0

struct bench {
  struct hk_heat_cell cell[POINTS - 1];
  double state[2 * POINTS], memory[HK_HEAT_MEMORY * POINTS];
  struct hk_band_work work;
  struct hk_heat_line line;
};

/* Cells of unequal volumes and losses. */
static void start(struct bench *b)
{
  const struct hk_band_shape shape = hk_heat_shape(POINTS);
  memset(b, 0, sizeof *b);
  for (uint32_t i = 0; i < POINTS - 1; i++)
    b->cell[i] = (struct hk_heat_cell){ 2 + i % 3, 2e-5 * (1 + i / 15) };
  assert_int_equal(hk_band_open(&b->work, &shape), 0);
  b->line = (struct hk_heat_line){ b->cell, POINTS, GROUND, b->state, b->memory, &b->work };
}

static double temperature(const struct bench *b, uint32_t point)
{
  return b->state[2 * (size_t)point];
}

/* Excess over the ground falls as exp(-sum of losses / flow). */
static void steady(void **state)
{
  (void)state;
  struct bench b;
  double loss = 0;
  start(&b);
  assert_int_equal(hk_heat_steady(&b.line, 80, 0.02, 1.5), 0);
  for (uint32_t i = 0; i < POINTS; i++) {
    assert_float_equal(temperature(&b, i), GROUND + 72 * exp(-1.5 * loss / 0.02), 0.02);
    loss += i < POINTS - 1 ? b.cell[i].loss : 0;
  }
  /* a step from there stays there */
  double was[POINTS];
  for (uint32_t i = 0; i < POINTS; i++)
    was[i] = temperature(&b, i);
  assert_int_equal(hk_heat_step(&b.line, 80, 0.02, NULL, 60, 1.5), 0);
  for (uint32_t i = 0; i < POINTS; i++)
    assert_float_equal(temperature(&b, i), was[i], 1e-10);
  assert_int_equal(hk_heat_steady(&b.line, 80, 0, 1), -EDOM);
  assert_int_equal(hk_heat_step(&b.line, 80, -0.01, NULL, 60, 1), -ERANGE);
  assert_int_equal(hk_heat_step(&b.line, NAN, 0.02, NULL, 60, 1), -ERANGE);
  assert_float_equal(temperature(&b, 3), was[3], 1e-10);
  hk_band_close(&b.work);
}

/* The scheme once more, as dense matrices of fluxes through faces: V dT/dt = -(what flows out - in) - losses. */
static void rate(const struct bench *b, double flow, const double *more, double loss, double m[POINTS][POINTS],
                 double by_ground[POINTS])
{
  memset(m, 0, POINTS * sizeof m[0]);
  memset(by_ground, 0, POINTS * sizeof *by_ground);
  for (uint32_t k = 0; k < POINTS - 1; k++) { /* the face in the middle of cell k */
    const double carried = flow / 2, mixed = HK_HEAT_SMOOTH * flow, lost = (loss * b->cell[k].loss + (more ? more[k] : 0)) / 2;
    const double through[2] = { carried + mixed, carried - mixed }; /* weights of the temperatures at k and k + 1 */
    for (uint32_t side = 0; side < 2; side++) {
      m[k][k + side] -= through[side];
      m[k + 1][k + side] += through[side];
      m[k + side][k + side] -= lost;
      by_ground[k + side] += lost;
    }
  }
  m[POINTS - 1][POINTS - 1] -= flow; /* leaves the line */
}

static void eliminate(double a[POINTS][POINTS], double x[POINTS])
{
  for (uint32_t k = 0; k < POINTS; k++) {
    uint32_t best = k;
    for (uint32_t i = k; i < POINTS; i++)
      best = fabs(a[i][k]) > fabs(a[best][k]) ? i : best;
    for (uint32_t j = 0; j < POINTS; j++) {
      const double t = a[k][j];
      a[k][j] = a[best][j];
      a[best][j] = t;
    }
    const double t = x[k];
    x[k] = x[best];
    x[best] = t;
    for (uint32_t i = 0; i < POINTS; i++) {
      const double f = i == k ? 0 : a[i][k] / a[k][k];
      for (uint32_t j = k; j < POINTS && f != 0; j++)
        a[i][j] -= f * a[k][j];
      x[i] -= f * x[k];
    }
  }
  for (uint32_t k = 0; k < POINTS; k++)
    x[k] /= a[k][k];
}

static void dense(void **state)
{
  (void)state;
  static double now[POINTS][POINTS], was[POINTS][POINTS], a[POINTS][POINTS];
  double ground_now[POINTS], ground_was[POINTS], t[POINTS], x[POINTS], more[POINTS - 1] = { 0 }, before = 0.02;
  const double w = HK_HEAT_WEIGHT;
  struct bench b;
  start(&b);
  more[11] = 3e-4;
  assert_int_equal(hk_heat_steady(&b.line, 80, before, 1), 0);
  for (uint32_t i = 0; i < POINTS; i++)
    t[i] = temperature(&b, i);
  for (uint32_t row = 0; row < 200; row++) {
    const double inlet = 80 + 10 * sin(row / 9.0), flow = row % 50 == 49 ? 0 : 0.02 + 0.015 * sin(row / 17.0), dt = 30;
    rate(&b, before, more, 1.2, was, ground_was);
    rate(&b, flow, more, 1.2, now, ground_now);
    for (uint32_t i = 0; i < POINTS; i++) {
      const double volume = ((i > 0 ? b.cell[i - 1].volume : 0) + (i < POINTS - 1 ? b.cell[i].volume : 0)) / 2;
      x[i] = volume / dt * t[i] + GROUND * (w * ground_now[i] + (1 - w) * ground_was[i]);
      for (uint32_t j = 0; j < POINTS; j++) {
        a[i][j] = (i == j ? volume / dt : 0) - w * now[i][j];
        x[i] += (1 - w) * was[i][j] * t[j];
      }
    }
    memset(a[0], 0, sizeof a[0]);
    a[0][0] = 1;
    x[0] = inlet;
    eliminate(a, x);
    memcpy(t, x, sizeof t);
    assert_int_equal(hk_heat_step(&b.line, inlet, flow, more, dt, 1.2), 0);
    for (uint32_t i = 0; i < POINTS; i++)
      assert_float_equal(temperature(&b, i), t[i], 1e-9);
    before = flow;
  }
  hk_band_close(&b.work);
}

/* A step at the inlet arrives at the end when the water does, without overshooting much, and energy is kept. */
static void front(void **state)
{
  (void)state;
  struct bench b;
  double volume = 0, half = 0;
  start(&b);
  for (uint32_t i = 0; i < POINTS - 1; i++) {
    b.cell[i].loss = 0;
    volume += b.cell[i].volume;
  }
  assert_int_equal(hk_heat_steady(&b.line, 60, 0.02, 1), 0);
  for (uint32_t row = 1; row < 1000; row++) {
    assert_int_equal(hk_heat_step(&b.line, 61, 0.02, NULL, 10, 1), 0);
    if (half == 0 && temperature(&b, POINTS - 1) > 60.5)
      half = row * 10;
    assert_true(temperature(&b, POINTS - 1) > 59.99 && temperature(&b, POINTS - 1) < 61.3);
  }
  assert_float_equal(half, volume / 0.02, 0.05 * volume / 0.02);
  assert_float_equal(temperature(&b, POINTS - 1), 61, 0.01);
  hk_band_close(&b.work);
}

static const char FILE_[] = "kind heat\nunits C m3/h\nground 8\nedge a b 600 0.2 25 12\nedge b c 400 0.2 25 8\n"
                            "sensor t.a t a boundary\nsensor q.a q a boundary\nsensor t.b t b check\nsensor t.c t c check\n";

/* A model learns that all pipes lose a tenth more, and then has no departure until a place cools; it continues bit for bit
 * from its state. */
static void model(void **state)
{
  (void)state;
  const struct hk_pipelines_place host = { &hk_pipelines_host, 1 };
  const struct hk_model_rule rule = { 10, 0.002, 3.75, 4 };
  const struct hk_model_plan *plan;
  struct hk_model *m, *again = NULL;
  char error[256];
  assert_int_equal(hk_model_plan_parse(&plan, FILE_, strlen(FILE_), error, sizeof error), 0);
  assert_int_equal(hk_model_new(&m, plan, &rule, &host, error, sizeof error), 0);
  const struct hk_band_shape shape = hk_heat_shape(21);
  struct hk_band_work work;
  double t[2 * 21], memory[HK_HEAT_MEMORY * 21], more[20] = { 0 }, y[4];
  assert_int_equal(hk_band_open(&work, &shape), 0);
  struct hk_heat_line line = { plan->heat, 21, 8, t, memory, &work };
  assert_int_equal(hk_heat_steady(&line, 80, 0.01, 1.1), 0);
  const double *nu = NULL;
  void *saved = malloc(hk_model_state_size(plan));
  for (int64_t row = 0; row < 4000; row++) {
    const double inlet = 80 + 5 * sin((double)row / 300), flow = 0.01 + 0.003 * sin((double)row / 200);
    more[15] = row >= 3850 ? 2e-4 : 0; /* behind b */
    assert_int_equal(hk_heat_step(&line, inlet, flow, more, 10, 1.1), 0);
    y[0] = inlet;
    y[1] = flow * 3600;
    y[2] = t[2 * 12];
    y[3] = t[2 * 20];
    nu = hk_model_row(m, row, y);
    assert_int_equal(hk_model_turn_of(m, 0), row == 0 ? HK_MODEL_BEGINS : row <= 472 ? HK_MODEL_SILENT : HK_MODEL_SAYS);
    if (again) {
      const double *other = hk_model_row(again, row, y);
      assert_memory_equal(nu, other, 4 * sizeof *nu);
    }
    if (row == 3499) {
      assert_float_equal(hk_model_friction(m, 0), 1.1, 0.005);
      assert_float_equal(nu[3], 0, 0.02);
      assert_true(hk_model_explains(m, 3) > 0.9);
      hk_model_write(m, saved);
      assert_int_equal(hk_model_new(&again, plan, &rule, &host, error, sizeof error), 0);
      assert_true(hk_model_read(again, saved, hk_model_state_size(plan)));
    }
  }
  assert_true(isnan(nu[0]) && isnan(nu[1]));
  assert_true(fabs(nu[2]) < 0.25 * fabs(nu[3])); /* the learned loss follows slowly */
  assert_true(nu[3] < -0.4);
  /* water that runs back stops it */
  y[1] = -1;
  for (int64_t row = 4000; row < 4003; row++)
    (void)hk_model_row(m, row, y);
  assert_int_equal(hk_model_turn_of(m, 0), HK_MODEL_UNSOLVED);
  free(saved);
  hk_model_free(m);
  hk_model_free(again);
  hk_band_close(&work);
  hk_model_plan_release(plan);
}

static void refused(const char *change, const char *by, const char *said)
{
  const struct hk_model_plan *plan;
  char text[1024], error[256] = "";
  const char *at = strstr(FILE_, change);
  assert_non_null(at);
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - FILE_), FILE_, by, at + strlen(change));
  assert_int_equal(hk_model_plan_parse(&plan, text, strlen(text), error, sizeof error), -EINVAL);
  assert_string_equal(error, said);
}

static void wrong(void **state)
{
  (void)state;
  refused("kind heat", "kind cold", "line 1, column 6: cold: neither pipes, which is the default, nor heat, network or matrix");
  refused("ground 8\n", "", "there is no ground: its temperature, to which heat is lost");
  refused("ground 8\n", "kind heat\n", "line 3, column 1: kind: the kind comes before all else, and once");
  refused("units C", "units bar", "line 2, column 7: bar: no unit of temperature: C, K or F");
  refused("25 12", "25 900 12", "line 4, column 1: edge: the form is: edge A B LENGTH DIAMETER LOSS CELLS");
  refused("25 12", "-1 12", "line 4, column 18: -1: not a loss in W/(m K), from 0 to 1000");
  refused("t.a t a boundary", "t.a p a boundary", "line 6, column 12: p: neither t, a temperature, nor q, a flow");
  refused("t.a t a boundary", "t.a t b boundary",
          "line 6, column 8: t.a: the temperature that drives a heat line is that of its first node; make this one a check");
  refused("q.a q a boundary", "q.a q a check",
          "line 4, column 6: a: the line has no flow that is a boundary; one is needed, which says how fast the water is");
  refused("t.a t a boundary", "t.a t a check",
          "line 4, column 6: a: this node has no temperature that is a boundary; one is needed, which drives the model");
  refused(
      "ground 8\n", "ground 8\nheight a 3\n",
      "line 4, column 1: height: a line of the file of heat lines begins with kind, fluid, ground, units, line, edge or sensor");
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(steady), cmocka_unit_test(dense), cmocka_unit_test(front),
                                      cmocka_unit_test(model), cmocka_unit_test(wrong) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
