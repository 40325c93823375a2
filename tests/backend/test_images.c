/* Conformance of exports by batches: sensors leave a backend in the middle of their points, between batches and beside them, and
 * continue in another one without a difference. Arguments: BACKEND
 * [sanitize]: sanitize, for sanitizers that slow every launch and score down a thousand times, has fewer sensors, most of whose
 * windows the CPU backend has filled.
 *
 * To another backend of the same kind the scores are the same bit for bit (but for the reference backend, whose states are
 * rounded to float32); to another kind they are as near as both are to each other anyhow. */
#include "cpu/backend/state_size.h"
#include "cpu/novelty/state.h"
#include "cpu/rules/state.h"
#include "gpu/cuda.h"
#include "tests/backend/harness.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct backend_kind *kind;
static enum form form;

/* Of the narrow, the middle and the wide classes of kernels, all with alerts; some warm up for longer than others, one for ever.
 */
static const char *const detector_texts[] = {
  "window=4,gap=1,rank=1,alert=0.12,signal=0,interval=1s",
  "window=17,krylov=17,rank=2,fill=linear,max_fill=5,alert=0.5,signal=0",
  "window=48,gap=30,alert=adaptive,false_alarms=50000,min_score=0.02",
  "window=20,algorithm=svd,alert=0.12,cooldown=0,interval=1s",
  "window=24,stride=3,alert=0.12,hold=2,interval=1s",
  "window=96,gap=20,alert=0.12,signal=0,interval=1s",
  "window=120,gap=4000",
  "window=70,algorithm=svd,gap=7,stride=5",
  "window=140,gap=9,krylov=8,rank=2,stride=16",
  "window=20,algorithm=shift,alert=0.12,interval=1s",
  "window=16,algorithm=graph,resident=200,alert=0.12,interval=1s",
  "algorithm=novelty,resident=1000,alert=0.3,interval=1s",
  "algorithm=novelty,channels=value,resident=1000,alert=0.3,interval=1s",
  "algorithm=limit,limit=2,lower=-2,window=2m,horizon=20m,hold=1,confidence=1.5,interval=1s",
};
#define DETECTORS (sizeof detector_texts / sizeof *detector_texts)
/* The first ones have scores that the data determine. */
static const enum signal signals[] = { SIGNAL_SINE,     SIGNAL_STEP, SIGNAL_AR,    SIGNAL_OFFSET, SIGNAL_RAMP,
                                       SIGNAL_CONSTANT, SIGNAL_SICK, SIGNAL_HOLES, SIGNAL_LATE };
#define DETERMINED 4
#define KINDS ((uint32_t)(sizeof signals / sizeof *signals))
#define SENSORS ((uint32_t)(DETECTORS * KINDS))
#define POINTS 420
#define SPARE 40u                             /* slots that are not bound */
#define AROUND (form == SANITIZE ? 12u : 40u) /* points before and after an export that is in flight with them */
/* Sanitize: signals of each detector, the first ones; the last of them begins with the last points, which are the REST of TO. */
#define SANITIZE_KINDS 3u
#define SANITIZE_TO 306
#define SANITIZE_REST 4

static uint32_t sensors = SENSORS; /* that there are */

struct road {
  struct hk_detector detector[DETECTORS];
  struct points points;
  struct hk_backend *filled; /* sensors as they are before these; NULL: they have no points */
};

static uint32_t detector_of(uint32_t slot)
{
  return slot % DETECTORS;
}

static struct hk_backend *road_open(const struct road *r, const struct backend_kind *how)
{
  struct hk_backend *b = backend_open(how, r->detector, DETECTORS, sensors + SPARE);
  for (uint32_t i = 0; i < sensors; i++) {
    sensor_add(b, i, detector_of(i), i);
    if (r->filled && i / DETECTORS < SANITIZE_KINDS - 1)
      sensor_copy(r->filled, i, b, i);
  }
  return b;
}

static int set_up(void **state)
{
  static struct road r;
  struct series series[SENSORS];
  for (uint32_t i = 0; i < DETECTORS; i++)
    r.detector[i] = detector_parsed(detector_texts[i]);
  for (uint32_t i = 0; i < sensors; i++)
    series[i] = series_new(signals[i / DETECTORS], i, POINTS);
  if (form == SANITIZE) {
    for (uint32_t i = 0; i < sensors; i++)
      series[i].n = SANITIZE_TO;
    r.filled = backend_filled(r.detector, DETECTORS, series, sensors, SANITIZE_REST);
  }
  r.points = points_of(series, sensors, 7);
  *state = &r;
  return 0;
}

