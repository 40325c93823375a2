/* The log of past scores: appended scores are read again, the newest of one sensor, in order, while others are appended. */
#include "daemon/scoring/score_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define N 1000
#define ROOM 5000
#define BLOCKS (HK_SCORE_LOG_LEAST / HK_SCORE_BLOCK_BYTES)

struct columns {
  uint32_t slot[N];
  int64_t time[N];
  float score[N];
};

static struct hk_batch batch_of(struct columns *c, uint32_t n)
{
  return (struct hk_batch){ .n = n, .capacity = N, .slot = c->slot, .time = c->time, .score = c->score };
}

/* A score that encodes its sensor and time. */
static float score_at(uint32_t slot, int64_t time)
{
  return (float)((slot * 31 + (uint64_t)time * 7) % 1009) / 1009;
}

/* A round of all sensors, at a time. */
static void put(struct hk_score_log *log, uint32_t sensors, int64_t time)
{
  struct columns c;
  for (uint32_t i = 0; i < sensors; i++) {
    c.slot[i] = i;
    c.time[i] = time;
    c.score[i] = score_at(i, time);
  }
  const struct hk_batch b = batch_of(&c, sensors);
  hk_score_log_put(log, &b);
}

/* Checks that the scores of a slot are those of the last times before `end`. */
static void assert_last(struct hk_score_log *log, uint32_t slot, uint32_t most, uint32_t n, int64_t end)
{
  static struct hk_scored out[ROOM];
  assert_int_equal(hk_score_log_read(log, slot, out, most), n);
  for (uint32_t i = 0; i < n; i++) {
    assert_int_equal(out[i].time, end - n + i);
    assert_true(out[i].score == score_at(slot, out[i].time));
  }
}

static void the_newest_in_order(void **state)
{
  (void)state;
  struct hk_score_log *log = hk_score_log_new(0);
  assert_non_null(log);
  assert_last(log, 3, 10, 0, 0);
  for (int64_t t = 0; t < 50; t++)
    put(log, 7, t);
  assert_last(log, 3, ROOM, 50, 50);
  assert_last(log, 6, 20, 20, 50);
  assert_last(log, 0, 1, 1, 50);
  assert_last(log, 0, 0, 0, 50);
  assert_last(log, 7, 10, 0, 50);
  hk_score_log_free(log);
  hk_score_log_free(NULL);
}

/* Rounds of N scores that exceed the room many times: all but one block of it always has scores. */
static void old_ones_go(void **state)
{
  (void)state;
  struct hk_score_log *log = hk_score_log_new(HK_SCORE_LOG_LEAST);
  const uint32_t least = (BLOCKS - 2) * HK_SCORE_BLOCK / N, most = (BLOCKS - 1) * HK_SCORE_BLOCK / N + 1;
  struct hk_scored out[ROOM];
  for (int64_t t = 0; t < 2000; t++) {
    put(log, N, t);
    if (t % 97 != 0)
      continue;
    const uint32_t n = hk_score_log_read(log, 500, out, ROOM);
    assert_true(n >= (t < least ? t + 1 : least) && n <= most);
    assert_last(log, 500, ROOM, n, t + 1);
    assert_last(log, N - 1, 10, t < 10 ? (uint32_t)t + 1 : 10, t + 1);
  }
  hk_score_log_free(log);
}

static void points_without_a_score_are_left_out(void **state)
{
  (void)state;
  struct hk_score_log *log = hk_score_log_new(0);
  struct columns c = { .slot = { 1, 1, 2, 1 }, .time = { 10, 20, 20, 30 }, .score = { NAN, .25f, 0, NAN } };
  const struct hk_batch b = batch_of(&c, 4);
  struct hk_scored out[4];
  hk_score_log_put(log, &b);
  assert_int_equal(hk_score_log_read(log, 1, out, 4), 1);
  assert_int_equal(out[0].time, 20);
  assert_true(out[0].score == .25f);
  assert_int_equal(hk_score_log_read(log, 2, out, 4), 1);
  assert_true(out[0].score == 0);
  hk_score_log_free(log);
}

static void what_was_another_sensors_is_not_read(void **state)
{
  (void)state;
  struct hk_score_log *log = hk_score_log_new(0);
  for (int64_t t = 0; t < 5; t++)
    put(log, 3, t);
  hk_score_log_forget(log, 1);
  assert_last(log, 1, ROOM, 0, 5);
  assert_last(log, 2, ROOM, 5, 5);
  for (int64_t t = 5; t < 8; t++)
    put(log, 3, t);
  assert_last(log, 1, ROOM, 3, 8);
  assert_last(log, 0, ROOM, 8, 8);
  hk_score_log_free(log);
}

/* --- while scores are appended ------------------------------------------------------------------------------------------- */

struct going {
  struct hk_score_log *log;
  atomic_bool ends;
  uint64_t read, wrong;
};

static void *reads(void *arg)
{
  struct going *g = arg;
  struct hk_scored *out = calloc(ROOM, sizeof *out);
  for (uint32_t slot = 0; !atomic_load(&g->ends); slot = (slot + 1) % N) {
    const uint32_t n = hk_score_log_read(g->log, slot, out, ROOM);
    for (uint32_t i = 0; i < n; i++)
      g->wrong += out[i].score != score_at(slot, out[i].time) || (i > 0 && out[i].time <= out[i - 1].time);
    g->read += n;
  }
  free(out);
  return NULL;
}

static void read_while_it_is_appended_to(void **state)
{
  (void)state;
  struct going g[2] = { { .log = hk_score_log_new(0) } };
  pthread_t thread[2];
  g[1].log = g[0].log;
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&thread[i], NULL, reads, &g[i]), 0);
  for (int64_t t = 0; t < 20000; t++)
    put(g[0].log, N, t);
  for (int i = 0; i < 2; i++) {
    atomic_store(&g[i].ends, true);
    pthread_join(thread[i], NULL);
    assert_int_equal(g[i].wrong, 0);
  }
  put(g[0].log, N, 20000);
  struct hk_scored last;
  assert_int_equal(hk_score_log_read(g[0].log, 5, &last, 1), 1); /* appending continues, whatever reading has skipped meanwhile */
  assert_int_equal(last.time, 20000);
  hk_score_log_free(g[0].log);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_newest_in_order),
    cmocka_unit_test(old_ones_go),
    cmocka_unit_test(points_without_a_score_are_left_out),
    cmocka_unit_test(what_was_another_sensors_is_not_read),
    cmocka_unit_test(read_while_it_is_appended_to),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
