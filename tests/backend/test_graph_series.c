/* algorithm = graph, and shift: alerts in the series of one sensor. Outliers are forgotten, and neither
 * unit nor offset matters; a change is one alert, at its instant, with its levels; holes, filled samples, cool-down, hold and
 * threshold have their documented effects. Arguments: BACKEND [sanitize]: sanitize, for sanitizers that slow every launch and
 * point down a hundred times, has the alert alone. */
#include "cpu/rules/window.h"
#include "tests/backend/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct backend_kind *kind;
static enum form form;

/* One sensor of a detector, fed a series a point at a time in batches of 64. */
static struct results run_one(const struct hk_detector *d, const struct backend_kind *how, const struct series *series,
                              struct points *p)
{
  struct hk_backend *b = backend_open(how, d, 1, 1);
  *p = points_mix(series, 1, 1);
  struct results results = results_new(p->n);
  sensor_add(b, 0, 0, 1);
  feed(b, p, 0, p->n, 64, 0, &results);
  b->ops->close(b);
  return results;
}

/* A value far beyond all others, or a stretch of them, is forgotten once it is no longer resident: the scores are then those
 * that the same points give after a hole, when everything is new. */
static void outliers_are_forgotten(void **state)
{
  (void)state;
  static const double sizes[] = { 1e3, 1e6, 1e15, 1e29 };
  const struct hk_detector d = detector_parsed("algorithm=graph,window=10,resident=200,level=0.1,interval=1s,alert=off");
  for (uint32_t c = 0; c < 2 * sizeof sizes / sizeof *sizes; c++) {
    struct series loud = series_new(SIGNAL_SINE, 3, 2000), plain = series_new(SIGNAL_SINE, 3, 2000);
    const uint32_t length = c % 2 ? 90 : 1;
    for (uint32_t i = 600; i < 600 + length; i++)
      loud.value[i] *= sizes[c / 2];
    struct points p, q;
    struct results got = run_one(&d, kind, &loud, &p), want = run_one(&d, backend_kind("reference"), &plain, &q);
    uint32_t scores = 0, differ = 0;
    for (uint32_t i = 600 + length + 3 * hk_detector_span(&d); i < p.n; i++) {
      scores += !isnan(want.score[i]);
      differ += isnan(want.score[i]) != isnan(got.score[i]) || fabsf(want.score[i] - got.score[i]) > 0.01f;
    }
    assert_true(scores > 100);
    if (differ > 0)
      fail_msg("%u points of size %g: %u of %u scores afterwards differ", length, sizes[c / 2], differ, scores);
    points_free(&p);
    points_free(&q);
    results_free(&got);
    results_free(&want);
    series_free(&loud);
    series_free(&plain);
  }
}

/* Quiet stretches between loud ones: digits that float32 loses in the loud ones are there again in the quiet ones. */
static void quiet_after_loud(void **state)
{
  (void)state;
  const struct hk_detector d = detector_parsed("algorithm=graph,window=10,resident=300,interval=1s,alert=off");
  struct series series = series_new(SIGNAL_SINE, 3, 3000);
  for (uint32_t i = 0; i < series.n; i++)
    series.value[i] *= i / 170 % 2 ? 600 : 1;
  struct points p, q;
  struct results got = run_one(&d, kind, &series, &p), want = run_one(&d, backend_kind("reference"), &series, &q);
  uint32_t scores = 0, differ = 0;
  for (uint32_t i = 0; i < p.n; i++) {
    scores += !isnan(want.score[i]);
    differ += fabsf(want.score[i] - got.score[i]) > 0.005f;
  }
  print_message("# %u of %u scores differ\n", differ, scores);
  assert_true(scores > 1000 && differ * 100 < scores);
  points_free(&p);
  points_free(&q);
  results_free(&got);
  results_free(&want);
  series_free(&series);
}

