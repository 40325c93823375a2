/* The alert rule, with made-up scores, and real windows and rings. Fixed threshold, hysteresis, hold, cool-down, gaps and
 * restarts; learned values, compared with the formulas of cpu/rules/alert.h over all maxima; change instants on steps and on
 * changes of frequency. */
#include "cpu/rules/alert.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define START (INT64_C(1700000000) * SECOND)

/* A sensor, with room for any span. */
struct sensor {
  struct hk_detector d;
  struct hk_window w;
  struct hk_alert a;
  struct hk_event e; /* the last one */
  hk_real ring[HK_SPAN_MAX];
  uint64_t seed;
};

/* A sensor whose window is full of `value`, so that the next point brings a score. */
static struct sensor *sensor_new(const char *detector)
{
  struct sensor *s = calloc(1, sizeof *s);
  char error[256];
  assert_non_null(s);
  if (hk_detector_parse(detector, &s->d, error, sizeof error) != 0)
    fail_msg("%s", error);
  s->seed = 1;
  return s;
}

static double uniform(struct sensor *s)
{
  return 0.5 + 0.5 * hk_random_element(s->seed++, 7);
}

/* Sum of twelve uniform numbers: near enough to normal, variance 1. */
static double noise(struct sensor *s)
{
  double sum = -6;
  for (int i = 0; i < 12; i++)
    sum += uniform(s);
  return sum;
}

/* Processes one regular point, after `skip` missing samples, with a made-up score if one is due. Returns the kind of event. */
static int point_after(struct sensor *s, int64_t skip, double value, double z, double share)
{
  const int64_t time = s->w.started ? s->w.last_time + (1 + skip) * SECOND : START;
  const struct hk_step step = hk_window_take(&s->w, s->ring, &s->d, time, value, time, s->a.raised);
  assert_true(step.state <= HK_STATE_GAP);
  struct hk_event e;
  memset(&e, 0xff, sizeof e);
  if (!hk_alert_decide(&s->a, &s->w, s->ring, &s->d, step, step.score ? z : NAN, step.score ? share : NAN, &e))
    return 0;
  assert_int_equal(e.time, time);
  assert_int_equal(e.number, s->a.number);
  assert_true(e.from <= e.instant && e.instant <= e.from + (2 * (int64_t)s->d.window - 2) * SECOND);
  assert_true(isfinite(e.before) && isfinite(e.after));
  s->e = e;
  return e.kind;
}

static int point(struct sensor *s, double z)
{
  return point_after(s, 0, noise(s), z, 0.5);
}

/* The same score n times; no event may happen. */
static void quietly(struct sensor *s, uint32_t n, double z)
{
  for (uint32_t i = 0; i < n; i++)
    assert_int_equal(point(s, z), 0);
}

static void warm_up(struct sensor *s)
{
  quietly(s, hk_detector_span(&s->d) - 1, NAN);
}

static void test_fixed(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=16,alert=0.5,clear=0.6,interval=1s,cooldown=0");
  assert_true(sizeof s->a <= 112);
  warm_up(s);
  quietly(s, 40, 0.49);
  assert_int_equal(point(s, 0.5), HK_EVENT_RAISED);
  assert_int_equal(s->e.number, 1);
  assert_int_equal(s->e.from, s->e.time - 30 * SECOND);
  assert_float_equal(s->e.score, 0.5, 1e-6);
  const int64_t from = s->e.from;
  assert_int_equal(point(s, 0.8), 0);
  quietly(s, 5, 0.31); /* hysteresis: below the threshold, not below 0.6 of it */
  assert_int_equal(point(s, 0.29), HK_EVENT_CLEARED);
  assert_int_equal(s->e.from, from);
  assert_float_equal(s->e.score, 0.8, 1e-6); /* the peak */
  quietly(s, 5, 0.45);
  assert_int_equal(point(s, 0.7), HK_EVENT_RAISED); /* no cool-down here */
  assert_int_equal(s->e.number, 2);
  assert_float_equal(s->e.score, 0.7, 1e-6);
  free(s);
}

static void test_off(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=16,alert=off,interval=1s");
  warm_up(s);
  quietly(s, 200, 1);
  free(s);
}

/* An alert ends after a span at the latest, and its instant is estimated again after w points. */
static void test_longest(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=16,alert=0.5,interval=1s,cooldown=9");
  const uint32_t span = hk_detector_span(&s->d);
  warm_up(s);
  assert_int_equal(point(s, 0.9), HK_EVENT_RAISED);
  for (uint32_t i = 1; i < span; i++) {
    const int kind = point(s, 0.9);
    assert_true(kind == 0 || (kind == HK_EVENT_CORRECTED && i == 16));
  }
  assert_int_equal(point(s, 0.9), HK_EVENT_CLEARED);
  quietly(s, 9, 0.9); /* cool-down */
  assert_int_equal(point(s, 0.9), HK_EVENT_RAISED);
  free(s);
}

