/* Measures the speed of the batched bidiagonalisation and singular value decomposition, as in the papers' tables,
 * compared with LAPACK on the host and cuSOLVER's batches. Prints one JSON object a line; tests/bench/scripts/plot_svd_batch.py
 * makes tables and plots.
 *
 * bench_svd_batch [WHAT...]: the parts to run, of head, tasks, sizes, svd, vendor; by default all. Times are milliseconds,
 * the median of some runs. LAPACK is timed on a few matrices and scaled to the number of tasks; it runs without threads of its
 * own. GPU times are for resident matrices ("gpu") and with copies of the matrices up from pinned memory and of the results down
 * ("copied"). */
#include "gpu/batched_svd/svd_batch.h"
#include "tests/bench/programs/bench.h"

#include <cblas.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <lapacke.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNS 5
#define LAPACK_THREADS 4 /* the papers' processor has four cores */

void openblas_set_num_threads(int n);

static void die(const char *what)
{
  fprintf(stderr, "bench_svd_batch: %s: %s\n", what, cudaGetErrorString(cudaGetLastError()));
  exit(1);
}

static void fill(float *a, size_t n)
{
  uint64_t state = n;
  for (size_t i = 0; i < n; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    a[i] = (float)(int32_t)(state >> 32) * 0x1p-31f;
  }
}

/* Memory for a batch of n x n matrices, on the device and pinned: a, u, v (n n each), s or d, e (n each). */
struct data {
  uint32_t n, tasks;
  float *host, *device, *u, *v, *d, *e;
  uint32_t *status;
  size_t bytes; /* of the matrices */
};

static struct data data_new(uint32_t n, uint32_t tasks)
{
  struct data x = { .n = n, .tasks = tasks, .bytes = (size_t)n * n * tasks * sizeof(float) };
  if (cudaMallocHost((void **)&x.host, 3 * x.bytes + sizeof(float) * n * tasks * 2) ||
      cudaMalloc((void **)&x.device, 3 * x.bytes + sizeof(float) * n * tasks * 2) ||
      cudaMalloc((void **)&x.status, tasks * sizeof(uint32_t)))
    die("memory");
  const size_t count = x.bytes / sizeof(float);
  fill(x.host, count);
  if (cudaMemcpy(x.device, x.host, x.bytes, cudaMemcpyHostToDevice))
    die("copy");
  x.u = x.device + count;
  x.v = x.u + count;
  x.d = x.v + count;
  x.e = x.d + (size_t)n * tasks;
  return x;
}

static void data_free(struct data *x)
{
  if (cudaFreeHost(x->host) || cudaFree(x->device) || cudaFree(x->status))
    die("free");
}

static struct hk_svd_batch *open_batch(uint32_t n, uint32_t tasks, bool vectors, uint32_t host_threads)
{
  char error[256] = "";
  struct hk_svd_batch *b;
  const struct hk_svd_config config = { .m = n, .n = n, .batch = tasks, .vectors = vectors, .host_threads = host_threads };
  if (hk_svd_batch_open(&b, &config, error, sizeof error) != 0) {
    fprintf(stderr, "bench_svd_batch: %s\n", error);
    exit(1);
  }
  return b;
}

/* Median of the bidiagonalisation, with or without copies up and of d and e down. */
static double time_bidiagonal(struct hk_svd_batch *b, struct data *x, bool copied)
{
  double t[RUNS];
  float *down = x->host + x->bytes / sizeof(float);
  for (int i = -1; i < RUNS; i++) {
    if (cudaDeviceSynchronize())
      die("device");
    const double begin = now_ms();
    if (copied && cudaMemcpyAsync(x->device, x->host, x->bytes, cudaMemcpyHostToDevice, NULL))
      die("copy");
    if (hk_svd_batch_bidiagonalise(b, x->device, x->tasks, x->d, x->e, x->status, NULL))
      die("bidiagonalise");
    if (copied && cudaMemcpyAsync(down, x->d, sizeof(float) * x->n * x->tasks * 2, cudaMemcpyDeviceToHost, NULL))
      die("copy");
    if (cudaDeviceSynchronize())
      die("device");
    if (i >= 0)
      t[i] = now_ms() - begin;
  }
  return median(t, RUNS);
}

