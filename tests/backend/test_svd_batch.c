/* The batched bidiagonalisation and singular value decomposition compared with LAPACK in double: residual, orthogonality, values.
 * The bounds follow from the errors of LAPACK's sgesvd on matrices of noise (k = 65, 320, 448, in units of 2^-24: residual 20,
 * 49, 57; orthogonality 123, 600, 842; values 13, 58, 62): some three times that, six times for values. With the argument
 * `sanitize`, for sanitizers that slow every instruction down: noise alone, in a shape of few columns for each kernel. */
#include "gpu/batched_svd/svd_batch.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifndef HK_SVD_BATCH

int main(void)
{
  puts("1..0 # SKIP built without nvcc");
  return 0;
}

#else

#include <cblas.h>
#include <cuda_runtime_api.h>
#include <lapacke.h>

#define EPSILON 0x1p-24
#define BATCH 3u

enum kind { NOISE, ZEROS, RANK_2, GRADED, OFFSET, DENORMAL, HUGE_NUMBERS, DIAGONAL, KINDS };
static const char *const kind_names[KINDS] = { "noise", "zeros", "rank 2", "graded", "offset", "denormal", "huge", "diagonal" };

/* Everything of a batch: inputs and results on the device and here. */
struct run {
  uint32_t m, n, k, count;
  struct hk_svd_batch *svd;
  float *device;                                    /* a, u, v, d, e, s in this order */
  float *device_u, *device_v, *device_d, *device_e; /* parts of it */
  uint32_t *device_status;
  float *a, *u, *v, *d, *e;
  uint32_t *status;
};

static bool sanitize;
static uint64_t random_state = 1;

static double random_uniform(void) /* -1..1 */
{
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(random_state ^ random_state >> 29) * 0x1p-63;
}

static void fill(float *a, uint32_t m, uint32_t n, enum kind kind)
{
  double column[HK_SVD_SIDE_MAX][2], row[HK_SVD_SIDE_MAX][2];
  for (uint32_t i = 0; i < m; i++)
    column[i][0] = random_uniform(), column[i][1] = random_uniform();
  for (uint32_t j = 0; j < n; j++)
    row[j][0] = random_uniform(), row[j][1] = random_uniform();
  for (uint32_t j = 0; j < n; j++)
    for (uint32_t i = 0; i < m; i++) {
      double x = random_uniform();
      if (kind == ZEROS)
        x = 0;
      else if (kind == RANK_2)
        x = column[i][0] * row[j][0] + column[i][1] * row[j][1];
      else if (kind == GRADED)
        x *= exp2(-60. * (i + j) / (m + n)); /* rows and columns down to 1e-18 */
      else if (kind == OFFSET)
        x = 1e6 + .1 * x;
      else if (kind == DENORMAL)
        x *= 1e-40;
      else if (kind == HUGE_NUMBERS)
        x *= 1e36;
      else if (kind == DIAGONAL)
        x = i == j ? (i % 3 == 0 ? 0 : x) : 0;
      a[(size_t)j * m + i] = (float)x;
    }
}

static float *floats(size_t n)
{
  float *p = calloc(n + 1, sizeof *p);
  assert_non_null(p);
  return p;
}

static struct run run_new(uint32_t m, uint32_t n, uint32_t count, uint32_t host_threads)
{
  struct run r = { .m = m, .n = n, .k = m < n ? m : n, .count = count };
  char error[256] = "";
  const struct hk_svd_config config = { .m = m, .n = n, .batch = count, .vectors = true, .host_threads = host_threads };
  if (hk_svd_batch_open(&r.svd, &config, error, sizeof error) != 0)
    fail_msg("%s", error);
  const size_t sizes[] = { (size_t)m * n * count, (size_t)m * r.k * count, (size_t)n * r.k * count, (size_t)r.k * count,
                           (size_t)r.k * count };
  assert_int_equal(cudaMalloc((void **)&r.device, (sizes[0] + sizes[1] + sizes[2] + sizes[3] + sizes[4]) * sizeof(float)), 0);
  assert_int_equal(cudaMalloc((void **)&r.device_status, count * sizeof *r.status), 0);
  r.device_u = r.device + sizes[0];
  r.device_v = r.device_u + sizes[1];
  r.device_d = r.device_v + sizes[2];
  r.device_e = r.device_d + sizes[3];
  assert_int_equal(cudaMemset(r.device_e, 0, sizes[4] * sizeof(float)), 0); /* brought down also where it is not written */
  r.a = floats(sizes[0]);
  r.u = floats(sizes[1]);
  r.v = floats(sizes[2]);
  r.d = floats(sizes[3]);
  r.e = floats(sizes[4]);
  r.status = calloc(count, sizeof *r.status);
  assert_non_null(r.status);
  return r;
}