static void test_hold(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=16,alert=0.5,interval=1s,hold=3");
  warm_up(s);
  quietly(s, 2, 0.9);
  quietly(s, 1, 0.4);
  quietly(s, 2, 0.9);
  assert_int_equal(point(s, 0.9), HK_EVENT_RAISED);
  free(s);

  s = sensor_new("window=16,alert=0.5,interval=1s,hold=3,stride=4"); /* points with no score do not break the row */
  warm_up(s);
  quietly(s, 8, 0.9);
  assert_int_equal(point(s, 0.9), HK_EVENT_RAISED);
  free(s);
}

static void test_floors(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=96,alert=0.05,min_score=0.25,interval=1s");
  warm_up(s);
  quietly(s, 5, 0.24);
  assert_int_equal(point(s, 0.25), HK_EVENT_RAISED);
  free(s);

  s = sensor_new("window=96,alert=0.5,signal=2,interval=1s");
  warm_up(s);
  const double white = (1.4 + 0.6 * log(96)) / 96, odds = 2 * white / (1 - white);
  for (int i = 0; i < 50; i++)
    assert_int_equal(point_after(s, 0, noise(s), 0.99, odds / (1 + odds) - 1e-6), 0);
  assert_int_equal(point_after(s, 0, noise(s), 0.99, odds / (1 + odds) + 1e-6), HK_EVENT_RAISED);
  free(s);
}

/* No alert is raised while over a tenth of the span is filled; a raised one may be cleared. */
static void test_gap(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=8,gap=8,alert=0.5,interval=1s,max_fill=3,hold=2");
  warm_up(s);
  quietly(s, 1, 0.9);
  assert_int_equal(point_after(s, 3, noise(s), 0.9, 0.5), 0); /* gap: 3 of 23 samples filled */
  quietly(s, 19, 0.9);                                        /* the last of them is still there */
  quietly(s, 1, 0.9);                                         /* 2 of 23 left: ok, the first of two */
  assert_int_equal(point(s, 0.9), HK_EVENT_RAISED);
  assert_int_equal(point_after(s, 3, noise(s), 0.9, 0.5), 0);
  assert_int_equal(point(s, 0.1), HK_EVENT_CLEARED);
  free(s);
}

static void test_restart(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=8,alert=0.5,interval=1s");
  warm_up(s);
  assert_int_equal(point(s, 0.9), HK_EVENT_RAISED);
  const int64_t instant = s->e.instant;
  s->w.holed = 0; /* as after many points: such a hole is rare */
  assert_int_equal(point_after(s, 50, 1e9, 0.9, 0.5), HK_EVENT_CLEARED);
  assert_int_equal(s->e.instant, instant); /* the data it came from are gone */
  warm_up(s);                              /* one point of it was the one above */
  assert_int_equal(point(s, 0.9), HK_EVENT_RAISED);
  assert_int_equal(s->e.number, 2);
  free(s);

  s = sensor_new("window=8,interval=1s"); /* learned maxima stay, the current block does not */
  warm_up(s);
  for (int i = 0; i < 8 * 6 + 5; i++)
    point_after(s, 0, noise(s), 0.1 + 0.01 * uniform(s), 0.3);
  assert_int_equal(s->a.blocks, 6);
  assert_int_equal(s->a.scores, 5);
  const double learned = s->a.learned;
  s->w.holed = 0;
  point_after(s, 50, noise(s), 0.1, 0.3);
  assert_int_equal(s->a.scores, 0);
  assert_int_equal(s->a.blocks, 6);
  assert_true(s->a.learned == learned);
  free(s);
}

/* The adaptive threshold against its definition, over all maxima so far. */
static void check_learning(const char *detector, uint32_t block, double p)
{
  struct sensor *s = sensor_new(detector);
  double maxima[HK_ALERT_BLOCKS], top = 0, threshold = 0;
  uint32_t n = 0, scores = 0;
  warm_up(s);
  while (n < HK_ALERT_BLOCKS) {
    const double z = uniform(s), share = 0.9 * uniform(s), evidence = sqrt(z * share / (1 - share));
    const bool due = s->w.due + 1 >= s->d.stride;
    const int kind = point_after(s, 0, noise(s), z, share);
    if (n < HK_ALERT_LEARN)
      assert_int_equal(kind, 0);
    else if (kind == HK_EVENT_RAISED)
      assert_true(due && evidence > threshold);
    if (!due)
      continue;
    top = fmax(top, evidence);
    if (++scores < block)
      continue;
    maxima[n] = n >= HK_ALERT_LEARN ? fmin(top, threshold) : top;
    n++;
    scores = 0;
    top = 0;
    if (n < HK_ALERT_LEARN)
      continue;
    double mean = 0, square = 0;
    for (uint32_t i = 0; i < n; i++)
      mean += maxima[i] / n;
    for (uint32_t i = 0; i < n; i++)
      square += (maxima[i] - mean) * (maxima[i] - mean) / (n - 1);
    const double y = -log(-log(1 - p));
    threshold = mean + sqrt(6) / acos(-1) * (y - 0.5772156649) * (1 + (1.4 + y / 2) / (n - 1)) * sqrt(square);
    assert_float_equal(s->a.learned, threshold, 1e-9);
    assert_int_equal(s->a.blocks, n);
  }
  assert_true(s->a.number > 0); /* the rate is high here: there were some alerts */
  free(s);
}

