/* Measures the speed of many band systems at once: the GPU, with all numbers in its memory, compared with LAPACK's dgbtrf
 * and dgbtrs on one thread and on `threads` threads of the host.
 *
 * bench_band [SYSTEMS [N [THREADS [lines]]]]: 10,000 systems of 2,000 equations without arguments, with 1 to 16 diagonals on
 * either side; then as many lines of pipes with as many unknowns, through gpu/model/pipelines_gpu.h. Times are medians of some
 * runs, with their range, in milliseconds for one solution of all systems; the host solves fewer systems, and its time is scaled
 * to all of them. GB/s counts each number of A and b as read once and each of x as written once. Backward errors are the largest
 * of all systems, in eps. Without a GPU the program reports that and exits with 77. */
#include "gpu/band/band_gpu.h"
#include "gpu/model/pipelines_gpu.h"
#include "tests/backend/band_cases.h"
#include "tests/bench/programs/bench.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

#define SKIPPED 77
#define RUNS 9u

struct times {
  double median, least, most; /* ms */
};

static struct times times_of(double t[RUNS], double scale)
{
  qsort(t, RUNS, sizeof *t, by_value);
  return (struct times){ t[RUNS / 2] * scale, t[0] * scale, t[RUNS - 1] * scale };
}

static double worst(const struct band_case *c, uint32_t *refined)
{
  double error = 0;
  for (uint32_t i = 0; i < c->shape.systems; i++) {
    check("status of a system", c->outcome[i].status);
    error = fmax(error, c->outcome[i].error);
    *refined += c->outcome[i].refined;
  }
  return error / 2.220446049250313e-16;
}

static void *device_copy(const void *from, size_t bytes)
{
  void *there;
  check("cudaMalloc", (int)cudaMalloc(&there, bytes));
  check("cudaMemcpy", (int)cudaMemcpy(there, from, bytes, cudaMemcpyHostToDevice));
  return there;
}

static struct times on_device(struct band_case *c, struct hk_band_gpu *g)
{
  const size_t vector = hk_band_vector(&c->shape) * sizeof(double), outcomes = c->shape.systems * sizeof *c->outcome;
  double *a = device_copy(c->a, hk_band_matrix(&c->shape) * sizeof(double)), *b = device_copy(c->b, vector),
         *x = device_copy(c->x, vector);
  struct hk_band_outcome *outcome = device_copy(c->outcome, outcomes);
  double took[RUNS];
  check("solve", hk_band_gpu_solve_there(g, a, b, x, outcome));
  for (uint32_t k = 0; k < RUNS; k++) {
    const double from = now_ms();
    check("solve", hk_band_gpu_solve_there(g, a, b, x, outcome));
    took[k] = now_ms() - from;
  }
  check("cudaMemcpy", (int)cudaMemcpy(c->x, x, vector, cudaMemcpyDeviceToHost));
  check("cudaMemcpy", (int)cudaMemcpy(c->outcome, outcome, outcomes, cudaMemcpyDeviceToHost));
  check("cudaFree", (int)cudaFree(a) | (int)cudaFree(b) | (int)cudaFree(x) | (int)cudaFree(outcome));
  return times_of(took, 1);
}

static struct times on_host(const struct band_case *all, uint32_t threads)
{
  const uint32_t half = all->shape.below, some = (half <= 4 ? 640 : 160) * (threads > 1 ? 4 : 1);
  struct hk_band_shape shape = all->shape;
  struct band_case c;
  double took[RUNS];
  shape.systems = some < shape.systems ? some : shape.systems;
  if (!band_make(&c, shape, all->kind, 1))
    check("memory", -1);
  check("solve", hk_band_solve(&shape, c.a, c.b, c.x, c.outcome, threads));
  for (uint32_t k = 0; k < RUNS; k++) {
    const double from = now_ms();
    check("solve", hk_band_solve(&shape, c.a, c.b, c.x, c.outcome, threads));
    took[k] = now_ms() - from;
  }
  band_drop(&c);
  return times_of(took, (double)all->shape.systems / shape.systems);
}

static void compare(uint32_t systems, uint32_t n, uint32_t half, uint32_t threads)
{
  const struct hk_band_shape shape = { systems, n, half, half };
  struct band_case c;
  struct hk_band_gpu *g;
  char error[256];
  uint32_t refined = 0;
  const int status = hk_band_gpu_open(&g, &shape, 0, error, sizeof error);
  if (status != 0) {
    printf("skipped: %s\n", error);
    exit(status == -ENODEV ? SKIPPED : 1);
  }
  if (!band_make(&c, shape, half == 2 ? BAND_PIPES : BAND_RANDOM, 1))
    check("memory", -1);
  const struct times there = on_device(&c, g), one = on_host(&c, 1), many = on_host(&c, threads);
  const double bytes = (double)(hk_band_matrix(&shape) + 2 * hk_band_vector(&shape)) * sizeof(double);
  const double eps = worst(&c, &refined);
  printf("%5u x %5u, %2u on a side, %-6s  GPU %7.3f (%.3f to %.3f), %4.0f GB/s  1 thread %8.0f (%.0f to %.0f)  %u threads %7.0f "
         "(%.0f to %.0f): %4.0f and %3.0f times  error %.2f eps, %u refined\n",
         systems, n, half, half == 2 ? "pipes" : "random", there.median, there.least, there.most, bytes / there.median * 1e-6,
         one.median, one.least, one.most, threads, many.median, many.least, many.most, one.median / there.median,
         many.median / there.median, eps, refined);
  fflush(stdout);
  hk_band_gpu_close(g);
  band_drop(&c);
}

