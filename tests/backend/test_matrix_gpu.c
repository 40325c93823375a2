/* Processes given as matrices whose band a GPU solves, compared with the host: the steady state and hundreds of steps, with
 * singular leading parts, large offsets and the smallest numbers; the same bits when repeated, and from a state that was read.
 * Skips without a GPU. */
#include "cpu/model/model_state.h"
#include "gpu/model/matrix_gpu.h"
#include "tests/unit/support/noise.h"

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

#define SIDE 40u
#define N (SIDE * SIDE)
#define STEPS 200u

/* CONFORMANCE of unknowns, as a share of the largest. */
#define CONFORMANCE 1e-9

enum kind { WIND, RANDOM, HOLLOW, KINDS };

static char folder[64];

static void put_number(FILE *f, uint32_t i, uint32_t j, double value)
{
  assert_true(fprintf(f, "%u %u %.17g\n", i + 1, j + 1, value) > 0);
}

static FILE *begin_file(const char *name, uint32_t numbers)
{
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  assert_true(fprintf(f, "%%%%MatrixMarket matrix coordinate real general\n%u %u %u\n", N, N, numbers) > 0);
  return f;
}

/* A square of places: a wind over it, random numbers, or (of storage alone at first) nothing on the diagonal. */
static const struct hk_model_plan *plan_of(enum kind kind)
{
  static const char text[] = "kind matrix\nequations a.mtx\nstorage m.mtx\nsensor p at 1 boundary\nsensor q at 777 boundary\n"
                             "sensor c at 200 check\nsensor d at 1500 check\n";
  const struct hk_model_plan *plan;
  char error[512];
  FILE *a = begin_file("a.mtx", 5 * N - 4 * SIDE), *m = begin_file("m.mtx", N);
  seed = 9 + (uint64_t)kind;
  for (uint32_t i = 0; i < N; i++) {
    const uint32_t near[4] = { i - SIDE, i - 1, i + 1, i + SIDE };
    const bool there[4] = { i >= SIDE, i % SIDE > 0, i % SIDE + 1 < SIDE, i + SIDE < N };
    double sum = 0.01;
    for (uint32_t k = 0; k < 4; k++) {
      const double value = kind == WIND ? -1 - (k == 1) * 0.5 : kind == RANDOM ? noise() : -uniform();
      if (!there[k])
        continue;
      put_number(a, i, near[k], value);
      sum += fabs(value);
    }
    put_number(a, i, i, kind == WIND ? sum : kind == RANDOM ? noise() : i % 7 ? sum : 0);
    put_number(m, i, i, 5 + uniform());
  }
  assert_int_equal(fclose(a) | fclose(m), 0);
  if (hk_model_plan_parse_in(&plan, text, strlen(text), folder, error, sizeof error) != 0)
    fail_msg("%s", error);
  assert_false(plan->matrix->symmetric);
  assert_true(plan->matrix->below >= SIDE);
  return plan;
}

struct side {
  const struct hk_pipelines_kind *kind;
  struct hk_pipelines *lines;
  struct hk_pipelines_line line;
  double value[8], state[N], age;
  struct hk_pipelines_seen seen;
};

static struct side *open_side(const struct hk_pipelines_kind *kind, const struct hk_model_plan *plan)
{
  struct side *s = calloc(1, sizeof *s);
  char error[256];
  assert_non_null(s);
  s->kind = kind;
  s->seen.value = s->value;
  if (kind->open(&s->lines, plan, 0, error, sizeof error) != 0)
    fail_msg("%s", error);
  return s;
}

static void close_side(struct side *s)
{
  s->kind->close(s->lines);
  free(s);
}

static void go(struct side *s, uint32_t step)
{
  const double is[2] = { 1e6 + 1e3 * sin(step / 9.0), step % 50 == 7 ? 4.9e-324 : -20 + cos(step / 5.0) };
  if (step == 0) {
    assert_int_equal(hk_pipelines_matrix_settle(s->lines, is, &s->age, s->state), 0);
    return;
  }
  s->line.drive = is;
  s->line.active = 1;
  assert_int_equal(s->kind->step(s->lines, &s->line, 2, &s->seen), 0);
  assert_int_equal(s->line.status, 0);
  assert_int_equal(s->kind->get(s->lines, s->state), 0);
}

