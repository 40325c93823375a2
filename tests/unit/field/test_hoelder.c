/* Hoelder exponents and ARMA(2,1): against their definitions from all values, known series, holes, rows and states of fields. */
#include "cpu/field/arma.h"
#include "cpu/field/count.h"
#include "cpu/field/hoelder.h"
#include "cpu/field/state.h"
#include "tests/unit/support/field.h"
#include "tests/unit/support/noise.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- the exponent --- */

enum kind { SMOOTH, WALK, NOISE, STEPS };

static double reading(enum kind kind, uint32_t t, double *walk)
{
  const double noise = uniform() + uniform() - 1;
  *walk += noise;
  return kind == SMOOTH ? 1e3 + t * 0.25 : kind == WALK ? *walk : kind == NOISE ? noise : floor(t / 40.0);
}

/* The exponent of the newest of `n` samples before which all are known, by its definition; NaN: none. */
static double exponent(const double *newest)
{
  double x[6], y[6], mean_x = 0, mean_y = 0, above = 0, below = 0;
  uint32_t n = 0;
  for (int r = 1; r <= 32; r *= 2) {
    double least = newest[-32], most = least;
    for (int k = -32 - r; k <= -32 + r; k++) {
      least = newest[k] < least ? newest[k] : least;
      most = newest[k] > most ? newest[k] : most;
    }
    if (most == least)
      continue;
    x[n] = log(r);
    y[n++] = log(most - least);
  }
  if (n < 3)
    return NAN;
  for (uint32_t i = 0; i < n; i++) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  for (uint32_t i = 0; i < n; i++) {
    above += (x[i] - mean_x) * (y[i] - mean_y);
    below += (x[i] - mean_x) * (x[i] - mean_x);
  }
  return above / below;
}

#define SAMPLES 3000

static void test_exponent(void **state)
{
  (void)state;
  static const struct {
    double least, most; /* of the mean */
  } known[] = { [SMOOTH] = { 1 - 1e-9, 1 + 1e-9 }, [WALK] = { 0.6, 0.7 }, [NOISE] = { 0.05, 0.3 }, [STEPS] = { 0, 1 } };
  double *x = malloc(SAMPLES * sizeof *x);
  assert_non_null(x);
  seed = 3;
  for (uint32_t kind = SMOOTH; kind <= STEPS; kind++) {
    struct hk_hoelder h = { 0 };
    double walk = 0, sum = 0;
    uint32_t n = 0, none = 0;
    for (uint32_t t = 0; t < SAMPLES; t++) {
      x[t] = reading(kind, t, &walk);
      const double out = hk_hoelder_put(&h, 7 + t, x[t]), expected = t + 1 < HK_HOELDER_SAMPLES ? NAN : exponent(x + t);
      assert_true(hk_hoelder_valid(&h, 7 + t) && !hk_hoelder_valid(&h, 6 + t));
      assert_int_equal(isnan(out), isnan(expected));
      none += isnan(out);
      if (isnan(out))
        continue;
      assert_true(fabs(out - expected) < 1e-9);
      sum += out;
      n++;
    }
    assert_true(sum / n >= known[kind].least && sum / n <= known[kind].most);
    assert_true(kind == STEPS ? none > SAMPLES / 4 : none == HK_HOELDER_SAMPLES - 1);
  }
  free(x);
}

static void test_hole(void **state)
{
  (void)state;
  for (int64_t hole = 64; hole <= 66; hole++) {
    struct hk_hoelder h = { 0 };
    double walk = 0, out = NAN;
    for (int64_t t = -100; t < 0; t++)
      out = hk_hoelder_put(&h, t, reading(WALK, 0, &walk));
    assert_false(isnan(out));
    out = hk_hoelder_put(&h, hole - 1, walk);
    assert_int_equal(isnan(out), hole > HK_HOELDER_SAMPLES);
    assert_int_equal(h.last.n, hole > HK_HOELDER_SAMPLES ? 1 : HK_HOELDER_SAMPLES);
  }
}

/* --- the forecast --- */

#define ROWS 512u
#define VALUES (6 * ROWS)

/* Least squares by elimination with exchanges: n equations of `wide` numbers and a value each. */
static void least_squares(uint32_t wide, uint32_t n, const double *equation, double *fit)
{
  long double m[9][10] = { 0 };
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t a = 0; a < wide; a++)
      for (uint32_t b = 0; b <= wide; b++)
        m[a][b] += (long double)equation[i * (wide + 1) + a] * equation[i * (wide + 1) + b];
  for (uint32_t c = 0; c < wide; c++) {
    uint32_t best = c;
    for (uint32_t a = c; a < wide; a++)
      best = fabsl(m[a][c]) > fabsl(m[best][c]) ? a : best;
    for (uint32_t b = 0; b <= wide; b++) {
      const long double moved = m[c][b];
      m[c][b] = m[best][b];
      m[best][b] = moved;
    }
    for (uint32_t a = 0; a < wide; a++) {
      const long double factor = m[a][c] / m[c][c];
      for (uint32_t b = c; b <= wide && a != c; b++)
        m[a][b] -= factor * m[c][b];
    }
  }
  for (uint32_t a = 0; a < wide; a++)
    fit[a] = (double)(m[a][wide] / m[a][a]);
}

