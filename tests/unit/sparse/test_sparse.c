/* Sparse symmetric systems, by each solver of the build: compared with a dense Cholesky, with parallel edges and several parts;
 * singular systems and numbers that are not finite; limits. */
#include "cpu/sparse/sparse.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N 60u
#define EDGES 150u

static const struct hk_sparse_kind *kinds(uint32_t i)
{
  return i == 0 ? hk_sparse_band : hk_sparse_ldl;
}

struct matrix {
  uint32_t edge[EDGES][2];
  double diagonal[N], beside[EDGES], dense[N][N];
};

/* Random, in two parts, positive definite by its diagonal. */
static void make(struct matrix *m, uint64_t seed)
{
  unsigned short chance[3];
  memset(m, 0, sizeof *m);
  memcpy(chance, &seed, sizeof chance);
  for (uint32_t e = 0; e < EDGES; e++) {
    const uint32_t from = e % 2 * N / 2;
    uint32_t i = (uint32_t)(erand48(chance) * N / 2), j = (uint32_t)(erand48(chance) * N / 2);
    j = i == j ? (i + 1) % (N / 2) : j;
    m->edge[e][0] = from + i;
    m->edge[e][1] = from + j;
    m->beside[e] = 2 * erand48(chance) - 1;
    m->dense[from + i][from + j] += m->beside[e];
    m->dense[from + j][from + i] += m->beside[e];
    m->diagonal[from + i] += 1.01 * fabs(m->beside[e]);
    m->diagonal[from + j] += 1.01 * fabs(m->beside[e]);
  }
  for (uint32_t i = 0; i < N; i++) {
    m->diagonal[i] += 1e-3;
    m->dense[i][i] = m->diagonal[i];
  }
}

/* Cholesky, in place. */
static void solve_dense(struct matrix *m, double *b)
{
  for (uint32_t j = 0; j < N; j++)
    for (uint32_t i = j; i < N; i++) {
      double sum = m->dense[i][j];
      for (uint32_t k = 0; k < j; k++)
        sum -= m->dense[i][k] * m->dense[j][k];
      m->dense[i][j] = i == j ? sqrt(sum) : sum / m->dense[j][j];
    }
  for (uint32_t i = 0; i < N; i++) {
    for (uint32_t k = 0; k < i; k++)
      b[i] -= m->dense[i][k] * b[k];
    b[i] /= m->dense[i][i];
  }
  for (uint32_t i = N; i-- > 0;) {
    for (uint32_t k = i + 1; k < N; k++)
      b[i] -= m->dense[k][i] * b[k];
    b[i] /= m->dense[i][i];
  }
}

static void test_dense(void **state)
{
  (void)state;
  for (uint32_t k = 0; k < 2; k++) {
    struct hk_sparse *s;
    struct matrix m;
    double b[N], x[N], error;
    if (!kinds(k))
      continue;
    for (uint64_t seed = 1; seed < 20; seed++) {
      make(&m, seed);
      assert_int_equal(hk_sparse_open(&s, kinds(k), N, (const uint32_t(*)[2])m.edge, EDGES), 0);
      for (uint32_t i = 0; i < N; i++)
        b[i] = sin(i + (double)seed);
      assert_int_equal(hk_sparse_factorise(s, m.diagonal, m.beside), 0);
      assert_int_equal(hk_sparse_solve(s, b, x, &error), 0);
      assert_true(error < 8 * 2.3e-16);
      solve_dense(&m, b);
      for (uint32_t i = 0; i < N; i++)
        assert_true(fabs(x[i] - b[i]) <= 1e-9 * (1 + fabs(b[i])));
      assert_true(hk_sparse_facts(s).numbers >= N && hk_sparse_facts(s).bytes > 8 * hk_sparse_facts(s).numbers);
      hk_sparse_close(s);
    }
  }
}