static void run_free(struct run *r)
{
  hk_svd_batch_close(r->svd);
  assert_int_equal(cudaFree(r->device), 0);
  assert_int_equal(cudaFree(r->device_status), 0);
  free(r->a);
  free(r->u);
  free(r->v);
  free(r->d);
  free(r->e);
  free(r->status);
}

static void up(struct run *r)
{
  assert_int_equal(cudaMemcpy(r->device, r->a, (size_t)r->m * r->n * r->count * sizeof(float), cudaMemcpyHostToDevice), 0);
}

static void down(struct run *r, bool vectors)
{
  const size_t values = (size_t)r->k * r->count * sizeof(float);
  if (vectors) {
    assert_int_equal(cudaMemcpy(r->u, r->device_u, r->m * values, cudaMemcpyDeviceToHost), 0);
    assert_int_equal(cudaMemcpy(r->v, r->device_v, r->n * values, cudaMemcpyDeviceToHost), 0);
  }
  assert_int_equal(cudaMemcpy(r->d, r->device_d, values, cudaMemcpyDeviceToHost), 0);
  assert_int_equal(cudaMemcpy(r->e, r->device_e, values, cudaMemcpyDeviceToHost), 0);
  assert_int_equal(cudaMemcpy(r->status, r->device_status, r->count * sizeof *r->status, cudaMemcpyDeviceToHost), 0);
}

static void bidiagonalise(struct run *r)
{
  up(r);
  assert_int_equal(hk_svd_batch_bidiagonalise(r->svd, r->device, r->count, r->device_d, r->device_e, r->device_status, NULL), 0);
  assert_int_equal(hk_svd_batch_basis(r->svd, r->device_u, r->device_v, NULL), 0);
  down(r, true);
}

static void decompose(struct run *r)
{
  up(r);
  assert_int_equal(
      hk_svd_batch_decompose(r->svd, r->device, r->count, r->device_d, r->device_u, r->device_v, r->device_status, NULL), 0);
  down(r, true);
}

/* Frobenius norm of Q^T Q - I, Q of rows x k. */
static double orthogonality(const double *q, uint32_t rows, uint32_t k)
{
  double *product = calloc((size_t)k * k, sizeof *product), sum = 0;
  assert_non_null(product);
  cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, (int)k, (int)k, (int)rows, 1, q, (int)rows, q, (int)rows, 0, product,
              (int)k);
  for (uint32_t j = 0; j < k; j++)
    for (uint32_t i = 0; i < k; i++)
      sum += pow(product[(size_t)j * k + i] - (i == j), 2);
  free(product);
  return sqrt(sum);
}

static double *doubles(const float *x, size_t n)
{
  double *p = malloc((n + 1) * sizeof *p);
  assert_non_null(p);
  for (size_t i = 0; i < n; i++)
    p[i] = (double)x[i];
  return p;
}

