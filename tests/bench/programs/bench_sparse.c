/* Compares solvers of a network of pipes: as a wide band on the GPU, and with LAPACK on the host; with sparse LU on the
 * host (SuiteSparse's KLU and UMFPACK); and with sparse QR on the GPU (cuSOLVER).
 *
 * bench_sparse SIDE LOOPS [cpu]: SIDE x SIDE nodes on a grid, joined by a random tree and LOOPS more pipes in a thousand of its
 * other edges; the unknowns are a pressure at each node and a flow at both ends of each pipe, in implicit equations of
 * continuity and momentum, numbered by reverse Cuthill-McKee for the band. Times are medians of some runs in ms. cpu:
 * also with LAPACK, which takes long.
 * bench_sparse band N HALF [cpu]: a random band of N equations instead, full within HALF diagonals on either side; once. */
#include "cpu/sparse/sparse.h"
#include "gpu/band/wide_gpu.h"
#include "tests/backend/band_cases.h"
#include "tests/bench/programs/bench.h"
#include "tests/bench/programs/sparse_network.h"

#include <cuda_runtime_api.h>
#define DISABLE_CUSOLVER_DEPRECATED /* its own note names cuDSS, which is not in the toolkit */
#include <cusolverSp.h>
#include <klu.h>
#include <stdio.h>
#include <umfpack.h>

/* --- as a band ---------------------------------------------------------------------------------------------------------- */

/* Neighbours of an unknown: both the rows of its column and the columns of its row. next: 2 x ROW_MAX of each. */
static void neighbours(const struct network *w, int *next, int *count)
{
  for (int c = 0; c < w->n; c++)
    for (int k = w->begin[c]; k < w->begin[c + 1]; k++) {
      const int pair[2] = { c, w->row[k] };
      for (int i = 0; i < 2; i++) {
        const int one = pair[i], other = pair[1 - i];
        bool known = one == other;
        for (int j = 0; j < count[one]; j++)
          known |= next[one * 2 * ROW_MAX + j] == other;
        if (!known)
          next[one * 2 * ROW_MAX + count[one]++] = other;
      }
    }
}

/* Numbers unknowns by distance from `start`, those with few neighbours first. Returns the last one. */
static int breadth_first(const struct network *w, const int *next, const int *count, int start, int *order)
{
  bool *seen = room((size_t)w->n * sizeof *seen);
  int end = 1;
  order[0] = start;
  seen[start] = true;
  for (int at = 0; at < end; at++) {
    const int first = end, i = order[at];
    for (int k = 0; k < count[i]; k++) {
      const int j = next[i * 2 * ROW_MAX + k];
      if (seen[j])
        continue;
      seen[j] = true;
      int to = end++;
      for (; to > first && count[order[to - 1]] > count[j]; to--)
        order[to] = order[to - 1];
      order[to] = j;
    }
  }
  free(seen);
  check("connected", end != w->n);
  return order[end - 1];
}

/* place: the number of each unknown by reverse Cuthill-McKee, from an end of the network. */
static void number(const struct network *w, int *place)
{
  int *next = room((size_t)w->n * 2 * ROW_MAX * sizeof *next), *count = room((size_t)w->n * sizeof *count),
      *order = room((size_t)w->n * sizeof *order), start = 0;
  neighbours(w, next, count);
  for (int k = 0; k < 4; k++)
    start = breadth_first(w, next, count, start, order);
  for (int i = 0; i < w->n; i++)
    place[order[i]] = w->n - 1 - i;
  free(next);
  free(count);
  free(order);
}

