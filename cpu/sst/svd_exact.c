/* SVD-SST of one window with LAPACK: the matrix is reduced to tridiagonal form, eigenvalues are bisected at both ends of the
 * spectrum, and the vectors of those of largest magnitude computed (dsytrd, dstebz, dstein, dormtr). */
#include "cpu/sst/svd_exact.h"
#include "cpu/detector.h"
#include "cpu/lapack.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Columns of a block in LAPACK, for the size of its work space. */
#define BLOCK 64

struct hk_exact {
  double *h; /* w * w: the matrix, then the reflectors */
  double *diagonal, *beside, *tau;
  double *values;  /* eigenvalues found */
  double *vectors; /* w * HK_RANK_MAX: of the tridiagonal matrix */
  double *mu;
  double *work;
  lapack_int *block, *split, *ints, *fail;
  uint32_t found;               /* vectors */
  double value[HK_RANK_MAX];    /* their eigenvalues */
  lapack_int home[HK_RANK_MAX]; /* their blocks */
};

struct hk_exact *hk_exact_new(uint32_t w)
{
  if (hk_lapack_load(NULL, 0) != 0)
    return NULL;
  const size_t doubles = (size_t)w * w + w * (6 + HK_RANK_MAX + BLOCK) + BLOCK * (BLOCK + 2);
  struct hk_exact *e = calloc(1, sizeof *e);
  double *d = malloc(doubles * sizeof *d);
  lapack_int *i = malloc((size_t)(6 * w + HK_RANK_MAX) * sizeof *i);
  if (!e || !d || !i) {
    free(e);
    free(d);
    free(i);
    return NULL;
  }
  e->h = d;
  e->diagonal = e->h + (size_t)w * w;
  e->beside = e->diagonal + w;
  e->tau = e->beside + w;
  e->values = e->tau + w;
  e->mu = e->values + 2 * w;
  e->vectors = e->mu + w;
  e->work = e->vectors + (size_t)w * HK_RANK_MAX;
  e->block = i;
  e->split = e->block + 2 * w;
  e->ints = e->split + w;
  e->fail = e->ints + 3 * w;
  return e;
}

void hk_exact_free(struct hk_exact *e)
{
  if (!e)
    return;
  free(e->h);
  free(e->block);
  free(e);
}

/* Appends eigenvalues number from..to (1 is the least) to those found so far. */
static bool bisect(struct hk_exact *e, uint32_t w, uint32_t from, uint32_t to, lapack_int *count)
{
  lapack_int more = 0, blocks = 0;
  const lapack_int info =
      hk_lapack.dstebz_work('I', 'B', (lapack_int)w, 0, 0, (lapack_int)from, (lapack_int)to, 0, e->diagonal, e->beside, &more,
                            &blocks, e->values + *count, e->block + *count, e->split, e->work, e->ints);
  *count += more;
  return info == 0;
}

/* Computes the r eigenvalues of largest magnitude and their vectors. */
static bool leading(struct hk_exact *e, const float *x, size_t stride, uint32_t w, uint32_t r)
{
  const lapack_int n = (lapack_int)w;
  for (uint32_t j = 0; j < w; j++)
    for (uint32_t i = 0; i <= j; i++)
      e->h[(size_t)j * w + i] = (double)x[(i + j) * stride];
  if (hk_lapack.dsytrd_work(LAPACK_COL_MAJOR, 'U', n, e->h, n, e->diagonal, e->beside, e->tau, e->work, n * BLOCK) != 0)
    return false;
  lapack_int count = 0;
  const bool all = 2 * r >= w;
  if (!bisect(e, w, 1, all ? w : r, &count) || (!all && !bisect(e, w, w - r + 1, w, &count)))
    return false;
  e->found = 0;
  for (; e->found < r; e->found++) {
    lapack_int top = 0;
    for (lapack_int i = 1; i < count; i++)
      if (fabs(e->values[i]) > fabs(e->values[top]))
        top = i;
    /* dstein requires them by block, ascending in each. */
    const double value = e->values[top];
    const lapack_int home = e->block[top];
    uint32_t at = e->found;
    for (; at > 0 && (e->home[at - 1] > home || (e->home[at - 1] == home && e->value[at - 1] > value)); at--) {
      e->value[at] = e->value[at - 1];
      e->home[at] = e->home[at - 1];
    }
    e->value[at] = value;
    e->home[at] = home;
    count--;
    e->values[top] = e->values[count];
    e->block[top] = e->block[count];
  }
  return hk_lapack.dstein_work(LAPACK_COL_MAJOR, n, e->diagonal, e->beside, (lapack_int)r, e->value, e->home, e->split,
                               e->vectors, n, e->work, e->ints, e->fail) == 0;
}

double hk_exact_present(struct hk_exact *e, const float *x, float *mu, size_t stride, uint32_t w)
{
  const lapack_int n = (lapack_int)w;
  if (!leading(e, x, stride, w, 1) || hk_lapack.dormtr_work(LAPACK_COL_MAJOR, 'L', 'U', 'N', n, 1, e->h, n, e->tau, e->vectors, n,
                                                            e->work, BLOCK * (BLOCK + 2)) != 0)
    return -1;
  for (uint32_t i = 0; i < w; i++)
    mu[i * stride] = (float)e->vectors[i];
  return e->value[0] * e->value[0];
}

double hk_exact_score(struct hk_exact *e, const float *x, const float *mu, size_t stride, uint32_t w, uint32_t r)
{
  const lapack_int n = (lapack_int)w;
  for (uint32_t i = 0; i < w; i++)
    e->mu[i] = (double)mu[i * stride];
  if (!leading(e, x, stride, w, r) ||
      hk_lapack.dormtr_work(LAPACK_COL_MAJOR, 'L', 'U', 'T', n, 1, e->h, n, e->tau, e->mu, n, e->work, BLOCK * (BLOCK + 2)) != 0)
    return -1;
  double top = 0, held = 0;
  for (uint32_t i = 0; i < r; i++)
    top = fmax(top, fabs(e->value[i]));
  for (uint32_t i = 0; i < r; i++) {
    const double part = hk_blas.ddot(n, e->vectors + (size_t)i * w, 1, e->mu, 1);
    if (fabs(e->value[i]) > 0x1p-17 * top)
      held += part * part;
  }
  return fmax(1 - held, 0); /* rounding may give a little less than 0, which is not an error */
}
