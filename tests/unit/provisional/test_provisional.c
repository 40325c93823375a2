/* Provisional scores: how they change the results of a batch, with every backend, however points are cut into batches. */
#include "cpu/provisional/provisional.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define S 1000000000LL
#define SENSORS 8u
#define POINTS 240u
#define FULL 179u /* point with the first score of the wanted window, from 1 */
#define KEYS "window=60,interval=1s,alert=0.8,provisional=yes"

/* The results of each point, and the events, in order. */
struct results {
  float score[SENSORS][POINTS];
  uint8_t state[SENSORS][POINTS];
  struct hk_event event[SENSORS * 16];
  uint32_t n_events;
};

struct bench {
  struct hk_detector detector;
  struct hk_backend *backend;
  struct hk_batch *batch;
  struct hk_provisional *provisional;
};

typedef int open_backend(struct hk_backend **, const struct hk_backend_config *, char *, size_t);

static const struct hk_detector *detector_of(void *arg, uint32_t slot)
{
  (void)slot;
  return &((struct bench *)arg)->detector;
}

static void bench_open(struct bench *b, open_backend *open, const char *keys)
{
  char error[256];
  memset(b, 0, sizeof *b);
  assert_int_equal(hk_detector_parse(keys, &b->detector, error, sizeof error), 0);
  const struct hk_backend_config config = { .detectors = &b->detector, .n_detectors = 1, .max_sensors = SENSORS, .threads = 1 };
  assert_int_equal(open(&b->backend, &config, error, sizeof error), 0);
  for (uint32_t i = 0; i < SENSORS; i++)
    assert_int_equal(b->backend->ops->add(b->backend, i, 0, i + 1), 0);
  assert_non_null(b->batch = hk_batch_new(b->backend, SENSORS * HK_BATCH_PER_SENSOR));
  assert_int_equal(hk_provisional_new(&b->provisional), 0);
}

static uint32_t small_windows(const struct bench *b)
{
  uint8_t saved[HK_PROVISIONAL_SAVED];
  uint32_t n = 0;
  for (uint32_t i = 0; i < SENSORS; i++)
    n += hk_provisional_save(b->provisional, i, saved) > 8; /* the numbers of alerts alone take 8 bytes */
  return n;
}

static void bench_close(struct bench *b)
{
  hk_provisional_free(b->provisional);
  hk_batch_free(b->batch);
  b->backend->ops->close(b->backend);
}

static double noise(uint32_t i)
{
  uint32_t x = i * 2654435761u + 12345u;
  x = (x ^ x >> 15) * 2246822519u;
  x = (x ^ x >> 13) * 3266489917u;
  return (x ^ x >> 16) / 4294967296.0 - 0.5;
}

/* A sine whose period changes for 60 points, in every other sensor while it is young, in others as its window becomes full. */
static double value_of(uint32_t sensor, uint32_t k)
{
  const uint32_t change = sensor % 2 ? 161 : 100;
  return sin(k * (k >= change && k < change + 60 ? 0.5 : 1.3)) + 0.8 * noise(sensor * 10007 + k);
}

/* Takes points first..behind-1 of all sensors, `some` of each in a batch. */
static void run(struct bench *b, struct results *out, uint32_t first, uint32_t behind, uint32_t some)
{
  const struct hk_provisional_sensors sensors = { b, detector_of, NULL };
  while (first < behind) {
    const uint32_t to = first + some < behind ? first + some : behind;
    struct hk_batch *batch = b->batch;
    batch->n = 0;
    for (uint32_t k = first; k < to; k++)
      for (uint32_t i = 0; i < SENSORS; i++, batch->n++) {
        batch->slot[batch->n] = i;
        batch->time[batch->n] = k * S;
        batch->value[batch->n] = value_of(i, k);
      }
    assert_int_equal(b->backend->ops->submit(b->backend, batch), 0);
    while (!b->backend->ops->reap(b->backend))
      b->backend->ops->wait(b->backend);
    assert_int_equal(hk_provisional_complete(b->provisional, &sensors, batch), 0);
    for (uint32_t i = 0; i < batch->n; i++) {
      out->score[batch->slot[i]][first + i / SENSORS] = batch->score[i];
      out->state[batch->slot[i]][first + i / SENSORS] = batch->state[i];
    }
    for (uint32_t i = 0; i < batch->n_events; i++) {
      struct hk_event e = batch->event[i];
      assert_true(i == 0 || e.index >= batch->event[i - 1].index);
      assert_true(e.slot == batch->slot[e.index] && e.time == batch->time[e.index]);
      e.index = 0; /* the only value that depends on the batch */
      assert_true(out->n_events < sizeof out->event / sizeof *out->event);
      out->event[out->n_events++] = e;
    }
    first = to;
  }
}