/* The level and the unit of a sensor change no alert. */
static void units_do_not_matter(void **state)
{
  (void)state;
  static const struct {
    double factor, offset;
  } units[] = { { 1, 0 }, { 1, 1e6 }, { -3, 1e3 }, { 1e-25, 0 }, { 1e28, 0 } };
  const struct hk_detector d = detector_parsed("algorithm=graph,window=12,resident=500,interval=1s");
  struct results first = { 0 };
  for (uint32_t c = 0; c < sizeof units / sizeof *units; c++) {
    struct series series = series_new(SIGNAL_FREQUENCY, 5, 2000);
    for (uint32_t i = 0; i < series.n; i++)
      series.value[i] = series.value[i] * units[c].factor + units[c].offset;
    struct points p;
    struct results got = run_one(&d, kind, &series, &p);
    if (c == 0)
      first = got;
    assert_int_equal(got.n_events, first.n_events);
    assert_true(got.n_events >= 2);
    for (uint32_t i = 0; i < got.n_events; i++) {
      assert_int_equal(got.event[i].kind, first.event[i].kind);
      assert_true(llabs(got.event[i].instant - first.event[i].instant) <= 3 * (int64_t)TEST_INTERVAL);
      assert_true(llabs(got.event[i].time - first.event[i].time) <= 6 * (int64_t)TEST_INTERVAL);
    }
    if (c > 0)
      results_free(&got);
    points_free(&p);
    series_free(&series);
  }
  results_free(&first);
}

/* A change of frequency and level: raised soon after it, at an instant close to it, with the levels on either side; estimated
 * again, closer, when the new segment has grown; cleared when that is as long as two shortest ones; scores stop meanwhile. */
static void a_change_is_one_alert(void **state)
{
  (void)state;
  const struct hk_detector d = detector_parsed("algorithm=graph,window=12,resident=600,interval=1s");
  const uint32_t n = form == SANITIZE ? 620 : 2000, warm = 11 * d.window - 1;
  struct series series = series_new(SIGNAL_FREQUENCY, 5, n);
  const int64_t change = series.time[n / 2 + 1];
  for (uint32_t i = n / 2 + 1; i < n; i++)
    series.value[i] += 40;
  struct points p;
  struct results got = run_one(&d, kind, &series, &p);
  assert_int_equal(got.n_events, 3);
  const struct hk_event *raised = &got.event[0], *corrected = &got.event[1], *cleared = &got.event[2];
  assert_int_equal(raised->kind, HK_EVENT_RAISED);
  assert_int_equal(raised->number, 1);
  assert_true(raised->time == p.time[raised->index] && raised->time > change && raised->time < change + 200ll * TEST_INTERVAL);
  assert_true(llabs(raised->instant - change) <= 5 * 12 * (int64_t)TEST_INTERVAL);
  assert_true(raised->from < raised->instant && raised->from >= raised->time - 600ll * TEST_INTERVAL);
  assert_true(raised->score > 0.5f && raised->score == got.score[raised->index]);
  assert_true(fabs(raised->before) < 2.5 && raised->after > 10 && raised->after < 41);
  assert_int_equal(cleared->kind, HK_EVENT_CLEARED);
  assert_int_equal(cleared->number, 1);
  assert_int_equal(corrected->kind, HK_EVENT_CORRECTED);
  assert_int_equal(corrected->number, 1);
  assert_int_equal(corrected->index + 1, cleared->index);
  assert_true(llabs(corrected->instant - change) <= 14 * (int64_t)TEST_INTERVAL);
  assert_true(llabs(corrected->instant - change) <= llabs(raised->instant - change));
  assert_true(corrected->from == raised->from && corrected->score == raised->score && corrected->margin == raised->margin);
  assert_true(fabs(corrected->before) < 2.5 && corrected->after > raised->after + 5 && corrected->after < 41);
  assert_true(cleared->instant == corrected->instant && cleared->score == raised->score && cleared->after == corrected->after);
  for (uint32_t i = 0; i < n; i++) {
    const bool fresh = i < warm || (i > raised->index && i <= cleared->index);
    assert_int_equal(got.state[i], i + 1 < warm || (i >= raised->index && i <= cleared->index && i != raised->index)
                                       ? HK_STATE_WARMING
                                       : HK_STATE_OK);
    assert_true(!fresh || i + 1 == warm || isnan(got.score[i]));
    assert_true(isnan(got.score[i]) || (got.score[i] >= 0 && got.score[i] < 1));
    assert_true(isnan(got.score[i]) || i == raised->index || got.score[i] <= 0.5f);
  }
  points_free(&p);
  results_free(&got);
  series_free(&series);
}

/* Events of a detector on a series, but for corrections. */
static uint32_t events_of(const char *text, const struct series *series, struct hk_event *out, uint32_t most, uint32_t states[5])
{
  const struct hk_detector d = detector_parsed(text);
  struct points p;
  struct results got = run_one(&d, kind, series, &p);
  uint32_t n = 0;
  for (uint32_t i = 0; i < p.n; i++)
    states[got.state[i]]++;
  for (uint32_t i = 0; i < got.n_events; i++) {
    if (got.event[i].kind == HK_EVENT_CORRECTED)
      continue;
    if (n < most)
      out[n] = got.event[i];
    n++;
  }
  points_free(&p);
  results_free(&got);
  return n;
}

