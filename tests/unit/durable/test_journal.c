/* Journals: committed records are read back; segments are made and removed; disks that fail, and pauses. */
#include "daemon/durable/journal.h"
#include "daemon/durable/journal_read.h"
#include "daemon/durable/journal_segments.h"
#include "tests/unit/support/journal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <xxhash.h>

static void test_there_and_back(void **state)
{
  (void)state;
  struct world w;
  struct damages d;
  struct hk_journal *j;
  begin(&w);
  assert_int_equal(read_all(&w, 0, &d, true), 0);
  assert_int_equal(hk_journal_new(&j, &w.place, 0), 0);
  assert_false(hk_journal_take(j));
  assert_int_equal(hk_journal_waiting_since(j), 0);
  append_some(j, 0, 100);
  assert_int_not_equal(hk_journal_waiting_since(j), 0);
  assert_int_equal(hk_journal_committed(j), 0);
  assert_true(hk_journal_take(j));
  append_some(j, 100, 150); /* while those are written */
  assert_int_equal(hk_journal_commit(j, NULL, NULL), 0);
  assert_int_equal(hk_journal_committed(j), 100);
  assert_int_equal(hk_journal_position(j), 150);
  assert_int_equal(read_all(&w, 0, &d, false), 100);
  assert_int_equal(commit(j), 0);
  append_some(j, 150, 160); /* not committed: lost */
  hk_journal_free(j);
  assert_int_equal(read_all(&w, 0, &d, false), 150);
  assert_int_equal(d.n, 0);
  assert_int_equal(hk_journal_new(&j, &w.place, 150), 0); /* after a restart */
  append_some(j, 150, 400);
  assert_int_equal(commit(j), 0);
  hk_journal_free(j);
  assert_int_equal(read_all(&w, 0, &d, false), 400);
  assert_int_equal(d.n, 0);
  end(&w);
}

/* Segments follow each other, and are removed when they are no longer needed. */
static void test_segments(void **state)
{
  (void)state;
  struct world w;
  struct damages d;
  struct hk_journal *j;
  uint64_t *numbers, at = 0;
  size_t n;
  begin(&w);
  assert_int_equal(hk_journal_new(&j, &w.place, 0), 0);
  for (; at < 30000; at += 100) {
    append_some(j, at, at + 100);
    assert_int_equal(commit(j), 0);
  }
  assert_int_equal(hk_disk_list(&w.disk, w.folder, "journal", "hkj", &numbers, &n), 0);
  free(numbers);
  assert_in_range(n, 5, 8); /* of a MiB each */
  assert_int_equal(hk_journal_begins(j), 0);
  assert_int_equal(read_all(&w, 0, &d, false), at);
  assert_int_equal(hk_journal_trim(j, 15000), 0);
  assert_in_range(hk_journal_begins(j), 5000, 14999);
  assert_int_equal(read_all(&w, 15000, &d, false), at);
  assert_int_equal(read_all(&w, 20000, &d, false), at);
  assert_int_equal(hk_journal_bound(j, 0, 16000), 0);
  assert_true(hk_journal_begins(j) <= 16000);
  assert_int_equal(read_all(&w, 16000, &d, false), at);
  assert_int_equal(hk_journal_bound(j, 2 << 20, UINT64_MAX), 0);
  assert_true(hk_journal_bytes(j) <= 2 << 20);
  assert_int_equal(hk_journal_trim(j, UINT64_MAX), 0); /* the last one stays */
  assert_int_equal(hk_disk_list(&w.disk, w.folder, "journal", "hkj", &numbers, &n), 0);
  free(numbers);
  assert_int_equal(n, 1);
  append_some(j, at, at + 1);
  assert_int_equal(commit(j), 0);
  hk_journal_free(j);
  end(&w);
}

/* Every call fails once, at every place: the commit fails, and the next one commits everything. */
static void test_disk_fails(void **state)
{
  (void)state;
  static const int errors[] = { ENOSPC, EIO };
  for (uint64_t at = 1;; at++) {
    struct world w;
    struct damages d;
    struct hk_journal *j;
    unsigned failed = 0;
    begin(&w);
    assert_int_equal(hk_journal_new(&j, &w.place, 0), 0);
    w.trouble = (struct trouble){ -1, at, 0, errors[at % 2] };
    for (uint64_t i = 0; i < 6000; i += 1000) {
      append_some(j, i, i + 1000);
      if (commit(j) != 0) {
        failed++;
        assert_int_equal(hk_journal_committed(j), i);
        assert_int_not_equal(hk_journal_waiting_since(j), 0);
      }
    }
    assert_int_equal(commit(j), 0);
    assert_int_equal(commit(j), 0); /* records that were appended while the previous commit failed */
    assert_int_equal(hk_journal_committed(j), 6000);
    const bool over = w.trouble.calls < at;
    w.trouble = (struct trouble){ .kind = -1 };
    hk_journal_free(j);
    assert_int_equal(read_all(&w, 0, &d, false), 6000);
    assert_int_equal(d.n, 0);
    end(&w);
    if (over) {
      assert_true(at > 10);
      assert_int_equal(failed, 0);
      return;
    }
    assert_in_range(failed, 1, 1);
  }
}

/* Without the disk the position advances and nothing is held back; when it works again, there is a hole and no other loss. */
static void test_pause(void **state)
{
  (void)state;
  struct world w;
  struct hk_journal *j;
  struct hk_journal_reader *r;
  struct hk_record record;
  char why[256];
  begin(&w);
  assert_int_equal(hk_journal_new(&j, &w.place, 0), 0);
  append_some(j, 0, 10);
  assert_int_equal(commit(j), 0);
  append_some(j, 10, 20);
  w.trouble = (struct trouble){ HK_DISK_WRITE, 1, 0, EIO };
  assert_int_equal(commit(j), -EIO);
  append_some(j, 20, 30);
  hk_journal_pause(j);
  assert_int_equal(hk_journal_committed(j), 30);
  append_some(j, 30, 40);
  assert_int_equal(hk_journal_committed(j), 40);
  w.trouble.at = 0;
  assert_int_equal(commit(j), 0); /* drops its records, or writes them */
  assert_int_equal(hk_journal_waiting_since(j), 0);
  assert_int_equal(hk_journal_resume(j), 40);
  append_some(j, 40, 50);
  assert_int_equal(hk_journal_committed(j), 40);
  assert_int_equal(commit(j), 0);
  assert_int_equal(hk_journal_committed(j), 50);
  hk_journal_free(j);
  assert_int_equal(hk_journal_read(&r, &w.place, 40, NULL, NULL, why, sizeof why), 0);
  unsigned n = 0;
  while (hk_journal_next(r, &record) == 1)
    n += record.position >= 40;
  assert_int_equal(n, 10);
  hk_journal_read_close(r);
  end(&w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_there_and_back),
    cmocka_unit_test(test_segments),
    cmocka_unit_test(test_disk_fails),
    cmocka_unit_test(test_pause),
  };
  return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
