/* Sparse systems as bands in reverse Cuthill-McKee order, by LAPACK's Cholesky: see sparse.h. */
#include "cpu/lapack.h"
#include "cpu/sparse/cuthill.h"
#include "cpu/sparse/sparse_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct factors {
  lapack_int n, half;
  uint32_t *place; /* of an equation in the order */
  double *band;    /* half + 1 numbers of each column, from the diagonal down, as dpbtrf has the lower triangle */
  double *x;
};

static void close_band(void *factors)
{
  struct factors *f = factors;
  if (!f)
    return;
  free(f->place);
  free(f->band);
  free(f->x);
  free(f);
}

/* --- band --------------------------------------------------------------------------------------------------------------- */

static int open_band(void **out, const struct hk_sparse_pattern *p, struct hk_sparse_facts *facts)
{
  const int status = hk_lapack_load(NULL, 0);
  struct factors *f = status == 0 ? calloc(1, sizeof *f) : NULL;
  if (!f)
    return status != 0 ? status : -ENOMEM;
  *out = f;
  f->n = (lapack_int)p->n;
  f->place = malloc(p->n * sizeof *f->place);
  f->x = malloc(p->n * sizeof *f->x);
  if (!f->place || !f->x || hk_cuthill_order(f->place, p->n, p->at, p->neighbour) != 0)
    return -ENOMEM;
  for (uint32_t e = 0; e < p->edges; e++) {
    const lapack_int away = abs((lapack_int)f->place[p->edge[e][0]] - (lapack_int)f->place[p->edge[e][1]]);
    f->half = away > f->half ? away : f->half;
  }
  facts->numbers = (uint64_t)p->n * (uint64_t)(f->half + 1);
  facts->bytes = sizeof *f + facts->numbers * sizeof(double) + p->n * (sizeof *f->place + sizeof *f->x);
  if (facts->numbers > HK_SPARSE_NUMBERS_MAX)
    return -E2BIG;
  f->band = malloc(facts->numbers * sizeof *f->band);
  return f->band ? 0 : -ENOMEM;
}

static int factorise_band(void *factors, const struct hk_sparse_pattern *p, const double *diagonal, const double *beside)
{
  struct factors *f = factors;
  const size_t height = (size_t)f->half + 1;
  memset(f->band, 0, p->n * height * sizeof *f->band);
  for (uint32_t i = 0; i < p->n; i++)
    f->band[f->place[i] * height] = diagonal[i];
  for (uint32_t e = 0; e < p->edges; e++) {
    const uint32_t i = f->place[p->edge[e][0]], j = f->place[p->edge[e][1]];
    f->band[(i < j ? i : j) * height + (i < j ? j - i : i - j)] += beside[e];
  }
  return hk_lapack.dpbtrf_work(LAPACK_COL_MAJOR, 'L', f->n, f->half, f->band, f->half + 1) == 0 ? 0 : -EDOM;
}

static void solve_band(void *factors, const double *b, double *x)
{
  struct factors *f = factors;
  for (lapack_int i = 0; i < f->n; i++)
    f->x[f->place[i]] = b[i];
  (void)hk_lapack.dpbtrs_work(LAPACK_COL_MAJOR, 'L', f->n, f->half, 1, f->band, f->half + 1, f->x,
                              f->n); /* fails by its arguments alone */
  for (lapack_int i = 0; i < f->n; i++)
    x[i] = f->x[f->place[i]];
}

static const struct hk_sparse_kind band = { "band Cholesky", open_band, close_band, factorise_band, solve_band };
const struct hk_sparse_kind *const hk_sparse_band = &band;
