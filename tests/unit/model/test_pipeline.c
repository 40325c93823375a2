/* A line of pipes, compared with known formulas: the travel time of a wave, the surge when a flow is stopped (Joukowsky), the
 * pressure drop by friction (Darcy and Weisbach), a column at rest; and with its own promises: the backward error, singular
 * equations reported with their place, the same bits each time. line_oracle.py compares it with other methods. */
#include "cpu/model/pipeline.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define assert_near(is, wanted, by) assert_true(fabs((is) - (wanted)) <= (by))

#define CELLS 200u
#define DENSITY 850.0
#define AREA 0.2
#define WAVE 1000.0
#define LENGTH 10000.0
#define DX (LENGTH / CELLS)
#define IMPEDANCE (DENSITY * WAVE / AREA)
#define GRAVITY 9.80665

static const struct hk_pipeline_end NO_FLOW = { 0, 1, 0, 0 };

static struct hk_pipeline_end pressure(double p)
{
  return (struct hk_pipeline_end){ 1, 0, 0, p };
}

static struct hk_pipeline_end flow(double q)
{
  return (struct hk_pipeline_end){ 0, 1, 0, q };
}

/* friction: Darcy's; rise: m over the whole. */
static struct hk_pipeline uniform(struct hk_pipeline_cell cell[CELLS], double friction, double rise)
{
  struct hk_pipeline line;
  const double diameter = sqrt(4 * AREA / 3.14159265358979323846);
  for (uint32_t j = 0; j < CELLS; j++)
    cell[j] = (struct hk_pipeline_cell){ WAVE / DX, WAVE / DX, friction / (2 * diameter * AREA), AREA * GRAVITY * rise / LENGTH };
  assert_int_equal(hk_pipeline_open(&line, cell, CELLS, IMPEDANCE), 0);
  return line;
}

static void step(struct hk_pipeline *line, struct hk_pipeline_end first, struct hk_pipeline_end last, double dt)
{
  const struct hk_pipeline_end end[2] = { first, last };
  assert_int_equal(hk_pipeline_step(line, end, NULL, dt, 1), 0);
  assert_true(line->error <= HK_BAND_ERROR);
}

/* The flow at the last end stops at once: the surge there is rho a v, it is in the middle when half the travel time has passed,
 * and the reservoir at the first end reflects it. */
static void surge(void **state)
{
  (void)state;
  struct hk_pipeline_cell cell[CELLS];
  struct hk_pipeline line = uniform(cell, 0, 0);
  const struct hk_pipeline_end end[2] = { pressure(5e6), flow(0.1) };
  const double dt = DX / WAVE, joukowsky = DENSITY * WAVE * 0.1 / AREA;
  double passed = 0, top = 0, back = 0;
  assert_int_equal(hk_pipeline_steady(&line, end, 1), 0);
  for (uint32_t k = 1; k <= 3 * CELLS; k++) {
    step(&line, pressure(5e6), NO_FLOW, dt);
    if (passed == 0 && hk_pipeline_pressure(&line, CELLS / 2) - 5e6 > joukowsky / 2)
      passed = k * dt;
    if (k > CELLS && k <= CELLS + CELLS / 2)
      top += (hk_pipeline_pressure(&line, CELLS) - 5e6) / (CELLS / 2);
    if (k > 2 * CELLS + CELLS / 4 && k <= 3 * CELLS - CELLS / 4)
      back += (hk_pipeline_pressure(&line, CELLS) - 5e6) / (CELLS / 2);
  }
  assert_near(top, joukowsky, 1e-4 * joukowsky);
  assert_near(back, -joukowsky, 1e-3 * joukowsky);
  assert_near(passed, LENGTH / 2 / WAVE, 1.5 * dt);
  hk_pipeline_close(&line);
}

/* Between two pressures, or a pressure and a flow at either end: the flow of Darcy and Weisbach, which stays. */
static void steady(void **state)
{
  (void)state;
  struct hk_pipeline_cell cell[CELLS];
  const double friction = 0.018, diameter = sqrt(4 * AREA / 3.14159265358979323846), q = 0.25, v = q / AREA;
  const double rise = 120, drop = friction * LENGTH / diameter * DENSITY * v * v / 2 + DENSITY * GRAVITY * rise;
  const struct hk_pipeline_end ends[][2] = { { pressure(6e6), pressure(6e6 - drop) },
                                             { pressure(6e6), flow(q) },
                                             { flow(q), pressure(6e6 - drop) },
                                             /* a pump, whose pressure falls with its flow, and a valve */
                                             { { 1, 0, 1e6, 6e6 + 1e6 * q * q }, { -1e-8, 0, 1, q * q - 1e-8 * (6e6 - drop) } } };
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    struct hk_pipeline line = uniform(cell, friction, rise);
    assert_int_equal(hk_pipeline_steady(&line, ends[i], 1), 0);
    for (uint32_t k = 0; k <= 50; k++) {
      assert_near(hk_pipeline_pressure(&line, 0), 6e6, 0.01);
      assert_near(hk_pipeline_pressure(&line, CELLS / 4), 6e6 - drop / 4, 0.01);
      assert_near(hk_pipeline_pressure(&line, CELLS), 6e6 - drop, 0.01);
      assert_near(hk_pipeline_flow(&line, CELLS / 2), q, 1e-8);
      step(&line, ends[i][0], ends[i][1], 7);
    }
    hk_pipeline_close(&line);
  }
}

