/* Journals: records that are read back after any cut and any flipped byte, and when segments are missing. */
#include "daemon/durable/journal.h"
#include "daemon/durable/journal_quarantine.h"
#include "daemon/durable/journal_read.h"
#include "daemon/durable/journal_segments.h"
#include "tests/unit/support/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <xxhash.h>

static uint64_t bytes_of(const struct world *w, const char *name)
{
  struct stat status;
  assert_int_equal(fstatat(w->folder, name, &status, 0), 0);
  return (uint64_t)status.st_size;
}

/* Makes a journal of n records, and ends it. */
static void journal_of(const struct world *w, uint64_t n)
{
  struct hk_journal *j;
  assert_int_equal(hk_journal_new(&j, &w->place, 0), 0);
  append_some(j, 0, n);
  assert_int_equal(commit(j), 0);
  hk_journal_free(j);
}

/* Every length that a crash can leave: whole records are read, the rest is reported and cut, and the journal continues. */
static void test_torn(void **state)
{
  (void)state;
  struct world w;
  struct damages d;
  begin(&w);
  journal_of(&w, 8);
  const char *name = "journal-000000000001.hkj";
  uint64_t last = 8;
  for (uint64_t size = bytes_of(&w, name); size > 0; size--) {
    const int file = openat(w.folder, name, O_WRONLY);
    assert_int_equal(ftruncate(file, (off_t)size), 0);
    close(file);
    const uint64_t n = read_all(&w, 0, &d, false);
    assert_true(n == last || n == last - 1);
    assert_int_equal(d.n, d.tails);
    last = n;
  }
  assert_int_equal(last, 0);
  assert_int_equal(d.n, 1);
  (void)read_all(&w, 0, &d, true); /* not even a head is left: it is removed */
  assert_int_equal(faccessat(w.folder, name, F_OK, 0), -1);
  journal_of(&w, 8);
  const uint64_t whole = bytes_of(&w, name);
  const int file = openat(w.folder, name, O_WRONLY | O_APPEND);
  assert_int_equal(write(file, "rubbish", 7), 7);
  close(file);
  assert_int_equal(read_all(&w, 0, &d, true), 8);
  assert_int_equal(d.tails, 1);
  assert_int_equal(d.bytes, 7);
  assert_int_equal(bytes_of(&w, name), whole);
  assert_int_equal(read_all(&w, 0, &d, true), 8);
  assert_int_equal(d.n, 0);
  end(&w);
}

/* Every byte is flipped: a record is skipped or unchanged, never a different one, and later ones are read. */
static void test_flipped(void **state)
{
  (void)state;
  struct world w;
  begin(&w);
  journal_of(&w, 6);
  const char *name = "journal-000000000001.hkj";
  const uint64_t size = bytes_of(&w, name);
  const int file = openat(w.folder, name, O_RDWR);
  unsigned unseen = 0;
  for (uint64_t i = 0; i < size; i++) {
    struct hk_journal_reader *r;
    struct damages d = { 0 };
    struct hk_record record;
    uint8_t byte;
    char why[256];
    assert_int_equal(pread(file, &byte, 1, (off_t)i), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(file, &byte, 1, (off_t)i), 1);
    uint64_t n = 0, last = 0;
    const int status = hk_journal_read(&r, &w.place, 0, on_damage, &d, why, sizeof why);
    assert_int_equal(status, 0);
    while (hk_journal_next(r, &record) == 1) {
      assert_int_equal(record.size, record.position % 50 * 7);
      for (uint32_t k = 0; k < record.size; k++)
        assert_int_equal(record.payload[k], record.position);
      last = record.position;
      n++;
    }
    /* Only an end without a good record after it is torn, and would be cut; a crash leaves no half of a header. */
    assert_int_equal(d.tails, n == 5 && last == 4);
    if (d.tails == 0)
      assert_int_equal(hk_journal_mend(r), 0);
    assert_int_equal(bytes_of(&w, name), size);
    hk_journal_read_close(r);
    if (n == 6) { /* the flipped byte was in the padding of a payload */
      assert_int_equal(d.n, 0);
      unseen++;
    } else {
      assert_int_equal(d.n, 1);
      assert_int_equal(n, i < HK_JOURNAL_HEADER ? 0 : 5);
      assert_true(i < HK_JOURNAL_HEADER ? d.at == 0 && d.bytes == size : d.at <= i && i < d.at + d.bytes);
    }
    byte ^= 0x10;
    assert_int_equal(pwrite(file, &byte, 1, (off_t)i), 1);
  }
  assert_in_range(unseen, 1, 25);
  close(file);
  end(&w);
}

static void flip(const struct world *w, const char *name, uint64_t at)
{
  uint8_t byte;
  const int file = openat(w->folder, name, O_RDWR);
  assert_int_equal(pread(file, &byte, 1, (off_t)at), 1);
  byte ^= 4;
  assert_int_equal(pwrite(file, &byte, 1, (off_t)at), 1);
  close(file);
}

