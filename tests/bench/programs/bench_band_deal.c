/* Measures Baranov's scheme, which distributes one wide band over several GPUs with cuBLAS: GPU (t - 2) mod g has block
 * column t, u + 1 block columns are resident in a ring, dgetrf factorises the panel on the host, and a stream of its own
 * updates column i + 1 first.
 *
 * bench_band_deal N HALVES BLOCKS GPUS [RUNS]: each argument is a list of numbers with commas, and the program runs all
 * combinations. Blocks are at most as wide as the half-bandwidth; the half-bandwidth and N are rounded to a multiple of
 * the block. Prints the time of the factorisation in ms, from pinned memory of the host and back, as the median of the runs with
 * their range, and the backward error of a solution with the factors. Without a GPU the program exits with 77.
 */
#include "tests/bench/programs/band_exchange.h"
#include "tests/bench/programs/bench.h"

#include <cblas.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <lapacke.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKIPPED 77
#define GPUS_MAX 8
#define RUNS_MAX 9
#define PAIRS_KEPT 16 /* lists of row exchanges; a GPU lags by fewer panels than there are GPUs */

/* A block column has u blocks above its diagonal block, and l below; block columns before the first are empty. */
struct shape {
  int b, l, u, p, gpus; /* columns of a block; blocks below the diagonal; blocks above it, with fill-in; block columns */
  size_t ld, size;      /* rows of a block column, numbers */
};

struct gpu {
  double *ring, *panel[2], *inverse, *identity, *top;
  int *pairs[2]; /* 2 b rows where from, 2 b where to, and their number */
  int slots;
  cublasHandle_t first_blas, rest_blas;
  cudaStream_t first, rest, copies;
  cudaEvent_t told, rested[2], copied;
};

static int owner_of(const struct shape *s, int column)
{
  return (column - 1 + s->gpus) % s->gpus;
}

static double *slot_of(const struct shape *s, const struct gpu *g, int column)
{
  return g->ring + (size_t)(column / s->gpus % g->slots) * s->size;
}

/* Block row `row` of a block column. */
static size_t down(const struct shape *s, int row, int column)
{
  return (size_t)(row - column + s->u) * (size_t)s->b;
}

/* --- the matrix --------------------------------------------------------------------------------------------------------- */

static double number_of(int row, int column)
{
  uint64_t h = ((uint64_t)row << 32 | (uint32_t)column) * 0x9e3779b97f4a7c15u;
  h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
  return (double)((h ^ h >> 32) >> 11) * 0x1p-52 - 1;
}

static void fill(const struct shape *s, double *host)
{
  const int half = s->l * s->b, n = s->p * s->b;
  memset(host, 0, (size_t)s->p * s->size * sizeof *host);
  for (int column = 0; column < n; column++) {
    double *to = host + (size_t)(column / s->b) * s->size + (size_t)(column % s->b) * s->ld;
    const int top = (column / s->b - s->u) * s->b, last = column + half < n ? column + half : n - 1;
    for (int row = column > half ? column - half : 0; row <= last; row++)
      to[row - top] = number_of(row, column);
  }
}

/* --- GPUs --------------------------------------------------------------------------------------------------------------- */