static int tear_down(void **state)
{
  struct road *r = *state;
  points_free(&r->points);
  if (r->filled)
    r->filled->ops->close(r->filled);
  return 0;
}

/* States by slot. */
struct states {
  void *bytes[SENSORS];
  size_t size[SENSORS];
};

static void states_free(struct states *s)
{
  for (uint32_t i = 0; i < sensors; i++)
    free(s->bytes[i]);
}

static struct hk_batch *export_new(struct hk_backend *b, const struct road *r, uint32_t slots)
{
  struct hk_batch *batch = hk_batch_new(b, slots);
  assert_non_null(batch);
  batch->kind = HK_BATCH_EXPORT;
  for (uint32_t i = 0; i < DETECTORS; i++) {
    const uint64_t most = b->ops->image_most(&r->detector[i]);
    batch->bulk_size = most > batch->bulk_size ? most : batch->bulk_size;
  }
  batch->bulk_size *= slots;
  batch->bulk = b->ops->alloc(b, batch->bulk_size);
  assert_non_null(batch->bulk);
  return batch;
}

static void export_free(struct hk_backend *b, struct hk_batch *batch)
{
  void *bulk = batch->bulk;
  hk_batch_free(batch);
  b->ops->free(b, bulk);
}

/* Names slots from..to-1, the last first, and as many that are not bound. */
static void name_slots(struct hk_batch *batch, uint32_t from, uint32_t to)
{
  batch->n = 0;
  for (uint32_t i = to; i-- > from;) {
    if (batch->n < batch->capacity && (to - i) % 7 == 1)
      batch->slot[batch->n++] = sensors + i % SPARE;
    if (batch->n < batch->capacity)
      batch->slot[batch->n++] = i;
  }
}

/* Keeps the results, or compares them with the kept ones. */
static void states_take(struct hk_backend *b, const struct road *r, const struct hk_batch *batch, struct states *out)
{
  const struct hk_image *image = batch->work;
  assert_int_equal(batch->status, 0);
  for (uint32_t i = 0; i < batch->n; i++) {
    const uint32_t slot = batch->slot[i];
    if (slot >= sensors) {
      assert_int_equal(image[i].size, 0);
      continue;
    }
    assert_int_equal(image[i].detector, detector_of(slot));
    const struct hk_detector *d = &r->detector[image[i].detector];
    void *room = malloc(hk_state_most(d));
    assert_non_null(room);
    size_t size = image[i].size;
    assert_in_range(size, 1, b->ops->image_most(d));
    const void *state = b->ops->state_of((char *)batch->bulk + image[i].at, d, room, &size);
    assert_in_range(size, 1, hk_state_most(d));
    free(out->bytes[slot]);
    out->bytes[slot] = malloc(size);
    assert_non_null(out->bytes[slot]);
    memcpy(out->bytes[slot], state, size);
    out->size[slot] = size;
    free(room);
  }
}

static struct hk_batch *reap(struct hk_backend *b)
{
  struct hk_batch *batch;
  while (!(batch = b->ops->reap(b)))
    b->ops->wait(b);
  return batch;
}

/* Exports all sensors, in batches of different sizes. */
static void export_all(struct hk_backend *b, const struct road *r, struct states *out)
{
  struct hk_batch *batch = export_new(b, r, 2 * sensors);
  for (uint32_t from = 0, many = 1; from < sensors; from += many, many *= 3) {
    name_slots(batch, from, sensors - from < many ? sensors : from + many);
    assert_int_equal(b->ops->submit(b, batch), 0);
    assert_ptr_equal(reap(b), batch);
    states_take(b, r, batch, out);
  }
  export_free(b, batch);
}

static void check_states(struct hk_backend *b, const struct states *states)
{
  for (uint32_t i = 0; i < sensors; i++) {
    const int64_t size = b->ops->export_(b, i, NULL, 0);
    assert_int_equal(size, states->size[i]);
    void *bytes = malloc((size_t)size);
    assert_non_null(bytes);
    assert_int_equal(b->ops->export_(b, i, bytes, (size_t)size), size);
    assert_memory_equal(bytes, states->bytes[i], (size_t)size);
    free(bytes);
  }
}

