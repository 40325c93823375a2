/* Chunks and sources: runs, pending points, and the freeing of a source. */
#include "daemon/intake/chunk.h"

#include "daemon/base/log.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_runs(void **state)
{
  (void)state;
  struct hk_source *a = hk_source_new(), *b = hk_source_new();
  struct hk_chunk *c = hk_chunk_new(3);
  assert_non_null(c);
  assert_int_equal(c->loop, 3);
  assert_int_equal(hk_chunk_room(c), HK_CHUNK_POINTS);
  const int64_t before = hk_now();
  hk_chunk_put(c, a, 7, 100, 0.5);
  assert_in_range(c->opened, before, hk_now());
  const int64_t opened = c->opened;
  hk_chunk_put(c, a, 8, 101, 1.5);
  hk_chunk_add(c, b, 0); /* leaves nothing behind */
  hk_chunk_put(c, b, 9, 102, 2.5);
  hk_chunk_put(c, a, 7, 103, 3.5);
  assert_int_equal(c->opened, opened);
  assert_int_equal(c->n, 4);
  assert_int_equal(c->n_runs, 3);
  assert_ptr_equal(c->runs[0].source, a);
  assert_int_equal(c->runs[0].n, 2);
  assert_ptr_equal(c->runs[1].source, b);
  assert_int_equal(c->runs[1].n, 1);
  assert_ptr_equal(c->runs[2].source, a);
  assert_int_equal(c->runs[2].n, 1);
  assert_int_equal(c->slot[2], 9);
  assert_int_equal(c->time[1], 101);
  assert_true(c->value[3] == 3.5);
  assert_int_equal(hk_source_pending(a), 3);
  assert_int_equal(hk_source_pending(b), 1);
  hk_source_done(a, 2);
  assert_int_equal(hk_source_pending(a), 1);
  hk_source_close(a); /* its last point holds it */
  hk_source_done(a, 1);
  hk_source_done(b, 1);
  hk_chunk_clear(c);
  assert_int_equal(hk_chunk_room(c), HK_CHUNK_POINTS);
  hk_chunk_put(c, b, 1, 1, 1);
  assert_int_equal(c->n_runs, 1);
  assert_int_equal(c->runs[0].n, 1);
  hk_source_done(b, 1);
  hk_source_close(b);
  hk_source_close(NULL);
  hk_chunk_free(c);
  hk_chunk_free(NULL);
}

/* As many runs as points, up to the last place of every column. */
static void test_full(void **state)
{
  (void)state;
  struct hk_source *s[2] = { hk_source_new(), hk_source_new() };
  struct hk_chunk *c = hk_chunk_new(0);
  for (uint32_t i = 0; i < HK_CHUNK_POINTS; i++)
    hk_chunk_put(c, s[i % 2], i, -(int64_t)i, i * 0.25);
  assert_int_equal(hk_chunk_room(c), 0);
  assert_int_equal(c->n_runs, HK_CHUNK_POINTS);
  for (uint32_t i = 0; i < HK_CHUNK_POINTS; i++) {
    assert_int_equal(c->slot[i], i);
    assert_int_equal(c->time[i], -(int64_t)i);
    assert_true(c->value[i] == i * 0.25);
    assert_ptr_equal(c->runs[i].source, s[i % 2]);
    hk_source_done(c->runs[i].source, c->runs[i].n);
  }
  for (int i = 0; i < 2; i++) {
    assert_int_equal(hk_source_pending(s[i]), 0);
    hk_source_close(s[i]);
  }
  hk_chunk_free(c);
}

enum { ROUNDS = 20000 };

static void *settle(void *arg)
{
  for (int i = 0; i < ROUNDS; i++)
    hk_source_done(arg, 1);
  return NULL;
}

/* Another thread counts a source down while this one closes it: the last of them frees it, once (a sanitizer detects anything
 * else). */
static void test_last_one_frees(void **state)
{
  (void)state;
  for (int round = 0; round < 20; round++) {
    struct hk_source *s = hk_source_new();
    pthread_t other;
    hk_source_add(s, ROUNDS);
    assert_int_equal(pthread_create(&other, NULL, settle, s), 0);
    uint64_t pending = hk_source_pending(s), last = ROUNDS;
    for (; round % 2 && pending > 0; pending = hk_source_pending(s)) {
      assert_true(pending <= last);
      last = pending;
    }
    hk_source_close(s);
    assert_int_equal(pthread_join(other, NULL), 0);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_runs),
    cmocka_unit_test(test_full),
    cmocka_unit_test(test_last_one_frees),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
