/* Measures the speed of one system with a wide band matrix: the GPU, with A, b and x in its memory, compared with
 * LAPACK's dgbtrf and dgbtrs.
 *
 * bench_band_wide N HALF [SEGMENTS [BLOCK [RUNS [HOST_N]]]]: a random system of N equations with HALF diagonals on either side.
 * SEGMENTS or BLOCK of 0: the program chooses. Several, with commas: all combinations. Prints the times of factorisation and
 * solution in ms, medians of the runs with their range, and the backward error. HOST_N: the number of equations that the host
 * solves once, with 1 and 8 threads of OpenBLAS; its time is scaled to N; 0: none. Without a GPU the program exits with 77. */
#include "gpu/band/wide_gpu.h"
#include "tests/backend/band_cases.h"
#include "tests/bench/programs/bench.h"

#include <cblas.h>
#include <cuda_runtime_api.h>
#include <lapacke.h>
#include <stdio.h>

#define SKIPPED 77
#define RUNS_MAX 99u

static void report(const char *what, double *t, uint32_t runs)
{
  qsort(t, runs, sizeof *t, by_value);
  printf("  %s %.2f (%.2f to %.2f)", what, t[runs / 2], t[0], t[runs - 1]);
}

/* Makes a band as band_make does, but fast. */
static double *random_matrix(const struct hk_band_shape *s)
{
  const size_t numbers = hk_band_matrix(s);
  double *a = malloc(numbers * sizeof *a);
  uint64_t seed = 1;
  if (!a)
    check("memory", -1);
  for (size_t i = 0; i < numbers; i++)
    a[i] = band_uniform(&seed);
  return a;
}

/* Matrix, right side and solution in the GPU's memory. */
struct there {
  double *a, *b, *x;
};

static struct there to_device(const struct hk_band_shape *s, const double *a, const double *b)
{
  const size_t bytes = hk_band_matrix(s) * sizeof *a, vector = s->n * sizeof *b;
  struct there t;
  check("cudaMalloc",
        (int)cudaMalloc((void **)&t.a, bytes) | (int)cudaMalloc((void **)&t.b, vector) | (int)cudaMalloc((void **)&t.x, vector));
  check("cudaMemcpy",
        (int)cudaMemcpy(t.a, a, bytes, cudaMemcpyHostToDevice) | (int)cudaMemcpy(t.b, b, vector, cudaMemcpyHostToDevice));
  return t;
}

static void on_device(struct hk_band_wide *w, const struct there *t, uint32_t runs)
{
  double took[RUNS_MAX], again[RUNS_MAX];
  struct hk_band_outcome o, o2;
  check("solve", hk_band_wide_solve_there(w, t->a, t->b, t->x, &o));
  for (uint32_t k = 0; k < runs; k++) {
    const double from = now_ms();
    check("solve", hk_band_wide_solve_there(w, t->a, t->b, t->x, &o));
    took[k] = now_ms() - from;
  }
  for (uint32_t k = 0; k < runs; k++) {
    const double from = now_ms();
    check("solve", hk_band_wide_solve_with_there(w, t->b, t->x, &o2));
    again[k] = now_ms() - from;
  }
  report("GPU", took, runs);
  report("with the factors", again, runs);
  printf("  %.2f eps, status %d, refined %u, whole %u", o.error / 2.220446049250313e-16, o.status, o.refined, o.whole);
  fflush(stdout);
}

