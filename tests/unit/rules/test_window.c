/* Window rules: rejected and late points, filled samples, restarts; warm-up and stride; learned interval; silence. Random
 * sequences are compared with a naive model that keeps every sample. */
#include "tests/unit/support/sensor.h"

static void first_score_and_stride(void **state)
{
  (void)state;
  static const char *const detectors[] = { "window=8,gap=8,interval=1s", "window=9,gap=1,stride=3,interval=1s",
                                           "window=8,gap=30,stride=100,interval=1s", "window=8,gap=8" };
  for (size_t i = 0; i < sizeof detectors / sizeof *detectors; i++) {
    struct sensor *s = sensor_new(detectors[i]);
    const uint32_t span = hk_detector_span(&s->d);
    for (uint32_t t = 0; t < 5 * span; t++) {
      const struct hk_step step = feed(s, 1);
      assert_int_equal(step.state, t < span - 1 ? HK_STATE_WARMING : HK_STATE_OK);
      assert_int_equal(step.score, t >= span - 1 && (t - (span - 1)) % s->d.stride == 0);
      assert_int_equal(step.restarted, 0);
    }
    free(s);
  }
}

/* With a stride, a score that is due at a filled sample is given at the next point that arrives. */
static void score_never_on_a_filled_sample(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=8,gap=8,stride=4,interval=1s");
  feed(s, hk_detector_span(&s->d)); /* a score is given here */
  feed(s, 2);
  const struct hk_step step = take(s, s->next + 3 * SECOND, 3.0); /* samples 3 to 5 are made up, this is the 6th */
  assert_int_equal(step.score, 1);
  assert_int_equal(s->w.due, 0);
  free(s);
}

static void rejected_changes_nothing(void **state)
{
  (void)state;
  static const double bad[] = { NAN, -NAN, INFINITY, -INFINITY, 1.1e30, -1.1e30, DBL_MAX };
  struct sensor *s = sensor_new("window=8");
  for (uint32_t fed = 0; fed < 40; fed += 20) {
    const struct sensor before = *s;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
      assert_int_equal(take(s, s->next, bad[i]).state, HK_STATE_REJECTED);
    assert_int_equal(take(s, -1, 1).state, HK_STATE_REJECTED);
    assert_int_equal(take(s, INT64_MIN, 1).state, HK_STATE_REJECTED);
    assert_memory_equal(s, &before, sizeof before);
    feed(s, 20);
  }
  free(s);
}

static void huge_first_value(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=8,interval=1s");
  assert_int_equal(take(s, START, 1e300).state, HK_STATE_REJECTED);
  assert_int_equal(take(s, START, 1e30).state, HK_STATE_WARMING); /* a refused one is not the first */
  assert_int_equal(take(s, START + SECOND, -1e30).state, HK_STATE_REJECTED);
  assert_int_equal(take(s, START + SECOND, 0).state, HK_STATE_WARMING);
  assert_true(fabs(sample(s, 0)) < 1e23);
  assert_true(sample(s, 1) == 1e30);
  free(s);
}

static void denormals_are_zero(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=8,interval=1s");
  assert_int_equal(take(s, 0, 0).state, HK_STATE_WARMING); /* the epoch itself is a time */
  assert_int_equal(take(s, SECOND, 1e-310).state, HK_STATE_WARMING);
  assert_int_equal(take(s, 2 * SECOND, 1e-40).state, HK_STATE_WARMING);
  assert_true(sample(s, 0) == 0 && sample(s, 1) == 0);
  assert_true(s->w.mean == 0);
  free(s);
}

static void late_and_repeated_change_nothing(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=8");
  feed(s, 50);
  const struct sensor before = *s;
  const int64_t last = s->w.last_time;
  assert_int_equal(take(s, last, 7).state, HK_STATE_LATE);
  assert_int_equal(take(s, last - 1, 7).state, HK_STATE_LATE);
  assert_int_equal(take(s, 0, 7).state, HK_STATE_LATE);
  assert_int_equal(take(s, last, NAN).state, HK_STATE_REJECTED); /* rule 1 stands before rule 2 */
  assert_memory_equal(s, &before, sizeof before);
  free(s);
}

