/* Sparse systems by SuiteSparse's LDL in the order of its AMD: see sparse.h. The matrix is handed over in that order, its upper
 * triangle by columns: LDL reads no more of it. */
#include "cpu/sparse/sparse_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <suitesparse/amd.h>
#include <suitesparse/ldl.h>

struct factors {
  int n;
  int *place;       /* of an equation in the order */
  int *start, *row; /* of the upper triangle: columns, and rows of its numbers */
  double *number;   /* its numbers */
  int *at;          /* where the number of an edge stands; that of a diagonal is its column's first */
  int *begin, *parent, *count, *flag, *pattern, *below; /* of L: columns, elimination tree, work memory, rows */
  double *lower, *pivot, *x;                            /* L, D, a right side in the order */
};

static void close_ldl(void *factors)
{
  struct factors *f = factors;
  if (!f)
    return;
  free(f->place);
  free(f->start);
  free(f->row);
  free(f->number);
  free(f->at);
  free(f->begin);
  free(f->parent);
  free(f->count);
  free(f->flag);
  free(f->pattern);
  free(f->below);
  free(f->lower);
  free(f->pivot);
  free(f->x);
  free(f);
}

/* Chooses the order. Returns 0 or -ENOMEM. */
static int sparse_ldl_order(struct factors *f, const struct hk_sparse_pattern *p)
{
  int *order = malloc((size_t)p->n * sizeof *order);
  _Static_assert(HK_SPARSE_N_MAX <= INT_MAX / 2, "indices are ints");
  const int status =
      order ? amd_order((int)p->n, (const int *)p->at, (const int *)p->neighbour, order, NULL, NULL) : AMD_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < p->n && status >= AMD_OK; i++)
    f->place[order[i]] = (int)i;
  free(order);
  return status >= AMD_OK ? 0 : -ENOMEM; /* it can find no other fault with a pattern of ours */
}

/* Lays out the upper triangle: a column has its diagonal first. */
static void lay_out(struct factors *f, const struct hk_sparse_pattern *p)
{
  for (uint32_t i = 0; i < p->n; i++)
    f->start[i + 1] = 1;
  for (uint32_t e = 0; e < p->edges; e++) {
    const int i = f->place[p->edge[e][0]], j = f->place[p->edge[e][1]];
    f->start[(i > j ? i : j) + 1]++;
  }
  for (uint32_t i = 0; i < p->n; i++) {
    f->start[i + 1] += f->start[i];
    f->row[f->start[i]] = (int)i;
    f->count[i] = f->start[i] + 1;
  }
  for (uint32_t e = 0; e < p->edges; e++) {
    const int i = f->place[p->edge[e][0]], j = f->place[p->edge[e][1]];
    f->at[e] = f->count[i > j ? i : j]++;
    f->row[f->at[e]] = i > j ? j : i;
  }
}

static int open_ldl(void **out, const struct hk_sparse_pattern *p, struct hk_sparse_facts *facts)
{
  struct factors *f = calloc(1, sizeof *f);
  const size_t n = p->n, upper = n + p->edges;
  if (!f)
    return -ENOMEM;
  *out = f;
  f->n = (int)n;
  f->place = malloc(n * sizeof *f->place);
  f->start = calloc(n + 1, sizeof *f->start);
  f->row = malloc(upper * sizeof *f->row);
  f->number = malloc(upper * sizeof *f->number);
  f->at = malloc((p->edges + (size_t)1) * sizeof *f->at);
  f->begin = malloc((n + 1) * sizeof *f->begin);
  f->parent = malloc(n * sizeof *f->parent);
  f->count = malloc(n * sizeof *f->count);
  f->flag = malloc(n * sizeof *f->flag);
  f->pattern = malloc(n * sizeof *f->pattern);
  f->pivot = malloc(n * sizeof *f->pivot);
  f->x = malloc(n * sizeof *f->x);
  if (!f->place || !f->start || !f->row || !f->number || !f->at || !f->begin || !f->parent || !f->count || !f->flag ||
      !f->pattern || !f->pivot || !f->x || sparse_ldl_order(f, p) != 0)
    return -ENOMEM;
  lay_out(f, p);
  ldl_symbolic(f->n, f->start, f->row, f->begin, f->parent, f->count, f->flag, NULL, NULL);
  uint64_t numbers = 0; /* begin[n] would overflow before */
  for (size_t i = 0; i < n; i++)
    numbers += (uint64_t)f->count[i];
  if (numbers > HK_SPARSE_NUMBERS_MAX)
    return -E2BIG;
  f->below = malloc((numbers + 1) * sizeof *f->below);
  f->lower = malloc((numbers + 1) * sizeof *f->lower);
  facts->numbers = numbers + n;
  facts->bytes = sizeof *f + n * (6 * sizeof(int) + 2 * sizeof(double)) + upper * (sizeof(int) + sizeof(double)) +
                 p->edges * sizeof(int) + numbers * (sizeof(int) + sizeof(double));
  return f->below && f->lower ? 0 : -ENOMEM;
}

static int factorise_ldl(void *factors, const struct hk_sparse_pattern *p, const double *diagonal, const double *beside)
{
  struct factors *f = factors;
  for (uint32_t i = 0; i < p->n; i++)
    f->number[f->start[f->place[i]]] = diagonal[i];
  for (uint32_t e = 0; e < p->edges; e++)
    f->number[f->at[e]] = beside[e];
  if (ldl_numeric(f->n, f->start, f->row, f->number, f->begin, f->parent, f->count, f->below, f->lower, f->pivot, f->x,
                  f->pattern, f->flag, NULL, NULL) != f->n)
    return -EDOM;
  for (uint32_t i = 0; i < p->n; i++)
    if (!(f->pivot[i] > 0))
      return -EDOM;
  return 0;
}

static void solve_ldl(void *factors, const double *b, double *x)
{
  struct factors *f = factors;
  for (int i = 0; i < f->n; i++)
    f->x[f->place[i]] = b[i];
  ldl_lsolve(f->n, f->x, f->begin, f->below, f->lower);
  ldl_dsolve(f->n, f->x, f->pivot);
  ldl_ltsolve(f->n, f->x, f->begin, f->below, f->lower);
  for (int i = 0; i < f->n; i++)
    x[i] = f->x[f->place[i]];
}

static const struct hk_sparse_kind ldl = { "sparse LDL'", open_ldl, close_ldl, factorise_ldl, solve_ldl };
const struct hk_sparse_kind *const hk_sparse_ldl = &ldl;