/* The network's matrix and right side as a band of one system. */
static struct hk_band_shape make_band(const struct network *w, double **a, double **b)
{
  int *place = room((size_t)w->n * sizeof *place);
  struct hk_band_shape s = { 1, (uint32_t)w->n, 0, 0 };
  if (w->from)
    number(w, place);
  else
    for (int i = 0; i < w->n; i++)
      place[i] = i;
  for (int c = 0; c < w->n; c++)
    for (int k = w->begin[c]; k < w->begin[c + 1]; k++) {
      const int down = place[w->row[k]] - place[c];
      s.below = down > (int)s.below ? (uint32_t)down : s.below;
      s.above = -down > (int)s.above ? (uint32_t)-down : s.above;
    }
  *a = room(hk_band_matrix(&s) * sizeof **a);
  *b = room((size_t)w->n * sizeof **b);
  for (int c = 0; c < w->n; c++) {
    (*b)[place[c]] = w->right[c];
    for (int k = w->begin[c]; k < w->begin[c + 1]; k++)
      (*a)[hk_band_at(&s, 0, (uint32_t)place[w->row[k]], (uint32_t)place[c])] = w->value[k];
  }
  free(place);
  return s;
}

static void as_band(const struct network *w, bool cpu)
{
  double *a, *b, took[RUNS] = { 0 }, again[RUNS] = { 0 };
  const struct hk_band_shape s = make_band(w, &a, &b);
  double *x = room(s.n * sizeof *x);
  struct hk_band_wide *g;
  struct hk_band_outcome o;
  char error[256];
  printf("  band of %u below, %u above;", s.below, s.above);
  if (hk_band_wide_open(&g, &s, NULL, 0, error, sizeof error) != 0)
    printf(" GPU: %s;", error);
  else {
    check("solve", hk_band_wide_solve(g, a, b, x, &o));
    for (uint32_t k = 0; k < w->runs; k++) {
      double from = now_ms();
      check("solve", hk_band_wide_solve(g, a, b, x, &o));
      took[k] = now_ms() - from;
      from = now_ms();
      check("solve", hk_band_wide_solve_with(g, b, x, &o));
      again[k] = now_ms() - from;
    }
    printf(" GPU with the copy of A %.1f, with the factors %.1f (status %d, %.2f eps, refined %u, whole %u);",
           median(took, w->runs), median(again, w->runs), o.status, o.error / 2.220446049250313e-16, o.refined, o.whole);
    hk_band_wide_close(g);
  }
  if (cpu) {
    const double from = now_ms();
    check("solve", hk_band_solve(&s, a, b, x, &o, 1));
    printf(" LAPACK %.0f (%.2f eps)", now_ms() - from, o.error / 2.220446049250313e-16);
  }
  printf("\n");
  free(a);
  free(b);
  free(x);
}

/* --- sparse ------------------------------------------------------------------------------------------------------------- */

static double largest_residual(const struct network *w, const double *x)
{
  double *rest = room((size_t)w->n * sizeof *rest), most = 0;
  memcpy(rest, w->right, (size_t)w->n * sizeof *rest);
  for (int c = 0; c < w->n; c++)
    for (int k = w->begin[c]; k < w->begin[c + 1]; k++)
      rest[w->row[k]] -= w->value[k] * x[c];
  for (int i = 0; i < w->n; i++)
    most = fmax(most, fabs(rest[i]));
  free(rest);
  return most;
}

static void by_klu(const struct network *w)
{
  klu_common common;
  double plan[RUNS], factor[RUNS], again[RUNS], solve[RUNS], *x = room((size_t)w->n * sizeof *x);
  klu_defaults(&common);
  for (uint32_t k = 0; k < w->runs; k++) {
    const double t0 = now_ms();
    klu_symbolic *symbolic = klu_analyze(w->n, w->begin, w->row, &common);
    const double t1 = now_ms();
    klu_numeric *numeric = symbolic ? klu_factor(w->begin, w->row, w->value, symbolic, &common) : NULL;
    const double t2 = now_ms();
    check("klu", !numeric || !klu_refactor(w->begin, w->row, w->value, symbolic, numeric, &common));
    const double t3 = now_ms();
    memcpy(x, w->right, (size_t)w->n * sizeof *x);
    check("klu_solve", !klu_solve(symbolic, numeric, w->n, 1, x, &common));
    solve[k] = now_ms() - t3;
    plan[k] = t1 - t0, factor[k] = t2 - t1, again[k] = t3 - t2;
    if (k + 1 == w->runs)
      printf("  KLU: %d numbers in the factors,", numeric->lnz + numeric->unz);
    klu_free_numeric(&numeric, &common);
    klu_free_symbolic(&symbolic, &common);
  }
  printf(" analyse %.2f, factor %.2f, with the old pivots %.2f, solve %.2f; residual %.1e\n", median(plan, w->runs),
         median(factor, w->runs), median(again, w->runs), median(solve, w->runs), largest_residual(w, x));
  free(x);
}