static double time_svd(struct hk_svd_batch *b, struct data *x, bool vectors, bool copied)
{
  double t[RUNS];
  float *down = x->host + x->bytes / sizeof(float);
  for (int i = -1; i < RUNS; i++) {
    const double begin = now_ms();
    if (copied && cudaMemcpyAsync(x->device, x->host, x->bytes, cudaMemcpyHostToDevice, NULL))
      die("copy");
    if (hk_svd_batch_decompose(b, x->device, x->tasks, x->d, vectors ? x->u : NULL, vectors ? x->v : NULL, x->status, NULL))
      die("decompose");
    if (copied && cudaMemcpyAsync(down, x->u, 2 * x->bytes + sizeof(float) * x->n * x->tasks, cudaMemcpyDeviceToHost, NULL))
      die("copy");
    if (cudaDeviceSynchronize())
      die("device");
    if (i >= 0)
      t[i] = now_ms() - begin;
  }
  return median(t, RUNS);
}

/* LAPACK on one core, with `matrices` different matrices: milliseconds a matrix. */
enum routine { SGEBRD, SGESVD, SGESDD };

static double lapack(enum routine what, uint32_t n, uint32_t matrices)
{
  const size_t size = (size_t)n * n;
  float *a = malloc(size * sizeof *a), *u = malloc(size * sizeof *a), *v = malloc(size * sizeof *a),
        *d = malloc(4 * n * sizeof *d);
  if (!a || !u || !v || !d)
    die("no memory");
  double total = 0;
  for (uint32_t i = 0; i <= matrices; i++) { /* the first does not count */
    fill(a, size);
    a[i % size] += (float)i;
    const int side = (int)n;
    const double begin = now_ms();
    int failed;
    if (what == SGEBRD)
      failed = LAPACKE_sgebrd(LAPACK_COL_MAJOR, side, side, a, side, d, d + n, d + 2 * n, d + 3 * n);
    else if (what == SGESVD)
      failed = LAPACKE_sgesvd(LAPACK_COL_MAJOR, 'A', 'A', side, side, a, side, d, u, side, v, side, d + n);
    else
      failed = LAPACKE_sgesdd(LAPACK_COL_MAJOR, 'A', side, side, a, side, d, u, side, v, side);
    if (failed)
      die("LAPACK");
    if (i > 0)
      total += now_ms() - begin;
  }
  free(a);
  free(u);
  free(v);
  free(d);
  return total / matrices;
}

struct share {
  enum routine what;
  uint32_t n, matrices;
  pthread_barrier_t *start;
};

static void *share_run(void *arg)
{
  const struct share *s = arg;
  (void)lapack(s->what, s->n, 1); /* warm */
  (void)pthread_barrier_wait(s->start);
  (void)lapack(s->what, s->n, s->matrices);
  return NULL;
}

/* LAPACK on several threads, each with its own matrices: milliseconds a matrix, for all threads together. */
static double lapack_threads(enum routine what, uint32_t n, uint32_t threads, uint32_t each)
{
  pthread_t thread[256];
  pthread_barrier_t start;
  struct share s = { what, n, each, &start };
  if (pthread_barrier_init(&start, NULL, threads + 1))
    die("barrier");
  for (uint32_t i = 0; i < threads; i++)
    if (pthread_create(&thread[i], NULL, share_run, &s))
      die("thread");
  (void)pthread_barrier_wait(&start);
  const double begin = now_ms();
  for (uint32_t i = 0; i < threads; i++)
    (void)pthread_join(thread[i], NULL);
  const double took = now_ms() - begin;
  (void)pthread_barrier_destroy(&start);
  return took / (threads * (each + 1)); /* lapack() does one more than it times */
}

static void bidiagonal_row(const char *table, uint32_t n, uint32_t tasks, double sgebrd)
{
  struct data x = data_new(n, tasks);
  struct hk_svd_batch *b = open_batch(n, tasks, false, 0);
  const double gpu = time_bidiagonal(b, &x, false), copied = time_bidiagonal(b, &x, true);
  printf(
      "{\"table\": \"%s\", \"n\": %u, \"tasks\": %u, \"gpu\": %.4f, \"copied\": %.4f, \"sgebrd_1_core\": %.2f, \"times\": %.1f, "
      "\"times_copied\": %.1f, \"tflops\": %.2f}\n",
      table, n, tasks, gpu, copied, sgebrd * tasks, sgebrd * tasks / gpu, sgebrd * tasks / copied,
      8. / 3 * n * n * n * tasks / gpu * 1e-9);
  (void)fflush(stdout);
  hk_svd_batch_close(b);
  data_free(&x);
}