/* Backward flow, and a further factor of friction. */
static void steady_otherwise(void **state)
{
  (void)state;
  struct hk_pipeline_cell cell[CELLS];
  struct hk_pipeline line = uniform(cell, 0.02, 0);
  const struct hk_pipeline_end back[2] = { pressure(1e6), pressure(2e6) }, none[2] = { flow(1), flow(1) };
  assert_int_equal(hk_pipeline_steady(&line, back, 1), 0);
  const double q = hk_pipeline_flow(&line, 7);
  assert_true(q < -0.01);
  assert_int_equal(hk_pipeline_steady(&line, back, 4), 0);
  assert_near(hk_pipeline_flow(&line, 7), q / 2, 1e-12);
  assert_int_equal(hk_pipeline_steady(&line, none, 1), -EDOM); /* no pressure is set */
  hk_pipeline_close(&line);
  line = uniform(cell, 0, 0);
  assert_int_equal(hk_pipeline_steady(&line, back, 1), -EDOM); /* nothing holds it */
  hk_pipeline_close(&line);
}

/* An outflow within the line: in the steady state, the flows at the ends differ by it. */
static void sink(void **state)
{
  (void)state;
  struct hk_pipeline_cell cell[CELLS];
  struct hk_pipeline line = uniform(cell, 0.02, 0);
  const struct hk_pipeline_end end[2] = { pressure(6e6), flow(0.2) };
  double out[CELLS] = { 0 };
  out[60] = 0.003;
  out[61] = 0.001;
  assert_int_equal(hk_pipeline_steady(&line, end, 1), 0);
  for (uint32_t k = 0; k < 400; k++)
    assert_int_equal(hk_pipeline_step(&line, end, out, 5, 1), 0);
  assert_near(hk_pipeline_flow(&line, 0), 0.204, 1e-7);
  assert_near(hk_pipeline_flow(&line, 61), 0.201, 1e-7);
  assert_near(hk_pipeline_flow(&line, 62), 0.2, 1e-7);
  hk_pipeline_close(&line);
}

static uint64_t seed;

static double uniform_number(void)
{
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(seed >> 11) / 9007199254740992.0;
}

/* Cells and steps of all sizes, and boundaries that jump: the backward error stays small, and equal inputs give equal bits. */
static void wild(void **state)
{
  (void)state;
  struct hk_pipeline_cell cell[CELLS];
  for (seed = 1; seed < 40; seed++) {
    struct hk_pipeline line[2] = { { 0 }, { 0 } };
    for (uint32_t j = 0; j < CELLS; j++) {
      const double courant = pow(10, 4 * uniform_number() - 2);
      cell[j] = (struct hk_pipeline_cell){ courant * exp(uniform_number()), courant * exp(-uniform_number()),
                                           pow(10, 4 * uniform_number() - 3), uniform_number() - 0.5 };
    }
    for (uint32_t k = 0; k < 2; k++)
      assert_int_equal(hk_pipeline_open(&line[k], cell, CELLS, IMPEDANCE), 0);
    for (uint32_t t = 0; t < 30; t++) {
      const struct hk_pipeline_end first = pressure(2e6 * uniform_number()),
                                   last = t % 3 ? flow(uniform_number()) : pressure(1e6);
      for (uint32_t k = 0; k < 2; k++)
        step(&line[k], first, last, pow(10, 1 - (int)(t % 4)));
      assert_memory_equal(line[0].state, line[1].state, 2 * (CELLS + 1) * sizeof(double));
    }
    for (uint32_t k = 0; k < 2; k++)
      hk_pipeline_close(&line[k]);
  }
}

/* Ends without a boundary value, cells without flow, and numbers that are not finite are reported with their place, and the state
 * does not change. */
static void singular(void **state)
{
  (void)state;
  struct hk_pipeline_cell cell[CELLS];
  struct hk_pipeline line = uniform(cell, 0.02, 0);
  const struct hk_pipeline_end good[2] = { pressure(6e6), flow(0.2) }, nothing[2] = { pressure(6e6), { 0, 0, 0, 1 } };
  const struct hk_pipeline_end wrong[2] = { pressure(NAN), flow(0.2) }, far[2] = { pressure(1e300), flow(1e300) };
  double before[2 * (CELLS + 1)];
  assert_int_equal(hk_pipeline_steady(&line, good, 1), 0);
  memcpy(before, line.state, sizeof before);
  assert_int_equal(hk_pipeline_step(&line, nothing, NULL, 1, 1), -EDOM);
  assert_int_equal(line.singular, CELLS);
  assert_int_not_equal(hk_pipeline_step(&line, wrong, NULL, 1, 1), 0);
  assert_int_not_equal(hk_pipeline_step(&line, far, NULL, 1, 1), 0);
  cell[77].push = cell[77].wave = 0; /* no pipe has this: no equation determines the flow */
  cell[77].friction = -1 / (2 * HK_PIPELINE_WEIGHT * 0.2);
  assert_int_equal(hk_pipeline_step(&line, good, NULL, 1, 1), -EDOM);
  assert_in_range(line.singular, 77, CELLS);
  assert_memory_equal(line.state, before, sizeof before);
  hk_pipeline_close(&line);
  assert_true(hk_pipeline_need(CELLS) >= 2 * (CELLS + 1) * 19 * sizeof(double));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(surge), cmocka_unit_test(steady), cmocka_unit_test(steady_otherwise),
    cmocka_unit_test(sink),  cmocka_unit_test(wild),   cmocka_unit_test(singular),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