static void fills(void **state)
{
  (void)state;
  for (int linear = 0; linear < 2; linear++) {
    for (uint32_t missing = 0; missing <= 4; missing++) {
      struct sensor *s = sensor_new(linear ? "window=8,interval=1s,max_fill=3,fill=linear" : "window=8,interval=1s,max_fill=3");
      feed(s, settled(s) + 1);
      const uint32_t span = hk_detector_span(&s->d);
      const double last = sample(s, 0);
      const struct hk_step step = take(s, s->next + missing * SECOND, last + 8);
      if (missing > 3) { /* warms up again */
        assert_int_equal(step.restarted, 1);
        assert_int_equal(s->w.count, 1);
        assert_int_equal(s->w.filled, 0);
      } else {
        assert_int_equal(step.restarted, 0);
        assert_int_equal(s->w.count, span);
        assert_int_equal(s->w.filled, missing);
        for (uint32_t i = 1; i <= missing; i++)
          assert_true(fabs(sample(s, i) - (linear ? last + 8.0 * (missing + 1 - i) / (missing + 1) : last)) < 1e-5);
      }
      assert_true(fabs(sample(s, 0) - (last + 8)) < 1e-5);
      free(s);
    }
  }
}

/* The distance is rounded to whole intervals: jitter below half an interval is neither a hole nor a double. */
static void jitter_is_no_hole(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=8,interval=1s");
  uint64_t seed = 1;
  feed(s, 1);
  for (uint32_t i = 1; i < 200; i++)
    (void)take(s, START + i * SECOND + (int64_t)random_below(&seed, 480) * 1000000 - 240000000, 1 + i % 7);
  assert_int_equal(s->w.filled, 0);
  assert_int_equal(take(s, s->w.last_time + SECOND * 3 / 2 - 1, 2).restarted, 0);
  assert_int_equal(s->w.filled, 0);
  (void)take(s, s->w.last_time + SECOND * 3 / 2, 2); /* from half an interval on it is a hole */
  assert_int_equal(s->w.filled, 1);
  free(s);
}

static void gap_over_a_tenth(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=8,gap=5,interval=1s"); /* span 20: up to 2 filled is ok */
  feed(s, 20);
  assert_int_equal(take(s, s->next + 2 * SECOND, 3).state, HK_STATE_OK);
  assert_int_equal(take(s, s->next + SECOND, 3).state, HK_STATE_GAP);
  uint32_t gaps = 0;
  for (uint32_t i = 0; i < 40; i++)
    gaps += feed(s, 1).state == HK_STATE_GAP;
  assert_int_equal(gaps, 15); /* until the first filled sample leaves: 20 samples after it came */
  assert_int_equal(s->w.filled, 0);
  free(s);
}

static void a_hole_keeps_what_was_learned(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=8");
  feed(s, settled(s) + 1);
  const struct hk_step step = take(s, s->next + 1000 * SECOND, -1);
  assert_int_equal(step.restarted, 1);
  assert_int_equal(step.state, HK_STATE_WARMING);
  assert_int_equal(s->w.count, 1);
  assert_true(s->w.mean == 0 && s->w.variance == 0 && s->w.reference == -1);
  assert_true(llabs(hk_window_interval(&s->w, &s->d) - SECOND) <= SECOND / 64);
  uint32_t until = 1;
  while (feed(s, 1).state == HK_STATE_WARMING)
    until++;
  assert_int_equal(until, hk_detector_span(&s->d) - 1);
  free(s);
}

