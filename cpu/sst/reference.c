/* The oracle: see reference.h. Follows the definition directly, one product and one matrix at a time. */
#define HK_REAL double
#define HK_REAL_BITS uint64_t
#include "cpu/sst/reference.h"
#include "cpu/lapack.h"
#include "cpu/rules/window.h"

#include <errno.h>
#include <stdlib.h>

#define STEPS_MAX HK_PRODUCTS_MAX /* most Lanczos steps; on the past at most HK_KRYLOV_MAX, fewer */
#define STOP 0x1p-20              /* the Krylov space is complete when beta is this small relative to T */
#define RANK 0x1p-17              /* an eigenpair counts only above this part of the largest */

struct hk_reference {
  double *basis;  /* STEPS_MAX + 1 vectors of w */
  double *u, *v;  /* w */
  double *matrix; /* w x w, then its eigenvectors */
  double *values; /* w */
  double *work;   /* of dsyevd */
  lapack_int *iwork;
  lapack_int work_size, iwork_size;
};

/* T of the Lanczos steps, then its eigenvectors (column j belongs to theta[j]). */
struct tridiagonal {
  uint32_t steps;
  double alpha[STEPS_MAX], beta[STEPS_MAX];
  double theta[STEPS_MAX], y[STEPS_MAX * STEPS_MAX];
  uint32_t order[STEPS_MAX]; /* of theta, largest magnitude first */
};

int hk_reference_new(struct hk_reference **out, uint32_t window_max)
{
  const size_t w = window_max;
  const int status = hk_lapack_load(NULL, 0);
  struct hk_reference *r = status == 0 ? calloc(1, sizeof *r) : NULL;
  if (!r)
    return status != 0 ? status : -ENOMEM;
  r->work_size = (lapack_int)(1 + 6 * w + 2 * w * w);
  r->iwork_size = (lapack_int)(3 + 5 * w);
  r->basis = calloc((STEPS_MAX + 1) * w, sizeof *r->basis);
  r->u = calloc(w, sizeof *r->u);
  r->v = calloc(w, sizeof *r->v);
  r->matrix = calloc(w * w, sizeof *r->matrix);
  r->values = calloc(w, sizeof *r->values);
  r->work = calloc((size_t)r->work_size, sizeof *r->work);
  r->iwork = calloc((size_t)r->iwork_size, sizeof *r->iwork);
  if (!r->basis || !r->u || !r->v || !r->matrix || !r->values || !r->work || !r->iwork) {
    hk_reference_free(r);
    return -ENOMEM;
  }
  *out = r;
  return 0;
}

void hk_reference_free(struct hk_reference *r)
{
  if (!r)
    return;
  free(r->basis);
  free(r->u);
  free(r->v);
  free(r->matrix);
  free(r->values);
  free(r->work);
  free(r->iwork);
  free(r);
}

static double dot(const double *a, const double *b, uint32_t n)
{
  double sum = 0;
  for (uint32_t i = 0; i < n; i++)
    sum += a[i] * b[i];
  return sum;
}

static void reference_add(double *to, double factor, const double *a, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    to[i] += factor * a[i];
}

static void multiply(double *a, double factor, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    a[i] *= factor;
}

/* Orders indices by the magnitude of their values, largest first; equal ones stay in order. */
static void order_by_magnitude(const double *values, uint32_t n, uint32_t *order)
{
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = i;
    for (; at > 0 && fabs(values[order[at - 1]]) < fabs(values[i]); at--)
      order[at] = order[at - 1];
    order[at] = i;
  }
}

/* out = H v */
static void hankel(const double *x, uint32_t w, const double *v, double *out)
{
  for (uint32_t i = 0; i < w; i++)
    out[i] = dot(x + i, v, w);
}

/* out = A v, where A is H or H H^T */
static void apply(struct hk_reference *r, const struct hk_detector *d, const double *x, const double *v, double *out)
{
  if (d->operator_ == HK_OPERATOR_HANKEL) {
    hankel(x, d->window, v, out);
  } else {
    hankel(x, d->window, v, r->v);
    hankel(x, d->window, r->v, out);
  }
}

