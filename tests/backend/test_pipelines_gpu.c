/* Lines of pipes on the GPU compared with the host: lines of many lengths over hundreds of rows, some of which fail or
 * pause meanwhile; the same bits when repeated, and from a state that was read. Skips without a GPU. */
#include "cpu/model/model_state.h"
#include "gpu/model/pipelines_gpu.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LINES 97u
#define STEPS 300u
#define DT 1.0

/* CONFORMANCE of pressures and flows, as a share of the line's largest, as hankeld-model(7) states it. */
#define CONFORMANCE 1e-9

static const struct hk_model_plan *plan_of(uint32_t lines)
{
  const struct hk_model_plan *plan;
  char error[256], *text = malloc(lines * 512);
  size_t at = 0;
  assert_non_null(text);
  for (uint32_t i = 0; i < lines; i++)
    at += (size_t)snprintf(
        text + at, 512,
        "line l%u\nedge a b %u 0.5 0.02 %u %u\nedge b c 3000 0.4 0.018 1100 3\nheight b %u\nsensor p.a%u p a boundary\nsensor "
        "%c.c%u %c c boundary\nsensor q.a%u q a check\nsensor p.b%u p b check\n",
        i, 1000 + 100 * i, 900 + i, 1 + i * i % 203, i % 40, i, i % 3 ? 'p' : 'q', i, i % 3 ? 'p' : 'q', i, i);
  if (hk_model_plan_parse(&plan, text, at, error, sizeof error) != 0)
    fail_msg("%s", error);
  free(text);
  return plan;
}

struct side {
  const struct hk_pipelines_kind *kind;
  struct hk_pipelines *lines;
  struct hk_pipelines_line *line;
  struct hk_pipelines_seen seen;
};

static struct side open_side(const struct hk_pipelines_kind *kind, const struct hk_model_plan *plan)
{
  struct side s = { .kind = kind };
  char error[256];
  if (kind->open(&s.lines, plan, 0, error, sizeof error) != 0)
    fail_msg("%s", error);
  s.line = calloc(plan->lines, sizeof *s.line);
  s.seen.value = calloc(plan->sensors, sizeof(double));
  s.seen.flow = calloc(plan->lines, 2 * sizeof(double));
  assert_true(s.line && s.seen.value && s.seen.flow);
  return s;
}

static void close_side(struct side *s)
{
  s->kind->close(s->lines);
  free(s->line);
  free(s->seen.value);
  free(s->seen.flow);
}

/* Ends of a line at a time. */
static void ends(const struct hk_model_plan *plan, uint32_t line, double t, struct hk_pipelines_line *out)
{
  const bool flow = plan->sensor[plan->line[line].boundary[1]].flow;
  out->end[0] = (struct hk_pipeline_end){ 1, 0, 0, 3e6 + 1e5 * sin(t / 11 + line) };
  out->end[1] = (struct hk_pipeline_end){ !flow, flow, 0, flow ? 0.2 + 0.02 * sin(t / 7) : 2.5e6 + 1e5 * sin(t / 17 + line) };
  out->friction = 1 + 0.001 * line;
  out->active = 1;
}

static void begin(const struct hk_model_plan *plan, struct side *s)
{
  for (uint32_t i = 0; i < plan->lines; i++) {
    const struct hk_model_line *l = &plan->line[i];
    struct hk_pipeline pipe = { .cell = plan->cell + l->cell, .points = hk_model_points(l), .impedance = l->impedance };
    pipe.state = calloc(2 * (size_t)pipe.points, sizeof *pipe.state);
    assert_non_null(pipe.state);
    struct hk_pipelines_line line;
    ends(plan, i, 0, &line);
    assert_int_equal(hk_pipeline_steady(&pipe, line.end, line.friction), 0);
    assert_int_equal(s->kind->put(s->lines, i, pipe.state), 0);
    free(pipe.state);
  }
}

/* One line in nine stands still for some rows, and one in seven gets boundaries that no pipe has. */
static void step(const struct hk_model_plan *plan, struct side *s, uint32_t k)
{
  for (uint32_t i = 0; i < plan->lines; i++) {
    ends(plan, i, DT * k, &s->line[i]);
    s->line[i].active = !(i % 9 == 4 && k % 50 > 40);
    if (i % 7 == 5 && k % 100 == 60)
      s->line[i].end[0].is = 1e300;
  }
  assert_int_equal(s->kind->step(s->lines, s->line, DT, &s->seen), 0);
}

static void assert_alike(const struct hk_model_plan *plan, const struct side *host, const struct side *gpu)
{
  for (uint32_t i = 0; i < plan->lines; i++)
    if (host->line[i].active &&
        (host->line[i].status != 0) != (gpu->line[i].status != 0)) /* numbers that overflow are no pivots to one of them */
      fail_msg("line %u: %d for %d", i, gpu->line[i].status, host->line[i].status);
  for (uint32_t i = 0; i < plan->sensors; i++) {
    const double scale = fmax(plan->sensor[i].flow ? 0.5 : 3e6, fabs(host->seen.value[i]));
    if (!(fabs(host->seen.value[i] - gpu->seen.value[i]) <= CONFORMANCE * scale))
      fail_msg("sensor %u: %.17g for %.17g", i, gpu->seen.value[i], host->seen.value[i]);
  }
  for (uint32_t i = 0; i < 2 * plan->lines; i++)
    if (!(fabs(host->seen.flow[i] - gpu->seen.flow[i]) <= CONFORMANCE * fmax(0.5, fabs(host->seen.flow[i]))))
      fail_msg("line %u: a flow of %.17g for %.17g", i / 2, gpu->seen.flow[i], host->seen.flow[i]);
}

