/* The event log: which events are shown and when, replay, restarts, bounds of its size, names made to collide. */
#include "daemon/durable/event_log.h"
#include "tests/unit/support/event_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define XXH_INLINE_ALL /* names that collide are looked for among 131 million */
#include <xxhash.h>

#include <cmocka.h>

static void test_shown(void **state)
{
  struct place p;
  uint64_t missed;
  (void)state;
  set_up(&p);
  struct hk_eventlog *e = open_log(&p);
  assert_int_equal(hk_eventlog_last(e), 0);
  for (uint64_t i = 1; i <= 20; i++)
    assert_int_equal(append(e, i), i);
  assert_int_equal(count_from(e, 1, NULL), 0); /* nothing before it is on the disk */
  assert_true(hk_journal_take(hk_eventlog_journal(e)));
  assert_int_equal(append(e, 21), 21);
  assert_int_equal(hk_eventlog_commit(e), 0);
  assert_int_equal(hk_eventlog_shown(e), 20); /* not what came after the mark */
  assert_int_equal(count_from(e, 1, &missed), 20);
  assert_int_equal(missed, 0);
  assert_int_equal(count_from(e, 16, NULL), 5);
  assert_int_equal(count_from(e, 21, NULL), 0);
  assert_int_equal(count_from(e, 99, NULL), 0);
  assert_int_equal(commit(e), 0);
  assert_int_equal(count_from(e, 1, NULL), 21);
  hk_journal_pause(hk_eventlog_journal(e));
  assert_int_equal(append(e, 22), 22);
  assert_int_equal(count_from(e, 1, NULL), 22);
  hk_eventlog_free(e); /* 22 was published but is not on the disk */
  e = open_log(&p);
  assert_int_equal(hk_eventlog_last(e), 21);
  assert_int_equal(count_from(e, 1, NULL), 21);
  hk_eventlog_free(e);
  tear_down(&p);
}

static void test_replay(void **state)
{
  struct place p;
  (void)state;
  set_up(&p);
  struct hk_eventlog *e = open_log(&p);
  const struct hk_event first = { .kind = HK_EVENT_RAISED };
  for (uint64_t i = 1; i <= 30; i++)
    assert_int_equal(append(e, i), i);
  for (uint32_t i = 0; i < 100; i++) { /* names and handles that are almost the same */
    char name[8];
    snprintf(name, sizeof name, "s%u", i);
    assert_int_equal(hk_eventlog_append(e, i, hk_string(name), i + 1, &first, hk_string(""), 0), 31 + i);
  }
  assert_int_equal(commit(e), 0);
  hk_eventlog_free(e);
  e = open_log(&p);
  for (uint32_t i = 0; i < 100; i++) {
    char name[8];
    snprintf(name, sizeof name, "s%u", i);
    assert_int_equal(hk_eventlog_past(e, i, hk_string(name)).sequence, i + 1);
  }
  assert_int_equal(hk_eventlog_past(e, 3, hk_string("sensor number 3")).sequence, nth(24, (char[64]){ 0 }).sequence);
  assert_int_equal(hk_eventlog_past(e, 7, hk_string("s7")).open, 38);
  assert_int_equal(hk_eventlog_past(e, 7, hk_string("s8")).open, 0);
  assert_int_equal(hk_eventlog_past(e, 3 | 1u << 24, hk_string("sensor number 3")).sequence, 0); /* the next one of the name */
  for (uint64_t i = 22; i <= 30; i++)
    assert_int_equal(append(e, i), 0);
  assert_int_equal(append(e, 31), 131);
  assert_int_equal(commit(e), 0);
  hk_eventlog_replayed(e);
  assert_int_equal(hk_eventlog_append(e, 3, hk_string("sensor number 3"), 1, &first, hk_string(""), 0), 132);
  hk_eventlog_free(e);
  tear_down(&p);
}

/* Eight letters, of which each number has its own. */
static void letters(char name[8], uint32_t number)
{
  uint64_t spread = number; /* a nibble a byte */
  spread = (spread | spread << 16) & 0x0000ffff0000ffff;
  spread = (spread | spread << 8) & 0x00ff00ff00ff00ff;
  spread = (spread | spread << 4) & 0x0f0f0f0f0f0f0f0f;
  spread += 0x6161616161616161; /* 'a' */
  memcpy(name, &spread, sizeof spread);
}

/* CPU seconds for opening a log with an event of each of n sensors; collide: a hash without a key would put all their names into
 * one place. */
static double open_seconds(uint32_t n, uint64_t mask, bool collide)
{
  struct place p;
  const struct hk_event raised = { .kind = HK_EVENT_RAISED };
  const uint32_t handle = 0;
  const uint64_t seed = XXH3_64bits(&handle, sizeof handle);
  set_up(&p);
  struct hk_eventlog *e = open_log(&p);
  for (uint32_t i = 0, k = 0; i < n; k++) {
    char name[8];
    letters(name, k);
    if (collide && (XXH3_64bits_withSeed(name, sizeof name, seed) & mask) != 7)
      continue;
    assert_int_equal(hk_eventlog_append(e, handle, (struct hk_string){ name, sizeof name }, 1, &raised, hk_string(""), 0), ++i);
  }
  assert_int_equal(commit(e), 0);
  hk_eventlog_free(e);
  const clock_t begin = clock();
  e = open_log(&p);
  const clock_t end = clock();
  hk_eventlog_free(e);
  tear_down(&p);
  return (double)(end - begin) / CLOCKS_PER_SEC;
}

