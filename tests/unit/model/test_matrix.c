/* Processes given as matrices: solutions compared with a dense elimination in long double, of matrices that are random, weakly
 * diagonal, badly scaled, with segments that are singular or indefinite; steps compared with the equation; singular matrices;
 * and as a model: files that are refused, departures of checks, gaps, states, NaN. */
#include "cpu/model/model_state.h"
#include "cpu/model/pipelines_matrix.h"
#include "tests/unit/support/noise.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define assert_near(is, wanted, by) assert_true(fabs((is) - (wanted)) <= (by))
#define N 40u

static const struct hk_pipelines_place HOST = { &hk_pipelines_host, 1 };
static char folder[64];

static void write_file(const char *name, const char *text)
{
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  assert_true(fputs(text, f) >= 0);
  assert_int_equal(fclose(f), 0);
}

/* Writes a dense matrix, without its zeros. */
static void write_matrix(const char *name, uint32_t n, const double *a)
{
  char *text = malloc(64 + 48 * (size_t)n * n);
  size_t at = 0, entries = 0;
  assert_non_null(text);
  for (size_t k = 0; k < (size_t)n * n; k++)
    entries += a[k] != 0;
  at += (size_t)sprintf(text, "%%%%MatrixMarket matrix coordinate real general\n%u %u %zu\n", n, n, entries);
  for (size_t k = 0; k < (size_t)n * n; k++)
    if (a[k] != 0)
      at += (size_t)sprintf(text + at, "%zu %zu %.17g\n", k / n + 1, k % n + 1, a[k]);
  write_file(name, text);
  free(text);
}

static const struct hk_model_plan *plan_of(const char *text)
{
  const struct hk_model_plan *plan;
  char error[512] = "";
  if (hk_model_plan_parse_in(&plan, text, strlen(text), folder, error, sizeof error) != 0)
    fail_msg("%s", error);
  return plan;
}

/* --- against a dense elimination ------------------------------------------------------------------------------------------ */

/* Solves with partial pivoting, rows scaled. */
static void solve_dense(uint32_t n, const double *a, const double *b, double *x)
{
  static long double m[N][N + 1];
  for (uint32_t i = 0; i < n; i++) {
    long double most = 0;
    for (uint32_t j = 0; j < n; j++)
      most = fmaxl(most, fabsl((long double)a[i * n + j]));
    for (uint32_t j = 0; j < n; j++)
      m[i][j] = (long double)a[i * n + j] / most;
    m[i][n] = (long double)b[i] / most;
  }
  for (uint32_t k = 0; k < n; k++) {
    uint32_t best = k;
    for (uint32_t i = k + 1; i < n; i++)
      best = fabsl(m[i][k]) > fabsl(m[best][k]) ? i : best;
    for (uint32_t j = k; j <= n; j++) {
      const long double t = m[k][j];
      m[k][j] = m[best][j];
      m[best][j] = t;
    }
    for (uint32_t i = k + 1; i < n; i++)
      for (uint32_t j = n + 1; j-- > k;)
        m[i][j] -= m[i][k] / m[k][k] * m[k][j];
  }
  for (uint32_t i = n; i-- > 0;) {
    long double sum = m[i][n];
    for (uint32_t j = i + 1; j < n; j++)
      sum -= m[i][j] * (long double)x[j];
    x[i] = (double)(sum / m[i][i]);
  }
}

enum kind { RANDOM, WEAK, SCALED, SINGULAR, SYMMETRIC, INDEFINITE, KINDS };