static void test_against_the_host(void **state)
{
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    const struct hk_model_plan *plan = plan_of((enum kind)kind);
    struct side *gpu = open_side(&hk_matrix_gpu, plan), *again = open_side(&hk_matrix_gpu, plan),
                *host = open_side(&hk_pipelines_matrix, plan);
    double worst = 0;
    for (uint32_t step = 0; step < (kind == WIND ? STEPS : 3); step++) { /* others grow */
      double most = 0;
      go(gpu, step);
      go(again, step);
      go(host, step);
      assert_memory_equal(gpu->state, again->state, sizeof gpu->state);
      for (uint32_t i = 0; i < N; i++)
        most = fmax(most, fabs(host->state[i]));
      for (uint32_t i = 0; i < N; i++)
        worst = fmax(worst, fabs(gpu->state[i] - host->state[i]) / most);
    }
    printf("# kind %d: off by %.2g of the largest\n", kind, worst);
    assert_true(worst <= (kind == WIND ? CONFORMANCE : 1e-7)); /* of a condition of thousands */
    assert_true(fabs(gpu->age - host->age) <= 1e-6 * host->age);
    close_side(gpu);
    close_side(again);
    close_side(host);
    hk_model_plan_release(plan);
  }
}

/* As a model: it continues from its state with the same bits. */
static void test_state(void **state)
{
  const struct hk_model_rule rule = { .interval = 2, .clip = 3.75, .hold = 3 };
  const struct hk_pipelines_place place = { &hk_matrix_gpu, 0 };
  const struct hk_model_plan *plan = plan_of(WIND);
  struct hk_model *model, *other = NULL;
  const size_t size = hk_model_state_size(plan);
  char error[256];
  double *bytes = malloc(size), *same = malloc(size);
  (void)state;
  assert_true(bytes && same);
  if (hk_model_new(&model, plan, &rule, &place, error, sizeof error) != 0)
    fail_msg("%s", error);
  assert_true(hk_model_place(model).kind == &hk_matrix_gpu);
  for (uint32_t row = 0; row < 60; row++) {
    const double y[4] = { 20 + sin(row / 9.0), 40 + cos(row / 5.0), 30, 35 };
    (void)hk_model_row(model, row, y);
    assert_int_equal(hk_model_turn_of(model, 0), row == 0 ? HK_MODEL_BEGINS : HK_MODEL_SILENT);
    assert_true(row == 0 || isfinite(hk_model_seen(model, 2)));
    if (other)
      (void)hk_model_row(other, row, y);
    if (row == 29) {
      hk_model_write(model, bytes);
      assert_int_equal(hk_model_new(&other, plan, &rule, &place, error, sizeof error), 0);
      assert_true(hk_model_read(other, bytes, size));
    }
  }
  hk_model_write(model, bytes);
  hk_model_write(other, same);
  assert_memory_equal(bytes, same, size);
  assert_true(hk_matrix_gpu_bytes(plan) > N * sizeof(double));
  free(bytes);
  free(same);
  hk_model_free(model);
  hk_model_free(other);
  hk_model_plan_release(plan);
}

static int make_folder(void **state)
{
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/test_matrix_gpu.XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
  static const char *const name[] = { "a.mtx", "m.mtx" };
  char path[128];
  (void)state;
  for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, name[i]);
    (void)remove(path);
  }
  return rmdir(folder);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_against_the_host), cmocka_unit_test(test_state) };
  char error[256];
  if (make_folder(NULL) != 0)
    return 1;
  const struct hk_model_plan *plan = plan_of(WIND);
  struct hk_pipelines *lines;
  const int status = hk_matrix_gpu.open(&lines, plan, 0, error, sizeof error);
  hk_model_plan_release(plan);
  (void)remove_folder(NULL);
  if (status == -ENODEV) {
    printf("1..0 # SKIP %s\n", error);
    return 0;
  }
  if (status == 0)
    hk_matrix_gpu.close(lines);
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
