/* Conformance, third part: requests that a backend refuses, and its errors; silence; reused slots; damaged states; closing
 * with work in flight. Argument: BACKEND. */
#include "tests/backend/harness.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND 1000000000ll

static const struct backend_kind *kind;
static struct hk_detector detectors[2]; /* windows of 8 and 20 */

static struct hk_backend *open_with(struct hk_backend_config config)
{
  char error[256] = "";
  struct hk_backend *b;
  config.detectors = detectors;
  config.n_detectors = 2;
  config.threads = kind->threads;
  if (kind->open(&b, &config, error, sizeof error) != 0)
    fail_msg("%s", error);
  return b;
}

/* Fills a batch with n points of a slot, a second apart, the first at `second`. */
static void fill(struct hk_batch *batch, uint32_t slot, uint32_t n, int64_t second)
{
  batch->kind = HK_BATCH_POINTS;
  batch->arrival = second * SECOND;
  batch->n = n;
  for (uint32_t i = 0; i < n; i++) {
    batch->slot[i] = slot;
    batch->time[i] = (second + i) * SECOND;
    batch->value[i] = sin((double)(second + i) * 0.9) + 1e-3 * (double)((second + i) * 7919 % 101);
  }
}

static void run(struct hk_backend *b, struct hk_batch *batch)
{
  assert_int_equal(b->ops->submit(b, batch), 0);
  b->ops->wait(b);
  assert_ptr_equal(b->ops->reap(b), batch);
  assert_int_equal(batch->status, 0);
}

/* Hands over a bad batch: it is refused by submit or, by a backend that finds it on its device, when it is reaped. */
static void refuse(struct hk_backend *b, struct hk_batch *batch)
{
  int status = b->ops->submit(b, batch);
  if (status == 0) {
    b->ops->wait(b);
    assert_ptr_equal(b->ops->reap(b), batch);
    status = batch->status;
  }
  assert_int_equal(status, -EINVAL);
}

static void bad_batches_are_refused_whole(void **state)
{
  (void)state;
  struct hk_backend *b = open_with((struct hk_backend_config){ .max_sensors = 10 });
  struct hk_batch *batch = hk_batch_new(b, 200);
  sensor_add(b, 3, 0, 1);
  sensor_add(b, 4, 0, 2);
  static const uint32_t unbound[] = { 0, 9, 10, 1u << 31, UINT32_MAX };
  for (size_t i = 0; i < sizeof unbound / sizeof *unbound; i++) {
    fill(batch, 3, 20, 1);
    batch->slot[19] = unbound[i];
    refuse(b, batch);
  }
  fill(batch, 3, HK_BATCH_PER_SENSOR + 1, 1);
  refuse(b, batch);
  fill(batch, 3, 200, 1);
  refuse(b, batch);
  fill(batch, 3, HK_BATCH_PER_SENSOR + 1, 1);
  batch->slot[10] = 4;
  run(b, batch); /* now 64 of one, with a hole that is filled, and 1 of another; had any of the refused been taken, these would be
                    late */
  for (uint32_t i = 0; i < batch->n; i++)
    assert_int_equal(batch->state[i], batch->slot[i] == 3 && i >= 23 ? HK_STATE_OK : HK_STATE_WARMING);
  fill(batch, 3, 0, 1);
  run(b, batch);
  assert_int_equal(batch->n_events, 0);
  hk_batch_free(batch);
  b->ops->close(b);
}

static void slots_are_bound_once(void **state)
{
  (void)state;
  struct hk_backend *b = open_with((struct hk_backend_config){ .max_sensors = 10 });
  sensor_add(b, 9, 0, 1);
  assert_int_equal(b->ops->add(b, 10, 0, 1), HK_FULL);
  assert_int_equal(b->ops->add(b, UINT32_MAX, 0, 1), HK_FULL);
  assert_true(b->ops->add(b, 9, 0, 1) < 0);
  assert_true(b->ops->add(b, 1, 2, 1) < 0);
  b->ops->remove(b, 9);
  b->ops->remove(b, 9);
  sensor_add(b, 9, 1, 1);
  b->ops->close(b);
}

/* A reused slot gives the results of a new one. */
static void a_slot_begins_anew(void **state)
{
  (void)state;
  struct hk_backend *b = open_with((struct hk_backend_config){ .max_sensors = 10 });
  struct hk_batch *batch = hk_batch_new(b, 64);
  float first[64];
  for (int round = 0; round < 3; round++) {
    sensor_add(b, 5, 0, 8);
    fill(batch, 5, 64, 100);
    run(b, batch);
    assert_true(isnan(batch->score[22]) && !isnan(batch->score[23]));
    if (round == 0)
      memcpy(first, batch->score, sizeof first);
    else
      assert_memory_equal(first, batch->score, sizeof first);
    b->ops->remove(b, 5);
    refuse(b, batch);
    assert_int_equal(b->ops->export_(b, 5, NULL, 0), -ENOENT);
  }
  hk_batch_free(batch);
  b->ops->close(b);
}