/* A sparse matrix with scattered columns. */
static void make(enum kind kind, double a[N * N], double m[N * N])
{
  memset(a, 0, N * N * sizeof *a);
  memset(m, 0, N * N * sizeof *m);
  for (uint32_t i = 0; i < N; i++) {
    for (uint32_t k = 0; k < 4; k++) {
      const uint32_t j = (i * 7 + k * 11 + 1) % N;
      a[i * N + j] += noise();
    }
    a[i * N + i] += kind == WEAK ? 1e-6 : kind == RANDOM || kind == SCALED ? noise() : 0;
    m[i * N + i] = 0.5 + uniform();
  }
  for (uint32_t i = 0; i < N && kind >= SYMMETRIC; i++) {
    double sum = 0;
    for (uint32_t j = 0; j < i; j++)
      a[i * N + j] = a[j * N + i] = (a[i * N + j] + a[j * N + i]) / 2;
    for (uint32_t j = 0; j < N; j++)
      sum += j == i ? 0 : fabs(a[i * N + j]) + fabs(a[j * N + i]);
    a[i * N + i] = kind == SYMMETRIC ? sum + 0.1 : 1e-3; /* the second is indefinite, with a positive diagonal */
  }
  for (uint32_t i = 0; i < N && kind == SCALED; i++)
    for (uint32_t j = 0; j < N; j++)
      a[i * N + j] *= ldexp(1, (int)(i % 5) * 20 - 40);
  for (uint32_t i = 1; i < N && kind == SINGULAR; i++) /* a leading part with a zero diagonal: no pivot at the beginning */
    a[i * N + i] = 0;
}

/* The matrix with a given unknown's row in place of its equation. */
static void give(double *s, double *b, uint32_t unknown, double value)
{
  for (uint32_t j = 0; j < N; j++)
    s[unknown * N + j] = j == unknown;
  b[unknown] = value;
}

static void test_solutions(void **state)
{
  static double a[N * N], m[N * N], s[N * N], b[N], x[N];
  (void)state;
  seed = 4;
  for (uint32_t trial = 0; trial < 5 * KINDS; trial++) {
    const enum kind kind = (enum kind)(trial % KINDS);
    const double is[2] = { 1e6 + noise(), -3 + noise() }, dt = 0.7; /* of large offsets */
    make(kind, a, m);
    write_matrix("a.mtx", N, a);
    write_matrix("m.mtx", N, m);
    const struct hk_model_plan *plan = plan_of("kind matrix\nequations a.mtx\nstorage m.mtx\nsensor p at 3 boundary\n"
                                               "sensor q at 31 boundary\nsensor c at 5 check\n");
    struct hk_matrix w;
    char error[160];
    assert_int_equal(plan->matrix->symmetric, kind == SYMMETRIC || kind == INDEFINITE);
    assert_int_equal(hk_matrix_open(&w, plan->matrix, NULL, 0, error, sizeof error), 0);
    memcpy(s, a, sizeof s);
    memset(b, 0, sizeof b);
    give(s, b, 2, is[0]);
    give(s, b, 30, is[1]);
    solve_dense(N, s, b, x);
    const int status = hk_matrix_steady(&w, is, 1);
    double most = 0, worst = 0;
    for (uint32_t i = 0; i < N; i++) {
      most = fmax(most, fabs(x[i]));
      worst = fmax(worst, fabs(x[i] - w.state[i]));
    }
    if (status != 0 || worst > 1e-7 * most)
      fail_msg("kind %d, trial %u: steady: %d, off by %g of %g", (int)kind, trial, status, worst, most);
    assert_true(w.error <= HK_BAND_ERROR);
    assert_string_equal(hk_matrix_solver(&w), kind == SYMMETRIC ? (hk_sparse_ldl ? "sparse LDL'" : "band Cholesky") : "band LU");
    for (uint32_t i = 0; i < N; i++)
      for (uint32_t j = 0; j < N; j++)
        s[i * N + j] = a[i * N + j] + m[i * N + j] / dt;
    for (uint32_t i = 0; i < N; i++) {
      b[i] = 0;
      for (uint32_t j = 0; j < N; j++)
        b[i] += m[i * N + j] / dt * w.state[j];
    }
    give(s, b, 2, is[0] + 1);
    give(s, b, 30, is[1]);
    solve_dense(N, s, b, x);
    assert_int_equal(hk_matrix_step(&w, (double[]){ is[0] + 1, is[1] }, NULL, dt, 1), 0);
    for (uint32_t i = 0; i < N; i++)
      if (!(fabs(x[i] - w.state[i]) <= 1e-7 * most))
        fail_msg("kind %d, trial %u: step: %g for %g", (int)kind, trial, w.state[i], x[i]);
    hk_matrix_close(&w);
    hk_model_plan_release(plan);
  }
}

/* --- a rod ---------------------------------------------------------------------------------------------------------------- */

