/* The process model: departures of checks, without and with a leak; its beginning, held values, loss and new beginning; friction
 * that adapts; and a state that continues with the same bits. */
#include "cpu/model/model_internal.h"
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

#define ROW 1.0 /* s */
#define CELLS 10u
#define TRANSITS 30u /* rows: three times 10 km at 1000 m/s */

enum { P_A, P_B, Q_A, Q_B, SENSORS };

static const char LINE[] = "edge a b 10000 0.5 0.02 1000 10\nsensor p.a p a boundary\nsensor p.b p b boundary\n"
                           "sensor q.a q a check\nsensor q.b q b check\n";

struct bench {
  const struct hk_model_plan *plan;
  struct hk_model *model;
  struct hk_pipeline line; /* what there is */
  double friction, leak;   /* of it; leak: m^3/s in the middle */
  int64_t row;
  double y[SENSORS];
  const double *nu;
};

static const struct hk_pipelines_place HOST = { &hk_pipelines_host, 1 };

static struct bench start(double friction, double adapt)
{
  struct bench b = { .friction = friction };
  const struct hk_model_rule rule = { ROW, adapt, 3.75, 4 };
  const struct hk_pipeline_end end[2] = { { 1, 0, 0, 3e6 }, { 1, 0, 0, 2.5e6 } };
  char error[256];
  assert_int_equal(hk_model_plan_parse(&b.plan, LINE, strlen(LINE), error, sizeof error), 0);
  assert_int_equal(hk_model_new(&b.model, b.plan, &rule, &HOST, error, sizeof error), 0);
  assert_int_equal(hk_pipeline_open(&b.line, b.plan->cell, CELLS, b.plan->line->impedance), 0);
  assert_int_equal(hk_pipeline_steady(&b.line, end, friction), 0);
  return b;
}

static void stop(struct bench *b)
{
  hk_model_free(b->model);
  hk_pipeline_close(&b->line);
  hk_model_plan_release(b->plan);
}

/* The sensors' readings one row later. Pressures swing. */
static void measure(struct bench *b)
{
  const struct hk_pipeline_end end[2] = { { 1, 0, 0, 3e6 + 1e5 * sin((double)b->row / 40) },
                                          { 1, 0, 0, 2.5e6 + 5e4 * sin((double)b->row / 7) } };
  double sink[CELLS] = { 0 };
  sink[CELLS / 2] = b->leak;
  b->row++;
  assert_int_equal(hk_pipeline_step(&b->line, end, sink, ROW, b->friction), 0);
  b->y[P_A] = end[0].is;
  b->y[P_B] = end[1].is;
  b->y[Q_A] = hk_pipeline_flow(&b->line, 0);
  b->y[Q_B] = hk_pipeline_flow(&b->line, CELLS);
}

static enum hk_model_turn row(struct bench *b, int64_t at)
{
  b->nu = hk_model_row(b->model, at, b->y);
  return hk_model_turn_of(b->model, 0);
}

static enum hk_model_turn turn(struct bench *b)
{
  measure(b);
  return row(b, b->row);
}

static void run(struct bench *b, uint32_t rows)
{
  while (rows-- > 0)
    (void)turn(b);
}

/* The model begins, has no values for three transits, and then departs by the leak alone: half of it at either end. */
static void leak(void **state)
{
  (void)state;
  struct bench b = start(1, 0);
  assert_int_equal(turn(&b), HK_MODEL_BEGINS);
  for (uint32_t k = 0; k < TRANSITS; k++) {
    assert_int_equal(turn(&b), HK_MODEL_SILENT);
    assert_true(isnan(b.nu[Q_A]));
  }
  run(&b, 400);
  assert_int_equal(turn(&b), HK_MODEL_SAYS);
  assert_true(isnan(b.nu[P_A]) && isnan(b.nu[P_B])); /* these drive it */
  const double flow = b.y[Q_A];
  assert_near(b.nu[Q_A], 0, 2e-4 * flow);
  assert_near(b.nu[Q_B], 0, 2e-4 * flow);
  b.leak = 0.01 * flow;
  run(&b, 400);
  assert_near(b.nu[Q_A] - b.nu[Q_B], b.leak, 0.02 * b.leak);
  assert_true(b.nu[Q_A] > 0.3 * b.leak && b.nu[Q_B] < -0.3 * b.leak);
  assert_true(hk_model_explains(b.model, Q_A) > 0.9);
  assert_near(hk_model_friction(b.model, 0), 1, 0);
  stop(&b);
}

