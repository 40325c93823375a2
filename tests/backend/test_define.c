/* Conformance: detectors that are added and removed while a backend is open. Earlier ones give the same bits as if nothing had
 * happened, later ones the same as if they had been there from the start, and memory of removed ones is freed.
 * Arguments: BACKEND [sanitize]: sanitize, for sanitizers that slow every launch and score down, has fewer sensors, and
 * the CPU backend fills their windows. */
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

/* The first two are there from the start. Of the others some are scored by the same code as these, and some need more room. */
static const char *const texts[] = {
  "window=16,alert=0.3,signal=0,interval=1s",
  "window=33,alert=adaptive,false_alarms=50000,min_score=0.02",
  "window=16,rank=5,alert=0.3,signal=0,interval=1s",
  "window=115,rank=4,gap=20,alert=0.3,signal=0,interval=1s",
  "window=20,algorithm=svd,alert=0.3,cooldown=0,interval=1s",
  "algorithm=graph,window=10,resident=120,interval=1s",
  "algorithm=shift,interval=1s",
  "algorithm=novelty,resident=1000,interval=1s",
  "algorithm=novelty,channels=value,resident=1000,interval=1s",
  "algorithm=limit,limit=2,window=1m,horizon=20m,hold=1,confidence=1.5,interval=1s",
};
#define DETECTORS (sizeof texts / sizeof *texts)
#define FIRST 2 /* that are there from the start */
#define ROOM 10
#define SENSORS (DETECTORS * SIGNALS)
#define POINTS 300

static struct hk_detector detectors[DETECTORS];

/* Sanitize: of each detector. */
static const enum signal sanitize_signals[] = { SIGNAL_FREQUENCY, SIGNAL_HOLES };
#define SANITIZE_SENSORS (DETECTORS * sizeof sanitize_signals / sizeof *sanitize_signals)

static uint32_t sensors = SENSORS; /* that there are */

/* The states of sensors before their points; NULL: new sensors. */
static struct hk_backend *filled;

static struct hk_backend *open_with(struct hk_backend_config config)
{
  char error[256] = "";
  struct hk_backend *b;
  config.detectors = detectors;
  config.n_detectors = config.n_detectors ? config.n_detectors : FIRST;
  config.max_detectors = ROOM;
  config.threads = kind->threads;
  if (kind->open(&b, &config, error, sizeof error) != 0)
    fail_msg("%s", error);
  return b;
}

static int define(struct hk_backend *b, uint32_t number, const struct hk_detector *d)
{
  char error[256] = "";
  const struct hk_definition definition = { number, d };
  const int status = b->ops->define(b, &definition, 1, error, sizeof error);
  assert_true((status == 0) == (error[0] == 0));
  return status;
}

/* Points of all sensors, slot s under detector s % DETECTORS; in the first half of them only those of the first detectors. */
static struct points all_points(uint32_t *half)
{
  struct series series[SENSORS];
  for (uint32_t i = 0; i < sensors; i++)
    series[i] = series_new(form == SANITIZE ? sanitize_signals[i / DETECTORS] : i / DETECTORS, i, POINTS);
  if (form == SANITIZE)
    filled = backend_filled(detectors, DETECTORS, series, sensors, 4);
  struct points mixed = points_mix(series, sensors, 7), ordered = points_mix(series, sensors, 7);
  uint32_t n = 0;
  for (int later = 0; later < 2; later++) {
    for (uint32_t i = 0; i < mixed.n; i++) {
      const bool early = i < mixed.n / 2 && mixed.slot[i] % DETECTORS < FIRST;
      if (early == later)
        continue;
      ordered.slot[n] = mixed.slot[i];
      ordered.time[n] = mixed.time[i];
      ordered.value[n++] = mixed.value[i];
    }
    if (!later)
      *half = n;
  }
  for (uint32_t i = 0; i < sensors; i++)
    series_free(&series[i]);
  points_free(&mixed);
  return ordered;
}