#define ROD 21u

/* Heat flows along a rod between two measured ends; an input warms its middle. */
static void write_rod(double wind)
{
  static double a[ROD * ROD], m[ROD * ROD];
  char text[1024] = "%%MatrixMarket matrix coordinate real general\n21 2 2\n11 1 1\n3 2 1\n";
  memset(a, 0, sizeof a);
  memset(m, 0, sizeof m);
  for (uint32_t i = 0; i < ROD; i++) {
    m[i * ROD + i] = 5;
    for (uint32_t j = i > 0 ? i - 1 : 1; j <= i + 1 && j < ROD; j += 2) {
      a[i * ROD + i] += 1 + (j < i ? wind : 0);
      a[i * ROD + j] -= 1 + (j < i ? wind : 0);
    }
  }
  write_matrix("rod.a.mtx", ROD, a);
  write_matrix("rod.m.mtx", ROD, m);
  write_file("rod.b.mtx", text);
  write_file("rod.h.mtx", "%%MatrixMarket matrix coordinate real general\n1 21 2\n1 5 0.5\n1 7 0.5\n");
}

static const char ROD_FILE[] =
    "kind matrix # a rod\nunit C\nequations rod.a.mtx\nstorage rod.m.mtx\ninputs rod.b.mtx\nreadings rod.h.mtx\n"
    "constant 2 0\nsensor left at 1 boundary\nsensor right at 21 boundary\nsensor heater input 1 boundary\n"
    "sensor middle at 11 check\nsensor mean reading 1 check\n";

static void test_rod(void **state)
{
  double value[5];
  struct hk_matrix w;
  char error[160];
  (void)state;
  write_rod(0);
  const struct hk_model_plan *plan = plan_of(ROD_FILE);
  assert_string_equal(plan->unit[0], "C");
  assert_int_equal(plan->matrix->below, 1);
  assert_int_equal(plan->boundaries, 3);
  assert_int_equal(hk_matrix_open(&w, plan->matrix, NULL, 0, error, sizeof error), 0);
  assert_int_equal(hk_matrix_steady(&w, (double[]){ 20, 60, 0 }, 1), 0);
  hk_matrix_read(&w, plan->where, 5, value);
  assert_near(value[0], 20, 1e-9);
  assert_near(value[1], 60, 1e-9);
  assert_true(isnan(value[2]));
  assert_near(value[3], 40, 1e-9);
  assert_near(value[4], 30, 1e-9);
  /* the time that heat stays in the middle of such a rod: 5 x 10 x 10 / 2 */
  assert_near(w.age, 250, 1e-6);
  /* heat that comes in flows to both ends: 10 K at 2 W */
  assert_int_equal(hk_matrix_steady(&w, (double[]){ 20, 20, 2 }, 1), 0);
  hk_matrix_read(&w, plan->where, 5, value);
  assert_near(value[3], 20 + 2 * 5, 1e-9);
  /* it cools with its slowest time constant: (5 / 4 sin^2 of pi / 40) s */
  double before = value[3];
  for (uint32_t k = 0; k < 400; k++) {
    assert_int_equal(hk_matrix_step(&w, (double[]){ 20, 20, 0 }, NULL, 1, 1), 0);
    if (k == 398)
      hk_matrix_read(&w, plan->where + 3, 1, &before);
  }
  hk_matrix_read(&w, plan->where + 3, 1, value);
  const double slowest = 5 / (4 * pow(sin(acos(-1) / 40), 2));
  assert_near((value[0] - 20) / (before - 20), 1 / (1 + 1 / slowest), 1e-4);
  assert_true(slowest <= w.age);
  hk_matrix_close(&w);
  hk_model_plan_release(plan);
}

