/* The stage: order, the limit of points of one sensor in a batch, fairness, sources, and barred sensors. */
#include "daemon/scoring/batch_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SENSORS 50
#define CAPACITY 256

struct fixture {
  struct hk_stage *stage;
  hk_counter barred;
  struct hk_source *source[3];
  struct hk_chunk *chunk;
  struct hk_cursor cursor;
  struct hk_delivery delivery;
  struct hk_batch batch;
};

static struct fixture *fixture_new(uint32_t chained)
{
  struct fixture *f = calloc(1, sizeof *f);
  assert_int_equal(hk_stage_new(&f->stage, chained, SENSORS, &f->barred), 0);
  for (int i = 0; i < 3; i++)
    f->source[i] = hk_source_new();
  f->chunk = hk_chunk_new(0);
  f->batch = (struct hk_batch){ .capacity = CAPACITY };
  f->batch.slot = calloc(CAPACITY, sizeof *f->batch.slot);
  f->batch.time = calloc(CAPACITY, sizeof *f->batch.time);
  f->batch.value = calloc(CAPACITY, sizeof *f->batch.value);
  f->delivery.batch = &f->batch;
  f->delivery.runs = calloc(CAPACITY, sizeof *f->delivery.runs);
  return f;
}

static void fixture_free(struct fixture *f)
{
  hk_stage_free(f->stage);
  for (int i = 0; i < 3; i++)
    hk_source_close(f->source[i]);
  hk_chunk_free(f->chunk);
  free(f->batch.slot);
  free(f->batch.time);
  free(f->batch.value);
  free(f->delivery.runs);
  free(f);
}

static void put(struct fixture *f, uint32_t slot, int64_t time, double value)
{
  hk_chunk_put(f->chunk, f->source[0], slot, time, value);
}

/* Makes a batch of waiting points. True if the whole chunk was taken. */
static bool fill(struct fixture *f, uint32_t most)
{
  f->cursor.chunk = f->chunk;
  hk_stage_begin(f->stage, &f->delivery, most, SENSORS, f->chunk->n > f->cursor.at);
  return hk_stage_take(f->stage, &f->cursor);
}

static void settle(struct fixture *f)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < f->delivery.n_runs; i++) {
    n += f->delivery.runs[i].n;
    hk_source_done(f->delivery.runs[i].source, f->delivery.runs[i].n);
  }
  assert_int_equal(n, f->batch.n);
}

static void test_arrival_order(void **state)
{
  (void)state;
  struct fixture *f = fixture_new(1000);
  for (int i = 0; i < 1000; i++)
    put(f, (uint32_t)i % SENSORS, i, i * 0.5);
  assert_int_equal(hk_source_pending(f->source[0]), 1000);
  for (int i = 0; i < 1000;) {
    const bool all = fill(f, CAPACITY);
    assert_true(f->batch.n > 0);
    for (uint32_t k = 0; k < f->batch.n; k++, i++) {
      assert_int_equal(f->batch.time[k], i);
      assert_int_equal(f->batch.slot[k], i % SENSORS);
      assert_true(f->batch.value[k] == i * 0.5);
    }
    settle(f);
    assert_int_equal(hk_source_pending(f->source[0]), 1000 - i);
    assert_int_equal(all, i == 1000);
  }
  assert_int_equal(f->chunk->n, 0);
  fixture_free(f);
}

static void test_flood_delays_nobody(void **state)
{
  (void)state;
  struct fixture *f = fixture_new(4096);
  for (int i = 0; i < 1000; i++)
    put(f, 7, i, 0);
  put(f, 8, 0, 0);
  assert_true(fill(f, CAPACITY));
  assert_int_equal(f->batch.n, HK_BATCH_PER_SENSOR + 1); /* sensor 8 is in the first batch, after 1,000 points of sensor 7 */
  assert_int_equal(f->batch.slot[f->batch.n - 1], 8);
  assert_int_equal(hk_stage_unchained(f->stage), 0);
  assert_int_equal(hk_stage_held_at(f->stage), HK_BATCH_PER_SENSOR);
  settle(f);
  int64_t next = HK_BATCH_PER_SENSOR;
  while (hk_stage_chained(f->stage) > 0) {
    assert_true(hk_stage_has(f->stage, 7));
    put(f, 9, next, 0);
    assert_true(fill(f, CAPACITY));
    unsigned others = 0;
    for (uint32_t i = 0; i < f->batch.n; i++) {
      if (f->batch.slot[i] == 7)
        assert_int_equal(f->batch.time[i], next++);
      else
        others++;
    }
    assert_int_equal(others, 1);
    assert_int_equal(hk_stage_unchained(f->stage), f->batch.n - 1);
    assert_int_equal(hk_stage_held_at(f->stage), UINT32_MAX);
    assert_true(f->batch.n <= HK_BATCH_PER_SENSOR + 1);
    settle(f);
  }
  assert_false(hk_stage_has(f->stage, 7));
  assert_int_equal(next, 1000);
  fixture_free(f);
}

