/* Conformance, fourth part: crowds. A device scores many sensors side by side, in lanes and bundles that may be full, partly
 * filled or hold one sensor alone; the results of a sensor must not depend on this. The same sensors are scored all together, in
 * groups of 1 to 65, with other interleavings of their points (so that sensors with many points in a batch are next to sensors
 * with one), and with neighbours whose values are rejected: the same scores and states bit for bit. Arguments: BACKEND
 * [brief|sanitize]: brief has few scores, of windows that the CPU backend has filled, larger batches and fewer groups; sanitize,
 * for sanitizers that slow every launch down, and scores a thousand times, one or two scores, fewer sensors, groups and detectors
 * too.
 */
#include "tests/backend/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SENSORS 100
#define SANITIZE_SENSORS 66
#define SANITIZE_DETECTORS 13 /* the first, and of them each sixth */
#define SCORES 6

static const struct backend_kind *kind;
static enum form form;
static uint32_t sensors = SENSORS; /* that there are */

/* Widths on both sides of those that fill a group of lanes, and all keys that change the data in registers. */
static const char *const detectors[] = {
  "window=9",
  "window=16",
  "window=17",
  "window=32",
  "window=40,alert=0.3",
  "window=41,scale=window",
  "window=48,alert=adaptive,false_alarms=50000,min_score=0.02",
  "window=56,present=power",
  "window=57,operator=gram",
  "window=64,preset=paper",
  "window=77",
  "window=80,alert=0.3,signal=0",
  "window=96",
  "window=96,preset=precise",
  "window=112",
  "window=113",
  "window=150,stride=2",
  "window=160,rank=4",
  "window=200",
  "window=224",
  "window=300",
  "window=320",
  "window=448",
  "window=500",
  "window=700,gap=1",
  "window=33,algorithm=svd",
  "window=90,algorithm=svd,rank=12",
};
#define DETECTORS (sizeof detectors / sizeof *detectors)

static const uint32_t groups[] = { 1, 2, 17, 31, 32, 33, 65 };

struct crowd {
  struct hk_detector detector;
  struct series series[SENSORS];
  struct hk_backend *filled; /* sensors as they are before their series; NULL: there is nothing before */
  struct points points;
  struct results expected;
};

static void add(const struct crowd *c, struct hk_backend *b, uint32_t slot)
{
  sensor_add(b, slot, 0, slot);
  if (c->filled)
    sensor_copy(c->filled, slot, b, slot);
}

/* Runs the points of p and gives back their results in the order of `points` sorted by sensor, so that interleavings compare. */
static struct results run(const struct crowd *c, const struct points *p, uint32_t cut, uint64_t random)
{
  struct hk_backend *b = backend_open(kind, &c->detector, 1, sensors);
  for (uint32_t i = 0; i < p->slots; i++)
    add(c, b, i);
  struct results mixed = results_new(p->n), sorted = results_new(p->n);
  feed(b, p, 0, p->n, cut, random, &mixed);
  b->ops->close(b);
  uint32_t at[SENSORS + 1] = { 0 };
  for (uint32_t i = 0; i < p->slots; i++)
    at[i + 1] = at[i] + c->series[i].n;
  for (uint32_t i = 0; i < p->n; i++) {
    const uint32_t to = at[p->slot[i]]++;
    sorted.score[to] = mixed.score[i];
    sorted.state[to] = mixed.state[i];
  }
  results_free(&mixed);
  return sorted;
}

/* Results of sensors 0..n-1, in order of sensor. left_out: sensors whose number it divides are not compared; 0 = none. */
static void check_same(const struct crowd *c, const struct results *got, uint32_t n, uint32_t left_out, const char *what)
{
  uint32_t at = 0;
  for (uint32_t slot = 0; slot < n; slot++) {
    for (uint32_t i = 0; i < c->series[slot].n; i++, at++) {
      const bool same =
          got->state[at] == c->expected.state[at] && memcmp(&got->score[at], &c->expected.score[at], sizeof(float)) == 0;
      if (!same && (left_out == 0 || slot % left_out != 0))
        fail_msg("%s, %u sensors: point %u of slot %u: state %u score %.9g, and among all state %u score %.9g", what, n, i, slot,
                 got->state[at], (double)got->score[at], c->expected.state[at], (double)c->expected.score[at]);
    }
  }
}