static void test_singular(void **state)
{
  static double a[N * N], m[N * N];
  struct hk_matrix w;
  char error[160];
  (void)state;
  make(RANDOM, a, m);
  for (uint32_t j = 0; j < N; j++)
    a[17 * N + j] = 0; /* no equation determines unknown 18 in the steady state, but it stores heat */
  write_matrix("a.mtx", N, a);
  write_matrix("m.mtx", N, m);
  const struct hk_model_plan *plan =
      plan_of("kind matrix\nequations a.mtx\nstorage m.mtx\nsensor p at 3 boundary\nsensor c at 5 check\n");
  struct hk_matrix_cost cost;
  uint32_t singular;
  assert_int_equal(hk_matrix_open(&w, plan->matrix, NULL, 0, error, sizeof error), 0);
  assert_int_equal(hk_matrix_steady(&w, (double[]){ 1 }, 1), -EDOM);
  assert_true(w.singular < N);
  assert_int_equal(hk_matrix_step(&w, (double[]){ 1 }, NULL, 1, 1), 0);
  assert_int_equal(hk_matrix_step(&w, (double[]){ 1e308 }, NULL, 1, 1), -ERANGE); /* overflows */
  assert_int_equal(hk_matrix_step(&w, (double[]){ 4.9e-324 }, NULL, 1, 1), 0);
  hk_matrix_close(&w);
  assert_int_equal(hk_pipelines_matrix_measure(plan, 1, &cost, &singular), -EDOM);
  hk_model_plan_release(plan);
}

/* --- as a model ----------------------------------------------------------------------------------------------------------- */

static const struct hk_model_rule RULE = { .interval = 10, .adapt = 0.002, .clip = 3.75, .hold = 3 };

static struct hk_model *model_of(const struct hk_model_plan *plan)
{
  struct hk_model *model;
  char error[160];
  assert_int_equal(hk_model_new(&model, plan, &RULE, &HOST, error, sizeof error), 0);
  return model;
}

/* Readings of the rod's sensors in a row: ends move, and the checks are those of another process with the same file. */
static void rod_row(struct hk_matrix *w, const struct hk_model_plan *plan, uint32_t row, double y[5])
{
  const double is[3] = { 20 + sin(row / 30.0), 60 + cos(row / 50.0), row > 60 ? 1 : 0 };
  assert_int_equal(row == 0 ? hk_matrix_steady(w, is, 1) : hk_matrix_step(w, is, NULL, RULE.interval, 1), 0);
  hk_matrix_read(w, plan->where, 5, y);
  memcpy(y, is, sizeof is);
  y[3] += row >= 300 ? 5 : 0; /* a bias */
}

static void test_checks(void **state)
{
  struct hk_matrix w;
  char error[160];
  (void)state;
  for (uint32_t kind = 0; kind < 2; kind++) {
    write_rod(kind * 0.3); /* solved as symmetric, or as a band */
    const struct hk_model_plan *plan = plan_of(ROD_FILE);
    struct hk_model *model = model_of(plan), *other = NULL;
    size_t size = hk_model_state_size(plan);
    double *bytes = malloc(size), y[5];
    assert_non_null(bytes);
    assert_int_equal(plan->matrix->symmetric, kind == 0);
    assert_int_equal(hk_matrix_open(&w, plan->matrix, NULL, 0, error, sizeof error), 0);
    for (uint32_t row = 0; row < 400; row++) {
      rod_row(&w, plan, row, y);
      const double *nu = hk_model_row(model, row, y);
      const uint32_t silent = (uint32_t)ceil(3 * w.age / RULE.interval);
      assert_int_equal(hk_model_turn_of(model, 0), row == 0 ? HK_MODEL_BEGINS : row <= silent ? HK_MODEL_SILENT : HK_MODEL_SAYS);
      assert_true(isnan(nu[0]) && isnan(nu[1]) && isnan(nu[2]));
      if (row > silent) {
        assert_near(nu[3], row >= 300 ? 5 : 0, 1e-9);
        assert_near(nu[4], 0, 1e-9);
      }
      if (other) {
        const double *same = hk_model_row(other, row, y);
        assert_memory_equal(same + 3, nu + 3, 2 * sizeof *nu);
      }
      if (row == 250) { /* goes on elsewhere */
        hk_model_write(model, bytes);
        other = model_of(plan);
        assert_true(hk_model_read(other, bytes, size));
      }
    }
    assert_near(hk_model_friction(model, 0), 1, 0); /* nothing adapts */
    assert_true(hk_model_explains(model, 4) > 0.99);
    double *again = malloc(size);
    assert_non_null(again);
    hk_model_write(model, bytes);
    hk_model_write(other, again);
    assert_memory_equal(bytes, again, size);
    bytes[size / sizeof *bytes - 1] = NAN;
    assert_false(hk_model_read(other, bytes, size));
    free(bytes);
    free(again);
    hk_matrix_close(&w);
    hk_model_free(model);
    hk_model_free(other);
    hk_model_plan_release(plan);
  }
}