/* A long hole clears an alert at once, and all starts over; where over a tenth was filled in there are scores and no alerts; in
 * the cool-down there are none. */
static void windows_and_alerts(void **state)
{
  (void)state;
  static const char text[] = "algorithm=graph,window=12,resident=600,interval=1s";
  const struct hk_detector d = detector_parsed(text);
  struct hk_event event[16];
  uint32_t states[5] = { 0 }, k = 0;
  struct series series = series_new(SIGNAL_FREQUENCY, 5, 26000); /* it changes where a hole is rare */
  uint32_t n = events_of(text, &series, event, 16, states);
  assert_true(n < 16);
  while (k < n && (event[k].kind != HK_EVENT_RAISED || event[k].index <= HK_HOLE_MEMORY * hk_detector_span(&d)))
    k++;
  assert_true(k + 1 < n);
  const uint32_t raised = event[k].index;
  assert_true(event[k + 1].index > raised + 5);
  for (uint32_t i = raised + 4; i < series.n; i++) /* a hole while the alert is raised */
    series.time[i] += 1000ll * TEST_INTERVAL;
  memset(states, 0, sizeof states);
  n = events_of(text, &series, event, 16, states);
  assert_true(k + 1 < n && event[k + 1].kind == HK_EVENT_CLEARED && event[k + 1].index == raised + 4);
  assert_true(states[HK_STATE_WARMING] >= 2 * (11 * 12 - 2));
  series_free(&series);

  series = series_new(SIGNAL_FREQUENCY, 5, 2000);
  for (uint32_t i = 0; i < series.n; i++) /* every sixth is missing */
    series.time[i] += (i / 5) * (int64_t)TEST_INTERVAL;
  memset(states, 0, sizeof states);
  assert_int_equal(events_of(text, &series, event, 4, states), 0);
  assert_true(states[HK_STATE_GAP] > 1500);
  series_free(&series);

  series = series_new(SIGNAL_FREQUENCY, 5, 1200);
  const struct series whole = series_new(SIGNAL_NOISE, 5, 1600);
  for (uint32_t i = 0; i < 1200; i++)
    ((double *)whole.value)[i] = series.value[i]; /* a sine, a faster one, noise */
  const uint32_t both = events_of(text, &whole, event, 4, states);
  assert_true(both >= 3);
  char cooling[128];
  snprintf(cooling, sizeof cooling, "%s,cooldown=600", text);
  assert_true(event[2].index < event[1].index + 600);
  assert_true(events_of(cooling, &whole, event, 4, states) >= 3 && event[2].index > event[1].index + 600);
  series_free(&series);
  struct series done = whole;
  series_free(&done);
}

/* A first value far from all others: resident values and levels are moved to a reference near the others; results do not change.
 */
static void the_reference_moves(void **state)
{
  (void)state;
  struct hk_event event[4];
  uint32_t states[5] = { 0 };
  struct series series = series_new(SIGNAL_SINE, 4, 2500);
  series.value[0] = 400;
  assert_int_equal(events_of("algorithm=graph,window=12,resident=600,level=0.1,interval=1s", &series, event, 4, states), 0);
  series_free(&series);
}

/* alert = off: scores, and nothing is ever dropped; a higher threshold raises later. */
static void thresholds(void **state)
{
  (void)state;
  static const char *const texts[] = { "alert=off", "alert=0.3", "alert=0.5", "alert=0.55", "alert=0.5,hold=4" };
  uint32_t first[5] = { 0 };
  for (uint32_t c = 0; c < 5; c++) {
    char text[128];
    snprintf(text, sizeof text, "algorithm=graph,window=12,resident=600,interval=1s,%s", texts[c]);
    const struct hk_detector d = detector_parsed(text);
    struct series series = series_new(SIGNAL_FREQUENCY, 5, 2000);
    struct points p;
    struct results got = run_one(&d, kind, &series, &p);
    assert_true(c == 0 ? got.n_events == 0 : got.n_events >= 2);
    first[c] = c == 0 ? 0 : got.event[0].index;
    float top = 0;
    for (uint32_t i = 0; i < p.n; i++)
      top = got.score[i] > top ? got.score[i] : top;
    assert_true(top > 0.58f || c > 0);
    points_free(&p);
    results_free(&got);
    series_free(&series);
  }
  assert_true(first[1] < first[2] && first[2] < first[3]);
  assert_int_equal(first[4], first[2] + 3 * 3); /* stride w / 4 = 3 */
}

