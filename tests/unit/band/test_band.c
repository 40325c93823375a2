/* Band matrices on the host: backward errors of many shapes and kinds of systems, singular ones reported with their column, and
 * the same bits with any number of threads. */
#include "tests/backend/band_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void every_shape_and_kind(void **state)
{
  (void)state;
  uint32_t solved = 0;
  for (size_t k = 0; k < BAND_SHAPE_COUNT; k++)
    for (int kind = 0; kind < BAND_KINDS; kind++) {
      struct band_case c;
      if (!band_suits(&BAND_SHAPES[k], (enum band_kind)kind))
        continue;
      assert_true(band_make(&c, BAND_SHAPES[k], (enum band_kind)kind, 1000 * k + (uint64_t)kind));
      assert_int_equal(hk_band_solve(&c.shape, c.a, c.b, c.x, c.outcome, 1 + k % 3), 0);
      for (uint32_t i = 0; i < c.shape.systems; i++) {
        const char *fault = band_fault(&c, i);
        if (fault)
          fail_msg("shape %zu, kind %d, system %u: %s (%.2f eps)", k, kind, i, fault, band_error(&c, i));
        solved += c.outcome[i].status == 0;
      }
      band_drop(&c);
    }
  assert_true(solved > 1000);
}

static void wide(void **state)
{
  (void)state;
  for (size_t k = 0; k < BAND_WIDE_COUNT; k++)
    for (int kind = 0; kind < BAND_KINDS; kind++) {
      const struct hk_band_shape *s = &BAND_WIDE_SHAPES[k];
      struct band_case c;
      if (!band_suits(s, (enum band_kind)kind))
        continue;
      assert_true(band_make(&c, *s, (enum band_kind)kind, 1000 * k + (uint64_t)kind));
      assert_int_equal(hk_band_solve(s, c.a, c.b, c.x, c.outcome, 1), 0);
      for (uint32_t i = 0; i < s->systems; i++) {
        const char *fault = band_fault(&c, i);
        if (fault)
          fail_msg("wide shape %zu, kind %d, system %u: %s (%.2f eps)", k, kind, i, fault, band_error(&c, i));
      }
      band_drop(&c);
    }
}

/* Right sides one after another with the factors of one matrix, as if each were solved from the beginning. */
static void factors_serve_again(void **state)
{
  (void)state;
  const struct hk_band_shape shape = { 1, 400, 37, 50 };
  struct band_case c;
  struct hk_band_work work;
  assert_true(band_make(&c, shape, BAND_RANDOM, 3));
  assert_int_equal(hk_band_open(&work, &shape), 0);
  assert_int_equal(hk_band_factorise(&work, &shape, 0, c.a).status, 0);
  for (uint32_t k = 0; k < 3; k++) {
    for (uint32_t row = 0; row < shape.n; row++)
      c.b[row] = sin(row + k);
    c.outcome[0] = hk_band_solve_with(&work, &shape, 0, c.a, c.b, c.x);
    assert_null(band_fault(&c, 0));
  }
  double *again = malloc(shape.n * sizeof *again);
  assert_non_null(again);
  assert_int_equal(hk_band_solve_one(&work, &shape, 0, c.a, c.b, again).status, 0);
  for (uint32_t row = 0; row < shape.n; row++)
    assert_true(again[row] == c.x[row]);
  free(again);
  for (uint32_t row = 5; row <= 55; row++) /* a column of zeros */
    c.a[hk_band_at(&shape, 0, row, 55)] = 0;
  for (uint32_t row = 56; row <= 55 + shape.below; row++)
    c.a[hk_band_at(&shape, 0, row, 55)] = 0;
  const struct hk_band_outcome none = hk_band_factorise(&work, &shape, 0, c.a);
  assert_int_equal(none.status, -EDOM);
  assert_int_equal(none.singular, 55);
  hk_band_close(&work);
  band_drop(&c);
}