static void test_gaps(void **state)
{
  (void)state;
  write_rod(0.3);
  const struct hk_model_plan *plan = plan_of(ROD_FILE);
  struct hk_model *model = model_of(plan);
  double y[5] = { NAN, 60, 0, 40, 30 };
  (void)hk_model_row(model, 0, y);
  assert_int_equal(hk_model_turn_of(model, 0), HK_MODEL_WAITS);
  y[0] = 20;
  (void)hk_model_row(model, 1, y);
  assert_int_equal(hk_model_turn_of(model, 0), HK_MODEL_BEGINS);
  y[2] = NAN;
  for (int64_t row = 2; row < 5; row++) {
    (void)hk_model_row(model, row, y);
    assert_int_equal(hk_model_turn_of(model, 0), HK_MODEL_SILENT);
  }
  (void)hk_model_row(model, 5, y);
  assert_int_equal(hk_model_turn_of(model, 0), HK_MODEL_MISSED);
  assert_int_equal(hk_model_missing(model, 0), 2);
  y[2] = 1e308; /* no solution that is a number */
  (void)hk_model_row(model, 6, y);
  assert_int_equal(hk_model_turn_of(model, 0), HK_MODEL_WAITS);
  y[2] = 0;
  (void)hk_model_row(model, 7, y);
  assert_int_equal(hk_model_turn_of(model, 0), HK_MODEL_BEGINS);
  y[0] = 1.7e308; /* times 1.3 */
  for (int64_t row = 8; row < 11; row++)
    (void)hk_model_row(model, row, y);
  assert_int_equal(hk_model_turn_of(model, 0), HK_MODEL_UNSOLVED);
  assert_null(hk_model_fault(model, 0));
  assert_true(hk_model_singular(model, 0) < ROD);
  hk_model_free(model);
  hk_model_plan_release(plan);
}

#define MODEL "kind matrix\nequations rod.a.mtx\n"
#define ENDS "sensor p at 1 boundary\nsensor c at 5 check\n"

