/* Measures the speed of the graph residual on the GPU: a whole row and its passes, with and without copies of the row, compared
 * with one thread of the host; and the third pass, which multiplies the sparse matrix of weights by the row, compared with
 * cuSPARSE's product: compressed rows (CSR) by each of its algorithms, sliced ELLPACK (SELL) and, if the graph is in order,
 * blocks of 8 x 8 (BSR). The program loads cuSPARSE at run time; nothing is linked to it.
 *
 * bench_residual [NODES [Q [GRAPH...]]]: by default a million nodes with 16 neighbours each. Graphs: `near`, whose nodes have the
 * adjacent numbers as neighbours; `random`; `power`, which chooses a node with a chance that falls with the square root of its
 * number. Times are medians of some runs, in microseconds a row; those of passes and products are of 20 launches in one graph of
 * CUDA's, without the host's part. TB/s counts the bytes that must move (columns once, each node's record once). Without a GPU
 * the program reports that and exits with 77. */
#include "gpu/cuda.h"
#include "gpu/field/residual_gpu.h"
#include "gpu/field/residual_kernels.h"
#include "tests/bench/programs/bench.h"
#include "tests/unit/support/noise.h"

#include <cuda_runtime_api.h>
#include <cusparse.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define SKIPPED 77
#define RUNS 9u
#define LEARNING 340u /* rows until there are weights, and errors enough for bounds */
#define FIND(library, name) ((__typeof__(&name))dlsym(library, #name))

static void *device(size_t bytes)
{
  void *memory;
  check("cudaMalloc", (int)cudaMalloc(&memory, bytes));
  return memory;
}

static void *device_copy(const void *host, size_t bytes)
{
  void *memory = device(bytes);
  check("cudaMemcpy", (int)cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice));
  return memory;
}

/* ---- a field ---- */

static uint32_t neighbour(const char *graph, uint32_t i, uint32_t k, uint32_t n)
{
  if (*graph == 'n')
    return (i + 1 + k) % n;
  const double u = uniform();
  const uint32_t j = (uint32_t)((*graph == 'r' ? u : u * u) * n);
  return j == i ? (i + 1) % n : j;
}

static void open_field(struct hk_residual *f, const char *graph, uint32_t n, uint32_t q)
{
  const struct hk_residual_rule rule = {
    .neighbours = q, .refit = 24, .forget = 0.999, .clip = 3.75f, .fast = 4.0f / 96, .slow = 1.0f / 768
  };
  check("hk_residual_open", hk_residual_open(f, &rule, n));
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < q; k++)
      f->neighbour[hk_residual_at(f->rule.neighbours, k, i)] = neighbour(graph, i, k, n);
}

/* Rows that repeat; more than are in the caches. */
#define X_ROWS 16u

static double *rows_of(uint32_t room)
{
  double *x = malloc((size_t)X_ROWS * room * sizeof *x);
  if (!x)
    check("memory", -1);
  for (uint32_t t = 0; t < X_ROWS; t++) {
    const double front = 4 * uniform();
    for (uint32_t i = 0; i < room; i++)
      x[(size_t)t * room + i] = front * (1 + i % 7) + uniform();
  }
  return x;
}

/* ---- ours ---- */

struct ours {
  struct hk_residual_gpu *g;
  double *x, *r; /* device: X_ROWS, and as many */
};

static double row_us(struct ours *o, uint32_t rows)
{
  double t[RUNS];
  for (uint32_t run = 0; run < RUNS; run++) {
    const double begin = now_us();
    for (uint32_t k = 0; k < rows; k += X_ROWS)
      check("rows", hk_residual_gpu_rows_there(o->g, o->x, o->r, X_ROWS));
    t[run] = (now_us() - begin) / rows;
  }
  return median(t, RUNS);
}

static double copied_us(struct ours *o, const double *x, double *r, uint32_t rows)
{
  double t[RUNS];
  for (uint32_t run = 0; run < RUNS; run++) {
    const double begin = now_us();
    check("rows", hk_residual_gpu_rows(o->g, x, r, rows));
    t[run] = (now_us() - begin) / rows;
  }
  return median(t, RUNS);
}

/* Works as a field of the daemon does: also copies the columns that the host reads of every row back, into unpinned
 * memory. */