/* A check that is silent is missing, and no more. A boundary is held for four rows; then the line is lost, and begins again. */
static void missing(void **state)
{
  (void)state;
  struct bench b = start(1, 0);
  run(&b, 200);
  measure(&b);
  b.y[Q_A] = NAN;
  assert_int_equal(row(&b, b.row), HK_MODEL_SAYS);
  assert_true(isnan(b.nu[Q_A]) && !isnan(b.nu[Q_B]));
  for (uint32_t k = 0; k < 5; k++) {
    measure(&b);
    b.y[P_B] = NAN;
    assert_int_equal(row(&b, b.row), k < 4 ? HK_MODEL_SAYS : HK_MODEL_MISSED);
  }
  assert_int_equal(hk_model_missing(b.model, 0), 1);
  measure(&b);
  b.y[P_B] = NAN;
  assert_int_equal(row(&b, b.row), HK_MODEL_WAITS);
  assert_int_equal(turn(&b), HK_MODEL_BEGINS);
  assert_int_equal(turn(&b), HK_MODEL_SILENT);
  stop(&b);
}

/* Missing rows are computed with the last values: up to four; five are too many. */
static void holes(void **state)
{
  (void)state;
  struct bench b = start(1, 0), whole = start(1, 0);
  run(&b, 200);
  run(&whole, 200);
  for (uint32_t k = 0; k < 4; k++)
    measure(&b);
  run(&whole, 4);
  assert_int_equal(turn(&b), HK_MODEL_SAYS);
  run(&whole, 1);
  assert_near(b.nu[Q_A], whole.nu[Q_A], 0.03 * b.y[Q_A]);
  run(&b, 300);
  run(&whole, 300);
  assert_near(b.nu[Q_A], whole.nu[Q_A], 1e-3 * b.y[Q_A]);
  for (uint32_t k = 0; k < 5; k++)
    measure(&b);
  assert_int_equal(turn(&b), HK_MODEL_MISSED);
  stop(&b);
  stop(&whole);
}

/* Missing rows equal rows that repeat the last values: the same bits. */
static void held(void **state)
{
  (void)state;
  struct bench b = start(1, 0), told = start(1, 0);
  run(&b, 200);
  run(&told, 200);
  for (uint32_t k = 1; k <= 4; k++)
    assert_int_equal(row(&told, told.row + k), HK_MODEL_SAYS);
  for (uint32_t k = 0; k < 4; k++)
    measure(&b);
  for (uint32_t k = 0; k < 20; k++) {
    assert_int_equal(turn(&b), HK_MODEL_SAYS);
    memcpy(told.y, b.y, sizeof told.y);
    assert_int_equal(row(&told, b.row), HK_MODEL_SAYS);
    assert_memory_equal(b.nu, told.nu, SENSORS * sizeof *b.nu);
  }
  stop(&b);
  stop(&told);
}

/* Impossible boundaries make rows without output, and the third of these loses the line, but not what it has learned. */
static void unsolved(void **state)
{
  (void)state;
  struct bench b = start(1, 0);
  run(&b, 200);
  for (uint32_t k = 0; k < 3; k++) {
    measure(&b);
    b.y[P_A] = 1e300;
    assert_int_equal(row(&b, b.row), k < 2 ? HK_MODEL_GAP : HK_MODEL_UNSOLVED);
    assert_true(isnan(b.nu[Q_A]) && isnan(b.nu[Q_B]));
  }
  assert_non_null(hk_model_fault(b.model, 0));
  assert_int_equal(turn(&b), HK_MODEL_BEGINS);
  run(&b, TRANSITS + 200);
  assert_near(b.nu[Q_A], 0, 1e-3 * b.y[Q_A]);
  stop(&b);
}

/* The learned friction reaches the true one; a leak does not move it far. */
static void friction(void **state)
{
  (void)state;
  struct bench b = start(1.1, 0.002);
  run(&b, 4000);
  assert_near(hk_model_friction(b.model, 0), 1.1, 0.002);
  assert_near(b.nu[Q_A], 0, 1e-3 * b.y[Q_A]);
  b.leak = 0.02 * b.y[Q_A];
  run(&b, 1000);
  assert_near(hk_model_friction(b.model, 0), 1.1, 0.02);
  stop(&b);
}

