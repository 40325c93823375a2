/* An event log in a folder of its own, with numbered events, for its tests. */
#ifndef HK_TESTS_EVENT_LOG_H
#define HK_TESTS_EVENT_LOG_H

#include "daemon/durable/event_log.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define SENSORS 7

/* A temporary folder, and a disk whose calls are counted: the one numbered `fails` fails, and all after it. */
struct place {
  char path[64];
  int folder;
  struct hk_disk disk;
  struct hk_log log;
  int calls, fails;
};

static inline int fault(void *arg, enum hk_disk_call call)
{
  struct place *p = arg;
  (void)call;
  return p->fails > 0 && ++p->calls >= p->fails ? EIO : 0;
}

static inline void set_up(struct place *p)
{
  *p = (struct place){ .path = "/dev/shm/hankel-events-XXXXXX" };
  p->disk = (struct hk_disk){ fault, p };
  assert_non_null(mkdtemp(p->path));
  assert_int_equal(hk_disk_folder(&p->disk, AT_FDCWD, p->path, &p->folder), 0);
  hk_log_init(&p->log, HK_LOG_ERROR);
  p->log.level = 0; /* damage here is intended */
}

static inline void tear_down(struct place *p)
{
  char command[128];
  close(p->folder);
  snprintf(command, sizeof command, "rm -r %s", p->path);
  assert_int_equal(system(command), 0);
}

static inline struct hk_eventlog *open_log(struct place *p)
{
  struct hk_eventlog *e = NULL;
  char error[256] = "";
  const int status = hk_eventlog_open(&e, &p->disk, p->folder, HK_EVENTLOG_LEAST, NULL, &p->log, error, sizeof error);
  if (status != 0)
    fail_msg("%s (%d)", error, status);
  return e;
}

/* Event number i of a test. */
static inline struct hk_logged nth(uint64_t i, char name[64])
{
  struct hk_logged l = { .position = i, .sequence = (i - 1) / SENSORS + 1, .handle = (uint32_t)(i % SENSORS) };
  l.name = (struct hk_string){ name, (size_t)snprintf(name, 64, "sensor number %u", l.handle) };
  l.event = (struct hk_event){ .index = UINT32_MAX,
                               .number = (uint32_t)i * 3,
                               .kind = i % 5 == 4 ? HK_EVENT_ACKNOWLEDGED : (uint8_t)(1 + i % 3),
                               .channel = HK_CHANNEL_SHIFT,
                               .marks = i % 2,
                               .held = (uint32_t)i % 7,
                               .margin = 1 + (float)i,
                               .spread_before = (float)i / 7,
                               .spread_after = (float)i / 9,
                               .similar = (uint32_t)i / 3,
                               .similar_from = (int64_t)i * 7,
                               .likeness = (float)i / 2000,
                               .severity = (float)i / 700,
                               .time = (int64_t)i * 1000,
                               .from = (int64_t)i - 77,
                               .instant = -(int64_t)i,
                               .score = (float)i / 1000,
                               .before = 1.0 / (double)i,
                               .after = (double)i };
  l.event.novelty = (struct hk_novelty_note){ (int64_t)i * 11, -(int64_t)i * 13,    1.0 / (double)i,          (double)i * 2,
                                              (uint32_t)i * 5, (uint16_t)(i % 300), (uint8_t)(1 + i % 9 / 3), 0 };
  l.by = hk_string("somebody who sat at desk");
  l.reached = l.event.time + (int64_t)i;
  return l;
}

static inline uint64_t append(struct hk_eventlog *e, uint64_t i)
{
  char name[64];
  const struct hk_logged l = nth(i, name);
  return hk_eventlog_append(e, l.handle, l.name, l.sequence, &l.event, l.by, l.reached);
}

static inline int commit(struct hk_eventlog *e)
{
  (void)hk_journal_take(hk_eventlog_journal(e));
  return hk_eventlog_commit(e);
}

/* Counts the visited records, and checks each. */
static inline void check(void *arg, const struct hk_logged *l)
{
  char name[64];
  const struct hk_logged right = nth(l->position, name);
  ++*(uint32_t *)arg;
  assert_int_equal(l->sequence, right.sequence);
  assert_int_equal(l->handle, right.handle);
  assert_int_equal(l->name.length, right.name.length);
  assert_memory_equal(l->name.data, right.name.data, right.name.length);
  assert_int_equal(l->event.number, right.event.number);
  assert_int_equal(l->event.kind, right.event.kind);
  assert_int_equal(l->event.time, right.event.time);
  assert_int_equal(l->event.from, right.event.from);
  assert_int_equal(l->event.instant, right.event.instant);
  assert_int_equal(l->by.length, right.by.length);
  assert_memory_equal(l->by.data, right.by.data, right.by.length);
  assert_true(l->event.channel == right.event.channel && l->event.marks == right.event.marks &&
              l->event.held == right.event.held && l->event.margin == right.event.margin &&
              l->event.spread_before == right.event.spread_before && l->event.spread_after == right.event.spread_after &&
              l->event.similar == right.event.similar && l->event.similar_from == right.event.similar_from &&
              l->event.likeness == right.event.likeness && l->event.severity == right.event.severity);
  assert_int_equal(l->reached, right.reached);
  assert_memory_equal(&l->event.novelty, &right.event.novelty, sizeof right.event.novelty);
  assert_true(l->event.score == right.event.score && l->event.before == right.event.before &&
              l->event.after == right.event.after);
}

/* Events that are there from `next` on, and positions that are gone. */
static inline uint32_t count_from(struct hk_eventlog *e, uint64_t next, uint64_t *missed)
{
  struct hk_eventlog_cursor c = { .next = next };
  uint32_t n = 0, visited = 0;
  while (hk_eventlog_read(e, &c, UINT64_MAX, 5, check, &visited) > 0)
    continue;
  n = visited;
  if (missed)
    *missed = c.missed;
  assert_int_equal(c.next, hk_eventlog_shown(e) + 1 > next ? hk_eventlog_shown(e) + 1 : next);
  return n;
}

#endif