/* A step, and a larger one while its alert stands: the end of the alert has the highest score since. */
static void shift_tells_the_highest_score(void **state)
{
  (void)state;
  const struct hk_detector d = detector_parsed("algorithm=shift,window=20,alert=0.35,interval=1s");
  struct series series = series_new(SIGNAL_NOISE, 5, 2100);
  for (uint32_t i = 2000; i < series.n; i++)
    series.value[i] += i < 2036 ? 1.5 : 30;
  struct points p;
  struct results got = run_one(&d, kind, &series, &p);
  const struct hk_event *raised = NULL, *cleared = NULL;
  for (uint32_t i = 0; i < got.n_events; i++) {
    const struct hk_event *e = &got.event[i];
    if (e->kind == HK_EVENT_RAISED && e->index > 2000 && !raised)
      raised = e;
    if (e->kind == HK_EVENT_CLEARED && raised && e->number == raised->number)
      cleared = e;
  }
  assert_true(raised && cleared && raised->index < 2036);
  float highest = 0;
  for (uint32_t i = raised->index; i <= cleared->index; i++)
    highest = got.score[i] > highest ? got.score[i] : highest;
  assert_true(highest > raised->score + 0.05f && cleared->score == highest);
  assert_true(fabsf(cleared->margin / (cleared->score / (1 - cleared->score) / (0.35f / 0.65f)) - 1) < 1e-3f);
  points_free(&p);
  results_free(&got);
  series_free(&series);
}

/* Samples are missing when a step's peak is over: in state gap nothing is raised. */
static void shift_raises_nothing_in_a_gap(void **state)
{
  (void)state;
  const struct hk_detector d = detector_parsed("algorithm=shift,window=20,interval=1s");
  uint32_t raised = 0, gaps = 0;
  for (uint64_t seed = 0; seed < 40; seed++) {
    struct series series = series_new(SIGNAL_NOISE, seed, 2060);
    for (uint32_t i = 2000; i < series.n; i++) {
      series.value[i] += 8;
      series.time[i] += (i > 2005 + seed % 20) * 2 * (int64_t)TEST_INTERVAL; /* twice two in a row: too many of 43 */
      series.time[i] += (i > 2006 + seed % 20) * 3 * (int64_t)TEST_INTERVAL;
    }
    struct points p;
    struct results got = run_one(&d, kind, &series, &p);
    for (uint32_t i = 0; i < p.n; i++)
      gaps += got.state[i] == HK_STATE_GAP && !isnan(got.score[i]);
    for (uint32_t i = 0; i < got.n_events; i++) {
      raised += got.event[i].kind == HK_EVENT_RAISED && got.event[i].index > 2000;
      assert_true(got.event[i].kind != HK_EVENT_RAISED || got.state[got.event[i].index] == HK_STATE_OK);
    }
    points_free(&p);
    results_free(&got);
    series_free(&series);
  }
  print_message("# %u alerts, %u scores in gaps\n", raised, gaps);
  assert_true(gaps > 40 && raised > 0);
}

/* A sensor of a detector that continues with another one after points 0..at-1, as over a restart. */
static struct results run_over(const struct hk_detector *before, const struct hk_detector *after, const struct points *p,
                               uint32_t at)
{
  struct hk_backend *first = backend_open(kind, before, 1, 1), *second = backend_open(kind, after, 1, 1);
  struct results results = results_new(p->n);
  sensor_add(first, 0, 0, 1);
  sensor_add(second, 0, 0, 1);
  feed(first, p, 0, at, 64, 0, &results);
  sensor_copy(first, 0, second, 0);
  feed(second, p, at, p->n, 64, 0, &results);
  first->ops->close(first);
  second->ops->close(second);
  return results;
}

