/* algorithm = graph, shift and limit: the guarantees of a backend for any signal. The same points give the same results bit
 * for bit however they are cut into batches, with any number of threads, and through an export and import; the float32
 * backend finds the changes that the reference finds; no sample does lasting harm; and manipulated states are
 * refused or harmless. Changes in a single series are tested by test_graph_series.c; whole recordings are compared with an
 * independent program in test_graph_recordings.py. Arguments: BACKEND [sanitize]: sanitize, for sanitizers that slow every launch
 * and point down a hundred times, has fewer sensors, whose graphs the CPU backend has filled, and leaves out what goes the same
 * ways to hold numbers against each other. */
#include "cpu/graph/state.h"
#include "tests/backend/harness.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include <cmocka.h>

static const struct backend_kind *kind;
static enum form form;

/* Short ones, so that the columns wrap and segments start over; the last is over a slab of memory. */
static const char *const detector_texts[] = {
  "algorithm=graph,window=8,resident=88,shortest=2,interval=1s",
  "algorithm=graph,window=10,resident=200,level=0.1,roughness=0.85,locality=0.2,neighbours=5,interval=1s",
  "algorithm=graph,window=9,resident=300,fill=linear,max_fill=5,stride=1,alert=0.3,neighbours=2,hold=2,shortest=3,locality=2",
  "algorithm=graph,window=17,resident=257,stride=7,alert=off,neighbours=1,interval=1s",
  "algorithm=graph,window=21,alert=0.4,cooldown=30,neighbours=7,interval=1s",
  "algorithm=graph,window=16,resident=6000,max_fill=64,interval=1s",
  "algorithm=graph,window=auto,resident=400,interval=1s",
  "algorithm=shift,window=10,alert=0.15,interval=1s",
  "algorithm=shift,window=41,stride=3,baseline=2,hold=2,alert=0.3,cooldown=20,max_fill=10,fill=linear,interval=1s",
  "algorithm=limit,limit=1.5,lower=-1.5,window=2m,horizon=20m,hold=2,confidence=1.5,interval=1s",
  "algorithm=limit,limit=4,window=20m,horizon=100m",
};
#define DETECTORS (sizeof detector_texts / sizeof *detector_texts)
#define AUTO 6 /* the one that looks for its window, and a sensor of it */
#define SENSORS (DETECTORS * SIGNALS)
#define POINTS 800
#define MOVES (DETECTORS + 1)
#define LATE_POINTS 1200 /* more than the widest window of the default keys needs for a score */
/* Sanitize: signals change in the middle of these points; of those up to TO the last REST are left. Then sensor AUTO finds its
 * window, and sensor MOVES moves its reference, levels and all. */
#define SANITIZE_POINTS 400
#define SANITIZE_TO 288
#define SANITIZE_REST 6
#define SANITIZE_AUTO "algorithm=graph,window=auto,resident=120,interval=1s" /* in place of that */

/* Sanitize: signals of each detector. */
static const enum signal sanitize_signals[] = { SIGNAL_FREQUENCY, SIGNAL_SINE, SIGNAL_HOLES };
#define SANITIZE_SENSORS (DETECTORS * sizeof sanitize_signals / sizeof *sanitize_signals)

static uint32_t sensors = SENSORS; /* that there are */

static enum signal signal_of(uint32_t slot)
{
  return form == SANITIZE ? sanitize_signals[slot / DETECTORS] : slot / DETECTORS;
}

static struct hk_detector tested[DETECTORS];

/* Sanitize: sends sensor i's points up to the last few. */
static struct series series_up_to(uint32_t i)
{
  const struct hk_detector *d = &tested[i % DETECTORS];
  const uint32_t moved = 2 * hk_detector_span(d); /* looked at once a span */
  struct series s = series_new(signal_of(i), i, i == MOVES ? moved + SANITIZE_REST / 2 : SANITIZE_POINTS);
  if (i == MOVES)
    s.value[0] = 400; /* far from all others */
  else
    s.n = i == AUTO ? d->resident + SANITIZE_REST / 2 : SANITIZE_TO;
  return s;
}

