/* The records of a shard: written and read again, and refused if they are too short. */
#include "daemon/durable/journal_records.h"

#include "daemon/durable/named_feeds.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void on_points(void *arg, const struct hk_record *record)
{
  struct hk_record_points p;
  (void)arg;
  assert_int_equal(record->type, HK_RECORD_POINTS);
  assert_int_equal(hk_record_points_read(record, &p), 0);
  assert_int_equal(p.n, 3);
  assert_int_equal(p.n_marks, 1);
  assert_int_equal(p.marks[0].feed, 1);
  assert_int_equal(p.marks[0].upto, 1003);
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(p.slot[i], 7 + i);
    assert_int_equal(p.time[i], 100 + i);
    assert_true(p.value[i] == 0.5 * i);
  }
  for (uint32_t size = 0; size < record->size; size++) {
    struct hk_record shorter = *record;
    shorter.size = size;
    assert_int_equal(hk_record_points_read(&shorter, &p), -EBADMSG);
  }
}

static void on_sensor(void *arg, const struct hk_record *record)
{
  struct hk_record_sensor s;
  struct hk_record_feed f;
  (void)arg;
  if (record->type == HK_RECORD_FEED) {
    assert_int_equal(hk_record_feed_read(record, &f), 0);
    assert_int_equal(f.number, 3);
    assert_int_equal(f.name.length, 5);
    assert_memory_equal(f.name.data, "plant", 5);
    assert_true(f.owner == 77 && f.used == 88);
    struct hk_record older = *record; /* of before there were owners */
    older.size -= 16;
    assert_int_equal(hk_record_feed_read(&older, &f), 0);
    assert_true(f.number == 3 && f.name.length == 5 && f.owner == 0 && f.used == 0);
    older.size++;
    assert_int_equal(hk_record_feed_read(&older, &f), -EBADMSG);
    return;
  }
  assert_int_equal(hk_record_sensor_read(record, &s), 0);
  assert_int_equal(s.order, 9);
  assert_int_equal(s.slot, 0xabcdef);
  assert_int_equal(s.generation, 200);
  assert_int_equal(s.name.length, record->type == HK_RECORD_REGISTER ? 6 : 0);
  assert_memory_equal(s.name.data, "pump 1", s.name.length);
  const uint64_t owner = record->type == HK_RECORD_REGISTER ? 0x1234567890abcdef : 0;
  assert_true(s.owner == owner);
  for (uint32_t size = 0; size < record->size; size++) {
    struct hk_record shorter = *record;
    shorter.size = size;
    const bool older = owner != 0 && size == record->size - sizeof owner; /* of before there were owners */
    assert_int_equal(hk_record_sensor_read(&shorter, &s), older ? 0 : -EBADMSG);
    assert_true(!older || s.owner == 0);
  }
}

static void test_records(void **state)
{
  (void)state;
  char path[] = "/tmp/test-records-XXXXXX", command[64];
  const struct hk_disk disk = { NULL, NULL };
  int folder;
  struct hk_journal *j;
  struct hk_feeds *feeds;
  struct hk_feed *feed;
  uint64_t turn, position;
  assert_non_null(mkdtemp(path));
  assert_int_equal(hk_disk_folder(&disk, AT_FDCWD, path, &folder), 0);
  const struct hk_journal_place place = { &disk, folder, "journal", "hkj", HK_JOURNAL_POINTS, 0, 1, 1 << 20, NULL, 0 };
  assert_int_equal(hk_feeds_new(&feeds, 1), 0);
  assert_int_equal(hk_feeds_take(feeds, hk_string("plant"), 0, NULL, &feed, &turn), 0);
  assert_int_equal(hk_journal_new(&j, &place, 0), 0);
  const struct hk_record_mark mark = { hk_feed_number(feed), 0, 1003 };
  const int64_t time[] = { 100, 101, 102 };
  const double value[] = { 0, 0.5, 1 };
  const uint32_t slot[] = { 7, 8, 9 };
  assert_int_equal(hk_record_points(j, &(struct hk_record_points){ 3, 1, &mark, time, value, slot }, &position), 0);
  assert_int_equal(position, 3);
  assert_true(hk_journal_take(j));
  assert_int_equal(hk_journal_commit(j, on_points, NULL), 0);
  const struct hk_record_sensor sensor = { 9, 0xabcdef, 200, hk_string("pump 1"), hk_string("all"), 0x1234567890abcdef };
  const struct hk_record_sensor gone = { 9, 0xabcdef, 200, hk_string(""), hk_string(""), 0 };
  assert_int_equal(hk_record_sensor(j, HK_RECORD_REGISTER, &sensor), 0);
  assert_int_equal(hk_record_sensor(j, HK_RECORD_RETIRE, &gone), 0);
  assert_int_equal(hk_record_feed(j, &(struct hk_record_feed){ 3, hk_string("plant"), 77, 88 }), 0);
  assert_true(hk_journal_take(j));
  assert_int_equal(hk_journal_commit(j, on_sensor, NULL), 0);
  assert_int_equal(hk_journal_position(j), 3);
  hk_journal_free(j);
  hk_feeds_free(feeds);
  close(folder);
  snprintf(command, sizeof command, "rm -r %s", path);
  assert_int_equal(system(command), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_records) };
  return cmocka_run_group_tests_name("records", tests, NULL, NULL);
}
