/* Conformance, second half: the guarantees of a backend whatever the scores are. The same points give the same
 * results bit for bit however they are cut into batches, with any number of threads and any neighbours, and through
 * an export and import; events are those of the reference backend. Arguments: BACKEND [brief|sanitize]: brief has fewer small
 * batches; sanitize, for sanitizers that slow every launch down, and scores a thousand times, fewer sensors too, whose windows
 * the CPU backend has filled: a few points of each are left. */
#include "tests/backend/harness.h"

#include <errno.h>
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

/* Several of different widths, so that they share batches; each with alerts, since these reach back into the baseline. */
static const char *const detector_texts[] = {
  "window=16,alert=0.3,signal=0,interval=1s",
  "window=33,alert=adaptive,false_alarms=50000,min_score=0.02",
  "window=20,algorithm=svd,alert=0.3,cooldown=0,interval=1s",
  "window=24,stride=3,alert=0.3,hold=2,interval=1s",
  "window=48,preset=paper,alert=off", /* without re-orthogonalisation, where float32 and double may decide differently */
  "window=17,krylov=17,rank=2,fill=linear,max_fill=5,alert=0.5,signal=0",
  "window=90,gap=20,alert=0.3,signal=0,interval=1s",
  "window=115,rank=4,gap=20,alert=0.3,signal=0,interval=1s",
};
#define DETECTORS (sizeof detector_texts / sizeof *detector_texts)
#define SENSORS (DETECTORS * SIGNALS)
#define SANITIZE_SENSORS (DETECTORS * 4)
#define POINTS 300
/* Sanitize: the widest windows are full when signals change, in the middle of these points; of those up to TO the last REST are
 * left. */
#define SANITIZE_POINTS 560
#define SANITIZE_TO 297
#define SANITIZE_REST 3

static uint32_t sensors = SENSORS; /* that there are */

static struct hk_detector tested[DETECTORS];

static int set_up(void **state)
{
  static const enum signal changing[] = { SIGNAL_STEP, SIGNAL_FREQUENCY, SIGNAL_UNDERTONE, SIGNAL_HOLES };
  static struct conformance r = { .detector = tested, .detectors = DETECTORS };
  struct series series[SENSORS];
  r.sensors = sensors;
  for (uint32_t i = 0; i < DETECTORS; i++)
    tested[i] = detector_parsed(detector_texts[i]);
  for (uint32_t i = 0; i < sensors; i++)
    series[i] =
        series_new(form == SANITIZE ? changing[i / DETECTORS] : i / DETECTORS, i, form == SANITIZE ? SANITIZE_POINTS : POINTS);
  if (form == SANITIZE) {
    for (uint32_t i = 0; i < sensors; i++)
      series[i].n = SANITIZE_TO;
    r.filled = backend_filled(tested, DETECTORS, series, sensors, SANITIZE_REST);
  }
  r.points = points_of(series, sensors, 7);
  r.expected = conformance_run(&r, kind, &r.points, 5000, 0);
  *state = &r;
  return 0;
}

static int tear_down(void **state)
{
  conformance_free(*state);
  return 0;
}

/* From the middle on `n` points in batches of 1 to `cut`, the others in large ones. */
static void check_small(const struct conformance *r, uint32_t n, uint32_t cut, uint64_t random, const char *what)
{
  const uint32_t middle = r->points.n / 2;
  struct hk_backend *b = conformance_open(r, kind, 0);
  struct results got = results_new(r->points.n);
  feed(b, &r->points, 0, middle, 5000, 0, &got);
  feed(b, &r->points, middle, middle + n, cut, random, &got);
  feed(b, &r->points, middle + n, r->points.n, 5000, 0, &got);
  b->ops->close(b);
  results_same(&r->expected, &got, &r->points, what);
  results_free(&got);
}

static void cuts_do_not_show(void **state)
{
  const struct conformance *r = *state;
  const uint32_t n = r->points.n;
  check_small(r, form == SANITIZE ? 25 : form >= BRIEF ? n / 100 : n / 2, 7, 1, "batches of 1 to 7");
  if (form != SANITIZE)
    conformance_same(r, kind, 700, 2, "batches of 1 to 700");
  conformance_same(r, kind, n, 0, "as large as can be");
  check_small(r, form == SANITIZE ? 5 : form >= BRIEF ? n / 400 : n / 10, 1, 0, "one point a batch");
}

static void threads_do_not_show(void **state)
{
  for (uint32_t threads = 1; threads <= (form == SANITIZE && kind->threads == 1 ? 1 : 5); threads += 2) {
    const struct backend_kind how = { kind->name, kind->open, threads, 0 };
    conformance_same(*state, &how, 5000, 0, "another number of threads");
  }
}