static void test_collisions(void **state)
{
  (void)state;
#ifdef HK_SANITIZED
  const uint32_t n = 500, mask = 1023; /* a sanitizer sees no more in many */
#else
  const uint32_t n = 8000, mask = 16383; /* of a table of 16384 */
#endif
  const double plain = open_seconds(n, 0, false), collide = open_seconds(n, mask, true);
  print_message("# %u events: %.4f s, with names made to collide %.4f s\n", n, plain, collide);
  assert_true(collide < 4 * plain + 0.005);
}

/* Bytes of all files of the log. */
static uint64_t on_disk(const struct place *p, size_t *n)
{
  uint64_t *numbers, bytes = 0;
  assert_int_equal(hk_disk_list(&p->disk, p->folder, "events", "hke", &numbers, n), 0);
  for (size_t i = 0; i < *n; i++) {
    char name[HK_DISK_NAME_MAX];
    struct stat s;
    hk_disk_name(name, "events", numbers[i], "hke");
    assert_int_equal(fstatat(p->folder, name, &s, 0), 0);
    bytes += (uint64_t)s.st_size;
  }
  free(numbers);
  return bytes;
}

/* Events that a replay may repeat stay on the disk, however many they are, and are recognised; memory is still bounded. */
static void test_kept(void **state)
{
  enum { N = 30000, KEEP = 7000 };
  struct place p;
  size_t n;
  (void)state;
  set_up(&p);
  struct hk_eventlog *e = open_log(&p);
  hk_eventlog_keep(e, KEEP);
  for (uint64_t i = 1; i <= N; i++) {
    assert_int_equal(append(e, i), i);
    if (i % 1000 == 0)
      assert_int_equal(commit(e), 0);
  }
  assert_true(hk_eventlog_bytes(e) <= HK_EVENTLOG_LEAST);
  hk_eventlog_free(e);
  assert_true(on_disk(&p, &n) > 2 * HK_EVENTLOG_LEAST);
  e = open_log(&p);
  for (uint64_t i = KEEP + 1; i <= N; i++)
    assert_int_equal(append(e, i), 0);
  hk_eventlog_replayed(e);
  hk_eventlog_keep(e, N);
  assert_int_equal(append(e, N + 1), N + 1);
  assert_int_equal(commit(e), 0);
  hk_eventlog_free(e);
  assert_true(on_disk(&p, &n) <= HK_EVENTLOG_LEAST + 64 * n);
  tear_down(&p);
}

/* Old events are deleted, with their files, and a subscriber that wants them gets their number. */
static void test_bounded(void **state)
{
  struct place p;
  uint64_t missed;
  (void)state;
  set_up(&p);
  struct hk_eventlog *e = open_log(&p);
  hk_eventlog_keep(e, UINT64_MAX);
  for (uint64_t i = 1; i <= 40000; i++) {
    assert_int_equal(append(e, i), i);
    if (i % 1000 == 0)
      assert_int_equal(commit(e), 0);
  }
  const uint64_t first = hk_eventlog_first(e);
  assert_in_range(hk_eventlog_bytes(e), HK_EVENTLOG_LEAST / 2, HK_EVENTLOG_LEAST);
  assert_in_range(first, 20000, 40000);
  assert_int_equal(count_from(e, 1, &missed), 40001 - first);
  assert_int_equal(missed, first - 1);
  hk_eventlog_free(e);
  size_t n;
  const uint64_t bytes = on_disk(&p, &n);
  assert_in_range(bytes, HK_EVENTLOG_LEAST / 2, HK_EVENTLOG_LEAST + 64 * n);
  e = open_log(&p);
  assert_in_range(count_from(e, 1, &missed), 3000, 40001 - first);
  hk_eventlog_free(e);
  e = open_log(&p); /* the second time it is the same */
  assert_int_equal(count_from(e, 1, NULL), 40000 - missed);
  hk_eventlog_free(e);
  tear_down(&p);
}

/* However often the log is opened and continued, no event is lost or repeated. */
static void test_restarts(void **state)
{
  struct place p;
  uint64_t missed;
  (void)state;
  set_up(&p);
  for (uint64_t i = 1; i <= 50; i++) {
    struct hk_eventlog *e = open_log(&p);
    hk_eventlog_replayed(e);
    assert_int_equal(append(e, 2 * i - 1), 2 * i - 1);
    assert_int_equal(commit(e), 0);
    assert_int_equal(append(e, 2 * i), 2 * i);
    assert_int_equal(commit(e), 0);
    assert_int_equal(count_from(e, 1, &missed), 2 * i);
    assert_int_equal(missed, 0);
    hk_eventlog_free(e);
  }
  tear_down(&p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_shown),   cmocka_unit_test(test_replay), cmocka_unit_test(test_collisions),
    cmocka_unit_test(test_bounded), cmocka_unit_test(test_kept),   cmocka_unit_test(test_restarts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
