/* Points of frames and single points are put into the chunks of one shard and of several, and compared with a list for each
 * shard. */
#include "daemon/intake/chunk_fill.h"
#include "proto/wire/columns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SENSORS = 1000, MOST = 3 * HK_CHUNK_POINTS, SOURCES = 3 };

struct point {
  uint32_t slot, source;
  int64_t time;
  double value;
};

/* The other side: the points that were put in, by shard, and those that have come out so far. */
struct road {
  struct hk_filling filling;
  struct hk_source *source[SOURCES];
  struct point *expected[HK_SHARDS_MAX];
  uint32_t n_expected[HK_SHARDS_MAX], n_out[HK_SHARDS_MAX], n_full;
};

static void take_out(struct road *r, uint32_t shard)
{
  struct hk_chunk *c = r->filling.chunk[shard];
  uint32_t at = 0;
  for (uint32_t run = 0; run < c->n_runs; run++) {
    assert_true(c->runs[run].n > 0);
    for (uint32_t i = 0; i < c->runs[run].n; i++, at++) {
      assert_true(r->n_out[shard] < r->n_expected[shard]);
      const struct point *p = &r->expected[shard][r->n_out[shard]++];
      assert_ptr_equal(c->runs[run].source, r->source[p->source]);
      assert_int_equal(c->slot[at], p->slot / r->filling.shards);
      assert_int_equal(shard, p->slot % r->filling.shards);
      assert_int_equal(c->time[at], p->time);
      assert_true(c->value[at] == p->value);
    }
    hk_source_done(c->runs[run].source, c->runs[run].n);
  }
  assert_int_equal(at, c->n);
  hk_chunk_clear(c);
}

static struct hk_chunk *full(void *arg, uint32_t shard)
{
  struct road *r = arg;
  assert_int_equal(r->filling.chunk[shard]->n, HK_CHUNK_POINTS);
  take_out(r, shard);
  r->n_full++;
  return r->filling.chunk[shard];
}

static void expect(struct road *r, const struct point *p)
{
  const uint32_t shard = p->slot % r->filling.shards;
  r->expected[shard][r->n_expected[shard]++] = *p;
}

/* A frame of n points, some with invalid handles. */
static void put_frame(struct road *r, const struct hk_decoder *d, uint32_t source, uint32_t n)
{
  static uint32_t handle[MOST];
  static float value[MOST];
  static uint8_t bytes[MOST * 8 + 64];
  const bool damaged = rand() % 2;
  const struct hk_points p = {
    .n = n, .time_kind = HK_TIME_EVEN, .value_kind = HK_VALUE_F32, .base = rand(), .step = 7, .values = value, .handles = handle
  };
  uint32_t good = 0;
  for (uint32_t i = 0; i < n; i++) {
    handle[i] = (uint32_t)rand() % SENSORS;
    value[i] = (float)rand();
    if (damaged && rand() % 5 == 0) {
      handle[i] |= 1u << 24;
    } else {
      expect(r, &(struct point){ handle[i], source, p.base + 7 * (int64_t)i, (double)value[i] });
      good++;
    }
  }
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  struct hk_frame f;
  struct hk_points read;
  assert_int_equal(hk_points_write(&w, 0, &p), 0);
  assert_int_equal(hk_frame_read(bytes, w.size, HK_FRAME_MAX, &f), HK_FRAME_WHOLE);
  assert_int_equal(hk_points_read(&f, &read), 0);
  const struct hk_decoded out = hk_fill_points(&r->filling, r->source[source], d, &read, 0);
  assert_int_equal(out.n, good);
  assert_int_equal(out.ahead, 0);
}