/* Points in two batches with an export between them, all in flight at once: the export has the points of the first and none of
 * the second. Returns the number of points. */
static uint32_t feed_around(struct hk_backend *b, const struct road *r, uint32_t from, struct results *out, struct states *states)
{
  const uint32_t some = AROUND;
  struct hk_batch *batch[2] = { hk_batch_new(b, some), hk_batch_new(b, some) }, *export = export_new(b, r, sensors);
  for (uint32_t i = 0; i < sensors; i++)
    export->slot[export->n++] = i;
  for (uint32_t k = 0; k < 2; k++) {
    assert_non_null(batch[k]);
    batch[k]->n = some;
    memcpy(batch[k]->slot, r->points.slot + from + k * some, some * sizeof(uint32_t));
    memcpy(batch[k]->time, r->points.time + from + k * some, some * sizeof(int64_t));
    memcpy(batch[k]->value, r->points.value + from + k * some, some * sizeof(double));
  }
  assert_int_equal(b->ops->submit(b, batch[0]), 0);
  int status = b->ops->submit(b, export);
  uint32_t back = 0;
  if (status == HK_AGAIN) { /* its room is made while nothing is in flight */
    assert_ptr_equal(reap(b), batch[back++]);
    status = b->ops->submit(b, export);
  }
  assert_int_equal(status, 0);
  assert_int_equal(b->ops->submit(b, batch[1]), 0);
  for (; back < 3; back++)
    assert_ptr_equal(reap(b), back == 0 ? batch[0] : back == 1 ? export : batch[1]);
  states_take(b, r, export, states);
  for (uint32_t k = 0; k < 2; k++) {
    assert_int_equal(batch[k]->status, 0);
    memcpy(out->score + from + k * some, batch[k]->score, some * sizeof(float));
    memcpy(out->state + from + k * some, batch[k]->state, some);
    for (uint32_t i = 0; i < batch[k]->n_events; i++) {
      out->event[out->n_events] = batch[k]->event[i];
      out->event[out->n_events++].index += from + k * some;
    }
    hk_batch_free(batch[k]);
  }
  export_free(b, export);
  return 2 * some;
}

static struct results run_all(const struct road *r, const struct backend_kind *how)
{
  struct hk_backend *b = road_open(r, how);
  struct results results = results_new(r->points.n);
  feed(b, &r->points, 0, r->points.n, 3000, 0, &results);
  b->ops->close(b);
  return results;
}

/* Exports by batches change nothing, and equal those of export_ at the same place. */
static void exports_do_not_show(void **state)
{
  const struct road *r = *state;
  const uint32_t n = r->points.n;
  struct results want = run_all(r, kind), got = results_new(n);
  struct states states = { { NULL }, { 0 } }, before = { { NULL }, { 0 } };
  struct hk_backend *b = road_open(r, kind), *twin = road_open(r, kind);
  export_all(b, r, &states); /* no sensor has a point */
  check_states(b, &states);
  for (uint32_t part = 0, at = 0; part < 4; part++) {
    const uint32_t to = part == 3 ? n : n / 4 * (part + 1), around = part < 3 ? 2 * AROUND : 0;
    struct results ignored = results_new(n);
    feed(b, &r->points, at, to - around, 1000, 0, &got);
    feed(twin, &r->points, at, to - around, 1000, 0, &ignored);
    export_all(b, r, &states);
    check_states(b, &states);
    if (around > 0) {
      (void)feed_around(b, r, to - around, &got, &before);
      feed(twin, &r->points, to - around, to - around / 2, 1000, 0, &ignored);
      for (uint32_t i = 0; i < sensors; i++) { /* `seen` is the only difference: the harness has no clock */
        const int64_t size = twin->ops->export_(twin, i, NULL, 0);
        assert_int_equal(size, before.size[i]);
      }
      check_states(twin, &before);
      feed(twin, &r->points, to - around / 2, to, 1000, 0, &ignored);
    }
    results_free(&ignored);
    at = to;
  }
  results_same(&want, &got, &r->points, "with exports");
  b->ops->close(b);
  twin->ops->close(twin);
  states_free(&states);
  states_free(&before);
  results_free(&want);
  results_free(&got);
}