/* Checks matrix i: A = U B V^T, U and V orthonormal. off: the elements next to the diagonal, NULL if there are none. */
static void check(const struct run *r, uint32_t i, const float *off, const char *what)
{
  const uint32_t m = r->m, n = r->n, k = r->k;
  assert_int_equal(r->status[i], HK_SVD_FINE);
  double *a = doubles(r->a + (size_t)i * m * n, (size_t)m * n), *u = doubles(r->u + (size_t)i * m * k, (size_t)m * k),
         *v = doubles(r->v + (size_t)i * n * k, (size_t)n * k), *ub = malloc((size_t)m * k * sizeof *ub), norm = 0, rest = 0;
  assert_non_null(ub);
  const float *d = r->d + (size_t)i * k, *e = off ? off + (size_t)i * (k - 1) : NULL;
  for (uint32_t j = 0; j < k; j++)
    for (uint32_t row = 0; row < m; row++) {
      double x = u[(size_t)j * m + row] * (double)d[j];
      if (e && m >= n && j > 0)
        x += u[(size_t)(j - 1) * m + row] * (double)e[j - 1];
      if (e && m < n && j + 1 < k)
        x += u[(size_t)(j + 1) * m + row] * (double)e[j];
      ub[(size_t)j * m + row] = x;
    }
  for (size_t j = 0; j < (size_t)m * n; j++)
    norm += a[j] * a[j];
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, (int)m, (int)n, (int)k, 1, ub, (int)m, v, (int)n, -1, a, (int)m);
  for (size_t j = 0; j < (size_t)m * n; j++)
    rest += a[j] * a[j];
  const double bound = (8 + 8 * sqrt(k)) * EPSILON, bound_orthogonal = (20 + 5. * k) * EPSILON,
               residual = norm > 0 ? sqrt(rest / norm) : sqrt(rest), orthogonal_u = orthogonality(u, m, k),
               orthogonal_v = orthogonality(v, n, k);
  /* numbers near the smallest that there are have few digits */
  const double digits = norm > 0 ? 0x1p-150 * sqrt((double)m * n) / sqrt(norm) : 0;
  if (!(residual <= bound + 4 * digits) || !(orthogonal_u <= bound_orthogonal) || !(orthogonal_v <= bound_orthogonal))
    fail_msg("%s, %u x %u, matrix %u: residual %.3g, orthogonality %.3g %.3g; bounds %.3g %.3g", what, m, n, i, residual,
             orthogonal_u, orthogonal_v, bound, bound_orthogonal);
  free(a);
  free(u);
  free(v);
  free(ub);
}

/* Singular values of matrix i against dgesdd, in units of the largest. */
static void check_values(const struct run *r, uint32_t i, const char *what)
{
  const uint32_t m = r->m, n = r->n, k = r->k;
  double *a = doubles(r->a + (size_t)i * m * n, (size_t)m * n), *s = malloc(k * sizeof *s), worst = 0, unused;
  assert_non_null(s);
  assert_int_equal(LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'N', (int)m, (int)n, a, (int)m, s, &unused, (int)m, &unused, (int)n), 0);
  for (uint32_t j = 0; j < k; j++) {
    const double value = (double)r->d[(size_t)i * k + j];
    worst = fmax(worst, fabs(value - s[j]));
    assert_true(value >= 0 && (j == 0 || value <= (double)r->d[(size_t)i * k + j - 1]));
  }
  if (!(worst <= (8 + 16 * sqrt(k)) * EPSILON * s[0] + 0x1p-148))
    fail_msg("%s, %u x %u, matrix %u: values are off by %.3g of the largest, %.3g", what, m, n, i, worst / s[0], s[0]);
  free(a);
  free(s);
}

static void check_shape(uint32_t m, uint32_t n, enum kind from, enum kind to, uint32_t host_threads)
{
  struct run r = run_new(m, n, BATCH, host_threads);
  for (enum kind kind = from; kind < (sanitize ? from + 1 : to); kind++) {
    for (uint32_t i = 0; i < BATCH; i++)
      fill(r.a + (size_t)i * m * n, m, n, kind);
    bidiagonalise(&r);
    for (uint32_t i = 0; i < BATCH; i++)
      check(&r, i, r.e, kind_names[kind]);
    decompose(&r);
    for (uint32_t i = 0; i < BATCH; i++) {
      check(&r, i, NULL, kind_names[kind]);
      check_values(&r, i, kind_names[kind]);
    }
  }
  run_free(&r);
}

