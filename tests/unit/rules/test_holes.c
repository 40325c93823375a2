/* Holes longer than max_fill: when the window restarts, when it continues, and the cost of that. */
#include "cpu/novelty/novelty.h"
#include "tests/unit/support/sensor.h"

/* Of too long holes that follow each other within HK_HOLE_MEMORY spans, only the first one restarts the window, and soon after
 * the beginning not even that. While the window contains a hole, there is no alert. */
static void windows_go_on_where_holes_are_frequent(void **state)
{
  (void)state;
  for (int soon = 0; soon < 2; soon++) {
    struct sensor *s = sensor_new("window=8,interval=1s,max_fill=3");
    const uint32_t span = hk_detector_span(&s->d);
    feed(s, settled(s) + (soon ? 0 : 1));
    struct hk_step step = take(s, s->next + 1000 * SECOND, 3);
    assert_int_equal(step.restarted, !soon);
    assert_int_equal(s->w.count, soon ? span : 1);
    assert_int_equal(s->w.filled, 0);
    (void)take(s, s->next + 2 * SECOND, 3);
    assert_int_equal(s->w.filled, 2);
    feed(s, 2 * span);
    step = take(s, s->next + 1000 * SECOND, 3);
    assert_int_equal(step.restarted, 0);
    for (uint32_t i = 1; i < span; i++) {
      assert_int_equal(step.state, HK_STATE_GAP);
      assert_int_equal(step.score, 1);
      step = feed(s, 1);
    }
    assert_int_equal(step.state, HK_STATE_OK);
    feed(s, settled(s) - span);
    assert_int_equal(s->w.holes, 1);
    feed(s, 1);
    assert_int_equal(s->w.holes, 0);
    assert_int_equal(take(s, s->next + 1000 * SECOND, 3).restarted, 1); /* the first after so long */
    free(s);
  }
}

/* If the window always contains holes, samples count instead of their times, until there has been no hole for long. */
static void samples_count_where_holes_are_many(void **state)
{
  (void)state;
  static const struct {
    const char *text;
    uint8_t state;
  } cases[] = { { "window=8,interval=1s", HK_STATE_OK },
                { "window=8,interval=1s,alert=0.5", HK_STATE_GAP },
                { "window=8,interval=1s,alert=off", HK_STATE_OK } };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct sensor *s = sensor_new(cases[c].text);
    const uint32_t span = hk_detector_span(&s->d);
    feed(s, span);
    for (uint32_t i = 1; i <= HK_HOLES_MANY; i++) {
      assert_int_equal(s->w.holes, i - 1);
      (void)take(s, s->next + 4 * SECOND, 3);
      feed(s, i < HK_HOLES_MANY ? span - 1 : 0);
    }
    assert_int_equal(s->w.filled, 0);
    assert_int_equal(take(s, s->next + 2 * SECOND, 3).state, cases[c].state);
    assert_int_equal(s->w.filled, 0);
    feed(s, settled(s) - 2);
    assert_int_equal(s->w.holes, HK_HOLES_MANY);
    feed(s, 1);
    assert_int_equal(s->w.holes, 0);
    (void)take(s, s->next + 2 * SECOND, 3);
    assert_int_equal(s->w.filled, 2);
    free(s);
  }
}

/* With any holes, at most a twentieth of the points after the first span has no score. */
static void holes_cost_a_twentieth(void **state)
{
  (void)state;
  static const char *const detectors[] = { "window=8,interval=1s", "window=13,gap=40,interval=1s,max_fill=0", "window=8" };
  for (size_t k = 0; k < sizeof detectors / sizeof *detectors; k++) {
    for (uint32_t every = 2; every < 3000; every += 1 + every / 3) { /* points between two holes */
      struct sensor *s = sensor_new(detectors[k]);
      const uint32_t span = hk_detector_span(&s->d);
      uint32_t points = 0, unscored = 0;
      for (uint32_t i = 0; i < 30000; i++) {
        const struct hk_step step = take(s, s->next + (i % every == 0 ? 100 * SECOND : 0), sin((double)i));
        points += i >= span;
        unscored += i >= span && !step.score;
      }
      if (unscored * HK_HOLE_MEMORY > points)
        fail_msg("%s, a hole every %u points: %u of %u have no score", detectors[k], every, unscored, points);
      free(s);
    }
  }
}