/* Where and by how much scores differ, on signals whose scores the data determine. */
static void check_near(const struct road *r, const struct results *want, const struct results *got, uint32_t from, const char *to)
{
  double sum = 0;
  uint32_t n = 0, far = 0;
  for (uint32_t i = from; i < r->points.n; i++) {
    const uint32_t slot = r->points.slot[i], signal = slot / DETECTORS;
    const uint8_t algorithm = r->detector[detector_of(slot)].algorithm;
    if ((algorithm == HK_ALGORITHM_GRAPH || algorithm == HK_ALGORITHM_SHIFT || algorithm == HK_ALGORITHM_LIMIT) &&
        signal >= DETERMINED)
      continue; /* rounding decides whether it has anything to compare */
    if (want->state[i] != got->state[i])
      fail_msg("to %s: point %u of slot %u (%s): state %u, and %u", to, i, slot, detector_texts[detector_of(slot)],
               want->state[i], got->state[i]);
    assert_int_equal(isnan(want->score[i]), isnan(got->score[i]));
    if (isnan(want->score[i]) || signal >= DETERMINED)
      continue;
    const double off = fabs((double)(want->score[i] - got->score[i]));
    sum += off;
    far += off > 2e-4;
    n++;
  }
  print_message("# to %s: %u scores, %.2g apart on average, %u by over 2e-4\n", to, n, sum / n, far);
  assert_true(n > r->points.n / 20 && sum / n < 2e-5 && far <= n / 500);
}

/* Changes were in the middle of all points: alerts stand. */
static uint32_t middle_of(const struct road *r)
{
  return r->points.n / 20 * 11;
}

static void sensors_move(void **state)
{
  static const char *const kinds[] = { "cpu", "reference", "cuda" };
  const struct road *r = *state;
  const uint32_t half = middle_of(r);
  struct results want = run_all(r, kind), first = results_new(r->points.n);
  struct states states = { { NULL }, { 0 } };
  struct hk_backend *b = road_open(r, kind);
  feed(b, &r->points, 0, half, 1000, 0, &first);
  export_all(b, r, &states);
  b->ops->close(b);
  for (uint32_t k = 0; k < 3; k++) {
    const struct backend_kind *how = backend_kind(kinds[k]);
    const bool same = how == kind;
    const bool able = same || strcmp(how->name, "cuda") != 0 || hk_cuda_devices() > 0;
    if (!able)
      continue;
    struct hk_backend *to = road_open(r, how);
    for (uint32_t i = 0; i < sensors; i++)
      assert_int_equal(to->ops->import_(to, i, states.bytes[i], states.size[i]), 0);
    if (same && strcmp(kind->name, "reference") != 0) {
      struct states again = { { NULL }, { 0 } };
      export_all(to, r, &again);
      for (uint32_t i = 0; i < sensors; i++) {
        assert_int_equal(again.size[i], states.size[i]);
        assert_memory_equal(again.bytes[i], states.bytes[i], states.size[i]);
      }
      states_free(&again);
    }
    struct results got = results_new(r->points.n);
    memcpy(got.score, first.score, half * sizeof *got.score);
    memcpy(got.state, first.state, half);
    memcpy(got.event, first.event, first.n_events * sizeof *got.event);
    got.n_events = first.n_events;
    feed(to, &r->points, half, r->points.n, 1000, 0, &got);
    to->ops->close(to);
    if (same && strcmp(kind->name, "reference") != 0)
      results_same(&want, &got, &r->points, "moved in the middle");
    else
      check_near(r, &want, &got, half, kinds[k]);
    results_free(&got);
  }
  states_free(&states);
  results_free(&want);
  results_free(&first);
}

static void alerts_stood(void **state)
{
  const struct road *r = *state;
  struct results results = results_new(r->points.n);
  struct states states = { { NULL }, { 0 } };
  struct hk_backend *b = road_open(r, kind);
  uint32_t raised = 0, full = 0, cold = 0, learned = 0;
  feed(b, &r->points, 0, middle_of(r), 1000, 0, &results);
  export_all(b, r, &states);
  for (uint32_t i = 0; i < sensors; i++) {
    const struct hk_detector *d = &r->detector[detector_of(i)];
    struct hk_window window;
    struct hk_alert alert;
    float ring[HK_SPAN_MAX];
    const uint8_t *rest;
    size_t size;
    assert_int_equal(hk_state_open(states.bytes[i], states.size[i], d, &window, &alert, ring, &rest, &size), 0);
    raised += alert.raised;
    full += window.count == hk_detector_span(d);
    cold += window.started && window.count < hk_detector_span(d);
    learned += alert.blocks > 0;
  }
  print_message("# %u alerts stand, %u have learned, %u are warm, %u warm up\n", raised, learned, full, cold);
  assert_true(raised > (form == SANITIZE ? 0 : 2) && full > sensors / 3 && cold > sensors / DETECTORS / 2 && learned > 0);
  b->ops->close(b);
  states_free(&states);
  results_free(&results);
}