static void open_gpu(const struct shape *s, struct gpu *g, int device)
{
  const size_t square = (size_t)s->b * (size_t)s->b * sizeof(double);
  int least = 0, most = 0;
  memset(g, 0, sizeof *g);
  g->slots = (s->u + 2 + s->gpus - 1) / s->gpus + 1;
  check("cudaSetDevice", (int)cudaSetDevice(device));
  check("priorities", (int)cudaDeviceGetStreamPriorityRange(&least, &most));
  check("memory of a GPU", (int)cudaMalloc((void **)&g->ring, (size_t)g->slots * s->size * sizeof(double)) |
                               (int)cudaMalloc((void **)&g->inverse, square) | (int)cudaMalloc((void **)&g->identity, square) |
                               (int)cudaMalloc((void **)&g->top, (size_t)(g->slots + 1) * square));
  double *identity = calloc(square, 1);
  if (!identity)
    check("memory", -1);
  for (int i = 0; i < s->b; i++)
    identity[i * (s->b + 1)] = 1;
  check("identity", (int)cudaMemcpy(g->identity, identity, square, cudaMemcpyHostToDevice));
  free(identity);
  for (int k = 0; k < 2; k++)
    check("memory of a panel", (int)cudaMalloc((void **)&g->panel[k], (size_t)(s->l + 1) * square) |
                                   (int)cudaMalloc((void **)&g->pairs[k], (4 * (size_t)s->b + 1) * sizeof(int)) |
                                   (int)cudaEventCreateWithFlags(&g->rested[k], cudaEventDisableTiming));
  check("streams", (int)cudaStreamCreateWithPriority(&g->first, cudaStreamNonBlocking, most) |
                       (int)cudaStreamCreateWithPriority(&g->rest, cudaStreamNonBlocking, least) |
                       (int)cudaStreamCreateWithPriority(&g->copies, cudaStreamNonBlocking, most));
  check("events", (int)cudaEventCreateWithFlags(&g->told, cudaEventDisableTiming) |
                      (int)cudaEventCreateWithFlags(&g->copied, cudaEventDisableTiming));
  check("cublasCreate", (int)cublasCreate(&g->first_blas) | (int)cublasCreate(&g->rest_blas));
  check("cublasSetStream", (int)cublasSetStream(g->first_blas, g->first) | (int)cublasSetStream(g->rest_blas, g->rest));
}

static void close_gpu(struct gpu *g, int device)
{
  check("cudaSetDevice", (int)cudaSetDevice(device));
  check("cublasDestroy", (int)cublasDestroy(g->first_blas) | (int)cublasDestroy(g->rest_blas));
  for (int k = 0; k < 2; k++)
    check("free", (int)cudaFree(g->panel[k]) | (int)cudaFree(g->pairs[k]) | (int)cudaEventDestroy(g->rested[k]));
  check("free", (int)cudaFree(g->ring) | (int)cudaFree(g->inverse) | (int)cudaFree(g->identity) | (int)cudaFree(g->top));
  check("free", (int)cudaStreamDestroy(g->first) | (int)cudaStreamDestroy(g->rest) | (int)cudaStreamDestroy(g->copies) |
                    (int)cudaEventDestroy(g->told) | (int)cudaEventDestroy(g->copied));
}

/* Loads a block column into its GPU's ring, after the copies to the host of the column that it replaces. */
static void load(const struct shape *s, struct gpu *gpus, const double *host, int column)
{
  const int device = owner_of(s, column);
  struct gpu *g = &gpus[device];
  check("load", (int)cudaSetDevice(device) |
                    (int)cudaMemcpyAsync(slot_of(s, g, column), host + (size_t)column * s->size, s->size * sizeof *host,
                                         cudaMemcpyHostToDevice, g->copies) |
                    (int)cudaEventRecord(g->copied, g->copies));
}

/* --- steps -------------------------------------------------------------------------------------------------------------- */

/* Turns LAPACK's exchanges into moves of rows: 2 b source rows, 2 b target rows, and their number. */
static void pairs_of(const struct shape *s, int rows, const int *pivot, int *row, int *pairs)
{
  int *from = pairs, *to = pairs + 2 * s->b, count = s->b;
  for (int i = 0; i < rows; i++)
    row[i] = i;
  for (int i = 0; i < s->b; i++) {
    const int other = row[pivot[i] - 1];
    row[pivot[i] - 1] = row[i];
    row[i] = other;
  }
  for (int i = 0; i < s->b; i++) {
    from[i] = row[i];
    to[i] = i;
  }
  for (int i = 0; i < s->b; i++) {
    const int at = pivot[i] - 1;
    if (at < s->b || row[at] == at)
      continue;
    from[count] = row[at];
    to[count++] = at;
    row[at] = at;
  }
  pairs[4 * s->b] = count;
}