/* --- lines of pipes ----------------------------------------------------------------------------------------------------- */

static const struct hk_model_plan *make_plan(uint32_t lines, uint32_t cells)
{
  const struct hk_model_plan *plan;
  char error[256], *text = malloc(lines * (size_t)256);
  size_t at = 0;
  if (!text)
    check("memory", -1);
  for (uint32_t i = 0; i < lines; i++)
    at += (size_t)snprintf(
        text + at, 256,
        "line %u\nedge a b %u000 0.5 0.02 1000 %u\nsensor a%u p a boundary\nsensor b%u p b boundary\nsensor q%u q a check\n", i,
        cells, cells, i, i, i);
  if (hk_model_plan_parse(&plan, text, at, error, sizeof error) != 0) {
    fprintf(stderr, "bench_band: %s\n", error);
    exit(1);
  }
  free(text);
  return plan;
}

/* Computes steps of all lines, whose pressures oscillate. */
static struct times steps(const struct hk_pipelines_kind *kind, const struct hk_model_plan *plan, uint32_t number, double scale)
{
  struct hk_pipelines *lines;
  struct hk_pipelines_line *line = calloc(plan->lines, sizeof *line);
  struct hk_pipelines_seen seen = { calloc(plan->sensors, sizeof(double)), calloc(plan->lines, 2 * sizeof(double)) };
  char error[256];
  double took[RUNS];
  if (!line || !seen.value || !seen.flow || kind->open(&lines, plan, number, error, sizeof error) != 0)
    check("lines", -1);
  for (uint32_t k = 0; k < RUNS + 3; k++) {
    for (uint32_t i = 0; i < plan->lines; i++)
      line[i] = (struct hk_pipelines_line){
        { { 1, 0, 0, 1e6 * sin(0.1 * k + i) }, { 1, 0, 0, 1e6 * cos(0.2 * k) } }, 1, 1, 0, 0, 0, NULL
      };
    const double from = now_ms();
    check("step", kind->step(lines, line, 1, &seen));
    if (k >= 3)
      took[k - 3] = now_ms() - from;
    for (uint32_t i = 0; i < plan->lines; i++)
      check("status of a line", line[i].status);
  }
  kind->close(lines);
  free(line);
  free(seen.value);
  free(seen.flow);
  return times_of(took, scale);
}

static void compare_lines(uint32_t n_lines, uint32_t n, uint32_t threads)
{
  const uint32_t some = n_lines < 320 ? n_lines : 320, more = n_lines < 4 * some ? n_lines : 4 * some;
  const struct hk_model_plan *all = make_plan(n_lines, n / 2 - 1), *few = make_plan(some, n / 2 - 1),
                             *several = make_plan(more, n / 2 - 1);
  const struct times there = steps(&hk_pipelines_gpu, all, 0, 1), one = steps(&hk_pipelines_host, few, 1, (double)n_lines / some),
                     many = steps(&hk_pipelines_host, several, threads, (double)n_lines / more);
  printf("%5u lines of pipes of %u unknowns, a step (two Newton steps, ends up, readings down)  GPU %.3f (%.3f to %.3f)  1 "
         "thread %.0f (%.0f to %.0f)  %u threads %.0f (%.0f to %.0f): %.0f and %.0f times\n",
         n_lines, n, there.median, there.least, there.most, one.median, one.least, one.most, threads, many.median, many.least,
         many.most, one.median / there.median, many.median / there.median);
  fflush(stdout);
  hk_model_plan_release(all);
  hk_model_plan_release(few);
  hk_model_plan_release(several);
}

int main(int n_args, char **args)
{
  const uint32_t systems = n_args > 1 ? (uint32_t)strtoul(args[1], NULL, 10) : 10000;
  const uint32_t n = n_args > 2 ? (uint32_t)strtoul(args[2], NULL, 10) / 2 * 2 : 2000;
  const uint32_t threads = n_args > 3 ? (uint32_t)strtoul(args[3], NULL, 10) : 8;
  const uint32_t halves[] = { 1, 2, 3, 4, 8, 16 };
  if (systems == 0 || n < 4 || threads == 0) {
    fprintf(stderr,
            "usage: bench_band [SYSTEMS [N [THREADS [lines]]]], at least 4 equations; lines: nothing but lines of pipes\n");
    return 2;
  }
  for (size_t k = 0; k < sizeof halves / sizeof *halves && n_args <= 4; k++)
    compare(systems, n, halves[k], threads);
  compare_lines(systems, n, threads);
  return 0;
}