/* Learned interval: spacings with jitter, with holes among the first, and a first one that is far off. */
static void learned_interval(void **state)
{
  (void)state;
  uint64_t seed = 7;
  static const double first[] = { 1, 0.3, 3, 60, 1000, 0.02, 0.001 };
  for (size_t f = 0; f < sizeof first / sizeof *first; f++) {
    struct sensor *s = sensor_new("window=4,gap=4");
    int64_t time = START;
    (void)take(s, time, 0);
    time += (int64_t)(first[f] * (double)SECOND);
    (void)take(s, time, 1);
    assert_int_equal(hk_window_interval(&s->w, &s->d), 0);
    for (uint32_t i = 2; i < 300; i++) {
      time += SECOND - 50000000 + (int64_t)random_below(&seed, 100) * 1000000;
      if (random_below(&seed, 20) == 0)
        time += 2 * SECOND; /* a hole of two */
      (void)take(s, time, 1);
      if (i < HK_INTERVAL_LEARN)
        assert_int_equal(hk_window_interval(&s->w, &s->d), 0);
    }
    const double interval = (double)hk_window_interval(&s->w, &s->d) / (double)SECOND;
    if (!(interval > 0.9 && interval < 1.1))
      fail_msg("first spacing %g s: learned %g s after 300 points, not 1", first[f], interval);
    free(s);
  }
}

/* Nothing is filled before the interval is known. */
static void no_fill_before_the_interval_is_known(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=8");
  for (int i = 0; i < HK_INTERVAL_LEARN; i++)
    (void)take(s, START + i * i * SECOND, i);
  assert_int_equal(s->w.filled, 0);
  assert_int_equal(s->w.count, HK_INTERVAL_LEARN);
  free(s);
}

static void time_at_the_end_of_its_range(void **state)
{
  (void)state;
  struct sensor *s = sensor_new("window=8,interval=1ns");
  for (int64_t i = 0; i <= settled(s); i++)
    (void)take(s, i, 1);
  assert_int_equal(take(s, INT64_MAX, 2).restarted, 1);
  assert_int_equal(take(s, INT64_MAX, 2).state, HK_STATE_LATE);
  free(s);
  s = sensor_new("window=8");
  for (int64_t i = 0; i < 12; i++) /* learned interval near the end of its range too */
    (void)take(s, i * (INT64_MAX / 12), 1);
  assert_int_equal(take(s, INT64_MAX, 2).state, HK_STATE_WARMING);
  assert_int_equal(hk_window_sweep(&s->w, &s->d, INT64_MAX), 0);
  free(s);
}

/* The state of the naive model: the samples since the last restart. */
struct naive {
  double value[20000];
  bool filled[20000];
  uint32_t n, due;
  uint32_t points, hole, holes; /* accepted; how many before the last long hole; how many of these are known */
  int64_t last;
  bool started;
};