static void whole(struct results *out, open_backend *open, uint32_t some)
{
  struct bench b;
  memset(out, 0, sizeof *out);
  bench_open(&b, open, KEYS);
  run(&b, out, 0, POINTS, some);
  assert_int_equal(small_windows(&b), 0); /* all are freed */
  bench_close(&b);
}

static void young_sensors_have_marked_scores_and_alerts(void **state)
{
  (void)state;
  static struct results r;
  uint32_t number[SENSORS] = { 0 }, early = 0, both = 0, ended = 0;
  bool stands[SENSORS] = { false };
  whole(&r, hk_cpu_open, 1);
  for (uint32_t i = 0; i < SENSORS; i++)
    for (uint32_t k = 0; k < POINTS; k++) {
      assert_int_equal(r.state[i][k], k + 1 < HK_PROVISIONAL_FIRST ? HK_STATE_WARMING
                                      : k + 1 < FULL               ? HK_STATE_PROVISIONAL
                                                                   : HK_STATE_OK);
      assert_int_equal(isnan(r.score[i][k]), r.state[i][k] == HK_STATE_WARMING);
      assert_true(isnan(r.score[i][k]) || (r.score[i][k] >= 0 && r.score[i][k] <= 1));
    }
  for (uint32_t i = 0; i < r.n_events; i++) {
    const struct hk_event *e = &r.event[i];
    const bool provisional = e->marks == HK_PROVISIONAL_MARK;
    assert_int_equal(provisional, e->time < (FULL - 1) * S || (e->time == (FULL - 1) * S && e->kind == HK_EVENT_CLEARED));
    assert_int_equal(e->severity > 0, !provisional);
    if (e->kind == HK_EVENT_RAISED) {
      assert_false(stands[e->slot]);
      assert_int_equal(e->number, number[e->slot] + 1); /* both kinds are counted together */
      both += !provisional && number[e->slot] > 0;
      number[e->slot] = e->number;
      early += provisional;
    }
    assert_int_equal(e->number, number[e->slot]);
    stands[e->slot] = e->kind != HK_EVENT_CLEARED;
    ended += provisional && e->time == (FULL - 1) * S;
  }
  assert_true(early > 2 && both > 0 && ended > 0);
}

static void assert_same(const struct results *a, const struct results *b, bool provisional_only)
{
  for (uint32_t i = 0; i < SENSORS; i++)
    for (uint32_t k = 0; k < (provisional_only ? FULL - 1 : POINTS); k++) {
      assert_int_equal(a->state[i][k], b->state[i][k]);
      assert_memory_equal(&a->score[i][k], &b->score[i][k], sizeof a->score[i][k]);
    }
  uint32_t at = 0;
  for (uint32_t i = 0; i < a->n_events; i++) {
    if (provisional_only && a->event[i].marks != HK_PROVISIONAL_MARK)
      continue;
    while (at < b->n_events && provisional_only && b->event[at].marks != HK_PROVISIONAL_MARK)
      at++;
    assert_true(at < b->n_events);
    assert_memory_equal(&a->event[i], &b->event[at], sizeof a->event[i]);
    at++;
  }
}

static void the_same_for_every_backend_and_cut(void **state)
{
  (void)state;
  static struct results one, other;
  whole(&one, hk_cpu_open, 1);
  const uint32_t cuts[] = { 2, 7, 35, 64 };
  for (uint32_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
    whole(&other, hk_cpu_open, cuts[i]);
    assert_int_equal(one.n_events, other.n_events);
    assert_same(&one, &other, false);
  }
  whole(&other, hk_reference_open, 64);
  assert_same(&one, &other, true);
}