static void add_sensors(struct hk_backend *b, uint32_t from, uint32_t to)
{
  for (uint32_t i = 0; i < sensors; i++) {
    if (i % DETECTORS < from || i % DETECTORS >= to)
      continue;
    sensor_add(b, i, i % DETECTORS, i);
    if (filled)
      sensor_copy(filled, i, b, i);
  }
}

static void those_that_are_there_do_not_notice(void **state)
{
  (void)state;
  uint32_t half = 0;
  struct points points = all_points(&half);
  struct results expected = results_new(points.n), got = results_new(points.n);
  struct hk_backend *b = open_with((struct hk_backend_config){ .n_detectors = DETECTORS, .max_sensors = sensors });
  add_sensors(b, 0, DETECTORS);
  feed(b, &points, 0, points.n, 3000, 0, &expected);
  b->ops->close(b);

  b = open_with((struct hk_backend_config){ .max_sensors = sensors });
  add_sensors(b, 0, FIRST);
  feed(b, &points, 0, half, 3000, 0, &got);
  struct hk_definition definitions[DETECTORS - FIRST];
  char error[256];
  for (uint32_t i = FIRST; i < DETECTORS; i++)
    definitions[i - FIRST] = (struct hk_definition){ i, &detectors[i] };
  assert_int_equal(b->ops->define(b, definitions, DETECTORS - FIRST, error, sizeof error), 0);
  add_sensors(b, FIRST, DETECTORS);
  feed(b, &points, half, points.n, 3000, 0, &got);
  b->ops->close(b);
  results_same(&expected, &got, &points, "detectors that came later");
  uint32_t scores[DETECTORS] = { 0 };
  for (uint32_t i = 0; i < points.n; i++)
    scores[points.slot[i] % DETECTORS] += !isnan(got.score[i]);
  for (uint32_t i = 0; i < DETECTORS; i++)
    assert_true(scores[i] > 0);
  if (filled)
    filled->ops->close(filled);
  results_free(&expected);
  results_free(&got);
  points_free(&points);
}

static void a_detector_in_use_stays(void **state)
{
  (void)state;
  struct hk_backend *b = open_with((struct hk_backend_config){ .max_sensors = 10 });
  struct hk_batch *batch = hk_batch_new(b, 8);
  batch->n = 0;
  sensor_add(b, 3, 1, 1);
  assert_int_equal(define(b, 1, &detectors[2]), -EBUSY);
  assert_int_equal(define(b, 1, NULL), -EBUSY);
  assert_int_equal(define(b, ROOM, &detectors[2]), -EINVAL);
  assert_true(b->ops->add(b, 4, 5, 1) < 0);
  assert_int_equal(b->ops->submit(b, batch), 0);
  assert_int_equal(define(b, 5, &detectors[2]), -EBUSY);
  b->ops->wait(b);
  assert_ptr_equal(b->ops->reap(b), batch);
  assert_int_equal(define(b, 5, &detectors[2]), 0); /* numbers 2 to 4 mean nothing */
  assert_true(b->ops->add(b, 4, 4, 1) < 0);
  assert_int_equal(b->ops->need(b, 4, 1), 0);
  sensor_add(b, 4, 5, 1);
  char error[256] = "";
  const struct hk_definition both[] = { { 6, &detectors[3] }, { 5, NULL } }; /* all or none */
  assert_int_equal(b->ops->define(b, both, 2, error, sizeof error), -EBUSY);
  assert_int_equal(b->ops->need(b, 6, 1), 0);
  b->ops->remove(b, 4);
  assert_int_equal(b->ops->define(b, both, 2, error, sizeof error), 0);
  assert_true(b->ops->need(b, 6, 1) > 0 && b->ops->need(b, 5, 1) == 0);
  assert_true(b->ops->add(b, 4, 5, 1) < 0);
  hk_batch_free(batch);
  b->ops->close(b);
}