/* The rules for a given interval of one second, as plainly as possible. */
static struct hk_step naive_take(struct naive *m, const struct hk_detector *d, int64_t time, double value)
{
  struct hk_step step = { HK_STATE_WARMING, 0, 0 };
  const uint32_t span = hk_detector_span(d);
  if (!isfinite(value) || time < 0)
    return (struct hk_step){ HK_STATE_REJECTED, 0, 0 };
  if (m->started && time <= m->last)
    return (struct hk_step){ HK_STATE_LATE, 0, 0 };
  int64_t missing = m->started ? (time - m->last + SECOND / 2) / SECOND - 1 : 0;
  m->points++;
  if (!m->started)
    m->hole = m->points;
  const uint32_t since = m->points - m->hole;
  if (missing > (int64_t)d->max_fill) {
    step.restarted = since > 20 * span;
    m->n = step.restarted ? 0 : m->n;
    m->holes = m->holes > 2 || (m->holes == 0 ? 0 : since <= span) ? m->holes + 1 : 1;
    m->hole = m->points;
    missing = 0;
  } else if (since >= 20 * span) {
    m->holes = 0;
  }
  missing = m->holes > 2 ? 0 : missing;
  const double last = m->n ? m->value[m->n - 1] : 0;
  for (int64_t i = 1; i <= missing; i++) {
    m->value[m->n] = d->fill == HK_FILL_LINEAR ? last + (value - last) * (double)i / (double)(missing + 1) : last;
    m->filled[m->n++] = true;
  }
  m->value[m->n] = value;
  m->filled[m->n++] = false;
  m->last = time;
  m->started = true;
  m->due += (uint32_t)(missing > 0 ? missing : 0) + 1;
  if (m->n < span)
    return step;
  uint32_t filled = 0;
  for (uint32_t i = m->n - span; i < m->n; i++)
    filled += m->filled[i];
  const bool within = m->holes > 2 ? d->alert == HK_ALERT_FIXED : m->holes > 0 && m->points - m->hole < span - 1;
  step.state = filled > span / 10.0 || within ? HK_STATE_GAP : HK_STATE_OK;
  bool first = true; /* no point that arrived completed the span before this one */
  for (uint32_t i = span - 1; i + 1 < m->n; i++)
    first = first && m->filled[i];
  if (first || m->due >= d->stride) {
    step.score = 1;
    m->due = 0;
  }
  return step;
}

/* Changes some points: times that jump, go back or are off the grid, and values that are not finite. */
static void disturb(uint64_t *random, uint32_t calm, int64_t *time, double *value)
{
  switch (random_below(random, calm + 6)) {
  case 0:
    *time += random_below(random, 7) * SECOND;
    break;
  case 1:
    *time -= random_below(random, 5) * SECOND;
    break;
  case 2:
    *time += (int64_t)random_below(random, 900000000) - 450000000;
    break;
  case 3:
    *value = random_below(random, 2) ? NAN : INFINITY;
    break;
  case 4:
    *time += random_below(random, 40 * calm) == 0 ? 500 * SECOND : SECOND;
    break;
  default:
    break;
  }
}

/* Whether the window holds the model's last values. */
static void same_window(const struct sensor *s, const struct naive *m, uint32_t span)
{
  const uint32_t have = m->n < span ? m->n : span;
  uint32_t filled = 0;
  assert_int_equal(s->w.count, have);
  for (uint32_t back = 0; back < have; back++) {
    const hk_real x = s->ring[(s->w.head + 2 * span - 1 - back) % span];
    assert_int_equal(hk_sample_filled(x), m->filled[m->n - 1 - back]);
    assert_true(fabs(sample(s, back) - m->value[m->n - 1 - back]) < 1e-5);
    filled += m->filled[m->n - 1 - back];
  }
  assert_int_equal(s->w.filled, filled);
}

static void random_sequences_against_the_naive_model(void **state)
{
  (void)state;
  static const char *const detectors[] = {
    "window=4,gap=1,interval=1s,max_fill=3",
    "window=8,gap=8,interval=1s,max_fill=3,fill=linear,stride=5",
    "window=13,gap=40,interval=1s,max_fill=0",
    "window=5,gap=2,interval=1s,max_fill=64,stride=2",
    "window=20,gap=20,interval=1s,max_fill=7,fill=linear",
  };
  struct naive *m = malloc(sizeof *m);
  assert_non_null(m);
  for (size_t k = 0; k < sizeof detectors / sizeof *detectors; k++) {
    for (uint64_t seed = 1; seed <= 12; seed++) {
      struct sensor *s = sensor_new(detectors[k]);
      const uint32_t span = hk_detector_span(&s->d), calm = 1 + (uint32_t)seed * 4;
      uint64_t random = seed * 977 + k;
      memset(m, 0, sizeof *m);
      s->w.seed = seed;
      for (uint32_t i = 0; i < 1500; i++) {
        int64_t time = s->next;
        double value = (double)random_below(&random, 1000) / 128 + 20;
        disturb(&random, calm, &time, &value);
        const struct hk_step got = take(s, time, value), want = naive_take(m, &s->d, time, value);
        if (got.state != want.state || got.score != want.score || got.restarted != want.restarted)
          fail_msg("%s, seed %u, point %u: state %u score %u restarted %u, the naive model says %u %u %u", detectors[k],
                   (unsigned)seed, i, got.state, got.score, got.restarted, want.state, want.score, want.restarted);
        same_window(s, m, span);
      }
      free(s);
    }
  }
  free(m);
}

