/* Compares SVD-SST on the GPU with the vendor's routines, in one run on one device.
 *
 * Ours: scores a second of whole ticks through submit and reap. Theirs: cuSOLVER's routines on the Hankel matrices of as many
 * windows of the same kind (a sine with noise), with resident matrices and with vectors. Two decompositions count as a score;
 * the remaining work of a score is left out. The program loads cuSOLVER at run time; nothing is linked to it.
 *
 * Without a GPU it reports that and exits with 77; it skips routines that the library lacks. */
#include "cpu/rules/window.h"
#include "gpu/cuda.h"
#include "tests/bench/programs/bench.h"

#include <cuda_runtime_api.h>
#include <cusolverDn.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 3
#define SKIPPED 77

static void die(const char *what, int code)
{
  fprintf(stderr, "bench_vendor: %s: %d\n", what, code);
  exit(1);
}

/* Sample t of a sensor: a sine whose period wanders, with noise 0.2. */
static double sample(uint32_t sensor, uint32_t t)
{
  double noise = 0;
  for (uint32_t i = 0; i < 3; i++) /* three uniform numbers have variance 1 */
    noise += hk_random_element(sensor, 3 * t + i);
  return sin(6.283185307179586 * t / (35 + 20 * sin(t / 500.0 + sensor))) + 0.2 * noise;
}

/* ---- ours ---- */

static double tick(struct hk_backend *b, struct hk_batch *batch, uint32_t t)
{
  for (uint32_t i = 0; i < batch->n; i++) {
    batch->slot[i] = i;
    batch->time[i] = (int64_t)(t + 1) * 1000000000;
    batch->value[i] = sample(i, t);
  }
  const double start = now_s();
  check("submit", b->ops->submit(b, batch));
  b->ops->wait(b);
  if (b->ops->reap(b) != batch)
    die("reap", -1);
  check("the batch", batch->status);
  return now_s() - start;
}

static void ours(const char *text, uint32_t sensors)
{
  struct hk_detector d;
  struct hk_backend *b;
  char error[256];
  if (hk_detector_parse(text, &d, error, sizeof error) != 0) {
    fprintf(stderr, "%s\n", error);
    exit(1);
  }
  const struct hk_backend_config config = { .detectors = &d, .n_detectors = 1, .max_sensors = sensors };
  if (hk_cuda_open(&b, &config, error, sizeof error) != 0) {
    printf("skipped: %s\n", error);
    exit(SKIPPED);
  }
  struct hk_batch *batch = hk_batch_new(b, sensors);
  if (!batch)
    die("memory", sensors);
  batch->n = sensors;
  for (uint32_t i = 0; i < sensors; i++)
    check("add", b->ops->add(b, i, 0, i));
  uint32_t t = 0;
  for (; t < hk_detector_span(&d) + 2; t++)
    (void)tick(b, batch, t);
  double rate[ROUNDS];
  for (uint32_t i = 0; i < ROUNDS; i++)
    rate[i] = sensors / tick(b, batch, t++);
  const double scores = median(rate, ROUNDS);
  printf("ours, %s, %u sensors: %.0f scores/s\n", text, sensors, scores);
  hk_batch_free(batch);
  b->ops->close(b);
}

/* ---- theirs ---- */

/* cuSOLVER, by name. */
struct vendor {
  void *library;
  cusolverDnHandle_t handle;
};

#define FIND(vendor, name) ((__typeof__(&name))dlsym((vendor)->library, #name))

/* Batches of Hankel matrices, and where results go. */
struct problem {
  int n, batch;
  float *original, *a, *s, *u, *v, *work; /* device */
  int *info;                              /* device */
};

static void *device(size_t bytes)
{
  void *memory;
  check("cudaMalloc", (int)cudaMalloc(&memory, bytes));
  return memory;
}