/* Lanczos from q_1 (which is r->basis already) and the eigenpairs of T. 0 or -EIO. */
static int lanczos(struct hk_reference *r, const struct hk_detector *d, const double *x, uint32_t steps, struct tridiagonal *t)
{
  const uint32_t w = d->window;
  double largest = 0;
  t->steps = 0;
  for (uint32_t s = 0; s < steps; s++) {
    const double *q = r->basis + (size_t)s * w;
    double *u = r->u, *next = r->basis + (size_t)(s + 1) * w;
    apply(r, d, x, q, u);
    t->alpha[s] = dot(q, u, w);
    t->steps = s + 1;
    reference_add(u, -t->alpha[s], q, w);
    if (s > 0)
      reference_add(u, -t->beta[s - 1], q - w, w);
    if (d->reorthogonalise) {
      double along[STEPS_MAX];
      for (uint32_t i = 0; i <= s; i++)
        along[i] = dot(r->basis + (size_t)i * w, u, w);
      for (uint32_t i = 0; i <= s; i++)
        reference_add(u, -along[i], r->basis + (size_t)i * w, w);
    }
    t->beta[s] = sqrt(dot(u, u, w));
    largest = fmax(largest, fabs(t->alpha[s]) + (s > 0 ? t->beta[s - 1] : 0));
    if (t->beta[s] <= STOP * largest)
      break;
    memcpy(next, u, w * sizeof *u);
    multiply(next, 1 / t->beta[s], w);
  }
  double below[STEPS_MAX], work[2 * STEPS_MAX];
  memcpy(t->theta, t->alpha, t->steps * sizeof *t->theta);
  memcpy(below, t->beta, t->steps * sizeof *below);
  if (hk_lapack.dstev_work(LAPACK_COL_MAJOR, 'V', (lapack_int)t->steps, t->theta, below, t->y, (lapack_int)t->steps, work) != 0)
    return -EIO;
  order_by_magnitude(t->theta, t->steps, t->order);
  return 0;
}

/* Eigenvalues of H into r->values; with vectors, also the eigenvectors into the columns of r->matrix. 0 or -EIO. */
static int eigen(struct hk_reference *r, const double *x, uint32_t w, bool vectors)
{
  for (uint32_t j = 0; j < w; j++)
    memcpy(r->matrix + (size_t)j * w, x + j, w * sizeof *x);
  const lapack_int n = (lapack_int)w;
  return hk_lapack.dsyevd_work(LAPACK_COL_MAJOR, vectors ? 'V' : 'N', 'L', n, r->matrix, n, r->values, r->work, r->work_size,
                               r->iwork, r->iwork_size) == 0
             ? 0
             : -EIO;
}

/* Index of the eigenvalue in r->values with the rank-th largest magnitude (0 = the largest). LAPACK gives them in ascending
 * order, so the largest magnitudes stand at the two ends. */
static uint32_t eigen_at(const struct hk_reference *r, uint32_t w, uint32_t rank)
{
  uint32_t low = 0, high = w - 1;
  for (; rank > 0; rank--) {
    if (fabs(r->values[low]) > fabs(r->values[high]))
      low++;
    else
      high--;
  }
  return fabs(r->values[low]) > fabs(r->values[high]) ? low : high;
}

int hk_reference_singular_values(struct hk_reference *r, const double *x, uint32_t w, double *values)
{
  const int status = eigen(r, x, w, false);
  for (uint32_t i = 0; i < w && status == 0; i++)
    values[i] = fabs(r->values[eigen_at(r, w, i)]);
  return status;
}

/* (larger - smaller) / largest of what the operator's values say about singular values */
static double gap(const struct hk_detector *d, double larger, double smaller, double largest)
{
  const bool squared = d->algorithm == HK_ALGORITHM_IKA && d->operator_ == HK_OPERATOR_GRAM;
  larger = fabs(larger / largest);
  smaller = fabs(smaller / largest);
  return squared ? sqrt(larger) - sqrt(smaller) : larger - smaller;
}

static int present_svd(struct hk_reference *r, const struct hk_detector *d, const double *x, const double *a, double *mu,
                       double *sigma2, struct hk_reference_score *out)
{
  const uint32_t w = d->window;
  if (eigen(r, x, w, true) < 0)
    return -EIO;
  const uint32_t first = eigen_at(r, w, 0);
  const double theta = r->values[first];
  memcpy(mu, r->matrix + (size_t)first * w, w * sizeof *mu);
  if (dot(mu, a, w) < 0)
    multiply(mu, -1, w);
  *sigma2 = theta * theta;
  out->present_gap = gap(d, theta, r->values[eigen_at(r, w, 1)], theta);
  return 0;
}

static int present_ritz(struct hk_reference *r, const struct hk_detector *d, const double *x, const double *a, double *mu,
                        double *sigma2, struct hk_reference_score *out)
{
  const uint32_t w = d->window, wanted = d->operator_ == HK_OPERATOR_GRAM ? d->products / 2 : d->products;
  struct tridiagonal t;
  memcpy(r->basis, a, w * sizeof *a);
  if (lanczos(r, d, x, wanted < w ? wanted : w, &t) < 0)
    return -EIO;
  const uint32_t first = t.order[0];
  const double theta = t.theta[first], *y = t.y + (size_t)first * t.steps;
  memset(mu, 0, w * sizeof *mu);
  for (uint32_t s = 0; s < t.steps; s++)
    reference_add(mu, y[0] < 0 ? -y[s] : y[s], r->basis + (size_t)s * w, w);
  multiply(mu, 1 / sqrt(dot(mu, mu, w)), w);
  *sigma2 = d->operator_ == HK_OPERATOR_GRAM ? fabs(theta) : theta * theta;
  if (t.steps > 1)
    out->present_gap = gap(d, theta, t.theta[t.order[1]], theta);
  return 0;
}