static uint32_t few(uint32_t n) /* matrices for timing LAPACK: some tenths of a second */
{
  return n <= 128 ? 100 : n <= 320 ? 30 : 12;
}

static void head(void)
{
  bidiagonal_row("head", 320, 256, lapack(SGEBRD, 320, 100));
}

static void tasks(void)
{
  const double sgebrd = lapack(SGEBRD, 448, 30);
  for (uint32_t t = 1; t <= 512; t *= 2)
    bidiagonal_row("tasks", 448, t, sgebrd);
}

static void sizes(void)
{
  for (uint32_t n = 64; n <= 512; n += 64) {
    const double sgebrd = lapack(SGEBRD, n, few(n));
    bidiagonal_row("sizes", n, 64, sgebrd);
    bidiagonal_row("sizes", n, 256, sgebrd);
  }
}

/* sgesvd, sgesdd: milliseconds a matrix. */
static void svd_row(uint32_t n, uint32_t tasks, double sgesvd, double sgesdd)
{
  sgesvd *= tasks;
  sgesdd *= tasks;
  struct data x = data_new(n, tasks);
  struct hk_svd_batch *b = open_batch(n, tasks, true, 0);
  const double gpu = time_svd(b, &x, true, false), copied = time_svd(b, &x, true, true), values = time_svd(b, &x, false, false);
  hk_svd_batch_close(b);
  printf("{\"table\": \"svd\", \"n\": %u, \"tasks\": %u, \"gpu\": %.3f, \"copied\": %.3f, \"values_alone\": %.3f, "
         "\"sgesvd_4_cores\": %.1f, "
         "\"sgesdd_4_cores\": %.1f, \"times_copied\": %.1f, \"times_copied_sgesdd\": %.1f",
         n, tasks, gpu, copied, values, sgesvd, sgesdd, sgesvd / copied, sgesdd / copied);
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  const uint32_t threads[] = { 4, cores > 256 ? 256 : (uint32_t)cores };
  for (size_t i = 0; (n == 320 || n == 416) && i < sizeof threads / sizeof *threads; i++) {
    b = open_batch(n, tasks, true, threads[i]);
    printf(", \"qr_on_%u_threads\": %.3f", threads[i], time_svd(b, &x, true, false));
    hk_svd_batch_close(b);
  }
  puts("}");
  (void)fflush(stdout);
  data_free(&x);
}

static void svd(void)
{
  static const uint32_t sides[] = { 64, 128, 192, 256, 320, 416, 512 };
  for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
    const uint32_t n = sides[i], each = n > 256 ? 1 : 6;
    const double sgesvd = lapack_threads(SGESVD, n, LAPACK_THREADS, each),
                 sgesdd = lapack_threads(SGESDD, n, LAPACK_THREADS, 2 * each);
    svd_row(n, 64, sgesvd, sgesdd);
    svd_row(n, 256, sgesvd, sgesdd);
  }
}

/* cuSOLVER, if it is there: handles are opaque pointers, the modes are 1 for vectors. */
struct vendor {
  int (*create)(void **);
  int (*create_info)(void **);
  int (*gesvdj_room)(void *, int, int, int, int, const float *, int, const float *, const float *, int, const float *, int, int *,
                     void *);
  int (*gesvdj)(void *, int, int, int, int, float *, int, float *, float *, int, float *, int, float *, int, int *, void *);
  int (*gesvda_room)(void *, int, int, int, int, const float *, int, long long, const float *, long long, const float *, int,
                     long long, const float *, int, long long, int *, int);
  int (*gesvda)(void *, int, int, int, int, const float *, int, long long, float *, long long, float *, int, long long, float *,
                int, long long, float *, int, int *, double *, int);
};

static void *symbol(void *library, const char *name)
{
  void *p = dlsym(library, name);
  if (!p)
    printf("{\"table\": \"vendor\", \"missing\": \"%s\"}\n", name);
  return p;
}

