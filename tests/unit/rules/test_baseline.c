/* The references of a window's samples: the one from which a ring's float32 samples are differences, the baseline and its hold,
 * and the centre and scale of a span. */
#include "tests/unit/support/sensor.h"

/* A sensor that starts at 0 and then stays at 1e6 +- 0.1 has its full precision once the reference has followed. */
static void rebase_keeps_digits(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=8,gap=8,interval=1s,baseline=4");
  const uint32_t span = hk_detector_span(&s->d);
  uint64_t seed = 3;
  double truth[4096];
  feed(s, 3);
  for (uint32_t i = 0; i < 100 * span; i++) {
    truth[i % 4096] = 1e6 + 0.1 * sin(0.7 * i) + 0.001 * random_below(&seed, 10);
    assert_int_equal(take(s, s->next, truth[i % 4096]).restarted, 0);
  }
  for (uint32_t back = 0; back < span; back++) {
    const double off = fabs(sample(s, back) - truth[(100 * span - 1 - back) % 4096]);
    if (off > 1e-6) /* a float32 at 1e6 has steps of 0.06 */
      fail_msg("sample %u back is off by %g", back, off);
  }
  assert_true(fabs(s->w.mean + s->w.reference - 1e6) < 0.05);
  free(s);
}

static void rebase_keeps_fill_marks_and_mean(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=8,gap=8,interval=1s,baseline=1,max_fill=3");
  const uint32_t span = hk_detector_span(&s->d);
  (void)take(s, s->next, 0);
  uint32_t rebased = 0;
  for (uint32_t i = 0; i < 60 * span; i++) {
    const double reference = s->w.reference, level = s->w.reference + s->w.mean;
    (void)take(s, s->next + (i % 11 == 0) * SECOND, 1000 + sin(i));
    if (s->w.reference != reference) {
      rebased++;
      assert_true(fabs(s->w.reference + s->w.mean - level) < 1);
    }
    uint32_t marks = 0;
    for (uint32_t j = 0; j < s->w.count; j++)
      marks += hk_sample_filled(s->ring[j]);
    assert_int_equal(marks, s->w.filled);
  }
  assert_true(rebased > 0);
  free(s);
}

/* Mean and variance of n samples are the plain ones while the baseline is young, exponential later. */
static void baseline_follows(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=8,gap=8,interval=1s,baseline=4");
  const uint32_t slow = 4 * hk_detector_span(&s->d);
  double sum = 0, squares = 0;
  for (uint32_t i = 0; i < slow; i++) {
    const double value = 5 + sin(i * 0.9);
    (void)take(s, s->next, value);
    sum += value;
    squares += value * value;
  }
  const double mean = sum / slow;
  assert_true(fabs(s->w.mean + s->w.reference - mean) < 1e-5);
  assert_true(fabs(s->w.variance - (squares / slow - mean * mean)) < 1e-4);
  const double before = s->w.mean + s->w.reference;
  (void)take(s, s->next, before + slow);
  assert_true(fabs(s->w.mean + s->w.reference - before - 1) < 1e-3);
  free(s);
}

static void baseline_is_held_two_spans(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=8,gap=8,interval=1s");
  const uint32_t span = hk_detector_span(&s->d);
  feed(s, 4 * span);
  for (int again = 0; again < 2; again++) {
    const double mean = s->w.mean + s->w.reference, variance = s->w.variance;
    for (uint32_t i = 1; i <= 2 * span + 5; i++) {
      (void)hk_window_take(&s->w, s->ring, &s->d, s->next, 30, s->next, true);
      s->next += SECOND;
      const bool same = s->w.mean + s->w.reference == mean && s->w.variance == variance;
      assert_int_equal(same, i <= 2 * span);
    }
    feed(s, 1); /* the alert is over: the next one may hold it again */
  }
  free(s);
}

static void centring(void **state)
{
  (void)state;
  static const char *const detectors[] = { "window=8,gap=4,interval=1s,scale=baseline", "window=8,gap=4,interval=1s,scale=none",
                                           "window=8,gap=4,interval=1s,scale=window" };
  for (size_t k = 0; k < 3; k++) {
    struct sensor *s = sensor_new(detectors[k]);
    const uint32_t span = hk_detector_span(&s->d), reach = 15;
    hk_real x[64], past[64];
    double value[64], mean[2] = { 0, 0 };
    for (uint32_t i = 0; i < span; i++) {
      value[i] = 100 + 3 * sin(1.3 * i) + 0.5 * i;
      (void)take(s, s->next, value[i]);
    }
    hk_window_copy(&s->w, s->ring, span, x);
    const struct hk_span_kind kind = hk_span_prepare(&s->w, &s->d, x, past);
    assert_int_equal(kind.past_zero + kind.present_zero, 0);
    for (uint32_t i = 0; i < span; i++)
      mean[0] += k == 0 ? value[i] / span : 0;
    mean[1] = mean[0];
    for (uint32_t i = 0; k == 2 && i < reach; i++) {
      mean[0] += value[i] / reach;
      mean[1] += value[i + 4] / reach;
    }
    for (int part = 0; part < 2; part++) {
      const hk_real *got = part ? x + 4 : past;
      double top = 0;
      for (uint32_t i = 0; i < reach; i++)
        top = fmax(top, fabs(value[i + 4 * part] - mean[part]));
      const double factor = pow(2, -floor(log2(top)) - 1);
      for (uint32_t i = 0; i < reach; i++)
        assert_true(fabs((double)got[i] - (value[i + 4 * part] - mean[part]) * factor) < 1e-5);
    }
    free(s);
  }
}

static void constants_are_zero(void **state)
{
  (void)state;
  static const double levels[] = { 0, 0.1, -7, 1e6 + 0.1, 1e25, 1e-33 };
  for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
    struct sensor *s = sensor_new("window=8,gap=8,interval=1s");
    hk_real x[64], past[64];
    for (uint32_t n = 0; n < 200; n++) {
      (void)take(s, s->next, levels[i]);
      if (s->w.count < 23)
        continue;
      hk_window_copy(&s->w, s->ring, 23, x);
      const struct hk_span_kind kind = hk_span_prepare(&s->w, &s->d, x, past);
      assert_int_equal(kind.past_zero, 1);
      assert_int_equal(kind.present_zero, 1);
    }
    free(s);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(rebase_keeps_digits),
    cmocka_unit_test(rebase_keeps_fill_marks_and_mean),
    cmocka_unit_test(baseline_follows),
    cmocka_unit_test(baseline_is_held_two_spans),
    cmocka_unit_test(centring),
    cmocka_unit_test(constants_are_zero),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