static void present_power(struct hk_reference *r, const struct hk_detector *d, const double *x, const double *a, double *mu,
                          double *sigma2)
{
  const uint32_t w = d->window;
  memcpy(mu, a, w * sizeof *a);
  *sigma2 = 0;
  for (uint32_t i = 0; i < d->products / 2; i++) {
    hankel(x, w, mu, r->v);
    hankel(x, w, r->v, r->u);
    *sigma2 = sqrt(dot(r->u, r->u, w));
    if (*sigma2 == 0)
      return;
    memcpy(mu, r->u, w * sizeof *mu);
    multiply(mu, 1 / *sigma2, w);
  }
}

/* What the r leading eigenpairs hold of mu: with svd the squares of its parts along the eigenvectors of H1, with ika those of
 * the first components of T's. */
static int past_svd(struct hk_reference *r, const struct hk_detector *d, const double *x, const double *mu, double *held,
                    struct hk_reference_score *out)
{
  const uint32_t w = d->window;
  if (eigen(r, x, w, true) < 0)
    return -EIO;
  const double largest = fabs(r->values[eigen_at(r, w, 0)]);
  for (uint32_t i = 0; i < d->rank; i++) {
    const uint32_t at = eigen_at(r, w, i);
    const double along = dot(mu, r->matrix + (size_t)at * w, w);
    if (fabs(r->values[at]) > RANK * largest)
      *held += along * along;
  }
  out->past_gap = gap(d, r->values[eigen_at(r, w, d->rank - 1)], r->values[eigen_at(r, w, d->rank)], largest);
  return 0;
}

static int past_ika(struct hk_reference *r, const struct hk_detector *d, const double *x, const double *mu, double *held,
                    struct hk_reference_score *out)
{
  struct tridiagonal t;
  memcpy(r->basis, mu, d->window * sizeof *mu);
  if (lanczos(r, d, x, d->krylov, &t) < 0)
    return -EIO;
  const double largest = fabs(t.theta[t.order[0]]), least = d->operator_ == HK_OPERATOR_GRAM ? RANK * RANK : RANK;
  for (uint32_t i = 0; i < d->rank && i < t.steps; i++) {
    const uint32_t at = t.order[i];
    const double first = t.y[(size_t)at * t.steps];
    if (fabs(t.theta[at]) > least * largest)
      *held += first * first;
  }
  if (t.steps > d->rank && largest > 0)
    out->past_gap = gap(d, t.theta[t.order[d->rank - 1]], t.theta[t.order[d->rank]], largest);
  return 0;
}

/* Squared Frobenius norm of the Hankel matrix of x. */
static double energy(const double *x, uint32_t w)
{
  double sum = 0;
  for (uint32_t m = 0; m < 2 * w - 1; m++)
    sum += (m < w ? m + 1 : 2 * w - 1 - m) * x[m] * x[m];
  return sum;
}

int hk_reference_score(struct hk_reference *r, const struct hk_detector *d, const double *past, const double *present,
                       const double *a0, double *feedback, struct hk_reference_score *out)
{
  const uint32_t w = d->window;
  double mu[HK_WINDOW_MAX], sigma2 = 0, held = 0;
  int status = 0;
  *out = (struct hk_reference_score){ .z = 0, .share = 0, .present_gap = 1, .past_gap = 1 };
  if (!present)
    return 0;
  if (d->algorithm == HK_ALGORITHM_SVD)
    status = present_svd(r, d, present, feedback, mu, &sigma2, out);
  else if (d->present == HK_PRESENT_RITZ)
    status = present_ritz(r, d, present, feedback, mu, &sigma2, out);
  else
    present_power(r, d, present, feedback, mu, &sigma2);
  if (status == 0 && past)
    status = d->algorithm == HK_ALGORITHM_SVD ? past_svd(r, d, past, mu, &held, out) : past_ika(r, d, past, mu, &held, out);
  if (status < 0)
    return status;
  out->z = fmin(fmax(1 - held, 0), 1);
  out->share = fmin(sigma2 / energy(present, w), 1);
  memcpy(feedback, mu, w * sizeof *mu);
  reference_add(feedback, 1e-3, a0, w);
  multiply(feedback, 1 / sqrt(dot(feedback, feedback, w)), w);
  return 0;
}

void hk_reference_random(double *a0, uint64_t seed, uint32_t w)
{
  for (uint32_t i = 0; i < w; i++)
    a0[i] = hk_random_element(seed, i);
  multiply(a0, 1 / sqrt(dot(a0, a0, w)), w);
}