/* The series of the paper, around a mean. */
static void make_series(double *h)
{
  double e = 0;
  for (uint32_t t = 0; t < VALUES; t++) {
    const double now = 0.6 * (uniform() + uniform() + uniform() - 1.5);
    h[t] = 0.4 * (1 - 0.52797 - 0.33075) + 0.52797 * (t > 0 ? h[t - 1] : 0.4) + 0.33075 * (t > 1 ? h[t - 2] : 0.4) + now -
           0.11287 * e;
    e = now;
  }
}

/* The equations of a fit over the values from `first` on. long_fit NULL: those of the long autoregression, else of the short one,
 * whose first value has no error before it. */
static void fit_from(const double *h, uint32_t first, const double *long_fit, double *fit)
{
  double *equation = malloc(ROWS * 10 * sizeof *equation), *at = equation, last = NAN;
  assert_non_null(equation);
  uint32_t n = 0;
  for (uint32_t t = first; t < first + ROWS; t++) {
    double guess = long_fit ? long_fit[0] : 0;
    for (uint32_t k = 0; long_fit && k < HK_ARMA_LONG; k++)
      guess += long_fit[k + 1] * h[t - 1 - k];
    if (!long_fit) {
      *at++ = 1;
      for (uint32_t k = 0; k < HK_ARMA_LONG; k++)
        *at++ = h[t - 1 - k];
    } else if (!isnan(last)) {
      *at++ = 1;
      *at++ = h[t - 1];
      *at++ = h[t - 2];
      *at++ = last;
    }
    if (!long_fit || !isnan(last)) {
      *at++ = h[t];
      n++;
    }
    last = h[t] - guess;
  }
  least_squares(long_fit ? HK_ARMA_SHORT + 1 : HK_ARMA_LONG + 1, n, equation, fit);
  free(equation);
}

/* Two steps from all values, and forecasts with their own errors. */
static void test_forecast(void **state)
{
  (void)state;
  struct hk_arma a = { 0 };
  double *h = malloc(VALUES * sizeof *h), long_fit[HK_ARMA_LONG + 1], fit[HK_ARMA_SHORT + 1], forecast = NAN, squares = 0,
         naive = 0;
  uint32_t n = 0;
  assert_non_null(h);
  seed = 11;
  make_series(h);
  for (uint32_t t = 0; t < VALUES; t++) {
    const double out = hk_arma_put(&a, ROWS, h[t]), error = isnan(forecast) ? 0 : h[t] - forecast;
    assert_true(hk_arma_valid(&a, ROWS));
    if (t + 1 >= 8 + 2 * ROWS && (t + 1 - 8) % ROWS == 0) {
      fit_from(h, t + 1 - 2 * ROWS, NULL, long_fit);
      fit_from(h, t + 1 - ROWS, long_fit, fit);
      for (uint32_t k = 0; k <= HK_ARMA_SHORT; k++)
        assert_true(fabs(a.short_fit[k] - fit[k]) < 1e-9);
    }
    assert_int_equal(isnan(out), t + 1 < 8 + 2 * ROWS);
    if (isnan(out))
      continue;
    squares += isnan(forecast) ? 0 : error * error;
    naive += isnan(forecast) ? 0 : (h[t] - h[t - 1]) * (h[t] - h[t - 1]);
    n += !isnan(forecast);
    forecast = fit[0] + fit[1] * h[t] + fit[2] * h[t - 1] + fit[3] * error;
    assert_true(fabs(out - forecast) < 1e-9);
  }
  assert_true(n > 3 * ROWS && squares < 0.95 * naive); /* better than the last value */
  assert_true(fabs(fit[1] + fit[2] - 0.859) < 0.1);
  assert_true(isnan(hk_arma_put(&a, ROWS, NAN)) && a.n == 0 && hk_arma_valid(&a, ROWS));
  assert_true(isnan(hk_arma_put(&a, ROWS, 1)) && !isnan(hk_arma_put(&a, ROWS, 1)));
  free(h);
}

/* The equations of a constant series, and of a straight line, have no solution: no fit, and no NaN. */
static void test_singular(void **state)
{
  (void)state;
  for (uint32_t kind = 0; kind < 2; kind++) {
    struct hk_arma a = { 0 };
    for (uint32_t t = 0; t < 4 * ROWS; t++) {
      const double out = hk_arma_put(&a, ROWS, kind * 0.001 * t);
      assert_true(hk_arma_valid(&a, ROWS) && (isnan(out) || fabs(out) < 10));
    }
  }
}

