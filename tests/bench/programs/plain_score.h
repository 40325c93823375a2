/* The scores with which bench_score compares ours: of one window, in plain C with OpenBLAS on an explicit matrix, and in
 * plain C alone. */
#ifndef HK_PLAIN_SCORE_H
#define HK_PLAIN_SCORE_H

#include "cpu/sst/kernels.h"
#include "cpu/sst/score.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SERIES 4096

/* ---- plain C and OpenBLAS, one window at a time ---- */

#define WIDE 16u /* numbers in one register of the plain loop */

struct plain {
  uint32_t w, r, k, products;
  float x[SERIES];
  float *h, *q, *u, *mu, *a, *c, *vectors;
  float *rows; /* of plain C: m + 1 vectors, each of `padded` numbers */
  uint32_t padded;
};

static void plain_free(struct plain *p)
{
  free(p->rows);
  free(p->h);
  free(p->c);
  free(p->vectors);
  free(p->q);
  free(p->u);
  free(p->mu);
  free(p->a);
  free(p);
}

/* series: SERIES samples; feedback: the vector that the iteration begins with; both are copied. NULL: no memory. */
static struct plain *plain_new(const struct hk_detector *d, const float *series, const float *feedback)
{
  struct plain *p = calloc(1, sizeof *p);
  const size_t w = d->window;
  if (!p)
    return NULL;
  *p = (struct plain){ .w = d->window, .r = d->rank, .k = d->krylov, .products = d->products };
  memcpy(p->x, series, sizeof p->x);
  p->h = malloc(w * w * sizeof(float));
  p->c = malloc(w * w * sizeof(float));
  p->vectors = malloc(w * w * sizeof(float));
  p->q = malloc(w * (HK_PRODUCTS_MAX + 1) * sizeof(float));
  p->u = malloc((w + WIDE) * sizeof(float));
  p->mu = malloc(w * sizeof(float));
  p->a = malloc(w * sizeof(float));
  p->padded = (p->w + WIDE - 1) / WIDE * WIDE;
  p->rows = calloc((size_t)(HK_PRODUCTS_MAX + 2) * (p->padded + WIDE), sizeof(float));
  if (!p->h || !p->c || !p->vectors || !p->q || !p->u || !p->mu || !p->a || !p->rows) {
    plain_free(p);
    return NULL;
  }
  memcpy(p->a, feedback, w * sizeof(float));
  return p;
}

/* y := H v by a plain loop over the series, tiles of rows in registers. Writes and reads up to WIDE - 1 numbers beyond the rows.
 */
#define TILE 6u
typedef float wide __attribute__((vector_size(4 * WIDE), aligned(4)));

static inline __attribute__((always_inline)) void loop_tile(const uint32_t n, float *y, const float *x, const float *v,
                                                            uint32_t w)
{
  wide sum[TILE] = { { 0 } };
  for (uint32_t j = 0; j < w; j++) {
    _Pragma("GCC unroll 6") for (uint32_t r = 0; r < n; r++) sum[r] += *(const wide *)(x + j + r * WIDE) * v[j];
  }
  _Pragma("GCC unroll 6") for (uint32_t r = 0; r < n; r++) * (wide *)(y + r * WIDE) = sum[r];
}

static inline __attribute__((always_inline)) void product(float *y, const float *x, const float *v, uint32_t w)
{
  for (uint32_t i = 0; i < w; i += TILE * WIDE) {
    switch ((w - i + WIDE - 1) / WIDE) {
    case 1:
      loop_tile(1, y + i, x + i, v, w);
      break;
    case 2:
      loop_tile(2, y + i, x + i, v, w);
      break;
    case 3:
      loop_tile(3, y + i, x + i, v, w);
      break;
    case 4:
      loop_tile(4, y + i, x + i, v, w);
      break;
    case 5:
      loop_tile(5, y + i, x + i, v, w);
      break;
    default:
      loop_tile(6, y + i, x + i, v, w);
    }
  }
}

#ifdef __x86_64__
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

CLONES static void loop_product(float *y, const float *x, const float *v, uint32_t w)
{
  product(y, x, v, w);
}

static void fill(struct plain *p, const float *x)
{
  for (uint32_t i = 0; i < p->w; i++)
    memcpy(p->h + (size_t)i * p->w, x + i, p->w * sizeof(float));
}

/* Lanczos with full re-orthogonalisation from p->q; eigenvectors into vectors, k * k. */
static void plain_lanczos(struct plain *p, int k, float *theta, float *vectors)
{
  const int w = (int)p->w;
  float beside[HK_PRODUCTS_MAX], dots[HK_PRODUCTS_MAX];
  for (int s = 0; s < k; s++) {
    float *q = p->q + (size_t)s * p->w;
    cblas_sgemv(CblasRowMajor, CblasNoTrans, w, w, 1, p->h, w, q, 1, 0, p->u, 1);
    theta[s] = cblas_sdot(w, q, 1, p->u, 1);
    cblas_saxpy(w, -theta[s], q, 1, p->u, 1);
    if (s > 0)
      cblas_saxpy(w, -beside[s - 1], q - w, 1, p->u, 1);
    cblas_sgemv(CblasRowMajor, CblasNoTrans, s + 1, w, 1, p->q, w, p->u, 1, 0, dots, 1);
    cblas_sgemv(CblasRowMajor, CblasTrans, s + 1, w, -1, p->q, w, dots, 1, 1, p->u, 1);
    beside[s] = cblas_snrm2(w, p->u, 1);
    for (int i = 0; i < w; i++)
      q[w + i] = p->u[i] / beside[s];
  }
  LAPACKE_sstev(LAPACK_COL_MAJOR, 'V', k, theta, beside, vectors, k);
}