/* A new matrix in the same solver, and the solution in place of the right side. */
static void test_again(void **state)
{
  static const uint32_t edge[3][2] = { { 0, 1 }, { 1, 2 }, { 1, 0 } };
  (void)state;
  for (uint32_t k = 0; k < 2; k++) {
    struct hk_sparse *s;
    if (!kinds(k))
      continue;
    assert_int_equal(hk_sparse_open(&s, kinds(k), 3, edge, 3), 0);
    for (int round = 1; round < 4; round++) {
      double x[3] = { 4.0 * round - 2, 4.0 * round - 3, 4.0 * round - 1 };
      assert_int_equal(hk_sparse_factorise(s, (double[]){ 4.0 * round, 4.0 * round, 4.0 * round }, (double[]){ -1, -1, -1 }), 0);
      assert_int_equal(hk_sparse_solve(s, x, x, NULL), 0);
      for (int i = 0; i < 3; i++)
        assert_true(fabs(x[i] - 1) < 1e-14);
    }
    hk_sparse_close(s);
  }
}

static void test_faults(void **state)
{
  static const uint32_t edge[1][2] = { { 0, 1 } };
  (void)state;
  for (uint32_t k = 0; k < 2; k++) {
    struct hk_sparse *s;
    if (!kinds(k))
      continue;
    assert_int_equal(hk_sparse_open(&s, kinds(k), 2, edge, 1), 0);
    assert_int_equal(hk_sparse_factorise(s, (double[]){ 1, 1 }, (double[]){ 1 }), -EDOM);
    assert_int_equal(hk_sparse_factorise(s, (double[]){ 1, 1 }, (double[]){ 2 }), -EDOM);
    assert_int_equal(hk_sparse_factorise(s, (double[]){ 1, -1 }, (double[]){ 0 }), -EDOM);
    assert_int_equal(hk_sparse_factorise(s, (double[]){ 1, NAN }, (double[]){ 0 }), -EDOM);
    assert_int_equal(hk_sparse_factorise(s, (double[]){ 1, INFINITY }, (double[]){ 0 }), -EDOM);
    assert_int_equal(hk_sparse_factorise(s, (double[]){ 1, 1 }, (double[]){ 0.5 }), 0);
    double x[2] = { NAN, 1 };
    assert_int_equal(hk_sparse_solve(s, x, x, NULL), -ERANGE);
    hk_sparse_close(s);
    assert_int_equal(hk_sparse_open(&s, kinds(k), 0, edge, 0), -E2BIG);
    assert_int_equal(hk_sparse_open(&s, kinds(k), HK_SPARSE_N_MAX + 1, edge, 0), -E2BIG);
    assert_int_equal(hk_sparse_open(&s, kinds(k), 1, edge, 0), 0);
    assert_int_equal(hk_sparse_factorise(s, (double[]){ 2 }, NULL), 0);
    assert_int_equal(hk_sparse_solve(s, (double[]){ 3 }, x, NULL), 0);
    assert_true(fabs(x[0] - 1.5) < 1e-15);
    hk_sparse_close(s);
  }
}

/* A long ladder with its equations in random order: the ordering of the band makes it narrow. */
static void test_order(void **state)
{
  enum { RUNGS = 500, ALL = 2 * RUNGS };
  static uint32_t edge[3 * RUNGS - 2][2], name[ALL];
  unsigned short chance[3] = { 1, 2, 3 };
  uint32_t n = 0;
  (void)state;
  for (uint32_t i = 0; i < ALL; i++)
    name[i] = i;
  for (uint32_t i = ALL - 1; i > 0; i--) {
    const uint32_t j = (uint32_t)(erand48(chance) * (i + 1)), was = name[i];
    name[i] = name[j];
    name[j] = was;
  }
  for (uint32_t i = 0; i < RUNGS; i++) {
    edge[n][0] = name[2 * i];
    edge[n++][1] = name[2 * i + 1];
    for (uint32_t k = 0; k < 2 && i + 1 < RUNGS; k++) {
      edge[n][0] = name[2 * i + k];
      edge[n++][1] = name[2 * i + 2 + k];
    }
  }
  for (uint32_t k = 0; k < 2; k++) {
    struct hk_sparse *s;
    if (!kinds(k))
      continue;
    assert_int_equal(hk_sparse_open(&s, kinds(k), ALL, (const uint32_t(*)[2])edge, n), 0);
    assert_true(hk_sparse_facts(s).numbers <= ALL * 4u);
    hk_sparse_close(s);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_dense),
    cmocka_unit_test(test_again),
    cmocka_unit_test(test_faults),
    cmocka_unit_test(test_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