static double field_us(struct ours *o, struct hk_residual *f, const double *x, double *r)
{
  double t[RUNS];
  char error[256];
  for (uint32_t run = 0; run < RUNS; run++) {
    const double begin = now_us();
    for (uint32_t k = 0; k < X_ROWS; k++)
      check("row", hk_cuda_residual.row(o->g, f, 0, x + (size_t)k * f->room, r, error, sizeof error));
    t[run] = (now_us() - begin) / X_ROWS;
  }
  return median(t, RUNS);
}

#define LAUNCHES 20
#define WARM_US 5e4 /* until the clocks have risen */
typedef int timed_launch(const void *what, cudaStream_t stream);

/* Prints the microseconds of a launch, median and range, and returns the median. */
static double replayed_us(const char *name, timed_launch *launch, const void *what, cudaStream_t stream)
{
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaEvent_t begin, end;
  double t[RUNS];
  check(name, launch(what, stream));
  check("capture", (int)cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int k = 0; k < LAUNCHES; k++)
    check(name, launch(what, stream));
  check("capture", (int)cudaStreamEndCapture(stream, &graph));
  check("graph", (int)cudaGraphInstantiate(&exec, graph, 0));
  check("event", (int)cudaEventCreate(&begin));
  check("event", (int)cudaEventCreate(&end));
  for (const double start = now_us(); now_us() - start < WARM_US;) {
    check("graph", (int)cudaGraphLaunch(exec, stream));
    check("wait", (int)cudaStreamSynchronize(stream));
  }
  for (uint32_t run = 0; run < RUNS; run++) {
    float ms;
    check("event", (int)cudaEventRecord(begin, stream));
    check("graph", (int)cudaGraphLaunch(exec, stream));
    check("event", (int)cudaEventRecord(end, stream));
    check("wait", (int)cudaStreamSynchronize(stream));
    check("time", (int)cudaEventElapsedTime(&ms, begin, end));
    t[run] = (double)ms * 1e3 / LAUNCHES;
  }
  (void)cudaGraphExecDestroy(exec);
  (void)cudaGraphDestroy(graph);
  (void)cudaEventDestroy(begin);
  (void)cudaEventDestroy(end);
  const double us = median(t, RUNS);
  printf("  %-18s %8.2f us (%.2f to %.2f)", name, us, t[0], t[RUNS - 1]);
  return us;
}

typedef int pass_launch(const struct hk_residual_resident *f, const double *x, double *r, struct CUstream_st *stream);

struct pass {
  pass_launch *launch;
  const struct hk_residual_resident *field;
  const struct ours *o;
};

static int launch_pass(const void *what, cudaStream_t stream)
{
  const struct pass *p = what;
  return p->launch(p->field, p->o->x, p->o->r, stream);
}

/* The average number of bytes for the neighbours of a node on the device. */
static double neighbour_bytes(const struct hk_residual_resident *f, uint32_t q)
{
  const uint32_t slices = f->of.room / HK_RESIDUAL_LANES;
  struct hk_residual_slice *slice = malloc(slices * sizeof *slice);
  double bits = 0;
  if (!slice)
    check("memory", -1);
  check("cudaMemcpy", (int)cudaMemcpy(slice, f->slice, slices * sizeof *slice, cudaMemcpyDeviceToHost));
  for (uint32_t s = 0; s < slices; s++)
    bits += slice[s].bits;
  free(slice);
  return bits / slices * q / 8;
}

static int launch_copy(const void *what, cudaStream_t stream)
{
  const struct hk_residual *f = &((const struct pass *)what)->field->of;
  const size_t half = (size_t)f->room * hk_residual_products(&f->rule) * sizeof *f->product / 2;
  return (int)cudaMemcpyAsync((char *)f->product + half, f->product, half, cudaMemcpyDeviceToDevice, stream);
}