static void groups_do_not_show(const struct crowd *c)
{
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
    if (form != WHOLE && groups[i] != 33 && (form == SANITIZE || groups[i] % 16 != 1))
      continue;
    struct points p = points_mix(c->series, groups[i], 11);
    struct results got = run(c, &p, 100000, 0);
    check_same(c, &got, groups[i], 0, "a group");
    results_free(&got);
    points_free(&p);
  }
}

static void interleaving_does_not_show(const struct crowd *c)
{
  struct points p = points_mix(c->series, sensors, 23);
  struct results got = run(c, &p, form == SANITIZE ? 50 : form >= BRIEF ? 5000 : 500, 5);
  check_same(c, &got, sensors, 0, "another interleaving");
  results_free(&got);
  points_free(&p);
}

/* One sensor of each seven sends only values that are rejected. */
static void neighbours_do_not_show(const struct crowd *c)
{
  static const double bad[] = { (double)NAN, (double)INFINITY, -(double)INFINITY, 1e300 };
  struct points p = c->points;
  p.value = malloc(p.n * sizeof *p.value);
  assert_non_null(p.value);
  for (uint32_t i = 0; i < p.n; i++)
    p.value[i] = p.slot[i] % 7 == 0 ? bad[i % 4] : c->points.value[i];
  struct results got = run(c, &p, 100000, 0);
  check_same(c, &got, sensors, 7, "next to what is not a value");
  for (uint32_t i = 0; i < c->series[0].n; i++)
    assert_true(got.state[i] == HK_STATE_REJECTED && isnan(got.score[i]));
  results_free(&got);
  free(p.value);
}

static void crowds_do_not_show(void **state)
{
  struct crowd c = { .filled = NULL };
  char text[256];
  snprintf(text, sizeof text, "%s,interval=1s", (const char *)*state);
  c.detector = detector_parsed(text);
  const uint32_t more = form == SANITIZE ? 0 : form >= BRIEF ? 2 : SCORES;
  for (uint32_t i = 0; i < sensors; i++) /* i % 3: sensors that are due at different points */
    c.series[i] = series_new(i % SIGNALS, i, hk_detector_span(&c.detector) + more * c.detector.stride + i % 3);
  if (form != WHOLE)
    c.filled = backend_filled(&c.detector, 1, c.series, sensors, 2 + more);
  c.points = points_mix(c.series, sensors, 3);
  c.expected = run(&c, &c.points, 100000, 0);
  uint32_t scores = 0;
  for (uint32_t i = 0; i < c.points.n; i++)
    scores += !isnan(c.expected.score[i]);
  assert_true(scores > sensors);
  groups_do_not_show(&c);
  interleaving_does_not_show(&c);
  neighbours_do_not_show(&c);
  if (c.filled)
    c.filled->ops->close(c.filled);
  results_free(&c.expected);
  points_free(&c.points);
  for (uint32_t i = 0; i < sensors; i++)
    series_free(&c.series[i]);
}

int main(int argc, char **argv)
{
  int code;
  if (!(kind = backend_asked(argc, argv, &form, &code)))
    return code;
  sensors = form == SANITIZE ? SANITIZE_SENSORS : SENSORS;
  struct CMUnitTest tests[DETECTORS];
  size_t n = 0;
  for (size_t i = 0; i < (form == SANITIZE ? SANITIZE_DETECTORS : DETECTORS); i += form == SANITIZE ? 6 : 1)
    tests[n++] = (struct CMUnitTest){ detectors[i], crowds_do_not_show, NULL, NULL, (void *)(uintptr_t)detectors[i] };
  return _cmocka_run_group_tests("crowd", tests, n, NULL, NULL);
}