static uint8_t *written(const struct bench *b, size_t *size)
{
  *size = hk_model_state_size(b->plan);
  uint8_t *bytes = malloc(*size);
  assert_non_null(bytes);
  hk_model_write(b->model, bytes);
  return bytes;
}

/* A model that is read continues like the one that was written, in every phase; forged states are refused. */
static void states(void **state)
{
  (void)state;
  static const uint32_t rows[] = { 0, 5, 300 };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct bench b = start(1.05, 0.002), other = start(1.05, 0.002);
    size_t size;
    run(&b, rows[i]);
    while (other.row < b.row)
      measure(&other);
    uint8_t *bytes = written(&b, &size);
    assert_true(hk_model_read(other.model, bytes, size));
    for (uint32_t k = 0; k < 300; k++) {
      assert_int_equal(turn(&b), turn(&other));
      assert_memory_equal(b.nu, other.nu, SENSORS * sizeof *b.nu);
    }
    assert_false(hk_model_read(other.model, bytes, size - 8));
    for (size_t at = 0; at < 80; at += 4) {
      uint8_t *spoilt = written(&b, &size);
      memset(spoilt + at, 0xff, 4);
      struct bench victim = start(1, 0);
      (void)hk_model_read(victim.model, spoilt, size); /* its results may be anything, but it must not fail */
      run(&victim, 3);
      stop(&victim);
      free(spoilt);
    }
    memset(bytes + size - 8, 0xff, 8); /* NaN */
    assert_false(hk_model_read(other.model, bytes, size));
    free(bytes);
    stop(&b);
    stop(&other);
  }
}

/* So does a state of an earlier version, without means of friction: 24 bytes less after the first 32 of the line. */
static void old_states(void **state)
{
  (void)state;
  const size_t line = sizeof(struct hk_model_head);
  struct bench b = start(1.05, 0.002), other = start(1.05, 0.002);
  size_t size;
  run(&b, 300);
  while (other.row < b.row)
    measure(&other);
  uint8_t *bytes = written(&b, &size);
  memmove(bytes + line + 32, bytes + line + 56, size - line - 56);
  assert_true(hk_model_read(other.model, bytes, size - 24));
  for (uint32_t k = 0; k < 300; k++) {
    assert_int_equal(turn(&b), turn(&other));
    assert_memory_equal(b.nu, other.nu, SENSORS * sizeof *b.nu);
  }
  free(bytes);
  stop(&b);
  stop(&other);
}

/* A file with this number of lines, each a little longer than the previous one. */
static char *many_lines(uint32_t lines)
{
  char *text = malloc(lines * 256);
  size_t at = 0;
  assert_non_null(text);
  for (uint32_t i = 0; i < lines; i++)
    at += (size_t)snprintf(text + at, 256,
                           "line l%u\nedge a b %u 0.5 0.02 1000 %u\nsensor p.a%u p a boundary\nsensor p.b%u p b boundary\n"
                           "sensor q.a%u q a check\nsensor q.b%u q b check\n",
                           i, 10000 + 1000 * i, CELLS + i, i, i, i, i);
  return text;
}

#define LINES 7u

/* Lines that are computed together equal each line alone, bit by bit, with any number of threads; one of them is lost by itself.
 */