static void passes(const struct ours *o, uint32_t n, uint32_t q, cudaStream_t stream)
{
  struct hk_residual_resident f = *hk_residual_gpu_field(o->g);
  const double columns = (q + 1.0) * (q + 2) / 2 + q + 1, packed = neighbour_bytes(&f, q), told = 16.0 / 32;
  const struct {
    const char *name;
    pass_launch *launch;
    double bytes; /* a node */
    uint32_t waiting;
  } all[] = {
    { "standardise", hk_residual_launch_standardise, 8 + 16 + 4 + 4, 0 },
    { "show", hk_residual_launch_show, 4 + 4 + 4 + 4 + 4 + 4 + 8, 0 },
    { "predict", hk_residual_launch_predict, packed + 4.0 * (q + 1) + 8 + 8 + 4 + 8 + 8 + told, 0 },
    { "learn", hk_residual_launch_learn, 8 + 5 * 8 + 4 + 4 + 4 + told, 0 },
    { "turn, all", hk_residual_launch_turn, HK_RESIDUAL_WAITING * (4 + 4 + told), HK_RESIDUAL_WAITING },
    { "sum, all", hk_residual_launch_sum, HK_RESIDUAL_WAITING * (4 + 4 + told) + 4 * q + 24 + 16 * columns, HK_RESIDUAL_WAITING },
    { "refit", hk_residual_launch_refit, q * 4.0 + 8 * columns + 4 * (q + 1) + 16, 0 },
  };
  printf("  neighbours have %.1f bytes a node\n", packed);
  for (size_t p = 0; p < sizeof all / sizeof *all; p++) {
    const struct pass pass = { all[p].launch, &f, o };
    f.waiting = all[p].waiting;
    const double us = replayed_us(all[p].name, launch_pass, &pass, stream);
    printf("  %5.2f TB/s\n", all[p].bytes * n / us * 1e-6);
  }
  const struct pass copy = { NULL, &f, o };
  const double us = replayed_us("a copy", launch_copy, &copy, stream);
  printf("  %5.2f TB/s\n", (double)hk_residual_products(&f.of.rule) * sizeof(double) * n / us * 1e-6);
}

/* ---- theirs ---- */

struct vendor {
  void *library;
  cusparseHandle_t handle;
  cudaStream_t stream;
  cusparseDnVecDescr_t x, y;
  cusparseSpMatDescr_t matrix; /* of the product */
  cusparseSpMVAlg_t algorithm;
  void *buffer;
};
static const float one = 1, zero = 0;

static int launch_product(const void *what, cudaStream_t stream)
{
  const struct vendor *v = what;
  (void)stream;
  return (int)FIND(v->library, cusparseSpMV)(v->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, v->matrix, v->x, &zero, v->y,
                                             CUDA_R_32F, v->algorithm, v->buffer);
}

static void product(struct vendor *v, const char *name, cusparseSpMatDescr_t matrix, cusparseSpMVAlg_t algorithm)
{
  __typeof__(&cusparseSpMV_preprocess) prepare = FIND(v->library, cusparseSpMV_preprocess);
  size_t bytes = 0;
  v->matrix = matrix;
  v->algorithm = algorithm;
  const int refused = (int)FIND(v->library, cusparseSpMV_bufferSize)(v->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix,
                                                                     v->x, &zero, v->y, CUDA_R_32F, algorithm, &bytes);
  if (refused) {
    printf("  %-18s refused: %d\n", name, refused);
    return;
  }
  v->buffer = device(bytes + 256);
  if (prepare)
    check("preprocess", (int)prepare(v->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, v->x, &zero, v->y, CUDA_R_32F,
                                     algorithm, v->buffer));
  (void)replayed_us(name, launch_product, v, v->stream);
  printf("\n");
  (void)cudaFree(v->buffer);
}