/* The whole of a file; freed with free. */
static uint8_t *contents(const struct world *w, const char *name, uint64_t *size)
{
  *size = bytes_of(w, name);
  uint8_t *bytes = malloc(*size + 1);
  const int file = openat(w->folder, name, O_RDONLY);
  assert_non_null(bytes);
  assert_int_equal(pread(file, bytes, *size, 0), *size);
  close(file);
  return bytes;
}

/* Reads a journal and sets its damaged segment aside, again after a call on the disk that fails. */
static void set_aside_again(struct world *w)
{
  for (unsigned tries = 0;; tries++) {
    const struct trouble trouble = w->trouble;
    struct hk_journal_reader *r;
    struct hk_record record;
    char why[256];
    w->trouble = (struct trouble){ .kind = -1 };
    struct damages d = { 0 };
    assert_int_equal(hk_journal_read(&r, &w->place, 0, on_damage, &d, why, sizeof why), 0);
    while (hk_journal_next(r, &record) == 1)
      continue;
    hk_journal_read_close(r);
    w->trouble = trouble;
    if (tries > 0 && d.n == 0) /* all was done but to sync it */
      break;
    assert_int_equal(d.n, 1);
    assert_int_equal(d.number, 2);
    if (hk_journal_set_aside(&w->place, d.number, d.at) == 0)
      break;
    assert_int_equal(tries, 0);
  }
}

/* Ends a journal of three segments with 400 records each, the second of which is damaged at its record `bad` (-1: in its head),
 * at the damage. Call number `at` on the disk fails, as if the daemon had crashed before it; then everything is repeated. Returns
 * false when there were fewer calls. */
static bool set_aside(int bad, uint64_t at)
{
  static const char *const names[] = { "journal-000000000001.hkj", "journal-000000000002.hkj", "journal-000000000003.hkj" };
  static const char *const asides[] = { "journal-000000000001.damaged", "journal-000000000002.damaged",
                                        "journal-000000000003.damaged" };
  struct world w;
  struct damages d;
  struct hk_journal *j;
  uint8_t *was[3];
  uint64_t bytes[3], place = 40, now;
  begin(&w);
  for (uint64_t i = 0; i < 1200; i += 400) {
    assert_int_equal(hk_journal_new(&j, &w.place, i), 0);
    append_some(j, i, i + 400);
    assert_int_equal(commit(j), 0);
    hk_journal_free(j);
  }
  if (bad >= 0) {
    place = HK_JOURNAL_HEADER + HK_RECORD_HEADER / 2;
    for (uint64_t i = 400; i < 400 + (uint64_t)bad; i++)
      place += HK_RECORD_HEADER + (i % 50 * 7 + 7) / 8 * 8;
  }
  flip(&w, names[1], place);
  for (unsigned i = 0; i < 3; i++)
    was[i] = contents(&w, names[i], &bytes[i]);
  w.trouble = (struct trouble){ -1, at, 0, EIO };
  set_aside_again(&w);
  const bool enough = w.trouble.calls >= at;
  w.trouble = (struct trouble){ .kind = -1 };
  assert_int_equal(read_all(&w, 0, &d, true), 400 + (bad > 0 ? (uint64_t)bad : 0));
  assert_int_equal(d.n, 0);
  for (unsigned i = 0; i < 3; i++) {
    uint8_t *is = contents(&w, i == 0 ? names[0] : asides[i], &now);
    assert_int_equal(now, bytes[i]);
    assert_memory_equal(is, was[i], now);
    free(is);
    free(was[i]);
  }
  assert_int_equal(hk_journal_new(&j, &w.place, 400), 0); /* continues, in a file with a number that none of them has */
  append_some(j, 400, 410);
  assert_int_equal(commit(j), 0);
  hk_journal_free(j);
  assert_int_equal(faccessat(w.folder, "journal-000000000004.hkj", F_OK, 0), 0);
  end(&w);
  return enough;
}

/* Damage in the middle: no remaining record is lost, whatever fails while files are set aside. */
static void test_set_aside(void **state)
{
  (void)state;
  static const int bad[] = { -1, 0, 57, 399 };
  for (unsigned i = 0; i < 4; i++) {
    uint64_t at = 1;
    while (set_aside(bad[i], at))
      at++;
    assert_true(at > 3);
  }
}

/* Makes three segments with ten records each. */
static void three_segments(struct world *w)
{
  struct hk_journal *j;
  for (uint64_t i = 0; i < 30; i += 10) {
    assert_int_equal(hk_journal_new(&j, &w->place, i), 0);
    append_some(j, i, i + 10);
    assert_int_equal(commit(j), 0);
    hk_journal_free(j);
  }
}

/* Reads from a position on. Returns the number of the segment that is reported to lack the previous one; 0: none is. */
static uint64_t misses(struct world *w, uint64_t from)
{
  struct damages d;
  struct hk_journal_reader *r;
  struct hk_record record;
  char why[256];
  d = (struct damages){ 0 };
  assert_int_equal(hk_journal_read(&r, &w->place, from, on_damage, &d, why, sizeof why), 0);
  while (hk_journal_next(r, &record) == 1)
    continue;
  hk_journal_read_close(r);
  assert_int_equal(d.n, d.missing);
  assert_int_equal(d.bytes, 0);
  assert_true(d.n <= 1);
  return d.n > 0 ? d.number : 0;
}