/* Updates columns `from`, from + g, .. to - 1 of GPU g by panel i. */
static void update(const struct shape *s, struct gpu *g, int i, int from, int to, int rows, int first)
{
  const int b = s->b, turn = i % 2;
  const double one = 1, minus = -1;
  cublasHandle_t blas = first ? g->first_blas : g->rest_blas;
  cudaStream_t stream = first ? g->first : g->rest;
  if (!first && from < to)
    check("inverse", (int)cudaMemcpyAsync(g->inverse, g->identity, (size_t)b * (size_t)b * sizeof(double),
                                          cudaMemcpyDeviceToDevice, stream) |
                         (int)cublasDtrsm(blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, b, b,
                                          &one, g->panel[turn], rows, g->inverse, b));
  while (from < to) { /* up to the end of the ring, where the distance between columns changes */
    const int slot = from / s->gpus % g->slots, all = (to - from + s->gpus - 1) / s->gpus,
              count = all < g->slots - slot ? all : g->slots - slot;
    const long long apart = (long long)s->size - (long long)s->gpus * b, square = (long long)b * b;
    double *at = slot_of(s, g, from) + down(s, i, from);
    const struct band_exchange_rows exchange = { .first = at,
                                                 .top = first ? NULL : g->top,
                                                 .apart = apart,
                                                 .ld = s->ld,
                                                 .from = g->pairs[turn],
                                                 .to = g->pairs[turn] + 2 * b,
                                                 .pairs = g->pairs[turn] + 4 * b,
                                                 .size = (uint32_t)b,
                                                 .blocks = (uint32_t)count };
    check("exchange", band_exchange(&exchange, stream));
    if (first)
      check("dtrsm", (int)cublasDtrsm(blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, b, b, &one,
                                      g->panel[turn], rows, at, (int)s->ld));
    else
      check("triangle", (int)cublasDgemmStridedBatched(blas, CUBLAS_OP_N, CUBLAS_OP_N, b, b, b, &one, g->inverse, b, 0, g->top, b,
                                                       square, &(double){ 0 }, at, (int)s->ld, apart, count));
    if (rows > b)
      check("dgemm", (int)cublasDgemmStridedBatched(blas, CUBLAS_OP_N, CUBLAS_OP_N, rows - b, b, b, &minus, g->panel[turn] + b,
                                                    rows, 0, at, (int)s->ld, apart, &one, at + b, (int)s->ld, apart, count));
    from += count * s->gpus;
  }
}

/* The work of GPU `device` on panel i, which has `rows` rows. */
static void step(const struct shape *s, struct gpu *gpus, const double *panel, const int *pairs, int device, int i, int rows)
{
  struct gpu *g = &gpus[device];
  const int turn = i % 2, end = i + s->u + 1 < s->p ? i + s->u + 1 : s->p;
  const size_t high = (size_t)rows * sizeof(double);
  check("panel to a GPU", (int)cudaSetDevice(device) | (int)cudaStreamWaitEvent(g->first, g->rested[turn], 0) |
                              (int)cudaMemcpy2DAsync(g->panel[turn], high, panel, s->ld * sizeof(double), high, (size_t)s->b,
                                                     cudaMemcpyHostToDevice, g->first) |
                              (int)cudaMemcpyAsync(g->pairs[turn], pairs, (4 * (size_t)s->b + 1) * sizeof *pairs,
                                                   cudaMemcpyHostToDevice, g->first) |
                              (int)cudaEventRecord(g->told, g->first));
  if (i + 1 < s->p && owner_of(s, i + 1) == device) {
    check("wait", (int)cudaStreamWaitEvent(g->first, g->rested[turn ^ 1], 0) | (int)cudaStreamWaitEvent(g->first, g->copied, 0));
    update(s, g, i, i + 1, i + 2, rows, 1);
  }
  int from = i + 2;
  while (owner_of(s, from) != device)
    from++;
  check("wait", (int)cudaStreamWaitEvent(g->rest, g->told, 0) | (int)cudaStreamWaitEvent(g->rest, g->copied, 0));
  update(s, g, i, from, end, rows, 0);
  check("rested", (int)cudaEventRecord(g->rested[turn], g->rest));
}