static void threads_do_not_matter(void **state)
{
  (void)state;
  struct band_case one, many;
  const struct hk_band_shape shape = { 70, 300, 2, 2 };
  assert_true(band_make(&one, shape, BAND_RANDOM, 5));
  assert_true(band_make(&many, shape, BAND_RANDOM, 5));
  assert_int_equal(hk_band_solve(&shape, one.a, one.b, one.x, one.outcome, 1), 0);
  assert_int_equal(hk_band_solve(&shape, many.a, many.b, many.x, many.outcome, 4), 0);
  assert_memory_equal(one.outcome, many.outcome, shape.systems * sizeof *one.outcome);
  for (uint32_t i = 0; i < shape.systems; i++)
    for (uint32_t row = 0; row < shape.n; row++)
      assert_true(one.x[hk_band_of(&shape, i, row)] == many.x[hk_band_of(&shape, i, row)]);
  band_drop(&one);
  band_drop(&many);
}

/* Numbers that leave the range of double are no solution, and no fault of their neighbours. */
static void what_is_not_finite(void **state)
{
  (void)state;
  struct band_case c;
  const struct hk_band_shape shape = { 3, 20, 2, 2 };
  assert_true(band_make(&c, shape, BAND_DOMINANT, 9));
  c.b[hk_band_of(&shape, 1, 7)] = INFINITY;
  c.a[hk_band_at(&shape, 2, 4, 5)] = NAN;
  assert_int_equal(hk_band_solve(&shape, c.a, c.b, c.x, c.outcome, 1), 0);
  assert_int_equal(c.outcome[0].status, 0);
  assert_int_equal(c.outcome[1].status, -ERANGE);
  assert_true(c.outcome[2].status != 0);
  band_drop(&c);
}

/* The last row of a triangular matrix has over a thousand numbers that are each too small to change its right side, and together
 * are not: the solution lacks their sum, the residual must not, and the refined solution has it. */
static void what_is_lost_is_kept(void **state)
{
  enum { N = 1024 };
  const struct hk_band_shape shape = { 1, N, N - 1, 0 };
  const double eps = 2.220446049250313e-16, small = 0.45 / 16 * eps, right = 1.5; /* 16 of them are below half a unit of it */
  double *a = calloc(hk_band_matrix(&shape), sizeof *a), *b = calloc(N, sizeof *b), *x = calloc(N, sizeof *x);
  struct hk_band_outcome outcome;
  (void)state;
  assert_true(a && b && x);
  for (uint32_t i = 0; i < N; i++) {
    a[hk_band_at(&shape, 0, i, i)] = 1;
    if (i + 1 < N)
      a[hk_band_at(&shape, 0, N - 1, i)] = small;
    b[i] = i + 1 < N ? 1 : right;
  }
  assert_int_equal(hk_band_solve(&shape, a, b, x, &outcome, 1), 0);
  assert_int_equal(outcome.status, 0);
  assert_int_equal(outcome.refined, 1);
  assert_true(fabs(x[N - 1] - (right - (N - 1) * small)) <= 2 * eps);
  free(a);
  free(b);
  free(x);
}

static void limits(void **state)
{
  (void)state;
  const struct hk_band_shape wrong[] = {
    { 0, 1, 1, 1 }, { 1, 0, 1, 1 }, { 1, 1, HK_BAND_HALF_MAX + 1, 1 }, { 1, 1, 1, HK_BAND_HALF_MAX + 1 }, { 1, UINT32_MAX, 1, 1 }
  };
  const struct hk_band_shape right = { 1, 1, 1, 1 };
  double a[3] = { 0, 2, 0 }, b = 1, x = 0;
  struct hk_band_outcome outcome;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal(hk_band_solve(&wrong[i], a, &b, &x, &outcome, 1), -EINVAL);
  assert_int_equal(hk_band_solve(&right, a, &b, &x, &outcome, 0), -EINVAL);
  assert_int_equal(hk_band_solve(&right, a, &b, &x, &outcome, 1), 0);
  assert_true(x == 0.5 && outcome.status == 0 && outcome.error == 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_shape_and_kind), cmocka_unit_test(wide),
    cmocka_unit_test(factors_serve_again),  cmocka_unit_test(threads_do_not_matter),
    cmocka_unit_test(what_is_not_finite),   cmocka_unit_test(limits),
    cmocka_unit_test(what_is_lost_is_kept),
  };
  return cmocka_run_group_tests_name("band", tests, NULL, NULL);
}
