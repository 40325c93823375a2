/* Measures the speed of the graph residual on the GPU: a whole row and its passes, with and without copies of the row, compared
 * with one thread of the host; and the third pass, which multiplies the sparse matrix of weights by the row, compared with
 * cuSPARSE's product in two formats. The program loads cuSPARSE at run time; nothing is linked to it.
 *
 * bench_residual [NODES [Q [GRAPH...]]]: by default a million nodes with 16 neighbours each. Graphs: `near`, whose nodes have the
 * adjacent numbers as neighbours; `random`; `power`, which chooses a node with a chance that falls with the square root of its
 * number. Times are medians of some runs, in microseconds a row; GB/s counts the bytes that must move (columns once, each node's
 * record once). Without a GPU the program reports that and exits with 77. */
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
#define LEARNING 130u /* rows until there are weights */
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

typedef int pass_launch(const struct hk_residual_resident *f, const double *x, double *r, struct CUstream_st *stream);

static double pass_us(pass_launch *pass, const struct hk_residual_resident *f, const struct ours *o)
{
  double t[RUNS];
  for (uint32_t run = 0; run < RUNS; run++) {
    check("pass", pass(f, o->x, o->r, NULL));
    check("wait", (int)cudaDeviceSynchronize());
    const double begin = now_us();
    for (uint32_t k = 0; k < 20; k++)
      check("pass", pass(f, o->x, o->r, NULL));
    check("wait", (int)cudaDeviceSynchronize());
    t[run] = (now_us() - begin) / 20;
  }
  return median(t, RUNS);
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

static void passes(const struct ours *o, uint32_t n, uint32_t q)
{
  struct hk_residual_resident f = *hk_residual_gpu_field(o->g);

  const double columns = (q + 1.0) * (q + 2) / 2 + q + 1, packed = neighbour_bytes(&f, q), heard = 4.0 * (q + 1);
  const struct {
    const char *name;
    pass_launch *launch;
    double bytes; /* a node */
    uint32_t waiting;
  } all[] = {
    { "standardise", hk_residual_launch_standardise, 8 + 16 + 4 + 4, 0 },
    { "show", hk_residual_launch_show, 4 + 4 + 4 + 4 + 4 + 8, 0 },
    { "predict", hk_residual_launch_predict, packed + 4.0 * (q + 1) + 8 + 8 + 8 + 4 + 4 + 8 + 8, 0 },
    { "learn", hk_residual_launch_learn, packed + 4 + 4 + 8 + 8 + 4 + 5 * 8 + 16 + 8 + heard + 4, 0 },
    { "sum, all", hk_residual_launch_sum, HK_RESIDUAL_WAITING * heard + 4 + 16 * columns, HK_RESIDUAL_WAITING },
    { "refit", hk_residual_launch_refit, q * 4.0 + 8 * columns + 4 * (q + 1) + 16, 0 },
  };
  printf("  neighbours have %.1f bytes a node\n", packed);
  for (size_t p = 0; p < sizeof all / sizeof *all; p++) {
    f.waiting = all[p].waiting;
    const double us = pass_us(all[p].launch, &f, o);
    printf("  %-12s %8.1f us  %5.2f TB/s\n", all[p].name, us, all[p].bytes * n / us * 1e-6);
  }
}

/* ---- theirs ---- */

struct vendor {
  void *library;
  cusparseHandle_t handle;
  float *x, *y;
};

static double product_us(struct vendor *v, cusparseSpMatDescr_t matrix, uint32_t n, cusparseSpMVAlg_t algorithm)
{
  cusparseDnVecDescr_t x, y;
  const float one = 1, zero = 0;
  size_t bytes = 0;
  double t[RUNS];
  check("vector", (int)FIND(v->library, cusparseCreateDnVec)(&x, n, v->x, CUDA_R_32F));
  check("vector", (int)FIND(v->library, cusparseCreateDnVec)(&y, n, v->y, CUDA_R_32F));
  check("buffer", (int)FIND(v->library, cusparseSpMV_bufferSize)(v->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, x,
                                                                 &zero, y, CUDA_R_32F, algorithm, &bytes));
  void *buffer = device(bytes + 256);
  for (uint32_t run = 0; run < RUNS; run++) {
    double begin = 0;
    for (uint32_t k = 0; k < 21; k++) {
      if (k == 1) {
        check("wait", (int)cudaDeviceSynchronize());
        begin = now_us();
      }
      check("product", (int)FIND(v->library, cusparseSpMV)(v->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, x, &zero, y,
                                                           CUDA_R_32F, algorithm, buffer));
    }
    check("wait", (int)cudaDeviceSynchronize());
    t[run] = (now_us() - begin) / 20;
  }
  (void)cudaFree(buffer);
  return median(t, RUNS);
}

/* The matrix of weights in both formats, with q numbers in each row; so slices of 32 rows of sliced ELLPACK have no
 * padding. */
static void theirs(const struct hk_residual *f, uint32_t n, uint32_t q)
{
  struct vendor v = { .library = dlopen("libcusparse.so.12", RTLD_NOW) };
  if (!v.library)
    v.library = dlopen("libcusparse.so", RTLD_NOW);
  if (!v.library) {
    printf("  cuSPARSE is not here\n");
    return;
  }
  const size_t all = (size_t)n * q;
  int32_t *rows = malloc((n + 1) * sizeof *rows), *columns = malloc(all * sizeof *columns),
          *slices = malloc((n / 32 + 2) * sizeof *slices);
  float *values = malloc(all * sizeof *values);
  cusparseSpMatDescr_t csr, sell;
  if (!rows || !columns || !slices || !values)
    check("memory", -1);
  for (uint32_t i = 0; i <= n; i++)
    rows[i] = (int32_t)(i * q);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < q; k++) {
      columns[(size_t)i * q + k] = (int32_t)f->neighbour[hk_residual_at(f->rule.neighbours, k, i)];
      values[(size_t)i * q + k] = 1.0f / (float)q;
    }
  check("create", (int)FIND(v.library, cusparseCreate)(&v.handle));
  v.x = device(n * sizeof *v.x);
  v.y = device(n * sizeof *v.y);
  check("memset", (int)cudaMemset(v.x, 0, n * sizeof *v.x));
  int32_t *const d_rows = device_copy(rows, (n + 1) * sizeof *rows), *const d_columns =
                                                                         device_copy(columns, all * sizeof *columns);
  float *const d_values = device_copy(values, all * sizeof *values);
  check("csr", (int)FIND(v.library, cusparseCreateCsr)(&csr, n, n, (int64_t)all, d_rows, d_columns, d_values, CUSPARSE_INDEX_32I,
                                                       CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
  printf("  cuSPARSE CSR 1 %6.1f us, ", product_us(&v, csr, n, CUSPARSE_SPMV_CSR_ALG1));
  printf("CSR 2 %6.1f us", product_us(&v, csr, n, CUSPARSE_SPMV_CSR_ALG2));
  for (uint32_t i = 0; i < n; i++) /* within a slice, a column after the other */
    for (uint32_t k = 0; k < q; k++)
      columns[(size_t)(i / 32) * 32 * q + (size_t)k * 32 + i % 32] =
          (int32_t)f->neighbour[hk_residual_at(f->rule.neighbours, k, i)];
  for (uint32_t s = 0; s <= n / 32; s++)
    slices[s] = (int32_t)(s * 32 * q);
  int32_t *const d_slices = device_copy(slices, (n / 32 + 1) * sizeof *slices);
  check("cudaMemcpy", (int)cudaMemcpy(d_columns, columns, all * sizeof *columns, cudaMemcpyHostToDevice));
  check("sell", (int)FIND(v.library, cusparseCreateSlicedEll)(&sell, n, n, (int64_t)all, (int64_t)all, 32, d_slices, d_columns,
                                                              d_values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                                              CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
  printf(", sliced ELLPACK %6.1f us\n", product_us(&v, sell, n, CUSPARSE_SPMV_SELL_ALG1));
  (void)cudaFree(d_rows);
  (void)cudaFree(d_columns);
  (void)cudaFree(d_values);
  (void)cudaFree(d_slices);
  (void)cudaFree(v.x);
  (void)cudaFree(v.y);
  free(rows);
  free(columns);
  free(slices);
  free(values);
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
  for (uint32_t row = 0; row < 2 * LEARNING; row += X_ROWS)
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
  passes(&o, n, q);
  theirs(&f, n, q);
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