static void small_shapes_of_every_kind(void **state)
{
  (void)state;
  static const uint32_t shapes[][2] = { { 1, 1 },   { 1, 2 },   { 2, 1 },   { 2, 2 },   { 1, 40 },  { 40, 1 },
                                        { 3, 5 },   { 7, 4 },   { 8, 8 },   { 31, 31 }, { 32, 32 }, { 33, 33 },
                                        { 33, 17 }, { 31, 64 }, { 63, 65 }, { 64, 64 } };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i += sanitize ? 3 : 1)
    check_shape(shapes[i][0], shapes[i][1], 0, KINDS, 0);
}

static void larger_shapes(void **state)
{
  (void)state;
  static const uint32_t shapes[][2] = { { 65, 65 },   { 100, 100 }, { 127, 129 }, { 129, 127 }, { 200, 50 }, { 257, 256 },
                                        { 320, 320 }, { 321, 130 }, { 416, 416 }, { 448, 448 }, { 449, 2 },  { 512, 511 } };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    check_shape(shapes[i][0], shapes[i][1], 0, KINDS, 0);
}

static void largest_shapes(void **state)
{
  (void)state;
  check_shape(1023, 17, 0, KINDS, 0);
  check_shape(17, 1023, 0, KINDS, 0);
  check_shape(1024, 1, 0, KINDS, 0);
  check_shape(700, 700, NOISE, ZEROS, 0);
  check_shape(1024, 1024, NOISE, ZEROS, 0);
  check_shape(1024, 1024, GRADED, OFFSET, 0);
}

/* Instead of both when sanitizing: the longer side chooses it. And one with columns that shared memory does not hold. */
static void a_shape_for_each_kernel(void **state)
{
  (void)state;
  static const uint32_t shapes[][2] = { { 100, 34 }, { 9, 150 }, { 250, 9 }, { 9, 320 }, { 400, 9 },
                                        { 430, 9 },  { 9, 500 }, { 700, 9 }, { 1000, 9 } };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    check_shape(shapes[i][0], shapes[i][1], 0, KINDS, 0);
  struct run r = run_new(1000, 48, 1, 0);
  fill(r.a, 1000, 48, NOISE);
  bidiagonalise(&r);
  check(&r, 0, r.e, "more columns than shared memory holds");
  run_free(&r);
}

static void values_on_cpu_threads(void **state)
{
  (void)state;
  check_shape(1, 1, 0, KINDS, 1);
  check_shape(12, 65, 0, KINDS, 2);
  if (sanitize)
    return;
  check_shape(33, 65, 0, KINDS, 2);
  check_shape(96, 96, 0, KINDS, 3);
  check_shape(320, 320, NOISE, ZEROS, 4);
}

/* Values alone: as with vectors. */
static void values_without_vectors(void **state)
{
  (void)state;
  const uint32_t n = sanitize ? 12 : 50;
  for (uint32_t threads = 0; threads < 3; threads += 2) {
    struct run r = run_new(70, n, BATCH, threads);
    for (uint32_t i = 0; i < BATCH; i++)
      fill(r.a + (size_t)i * 70 * n, 70, n, NOISE);
    up(&r);
    assert_int_equal(hk_svd_batch_decompose(r.svd, r.device, BATCH, r.device_d, NULL, NULL, r.device_status, NULL), 0);
    down(&r, false);
    for (uint32_t i = 0; i < BATCH; i++)
      check_values(&r, i, "values alone");
    run_free(&r);
  }
}

static void same(const float *a, const float *b, size_t n)
{
  assert_memory_equal(a, b, n * sizeof *a);
}