static struct problem problem_new(int n, int batch)
{
  const size_t square = (size_t)n * (size_t)n, all = square * (size_t)batch;
  struct problem p = { .n = n, .batch = batch };
  float *host = malloc(all * sizeof *host);
  if (!host)
    die("memory", batch);
  for (int k = 0; k < batch; k++)
    for (int j = 0; j < n; j++)
      for (int i = 0; i < n; i++)
        host[(size_t)k * square + (size_t)(j * n + i)] = (float)sample((uint32_t)k, (uint32_t)(i + j));
  p.original = device(all * sizeof(float));
  p.a = device(all * sizeof(float));
  p.s = device((size_t)(n * batch) * sizeof(float));
  p.u = device(all * sizeof(float));
  p.v = device(all * sizeof(float));
  p.info = device((size_t)batch * sizeof(int));
  check("cudaMemcpy", (int)cudaMemcpy(p.original, host, all * sizeof(float), cudaMemcpyHostToDevice));
  free(host);
  return p;
}

static void problem_free(struct problem *p)
{
  cudaFree(p->original);
  cudaFree(p->a);
  cudaFree(p->s);
  cudaFree(p->u);
  cudaFree(p->v);
  cudaFree(p->info);
}

/* One matrix after the other, because there is no batched form for n > 32. */
static int gesvdj(const struct vendor *vendor, struct problem *p, bool first)
{
  static gesvdjInfo_t params;
  static int size;
  const __typeof__(&cusolverDnSgesvdj) run = FIND(vendor, cusolverDnSgesvdj);
  if (first) {
    check("params", FIND(vendor, cusolverDnCreateGesvdjInfo)(&params));
    check("size", FIND(vendor, cusolverDnSgesvdj_bufferSize)(vendor->handle, CUSOLVER_EIG_MODE_VECTOR, 0, p->n, p->n, p->a, p->n,
                                                             p->s, p->u, p->n, p->v, p->n, &size, params));
    p->work = device((size_t)size * sizeof(float));
  }
  const size_t square = (size_t)p->n * (size_t)p->n;
  int status = 0;
  for (int k = 0; k < p->batch && status == 0; k++)
    status = run(vendor->handle, CUSOLVER_EIG_MODE_VECTOR, 0, p->n, p->n, p->a + square * (size_t)k, p->n, p->s + k * p->n,
                 p->u + square * (size_t)k, p->n, p->v + square * (size_t)k, p->n, p->work, size, p->info + k, params);
  return status;
}

/* An approximation through the eigenproblem of A^T A. */
static int gesvda(const struct vendor *vendor, struct problem *p, bool first)
{
  static int size;
  const long long square = (long long)p->n * p->n;
  if (first) {
    check("size", FIND(vendor, cusolverDnSgesvdaStridedBatched_bufferSize)(vendor->handle, CUSOLVER_EIG_MODE_VECTOR, p->n, p->n,
                                                                           p->n, p->a, p->n, square, p->s, p->n, p->u, p->n,
                                                                           square, p->v, p->n, square, &size, p->batch));
    p->work = device((size_t)size * sizeof(float));
  }
  return (int)FIND(vendor, cusolverDnSgesvdaStridedBatched)(vendor->handle, CUSOLVER_EIG_MODE_VECTOR, p->n, p->n, p->n, p->a,
                                                            p->n, square, p->s, p->n, p->u, p->n, square, p->v, p->n, square,
                                                            p->work, size, p->info, NULL, p->batch);
}

static int syevj_batched(const struct vendor *vendor, struct problem *p, bool first)
{
  static syevjInfo_t params;
  static int size;
  if (first) {
    check("params", FIND(vendor, cusolverDnCreateSyevjInfo)(&params));
    check("size",
          FIND(vendor, cusolverDnSsyevjBatched_bufferSize)(vendor->handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, p->n,
                                                           p->a, p->n, p->s, &size, params, p->batch));
    p->work = device((size_t)size * sizeof(float));
  }
  return (int)FIND(vendor, cusolverDnSsyevjBatched)(vendor->handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, p->n, p->a,
                                                    p->n, p->s, p->work, size, p->info, params, p->batch);
}