/* pivot: the pivots of all panels. */
static void factorise(const struct shape *s, struct gpu *gpus, double *host, int *pivot, int *pairs, int *row)
{
  for (int column = 0; column <= s->u && column < s->p; column++)
    load(s, gpus, host, column);
  check("wait", (int)cudaStreamWaitEvent(gpus[owner_of(s, 0)].first, gpus[owner_of(s, 0)].copied, 0));
  for (int i = 0; i < s->p; i++) {
    const int owner = owner_of(s, i), rows = (i + s->l < s->p ? s->l + 1 : s->p - i) * s->b;
    struct gpu *g = &gpus[owner];
    double *const column = host + (size_t)i * s->size, *const panel = column + down(s, i, i);
    const size_t ld = s->ld * sizeof(double);
    check("panel to the host",
          (int)cudaSetDevice(owner) |
              (int)cudaMemcpy2DAsync(panel, ld, slot_of(s, g, i) + down(s, i, i), ld, (size_t)rows * sizeof(double), (size_t)s->b,
                                     cudaMemcpyDeviceToHost, g->first) |
              (int)cudaStreamSynchronize(g->first));
    check("column to the host", (int)cudaMemcpy2DAsync(column, ld, slot_of(s, g, i), ld, (size_t)(s->u * s->b) * sizeof(double),
                                                       (size_t)s->b, cudaMemcpyDeviceToHost, g->copies));
    check("dgetrf", LAPACKE_dgetrf_work(LAPACK_COL_MAJOR, rows, s->b, panel, (int)s->ld, pivot + i * s->b));
    int *const now = pairs + i % PAIRS_KEPT * (4 * s->b + 1);
    pairs_of(s, rows, pivot + i * s->b, row, now);
    for (int device = 0; device < s->gpus; device++)
      step(s, gpus, panel, now, device, i, rows);
    if (i + s->u + 1 < s->p)
      load(s, gpus, host, i + s->u + 1);
  }
  for (int device = 0; device < s->gpus; device++)
    check("end", (int)cudaSetDevice(device) | (int)cudaDeviceSynchronize());
}

/* --- the solution by the factors, on the host --------------------------------------------------------------------------- */

static double backward_error(const struct shape *s, const double *host, const int *pivot, double *x)
{
  const int n = s->p * s->b, b = s->b, half = s->l * b, ld = (int)s->ld;
  for (int i = 0; i < n; i++)
    x[i] = sin(i);
  for (int i = 0; i < s->p; i++) {
    const double *panel = host + (size_t)i * s->size + down(s, i, i);
    const int rows = (i + s->l < s->p ? s->l + 1 : s->p - i) * b;
    double *const y = x + (size_t)i * (size_t)b;
    for (int k = 0; k < b; k++) {
      const double value = y[pivot[i * b + k] - 1];
      y[pivot[i * b + k] - 1] = y[k];
      y[k] = value;
    }
    cblas_dtrsv(CblasColMajor, CblasLower, CblasNoTrans, CblasUnit, b, panel, ld, y, 1);
    if (rows > b)
      cblas_dgemv(CblasColMajor, CblasNoTrans, rows - b, b, -1, panel + b, ld, y, 1, 1, y + b, 1);
  }
  for (int i = s->p - 1; i >= 0; i--) {
    const int above = i < s->u ? i : s->u;
    const double *const diagonal = host + (size_t)i * s->size + down(s, i, i);
    double *const y = x + (size_t)i * (size_t)b;
    cblas_dtrsv(CblasColMajor, CblasUpper, CblasNoTrans, CblasNonUnit, b, diagonal, ld, y, 1);
    if (above > 0)
      cblas_dgemv(CblasColMajor, CblasNoTrans, above * b, b, -1, diagonal - above * b, ld, y, 1, 1, y - above * b, 1);
  }
  double residual = 0, matrix = 0, solution = 0;
  for (int i = 0; i < n; i++) {
    double rest = sin(i), sum = 0;
    for (int j = i > half ? i - half : 0; j < n && j <= i + half; j++) {
      rest -= number_of(i, j) * x[j];
      sum += fabs(number_of(i, j));
    }
    residual = fmax(residual, fabs(rest));
    matrix = fmax(matrix, sum);
    solution = fmax(solution, fabs(x[i]));
  }
  return isfinite(solution) ? residual / (matrix * solution + 1) / 0x1p-52 : INFINITY;
}