/* A missing part of a segment is reported by the next one, if records of the part are wanted. */
static void test_chain(void **state)
{
  (void)state;
  static const char *const second = "journal-000000000002.hkj";
  struct world w;
  struct hk_journal *j;
  uint64_t size;
  begin(&w);
  three_segments(&w);
  assert_int_equal(misses(&w, 0), 0);
  uint8_t *was = contents(&w, second, &size);
  const uint64_t last = size - HK_RECORD_HEADER - (19 * 7 + 7) / 8 * 8; /* where its last record begins */
  assert_int_equal(hk_disk_cut(&w.disk, w.folder, second, last), 0);
  assert_int_equal(misses(&w, 0), 3);
  int file;
  assert_int_equal(hk_disk_remove(&w.disk, w.folder, second), 0);
  assert_int_equal(misses(&w, 0), 3);
  assert_int_equal(misses(&w, 15), 3);
  assert_int_equal(misses(&w, 21), 0); /* all from there on is in the third */
  assert_int_equal(hk_disk_create(&w.disk, w.folder, second, &file), 0);
  was[40] ^= 1; /* another salt: then it has no valid record, but a valid head */
  memcpy(was + HK_JOURNAL_HEADER - 8, (uint64_t[]){ XXH3_64bits(was, HK_JOURNAL_HEADER - 8) }, 8);
  assert_int_equal(hk_disk_write(&w.disk, file, was, HK_JOURNAL_HEADER), 0);
  close(file);
  assert_int_equal(misses(&w, 0), 3);
  was[40] ^= 1;
  assert_int_equal(hk_disk_remove(&w.disk, w.folder, second), 0);
  assert_int_equal(hk_disk_create(&w.disk, w.folder, second, &file), 0);
  memcpy(was + HK_JOURNAL_HEADER - 8, (uint64_t[]){ XXH3_64bits(was, HK_JOURNAL_HEADER - 8) }, 8);
  assert_int_equal(hk_disk_write(&w.disk, file, was, size), 0);
  close(file);
  assert_int_equal(misses(&w, 0), 0);
  free(was);
  assert_int_equal(hk_disk_remove(&w.disk, w.folder, "journal-000000000001.hkj"), 0);
  assert_int_equal(misses(&w, 0), 0); /* the first may have been let go */
  assert_int_equal(misses(&w, 5), 2); /* but not if it is wanted */
  assert_int_equal(misses(&w, 10), 0);
  assert_int_equal(hk_journal_new(&j, &w.place, 30), 0);
  hk_journal_free(j);
  end(&w);
}

/* A segment does not count a removed file as its predecessor if the journal knows of the removal. */
static void test_chain_goes_on(void **state)
{
  (void)state;
  struct world w;
  struct hk_journal *j;
  struct hk_journal_gone gone;
  begin(&w);
  three_segments(&w);
  assert_int_equal(hk_journal_new(&j, &w.place, 30), 0);
  append_some(j, 30, 40);
  assert_int_equal(commit(j), 0);
  assert_int_equal(hk_disk_remove(&w.disk, w.folder, "journal-000000000004.hkj"), 0);
  hk_journal_pause(j);
  assert_true(hk_journal_look(j, true, &gone));
  assert_int_equal(hk_journal_resume(j), 40);
  append_some(j, 40, 50);
  assert_int_equal(commit(j), 0);
  hk_journal_free(j);
  assert_int_equal(misses(&w, 0), 0);
  end(&w);
}

/* A bad record in the middle costs that record, not the later ones. */
static void test_hole(void **state)
{
  (void)state;
  struct world w;
  struct hk_journal_reader *r;
  struct hk_record record;
  struct damages d = { 0 };
  char why[256];
  begin(&w);
  three_segments(&w);
  const int file = openat(w.folder, "journal-000000000002.hkj", O_RDWR);
  assert_int_equal(pwrite(file, "x", 1, (off_t)bytes_of(&w, "journal-000000000002.hkj") - 9), 1);
  close(file);
  unsigned n = 0;
  assert_int_equal(hk_journal_read(&r, &w.place, 0, on_damage, &d, why, sizeof why), 0);
  while (hk_journal_next(r, &record) == 1)
    n++;
  hk_journal_read_close(r);
  assert_int_equal(n, 29);
  assert_int_equal(d.n, 1);
  assert_int_equal(d.tails, 0);
  w.place.kind = HK_JOURNAL_EVENTS;
  assert_int_equal(hk_journal_read(&r, &w.place, 0, on_damage, &d, why, sizeof why), -EPROTONOSUPPORT);
  assert_non_null(strstr(why, "kind 1"));
  end(&w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_torn),      cmocka_unit_test(test_flipped), cmocka_unit_test(test_hole),
    cmocka_unit_test(test_set_aside), cmocka_unit_test(test_chain),   cmocka_unit_test(test_chain_goes_on),
  };
  return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