static void test_learning(void **state)
{
  (void)state;
  check_learning("window=16,false_alarms=10000,interval=1s", 16, 0.16);
  check_learning("window=16,false_alarms=50000,interval=1s", 16, 0.5);
  check_learning("window=10,false_alarms=30000,interval=1s,stride=3", 4, 0.12);
}

/* After HK_ALERT_BLOCKS blocks the threshold follows new ones. */
static void test_forgetting(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=8,interval=1s,min_score=1,false_alarms=1000");
  warm_up(s);
  for (int i = 0; i < 8 * 200; i++)
    point_after(s, 0, noise(s), 0.2 + 0.3 * uniform(s), 0.5);
  const double high = s->a.learned;
  for (int i = 0; i < 8 * 5 * HK_ALERT_BLOCKS; i++)
    point_after(s, 0, noise(s), 0.02 + 0.03 * uniform(s), 0.5);
  assert_true(s->a.learned < 0.5 * high && s->a.learned > 0.05);
  free(s);
}

/* A long change moves the threshold, but slowly: one later alert of the same kind still comes. */
static void test_change_teaches_little(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=8,interval=1s");
  warm_up(s);
  for (int i = 0; i < 8 * 40; i++)
    assert_int_equal(point_after(s, 0, noise(s), 0.2 + 0.1 * uniform(s), 0.3), 0);
  const double before = s->a.learned;
  assert_int_equal(point_after(s, 0, noise(s), 0.9, 0.9), HK_EVENT_RAISED);
  for (int i = 0; i < 15; i++)
    point_after(s, 0, noise(s), 0.9, 0.9);
  assert_true(s->a.learned > before && s->a.learned < 1.3 * before);
  free(s);
}

/* Constant sensors, and scores at the ends of their range. */
static void test_extremes(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=4,gap=1,min_score=0,signal=0,false_alarms=100000");
  for (int i = 0; i < 300; i++)
    assert_int_equal(point_after(s, 0, 5, 0, 0), 0); /* nothing learned but zero, and nothing over it */
  assert_int_equal(point_after(s, 0, 6, 1, 1), HK_EVENT_RAISED);
  for (int i = 0; i < 300; i++)
    point_after(s, 0, uniform(s) < 0.5 ? -1e30 : 1e30, uniform(s) < 0.3, uniform(s) < 0.3);
  assert_true(isfinite(s->a.learned) && s->a.variance >= 0);
  free(s);

  s = sensor_new("window=1024,alert=0.5,interval=100000d"); /* the interval is longer than all time since 1970 */
  struct hk_event e;
  int raised = 0;
  for (int i = 0; i < 4000; i++) {
    const struct hk_step step = hk_window_take(&s->w, s->ring, &s->d, 1 + i, i % 7, 0, false);
    if (hk_alert_decide(&s->a, &s->w, s->ring, &s->d, step, 0.9, 0.9, &e) && e.kind == HK_EVENT_RAISED) {
      raised++;
      assert_int_equal(e.from, 0);
      assert_in_range(e.instant, 0, e.time);
    }
  }
  assert_int_equal(raised, 1);
  free(s);
}

enum change { STEP, STEP_ON_SINE, FREQUENCY, FREQUENCY_IN_NOISE, ONSET };

static double changed(struct sensor *s, enum change change, bool after, double frequency, double *phase)
{
  const double e = noise(s);
  *phase += frequency * (after && (change == FREQUENCY || change == FREQUENCY_IN_NOISE) ? 1.5 : 1);
  switch (change) {
  case STEP:
    return e + (after ? 3 : 0);
  case STEP_ON_SINE:
    return sin(*phase) + 0.2 * e + (after ? 1.5 : 0);
  case FREQUENCY:
    return sin(*phase) + 0.2 * e;
  case FREQUENCY_IN_NOISE:
    return sin(*phase) + 0.5 * e;
  case ONSET:
    return (after ? 3 * sin(*phase) : 0) + e;
  }
  return 0;
}

