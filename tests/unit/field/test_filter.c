/* Filters: outputs against plain sorting, spikes and steps, holes, rows and states of fields that filter. */
#include "cpu/field/count.h"
#include "cpu/field/filter.h"
#include "cpu/field/state.h"
#include "tests/unit/support/field.h"
#include "tests/unit/support/noise.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SAMPLES 4000

/* Noise of four kinds: smooth, with spikes, in coarse steps with many equal values, and nearly still on a large level. */
static double reading(uint32_t kind, uint32_t t)
{
  const double noise = uniform() + uniform() + uniform() - 1.5, wave = sin(t / 40.0);
  return kind == 0   ? wave + noise
         : kind == 1 ? wave + noise + (uniform() < 0.02 ? 30 * (uniform() - 0.5) : 0)
         : kind == 2 ? round(2 * wave + noise)
                     : 1e9 + (uniform() < 0.1) * noise;
}

static int by_size(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double middle(uint32_t n, const double *x)
{
  double sorted[HK_FILTER_SAMPLES_MAX];
  for (uint32_t i = 0; i < n; i++)
    sorted[i] = x[i];
  qsort(sorted, n, sizeof *sorted, by_size);
  return sorted[n / 2];
}

/* The filter by its definition, from all values. */
static void against_definition(uint32_t kind, uint32_t n, bool despike)
{
  const struct hk_filter_rule rule = { .samples = n, .despike = despike, .spike = 3 };
  struct hk_filter f = { 0 };
  double *x = malloc(SAMPLES * sizeof *x), apart[HK_FILTER_SAMPLES_MAX], usual = 0;
  uint32_t spikes = 0;
  assert_non_null(x);
  for (uint32_t t = 0; t < SAMPLES; t++) {
    bool spike;
    x[t] = reading(kind, t);
    const double out = hk_filter_put(&f, &rule, 5 + t, x[t], &spike);
    if (t + 1 < n) {
      assert_true(isnan(out) && !spike);
      continue;
    }
    const double *past = x + t + 1 - n, median = middle(n, past);
    for (uint32_t i = 0; i < n; i++)
      apart[i] = fabs(past[i] - median);
    const double spread = 1.4826 * middle(n, apart);
    usual = usual == 0 ? spread : spread == usual ? usual : usual * (spread > usual ? 33.0 / 32 : 31.0 / 32);
    const double bound = 3 * (spread > usual / 2 ? spread : usual / 2);
    assert_true(fabs(f.usual - usual) <= 1e-9 * usual);
    if (fabs(fabs(x[t] - median) - bound) > 1e-9 * bound) /* else rounding decides */
      assert_int_equal(spike, fabs(x[t] - median) > bound);
    assert_true(out == (spike || !despike ? median : x[t]));
    assert_true(hk_filter_valid(&f, &rule, 5 + t) && !hk_filter_valid(&f, &rule, 4 + t));
    spikes += spike;
  }
  assert_true(kind != 1 || (spikes > SAMPLES / 100 && spikes < SAMPLES / 10));
  free(x);
}

static void test_definition(void **state)
{
  (void)state;
  seed = 7;
  for (uint32_t kind = 0; kind < 4; kind++)
    for (uint32_t n = 3; n <= HK_FILTER_SAMPLES_MAX; n += 2) {
      against_definition(kind, n, true);
      against_definition(kind, n, false);
    }
}

/* A spike of one to three samples is removed, a step of four stays and is delayed by three; with a median of 5 by two. */
static void test_spike_and_step(void **state)
{
  (void)state;
  for (uint32_t length = 1; length <= 4; length++) {
    const struct hk_filter_rule despike = { .samples = 7, .despike = true, .spike = 4 }, median = { .samples = 5, .spike = 4 };
    struct hk_filter f = { 0 }, g = { 0 };
    uint32_t replaced = 0, passed = 0;
    for (uint32_t t = 0; t < 60; t++) {
      const double x = (t >= 40 && t < 40 + length ? 50 : 0) + t % 3;
      bool spike;
      const double out = hk_filter_put(&f, &despike, t, x, &spike);
      replaced += spike;
      passed += out > 25;
      const double slow = hk_filter_put(&g, &median, t, x, &spike);
      assert_true(isnan(slow) || (slow > 25) == (length >= 3 && t >= 42 && t < 40 + length + 2));
    }
    assert_int_equal(replaced, length < 4 ? length : 3 + 3); /* and the way back is a step, too */
    assert_int_equal(passed, length < 4 ? 0 : 1 + 3);
  }
}

static void test_hole(void **state)
{
  (void)state;
  const struct hk_filter_rule rule = { .samples = 5, .despike = true, .spike = 4 };
  for (uint32_t hole = 1; hole <= 6; hole++) {
    struct hk_filter f = { 0 };
    bool spike;
    for (int64_t t = -20; t < 0; t++)
      (void)hk_filter_put(&f, &rule, t, (double)(t % 2), &spike);
    const double usual = f.usual, out = hk_filter_put(&f, &rule, hole - 1, 9, &spike);
    assert_true(hole <= 5 ? spike && out < 1 : isnan(out) && f.last.n == 1 && f.usual == usual);
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

#define MEMBERS 5
/* Puts row t of all members, some of which have holes, and adds the results to a sum. */
static void put_row(struct hk_field *f, uint32_t t, double *sum, uint32_t *spikes)
{
  struct hk_field_row row;
  for (uint32_t i = 0; i < MEMBERS; i++) {
    if ((t / 16 + i) % 7 == 3 || !hk_field_has(f, i))
      continue;
    hk_field_put(f, i, (int64_t)t * 1000000000, sin(t * (i + 1) / 9.0) + ((t * 7 + i) % 61 == 0 ? 40 : 0));
    while (hk_field_next(f, &row)) {
      assert_true(row.spikes == row.out && row.out <= row.said);
      *spikes += row.spikes;
      for (uint32_t k = 0; k < row.n; k++)
        *sum = isnan(row.value[k]) ? *sum : 0.9 * *sum + row.value[k];
    }
  }
}

static void test_state(void **state)
{
  (void)state;
  static const char *const keys[] = { "operator=despike", "operator=median,samples=9" };
  for (uint32_t k = 0; k < 2; k++) {
    struct hk_field *f = make(keys[k]), *again;
    double sum = 0, other = 0;
    uint32_t member, spikes = 0, same = 0;
    for (uint32_t i = 0; i < MEMBERS; i++)
      assert_int_equal(hk_field_join(f, &member), 0);
    for (uint32_t t = 0; t < 200; t++)
      put_row(f, t, &sum, &spikes);
    hk_field_leave(f, 2);
    assert_true(spikes > 5 && hk_field_count(f).settled >= 2);
    const size_t size = hk_field_state_size(f);
    uint8_t *bytes = malloc(size), *twice = malloc(size);
    assert_true(bytes && twice);
    hk_field_write(f, bytes);
    assert_int_equal(hk_field_read(&again, NULL, bytes, size), 0);
    hk_field_write(again, twice);
    assert_memory_equal(bytes, twice, size);
    other = sum;
    same = spikes;
    for (uint32_t t = 200; t < 400; t++) {
      put_row(f, t, &sum, &spikes);
      put_row(again, t, &other, &same);
    }
    assert_true(sum == other && spikes == same);
    struct hk_field_rule rule;
    char error[256];
    struct hk_field *no;
    static const char *const others[] = { "operator=despike,samples=9", "operator=median", "operator=residual" };
    for (uint32_t i = 0; i < 3; i++) {
      assert_int_equal(hk_field_parse(others[i], &rule, error, sizeof error), 0);
      assert_int_equal(hk_field_read(&no, &rule, bytes, size), -EINVAL);
    }
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
  } bad[] = { { "operator=despik", "did you mean" },
              { "operator=despike,samples=4", "odd number" },
              { "operator=median,samples=17", "not a whole number from 3 to 15" },
              { "operator=median,spike=0", "not a number from 1 to 1000" },
              { "operator=despike,q=3", "despike has none of the keys" },
              { "samples=5", "residual has none of the keys" } };
  struct hk_field_rule rule;
  char error[512];
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    field_refuses(bad[i].keys, bad[i].says);
  assert_int_equal(hk_field_parse("operator=despike,spike=6", &rule, error, sizeof error), 0);
  assert_int_equal(hk_field_filter_rule(&rule).samples, 7);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_definition), cmocka_unit_test(test_spike_and_step),
                                      cmocka_unit_test(test_hole), cmocka_unit_test(test_state), cmocka_unit_test(test_keys) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