static void by_umfpack(const struct network *w)
{
  double plan[RUNS], factor[RUNS], solve[RUNS], *x = room((size_t)w->n * sizeof *x);
  for (uint32_t k = 0; k < w->runs; k++) {
    void *symbolic, *numeric;
    const double t0 = now_ms();
    check("umfpack", umfpack_di_symbolic(w->n, w->n, w->begin, w->row, w->value, &symbolic, NULL, NULL));
    const double t1 = now_ms();
    check("umfpack", umfpack_di_numeric(w->begin, w->row, w->value, symbolic, &numeric, NULL, NULL));
    const double t2 = now_ms();
    check("umfpack", umfpack_di_solve(UMFPACK_A, w->begin, w->row, w->value, x, w->right, numeric, NULL, NULL));
    solve[k] = now_ms() - t2;
    plan[k] = t1 - t0, factor[k] = t2 - t1;
    umfpack_di_free_symbolic(&symbolic);
    umfpack_di_free_numeric(&numeric);
  }
  printf("  UMFPACK: analyse %.2f, factor %.2f, solve %.2f; residual %.1e\n", median(plan, w->runs), median(factor, w->runs),
         median(solve, w->runs), largest_residual(w, x));
  free(x);
}

/* The daemon's own solver for make_nodes. */
static void by_own(const struct network *w, const struct hk_sparse_kind *kind)
{
  uint32_t(*edge)[2] = room((size_t)w->pipes * sizeof *edge);
  double *diagonal = room((size_t)w->n * sizeof *diagonal), *beside = room((size_t)w->pipes * sizeof *beside),
         *x = room((size_t)w->n * sizeof *x), factor[RUNS], solve[RUNS];
  struct hk_sparse *own;
  for (int i = 0; i < w->n; i++)
    diagonal[i] = i == 0 ? 1 : 1e-3;
  for (int e = 0; e < w->pipes; e++) {
    edge[e][0] = (uint32_t)w->from[e], edge[e][1] = (uint32_t)w->to[e];
    beside[e] = -weight_of(e);
    diagonal[w->from[e]] += weight_of(e), diagonal[w->to[e]] += weight_of(e);
  }
  check("hk_sparse_open", hk_sparse_open(&own, kind, (uint32_t)w->n, (const uint32_t(*)[2])edge, (uint32_t)w->pipes));
  for (uint32_t k = 0; k < RUNS; k++) {
    const double t0 = now_ms();
    check("hk_sparse_factorise", hk_sparse_factorise(own, diagonal, beside));
    const double t1 = now_ms();
    check("hk_sparse_solve", hk_sparse_solve(own, w->right, x, NULL));
    solve[k] = now_ms() - t1;
    factor[k] = t1 - t0;
  }
  printf("  the daemon's, %s: factor %.2f, solve %.2f; residual %.1e\n", hk_sparse_facts(own).solver, median(factor, RUNS),
         median(solve, RUNS), largest_residual(w, x));
  hk_sparse_close(own);
  free(edge);
  free(diagonal);
  free(beside);
  free(x);
}

/* Rows of A: of the columns of `w`. */
static void make_rows(const struct network *w, int *begin, int *column, double *value)
{
  for (int k = 0; k < w->begin[w->n]; k++)
    begin[w->row[k] + 1]++;
  for (int i = 0; i < w->n; i++)
    begin[i + 1] += begin[i];
  for (int c = 0; c < w->n; c++)
    for (int k = w->begin[c]; k < w->begin[c + 1]; k++) {
      const int at = begin[w->row[k]]++;
      column[at] = c;
      value[at] = w->value[k];
    }
  memmove(begin + 1, begin, (size_t)w->n * sizeof *begin);
  begin[0] = 0;
}