/* --- cases -------------------------------------------------------------------------------------------------------------- */

static void *pinned(size_t bytes)
{
  void *memory;
  check("pinned memory", (int)cudaHostAlloc(&memory, bytes, cudaHostAllocPortable));
  return memory;
}

static void run(int n, int half, int b, int count, int runs)
{
  const int l = (half + b - 1) / b, u = 2 * l, p = (n + b - 1) / b;
  struct shape s = { b, l, u, p, count, (size_t)(u + l + 1) * (size_t)b, 0 };
  struct gpu gpus[GPUS_MAX];
  double took[RUNS_MAX];
  s.size = s.ld * (size_t)b;
  const size_t all = (size_t)(p * b);
  double *host = pinned((size_t)p * s.size * sizeof *host), *x = malloc((all + s.ld) * sizeof *x);
  int *pivot = malloc(all * sizeof *pivot), *row = malloc(s.ld * sizeof *row),
      *pairs = pinned(PAIRS_KEPT * (4 * (size_t)b + 1) * sizeof *pairs);
  if (!x || !pivot || !row)
    check("memory", -1);
  for (int device = 0; device < count; device++)
    open_gpu(&s, &gpus[device], device);
  for (int k = 0; k < runs; k++) {
    fill(&s, host);
    const double from = now_ms();
    factorise(&s, gpus, host, pivot, pairs, row);
    took[k] = now_ms() - from;
  }
  const double error = backward_error(&s, host, pivot, x);
  for (int device = 0; device < count; device++)
    close_gpu(&gpus[device], device);
  qsort(took, (size_t)runs, sizeof *took, by_value);
  printf("n %d, half %d, block %d, %d GPUs: %.1f (%.1f to %.1f), %.2f eps\n", p * b, l * b, b, count, took[runs / 2], took[0],
         took[runs - 1], error);
  fflush(stdout);
  check("free", (int)cudaFreeHost(host) | (int)cudaFreeHost(pairs));
  free(x);
  free(pivot);
  free(row);
}

/* Reads the numbers of a list. */
static int list_of(const char *text, int *numbers, int most)
{
  int count = 0;
  for (char *end; *text && count < most; text = *end == ',' ? end + 1 : end) {
    numbers[count++] = (int)strtol(text, &end, 10);
    if (end == text || numbers[count - 1] <= 0)
      check(text, -1);
  }
  return count;
}

int main(int argc, char **argv)
{
  int devices, halves[16], blocks[16], counts[16];
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
    return SKIPPED;
  const int n = argc > 1 ? atoi(argv[1]) : 25000, runs = argc > 5 ? atoi(argv[5]) : 3,
            half_count = list_of(argc > 2 ? argv[2] : "256,1024", halves, 16),
            block_count = list_of(argc > 3 ? argv[3] : "32,64,128,256,512", blocks, 16),
            gpu_count = list_of(argc > 4 ? argv[4] : "1", counts, 16);
  if (n <= 0 || runs < 1 || runs > RUNS_MAX)
    check("N HALVES BLOCKS GPUS [RUNS]", -1);
  for (int h = 0; h < half_count; h++)
    for (int k = 0; k < block_count; k++)
      for (int g = 0; g < gpu_count; g++)
        if (blocks[k] <= halves[h] && blocks[k] <= 512 && counts[g] <= devices && counts[g] <= GPUS_MAX)
          run(n, halves[h], blocks[k], counts[g], runs);
  return 0;
}