static void plain_ika(void *arg)
{
  struct plain *p = arg;
  const int w = (int)p->w, m = (int)p->products, k = (int)p->k;
  float theta[HK_PRODUCTS_MAX], vectors[HK_PRODUCTS_MAX * HK_PRODUCTS_MAX];
  fill(p, p->x + 2 * w);
  memcpy(p->q, p->a, p->w * sizeof(float));
  plain_lanczos(p, m, theta, vectors);
  const int top = fabsf(theta[0]) > fabsf(theta[m - 1]) ? 0 : m - 1;
  cblas_sgemv(CblasRowMajor, CblasTrans, m, w, 1, p->q, w, vectors + top * m, 1, 0, p->mu, 1);
  fill(p, p->x);
  memcpy(p->q, p->mu, p->w * sizeof(float));
  plain_lanczos(p, k, theta, vectors);
  float z = 1;
  for (uint32_t i = 0; i < p->r; i++) {
    int best = 0;
    for (int j = 1; j < k; j++)
      best = fabsf(theta[j]) > fabsf(theta[best]) ? j : best;
    z -= vectors[best * k] * vectors[best * k];
    theta[best] = 0;
  }
  p->x[SERIES - 1] = z; /* so that it is computed */
}

/* ---- plain C alone; vectors have zeros behind them, up to a multiple of WIDE ---- */

static inline __attribute__((always_inline)) float sum_of(const wide *x)
{
  float part[WIDE];
  memcpy(part, x, sizeof part);
  for (uint32_t n = WIDE / 2; n > 0; n /= 2)
    for (uint32_t i = 0; i < n; i++)
      part[i] += part[i + n];
  return part[0];
}

static inline __attribute__((always_inline)) float dot(const float *x, const float *y, uint32_t n)
{
  wide sum = { 0 };
  for (uint32_t i = 0; i < n; i += WIDE)
    sum += *(const wide *)(x + i) * *(const wide *)(y + i);
  return sum_of(&sum);
}

/* y += a[0] x[0..n-1] + a[1] x[n..2n-1] + ... */
static inline __attribute__((always_inline)) void add(float *y, const float *a, const float *x, uint32_t rows, uint32_t n)
{
  for (uint32_t i = 0; i < n; i += WIDE) {
    wide sum = *(wide *)(y + i);
    for (uint32_t k = 0; k < rows; k++)
      sum += a[k] * *(const wide *)(x + k * n + i);
    *(wide *)(y + i) = sum;
  }
}

/* Computes the eigenvalues of a tridiagonal matrix into d, by the implicit QL method, and applies the same rotations to
 * the columns of z (k numbers of this vector type). e: the subdiagonal, k numbers of which the last is unused. */
#define EIGEN(name, type)                                                                                                        \
  static inline __attribute__((always_inline)) void name(uint32_t k, float *d, float *e, type *z)                                \
  {                                                                                                                              \
    e[k - 1] = 0;                                                                                                                \
    for (uint32_t l = 0; l < k; l++)                                                                                             \
      for (uint32_t m, turn = 0; turn < 60; turn++) {                                                                            \
        for (m = l; m + 1 < k && fabsf(e[m]) > 1e-7f * (fabsf(d[m]) + fabsf(d[m + 1])); m++)                                     \
          ;                                                                                                                      \
        if (m == l)                                                                                                              \
          break;                                                                                                                 \
        float g = (d[l + 1] - d[l]) / (2 * e[l]), r = sqrtf(g * g + 1), s = 1, c = 1, back = 0;                                  \
        g = d[m] - d[l] + e[l] / (g + copysignf(r, g));                                                                          \
        for (uint32_t i = m; i-- > l;) {                                                                                         \
          const float f = s * e[i], b = c * e[i], square = f * f + g * g, inverse = 1 / sqrtf(square);                           \
          e[i + 1] = square * inverse;                                                                                           \
          s = f * inverse;                                                                                                       \
          c = g * inverse;                                                                                                       \
          g = d[i + 1] - back;                                                                                                   \
          r = (d[i] - g) * s + 2 * c * b;                                                                                        \
          back = s * r;                                                                                                          \
          d[i + 1] = g + back;                                                                                                   \
          g = c * r - b;                                                                                                         \
          const type x = z[i + 1], y = z[i];                                                                                     \
          z[i + 1] = s * y + c * x;                                                                                              \
          z[i] = c * y - s * x;                                                                                                  \
        }                                                                                                                        \
        d[l] -= back;                                                                                                            \
        e[l] = g;                                                                                                                \
        e[m] = 0;                                                                                                                \
      }                                                                                                                          \
  }