/* A NaN or an infinity harms its own matrix; the others do not change by a bit, nor does the size of the batch change them. */
static void neighbours_do_not_touch(void **state)
{
  (void)state;
  enum { COUNT = 5 };
  const uint32_t M = sanitize ? 40 : 70, N = sanitize ? 12 : 48;
  struct run good = run_new(M, N, COUNT, 0), bad = run_new(M, N, COUNT, 0), one = run_new(M, N, 1, 0);
  for (uint32_t i = 0; i < COUNT; i++)
    fill(good.a + i * M * N, M, N, NOISE);
  memcpy(bad.a, good.a, sizeof(float) * COUNT * M * N);
  bad.a[1 * M * N + 77] = NAN;
  bad.a[3 * M * N] = -INFINITY;
  memcpy(one.a, good.a + 4 * M * N, sizeof(float) * M * N);
  for (int step = 0; step < 2; step++) {
    void (*const work)(struct run *) = step ? decompose : bidiagonalise;
    work(&good);
    work(&bad);
    work(&one);
    for (uint32_t i = 0; i < COUNT; i++) {
      const bool harmed = i == 1 || i == 3;
      assert_int_equal(bad.status[i], harmed ? HK_SVD_NOT_FINITE : HK_SVD_FINE);
      if (harmed) {
        assert_true(isnan(bad.d[i * N]) && isnan(bad.d[i * N + N - 1]) && isnan(bad.u[i * M * N]) &&
                    isnan(bad.v[(i + 1) * N * N - 1]));
        continue;
      }
      same(good.d + i * N, bad.d + i * N, N);
      same(good.u + i * M * N, bad.u + i * M * N, M * N);
      same(good.v + i * N * N, bad.v + i * N * N, N * N);
    }
    same(good.d + 4 * N, one.d, N);
    same(good.u + 4 * M * N, one.u, M * N);
  }
  run_free(&good);
  run_free(&bad);
  run_free(&one);
}

static void refusals(void **state)
{
  (void)state;
  char error[256] = "";
  struct hk_svd_batch *b;
  const struct hk_svd_config wrong[] = { { .m = 0, .n = 1, .batch = 1 },
                                         { .m = 1, .n = 1025, .batch = 1 },
                                         { .m = 1, .n = 1 },
                                         { .m = 1, .n = 1, .batch = 1, .host_threads = 1000 } };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(hk_svd_batch_open(&b, &wrong[i], error, sizeof error), -EINVAL);
    assert_null(b);
    assert_true(strlen(error) > 10);
  }
  assert_int_equal(hk_svd_batch_open(&b, &(struct hk_svd_config){ .m = 1024, .n = 1024, .batch = 65535, .vectors = true }, error,
                                     sizeof error),
                   -ENOMEM);
  assert_non_null(strstr(error, "bytes"));
  struct run r = run_new(4, 4, 2, 0);
  assert_int_equal(hk_svd_batch_bidiagonalise(r.svd, r.device, 3, r.device_d, r.device_e, r.device_status, NULL), -EINVAL);
  assert_int_equal(hk_svd_batch_decompose(r.svd, r.device, 2, r.device_d, r.device_u, NULL, r.device_status, NULL), -EINVAL);
  run_free(&r);
}

int main(int argc, char **argv)
{
  sanitize = argc > 1 && strcmp(argv[1], "sanitize") == 0;
  char error[256] = "";
  struct hk_svd_batch *b;
  if (hk_svd_batch_open(&b, &(struct hk_svd_config){ .m = 1, .n = 1, .batch = 1 }, error, sizeof error) != 0) {
    printf("1..0 # SKIP %s\n", error);
    return 0;
  }
  hk_svd_batch_close(b);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(refusals),
    cmocka_unit_test(small_shapes_of_every_kind),
    cmocka_unit_test(neighbours_do_not_touch),
    cmocka_unit_test(values_without_vectors),
    cmocka_unit_test(values_on_cpu_threads),
    cmocka_unit_test(larger_shapes),
    cmocka_unit_test(largest_shapes),
  };
  const struct CMUnitTest every_kernel[] = {
    cmocka_unit_test(refusals),
    cmocka_unit_test(small_shapes_of_every_kind),
    cmocka_unit_test(neighbours_do_not_touch),
    cmocka_unit_test(values_without_vectors),
    cmocka_unit_test(values_on_cpu_threads),
    cmocka_unit_test(a_shape_for_each_kernel),
  };
  return sanitize ? cmocka_run_group_tests_name("svd_batch", every_kernel, NULL, NULL)
                  : cmocka_run_group_tests_name("svd_batch", tests, NULL, NULL);
}
#endif
