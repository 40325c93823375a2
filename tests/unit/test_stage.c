/* The stage: order, the limit of one sensor in a batch, fairness, and what is pending. */
#include "daemon/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SENSORS 50
#define CAPACITY 256

static struct hk_batch *batch_new(uint32_t capacity)
{
  struct hk_batch *b = calloc(1, sizeof *b);
  b->capacity = capacity;
  b->slot = calloc(capacity, sizeof *b->slot);
  b->time = calloc(capacity, sizeof *b->time);
  b->value = calloc(capacity, sizeof *b->value);
  return b;
}

static void batch_free(struct hk_batch *b)
{
  free(b->slot);
  free(b->time);
  free(b->value);
  free(b);
}

static void test_arrival_order(void **state)
{
  (void)state;
  struct hk_stage *stage;
  uint32_t source, sources[CAPACITY];
  struct hk_batch *b = batch_new(CAPACITY);
  assert_int_equal(hk_stage_new(&stage, 1000, SENSORS), 0);
  assert_int_equal(hk_stage_open(stage, &source), 0);
  for (int i = 0; i < 1000; i++)
    hk_stage_push(stage, source, (uint32_t)i % SENSORS, i, i * 0.5);
  assert_int_equal(hk_stage_room(stage), 0);
  for (int i = 0; i < 1000;) {
    hk_stage_fill(stage, b, CAPACITY, sources);
    assert_true(b->n > 0);
    for (uint32_t k = 0; k < b->n; k++, i++) {
      assert_int_equal(b->time[k], i);
      assert_int_equal(b->slot[k], i % SENSORS);
      assert_true(b->value[k] == i * 0.5);
      assert_int_equal(sources[k], source);
    }
    hk_stage_done(stage, b, sources);
    assert_int_equal(hk_stage_pending(stage, source), 1000 - i);
  }
  assert_int_equal(hk_stage_room(stage), 1000);
  batch_free(b);
  hk_stage_free(stage);
}

static void test_flood_delays_nobody(void **state)
{
  (void)state;
  struct hk_stage *stage;
  uint32_t source, sources[CAPACITY];
  struct hk_batch *b = batch_new(CAPACITY);
  assert_int_equal(hk_stage_new(&stage, 4096, SENSORS), 0);
  assert_int_equal(hk_stage_open(stage, &source), 0);
  for (int i = 0; i < 1000; i++)
    hk_stage_push(stage, source, 7, i, 0);
  hk_stage_push(stage, source, 8, 0, 0);
  hk_stage_fill(stage, b, CAPACITY, sources);
  assert_int_equal(b->n, HK_BATCH_PER_SENSOR + 1); /* sensor 8 is in the first batch, behind 1,000 points of sensor 7 */
  assert_int_equal(b->slot[b->n - 1], 8);
  hk_stage_done(stage, b, sources);
  int64_t next = HK_BATCH_PER_SENSOR;
  while (hk_stage_waiting(stage) > 0) {
    hk_stage_push(stage, source, 9, next, 0);
    hk_stage_fill(stage, b, CAPACITY, sources);
    unsigned others = 0;
    for (uint32_t i = 0; i < b->n; i++) {
      if (b->slot[i] == 7)
        assert_int_equal(b->time[i], next++);
      else
        others++;
    }
    assert_int_equal(others, 1);
    assert_true(b->n <= HK_BATCH_PER_SENSOR + 1);
    hk_stage_done(stage, b, sources);
  }
  assert_int_equal(next, 1000);
  batch_free(b);
  hk_stage_free(stage);
}

/* Random pushes and fills against counts: each sensor's points come out in order, none is lost, no batch has too many of one. */
static void test_random(void **state)
{
  (void)state;
  srand(1);
  struct hk_stage *stage;
  uint32_t source[3], sources[4][CAPACITY], oldest = 0, in_flight = 0;
  struct hk_batch *b[4];
  int64_t in[SENSORS] = { 0 }, out[SENSORS] = { 0 };
  uint32_t pending[3] = { 0 };
  for (int i = 0; i < 4; i++)
    b[i] = batch_new(CAPACITY);
  assert_int_equal(hk_stage_new(&stage, 1777, SENSORS), 0);
  for (int i = 0; i < 3; i++)
    assert_int_equal(hk_stage_open(stage, &source[i]), 0);
  for (int round = 0; round < 20000; round++) {
    const bool flood = rand() % 3 == 0;
    const uint32_t flooded = 4; /* chains of that many do not fit into one batch */
    for (int n = rand() % 1000; n > 0 && hk_stage_room(stage) > 0; n--) {
      const uint32_t slot = (uint32_t)rand() % (flood ? flooded : SENSORS), from = (uint32_t)rand() % 3;
      hk_stage_push(stage, source[from], slot, in[slot]++, from);
      pending[from]++;
    }
    if (in_flight == 4 || (in_flight > 0 && rand() % 2)) {
      hk_stage_done(stage, b[oldest], sources[oldest]);
      for (uint32_t i = 0; i < b[oldest]->n; i++)
        pending[(int)b[oldest]->value[i]]--;
      oldest = (oldest + 1) % 4;
      in_flight--;
    }
    for (int i = 0; i < 3; i++)
      assert_int_equal(hk_stage_pending(stage, source[i]), pending[i]);
    struct hk_batch *next = b[(oldest + in_flight) % 4];
    uint32_t of[SENSORS] = { 0 };
    const uint32_t most = rand() % 4 ? CAPACITY : 1 + (uint32_t)rand() % (2 * CAPACITY);
    hk_stage_fill(stage, next, most, sources[(oldest + in_flight) % 4]);
    assert_in_range(next->n, 0, most < CAPACITY ? most : CAPACITY);
    in_flight++;
    for (uint32_t i = 0; i < next->n; i++) {
      assert_int_equal(next->time[i], out[next->slot[i]]++);
      assert_int_equal(sources[(oldest + in_flight - 1) % 4][i], source[(int)next->value[i]]);
      assert_in_range(++of[next->slot[i]], 1, HK_BATCH_PER_SENSOR);
    }
  }
  uint32_t waiting = 0;
  for (int i = 0; i < SENSORS; i++)
    waiting += (uint32_t)(in[i] - out[i]);
  assert_int_equal(hk_stage_waiting(stage), waiting);
  for (int i = 0; i < 4; i++)
    batch_free(b[i]);
  hk_stage_free(stage);
}

