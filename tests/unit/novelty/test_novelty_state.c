/* States of algorithm = novelty: older ones, whose variances of lags, or mean squares, become V; and crafted ones, with numbers
 * that no points can leave. */
#include "cpu/novelty/distances.h"
#include "cpu/novelty/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define POINTS 700

struct series {
  struct hk_window window;
  struct hk_alert alert;
  struct hk_novelty_view view;
  float *ring;
};

static struct series series_new(const struct hk_detector *d)
{
  struct series s = { .ring = calloc(hk_detector_span(d), sizeof(float)) };
  void *memory = calloc(1, hk_novelty_bytes(d, sizeof(float)));
  assert_true(s.ring && memory);
  s.view = hk_novelty_view(memory, d);
  return s;
}

static void series_free(struct series *s)
{
  free(s->ring);
  free(s->view.novelty);
}

/* level: the largest distance from the first value. */
static void series_fill(struct series *s, double level)
{
  for (uint32_t i = 0; i < POINTS; i++) {
    struct hk_novelty_point p;
    const double value = i % 7 == 3 ? -level : i % 7 == 5 ? level : 3 + (i * 2654435761u >> 8) % 1000 * 1e-3;
    const struct hk_step step = hk_novelty_take(&s->view, &s->window, s->ring, (i + 1) * INT64_C(1000000000), value, 0, &p);
    assert_true(step.state == HK_STATE_WARMING || step.state == HK_STATE_OK);
    hk_novelty_pass_plain(&s->view, s->ring, &p, 1);
  }
}

static int series_read(struct series *s, const uint8_t *bytes, size_t n)
{
  return hk_novelty_import(&s->window, &s->alert, &s->view, s->ring, bytes, n);
}

/* Whether V of a lag is what it was before it was stored as its share. */
static void check_variance(const struct series *back, const struct series *one, uint32_t i)
{
  assert_true(one->view.variance[i] > 0);
  assert_float_equal(back->view.variance[i], one->view.variance[i], 1e-5 * (1 + one->view.variance[i]));
  assert_memory_equal(&back->view.mean[i], &one->view.mean[i], sizeof(float));
}

static void older_variances_are_taken(void **state)
{
  (void)state;
  struct hk_detector d;
  char error[256];
  assert_int_equal(hk_detector_parse("algorithm=novelty,resident=1000,interval=1s", &d, error, sizeof error), 0);
  struct series one = series_new(&d), back = series_new(&d);
  series_fill(&one, 0);
  static uint8_t bytes[1 << 14];
  const size_t n = (size_t)hk_novelty_export(&one.window, &one.alert, &one.view, one.ring, bytes, sizeof bytes);
  assert_true(n <= sizeof bytes);
  const uint32_t lags = hk_novelty_lags(&d), form = HK_NOVELTY_FORM_VARIANCES, later = HK_NOVELTY_FORM_NOW + 1;
  const float negative = -1; /* which no variance is */
  uint8_t *const end = bytes + n - HK_STATE_CHECKSUM - HK_NOVELTY_STATE_FORM, *const variances =
                                                                                  end - HK_NOVELTY_STATE_STEPS - 8 * (size_t)lags;
  for (uint32_t i = 0; i < lags; i++) {
    const float variance = (float)((double)one.view.variance[lags - 1 - i] * HK_NOVELTY_LAG_SHARE);
    (void)hk_state_put(variances + 4 * (size_t)i, &variance, sizeof variance);
  }
  (void)hk_state_put(end, &form, sizeof form);
  hk_state_seal(bytes, end + HK_NOVELTY_STATE_FORM);
  assert_int_equal(series_read(&back, bytes, n), 0);
  for (uint32_t i = 0; i < lags; i++)
    check_variance(&back, &one, i);
  for (uint32_t i = 0; i < lags; i++) {
    const float mean = one.view.mean[lags - 1 - i];
    const float square = (float)((double)one.view.variance[lags - 1 - i] * HK_NOVELTY_LAG_SHARE + (double)mean * (double)mean);
    (void)hk_state_put(variances + 4 * (size_t)i, &square, sizeof square);
  }
  hk_state_seal(bytes, end);
  assert_int_equal(series_read(&back, bytes, n - HK_NOVELTY_STATE_FORM), 0);
  for (uint32_t i = 0; i < lags; i++)
    check_variance(&back, &one, i);
  (void)hk_state_put(variances, &negative, sizeof negative);
  hk_state_seal(bytes, end);
  assert_int_equal(series_read(&back, bytes, n - HK_NOVELTY_STATE_FORM), 0);
  assert_true(back.view.variance[lags - 1] == 0);
  (void)hk_state_put(end, &form, sizeof form);
  hk_state_seal(bytes, end + HK_NOVELTY_STATE_FORM);
  assert_int_equal(series_read(&back, bytes, n), -EINVAL);
  (void)hk_state_put(variances, &one.view.variance[lags - 1], sizeof(float));
  (void)hk_state_put(end, &later, sizeof later);
  hk_state_seal(bytes, end + HK_NOVELTY_STATE_FORM);
  assert_int_equal(series_read(&back, bytes, n), -EINVAL);
  series_free(&one);
  series_free(&back);
}