static int syev_batched(const struct vendor *vendor, struct problem *p, bool first)
{
  static cusolverDnParams_t params;
  static size_t on_device, on_host;
  static void *host;
  if (first) {
    check("params", FIND(vendor, cusolverDnCreateParams)(&params));
    check("size", FIND(vendor, cusolverDnXsyevBatched_bufferSize)(vendor->handle, params, CUSOLVER_EIG_MODE_VECTOR,
                                                                  CUBLAS_FILL_MODE_LOWER, p->n, CUDA_R_32F, p->a, p->n,
                                                                  CUDA_R_32F, p->s, CUDA_R_32F, &on_device, &on_host, p->batch));
    p->work = device(on_device);
    free(host);
    host = malloc(on_host + 1);
  }
  return (int)FIND(vendor, cusolverDnXsyevBatched)(vendor->handle, params, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, p->n,
                                                   CUDA_R_32F, p->a, p->n, CUDA_R_32F, p->s, CUDA_R_32F, p->work, on_device, host,
                                                   on_host, p->info, p->batch);
}

/* Matrices a second: the median of ROUNDS runs after a first. */
static void theirs(const struct vendor *vendor, const char *name, const char *symbol,
                   int (*run)(const struct vendor *, struct problem *, bool), int n, int batch)
{
  if (!dlsym(vendor->library, symbol)) {
    printf("cuSOLVER has no %s\n", name);
    return;
  }
  struct problem p = problem_new(n, batch);
  double rate[ROUNDS];
  for (int i = -1; i < ROUNDS; i++) {
    const size_t bytes = (size_t)n * (size_t)n * (size_t)batch * sizeof(float);
    check("cudaMemcpy", (int)cudaMemcpy(p.a, p.original, bytes, cudaMemcpyDeviceToDevice));
    check("cudaDeviceSynchronize", (int)cudaDeviceSynchronize());
    const double start = now_s();
    const int status = run(vendor, &p, i < 0);
    check(name, status ? status : (int)cudaDeviceSynchronize());
    if (i >= 0)
      rate[i] = batch / (now_s() - start);
  }
  const double matrices = median(rate, ROUNDS);
  printf("cuSOLVER %s, %d of %d x %d: %.0f matrices/s, so at most %.0f scores/s\n", name, batch, n, n, matrices, matrices / 2);
  fflush(stdout);
  cudaFree(p.work);
  problem_free(&p);
}

int main(void)
{
  ours("algorithm=svd,window=320,rank=12,gap=647,alert=off,interval=1s", 16384);
  ours("algorithm=svd,window=100,rank=3,alert=off,interval=1s", 65536);
  struct vendor vendor = { .library = dlopen("libcusolver.so.12", RTLD_NOW) };
  if (!vendor.library)
    vendor.library = dlopen("libcusolver.so", RTLD_NOW);
  if (!vendor.library) {
    printf("no cuSOLVER to compare with: %s\n", dlerror());
    return 0;
  }
  check("cusolverDnCreate", (int)FIND(&vendor, cusolverDnCreate)(&vendor.handle));
  static const int sizes[][2] = { { 320, 256 }, { 100, 1024 } };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    theirs(&vendor, "gesvdj", "cusolverDnSgesvdj", gesvdj, sizes[i][0], sizes[i][1]);
    theirs(&vendor, "gesvdaStridedBatched (approximate)", "cusolverDnSgesvdaStridedBatched", gesvda, sizes[i][0], sizes[i][1]);
    theirs(&vendor, "syevjBatched", "cusolverDnSsyevjBatched", syevj_batched, sizes[i][0], sizes[i][1]);
    theirs(&vendor, "XsyevBatched", "cusolverDnXsyevBatched", syev_batched, sizes[i][0], sizes[i][1]);
  }
  check("cusolverDnDestroy", (int)FIND(&vendor, cusolverDnDestroy)(vendor.handle));
  return 0;
}