static int set_up(void **state)
{
  static struct conformance r = { .detector = tested, .detectors = DETECTORS };
  struct series series[SENSORS];
  r.sensors = sensors;
  for (uint32_t i = 0; i < DETECTORS; i++)
    tested[i] = detector_parsed(form == SANITIZE && i == AUTO ? SANITIZE_AUTO : detector_texts[i]);
  for (uint32_t i = 0; i < sensors; i++)
    series[i] = form == SANITIZE ? series_up_to(i) : series_new(signal_of(i), i, POINTS);
  if (form == SANITIZE)
    r.filled = backend_filled(tested, DETECTORS, series, sensors, SANITIZE_REST);
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

static void cuts_do_not_show(void **state)
{
  const struct conformance *r = *state;
  conformance_same(r, kind, form == SANITIZE ? 100 : 700, 2, "small batches");
  if (form != SANITIZE)
    conformance_same(r, kind, 40, 1, "batches of 1 to 40");
  conformance_same(r, kind, r->points.n, 0, "as large as can be");
}

static void threads_do_not_show(void **state)
{
  for (uint32_t threads = 1; threads <= 5; threads += 4) {
    const struct backend_kind how = { kind->name, kind->open, threads, 0 };
    conformance_same(*state, &how, 5000, 0, "another number of threads");
  }
}

static void *exported(struct hk_backend *b, uint32_t slot, int64_t *size)
{
  *size = b->ops->export_(b, slot, NULL, 0);
  assert_true(*size > 0);
  void *bytes = malloc((size_t)*size);
  assert_non_null(bytes);
  assert_int_equal(b->ops->export_(b, slot, bytes, (size_t)*size), *size);
  return bytes;
}

/* Moves the sensors from one backend to another, to other slots, three times in the course of their points. */
static void state_goes_on(void **state)
{
  const struct conformance *r = *state;
  struct results got = results_new(r->points.n);
  struct points p = r->points;
  p.slot = malloc(p.n * sizeof *p.slot);
  assert_non_null(p.slot);
  memcpy(p.slot, r->points.slot, p.n * sizeof *p.slot);
  struct hk_backend *from = conformance_open(r, kind, 0);
  const uint32_t quarter = p.n / 4;
  for (uint32_t part = 0; part < 4; part++) {
    feed(from, &p, part * quarter, part == 3 ? p.n : (part + 1) * quarter, 1000, 0, &got);
    struct hk_backend *to = conformance_open(r, kind, part % 2 == 0 ? sensors - 1 : 0);
    for (uint32_t i = 0; i < sensors; i++)
      sensor_copy(from, i, to, sensors - 1 - i);
    from->ops->close(from);
    from = to;
    for (uint32_t i = 0; i < p.n; i++)
      p.slot[i] = sensors - 1 - p.slot[i];
  }
  from->ops->close(from);
  for (uint32_t i = 0; i < got.n_events; i++)
    got.event[i].slot = r->points.slot[got.event[i].index];
  if (strcmp(kind->name, "reference") != 0) /* which rounds to float32 */
    results_same(&r->expected, &got, &r->points, "moved in the middle");
  results_free(&got);
  free(p.slot);
}

/* Signals in which rounding does not decide between subsequences. For the others only the guarantees above hold: rounding decides
 * which of two equally near neighbours is taken. */
static bool decided(enum signal signal)
{
  switch (signal) {
  case SIGNAL_QUANTISED:
  case SIGNAL_UNDERTONE:
  case SIGNAL_PURE:
  case SIGNAL_CONSTANT:
  case SIGNAL_TINY:
  case SIGNAL_DENORMAL:
    return false;
  default:
    return true;
  }
}

static void results_are_those_of_the_reference(void **state)
{
  const struct conformance *r = *state;
  struct results want = conformance_run(r, backend_kind("reference"), &r->points, 5000, 0);
  uint32_t scores = 0, differ = 0, raised = 0, missed = 0, j = 0;
  for (uint32_t i = 0; i < r->points.n; i++) {
    const float a = want.score[i], b = r->expected.score[i];
    if (!decided(signal_of(r->points.slot[i])))
      continue;
    scores += !isnan(a);
    differ += isnan(a) != isnan(b) || fabsf(a - b) > 0.02f;
  }
  for (uint32_t i = 0; i < want.n_events; i++) {
    const struct hk_event *x = &want.event[i], *y = r->expected.event;
    if (!decided(signal_of(x->slot)) || x->kind != HK_EVENT_RAISED)
      continue;
    raised++;
    for (j = 0; j < r->expected.n_events; j++) {
      if (y[j].slot == x->slot && y[j].kind == x->kind && llabs(y[j].instant - x->instant) <= 3 * (int64_t)TEST_INTERVAL &&
          llabs(y[j].time - x->time) <= 20 * (int64_t)TEST_INTERVAL)
        break;
    }
    missed += j == r->expected.n_events;
  }
  print_message("# %u of %u scores differ; %u of %u alerts are not found\n", differ, scores, missed, raised);
  assert_true(form == SANITIZE ? scores > 30 && raised > 0 : scores > 10000 && raised > 15);
  assert_true(differ * 200 < scores && missed * 20 <= raised);
  results_free(&want);
}

/* Gives a slot the points from number 400 on. */
static void feed_slot(struct hk_backend *b, const struct points *p, uint32_t slot)
{
  struct points few = *p;
  uint32_t slots[40];
  int64_t times[40];
  for (uint32_t i = 0; i < 40; i++) {
    slots[i] = slot;
    times[i] = p->time[400 + i];
  }
  few.slot = slots;
  few.time = times;
  few.value = p->value + 400;
  few.slots = slot + 1;
  few.n = form == SANITIZE ? 2 : 40;
  struct results ignored = results_new(few.n);
  feed(b, &few, 0, few.n, 64, 0, &ignored);
  results_free(&ignored);
}

/* Invalid states are refused and change nothing; forged ones with a good checksum do no harm. */
static void bad_states(void **state)
{
  (void)state;
  const struct hk_detector detectors[] = { detector_parsed("algorithm=graph,window=10,resident=200,interval=1s"),
                                           detector_parsed("algorithm=graph,window=10,resident=201,interval=1s"),
                                           detector_parsed("algorithm=graph,window=10,resident=200,neighbours=4,interval=1s"),
                                           detector_parsed("algorithm=graph,window=10,resident=200,level=1,interval=1s"),
                                           detector_parsed("algorithm=ika,window=10,gap=200,interval=1s") };
  struct hk_backend *b = backend_open(kind, detectors, 5, 6);
  struct series series = series_new(SIGNAL_SINE, 1, 700);
  struct points p = points_mix(&series, 1, 1);
  struct results results = results_new(p.n);
  for (uint32_t i = 0; i < 6; i++)
    sensor_add(b, i, i < 5 ? i : 0, 1);
  feed(b, &p, 0, form == SANITIZE ? 115 : 400, 64, 0, &results);
  int64_t size, again;
  uint8_t *bytes = exported(b, 0, &size), *other;
  for (uint32_t i = 1; i < 5; i++)
    assert_int_equal(b->ops->import_(b, i, bytes, (size_t)size), -EINVAL);
  other = exported(b, 4, &again);
  assert_int_equal(b->ops->import_(b, 0, other, (size_t)again), -EINVAL);
  free(other);
  uint64_t random = 1;
  for (uint32_t trial = 0; trial < (form == SANITIZE ? 30 : 3000); trial++) {
    uint8_t *bad = malloc((size_t)size); /* its own, so that a sanitizer sees every byte */
    assert_non_null(bad);
    memcpy(bad, bytes, (size_t)size);
    const size_t length = trial % 3 == 0 ? test_random(&random) % (uint64_t)size : (size_t)size;
    const size_t head = trial % 2 ? 700 : (size_t)size;
    bad[test_random(&random) % (length < head ? length + 1 : head)] ^= (uint8_t)(1 + test_random(&random) % 255);
    if (trial % 3 == 2) { /* made up */
      const uint64_t checksum = XXH64(bad, length - 8, 0);
      memcpy(bad + length - 8, &checksum, 8);
    }
    const int status = b->ops->import_(b, 5, bad, length);
    free(bad);
    assert_true(status == -EINVAL || (status == 0 && trial % 3 == 2));
    if (status == 0)
      feed_slot(b, &p, 5);
  }
  other = exported(b, 0, &again); /* the sensor whose state was refused continues unchanged */
  assert_int_equal(again, size);
  assert_memory_equal(other, bytes, (size_t)size);
  free(other);
  free(bytes);
  b->ops->close(b);
  points_free(&p);
  results_free(&results);
  series_free(&series);
}

/* Feeds points from..to-1, all of one sensor, to a slot. */
static void feed_to(struct hk_backend *b, struct points p, uint32_t slot, uint32_t from, uint32_t to, struct results *out)
{
  uint32_t slots[LATE_POINTS];
  for (uint32_t i = from; i < to; i++)
    slots[i] = slot;
  p.slot = slots;
  p.slots = slot + 1;
  feed(b, &p, from, to, 64, 0, out);
}

/* A state with more samples than a window is found from, and no window, as builds wrote it that found it from 500: it is found
 * with the next point, and scores come when they would have come. Pulses whose distance asks for the widest window, so that the
 * first score is far away. */
static void old_states_find_their_window(void **state)
{
  (void)state;
  const struct hk_detector d = detector_parsed("algorithm=graph,interval=1s");
  const uint32_t had = HK_GRAPH_LEARN + 50, points = form == SANITIZE ? had + 2 : LATE_POINTS;
  struct hk_backend *b = backend_open(kind, &d, 1, 3);
  struct series series = series_new(SIGNAL_SINE, 1, points);
  for (uint32_t i = 0; i < points; i++)
    series.value[i] = i % 198 < 4;
  struct points p = points_of(&series, 1, 1);
  struct results want = results_new(points), got = results_new(points);
  for (uint32_t i = 0; i < 3; i++)
    sensor_add(b, i, 0, 1);
  feed_to(b, p, 0, 0, had, &want);
  int64_t size, empty;
  uint8_t *bytes = exported(b, 0, &size), *none = exported(b, 1, &empty);
  const size_t samples = hk_state_head_size(had), end = samples + HK_GRAPH_STATE_HEAD;
  assert_true(empty == (int64_t)(hk_state_head_size(0) + HK_GRAPH_STATE_HEAD + HK_STATE_CHECKSUM) && size > empty);
  memcpy(bytes + samples, none + hk_state_head_size(0), HK_GRAPH_STATE_HEAD); /* the graph of a sensor without points */
  const uint64_t checksum = XXH64(bytes, end, 0);
  memcpy(bytes + end, &checksum, sizeof checksum);
  assert_int_equal(b->ops->import_(b, 2, bytes, end + sizeof checksum), 0);
  free(bytes);
  free(none);
  feed_to(b, p, 0, had, points, &want);
  feed_to(b, p, 2, had, had + 1, &got);
  none = exported(b, 2, &empty);
  assert_true(empty > (int64_t)(hk_state_head_size(had + 1) + HK_GRAPH_STATE_HEAD + HK_STATE_CHECKSUM)); /* there are nodes */
  free(none);
  feed_to(b, p, 2, had + 1, points, &got);
  uint32_t scores = 0;
  for (uint32_t i = had; i < points; i++) {
    assert_int_equal(isnan(got.score[i]), isnan(want.score[i]));
    scores += !isnan(want.score[i]);
    if (!isnan(want.score[i]))
      assert_true(fabsf(got.score[i] - want.score[i]) < 1e-4f);
  }
  assert_true(scores > 0 || form == SANITIZE);
  b->ops->close(b);
  points_free(&p);
  results_free(&want);
  results_free(&got);
}

/* The memory is reported before it is taken, and a need over the limit is refused. */
static void memory_is_told(void **state)
{
  (void)state;
  const struct hk_detector detectors[] = { detector_parsed("algorithm=graph"),
                                           detector_parsed("algorithm=graph,window=16,resident=6000") };
  for (uint32_t i = 0; i < 2; i++) {
    struct hk_backend_config config = { .detectors = detectors, .n_detectors = 2, .max_sensors = 100, .threads = 1 };
    struct hk_backend *b;
    char error[256];
    assert_int_equal(kind->open(&b, &config, error, sizeof error), 0);
    const uint64_t need = b->ops->need(b, i, 10), numbers = strcmp(kind->name, "reference") == 0 ? 8 : 4;
    assert_true(need >= 10 * detectors[i].resident * 9 * numbers && need <= 16 * detectors[i].resident * 12 * numbers + 600000);
    b->ops->close(b);
    config.memory = need;
    assert_int_equal(kind->open(&b, &config, error, sizeof error), 0);
    for (uint32_t slot = 0; slot < 10; slot++)
      assert_int_equal(b->ops->add(b, slot, i, 1), 0);
    uint32_t more = 10;
    while (more < 100 && b->ops->add(b, more, i, 1) == 0)
      more++;
    assert_true(more < 14);
    assert_int_equal(b->ops->add(b, more, i, 1), HK_FULL);
    b->ops->close(b);
  }
}

int main(int argc, char **argv)
{
  int code;
  if (!(kind = backend_asked(argc, argv, &form, &code)))
    return code;
  sensors = form == SANITIZE ? SANITIZE_SENSORS : SENSORS;
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(cuts_do_not_show), cmocka_unit_test(threads_do_not_show),
    cmocka_unit_test(state_goes_on),    cmocka_unit_test(results_are_those_of_the_reference),
    cmocka_unit_test(bad_states),       cmocka_unit_test(old_states_find_their_window),
    cmocka_unit_test(memory_is_told),
  };
  const struct CMUnitTest every_way[] = {
    cmocka_unit_test(cuts_do_not_show),
    cmocka_unit_test(state_goes_on),
    cmocka_unit_test(results_are_those_of_the_reference),
    cmocka_unit_test(bad_states),
    cmocka_unit_test(old_states_find_their_window),
    cmocka_unit_test(memory_is_told),
  };
  return form == SANITIZE ? cmocka_run_group_tests_name("graph", every_way, set_up, tear_down)
                          : cmocka_run_group_tests_name("graph", tests, set_up, tear_down);
}