static void on_host(const struct hk_band_shape *s, const double *a, const double *b, double scale, int threads)
{
  const lapack_int n = (lapack_int)s->n, half = (lapack_int)s->below, stride = 3 * half + 1;
  double *factor = calloc((size_t)n * (size_t)stride, sizeof *factor), *x = malloc((size_t)n * sizeof *x);
  int *pivot = malloc((size_t)n * sizeof *pivot);
  if (!factor || !x || !pivot)
    check("memory", -1);
  for (uint32_t row = 0; row < s->n; row++)
    for (uint32_t column = row < s->below ? 0 : row - s->below; column < s->n && column <= row + s->above; column++)
      factor[column * (size_t)stride + s->below + s->above + row - column] = a[hk_band_at(s, 0, row, column)];
  memcpy(x, b, s->n * sizeof *x);
  openblas_set_num_threads(threads);
  const double from = now_ms();
  check("dgbtrf", LAPACKE_dgbtrf_work(LAPACK_COL_MAJOR, n, n, half, half, factor, stride, pivot));
  const double between = now_ms();
  check("dgbtrs", LAPACKE_dgbtrs_work(LAPACK_COL_MAJOR, 'N', n, half, half, 1, factor, stride, pivot, x, n));
  const double to = now_ms();
  printf("  %d threads: dgbtrf %.0f + dgbtrs %.0f", threads, (between - from) * scale, (to - between) * scale);
  fflush(stdout);
  free(factor);
  free(x);
  free(pivot);
}

static uint32_t argument(int argc, char **argv, int at, uint32_t otherwise)
{
  return argc > at ? (uint32_t)strtoul(argv[at], NULL, 10) : otherwise;
}

/* Reads the number at *list, and moves *list behind it. */
static uint32_t next_of(const char **list)
{
  char *end;
  const uint32_t number = (uint32_t)strtoul(*list, &end, 10);
  if (end == *list)
    check("a number", -1);
  *list = *end == ',' ? end + 1 : end;
  return number;
}

static int in_ways(const struct hk_band_shape *s, const struct there *t, const char *segments, const char *blocks, uint32_t runs)
{
  for (const char *of_segments = segments; *of_segments;) {
    struct hk_band_wide_way way = { next_of(&of_segments), 0 };
    for (const char *of_blocks = blocks; *of_blocks;) {
      struct hk_band_wide *w;
      char error[256];
      way.block = next_of(&of_blocks);
      const int status = hk_band_wide_open(&w, s, &way, 0, error, sizeof error);
      if (status != 0) {
        fprintf(stderr, "bench_band_wide: %s\n", error);
        return status;
      }
      printf("n %u, half %u, segments %u, block %u, %.2f GB:", s->n, s->below, way.segments, way.block,
             (double)hk_band_wide_bytes(s, &way) * 1e-9);
      on_device(w, t, runs);
      hk_band_wide_close(w);
      printf("\n");
    }
  }
  return 0;
}

int main(int argc, char **argv)
{
  const uint32_t n = argument(argc, argv, 1, 100000), half = argument(argc, argv, 2, 316), runs = argument(argc, argv, 5, 5),
                 host = argument(argc, argv, 6, 0);
  const struct hk_band_shape shape = { 1, n, half, half };
  int devices;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
    return SKIPPED;
  if (n == 0 || runs == 0 || runs > RUNS_MAX || host > n) {
    fprintf(stderr, "bench_band_wide: N HALF [SEGMENTS [BLOCK [RUNS [HOST_N]]]]\n");
    return 1;
  }
  double *a = random_matrix(&shape), *b = malloc(n * sizeof *b);
  if (!b)
    check("memory", -1);
  for (uint32_t i = 0; i < n; i++)
    b[i] = sin(i);
  const struct there t = to_device(&shape, a, b);
  const int failed = in_ways(&shape, &t, argc > 3 ? argv[3] : "0", argc > 4 ? argv[4] : "0", runs);
  check("cudaFree", (int)cudaFree(t.a) | (int)cudaFree(t.b) | (int)cudaFree(t.x));
  if (host > 0) {
    const struct hk_band_shape part = { 1, host, half, half };
    on_host(&part, a, b, (double)n / host, 1);
    on_host(&part, a, b, (double)n / host, 8);
    printf("\n");
  }
  free(a);
  free(b);
  return failed != 0;
}
