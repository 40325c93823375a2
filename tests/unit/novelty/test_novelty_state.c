/* States of algorithm = novelty from before the variances of lags were kept: their mean squares are read as variances. */
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

static void series_fill(struct series *s)
{
  for (uint32_t i = 0; i < POINTS; i++) {
    struct hk_novelty_point p;
    const double value = 3 + (i * 2654435761u >> 8) % 1000 * 1e-3;
    const struct hk_step step = hk_novelty_take(&s->view, &s->window, s->ring, (i + 1) * INT64_C(1000000000), value, 0, &p);
    assert_true(step.state == HK_STATE_WARMING || step.state == HK_STATE_OK);
    hk_novelty_pass_plain(&s->view, s->ring, &p, 1);
  }
}

static int series_read(struct series *s, const uint8_t *bytes, size_t n)
{
  return hk_novelty_import(&s->window, &s->alert, &s->view, s->ring, bytes, n);
}

static void mean_squares_become_variances(void **state)
{
  (void)state;
  struct hk_detector d;
  char error[256];
  assert_int_equal(hk_detector_parse("algorithm=novelty,resident=1000,interval=1s", &d, error, sizeof error), 0);
  struct series one = series_new(&d), back = series_new(&d);
  series_fill(&one);
  static uint8_t bytes[1 << 14];
  const size_t n = (size_t)hk_novelty_export(&one.window, &one.alert, &one.view, one.ring, bytes, sizeof bytes);
  assert_true(n <= sizeof bytes);
  const uint32_t lags = hk_novelty_lags(&d), form = 1;
  const float negative = -1; /* which no variance is */
  uint8_t *const end = bytes + n - HK_STATE_CHECKSUM - HK_NOVELTY_STATE_FORM, *const variances =
                                                                                  end - HK_NOVELTY_STATE_STEPS - 8 * (size_t)lags;
  for (uint32_t i = 0; i < lags; i++) {
    const float mean = one.view.mean[lags - 1 - i], square = one.view.variance[lags - 1 - i] + mean * mean;
    (void)hk_state_put(variances + 4 * (size_t)i, &square, sizeof square);
  }
  hk_state_seal(bytes, end);
  assert_int_equal(series_read(&back, bytes, n - HK_NOVELTY_STATE_FORM), 0);
  for (uint32_t i = 0; i < lags; i++) {
    assert_true(one.view.variance[i] > 0);
    assert_float_equal(back.view.variance[i], one.view.variance[i], 1e-5);
    assert_memory_equal(&back.view.mean[i], &one.view.mean[i], sizeof(float));
  }
  (void)hk_state_put(variances, &negative, sizeof negative);
  hk_state_seal(bytes, end);
  assert_int_equal(series_read(&back, bytes, n - HK_NOVELTY_STATE_FORM), 0);
  assert_true(back.view.variance[lags - 1] == 0);
  (void)hk_state_put(end, &form, sizeof form);
  hk_state_seal(bytes, end + HK_NOVELTY_STATE_FORM);
  assert_int_equal(series_read(&back, bytes, n), -EINVAL);
  series_free(&one);
  series_free(&back);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(mean_squares_become_variances) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