static double *state_of(const struct hk_model_plan *plan, const struct side *s)
{
  double *state = calloc(2 * (size_t)hk_model_all_points(plan), sizeof *state);
  assert_non_null(state);
  assert_int_equal(s->kind->get(s->lines, state), 0);
  return state;
}

static void like_the_host(void **state)
{
  (void)state;
  const struct hk_model_plan *plan = plan_of(LINES);
  struct side host = open_side(&hk_pipelines_host, plan), gpu = open_side(&hk_pipelines_gpu, plan),
              again = open_side(&hk_pipelines_gpu, plan);
  begin(plan, &host);
  begin(plan, &gpu);
  for (uint32_t k = 1; k <= STEPS; k++) {
    step(plan, &host, k);
    step(plan, &gpu, k);
    assert_alike(plan, &host, &gpu);
    if (k == STEPS / 2) { /* goes on from here */
      double *half = state_of(plan, &gpu);
      for (uint32_t i = 0; i < plan->lines; i++)
        assert_int_equal(again.kind->put(again.lines, i, half + 2 * (size_t)hk_model_first_point(plan, i)), 0);
      free(half);
    }
    if (k > STEPS / 2)
      step(plan, &again, k);
  }
  double *one = state_of(plan, &gpu), *other = state_of(plan, &again);
  assert_memory_equal(one, other, 2 * (size_t)hk_model_all_points(plan) * sizeof *one);
  free(one);
  free(other);
  close_side(&host);
  close_side(&gpu);
  close_side(&again);
  hk_model_plan_release(plan);
}

/* The model's values of its checks: equal to the host's, and with the same bits from a state. */
static void models(void **state)
{
  (void)state;
  const struct hk_model_plan *plan = plan_of(40);
  const struct hk_model_rule rule = { DT, 0.002, 3.75, 4 };
  const struct hk_pipelines_place place[] = { { &hk_pipelines_host, 0 }, { &hk_pipelines_gpu, 0 }, { &hk_pipelines_gpu, 0 } };
  struct hk_model *model[3];
  const double *nu[3];
  char error[256];
  double *y = calloc(plan->sensors, sizeof *y);
  uint32_t said = 0;
  assert_non_null(y);
  for (uint32_t k = 0; k < 3; k++)
    assert_int_equal(hk_model_new(&model[k], plan, &rule, &place[k], error, sizeof error), 0);
  for (int64_t row = 1; row <= 300; row++) {
    for (uint32_t i = 0; i < plan->lines; i++) {
      struct hk_pipelines_line line = { .active = 0 };
      ends(plan, i, (double)row, &line);
      y[4 * i] = line.end[0].is;
      y[4 * i + 1] = line.end[1].is;
      y[4 * i + 2] = 0.2 + 1e-3 * sin((double)row);
      y[4 * i + 3] = 2.7e6;
    }
    const uint32_t models = row > 150 ? 3 : 2;
    for (uint32_t k = 0; k < models; k++)
      nu[k] = hk_model_row(model[k], row, y);
    for (uint32_t i = 0; i < plan->sensors; i++) {
      assert_true(isnan(nu[0][i]) == isnan(nu[1][i]));
      assert_true(isnan(nu[0][i]) || fabs(nu[0][i] - nu[1][i]) <= 1e-9 * (plan->sensor[i].flow ? 0.5 : 3e6));
      said += !isnan(nu[1][i]);
    }
    if (models == 3)
      assert_memory_equal(nu[1], nu[2], plan->sensors * sizeof **nu);
    if (row == 150) {
      const size_t size = hk_model_state_size(plan);
      void *bytes = malloc(size);
      assert_non_null(bytes);
      hk_model_write(model[1], bytes);
      assert_true(hk_model_read(model[2], bytes, size));
      free(bytes);
    }
  }
  assert_true(said > 5000);
  for (uint32_t k = 0; k < 3; k++)
    hk_model_free(model[k]);
  hk_model_plan_release(plan);
  free(y);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(like_the_host), cmocka_unit_test(models) };
  const struct hk_model_plan *plan = plan_of(1);
  struct hk_pipelines *lines;
  char error[256];
  const int status = hk_pipelines_gpu.open(&lines, plan, 0, error, sizeof error);
  if (status == 0)
    hk_pipelines_gpu.close(lines);
  hk_model_plan_release(plan);
  if (status == -ENODEV) {
    printf("1..0 # SKIP %s\n", error);
    return 0;
  }
  return cmocka_run_group_tests_name("lines on the GPU", tests, NULL, NULL);
}