static void test_faults(void **state)
{
  static const struct {
    const char *text, *error;
  } wrong[] = {
    { "kind matrix\n" ENDS, "there is no equations: the file of the matrix A" },
    { "kind matrix\nequations none.mtx\n" ENDS, "line 2, column 11: none.mtx: No such file or directory" },
    { "kind matrix\nequations bad.mtx\n" ENDS, "line 2, column 11: bad.mtx: line 3, column 5: x: not a finite number" },
    { "kind matrix\nequations rod.b.mtx\n" ENDS, "line 2, column 11: rod.b.mtx: the equations are not square: 21 rows" },
    { MODEL "storage rod.b.mtx\n" ENDS, "line 3, column 9: rod.b.mtx: the matrix has 2 columns" },
    { MODEL "inputs rod.h.mtx\n" ENDS, "line 3, column 8: rod.h.mtx: the matrix has 1 rows" },
    { MODEL "readings rod.b.mtx\n" ENDS, "line 3, column 10: rod.b.mtx: the matrix has 2 columns" },
    { MODEL "equations rod.a.mtx\n" ENDS, "line 3, column 1: equations: was said before" },
    { MODEL "inputs rod.b.mtx\n" ENDS, "line 3, column 8: rod.b.mtx: neither a boundary nor a constant gives input 1 of 2" },
    { MODEL "inputs rod.b.mtx\nconstant 3 1\n" ENDS, "line 4, column 10: 3: not a column of the inputs, from 1 to 2" },
    { MODEL "inputs rod.b.mtx\nconstant 1 x\n" ENDS, "line 4, column 12: x: not a value" },
    { MODEL "inputs rod.b.mtx\nconstant 1 1\nconstant 1 1\n" ENDS, "line 5, column 10: 1: this input has a constant already" },
    { MODEL "inputs rod.b.mtx\nconstant 1 1\nconstant 2 1\nsensor i input 2 boundary\n" ENDS,
      "line 6, column 8: i: another boundary, or a constant, gives this input" },
    { MODEL "constant 1 1\n" ENDS, "line 3, column 10: 1: the file has no such matrix" },
    { MODEL ENDS "sensor d at 1 boundary\n", "line 5, column 8: d: another boundary gives this unknown" },
    { MODEL ENDS "sensor d at 1 check\n", "line 5, column 8: d: a boundary gives this unknown; a check stands" },
    { MODEL ENDS "sensor d at 22 check\n", "line 5, column 13: 22: not an unknown, from 1 to 21" },
    { MODEL ENDS "sensor d at 1.5 check\n", "line 5, column 13: 1.5: not a whole number" },
    { MODEL ENDS "sensor d on 1 check\n", "line 5, column 10: on: neither at, an unknown" },
    { MODEL ENDS "sensor d at 1 maybe\n", "line 5, column 15: maybe: neither boundary" },
    { MODEL ENDS "sensor d input 1 check\n", "line 5, column 18: check: the model does not compute its inputs" },
    { MODEL ENDS "sensor d reading 1 boundary\n", "line 5, column 20: boundary: a reading cannot drive the model" },
    { MODEL ENDS "sensor d reading 1 check\n", "line 5, column 18: 1: the file has no such matrix" },
    { MODEL ENDS "sensor c at 6 check\n", "line 5, column 8: c: there is a sensor of that name already" },
    { MODEL ENDS "edge a b 1 1 0 1000 1\n", "line 5, column 1: edge: a line of the file of matrices begins with" },
    { MODEL ENDS "unit\n", "line 5, column 1: unit: the form is: unit NAME" },
    { MODEL ENDS "unit 0123456789abcdef\n", "line 5, column 6: 0123456789abcdef: the name of a unit" },
    { MODEL "kind matrix\n" ENDS, "line 3, column 1: kind: the kind comes before all else" },
    { MODEL "sensor c at 5 check\n", "no sensor is a boundary" },
    { MODEL "sensor p at 1 boundary\n", "no sensor is a check" },
  };
  const struct hk_model_plan *plan;
  char error[512] = "";
  (void)state;
  write_rod(0);
  write_file("bad.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 x\n");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(hk_model_plan_parse_in(&plan, wrong[i].text, strlen(wrong[i].text), folder, error, sizeof error), -EINVAL);
    if (strncmp(error, wrong[i].error, strlen(wrong[i].error)) != 0)
      fail_msg("%s: %s", wrong[i].text, error);
  }
  assert_int_equal(hk_model_plan_parse(&plan, MODEL ENDS, strlen(MODEL ENDS), error, sizeof error), -EINVAL);
  assert_string_equal(error, "line 2, column 11: rod.a.mtx: no files can be read here");
}

/* The computation depends on the files, and so does the mark. */
static void test_mark(void **state)
{
  (void)state;
  write_rod(0);
  const struct hk_model_plan *a = plan_of(ROD_FILE), *b = plan_of(ROD_FILE);
  write_rod(0.1);
  const struct hk_model_plan *c = plan_of(ROD_FILE);
  assert_true(a->mark == b->mark && a->mark != c->mark);
  assert_true(hk_model_need(a) > ROD * sizeof(double) && !hk_matrix_is_wide(c->matrix));
  hk_model_plan_release(a);
  hk_model_plan_release(b);
  hk_model_plan_release(c);
}

static int make_folder(void **state)
{
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/test_matrix.XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
  static const char *const name[] = { "a.mtx", "m.mtx", "rod.a.mtx", "rod.m.mtx", "rod.b.mtx", "rod.h.mtx", "bad.mtx" };
  char path[128];
  (void)state;
  for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, name[i]);
    (void)remove(path);
  }
  return rmdir(folder);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_solutions), cmocka_unit_test(test_rod),  cmocka_unit_test(test_singular),
    cmocka_unit_test(test_checks),    cmocka_unit_test(test_gaps), cmocka_unit_test(test_faults),
    cmocka_unit_test(test_mark),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