/* Rows of q numbers one after the other, and by columns in slices of 32 rows, padded nowhere. */
static void rows_and_slices(struct vendor *v, const struct hk_residual *f, uint32_t n, uint32_t q)
{
  const size_t all = (size_t)n * q;
  int32_t *const begin = malloc((n + 1) * sizeof *begin), *const column = malloc(all * sizeof *column);
  cusparseSpMatDescr_t matrix;
  if (!begin || !column)
    check("memory", -1);
  for (uint32_t i = 0; i <= n; i++)
    begin[i] = (int32_t)(i * q);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < q; k++)
      column[(size_t)i * q + k] = (int32_t)f->neighbour[hk_residual_at(q, k, i)];
  int32_t *const d_begin = device_copy(begin, (n + 1) * sizeof *begin), *const d_column =
                                                                            device_copy(column, all * sizeof *column);
  float *const d_value = device(all * sizeof *d_value);
  check("memset", (int)cudaMemset(d_value, 0x3c, all * sizeof *d_value));
  check("csr",
        (int)FIND(v->library, cusparseCreateCsr)(&matrix, n, n, (int64_t)all, d_begin, d_column, d_value, CUSPARSE_INDEX_32I,
                                                 CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
  product(v, "cuSPARSE CSR", matrix, CUSPARSE_SPMV_ALG_DEFAULT);
  product(v, "cuSPARSE CSR 1", matrix, CUSPARSE_SPMV_CSR_ALG1);
  product(v, "cuSPARSE CSR 2", matrix, CUSPARSE_SPMV_CSR_ALG2);
  for (uint32_t s = 0; s <= n / 32; s++)
    begin[s] = (int32_t)(s * 32 * q);
  check("cudaMemcpy", (int)cudaMemcpy(d_begin, begin, (n / 32 + 1) * sizeof *begin, cudaMemcpyHostToDevice));
  check("cudaMemcpy", (int)cudaMemcpy(d_column, f->neighbour, all * sizeof *column, cudaMemcpyHostToDevice));
  check("sell", (int)FIND(v->library, cusparseCreateSlicedEll)(&matrix, n, n, (int64_t)all, (int64_t)all, 32, d_begin, d_column,
                                                               d_value, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                                               CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
  product(v, "cuSPARSE SELL", matrix, CUSPARSE_SPMV_SELL_ALG1);
  (void)cudaFree(d_begin);
  (void)cudaFree(d_column);
  (void)cudaFree(d_value);
  free(begin);
  free(column);
}

#define BLOCK 8u

/* Blocks of `near`, whose nodes have the q next ones for neighbours: those of a row of blocks are beside each other. */
static void blocks(struct vendor *v, uint32_t n, uint32_t q)
{
  const uint32_t rows = n / BLOCK, wide = (BLOCK - 1 + q) / BLOCK + 1;
  const size_t all = (size_t)rows * wide;
  int32_t *const begin = malloc((rows + 1) * sizeof *begin), *const column = malloc(all * sizeof *column);
  cusparseSpMatDescr_t matrix;
  if (!begin || !column)
    check("memory", -1);
  for (uint32_t b = 0; b <= rows; b++)
    begin[b] = (int32_t)(b * wide);
  for (uint32_t b = 0; b < rows; b++)
    for (uint32_t k = 0; k < wide; k++)
      column[b * wide + k] = (int32_t)((b + k) % rows);
  int32_t *const d_begin = device_copy(begin, (rows + 1) * sizeof *begin), *const d_column =
                                                                               device_copy(column, all * sizeof *column);
  float *const d_value = device(all * BLOCK * BLOCK * sizeof *d_value);
  check("memset", (int)cudaMemset(d_value, 0x3c, all * BLOCK * BLOCK * sizeof *d_value));
  check("bsr", (int)FIND(v->library, cusparseCreateBsr)(&matrix, rows, rows, (int64_t)all, BLOCK, BLOCK, d_begin, d_column,
                                                        d_value, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                                        CUDA_R_32F, CUSPARSE_ORDER_ROW));
  product(v, "cuSPARSE BSR 8 x 8", matrix, CUSPARSE_SPMV_BSR_ALG1);
  (void)cudaFree(d_begin);
  (void)cudaFree(d_column);
  (void)cudaFree(d_value);
  free(begin);
  free(column);
}

/* The matrix of weights, or one of that shape. */
static void theirs(const struct hk_residual *f, const char *graph, uint32_t n, uint32_t q, cudaStream_t stream)
{
  struct vendor v = { .library = dlopen("libcusparse.so.12", RTLD_NOW), .stream = stream };
  if (!v.library)
    v.library = dlopen("libcusparse.so", RTLD_NOW);
  if (!v.library) {
    printf("  cuSPARSE is not here\n");
    return;
  }
  float *const x = device(n * sizeof *x), *const y = device(n * sizeof *y);
  check("create", (int)FIND(v.library, cusparseCreate)(&v.handle));
  check("stream", (int)FIND(v.library, cusparseSetStream)(v.handle, stream));
  check("memset", (int)cudaMemset(x, 0x3c, n * sizeof *x));
  check("vector", (int)FIND(v.library, cusparseCreateDnVec)(&v.x, n, x, CUDA_R_32F));
  check("vector", (int)FIND(v.library, cusparseCreateDnVec)(&v.y, n, y, CUDA_R_32F));
  rows_and_slices(&v, f, n, q);
  if (*graph == 'n' && FIND(v.library, cusparseCreateBsr))
    blocks(&v, n, q);
  (void)cudaFree(x);
  (void)cudaFree(y);
}

/* ---- both ---- */

static double host_us(struct hk_residual *f, const double *x, double *r)
{
  double t[3];
  for (uint32_t run = 0; run < 3; run++) {
    const double begin = now_us();
    hk_residual_row(f, x + (size_t)run * f->room, r);
    t[run] = now_us() - begin;
  }
  qsort(t, 3, sizeof *t, by_value);
  return t[1];
}

static void compare(const char *graph, uint32_t n, uint32_t q)
{
  struct hk_residual f;
  struct ours o;
  char error[256];
  open_field(&f, graph, n, q);
  double *const x = rows_of(f.room), *const r = malloc((size_t)X_ROWS * f.room * sizeof *r);
  if (!r)
    check("memory", -1);
  if (hk_residual_gpu_open(&o.g, &f, 0, error, sizeof error) != 0) {
    printf("skipped: %s\n", error);
    exit(SKIPPED);
  }
  o.x = device_copy(x, (size_t)X_ROWS * f.room * sizeof *x);
  o.r = device((size_t)X_ROWS * f.room * sizeof *r);
  for (uint32_t row = 0; row < LEARNING; row += X_ROWS)
    check("rows", hk_residual_gpu_rows_there(o.g, o.x, o.r, X_ROWS));
  check("read", hk_residual_gpu_read(o.g, &f));
  uint32_t made = 0;
  for (uint32_t i = 0; i < n; i++)
    made += f.made[i];
  printf("%s, %u nodes, q = %u, %u of them with weights\n", graph, n, q, made);
  const double field = field_us(&o, &f, x, r), there = row_us(&o, 48), host = host_us(&f, x, r);
  check("cudaHostRegister", (int)cudaHostRegister(x, (size_t)X_ROWS * f.room * sizeof *x, cudaHostRegisterDefault));
  check("cudaHostRegister", (int)cudaHostRegister(r, (size_t)X_ROWS * f.room * sizeof *r, cudaHostRegisterDefault));
  const double copied = copied_us(&o, x, r, X_ROWS);
  printf("  row, resident %.1f us (%.2f G nodes/s), copied %.1f us, one thread of the host %.0f us: %.0f and %.0f times\n", there,
         n / there * 1e-3, copied, host, host / there, host / copied);
  printf("  row of a field %.1f us: %.0f times\n", field, host / field);
  cudaStream_t stream;
  check("stream", (int)cudaStreamCreate(&stream));
  passes(&o, n, q, stream);
  theirs(&f, graph, n, q, stream);
  (void)cudaStreamDestroy(stream);
  fflush(stdout);
  check("cudaHostUnregister", (int)cudaHostUnregister(x));
  check("cudaHostUnregister", (int)cudaHostUnregister(r));
  (void)cudaFree(o.x);
  (void)cudaFree(o.r);
  free(x);
  free(r);
  hk_residual_gpu_close(o.g);
  hk_residual_close(&f);
}

int main(int n_args, char **args)
{
  seed = 1;
  const uint32_t n = n_args > 1 ? (uint32_t)strtoul(args[1], NULL, 10) / 32 * 32 : 1048576;
  const uint32_t q = n_args > 2 ? (uint32_t)strtoul(args[2], NULL, 10) : 16;
  if (n < 64 || q < 2 || q > HK_RESIDUAL_NEIGHBOURS_MAX) {
    fprintf(stderr, "usage: bench_residual [NODES [Q [GRAPH...]]], at least 64 nodes and 2 to %d neighbours\n",
            HK_RESIDUAL_NEIGHBOURS_MAX);
    return 2;
  }
  const char *const graphs[] = { "near", "random", "power" };
  for (size_t g = 0; g < sizeof graphs / sizeof *graphs; g++) {
    bool wanted = n_args <= 3;
    for (int k = 3; k < n_args; k++)
      wanted |= strcmp(args[k], graphs[g]) == 0;
    if (wanted)
      compare(graphs[g], n, q);
  }
  return 0;
}