static void bad_exports_are_refused(void **state)
{
  const struct road *r = *state;
  struct hk_backend *b = road_open(r, kind);
  struct hk_batch *batch = export_new(b, r, 8);
  struct states states = { { NULL }, { 0 } };
  for (uint32_t i = 0; i < 8; i++)
    batch->slot[i] = i;
  batch->n = 9;
  assert_int_equal(b->ops->submit(b, batch), -EINVAL);
  batch->n = 8;
  const uint64_t size = batch->bulk_size;
  batch->bulk_size = 100;
  assert_int_equal(b->ops->submit(b, batch), -EINVAL);
  batch->bulk_size = size;
  for (uint32_t n = 0; n <= 8; n += 8) { /* none at all is no error */
    batch->n = n;
    assert_int_equal(b->ops->submit(b, batch), 0);
    assert_ptr_equal(reap(b), batch);
    assert_int_equal(batch->status, 0);
    assert_int_equal(batch->n_events, 0);
  }
  states_take(b, r, batch, &states);
  b->ops->remove(b, 3);
  batch->slot[0] = UINT32_MAX;
  assert_int_equal(b->ops->submit(b, batch), 0);
  assert_ptr_equal(reap(b), batch);
  const struct hk_image *image = batch->work;
  for (uint32_t i = 0; i < 8; i++)
    assert_int_equal(image[i].size == 0, i == 0 || i == 3);
  export_free(b, batch);
  b->ops->close(b);
  states_free(&states);
}

/* A state whose variances no points can leave: on a GPU the place of a least one would be looked for in vain. The sensor goes on
 * as if it had not been offered. */
static void crafted_states_are_refused(void **state)
{
  const struct road *r = *state;
  struct hk_backend *b = road_open(r, kind);
  struct results results = results_new(r->points.n);
  struct states states = { { NULL }, { 0 } };
  uint32_t crafted = 0;
  feed(b, &r->points, 0, middle_of(r), 1000, 0, &results);
  export_all(b, r, &states);
  for (uint32_t i = 0; i < sensors; i++) {
    const struct hk_detector *d = &r->detector[detector_of(i)];
    struct hk_state_about about;
    assert_int_equal(hk_state_look(states.bytes[i], states.size[i], &about), 0);
    const uint32_t lags = d->algorithm == HK_ALGORITHM_NOVELTY ? hk_novelty_lags_begun(d, about.count) : 0;
    uint8_t *const bytes = malloc(states.size[i]);
    assert_non_null(bytes);
    memcpy(bytes, states.bytes[i], states.size[i]);
    uint8_t *const end = bytes + states.size[i] - HK_STATE_CHECKSUM;
    const size_t back = HK_NOVELTY_STATE_FORM + HK_NOVELTY_STATE_STEPS + 8 * (size_t)lags;
    for (uint32_t l = 0; l < lags; l++)
      (void)hk_state_put(end - back + 4 * (size_t)l, &(float){ 3e38f }, sizeof(float));
    hk_state_seal(bytes, end);
    assert_int_equal(b->ops->import_(b, i, bytes, states.size[i]), lags > 0 ? -EINVAL : 0);
    crafted += lags > 0;
    free(bytes);
  }
  check_states(b, &states);
  assert_true(crafted > 0);
  b->ops->close(b);
  states_free(&states);
  results_free(&results);
}

int main(int argc, char **argv)
{
  int code;
  if (!(kind = backend_asked(argc, argv, &form, &code)))
    return code;
  sensors = form == SANITIZE ? DETECTORS * SANITIZE_KINDS : SENSORS;
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(exports_do_not_show),
    cmocka_unit_test(sensors_move),
    cmocka_unit_test(alerts_stood),
    cmocka_unit_test(bad_exports_are_refused),
    cmocka_unit_test(crafted_states_are_refused),
  };
  return cmocka_run_group_tests_name("images", tests, set_up, tear_down);
}