static void fill(uint32_t shards)
{
  static atomic_uint of_slot[SENSORS + 1];
  struct road *r = calloc(1, sizeof *r);
  const struct hk_decoder d = { { of_slot, SENSORS }, 0, INT64_MAX };
  for (uint32_t i = 0; i < SENSORS; i++)
    atomic_init(&of_slot[i], i);
  r->filling = (struct hk_filling){ .shards = shards, .full = full, .arg = r };
  for (uint32_t i = 0; i < SOURCES; i++)
    r->source[i] = hk_source_new();
  for (uint32_t i = 0; i < shards; i++) {
    r->filling.chunk[i] = hk_chunk_new(0);
    r->expected[i] = malloc((80 * (size_t)MOST / shards + MOST) * sizeof(struct point));
  }
  for (int round = 0; round < 40; round++) {
    const uint32_t source = (uint32_t)rand() % SOURCES;
    const uint32_t n = rand() % 4 ? 1 + (uint32_t)rand() % 3000 : 1 + (uint32_t)rand() % MOST;
    if (rand() % 3) {
      put_frame(r, &d, source, n);
    } else {
      static uint32_t slot[MOST];
      static int64_t time[MOST];
      static double value[MOST];
      for (uint32_t i = 0; i < n; i++) {
        const struct point p = { (uint32_t)rand() % SENSORS, source, i, rand() };
        expect(r, &p);
        slot[i] = p.slot;
        time[i] = p.time;
        value[i] = p.value;
      }
      hk_fill_slots(&r->filling, r->source[source], n, &(struct hk_columns){ slot, time, value });
    }
    /* Between calls all points in chunks are accounted for. */
    uint64_t pending = 0, open = 0;
    for (uint32_t i = 0; i < SOURCES; i++)
      pending += hk_source_pending(r->source[i]);
    for (uint32_t i = 0; i < shards; i++) {
      assert_true(hk_chunk_room(r->filling.chunk[i]) > 0);
      open += r->filling.chunk[i]->n;
    }
    assert_int_equal(pending, open);
  }
  assert_true(r->n_full > 0 || shards > 8);
  for (uint32_t i = 0; i < shards; i++) {
    take_out(r, i);
    assert_int_equal(r->n_out[i], r->n_expected[i]);
    hk_chunk_free(r->filling.chunk[i]);
    free(r->expected[i]);
  }
  for (uint32_t i = 0; i < SOURCES; i++) {
    assert_int_equal(hk_source_pending(r->source[i]), 0);
    hk_source_close(r->source[i]);
  }
  free(r);
}

static void test_one_shard(void **state)
{
  (void)state;
  fill(1);
}

static void test_several_shards(void **state)
{
  (void)state;
  static const uint32_t shards[] = { 2, 3, 4, 7, 8, HK_SHARDS_MAX };
  for (size_t i = 0; i < sizeof shards / sizeof *shards; i++)
    fill(shards[i]);
}

/* The highest slot, where a rounded reciprocal would be wrong first. */
static void test_far_slots(void **state)
{
  (void)state;
  for (uint32_t shards = 2; shards <= HK_SHARDS_MAX; shards++)
    for (uint32_t back = 0; back < 3 * shards; back++) {
      const uint32_t slot = 0xfffffe - back;
      assert_int_equal(slot * ((1ull << 32) / shards + 1) >> 32, slot / shards);
    }
}

static struct hk_chunk *thrown_away(void *arg, uint32_t shard)
{
  struct hk_filling *f = arg;
  for (uint32_t i = 0; i < f->chunk[shard]->n_runs; i++)
    hk_source_done(f->chunk[shard]->runs[i].source, f->chunk[shard]->runs[i].n);
  hk_chunk_clear(f->chunk[shard]);
  return f->chunk[shard];
}

/* The first late point is reported, wherever a chunk or a piece ended; one sensor of each shard. */
static void test_first_ahead(void **state)
{
  (void)state;
  enum { N = 40000, LATEST = 20000 };
  static uint32_t handle[N];
  static float value[N];
  static atomic_uint of_slot[SENSORS + 1];
  for (uint32_t i = 0; i < SENSORS; i++)
    atomic_init(&of_slot[i], i);
  for (uint32_t i = 0; i < N; i++)
    handle[i] = i % SENSORS;
  for (uint32_t shards = 1; shards <= 3; shards += 2) {
    const struct hk_decoder d = { { of_slot, SENSORS }, 0, LATEST };
    const struct hk_points p = {
      .n = N, .time_kind = HK_TIME_EVEN, .value_kind = HK_VALUE_F32, .step = 1, .values = value, .handles = handle
    };
    struct hk_source *source = hk_source_new();
    struct hk_filling f = { .shards = shards, .full = thrown_away, .arg = &f };
    for (uint32_t i = 0; i < shards; i++)
      f.chunk[i] = hk_chunk_new(0);
    const struct hk_decoded out = hk_fill_points(&f, source, &d, &p, 0);
    assert_int_equal(out.n, N);
    assert_int_equal(out.ahead, N - LATEST - 1);
    assert_int_equal(out.time, LATEST + 1);
    assert_int_equal(out.slot, (LATEST + 1) % SENSORS);
    for (uint32_t i = 0; i < shards; i++) {
      (void)thrown_away(&f, i);
      hk_chunk_free(f.chunk[i]);
    }
    assert_int_equal(hk_source_pending(source), 0);
    hk_source_close(source);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_one_shard), cmocka_unit_test(test_several_shards),
                                      cmocka_unit_test(test_far_slots), cmocka_unit_test(test_first_ahead) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