static void vendor_row(const struct vendor *c, uint32_t n, uint32_t tasks)
{
  struct data x = data_new(n, tasks);
  void *handle, *info;
  const int side = (int)n, batch = (int)tasks;
  const long long matrix = (long long)n * n;
  int room_j = 0, room_a = 0;
  if (c->create(&handle) || c->create_info(&info) ||
      c->gesvdj_room(handle, 1, 0, side, side, x.device, side, x.d, x.u, side, x.v, side, &room_j, info) ||
      c->gesvda_room(handle, 1, side, side, side, x.device, side, matrix, x.d, side, x.u, side, matrix, x.v, side, matrix,
                     &room_a, batch))
    die("cuSOLVER");
  float *work;
  double *norms = malloc(tasks * sizeof *norms);
  const size_t room = (size_t)(room_j > room_a ? room_j : room_a) * sizeof *work;
  if (!norms || cudaMalloc((void **)&work, room))
    die("memory");
  double took_j = 0, took_a = 0;
  const uint32_t some = tasks < 8 ? tasks : 8; /* gesvdj is slow, one matrix after the other */
  for (int warm = 1; warm >= 0; warm--) {
    double begin = now_ms();
    for (uint32_t i = 0; i < some; i++)
      if (c->gesvdj(handle, 1, 0, side, side, x.device + (size_t)i * n * n, side, x.d, x.u, side, x.v, side, work, room_j,
                    (int *)x.status, info))
        die("gesvdj");
    if (cudaDeviceSynchronize())
      die("gesvdj");
    took_j = (now_ms() - begin) / some * tasks;
    if (cudaMemcpy(x.device, x.host, x.bytes, cudaMemcpyHostToDevice)) /* it is overwritten */
      die("copy");
    begin = now_ms();
    if (c->gesvda(handle, 1, side, side, side, x.device, side, matrix, x.d, side, x.u, side, matrix, x.v, side, matrix, work,
                  room_a, (int *)x.status, norms, batch) ||
        cudaDeviceSynchronize())
      die("gesvdaStridedBatched");
    took_a = now_ms() - begin;
    if (cudaMemcpy(x.device, x.host, x.bytes, cudaMemcpyHostToDevice))
      die("copy");
  }
  struct hk_svd_batch *b = open_batch(n, tasks, true, 0);
  printf("{\"table\": \"vendor\", \"n\": %u, \"tasks\": %u, \"gpu\": %.3f, \"gesvdj\": %.1f, \"gesvdaStridedBatched\": %.2f}\n",
         n, tasks, time_svd(b, &x, true, false), took_j, took_a);
  (void)fflush(stdout);
  hk_svd_batch_close(b);
  free(norms);
  if (cudaFree(work))
    die("free");
  data_free(&x);
}

static void vendor(void)
{
  static const char *const names[] = { "libcusolver.so", "libcusolver.so.12", "libcusolver.so.11",
                                       "/usr/local/cuda/lib64/libcusolver.so" };
  void *library = NULL;
  for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
    library = dlopen(names[i], RTLD_NOW);
  if (!library) {
    puts("{\"table\": \"vendor\", \"missing\": \"libcusolver\"}");
    return;
  }
  struct vendor c;
  void *const found[] = { symbol(library, "cusolverDnCreate"),
                          symbol(library, "cusolverDnCreateGesvdjInfo"),
                          symbol(library, "cusolverDnSgesvdj_bufferSize"),
                          symbol(library, "cusolverDnSgesvdj"),
                          symbol(library, "cusolverDnSgesvdaStridedBatched_bufferSize"),
                          symbol(library, "cusolverDnSgesvdaStridedBatched") };
  _Static_assert(sizeof found == sizeof c, "one symbol for each");
  for (size_t i = 0; i < sizeof found / sizeof *found; i++)
    if (!found[i])
      return;
  memcpy(&c, found, sizeof c);
  vendor_row(&c, 320, 256);
  vendor_row(&c, 416, 256);
  vendor_row(&c, 100, 256);
}

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    void (*run)(void);
  } parts[] = { { "head", head }, { "tasks", tasks }, { "sizes", sizes }, { "svd", svd }, { "vendor", vendor } };
  openblas_set_num_threads(1);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) || devices == 0) {
    puts("{\"skipped\": \"no GPU\"}");
    return 0;
  }
  struct cudaDeviceProp device;
  if (cudaGetDeviceProperties(&device, 0))
    die("device");
  printf("{\"table\": \"where\", \"gpu\": \"%s\", \"cores\": %ld}\n", device.name, sysconf(_SC_NPROCESSORS_ONLN));
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    bool wanted = argc < 2;
    for (int j = 1; j < argc; j++)
      wanted |= strcmp(argv[j], parts[i].name) == 0;
    if (wanted)
      parts[i].run();
  }
  return 0;
}