static void test_sources(void **state)
{
  (void)state;
  struct hk_stage *stage;
  uint32_t first, second, third, sources[CAPACITY];
  struct hk_batch *b = batch_new(CAPACITY);
  assert_int_equal(hk_stage_new(&stage, 100, SENSORS), 0);
  assert_int_equal(hk_stage_open(stage, &first), 0);
  hk_stage_push(stage, first, 1, 0, 0);
  hk_stage_close(stage, first); /* its number must not be used again while a point of it is pending */
  assert_int_equal(hk_stage_open(stage, &second), 0);
  assert_int_not_equal(first, second);
  hk_stage_fill(stage, b, CAPACITY, sources);
  assert_int_equal(hk_stage_pending_of(stage, 1), 1);
  hk_stage_done(stage, b, sources);
  assert_int_equal(hk_stage_pending_of(stage, 1), 0);
  assert_int_equal(hk_stage_open(stage, &third), 0);
  assert_int_equal(first, third);
  hk_stage_push(stage, third, 1, 0, 0);
  hk_stage_fill(stage, b, CAPACITY, sources);
  hk_stage_done(stage, b, sources);
  assert_int_equal(hk_stage_open(stage, &first), 0); /* a source with nothing pending keeps its number until it is closed */
  assert_int_not_equal(first, third);
  for (int i = 0; i < 1000; i++) { /* numbers are used again: the table does not grow */
    uint32_t again;
    assert_int_equal(hk_stage_open(stage, &again), 0);
    assert_in_range(again, 0, 15);
    hk_stage_close(stage, again);
  }
  batch_free(b);
  hk_stage_free(stage);
}

static bool odd(void *arg, uint32_t slot)
{
  (*(unsigned *)arg)++;
  return slot % 2 == 1;
}

/* Points of sensors that are gone go, out of the queue and out of chains; the others keep their order. */
static void test_purge(void **state)
{
  (void)state;
  struct hk_stage *stage;
  uint32_t source, ended, sources[CAPACITY];
  unsigned asked = 0;
  struct hk_batch *b = batch_new(CAPACITY);
  assert_int_equal(hk_stage_new(&stage, 2000, SENSORS), 0);
  assert_int_equal(hk_stage_open(stage, &source), 0);
  assert_int_equal(hk_stage_open(stage, &ended), 0);
  int64_t time = 0;
  for (; time < 800; time++) /* floods of two sensors, which become chains */
    hk_stage_push(stage, source, time % 2 ? 7 : 8, time, 0);
  hk_stage_fill(stage, b, CAPACITY, sources);
  assert_int_equal(b->n, 2 * HK_BATCH_PER_SENSOR);
  for (; time < 1000; time++)
    hk_stage_push(stage, time % SENSORS == 3 ? ended : source, (uint32_t)(time % SENSORS), time, 0);
  hk_stage_close(stage, ended); /* all it has left is of a sensor that goes */
  assert_int_equal(hk_stage_purge(stage, odd, &asked), 400 - HK_BATCH_PER_SENSOR + 100);
  assert_true(asked > 0);
  assert_int_equal(hk_stage_waiting(stage), 400 - HK_BATCH_PER_SENSOR + 100);
  assert_int_equal(hk_stage_room(stage), 2000 - 400 + HK_BATCH_PER_SENSOR - 100);
  assert_int_equal(hk_stage_pending_of(stage, 7), HK_BATCH_PER_SENSOR); /* in the batch */
  assert_int_equal(hk_stage_pending_of(stage, 9), 0);
  hk_stage_done(stage, b, sources);
  uint32_t again;
  assert_int_equal(hk_stage_open(stage, &again), 0);
  assert_int_equal(again, ended); /* its number is free */
  int64_t last[SENSORS] = { 0 };
  uint32_t n = 0;
  while (hk_stage_waiting(stage) > 0) {
    hk_stage_fill(stage, b, CAPACITY, sources);
    for (uint32_t i = 0; i < b->n; i++, n++) {
      assert_int_equal(b->slot[i] % 2, 0);
      assert_true(b->time[i] >= last[b->slot[i]]);
      last[b->slot[i]] = b->time[i] + 1;
    }
    hk_stage_done(stage, b, sources);
  }
  assert_int_equal(n, 400 - HK_BATCH_PER_SENSOR + 100);
  assert_int_equal(hk_stage_pending(stage, source), 0);
  for (int i = 0; i < 2000; i++) /* no cell and no place was lost */
    hk_stage_push(stage, source, 8, i, 0);
  while (hk_stage_waiting(stage) > 0) {
    hk_stage_fill(stage, b, CAPACITY, sources);
    hk_stage_done(stage, b, sources);
  }
  assert_int_equal(hk_stage_room(stage), 2000);
  batch_free(b);
  hk_stage_free(stage);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_arrival_order), cmocka_unit_test(test_flood_delays_nobody),
                                      cmocka_unit_test(test_random), cmocka_unit_test(test_sources),
                                      cmocka_unit_test(test_purge) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
