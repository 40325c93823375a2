/* Sparse systems: see sparse.h. The patterns, and the errors of solutions. */
#include "cpu/sparse/sparse.h"
#include "cpu/band/band.h"
#include "cpu/sparse/sparse_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct hk_sparse {
  const struct hk_sparse_kind *kind;
  void *factors;
  struct hk_sparse_pattern pattern;
  uint32_t (*edge)[2], *at, *neighbour; /* what the pattern points to */
  double *diagonal, *beside, norm;      /* the matrix, and its maximum norm */
  double *right, *rest, *sum;           /* by equation */
  struct hk_sparse_facts facts;
};

/* Finds the neighbours of each equation. */
static void make_pattern(struct hk_sparse *s)
{
  for (uint32_t e = 0; e < s->pattern.edges; e++)
    for (uint32_t k = 0; k < 2; k++)
      s->at[s->edge[e][k] + 1]++;
  for (uint32_t i = 0; i < s->pattern.n; i++)
    s->at[i + 1] += s->at[i];
  for (uint32_t e = 0; e < s->pattern.edges; e++)
    for (uint32_t k = 0; k < 2; k++)
      s->neighbour[s->at[s->edge[e][k]]++] = s->edge[e][1 - k];
  for (uint32_t i = s->pattern.n; i > 0; i--) /* each has become the begin of the next one */
    s->at[i] = s->at[i - 1];
  s->at[0] = 0;
}

int hk_sparse_open(struct hk_sparse **out, const struct hk_sparse_kind *kind, uint32_t n, const uint32_t (*edge)[2],
                   uint32_t edges)
{
  if (n == 0 || n > HK_SPARSE_N_MAX || edges > HK_SPARSE_N_MAX)
    return -E2BIG;
  struct hk_sparse *s = calloc(1, sizeof *s);
  if (!s)
    return -ENOMEM;
  s->kind = kind ? kind : hk_sparse_ldl ? hk_sparse_ldl : hk_sparse_band;
  s->edge = malloc(((size_t)edges + 1) * sizeof *s->edge);
  s->at = calloc((size_t)n + 1, sizeof *s->at);
  s->neighbour = malloc((2 * (size_t)edges + 1) * sizeof *s->neighbour);
  s->diagonal = calloc(n, sizeof *s->diagonal);
  s->beside = calloc((size_t)edges + 1, sizeof *s->beside);
  s->right = malloc(n * sizeof *s->right);
  s->rest = malloc(n * sizeof *s->rest);
  s->sum = malloc(n * sizeof *s->sum);
  int status = -ENOMEM;
  if (s->edge && s->at && s->neighbour && s->diagonal && s->beside && s->right && s->rest && s->sum) {
    if (edges > 0)
      memcpy(s->edge, edge, edges * sizeof *s->edge);
    s->pattern = (struct hk_sparse_pattern){ n, edges, (const uint32_t(*)[2])s->edge, s->at, s->neighbour };
    make_pattern(s);
    s->facts.solver = s->kind->name;
    status = s->kind->open(&s->factors, &s->pattern, &s->facts);
    s->facts.bytes += sizeof *s + n * (sizeof *s->at + 4 * sizeof(double)) + edges * (4 * sizeof(uint32_t) + sizeof(double));
  }
  if (status == 0)
    *out = s;
  else
    hk_sparse_close(s);
  return status;
}

void hk_sparse_close(struct hk_sparse *s)
{
  if (!s)
    return;
  s->kind->close(s->factors);
  free(s->edge);
  free(s->at);
  free(s->neighbour);
  free(s->diagonal);
  free(s->beside);
  free(s->right);
  free(s->rest);
  free(s->sum);
  free(s);
}

struct hk_sparse_facts hk_sparse_facts(const struct hk_sparse *s)
{
  return s->facts;
}

int hk_sparse_factorise(struct hk_sparse *s, const double *diagonal, const double *beside)
{
  memcpy(s->diagonal, diagonal, s->pattern.n * sizeof *diagonal);
  if (s->pattern.edges > 0)
    memcpy(s->beside, beside, s->pattern.edges * sizeof *beside);
  s->norm = 0;
  for (uint32_t i = 0; i < s->pattern.n; i++)
    s->sum[i] = fabs(diagonal[i]);
  for (uint32_t e = 0; e < s->pattern.edges; e++)
    for (uint32_t k = 0; k < 2; k++)
      s->sum[s->edge[e][k]] += fabs(beside[e]);
  for (uint32_t i = 0; i < s->pattern.n; i++)
    s->norm = s->sum[i] > s->norm || isnan(s->sum[i]) ? s->sum[i] : s->norm;
  return isfinite(s->norm) ? s->kind->factorise(s->factors, &s->pattern, s->diagonal, s->beside) : -EDOM;
}

static double largest(const double *x, uint32_t n)
{
  double most = 0;
  for (uint32_t i = 0; i < n; i++)
    most = fabs(x[i]) > most || isnan(x[i]) ? fabs(x[i]) : most;
  return most;
}

/* Computes b - A x. Returns the backward error of x. */
static double sparse_rest_of(struct hk_sparse *s, const double *b, const double *x)
{
  for (uint32_t i = 0; i < s->pattern.n; i++)
    s->rest[i] = b[i] - s->diagonal[i] * x[i];
  for (uint32_t e = 0; e < s->pattern.edges; e++) {
    const uint32_t i = s->edge[e][0], j = s->edge[e][1];
    s->rest[i] -= s->beside[e] * x[j];
    s->rest[j] -= s->beside[e] * x[i];
  }
  const double size = s->norm * largest(x, s->pattern.n) + largest(b, s->pattern.n), rest = largest(s->rest, s->pattern.n);
  return rest == 0 ? 0 : rest / size;
}

int hk_sparse_solve(struct hk_sparse *s, const double *b, double *x, double *error)
{
  memcpy(s->right, b, s->pattern.n * sizeof *b);
  s->kind->solve(s->factors, s->right, x);
  double is = sparse_rest_of(s, s->right, x);
  if (!(is <= HK_BAND_ERROR)) {
    s->kind->solve(s->factors, s->rest, s->sum);
    for (uint32_t i = 0; i < s->pattern.n; i++)
      x[i] += s->sum[i];
    is = sparse_rest_of(s, s->right, x);
  }
  if (error)
    *error = is;
  return is <= HK_BAND_ERROR ? 0 : -ERANGE;
}