/* Whether a state with another float at a place is taken. It is as it was afterwards. */
static int series_crafted(struct series *s, uint8_t *bytes, size_t n, size_t at, float number)
{
  uint8_t before[sizeof number];
  memcpy(before, bytes + at, sizeof before);
  (void)hk_state_put(bytes + at, &number, sizeof number);
  hk_state_seal(bytes, bytes + n - HK_STATE_CHECKSUM);
  const int status = series_read(s, bytes, n);
  memcpy(bytes + at, before, sizeof before);
  hk_state_seal(bytes, bytes + n - HK_STATE_CHECKSUM);
  return status;
}

/* The largest values that a sensor takes give a state that is read; samples, rows, V and M that are larger than any of theirs are
 * refused, as their squares would be infinite. */
static void numbers_no_points_leave(void **state)
{
  (void)state;
  struct hk_detector d;
  char error[256];
  assert_int_equal(hk_detector_parse("algorithm=novelty,resident=1000,interval=1s", &d, error, sizeof error), 0);
  struct series one = series_new(&d), back = series_new(&d);
  series_fill(&one, 1e25);
  static uint8_t bytes[1 << 14];
  const size_t n = (size_t)hk_novelty_export(&one.window, &one.alert, &one.view, one.ring, bytes, sizeof bytes);
  assert_true(n <= sizeof bytes);
  assert_int_equal(series_read(&back, bytes, n), 0);
  const uint32_t lags = hk_novelty_lags(&d);
  uint32_t large = 0;
  for (uint32_t i = 0; i < lags; i++)
    large += back.view.variance[i] > 1e35f;
  assert_true(large > lags / 2);
  const size_t means = n - HK_STATE_CHECKSUM - HK_NOVELTY_STATE_FORM - HK_NOVELTY_STATE_STEPS - 4 * (size_t)lags,
               variances = means - 4 * (size_t)lags, row = variances - 8, sample = hk_state_head_size(one.window.count) - 4;
  const float larger = 1e19f, square = 3e38f, infinite = INFINITY;
  const struct {
    size_t at;
    float number;
  } crafted[] = {
    { sample, larger },      { sample, -larger },
    { row, larger },         { row, -larger },
    { means, larger },       { n - HK_STATE_CHECKSUM - HK_NOVELTY_STATE_FORM - HK_NOVELTY_STATE_STEPS - 4, -larger },
    { variances, square },   { means - 4, square },
    { variances, -1 },       { row, infinite },
    { variances, infinite }, { means, (float)NAN }
  };
  for (size_t i = 0; i < sizeof crafted / sizeof *crafted; i++)
    if (series_crafted(&back, bytes, n, crafted[i].at, crafted[i].number) != -EINVAL)
      fail_msg("number %zu: %g is taken", i, (double)crafted[i].number);
  assert_int_equal(series_crafted(&back, bytes, n, variances, 1e36f), 0); /* which the means of such values can be */
  series_free(&one);
  series_free(&back);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(older_variances_are_taken),
    cmocka_unit_test(numbers_no_points_leave),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