/* The number of bytes of `need` is enough, and one less is not; another slab is refused. */
static void memory_is_told_and_kept(void **state)
{
  (void)state;
  struct hk_backend *b = open_with((struct hk_backend_config){ .max_sensors = 10 });
  const uint64_t need = b->ops->need(b, 1, 3000), more = b->ops->need(b, 1, 100000);
  const uint64_t record = 4 * (hk_detector_span(&detectors[1]) + 20) + 256;
  b->ops->close(b);
  assert_true(need > 0 && more > 25 * need && need % 4 == 0);
  if (strcmp(kind->name, "reference") != 0)
    assert_true(more <= 100000 * record + (1 << 20));
  b = open_with((struct hk_backend_config){ .max_sensors = 200000, .memory = need });
  uint32_t added = 0;
  while (added < 200000 && b->ops->add(b, added, 1, added) == 0)
    added++;
  assert_in_range(added, 3000, 199999);
  assert_int_equal(b->ops->add(b, added, 1, 0), HK_FULL);
  b->ops->remove(b, 7);
  assert_int_equal(b->ops->add(b, 7, 1, 0), 0);
  assert_true(b->ops->need(b, 1, added) <= need);
  b->ops->close(b);
  b = open_with((struct hk_backend_config){ .max_sensors = 4000, .memory = need - 1 });
  int status = 0;
  for (added = 0; added < 3000 && status == 0; added++)
    status = b->ops->add(b, added, 1, added);
  assert_int_equal(status, HK_FULL);
  b->ops->close(b);
}

static void count_ready(void *arg)
{
  atomic_fetch_add((_Atomic int *)arg, 1);
}

static void places_are_limited_and_order_is_kept(void **state)
{
  (void)state;
  _Atomic int ready = 0;
  struct hk_backend *b =
      open_with((struct hk_backend_config){ .max_sensors = 10, .in_flight = 2, .ready = count_ready, .ready_arg = &ready });
  struct hk_batch *batch[3];
  sensor_add(b, 0, 0, 1);
  assert_null(b->ops->reap(b));
  b->ops->wait(b); /* nothing is in flight: returns */
  for (int i = 0; i < 3; i++) {
    batch[i] = hk_batch_new(b, 64);
    fill(batch[i], 0, 64, 1 + 64 * i);
  }
  for (int round = 0; round < 50; round++) {
    assert_int_equal(b->ops->submit(b, batch[0]), 0);
    assert_int_equal(b->ops->submit(b, batch[1]), 0);
    assert_int_equal(b->ops->submit(b, batch[2]), HK_AGAIN);
    for (int i = 0; i < 2; i++) {
      b->ops->wait(b);
      assert_ptr_equal(b->ops->reap(b), batch[i]);
    }
    assert_null(b->ops->reap(b));
  }
  for (int i = 0; i < 3; i++)
    hk_batch_free(batch[i]);
  b->ops->close(b);
  assert_int_equal(ready, 100);
}