/* --- fields --- */

static struct hk_field *make(const char *keys)
{
  struct hk_field_rule rule;
  struct hk_field *f;
  char error[256];
  assert_int_equal(hk_field_parse(keys, &rule, error, sizeof error), 0);
  assert_int_equal(hk_field_new(&f, &rule), 0);
  return f;
}

#define MEMBERS 3
/* Puts row t of all members, and adds the results to a sum. Returns the number of values. */
static uint32_t put_row(struct hk_field *f, uint32_t t, double *sum)
{
  struct hk_field_row row;
  uint32_t n = 0;
  for (uint32_t i = 0; i < MEMBERS; i++) {
    if (!hk_field_has(f, i))
      continue;
    const uint32_t mixed = (t * 2654435761u + i * 40503u) >> 8; /* the same in both fields */
    hk_field_put(f, i, (int64_t)t * 600 * 1000000000, sin(t * (i + 1) / 90.0) + (mixed % 1024) / 1024.0 * (t % 200) / 200.0);
    while (hk_field_next(f, &row)) {
      assert_true(row.out == 0 && (row.said > 0) == !isnan(row.own));
      n += row.said;
      for (uint32_t k = 0; k < row.n; k++)
        *sum = isnan(row.value[k]) ? *sum : 0.9 * *sum + row.value[k];
    }
  }
  return n;
}

static void test_state(void **state)
{
  (void)state;
  static const char *const keys[] = { "operator=hoelder,interval=10m", "operator=arma,interval=10m" };
  for (uint32_t k = 0; k < 2; k++) {
    struct hk_field *f = make(keys[k]), *again, *no;
    struct hk_field_rule rule;
    char error[256];
    double sum = 0, other;
    uint32_t member, n = 0, same = 0;
    for (uint32_t i = 0; i < MEMBERS; i++)
      assert_int_equal(hk_field_join(f, &member), 0);
    for (uint32_t t = 0; t < 700; t++)
      n += put_row(f, t, &sum);
    hk_field_leave(f, 1);
    assert_true(n > (k == 0 ? 1500 : 150) && hk_field_count(f).explained >= 2);
    const size_t size = hk_field_state_size(f);
    uint8_t *bytes = malloc(size), *twice = malloc(size);
    assert_true(bytes && twice);
    hk_field_write(f, bytes);
    assert_int_equal(hk_field_read(&again, NULL, bytes, size), 0);
    hk_field_write(again, twice);
    assert_memory_equal(bytes, twice, size);
    other = sum;
    n = 0;
    for (uint32_t t = 700; t < 1100; t++) {
      n += put_row(f, t, &sum);
      same += put_row(again, t, &other);
    }
    assert_true(sum == other && n == same && n > 700);
    static const char *const others[] = { "operator=despike,interval=10m", "operator=residual,interval=10m" };
    for (uint32_t i = 0; i < 2; i++) {
      assert_int_equal(hk_field_parse(others[i], &rule, error, sizeof error), 0);
      assert_int_equal(hk_field_read(&no, &rule, bytes, size), -EINVAL);
    }
    assert_int_equal(hk_field_parse(keys[1 - k], &rule, error, sizeof error), 0);
    assert_int_equal(hk_field_read(&no, &rule, bytes, size), -EINVAL);
    field_reads_damaged(twice, size);
    hk_field_free(again);
    hk_field_free(f);
    free(bytes);
    free(twice);
  }
}

static void test_keys(void **state)
{
  (void)state;
  static const struct {
    const char *keys, *says;
  } bad[] = { { "operator=holder", "did you mean hoelder" },
              { "operator=hoelder,samples=5", "hoelder has none of the keys" },
              { "operator=arma,refit=5", "arma has none of the keys" } };
  static const struct {
    const char *keys;
    uint32_t rows;
  } good[] = { { "operator=arma", 86400 },
               { "operator=arma,interval=1m", 1440 },
               { "operator=arma,interval=1h", 256 },
               { "operator=arma,interval=1ms", 1048576 } };
  struct hk_field_rule rule;
  char error[512];
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    field_refuses(bad[i].keys, bad[i].says);
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    assert_int_equal(hk_field_parse(good[i].keys, &rule, error, sizeof error), 0);
    assert_int_equal(hk_field_arma_rows(&rule), good[i].rows);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_exponent), cmocka_unit_test(test_hole),
                                      cmocka_unit_test(test_forecast), cmocka_unit_test(test_singular),
                                      cmocka_unit_test(test_state),    cmocka_unit_test(test_keys) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