static void goes_on_from_what_was_saved(void **state)
{
  (void)state;
  static struct results one, other;
  const uint32_t at[] = { 1, 34, 35, 110, 170, 178, 179, 200 };
  whole(&one, hk_cpu_open, 64);
  for (uint32_t i = 0; i < sizeof at / sizeof *at; i++) {
    struct bench b;
    uint8_t saved[HK_PROVISIONAL_SAVED];
    bench_open(&b, hk_cpu_open, KEYS);
    memset(&other, 0, sizeof other);
    run(&b, &other, 0, at[i], 64);
    struct hk_provisional *former = b.provisional;
    assert_int_equal(hk_provisional_new(&b.provisional), 0);
    for (uint32_t slot = 0; slot < SENSORS; slot++) {
      const size_t size = hk_provisional_save(former, slot, saved);
      assert_true(size <= sizeof saved && (size > 0 || at[i] >= FULL));
      if (size > 0)
        assert_int_equal(hk_provisional_restore(b.provisional, slot, &b.detector, saved, size), 0);
    }
    hk_provisional_free(former);
    run(&b, &other, at[i], POINTS, 64);
    assert_int_equal(one.n_events, other.n_events);
    assert_same(&one, &other, false);
    bench_close(&b);
  }
}

static void damaged_states_are_refused(void **state)
{
  (void)state;
  static struct results r;
  struct bench b;
  uint8_t saved[HK_PROVISIONAL_SAVED];
  bench_open(&b, hk_cpu_open, KEYS);
  run(&b, &r, 0, 60, 64);
  const size_t size = hk_provisional_save(b.provisional, 3, saved);
  hk_provisional_forget(b.provisional, 3);
  assert_int_equal(small_windows(&b), SENSORS - 1);
  for (size_t i = 1; i < size; i++)
    if (i != 8)
      assert_int_equal(hk_provisional_restore(b.provisional, 3, &b.detector, saved, i), -EINVAL);
  saved[40] ^= 1;
  assert_int_equal(hk_provisional_restore(b.provisional, 3, &b.detector, saved, size), -EINVAL);
  assert_int_equal(small_windows(&b), SENSORS - 1);
  assert_int_equal(hk_provisional_save(b.provisional, 3, saved), 0);
  bench_close(&b);
}

static void alerts_that_are_off_stay_off(void **state)
{
  (void)state;
  static struct results r;
  struct bench b;
  bench_open(&b, hk_cpu_open, "window=60,interval=1s,alert=off,provisional=yes");
  run(&b, &r, 0, POINTS, 64);
  assert_int_equal(r.n_events, 0);
  assert_int_equal(r.state[0][100], HK_STATE_PROVISIONAL);
  bench_close(&b);
  memset(&r, 0, sizeof r);
  bench_open(&b, hk_cpu_open, "window=60,interval=1s,alert=off");
  run(&b, &r, 0, POINTS, 64);
  assert_int_equal(r.state[0][100], HK_STATE_WARMING); /* not asked for */
  assert_true(isnan(r.score[0][100]));
  bench_close(&b);
}

static void is_a_key_of_ika_and_svd(void **state)
{
  (void)state;
  static const struct {
    const char *keys, *says; /* NULL: taken */
  } cases[] = { { "provisional=yes", NULL },
                { "algorithm=svd,window=13,provisional=yes", NULL },
                { "window=12,provisional=no", NULL },
                { "window=12,provisional=yes", "window = 12: must be over 12 for provisional = yes" },
                { "provisional=12", "provisional = 12: not one of no, yes" },
                { "algorithm=graph,provisional=yes", "provisional: does not apply to algorithm = graph" },
                { "algorithm=shift,provisional=yes", "provisional: does not apply to algorithm = shift" },
                { "algorithm=novelty,provisional=yes", "provisional: does not apply to algorithm = novelty" },
                { "algorithm=limit,limit=1,provisional=yes", "provisional: does not apply to algorithm = limit" } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct hk_detector d;
    char error[256] = "";
    assert_int_equal(hk_detector_parse(cases[i].keys, &d, error, sizeof error), cases[i].says ? -EINVAL : 0);
    assert_true(!cases[i].says || strstr(error, cases[i].says));
  }
  struct hk_detector d;
  char error[256];
  assert_int_equal(hk_detector_parse("", &d, error, sizeof error), 0);
  assert_int_equal(d.provisional, 0); /* off by default */
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(young_sensors_have_marked_scores_and_alerts),
    cmocka_unit_test(the_same_for_every_backend_and_cut),
    cmocka_unit_test(goes_on_from_what_was_saved),
    cmocka_unit_test(damaged_states_are_refused),
    cmocka_unit_test(alerts_that_are_off_stay_off),
    cmocka_unit_test(is_a_key_of_ika_and_svd),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