static void closing_waits_for_what_is_in_flight(void **state)
{
  (void)state;
  /* ready may come while close waits; nothing is used after it was freed (the sanitizers look) */
  for (int round = 0; round < 20; round++) {
    _Atomic int ready = 0;
    struct hk_backend *b = open_with((struct hk_backend_config){ .max_sensors = 64, .ready = count_ready, .ready_arg = &ready });
    struct hk_batch batch[4], *memory[4];
    for (uint32_t i = 0; i < 64; i++)
      sensor_add(b, i, i % 2, i);
    for (int i = 0; i < 4; i++) {
      memory[i] = hk_batch_new(b, 64 * 64);
      fill(memory[i], 0, 64 * 64, 1);
      for (uint32_t k = 0; k < 64 * 64; k++)
        memory[i]->slot[k] = k % 64;
      batch[i] = *memory[i];
      assert_int_equal(b->ops->submit(b, &batch[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
      b->ops->wait(b);
      assert_ptr_equal(b->ops->reap(b), &batch[i]);
      hk_batch_free(memory[i]);
    }
    b->ops->close(b);
    assert_int_equal(ready, 4);
  }
}

static uint32_t sweep(struct hk_backend *b, struct hk_batch *batch, int64_t second, int64_t idle)
{
  batch->kind = HK_BATCH_SWEEP;
  batch->n = 0;
  batch->arrival = second * SECOND;
  batch->idle = idle * SECOND;
  run(b, batch);
  return batch->n_events;
}

static void silence_is_noticed(void **state)
{
  (void)state;
  struct hk_backend *b = open_with((struct hk_backend_config){ .max_sensors = 5000 });
  struct hk_batch *batch = hk_batch_new(b, 64), *other = hk_batch_new(b, 64);
  sensor_add(b, 2, 0, 1);
  sensor_add(b, 3, 0, 2); /* never sends: is not silent */
  sensor_add(b, 4000, 1, 3);
  fill(batch, 2, 60, 100); /* silent = 30s, on the arrival clock, which is at 100 s */
  run(b, batch);
  fill(batch, 4000, 60, 120);
  run(b, batch);
  assert_int_equal(sweep(b, batch, 130, 0), 0);
  assert_int_equal(sweep(b, batch, 131, 0), 1);
  const struct hk_event *e = batch->event;
  assert_true(e->kind == HK_EVENT_STALE && e->slot == 2 && e->index == UINT32_MAX && e->number == 0 && e->time == 159 * SECOND);
  assert_int_equal(sweep(b, batch, 132, 0), 0); /* once */
  assert_int_equal(sweep(b, batch, 155, 50), 2);
  assert_true(batch->event[0].kind == HK_EVENT_IDLE && batch->event[0].slot == 2);
  assert_true(batch->event[1].kind == HK_EVENT_STALE && batch->event[1].slot == 4000);
  fill(other, 2, 1, 160);
  run(b, other);
  assert_int_equal(other->state[0], HK_STATE_OK); /* a sweep touches neither window nor alert */
  assert_int_equal(sweep(b, batch, 161, 0), 1);
  assert_true(batch->event[0].kind == HK_EVENT_BACK && batch->event[0].slot == 2);
  hk_batch_free(batch);
  hk_batch_free(other);
  b->ops->close(b);
}

/* A name that never sends a point is reported idle, counted from the first sweep that found it. */
static void those_that_never_send_are_idle(void **state)
{
  (void)state;
  struct hk_backend *b = open_with((struct hk_backend_config){ .max_sensors = 10 });
  struct hk_batch *batch = hk_batch_new(b, 64);
  sensor_add(b, 3, 0, 1);
  assert_int_equal(sweep(b, batch, 100, 50), 0);
  sensor_add(b, 7, 1, 2);
  assert_int_equal(sweep(b, batch, 140, 50), 0);
  assert_int_equal(sweep(b, batch, 151, 50), 1);
  assert_true(batch->event[0].kind == HK_EVENT_IDLE && batch->event[0].slot == 3 && batch->event[0].time == 0);
  b->ops->remove(b, 3);
  assert_int_equal(sweep(b, batch, 191, 50), 1);
  assert_true(batch->event[0].kind == HK_EVENT_IDLE && batch->event[0].slot == 7);
  hk_batch_free(batch);
  b->ops->close(b);
}

/* More notices than a batch has room for: the rest comes with the next sweeps, each once. */
static void sweeps_go_on_where_they_stopped(void **state)
{
  (void)state;
  struct hk_backend *b = open_with((struct hk_backend_config){ .max_sensors = 100 });
  struct hk_batch *batch = hk_batch_new(b, 100), *small = hk_batch_new(b, 16);
  fill(batch, 0, 100, 10);
  for (uint32_t i = 0; i < 100; i++) {
    sensor_add(b, i, 0, i);
    batch->slot[i] = i;
  }
  run(b, batch);
  uint32_t told[100] = { 0 }, sweeps = 0, n;
  while ((n = sweep(b, small, 1000, 0)) > 0 && sweeps++ < 100) {
    assert_true(n <= 16);
    for (uint32_t i = 0; i < n; i++)
      told[small->event[i].slot]++;
  }
  for (uint32_t i = 0; i < 100; i++)
    assert_int_equal(told[i], 1);
  assert_in_range(sweeps, 7, 20);
  /* idle sensors are reported repeatedly, and none is left out */
  memset(told, 0, sizeof told);
  for (sweeps = 0; sweeps < 30; sweeps++) {
    n = sweep(b, small, 1000, 100);
    for (uint32_t i = 0; i < n; i++)
      told[small->event[i].slot]++;
  }
  for (uint32_t i = 0; i < 100; i++)
    assert_in_range(told[i], 2, 5); /* 8 or 16 of the 100 a sweep, as the backend keeps room for one notice of a sensor or two */
  hk_batch_free(batch);
  hk_batch_free(small);
  b->ops->close(b);
}

/* Sensors come while points and sweeps are in flight. */
static void sensors_are_added_meanwhile(void **state)
{
  (void)state;
  struct hk_backend *b = open_with((struct hk_backend_config){ .max_sensors = 2000, .in_flight = 4 });
  struct hk_batch *batch[4];
  for (uint32_t i = 0; i < 4; i++)
    batch[i] = hk_batch_new(b, 2000);
  uint32_t sensors = 0;
  for (uint32_t round = 0; round < 40; round++) {
    for (uint32_t i = 0; i < 4; i++) {
      for (uint32_t k = 0; k < 10; k++, sensors++)
        sensor_add(b, sensors, sensors % 2, sensors);
      fill(batch[i], 0, sensors, 1);
      batch[i]->kind = i == 2 ? HK_BATCH_SWEEP : HK_BATCH_POINTS;
      for (uint32_t k = 0; k < sensors; k++) {
        batch[i]->slot[k] = k;
        batch[i]->time[k] = (4 * round + i + 1) * SECOND;
      }
      assert_int_equal(b->ops->submit(b, batch[i]), 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
      b->ops->wait(b);
      assert_ptr_equal(b->ops->reap(b), batch[i]);
      assert_int_equal(batch[i]->status, 0);
      for (uint32_t k = 0; k < batch[i]->n && i != 2; k++)
        assert_in_range(batch[i]->state[k], HK_STATE_WARMING, HK_STATE_GAP);
    }
  }
  for (uint32_t i = 0; i < 4; i++)
    hk_batch_free(batch[i]);
  b->ops->close(b);
}

static void damaged_states_are_refused(void **state)
{
  (void)state;
  struct hk_backend *b = open_with((struct hk_backend_config){ .max_sensors = 10 });
  struct hk_batch *batch = hk_batch_new(b, 64);
  sensor_add(b, 0, 0, 1);
  sensor_add(b, 1, 0, 2);
  sensor_add(b, 2, 1, 3);
  fill(batch, 0, 50, 1);
  run(b, batch);
  const int64_t size = b->ops->export_(b, 0, NULL, 0);
  assert_in_range(size, 100, 1000);
  uint8_t bytes[1001], again[1000];
  assert_int_equal(b->ops->export_(b, 0, bytes, (size_t)size - 1), size); /* too small: writes nothing, returns the need */
  assert_int_equal(b->ops->export_(b, 0, bytes, sizeof bytes), size);
  bytes[size] = 0;
  for (int64_t i = 0; i < size; i++) {
    for (int bit = 0; bit < 8; bit++) {
      bytes[i] ^= (uint8_t)(1 << bit);
      assert_int_equal(b->ops->import_(b, 1, bytes, (size_t)size), -EINVAL);
      bytes[i] ^= (uint8_t)(1 << bit);
    }
    assert_int_equal(b->ops->import_(b, 1, bytes, (size_t)i), -EINVAL);
  }
  assert_int_equal(b->ops->import_(b, 1, bytes, (size_t)size + 1), -EINVAL);
  assert_int_equal(b->ops->import_(b, 2, bytes, (size_t)size), -EINVAL); /* of another window */
  assert_int_equal(b->ops->import_(b, 5, bytes, (size_t)size), -ENOENT);
  fill(batch, 1, 5, 1); /* sensor 1 is as new */
  run(b, batch);
  assert_int_equal(batch->state[4], HK_STATE_WARMING);
  assert_int_equal(b->ops->import_(b, 1, bytes, (size_t)size), 0);
  assert_int_equal(b->ops->export_(b, 1, again, sizeof again), size);
  assert_memory_equal(bytes, again, (size_t)size);
  hk_batch_free(batch);
  b->ops->close(b);
}

int main(int argc, char **argv)
{
  int code;
  char error[256];
  if (!(kind = backend_asked(argc, argv, NULL, &code)))
    return code;
  if (hk_detector_parse("window=8,gap=9,rank=2,interval=1s,silent=30s,alert=off", &detectors[0], error, sizeof error) != 0 ||
      hk_detector_parse("window=20,interval=1s,silent=30s,alert=off", &detectors[1], error, sizeof error) != 0) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(bad_batches_are_refused_whole),
    cmocka_unit_test(slots_are_bound_once),
    cmocka_unit_test(a_slot_begins_anew),
    cmocka_unit_test(memory_is_told_and_kept),
    cmocka_unit_test(places_are_limited_and_order_is_kept),
    cmocka_unit_test(closing_waits_for_what_is_in_flight),
    cmocka_unit_test(silence_is_noticed),
    cmocka_unit_test(those_that_never_send_are_idle),
    cmocka_unit_test(sweeps_go_on_where_they_stopped),
    cmocka_unit_test(sensors_are_added_meanwhile),
    cmocka_unit_test(damaged_states_are_refused),
  };
  return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
