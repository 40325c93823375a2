/* The event log: events that are found after any cut and any flipped byte, other versions, disks that fail. */
#include "daemon/durable/event_log.h"
#include "tests/unit/support/event_log.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL /* names that collide are looked for among 131 million */
#include <xxhash.h>

#include <cmocka.h>

static void write_file(const struct place *p, const char *data, size_t size)
{
  unlinkat(p->folder, "events-000000000001.hke", 0);
  const int file = openat(p->folder, "events-000000000001.hke", O_CREAT | O_WRONLY | O_TRUNC, 0600);
  assert_true(file >= 0);
  assert_int_equal(write(file, data, size), (ssize_t)size);
  close(file);
}

/* A file of n events, whole. */
static char *make_file(struct place *p, uint64_t n, size_t *size)
{
  int file;
  uint64_t there;
  struct hk_eventlog *e = open_log(p);
  for (uint64_t i = 1; i <= n; i++)
    assert_int_equal(append(e, i), i);
  assert_int_equal(commit(e), 0);
  hk_eventlog_free(e);
  assert_int_equal(hk_disk_open(&p->disk, p->folder, "events-000000000001.hke", &file, &there), 0);
  char *data = malloc(there);
  assert_int_equal(hk_disk_read(&p->disk, file, 0, data, there), 0);
  close(file);
  *size = there;
  return data;
}

/* Every length: the whole records before the cut are there, and the log continues after them. */
static void test_cuts(void **state)
{
  enum { N = 5 };
  struct place p;
  size_t size;
  (void)state;
  set_up(&p);
  char *data = make_file(&p, N, &size);
  const size_t record = (size - HK_JOURNAL_HEADER) / N;
  for (size_t cut = 0; cut < size; cut++) {
    write_file(&p, data, cut);
    struct hk_eventlog *e = open_log(&p);
    const uint32_t whole = cut < HK_JOURNAL_HEADER ? 0 : (uint32_t)((cut - HK_JOURNAL_HEADER) / record);
    assert_int_equal(count_from(e, 1, NULL), whole);
    assert_int_equal(hk_eventlog_last(e), whole);
    hk_eventlog_replayed(e);
    assert_int_equal(append(e, whole + 1), whole + 1);
    assert_int_equal(commit(e), 0);
    assert_int_equal(count_from(e, 1, NULL), whole + 1);
    hk_eventlog_free(e);
    e = open_log(&p);
    assert_int_equal(count_from(e, 1, NULL), whole + 1);
    hk_eventlog_free(e);
    unlinkat(p.folder, "events-000000000002.hke", 0);
  }
  free(data);
  tear_down(&p);
}

/* To flip all bits takes long, with a sanitizer half a minute: so a sanitizer's build flips one bit of each byte, another one
 * each time, and other builds two or three. */
#ifdef HK_SANITIZED
#define NEXT_FLIP 9
#else
#define NEXT_FLIP 3
#endif

/* Bits of every byte are flipped one at a time: all other events are found, and no wrong one is ever read. */
static void test_flips(void **state)
{
  enum { N = 7, PADDING = 1 }; /* padding after a name */
  struct place p;
  size_t size;
  (void)state;
  set_up(&p);
  char *data = make_file(&p, N, &size);
  const size_t record = (size - HK_JOURNAL_HEADER) / N;
  for (size_t i = 0; i < 8 * size; i += NEXT_FLIP) {
    uint64_t missed;
    data[i / 8] ^= (char)(1 << i % 8);
    write_file(&p, data, size);
    data[i / 8] ^= (char)(1 << i % 8);
    struct hk_eventlog *e = open_log(&p);
    const uint32_t n = count_from(e, 1, &missed);
    const bool pads = i / 8 > HK_JOURNAL_HEADER && (i / 8 - HK_JOURNAL_HEADER) % record >= record - PADDING;
    assert_int_equal(n, pads ? N : i / 8 < HK_JOURNAL_HEADER ? 0 : N - 1);
    assert_int_equal(n + missed, hk_eventlog_last(e));
    hk_eventlog_free(e);
  }
  free(data);
  tear_down(&p);
}

static void test_version(void **state)
{
  struct place p;
  size_t size;
  struct hk_eventlog *e = NULL;
  char error[256];
  (void)state;
  set_up(&p);
  char *data = make_file(&p, 2, &size);
  data[8] = 5; /* and the checksum of such a header */
  memcpy(data + HK_JOURNAL_HEADER - 8, (uint64_t[]){ XXH3_64bits(data, HK_JOURNAL_HEADER - 8) }, 8);
  write_file(&p, data, size);
  assert_int_equal(hk_eventlog_open(&e, &p.disk, p.folder, HK_EVENTLOG_LEAST, NULL, &p.log, error, sizeof error),
                   -EPROTONOSUPPORT);
  assert_non_null(strstr(error, "events-000000000001.hke"));
  free(data);
  tear_down(&p);
}

/* The disk fails permanently at every call in turn; then it works again. No event is published that is not on the disk, and in
 * the end the log has each once. */
static void test_faults(void **state)
{
  (void)state;
  for (int fails = 1;; fails++) {
    struct place p;
    uint64_t missed, i = 0;
    set_up(&p);
    struct hk_eventlog *e = open_log(&p);
    assert_int_equal(append(e, ++i), 1);
    assert_int_equal(commit(e), 0);
    hk_eventlog_free(e);
    e = open_log(&p);
    hk_eventlog_replayed(e);
    p.fails = fails;
    p.calls = 0;
    for (int turns = 0; turns < 5; turns++) {
      const uint64_t shown = hk_eventlog_shown(e);
      assert_int_equal(append(e, i + 1), i + 1);
      i++;
      const int status = commit(e);
      assert_int_equal(hk_eventlog_shown(e), status == 0 ? i : shown);
      if (status != 0 && status != -EEXIST)
        assert_int_equal(status, -EIO);
    }
    const bool failed = p.calls >= fails;
    p.fails = 0;
    assert_int_equal(append(e, i + 1), i + 1);
    i++;
    for (int again = 0; again < 3; again++) /* past a file that could not be removed; uncommitted events; the rest */
      (void)commit(e);
    assert_int_equal(hk_eventlog_shown(e), i);
    assert_int_equal(count_from(e, 1, &missed), i);
    assert_int_equal(missed, 0);
    hk_eventlog_free(e);
    e = open_log(&p);
    assert_int_equal(count_from(e, 1, &missed), i);
    assert_int_equal(missed, 0);
    hk_eventlog_free(e);
    tear_down(&p);
    if (!failed)
      break;
    assert_true(fails < 100);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_cuts),
    cmocka_unit_test(test_flips),
    cmocka_unit_test(test_version),
    cmocka_unit_test(test_faults),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