/* Sensors of a detector that went take nothing from those of one that comes; and a limit that is raised lets more in. */
static void memory_comes_back(void **state)
{
  (void)state;
  struct hk_backend *b = open_with((struct hk_backend_config){ .max_sensors = 200000 });
  const uint64_t memory = b->ops->need(b, 1, 3000);
  b->ops->limit(b, memory);
  uint32_t first[2] = { 0 };
  for (uint32_t round = 0; round < 6; round++) {
    uint32_t n = 0;
    assert_int_equal(define(b, 1 + round % 2, &detectors[1 + round % 2 * 2]), 0);
    while (b->ops->add(b, n, 1 + round % 2, n) == 0)
      n++;
    assert_true(n > 100);
    if (round < 2)
      first[round] = n;
    assert_int_equal(n, first[round % 2]);
    if (round == 5) {
      b->ops->limit(b, 2 * memory);
      assert_int_equal(b->ops->add(b, n, 2, n), 0);
    }
    for (uint32_t i = 0; i <= n; i++)
      b->ops->remove(b, i);
    assert_int_equal(define(b, 1 + round % 2, NULL), 0);
  }
  b->ops->close(b);
}

/* A detector whose number was another's before gives the results of a new number, sweeps included. */
static void a_number_is_used_again(void **state)
{
  (void)state;
  struct series series = series_new(2, 5, form == SANITIZE ? hk_detector_span(&detectors[4]) + 3 : POINTS);
  struct points points = points_mix(&series, 1, 7);
  struct results expected = results_new(points.n);
  struct hk_backend *b = open_with((struct hk_backend_config){ .n_detectors = DETECTORS, .max_sensors = 4 });
  sensor_add(b, 0, 4, 9);
  feed(b, &points, 0, points.n, 50, 0, &expected);
  b->ops->close(b);
  b = open_with((struct hk_backend_config){ .max_sensors = 4 });
  struct hk_batch *sweep = hk_batch_new(b, 16);
  sensor_add(b, 3, 1, 1);
  for (uint32_t round = 0; round < (form == SANITIZE ? 4 : 8); round++) {
    struct results got = results_new(points.n);
    const struct hk_detector *d = round % 2 ? &detectors[4] : &detectors[3];
    assert_int_equal(define(b, 7, d), 0);
    sensor_add(b, 0, 7, 9);
    feed(b, &points, 0, points.n, 50, 0, &got);
    sweep->kind = HK_BATCH_SWEEP;
    sweep->arrival = 1000000000;
    sweep->idle = 0;
    assert_int_equal(b->ops->submit(b, sweep), 0);
    b->ops->wait(b);
    assert_ptr_equal(b->ops->reap(b), sweep);
    assert_int_equal(sweep->status, 0);
    b->ops->remove(b, 0);
    if (round % 2)
      results_same(&expected, &got, &points, "a number used again");
    results_free(&got);
  }
  hk_batch_free(sweep);
  b->ops->close(b);
  results_free(&expected);
  points_free(&points);
  series_free(&series);
}

int main(int argc, char **argv)
{
  int code;
  char error[256];
  if (!(kind = backend_asked(argc, argv, &form, &code)))
    return code;
  sensors = form == SANITIZE ? SANITIZE_SENSORS : SENSORS;
  for (uint32_t i = 0; i < DETECTORS; i++) {
    if (hk_detector_parse(texts[i], &detectors[i], error, sizeof error) != 0) {
      fprintf(stderr, "%s: %s\n", texts[i], error);
      return 1;
    }
  }
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(those_that_are_there_do_not_notice),
    cmocka_unit_test(a_detector_in_use_stays),
    cmocka_unit_test(memory_comes_back),
    cmocka_unit_test(a_number_is_used_again),
  };
  return cmocka_run_group_tests_name("define", tests, NULL, NULL);
}
