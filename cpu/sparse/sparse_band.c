/* Sparse systems as bands in reverse Cuthill-McKee order, by LAPACK's Cholesky: see sparse.h. */
#include "cpu/sparse/sparse_internal.h"

#include <errno.h>
#include <lapacke.h>
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

/* --- order -------------------------------------------------------------------------------------------------------------- */

/* Breadth first from one equation, neighbours by their number of neighbours (E. Cuthill, J. McKee, 1969). order: those that are
 * reached; seen: of equations, set to `mark`. Returns how many are reached. last: where the last level begins. */
static uint32_t sparse_band_sweep(const struct hk_sparse_pattern *p, uint32_t from, uint32_t *order, uint32_t *seen,
                                  uint32_t mark, uint32_t *last)
{
  uint32_t n = 1, level = 1;
  order[0] = from;
  seen[from] = mark;
  *last = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (i == level) {
      *last = level;
      level = n;
    }
    const uint32_t first = n;
    for (uint32_t k = p->at[order[i]]; k < p->at[order[i] + 1]; k++) {
      const uint32_t next = p->neighbour[k], degree = p->at[next + 1] - p->at[next];
      if (seen[next] == mark)
        continue;
      seen[next] = mark;
      uint32_t j = n++;
      for (; j > first && p->at[order[j - 1] + 1] - p->at[order[j - 1]] > degree; j--) /* few are new at once */
        order[j] = order[j - 1];
      order[j] = next;
    }
  }
  return n;
}

/* Begins at an equation far from the others (A. George, J. Liu, 1979): that with fewest neighbours among the last reached, until
 * it is no farther. */
static uint32_t sparse_band_sweep_from_afar(const struct hk_sparse_pattern *p, uint32_t from, uint32_t *order, uint32_t *seen,
                                            uint32_t *mark)
{
  uint32_t last, n = sparse_band_sweep(p, from, order, seen, ++*mark, &last);
  for (uint32_t k = 0, width = n + 1; k < 8 && n - last < width; k++) {
    uint32_t best = order[last];
    width = n - last;
    for (uint32_t i = last; i < n; i++)
      if (p->at[order[i] + 1] - p->at[order[i]] < p->at[best + 1] - p->at[best])
        best = order[i];
    n = sparse_band_sweep(p, best, order, seen, ++*mark, &last);
  }
  return n;
}

static int sparse_band_order(uint32_t *place, const struct hk_sparse_pattern *p)
{
  uint32_t *order = malloc(p->n * sizeof *order), *seen = calloc(p->n, sizeof *seen), mark = 0, done = 0;
  const int status = order && seen ? 0 : -ENOMEM;
  for (uint32_t i = 0; i < p->n && status == 0; i++) {
    if (seen[i] != 0)
      continue;
    const uint32_t n = sparse_band_sweep_from_afar(p, i, order, seen, &mark);
    for (uint32_t k = 0; k < n; k++)
      place[order[k]] = p->n - 1 - (done + k);
    done += n;
  }
  free(order);
  free(seen);
  return status;
}

/* --- band --------------------------------------------------------------------------------------------------------------- */

static int open_band(void **out, const struct hk_sparse_pattern *p, struct hk_sparse_facts *facts)
{
  struct factors *f = calloc(1, sizeof *f);
  if (!f)
    return -ENOMEM;
  *out = f;
  f->n = (lapack_int)p->n;
  f->place = malloc(p->n * sizeof *f->place);
  f->x = malloc(p->n * sizeof *f->x);
  if (!f->place || !f->x || sparse_band_order(f->place, p) != 0)
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
  return LAPACKE_dpbtrf_work(LAPACK_COL_MAJOR, 'L', f->n, f->half, f->band, f->half + 1) == 0 ? 0 : -EDOM;
}

static void solve_band(void *factors, const double *b, double *x)
{
  struct factors *f = factors;
  for (lapack_int i = 0; i < f->n; i++)
    f->x[f->place[i]] = b[i];
  (void)LAPACKE_dpbtrs_work(LAPACK_COL_MAJOR, 'L', f->n, f->half, 1, f->band, f->half + 1, f->x,
                            f->n); /* fails by its arguments alone */
  for (lapack_int i = 0; i < f->n; i++)
    x[i] = f->x[f->place[i]];
}

static const struct hk_sparse_kind band = { "band Cholesky", open_band, close_band, factorise_band, solve_band };
const struct hk_sparse_kind *const hk_sparse_band = &band;