static int compare(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Median error of the change instant of an alert raised `late` windows after the change, in windows. */
static double instant_error(const char *detector, enum change change, double late)
{
  enum { TRIALS = 41 };
  double error[TRIALS], level = 0;
  struct sensor *s = sensor_new(detector);
  const uint32_t w = s->d.window, span = hk_detector_span(&s->d), after = (uint32_t)(late * w) + 1;
  for (int trial = 0; trial < TRIALS; trial++) {
    const double frequency = 2 * acos(-1) / (6 + uniform(s) * (w * 0.6 - 6 > 0 ? w * 0.6 - 6 : 0));
    double phase = 6 * uniform(s);
    memset(&s->w, 0, sizeof s->w);
    memset(&s->a, 0, sizeof s->a);
    for (uint32_t i = 0; i < 2 * span; i++) {
      const bool is_after = i >= 2 * span - after;
      const int kind = point_after(s, 0, 1000 + 10 * changed(s, change, is_after, frequency, &phase), i == 2 * span - 1, 0.9);
      assert_int_equal(kind, i == 2 * span - 1 ? HK_EVENT_RAISED : 0);
    }
    const int64_t truth = s->e.time - (after - 1) * SECOND;
    error[trial] = fabs((double)(s->e.instant - truth)) / SECOND / w;
    level += (s->e.after - s->e.before) / TRIALS;
  }
  if (change == STEP)
    assert_true(level > 20 && level < 40); /* 3 steps of 10, blurred where the instant is off */
  free(s);
  qsort(error, TRIALS, sizeof *error, compare);
  return error[TRIALS / 2];
}

static void test_instants(void **state)
{
  (void)state;
  static const struct {
    const char *detector;
    enum change change;
    double early; /* the earliest tested alert, in windows after the change */
  } cases[] = {
    { "alert=1,interval=1s", STEP, 0.2 },
    { "alert=1,interval=1s", STEP_ON_SINE, 0.2 },
    { "alert=1,interval=1s", FREQUENCY, 0.2 },
    { "alert=1,interval=1s", FREQUENCY_IN_NOISE, 0.4 },
    { "alert=1,interval=1s", ONSET, 0.2 },
    { "window=24,alert=1,interval=1s", STEP, 0.2 },
    { "window=24,alert=1,interval=1s", STEP_ON_SINE, 0.2 },
    { "window=24,alert=1,interval=1s", FREQUENCY, 0.4 },
    { "window=320,gap=50,alert=1,interval=1s", STEP, 0.2 },
    { "window=320,gap=50,alert=1,interval=1s", FREQUENCY_IN_NOISE, 0.4 },
    { "window=100,gap=207,alert=1,interval=1s", FREQUENCY, 0.2 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (double late = cases[i].early; late < 1.7; late += 0.4) {
      const double error = instant_error(cases[i].detector, cases[i].change, late);
      if (!(error <= 0.25))
        fail_msg("%s, change %d, alert %.1f windows late: median error %.3f windows", cases[i].detector, cases[i].change, late,
                 error);
    }
  }
}

/* An alert in the first samples of a change, whose instant cannot be estimated yet: it is estimated w points later. */
static void test_corrected(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=32,alert=0.5,interval=1s");
  int corrected = 0;
  for (int trial = 0; trial < 40; trial++) {
    memset(&s->w, 0, sizeof s->w);
    memset(&s->a, 0, sizeof s->a);
    for (uint32_t i = 0; i < 190; i++)
      assert_int_equal(point_after(s, 0, noise(s), 0.1, 0.5), 0);
    assert_int_equal(point_after(s, 0, noise(s) + 2, 0.9, 0.5), HK_EVENT_RAISED);
    const int64_t truth = s->e.time, first = s->e.instant;
    for (uint32_t i = 1; i < 32; i++)
      assert_int_equal(point_after(s, 0, noise(s) + 2, 0.9, 0.5), 0);
    const int kind = point_after(s, 0, noise(s) + 2, 0.9, 0.5);
    if (kind == HK_EVENT_CORRECTED) {
      assert_true(llabs(s->e.instant - first) > 4 * SECOND);
      corrected += llabs(s->e.instant - truth) <= 4 * SECOND;
    } else {
      assert_int_equal(kind, 0);
      assert_true(llabs(s->a.instant - first) <= 4 * SECOND);
    }
  }
  assert_true(corrected >= 10);
  free(s);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_fixed),      cmocka_unit_test(test_off),
    cmocka_unit_test(test_longest),    cmocka_unit_test(test_hold),
    cmocka_unit_test(test_floors),     cmocka_unit_test(test_gap),
    cmocka_unit_test(test_restart),    cmocka_unit_test(test_learning),
    cmocka_unit_test(test_forgetting), cmocka_unit_test(test_change_teaches_little),
    cmocka_unit_test(test_extremes),   cmocka_unit_test(test_instants),
    cmocka_unit_test(test_corrected),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