static void lines(void **state)
{
  (void)state;
  const struct hk_model_rule rule = { ROW, 0.002, 3.75, 4 };
  const struct hk_pipelines_place three = { &hk_pipelines_host, 3 };
  struct hk_model *together, *alone[LINES];
  const struct hk_model_plan *plan, *one[LINES];
  char error[256], *text = many_lines(LINES);
  assert_int_equal(hk_model_plan_parse(&plan, text, strlen(text), error, sizeof error), 0);
  assert_int_equal(hk_model_new(&together, plan, &rule, &three, error, sizeof error), 0);
  for (uint32_t i = 0; i < LINES; i++) {
    const char *from = strstr(text, "line");
    for (uint32_t k = 0; k < i; k++)
      from = strstr(from + 1, "line");
    const char *end = strstr(from + 1, "line");
    assert_int_equal(hk_model_plan_parse(&one[i], from, end ? (size_t)(end - from) : strlen(from), error, sizeof error), 0);
    assert_int_equal(hk_model_new(&alone[i], one[i], &rule, &HOST, error, sizeof error), 0);
  }
  for (int64_t at = 1; at < 400; at++) {
    double y[SENSORS * LINES];
    for (uint32_t i = 0; i < LINES; i++) {
      const double x = (double)at + 10 * i;
      const double is[SENSORS] = { i == 3 && at > 200 ? NAN : 3e6 + 1e5 * sin(x / 40), 2.5e6 + 5e4 * sin(x / 7),
                                   0.3 + 1e-3 * sin(x), 0.3 };
      memcpy(y + SENSORS * i, is, sizeof is);
    }
    if (at % 97 < 3) /* rows that do not come */
      continue;
    const double *nu = hk_model_row(together, at, y);
    for (uint32_t i = 0; i < LINES; i++) {
      const double *own = hk_model_row(alone[i], at, y + SENSORS * i);
      assert_int_equal(hk_model_turn_of(together, i), hk_model_turn_of(alone[i], 0));
      assert_memory_equal(nu + SENSORS * i, own, SENSORS * sizeof *nu);
      assert_true(hk_model_friction(together, i) == hk_model_friction(alone[i], 0));
    }
  }
  assert_int_equal(hk_model_turn_of(together, 2), HK_MODEL_SAYS);
  assert_int_equal(hk_model_turn_of(together, 3), HK_MODEL_WAITS);
  assert_int_equal(hk_model_missing(together, 3), 3 * SENSORS + P_A);
  for (uint32_t i = 0; i < LINES; i++) {
    hk_model_free(alone[i]);
    hk_model_plan_release(one[i]);
  }
  hk_model_free(together);
  hk_model_plan_release(plan);
  free(text);
}

/* A device: the host's lines, until it fails. */
static int64_t failing_from;

static int step_until(struct hk_pipelines *p, struct hk_pipelines_line *line, double dt, const struct hk_pipelines_seen *seen)
{
  return --failing_from < 0 ? -EIO : hk_pipelines_host.step(p, line, dt, seen);
}

static int get_until(struct hk_pipelines *p, double *to)
{
  return failing_from < 0 ? -EIO : hk_pipelines_host.get(p, to);
}

/* If a device fails, all lines are lost, and begin again on the host; if it does not return a state, the state is one of lost
 * lines. */
static void device(void **state)
{
  (void)state;
  struct hk_pipelines_kind kind = hk_pipelines_host;
  const struct hk_model_rule rule = { ROW, 0, 3.75, 4 };
  const struct hk_pipelines_place place = { &kind, 1 };
  struct bench b = start(1, 0);
  struct hk_model *other;
  char error[256];
  size_t size;
  kind.step = step_until;
  kind.get = get_until;
  failing_from = 100;
  hk_model_free(b.model);
  assert_int_equal(hk_model_new(&b.model, b.plan, &rule, &place, error, sizeof error), 0);
  run(&b, 101);
  assert_int_equal(hk_model_turn_of(b.model, 0), HK_MODEL_SAYS);
  failing_from = -1;
  uint8_t *bytes = written(&b, &size);
  assert_int_equal(hk_model_new(&other, b.plan, &rule, &HOST, error, sizeof error), 0);
  assert_true(hk_model_read(other, bytes, size));
  assert_int_equal(turn(&b), HK_MODEL_BROKEN);
  assert_true(isnan(b.nu[Q_A]) && hk_model_place(b.model).kind == &hk_pipelines_host);
  assert_int_equal(turn(&b), HK_MODEL_BEGINS);
  hk_model_row(other, b.row, b.y);
  assert_int_equal(hk_model_turn_of(other, 0), HK_MODEL_BEGINS);
  run(&b, TRANSITS + 400);
  assert_near(b.nu[Q_A], 0, 1e-3 * b.y[Q_A]);
  free(bytes);
  hk_model_free(other);
  stop(&b);
}

static void measured(void **state)
{
  (void)state;
  struct bench b = start(1, 0);
  double seconds = -1;
  assert_int_equal(hk_pipelines_measure(b.plan, ROW, &seconds), 0);
  assert_true(seconds >= 0 && seconds < 10);
  assert_true(hk_model_need(b.plan) > hk_pipeline_need(CELLS));
  stop(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(leak),   cmocka_unit_test(missing),    cmocka_unit_test(holes),
                                      cmocka_unit_test(held),   cmocka_unit_test(unsolved),   cmocka_unit_test(friction),
                                      cmocka_unit_test(states), cmocka_unit_test(old_states), cmocka_unit_test(lines),
                                      cmocka_unit_test(device), cmocka_unit_test(measured) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
