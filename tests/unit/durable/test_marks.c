/* Marks: a written mark survives any end of the daemon, and a damaged one does not count. */
#include "daemon/durable/marks.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PLACE 128 /* bytes */

static const struct hk_disk disk = { 0 };

static int make_folder(char path[64])
{
  int folder;
  snprintf(path, 64, "/tmp/test-marks-XXXXXX");
  assert_non_null(mkdtemp(path));
  assert_int_equal(hk_disk_folder(&disk, AT_FDCWD, path, &folder), 0);
  return folder;
}

static void remove_folder(const char *path, int folder)
{
  char command[128];
  close(folder);
  snprintf(command, sizeof command, "rm -r %s", path);
  assert_int_equal(system(command), 0);
}

static struct hk_marks *open_marks(int folder)
{
  struct hk_marks *m = NULL;
  assert_int_equal(hk_marks_open(&m, &disk, folder), 0);
  return m;
}

static void put(struct hk_marks *m, uint32_t index, uint64_t position)
{
  const struct hk_journal_mark mark = { .position = position, .segment = position + 1, .bytes = 96, .salt = 7 };
  assert_int_equal(hk_marks_put(m, index, &mark), 0);
}

/* The last written mark is found, or the previous one if its place is torn; and a reservation is never reverted. */
static void test_put(void **state)
{
  (void)state;
  char path[64];
  struct hk_journal_mark mark;
  const int folder = make_folder(path);
  struct hk_marks *m = open_marks(folder);
  assert_false(hk_marks_get(m, 0, &mark));
  for (uint64_t i = 1; i <= 5; i++)
    put(m, 3, i);
  put(m, HK_MARK_EVENTS, 10);
  assert_true(hk_marks_get(m, HK_MARK_EVENTS, &mark));
  const uint64_t reserved = mark.reserved;
  assert_true(reserved > 10);
  put(m, HK_MARK_EVENTS, 4);
  assert_true(hk_marks_get(m, HK_MARK_EVENTS, &mark) && mark.position == 4 && mark.reserved == reserved);
  put(m, HK_MARK_EVENTS, reserved + 1);
  assert_true(hk_marks_get(m, HK_MARK_EVENTS, &mark) && mark.reserved > reserved + 1);
  mark.reserved = mark.position;
  assert_int_equal(hk_marks_end(m, HK_MARK_EVENTS, &mark), 0);
  assert_int_equal(hk_marks_sync(m), 0);
  hk_marks_free(m);
  m = open_marks(folder);
  assert_true(hk_marks_get(m, 3, &mark) && mark.position == 5 && mark.segment == 6 && mark.bytes == 96 && mark.salt == 7);
  assert_true(hk_marks_get(m, HK_MARK_EVENTS, &mark) && mark.reserved == reserved + 1);
  assert_false(hk_marks_get(m, 4, &mark));
  hk_marks_free(m);
  const int file = openat(folder, HK_MARKS_FILE, O_WRONLY);
  assert_int_equal(pwrite(file, "torn", 4, 3 * 2 * PLACE + PLACE + 30), 4); /* the fifth is in place 1 */
  close(file);
  m = open_marks(folder);
  assert_true(hk_marks_get(m, 3, &mark) && mark.position == 4);
  put(m, 3, 8);
  assert_true(hk_marks_get(m, 3, &mark) && mark.position == 8);
  assert_int_equal(hk_disk_remove(&disk, folder, HK_MARKS_FILE), 0);
  assert_int_equal(hk_marks_mend(m), 1);
  assert_int_equal(hk_marks_mend(m), 0);
  hk_marks_free(m);
  m = open_marks(folder);
  assert_true(hk_marks_get(m, 3, &mark) && mark.position == 8);
  hk_marks_free(m);
  remove_folder(path, folder);
}

/* With any bits of the file flipped, at any length, a mark is one that was written, or none. */
static void test_damaged(void **state)
{
  (void)state;
  char path[64];
  static uint8_t whole[HK_MARKS * 2 * PLACE], bytes[sizeof whole];
  const int folder = make_folder(path);
  struct hk_marks *m = open_marks(folder);
  for (uint64_t i = 1; i <= 4; i++)
    for (uint32_t k = 0; k < HK_MARKS; k++)
      put(m, k, i);
  hk_marks_free(m);
  const int file = openat(folder, HK_MARKS_FILE, O_RDWR);
  assert_int_equal(pread(file, whole, sizeof whole, 0), sizeof whole);
  srandom(27);
  for (unsigned round = 0; round < 2000; round++) {
    struct hk_journal_mark mark[HK_MARKS];
    bool good[HK_MARKS];
    const size_t size = round % 4 == 0 ? (size_t)random() % sizeof whole : sizeof whole;
    memcpy(bytes, whole, sizeof whole);
    for (unsigned n = 0; n < 1 + round % 200; n++)
      bytes[(size_t)random() % sizeof bytes] ^= (uint8_t)(1 << random() % 8);
    assert_int_equal(ftruncate(file, (off_t)size), 0);
    assert_int_equal(pwrite(file, bytes, size, 0), size);
    assert_int_equal(hk_marks_read(&disk, folder, mark, good), 0);
    for (uint32_t k = 0; k < HK_MARKS; k++)
      assert_true(!good[k] || ((mark[k].position == 3 || mark[k].position == 4) && mark[k].segment == mark[k].position + 1));
  }
  close(file);
  remove_folder(path, folder);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_put), cmocka_unit_test(test_damaged) };
  return cmocka_run_group_tests_name("marks", tests, NULL, NULL);
}