EIGEN(eigen_columns, wide) /* all rows: k <= WIDE */
EIGEN(eigen_first, float)  /* the first row */

/* Lanczos with full re-orthogonalisation from the first of p->rows on. */
static inline __attribute__((always_inline)) void lanczos(struct plain *p, const float *x, uint32_t k, float *theta,
                                                          float *beside)
{
  const uint32_t n = p->padded;
  float part[HK_PRODUCTS_MAX];
  for (uint32_t s = 0; s < k; s++) {
    float *q = p->rows + s * n, *u = q + n;
    product(u, x, q, p->w);
    memset(u + p->w, 0, (n - p->w) * sizeof *u);
    theta[s] = dot(q, u, n);
    part[0] = s > 0 ? -beside[s - 1] : 0;
    part[1] = -theta[s];
    if (s > 0)
      add(u, part, q - n, 2, n);
    else
      add(u, part + 1, q, 1, n);
    for (uint32_t i = 0; i <= s; i++)
      part[i] = -dot(p->rows + i * n, u, n);
    add(u, part, p->rows, s + 1, n);
    beside[s] = sqrtf(dot(u, u, n));
    const float inverse = 1 / beside[s];
    for (uint32_t i = 0; i < n; i += WIDE)
      *(wide *)(u + i) *= inverse;
  }
}

CLONES static void loop_ika(void *arg)
{
  struct plain *p = arg;
  const uint32_t n = p->padded, m = p->products, k = p->k;
  float theta[HK_PRODUCTS_MAX], beside[HK_PRODUCTS_MAX], first[HK_PRODUCTS_MAX] = { 1 }, top[WIDE];
  wide mu[HK_WINDOW_MAX / WIDE] = { { 0 } }, columns[WIDE] = { { 0 } };
  memcpy(p->rows, p->a, p->w * sizeof(float));
  memset(p->rows + p->w, 0, (n - p->w) * sizeof(float));
  lanczos(p, p->x + 2 * (size_t)p->w, m, theta, beside);
  for (uint32_t i = 0; i < m; i++)
    columns[i][i] = 1;
  eigen_columns(m, theta, beside, columns);
  uint32_t most = 0;
  for (uint32_t i = 1; i < m; i++)
    most = fabsf(theta[i]) > fabsf(theta[most]) ? i : most;
  memcpy(top, &columns[most], sizeof top);
  add((float *)mu, top, p->rows, m, n);
  memcpy(p->rows, mu, n * sizeof(float));
  lanczos(p, p->x, k, theta, beside);
  eigen_first(k, theta, beside, first);
  float score = 1;
  for (uint32_t i = 0; i < p->r; i++) {
    uint32_t best = 0;
    for (uint32_t j = 1; j < k; j++)
      best = fabsf(theta[j]) > fabsf(theta[best]) ? j : best;
    score -= first[best] * first[best];
    theta[best] = 0;
  }
  p->x[SERIES - 1] = score; /* so that it is computed */
}

/* The products of a score, and nothing else. */
static void loop_products(void *arg)
{
  struct plain *p = arg;
  for (uint32_t i = 0; i < p->products + p->k; i++)
    loop_product(p->u, i < p->products ? p->x + 2 * p->w : p->x, p->q, p->w);
}

/* Checks that both plain versions give the same score; otherwise one of them is wrong. */
static bool plain_agree(struct plain *p)
{
  plain_ika(p);
  const float matrix = p->x[SERIES - 1];
  loop_ika(p);
  return fabsf(matrix - p->x[SERIES - 1]) <= 1e-3f;
}

/* The r leading eigenvectors of H H^T. */
static void vendor_leading(struct plain *p, const float *x, int r)
{
  const int w = (int)p->w;
  float values[HK_WINDOW_MAX];
  lapack_int found, support[2 * HK_WINDOW_MAX];
  fill(p, x);
  cblas_ssyrk(CblasColMajor, CblasUpper, CblasNoTrans, w, w, 1, p->h, w, 0, p->c, w);
  LAPACKE_ssyevr(LAPACK_COL_MAJOR, 'V', 'I', 'U', w, p->c, w, 0, 0, w - r + 1, w, 0, &found, values, p->vectors, w, support);
}

static void plain_svd(void *arg)
{
  struct plain *p = arg;
  vendor_leading(p, p->x + 2 * p->w, 1);
  memcpy(p->mu, p->vectors, p->w * sizeof(float));
  vendor_leading(p, p->x, (int)p->r);
  float z = 1;
  for (uint32_t i = 0; i < p->r; i++) {
    const float part = cblas_sdot((int)p->w, p->mu, 1, p->vectors + (size_t)i * p->w, 1);
    z -= part * part;
  }
  p->x[SERIES - 1] = z;
}

#endif