static void *on_device(const void *from, size_t bytes)
{
  void *there;
  check("cudaMalloc", (int)cudaMalloc(&there, bytes));
  check("cudaMemcpy", (int)cudaMemcpy(there, from, bytes, cudaMemcpyHostToDevice));
  return there;
}

/* One routine orders (networks by nested dissection), analyses, factorises and solves. It runs once, because it takes
 * long. */
static void by_qr(const struct network *w)
{
  const size_t all = (size_t)w->begin[w->n];
  int *begin = room(((size_t)w->n + 1) * sizeof *begin), *column = room(all * sizeof *column), singular = -1;
  double *value = room(all * sizeof *value), *x = room((size_t)w->n * sizeof *x);
  cusolverSpHandle_t solver;
  cusparseMatDescr_t kind;
  if (cusolverSpCreate(&solver) != CUSOLVER_STATUS_SUCCESS) {
    printf("  cuSOLVER: no GPU\n");
    return;
  }
  make_rows(w, begin, column, value);
  check("cusparseCreateMatDescr", (int)cusparseCreateMatDescr(&kind));
  int *const begin_there = on_device(begin, ((size_t)w->n + 1) * sizeof *begin), *const column_there =
                                                                                     on_device(column, all * sizeof *column);
  double *const value_there = on_device(value, all * sizeof *value), *const b = on_device(w->right, (size_t)w->n * sizeof *b),
                *const x_there = on_device(w->right, (size_t)w->n * sizeof *b);
  const double start = now_ms();
  const int failed = (int)cusolverSpDcsrlsvqr(solver, w->n, (int)all, kind, value_there, begin_there, column_there, b, 0,
                                              w->from ? 3 : 0, x_there, &singular);
  const double took = now_ms() - start;
  check("cudaMemcpy", (int)cudaMemcpy(x, x_there, (size_t)w->n * sizeof *x, cudaMemcpyDeviceToHost));
  if (failed)
    printf("  cuSOLVER's QR: status %d\n", failed);
  else
    printf("  cuSOLVER's QR: all in one %.1f; residual %.1e, singular %d\n", took, largest_residual(w, x), singular);
  check("free", (int)cudaFree(begin_there) | (int)cudaFree(column_there) | (int)cudaFree(value_there) | (int)cudaFree(b) |
                    (int)cudaFree(x_there) | (int)cusparseDestroyMatDescr(kind) | (int)cusolverSpDestroy(solver));
  free(begin);
  free(column);
  free(value);
  free(x);
}

static void by_nodes(const struct network *all)
{
  struct network *w = make_nodes(all);
  printf("one equation for each node, %d\n", w->n);
  as_band(w, false);
  by_klu(w);
  by_own(w, NULL);
  by_own(w, hk_sparse_band);
  drop_matrix(w);
}

int main(int argc, char **argv)
{
  const bool full = argc > 3 && strcmp(argv[1], "band") == 0;
  const int side = full       ? atoi(argv[2])
                   : argc > 1 ? atoi(argv[1])
                              : 141,
            loops = full       ? atoi(argv[3])
                    : argc > 2 ? atoi(argv[2])
                               : 100;
  if (side < 2 || side > (full ? 100000 : 2000) || loops < 0 || loops > 1000) {
    fprintf(stderr, "usage: bench_sparse SIDE LOOPS [cpu], or band N HALF [cpu]\n");
    return 1;
  }
  setvbuf(stdout, NULL, _IOLBF, 0); /* so that finished parts are printed even if the rest takes too long */
  struct network *w = full ? make_full_band(side, loops) : make_network(side, loops);
  printf("%d nodes, %d pipes, %d unknowns\n", w->nodes, w->pipes, w->n);
  as_band(w, argc > (full ? 4 : 3));
  by_klu(w);
  by_umfpack(w);
  by_qr(w);
  if (!full)
    by_nodes(w);
  free(w->from);
  free(w->to);
  free(w->right);
  drop_matrix(w);
  return 0;
}