/* A restart with alert = off while an alert is raised: it is cleared with the next point. */
static void alerts_that_are_off_are_cleared(void **state)
{
  (void)state;
  static const char *const texts[] = { "algorithm=graph,window=12,resident=600,interval=1s",
                                       "algorithm=shift,window=12,interval=1s",
                                       "algorithm=ika,window=12,interval=1s,alert=0.01" };
  for (uint32_t c = 0; c < sizeof texts / sizeof *texts; c++) {
    char off[128];
    snprintf(off, sizeof off, "%s,alert=off", c == 2 ? "algorithm=ika,window=12,interval=1s" : texts[c]);
    const struct hk_detector on = detector_parsed(texts[c]), none = detector_parsed(off);
    struct series series = series_new(SIGNAL_FREQUENCY, 5, 2000);
    for (uint32_t i = series.n / 2 + 1; i < series.n; i++)
      series.value[i] += 40;
    struct points p;
    struct results whole = run_one(&on, kind, &series, &p);
    uint32_t at = 0;
    while (at < whole.n_events && (whole.event[at].kind != HK_EVENT_RAISED || whole.event[at].index < p.n / 2))
      at++;
    assert_true(at + 1 < whole.n_events && whole.event[at + 1].index > whole.event[at].index + 2);
    const struct hk_event raised = whole.event[at];
    struct results got = run_over(&on, &none, &p, raised.index + 1);
    assert_int_equal(got.n_events, at + 2);
    const struct hk_event *cleared = &got.event[at + 1];
    assert_true(cleared->kind == HK_EVENT_CLEARED && cleared->number == raised.number && cleared->index == raised.index + 1);
    results_free(&whole);
    results_free(&got);
    points_free(&p);
    series_free(&series);
  }
}

/* A restart with other keys that do not change the state: the sensor continues, with the same scores unless holes matter
 * to the keys. */
static void goes_on_with_other_keys(void **state)
{
  (void)state;
  static const struct {
    const char *before, *after;
    bool same;
  } cases[] = {
    { "algorithm=graph,window=12,resident=300,max_fill=3", "algorithm=graph,window=12,resident=300,max_fill=7", true },
    { "algorithm=graph,window=12,resident=300,max_fill=7", "algorithm=graph,window=12,resident=300,max_fill=3", true },
    { "algorithm=graph,window=12,resident=300,stride=9", "algorithm=graph,window=12,resident=300,stride=2", false },
    { "algorithm=shift,window=12,baseline=9", "algorithm=shift,window=12,baseline=2", false },
    { "algorithm=shift,window=12,max_fill=2", "algorithm=shift,window=12,max_fill=3", false },
    { "algorithm=shift,window=12,max_fill=9", "algorithm=shift,window=12,max_fill=3", false },
    { "algorithm=ika,window=12,baseline=4", "algorithm=ika,window=12,baseline=2", false },
  };
  for (uint32_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char before[128], after[128];
    snprintf(before, sizeof before, "%s,interval=1s,alert=off", cases[c].before);
    snprintf(after, sizeof after, "%s,interval=1s,alert=off", cases[c].after);
    const struct hk_detector from = detector_parsed(before), to = detector_parsed(after);
    struct series series = series_new(SIGNAL_SINE, 4, 1500);
    struct points p;
    struct results whole = run_one(&from, kind, &series, &p), got = run_over(&from, &to, &p, 1001);
    uint32_t warming = 0, scores = 0;
    for (uint32_t i = 1001; i < p.n; i++) {
      warming += got.state[i] == HK_STATE_WARMING;
      scores += !isnan(got.score[i]);
      if (cases[c].same && memcmp(&got.score[i], &whole.score[i], sizeof *got.score) != 0)
        fail_msg("%s, then %s: score %u is %g, not %g", before, after, i, (double)got.score[i], (double)whole.score[i]);
    }
    if (warming > 1 || scores < 100)
      fail_msg("%s, then %s: %u points warm up, %u scores", before, after, warming, scores);
    results_free(&whole);
    results_free(&got);
    points_free(&p);
    series_free(&series);
  }
}

int main(int argc, char **argv)
{
  int code;
  if (!(kind = backend_asked(argc, argv, &form, &code)))
    return code;
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(outliers_are_forgotten),
    cmocka_unit_test(quiet_after_loud),
    cmocka_unit_test(units_do_not_matter),
    cmocka_unit_test(a_change_is_one_alert),
    cmocka_unit_test(windows_and_alerts),
    cmocka_unit_test(the_reference_moves),
    cmocka_unit_test(thresholds),
    cmocka_unit_test(shift_tells_the_highest_score),
    cmocka_unit_test(shift_raises_nothing_in_a_gap),
    cmocka_unit_test(alerts_that_are_off_are_cleared),
    cmocka_unit_test(goes_on_with_other_keys),
  };
  const struct CMUnitTest every_way[] = {
    cmocka_unit_test(a_change_is_one_alert),
  };
  return form == SANITIZE ? cmocka_run_group_tests_name("graph_series", every_way, NULL, NULL)
                          : cmocka_run_group_tests_name("graph_series", tests, NULL, NULL);
}