/* If chains are full, the rest stays in the chunk, and is taken later. */
static void test_chains_full(void **state)
{
  (void)state;
  struct fixture *f = fixture_new(100);
  for (int i = 0; i < 1000; i++)
    put(f, 7, i, 0);
  put(f, 8, 0, 0);
  int64_t next = 0;
  bool other = false;
  for (int rounds = 0; !other || hk_stage_chained(f->stage) > 0; rounds++) {
    assert_in_range(rounds, 0, 20);
    fill(f, CAPACITY);
    assert_in_range(hk_stage_chained(f->stage), 0, 100);
    for (uint32_t i = 0; i < f->batch.n; i++)
      if (f->batch.slot[i] == 7)
        assert_int_equal(f->batch.time[i], next++);
      else
        other = true;
    settle(f);
  }
  assert_int_equal(next, 1000);
  assert_int_equal(hk_source_pending(f->source[0]), 0);
  fixture_free(f);
}

/* Random points and batches, compared with counts: each sensor's points come out in order and from their source, none is lost,
 * and no batch has too many of one. There are more rounds than a count can distinguish, and sensors that pause for about as
 * long. */
static void test_random(void **state)
{
  (void)state;
  srand(1);
  struct fixture *f = fixture_new(30000);
  int64_t in[SENSORS] = { 0 }, out[SENSORS] = { 0 };
  uint64_t pending[3] = { 0 };
#ifdef HK_SANITIZED
  const int rounds = 6000;
#else
  const int rounds = 20000;
#endif
  for (int round = 0; round < rounds; round++) {
    const bool flood = rand() % 3 == 0;
    const uint32_t flooded = 4, awake = round / 500 % 2 ? SENSORS : SENSORS / 2; /* chains of 4 do not fit into one batch */
    uint32_t n = (uint32_t)rand() % 1000;
    if (f->chunk->n > 0 || hk_stage_chained(f->stage) > 20000)
      n = 0; /* it has to be taken first */
    for (; n > 0; n--) {
      const uint32_t slot = (uint32_t)rand() % (flood ? flooded : awake), from = (uint32_t)rand() % 3;
      hk_chunk_put(f->chunk, f->source[from], slot, in[slot]++, from);
      pending[from]++;
    }
    uint32_t of[SENSORS] = { 0 }, from[3] = { 0 }, told[3] = { 0 };
    const uint32_t most = rand() % 4 ? CAPACITY : 2 + (uint32_t)rand() % (2 * CAPACITY);
    fill(f, most);
    assert_in_range(f->batch.n, 0, most < CAPACITY ? most : CAPACITY);
    for (uint32_t i = 0; i < f->batch.n; i++) {
      assert_int_equal(f->batch.time[i], out[f->batch.slot[i]]++);
      assert_in_range(++of[f->batch.slot[i]], 1, HK_BATCH_PER_SENSOR);
      from[(int)f->batch.value[i]]++;
    }
    for (uint32_t i = 0; i < f->delivery.n_runs; i++)
      for (int k = 0; k < 3; k++)
        told[k] += f->delivery.runs[i].source == f->source[k] ? f->delivery.runs[i].n : 0;
    assert_memory_equal(from, told, sizeof from);
    settle(f);
    for (int i = 0; i < 3; i++) {
      pending[i] -= from[i];
      assert_int_equal(hk_source_pending(f->source[i]), pending[i]);
    }
  }
  uint64_t waiting = 0;
  for (int i = 0; i < SENSORS; i++)
    waiting += (uint64_t)(in[i] - out[i]);
  assert_int_equal(hk_stage_chained(f->stage) + f->chunk->n - f->cursor.at, waiting);
  for (uint32_t i = f->cursor.run; i < f->chunk->n_runs; i++) /* give up the rest */
    hk_source_done(f->chunk->runs[i].source, f->chunk->runs[i].n - (i == f->cursor.run ? f->cursor.of_run : 0));
  fixture_free(f);
}