/* Every seventh sensor sends only values that are rejected: the results of the others do not change. */
static void neighbours_are_left_alone(void **state)
{
  const struct conformance *r = *state;
  static const double bad[] = { (double)NAN, (double)INFINITY, -(double)INFINITY, 1e300 };
  struct points p = r->points;
  double *values = malloc(p.n * sizeof *values);
  assert_non_null(values);
  for (uint32_t i = 0; i < p.n; i++)
    values[i] = p.slot[i] % 7 == 0 ? bad[i % 4] : p.value[i];
  p.value = values;
  struct results got = conformance_run(r, kind, &p, 5000, 0);
  uint32_t others = 0;
  for (uint32_t i = 0; i < p.n; i++) {
    if (p.slot[i] % 7 == 0) {
      assert_true(got.state[i] == HK_STATE_REJECTED && isnan(got.score[i]));
    } else {
      others++;
      if (got.state[i] != r->expected.state[i] || memcmp(&got.score[i], &r->expected.score[i], sizeof(float)) != 0)
        fail_msg("point %u of slot %u changed", i, p.slot[i]);
    }
  }
  assert_true(others > p.n / 2);
  results_free(&got);
  free(values);
}

/* Moves the sensors from one backend to another, to other slots, in the middle of their points. */
static void state_goes_on(void **state)
{
  const struct conformance *r = *state;
  const uint32_t half = r->points.n / 2;
  struct results got = results_new(r->points.n);
  struct hk_backend *from = conformance_open(r, kind, 0), *to = conformance_open(r, kind, sensors - 1);
  feed(from, &r->points, 0, half, 1000, 0, &got);
  for (uint32_t i = 0; i < sensors; i++)
    sensor_copy(from, i, to, sensors - 1 - i);
  from->ops->close(from);
  struct points p = r->points;
  p.slot = malloc(p.n * sizeof *p.slot);
  assert_non_null(p.slot);
  for (uint32_t i = 0; i < p.n; i++)
    p.slot[i] = sensors - 1 - r->points.slot[i];
  feed(to, &p, half, p.n, 1000, 0, &got);
  to->ops->close(to);
  for (uint32_t i = 0; i < got.n_events; i++)
    got.event[i].slot = r->points.slot[got.event[i].index];
  if (strcmp(kind->name, "reference") != 0) /* which rounds to float32 */
    results_same(&r->expected, &got, &r->points, "moved in the middle");
  results_free(&got);
  free(p.slot);
}

static bool near(double a, double b, double relative)
{
  return fabs(a - b) <= relative * fmax(fabs(a), fabs(b)) + 1e-30;
}

/* The signals whose scores are far from any threshold, so that rounding decides nothing. */
static void events_are_those_of_the_reference(void **state)
{
  const struct conformance *r = *state;
  struct results want = conformance_run(r, backend_kind("reference"), &r->points, 5000, 0);
  uint32_t raised = 0, i = 0, j = 0;
  for (; i < want.n_events && j < r->expected.n_events; i++, j++) {
    const struct hk_event *x = &want.event[i], *y = &r->expected.event[j];
    const int64_t interval = 2 * (int64_t)TEST_INTERVAL;
    if (x->index != y->index || x->kind != y->kind || x->number != y->number || x->time != y->time || x->from != y->from ||
        llabs(x->instant - y->instant) > interval || fabs((double)(x->score - y->score)) > 2e-4 ||
        !near(x->before, y->before, 1e-3) || !near(x->after, y->after, 1e-3))
      fail_msg("event %u of slot %u (signal %u, detector %u): point %u kind %u number %u instant %lld score %g levels %g %g; the "
               "reference says slot %u point %u kind %u number %u instant %lld score %g levels %g %g",
               i, y->slot, (unsigned)(y->slot / DETECTORS), (unsigned)(y->slot % DETECTORS), y->index, y->kind, y->number,
               (long long)y->instant, (double)y->score, y->before, y->after, x->slot, x->index, x->kind, x->number,
               (long long)x->instant, (double)x->score, x->before, x->after);
    raised += x->kind == HK_EVENT_RAISED;
  }
  assert_int_equal(want.n_events, r->expected.n_events);
  assert_true(raised > (form == SANITIZE ? 0 : sensors / 5));
  print_message("# %u events, %u raised\n", want.n_events, raised);
  results_free(&want);
}

int main(int argc, char **argv)
{
  int code;
  if (!(kind = backend_asked(argc, argv, &form, &code)))
    return code;
  sensors = form == SANITIZE ? SANITIZE_SENSORS : SENSORS;
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(cuts_do_not_show),
    cmocka_unit_test(threads_do_not_show),
    cmocka_unit_test(neighbours_are_left_alone),
    cmocka_unit_test(state_goes_on),
    cmocka_unit_test(events_are_those_of_the_reference),
  };
  return cmocka_run_group_tests_name("road", tests, set_up, tear_down);
}
