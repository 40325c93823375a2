/* A journal in a folder of its own, with numbered records and a disk that fails on demand, for its tests. */
#ifndef HK_TESTS_JOURNAL_H
#define HK_TESTS_JOURNAL_H

#include "daemon/durable/journal.h"
#include "daemon/durable/journal_read.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Fails call number `at` (from 1) of all calls, or of one kind, with `error`. */
struct trouble {
  int kind; /* -1: any */
  uint64_t at, calls;
  int error;
};

static inline int fault(void *arg, enum hk_disk_call call)
{
  struct trouble *t = arg;
  if (t->kind >= 0 && t->kind != (int)call)
    return 0;
  return ++t->calls == t->at ? t->error : 0;
}

struct world {
  char path[64];
  int folder;
  struct trouble trouble;
  struct hk_disk disk;
  struct hk_journal_place place;
};

static inline void begin(struct world *w)
{
  *w = (struct world){ .path = "/tmp/test-journal-XXXXXX", .trouble = { .kind = -1 } };
  assert_non_null(mkdtemp(w->path));
  w->disk = (struct hk_disk){ fault, &w->trouble };
  assert_int_equal(hk_disk_folder(&w->disk, AT_FDCWD, w->path, &w->folder), 0);
  w->place = (struct hk_journal_place){ &w->disk, w->folder, "journal", "hkj", HK_JOURNAL_POINTS, 0, 1, 1 << 20, NULL, 0 };
}

static inline void end(struct world *w)
{
  char command[128];
  close(w->folder);
  snprintf(command, sizeof command, "rm -r %s", w->path);
  assert_int_equal(system(command), 0);
}

/* Record i has a payload of i % 50 * 7 bytes of value i, and counts 1. */
static inline void append(struct hk_journal *j, uint64_t i)
{
  const size_t size = i % 50 * 7;
  uint8_t *payload = hk_journal_begin(j, 7, size);
  assert_non_null(payload);
  memset(payload, (int)i, size);
  assert_int_equal(hk_journal_end(j, 1), i + 1);
}

static inline void append_some(struct hk_journal *j, uint64_t first, uint64_t behind)
{
  for (uint64_t i = first; i < behind; i++)
    append(j, i);
}

static inline int commit(struct hk_journal *j)
{
  return hk_journal_take(j) ? hk_journal_commit(j, NULL, NULL) : 0;
}

struct damages {
  unsigned n, tails, missing;
  uint64_t bytes;
  uint64_t number, at; /* of the last one */
};

static inline void on_damage(void *arg, const struct hk_journal_damaged *damaged)
{
  struct damages *d = arg;
  d->n++;
  d->tails += damaged->tail;
  d->missing += damaged->missing;
  d->bytes += damaged->bytes;
  d->number = damaged->number;
  d->at = damaged->at;
}

/* Reads all records from a position on, and checks that each is the one that append wrote, in order, apart from repetitions.
 * Returns the number of records from 0 on without a hole. */
static inline uint64_t read_all(struct world *w, uint64_t from, struct damages *d, bool mend)
{
  struct hk_journal_reader *r;
  struct hk_record record;
  char why[256] = "";
  uint64_t next = UINT64_MAX;
  int status;
  *d = (struct damages){ 0 };
  if (hk_journal_read(&r, &w->place, from, on_damage, d, why, sizeof why) != 0)
    fail_msg("%s", why);
  while ((status = hk_journal_next(r, &record)) == 1) {
    if (next == UINT64_MAX) {
      assert_true(record.position <= from);
      next = record.position;
    }
    if (record.position < next)
      continue;
    assert_int_equal(record.position, next);
    assert_int_equal(record.type, 7);
    assert_int_equal(record.size, next % 50 * 7);
    assert_int_equal((uintptr_t)record.payload % 8, 0);
    for (uint32_t i = 0; i < record.size; i++)
      assert_int_equal(record.payload[i], (uint8_t)next);
    next += record.count;
  }
  assert_int_equal(status, 0);
  assert_int_equal(hk_journal_left(r), 0);
  if (mend)
    assert_int_equal(hk_journal_mend(r), 0);
  hk_journal_read_close(r);
  return next == UINT64_MAX ? 0 : next;
}

#endif