/* Points of barred sensors are dropped, from chains and as they come; the others keep their order. */
static void test_barred(void **state)
{
  (void)state;
  static const uint32_t odd[] = { 2 * 7, 2 * 9, 2 * 11 }; /* of two shards: 7, 9 and 11 here */
  struct fixture *f = fixture_new(2000);
  int64_t time = 0;
  for (; time < 800; time++) /* floods of two sensors, which become chains */
    put(f, time % 2 ? 7 : 8, time, 0);
  assert_true(fill(f, CAPACITY));
  assert_int_equal(f->batch.n, 2 * HK_BATCH_PER_SENSOR);
  settle(f);
  hk_stage_bar(f->stage, odd, 3, 2);
  assert_int_equal(f->barred, 400 - HK_BATCH_PER_SENSOR);
  assert_int_equal(hk_stage_chained(f->stage), 400 - HK_BATCH_PER_SENSOR);
  assert_false(hk_stage_has(f->stage, 7));
  for (int more = 0; more < 3; more++) {
    for (; time < 900 + 100 * more; time++)
      put(f, (uint32_t)(time % SENSORS), time, 0);
    assert_true(fill(f, CAPACITY));
    int64_t last = -1;
    for (uint32_t i = 0; i < f->batch.n; i++) {
      assert_false(f->batch.slot[i] == 7 || f->batch.slot[i] == 9 || f->batch.slot[i] == 11);
      if (f->batch.slot[i] == 8) {
        assert_true(f->batch.time[i] > last);
        last = f->batch.time[i];
      }
    }
    settle(f);
    assert_int_equal(f->barred, 400 - HK_BATCH_PER_SENSOR + 6 * (more + 1));
  }
  hk_stage_unbar(f->stage);
  put(f, 7, 0, 0);
  assert_true(fill(f, CAPACITY));
  assert_int_equal(f->batch.slot[f->batch.n - 1], 7);
  settle(f);
  while (hk_stage_chained(f->stage) > 0) {
    fill(f, CAPACITY);
    settle(f);
  }
  assert_int_equal(hk_source_pending(f->source[0]), 0);
  fixture_free(f);
}

/* A batch has the stamps of its oldest point, wherever it has waited: in a partly taken chunk, or in a chain. */
static void test_stamps(void **state)
{
  (void)state;
  struct fixture *f = fixture_new(4096);
  for (int i = 0; i < 200; i++)
    put(f, (uint32_t)i % 2, i, 0);
  f->chunk->opened = 1000;
  f->chunk->sealed = 1010;
  assert_false(fill(f, 50));
  assert_int_equal(f->delivery.stamps.decoded, 1000);
  assert_int_equal(f->delivery.stamps.sealed, 1010);
  settle(f);
  assert_true(fill(f, CAPACITY)); /* 64 of each go, 22 stay in chains */
  assert_int_equal(f->delivery.stamps.decoded, 1000);
  assert_int_equal(f->delivery.stamps.sealed, 1010);
  settle(f);
  assert_int_equal(hk_stage_chained(f->stage), 22);
  put(f, 5, 0, 0);
  f->chunk->opened = 2000;
  f->chunk->sealed = 2010;
  assert_true(fill(f, CAPACITY));
  assert_int_equal(f->batch.n, 23);
  assert_int_equal(f->delivery.stamps.decoded, 1000);
  settle(f);
  put(f, 5, 1, 0);
  f->chunk->opened = 3000;
  f->chunk->sealed = 3010;
  assert_true(fill(f, CAPACITY));
  assert_int_equal(f->delivery.stamps.decoded, 3000);
  assert_int_equal(f->delivery.stamps.sealed, 3010);
  settle(f);
  fixture_free(f);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_arrival_order), cmocka_unit_test(test_flood_delays_nobody),
                                      cmocka_unit_test(test_chains_full),   cmocka_unit_test(test_random),
                                      cmocka_unit_test(test_barred),        cmocka_unit_test(test_stamps) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