/* Only the value that decides restarts the window, and only with rate = auto. */
static void anew(void **state)
{
  (void)state;
  const uint64_t bits = HK_ANEW_BITS;
  double value;
  memcpy(&value, &bits, sizeof value);
  assert_true(hk_anew(value) && !hk_anew((double)NAN) && !hk_anew(-(double)NAN) && !hk_anew(0));
  for (int automatic = 0; automatic < 2; automatic++) {
    struct sensor *s = sensor_new(automatic ? "window=8,rate=auto" : "window=8,rate=yes");
    assert_int_equal(take(s, s->next, value).state, HK_STATE_REJECTED);
    feed(s, 1);
    assert_int_equal(s->w.anew, 0); /* there is no alert that it could end */
    feed(s, 40);
    assert_int_equal(take(s, s->next, value).state, HK_STATE_REJECTED);
    s->next += SECOND;
    assert_int_equal(take(s, s->next, (double)NAN).state, HK_STATE_REJECTED);
    const struct hk_step step = take(s, s->next, 7e9);
    assert_int_equal(step.restarted, automatic);
    assert_int_equal(step.state, automatic ? HK_STATE_WARMING : HK_STATE_OK);
    if (automatic)
      assert_true(s->w.count == 1 && s->w.reference == 7e9 && s->w.mean == 0);
    assert_int_equal(feed(s, 1).restarted, 0);
    free(s);
  }
}

/* Novelty: of holes that follow each other within HK_HOLE_MEMORY probations, the third and later ones change nothing; a hole
 * after a longer time without one restarts means and lags. */
static void novelty_goes_on_over_usual_holes(void **state)
{
  (void)state;
  enum { MEMORY = HK_HOLE_MEMORY * HK_NOVELTY_PROBATION };
  static const struct {
    uint32_t after; /* points since the hole before */
    bool begins;
  } holes[] = { { 400, true },  { MEMORY, true },     { 1, false },  { MEMORY, false },
                { 151, false }, { MEMORY + 1, true }, { 200, true }, { 20, false } };
  struct hk_detector d;
  char error[256];
  assert_int_equal(hk_detector_parse("algorithm=novelty,resident=1000,interval=1s", &d, error, sizeof error), 0);
  void *const memory = malloc(hk_novelty_bytes(&d, sizeof(hk_real)));
  hk_real *const ring = calloc(hk_detector_span(&d), sizeof *ring);
  assert_true(memory && ring);
  const struct hk_novelty_view v = hk_novelty_view(memory, &d);
  struct hk_window w = { 0 };
  struct hk_novelty_point p;
  int64_t second = 0;
  for (size_t h = 0; h < sizeof holes / sizeof *holes; h++) {
    for (uint32_t i = 1; i < holes[h].after; i++)
      (void)hk_novelty_take(&v, &w, ring, ++second * SECOND, i % 7, 0, &p);
    second += HK_NOVELTY_HOLE + 2;
    const struct hk_step step = hk_novelty_take(&v, &w, ring, second * SECOND, 3, 0, &p);
    assert_int_equal(p.age == 0, holes[h].begins);
    assert_int_equal(p.missing, holes[h].begins ? HK_NOVELTY_HOLE + 1 : 0);
    assert_int_equal(step.state, holes[h].begins || v.novelty->age <= HK_NOVELTY_PROBATION ? HK_STATE_GAP : HK_STATE_OK);
  }
  free(ring);
  free(memory);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(windows_go_on_where_holes_are_frequent),
    cmocka_unit_test(samples_count_where_holes_are_many),
    cmocka_unit_test(holes_cost_a_twentieth),
    cmocka_unit_test(anew),
    cmocka_unit_test(novelty_goes_on_over_usual_holes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