static void silence(void **state)
{
  (void)state;
  static const struct {
    const char *text;
    int64_t silent; /* s after the last point; 0 = never */
  } cases[] = { { "window=8,interval=1s", 10 },
                { "window=8,interval=5m", 3000 },
                { "window=8,interval=5m,silent=7s", 7 },
                { "window=8,silent=off", 0 },
                { "window=8", 10 } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct sensor *s = sensor_new(cases[i].text);
    assert_int_equal(hk_window_sweep(&s->w, &s->d, START + 100000 * SECOND), 0); /* never seen, never missed */
    (void)take(s, START, 1);
    struct sensor before = *s;
    assert_int_equal(hk_window_sweep(&s->w, &s->d, START), 0);
    if (cases[i].silent == 0) {
      assert_int_equal(hk_window_sweep(&s->w, &s->d, START + 1000000 * SECOND), 0);
    } else {
      const int64_t at = START + cases[i].silent * SECOND;
      assert_int_equal(hk_window_sweep(&s->w, &s->d, at), 0);
      assert_int_equal(hk_window_sweep(&s->w, &s->d, at + 1), 1);
      assert_int_equal(hk_window_sweep(&s->w, &s->d, at + 2), 0); /* told once */
      before.w.stale = 1;
      assert_memory_equal(s, &before, sizeof before); /* touches nothing else */
      (void)hk_window_take(&s->w, s->ring, &s->d, START + SECOND, 1, at + 3, false);
      assert_int_equal(hk_window_sweep(&s->w, &s->d, at + 4), -1);
      assert_int_equal(hk_window_sweep(&s->w, &s->d, at + 5), 0);
    }
    free(s);
  }
}

static void seeds_and_random_vectors(void **state)
{
  (void)state;
  /* published FNV-1a-64 values */
  assert_true(hk_seed("", 0) == 0xcbf29ce484222325u);
  assert_true(hk_seed("a", 1) == 0xaf63dc4c8601ec8cu);
  assert_true(hk_seed("foobar", 6) == 0x85944171f73967e8u);
  /* splitmix64 of 0 begins with 0xe220a8397b1dcdaf */
  assert_true(hk_random_element(0, 0) == (double)(0xe220a8397b1dcdafu >> 11) * 0x1p-52 - 1);
  double mean = 0;
  for (uint32_t i = 0; i < 100000; i++) {
    const double r = hk_random_element(hk_seed("pump", 4), i);
    assert_true(r >= -1 && r < 1);
    mean += r / 100000;
  }
  assert_true(fabs(mean) < 0.01);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(first_score_and_stride),
    cmocka_unit_test(score_never_on_a_filled_sample),
    cmocka_unit_test(rejected_changes_nothing),
    cmocka_unit_test(huge_first_value),
    cmocka_unit_test(denormals_are_zero),
    cmocka_unit_test(late_and_repeated_change_nothing),
    cmocka_unit_test(fills),
    cmocka_unit_test(jitter_is_no_hole),
    cmocka_unit_test(gap_over_a_tenth),
    cmocka_unit_test(a_hole_keeps_what_was_learned),
    cmocka_unit_test(learned_interval),
    cmocka_unit_test(no_fill_before_the_interval_is_known),
    cmocka_unit_test(time_at_the_end_of_its_range),
    cmocka_unit_test(random_sequences_against_the_naive_model),
    cmocka_unit_test(silence),
    cmocka_unit_test(seeds_and_random_vectors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
