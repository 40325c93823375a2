/* The event log: what is shown and when, what is found again after any cut and any flipped byte, disks that fail. */
#include "daemon/durable/event_log.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL /* names that collide are looked for among 131 million */
#include <xxhash.h>

#include <cmocka.h>

#define SENSORS 7

/* A folder of its own, and a disk whose calls are counted: the one numbered `fails` fails, and all behind it. */
struct place {
  char path[64];
  int folder;
  struct hk_disk disk;
  struct hk_log log;
  int calls, fails;
};

static int fault(void *arg, enum hk_disk_call call)
{
  struct place *p = arg;
  (void)call;
  return p->fails > 0 && ++p->calls >= p->fails ? EIO : 0;
}

static void set_up(struct place *p)
{
  *p = (struct place){ .path = "/dev/shm/hankel-events-XXXXXX" };
  p->disk = (struct hk_disk){ fault, p };
  assert_non_null(mkdtemp(p->path));
  assert_int_equal(hk_disk_folder(&p->disk, AT_FDCWD, p->path, &p->folder), 0);
  hk_log_init(&p->log, HK_LOG_ERROR);
  p->log.level = 0; /* what is damaged here is so on purpose */
}

static void tear_down(struct place *p)
{
  char command[128];
  close(p->folder);
  snprintf(command, sizeof command, "rm -r %s", p->path);
  assert_int_equal(system(command), 0);
}

static struct hk_eventlog *open_log(struct place *p)
{
  struct hk_eventlog *e = NULL;
  char error[256] = "";
  const int status = hk_eventlog_open(&e, &p->disk, p->folder, HK_EVENTLOG_LEAST, NULL, &p->log, error, sizeof error);
  if (status != 0)
    fail_msg("%s (%d)", error, status);
  return e;
}

/* What event number i of a test is. */
static struct hk_logged nth(uint64_t i, char name[64])
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
  return l;
}

static uint64_t append(struct hk_eventlog *e, uint64_t i)
{
  char name[64];
  const struct hk_logged l = nth(i, name);
  return hk_eventlog_append(e, l.handle, l.name, l.sequence, &l.event, l.by);
}

static int commit(struct hk_eventlog *e)
{
  (void)hk_journal_take(hk_eventlog_journal(e));
  return hk_eventlog_commit(e);
}

/* Counts what is visited, all of which must be right. */
static void check(void *arg, const struct hk_logged *l)
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
  assert_memory_equal(&l->event.novelty, &right.event.novelty, sizeof right.event.novelty);
  assert_true(l->event.score == right.event.score && l->event.before == right.event.before &&
              l->event.after == right.event.after);
}

/* Events that are there from `next` on, and positions that are gone. */
static uint32_t count_from(struct hk_eventlog *e, uint64_t next, uint64_t *missed)
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
  hk_eventlog_free(e); /* 22 was told but is not on the disk */
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
    assert_int_equal(hk_eventlog_append(e, i, hk_string(name), i + 1, &first, hk_string("")), 31 + i);
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
  assert_int_equal(hk_eventlog_append(e, 3, hk_string("sensor number 3"), 1, &first, hk_string("")), 132);
  hk_eventlog_free(e);
  tear_down(&p);
}

/* Eight letters, of which each number has its own. */
static void letters(char name[8], uint32_t number)
{
  for (int i = 0; i < 8; i++)
    name[i] = (char)('a' + (number >> 4 * i & 15));
}

/* CPU seconds that it takes to open a log with an event of each of n sensors; collide: their names are chosen so that a hash
 * without a key puts all into one place. */
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
    assert_int_equal(hk_eventlog_append(e, handle, (struct hk_string){ name, sizeof name }, 1, &raised, hk_string("")), ++i);
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
  const uint32_t n = 8000; /* of a table of 16384 */
  const double plain = open_seconds(n, 0, false), collide = open_seconds(n, 16383, true);
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

/* What a replay may bring again stays on the disk, however much it is, and is known; memory is bounded all the same. */
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

/* Old events go, with their files, and whoever wants them is told how many. */
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

/* However often it is opened and goes on, nothing is lost or there twice. */
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

/* Every length: the whole records before the cut are there, and the log goes on behind them. */
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

/* A sanitizer makes all of them take half a minute: it gets a bit of each byte, another one each time. */
#ifdef __SANITIZE_ADDRESS__
#define NEXT_FLIP 9
#else
#define NEXT_FLIP 1
#endif

/* Every bit of every byte: all events but that one are there, and nothing wrong is ever read. */
static void test_flips(void **state)
{
  enum { N = 20, PADDING = 1 }; /* bytes behind a name, which say nothing */
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
  data[8] = 5; /* and the checksum of such a head */
  memcpy(data + HK_JOURNAL_HEADER - 8, (uint64_t[]){ XXH3_64bits(data, HK_JOURNAL_HEADER - 8) }, 8);
  write_file(&p, data, size);
  assert_int_equal(hk_eventlog_open(&e, &p.disk, p.folder, HK_EVENTLOG_LEAST, NULL, &p.log, error, sizeof error),
                   -EPROTONOSUPPORT);
  assert_non_null(strstr(error, "events-000000000001.hke"));
  free(data);
  tear_down(&p);
}

/* The disk fails at every call in turn, for good; then it is well again. Nothing that is not on the disk is shown, and in the end
 * all is there, once. */
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
    for (int again = 0; again < 3; again++) /* past a file that could not be removed; what was not committed before; the rest */
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

/* --- incidents ---------------------------------------------------------------------------------------------------------- */

/* What a visit comes by, as text: E2 an event (of incident 7: E2=7), I3 a change of an incident, S4 what was settled, O5 an
 * operation. */
struct heard {
  char text[256];
  size_t used;
};

static void say(struct heard *h, const char *format, uint64_t a, uint64_t b)
{
  h->used += (size_t)snprintf(h->text + h->used, sizeof h->text - h->used, format, (unsigned long long)a, (unsigned long long)b);
}

static void hear_event(void *arg, const struct hk_logged *l)
{
  say(arg, l->incident ? "E%llu=%llu " : "E%llu ", l->position, l->incident);
}

static void hear_change(void *arg, const struct hk_logged_incident *i)
{
  assert_true(i->kind == HANKEL_INCIDENT_UPDATE && i->told && i->count == 2 && i->number == 9 && i->rank == 4.5);
  assert_true(i->time == 1000 && i->since == 900 && i->severity == 3.25);
  assert_int_equal(i->text.length, 4);
  assert_memory_equal(i->text.data, "text", 4);
  assert_memory_equal(i->about.data, "{}", 2);
  assert_int_equal(i->sensors.length, 4);
  assert_memory_equal(i->sensors.data, "a\0b", 4);
  say(arg, "I%llu:%llu ", i->position, i->id);
}

static void hear_settled(void *arg, const struct hk_logged_settled *s, uint64_t position)
{
  assert_true(s->time == 77 && s->number == 8 && s->id == 6 && s->a_day == 2.5 && s->sensors == 11);
  say(arg, "S%llu:%llu ", position, s->n);
}

static const struct hk_logged_operation operation = {
  .time = 5, .until = INT64_MAX, .kind = HK_LOGGED_MAINTENANCE, .subject = { "pump*", 5 }, .by = { "ann", 3 }, .text = { "", 0 }
};

static void hear_operation(void *arg, const struct hk_logged_operation *o)
{
  assert_true(o->time == 5 && o->until == INT64_MAX && o->kind == HK_LOGGED_MAINTENANCE && o->text.length == 0);
  assert_int_equal(o->subject.length, 5);
  assert_memory_equal(o->subject.data, "pump*", 5);
  assert_int_equal(o->by.length, 3);
  assert_memory_equal(o->by.data, "ann", 3);
  say(arg, "O%llu ", o->position, 0);
}

static void expect(struct hk_eventlog *e, uint64_t from, bool waits, const char *expected)
{
  const struct hk_eventlog_visit visit = { hear_event, hear_change, hear_settled, waits, hear_operation };
  struct hk_eventlog_cursor c = { .next = from };
  struct heard h = { .used = 0 };
  while (hk_eventlog_visit(e, &c, UINT64_MAX, 3, &visit, &h) > 0)
    say(&h, "| ", 0, 0);
  assert_string_equal(h.text, expected);
  assert_int_equal(c.missed, 0);
}

static void settle(struct hk_eventlog *e, uint64_t seen, uint64_t upto, const struct hk_settled_event *of, uint32_t n)
{
  const struct hk_logged_settled s = { seen, upto, 77, 8, 6, 2.5, 11, n, (const uint8_t *)of };
  assert_true(hk_eventlog_append_settled(e, &s) > 0);
}

/* Events have their incidents once that is settled, in this run and the next, and who waits for them gets none before. */
static void test_incidents(void **state)
{
  struct place p;
  (void)state;
  set_up(&p);
  struct hk_eventlog *e = open_log(&p);
  const struct hk_logged_incident change = { .number = 9,
                                             .id = 7,
                                             .time = 1000,
                                             .since = 900,
                                             .rank = 4.5,
                                             .severity = 3.25,
                                             .count = 2,
                                             .kind = HANKEL_INCIDENT_UPDATE,
                                             .told = true,
                                             .text = hk_string("text"),
                                             .about = hk_string("{}"),
                                             .sensors = { "a\0b", 4 } };
  for (uint64_t i = 1; i <= 4; i++)
    assert_int_equal(append(e, i), i);
  assert_int_equal(commit(e), 0);
  expect(e, 1, true, "E1 E2 E3 | E4 | "); /* nobody settles */
  hk_eventlog_settle(e, 0);
  expect(e, 1, true, "");
  settle(e, 4, 2, (const struct hk_settled_event[]){ { 1, 7 }, { 4, 8 } }, 2);
  assert_int_equal(hk_eventlog_append_incident(e, &change), 6);
  assert_int_equal(append(e, 7), 7);
  assert_int_equal(commit(e), 0);
  expect(e, 1, true, "E1=7 E2 | ");
  expect(e, 1, false, "E1=7 E2 E3 | E4=8 S5:2 I6:7 | E7 | ");
  assert_int_equal(count_from(e, 7, NULL), 1);
  settle(e, 7, 7, (const struct hk_settled_event[]){ { 3, 7 } }, 1);
  assert_int_equal(hk_eventlog_append_operation(e, &operation), 9);
  assert_int_equal(commit(e), 0);
  for (int run = 0; run < 2; run++) {
    expect(e, 1, true, "E1=7 E2 E3=7 | E4=8 S5:2 I6:7 | E7 S8:1 O9 | "); /* an incident ends a visit */
    expect(e, 6, true, "I6:7 | E7 S8:1 O9 | ");
    hk_eventlog_free(e);
    e = open_log(&p);
    hk_eventlog_settle(e, 0);
  }
  hk_eventlog_free(e);
  tear_down(&p);
}

/* Whatever byte of a payload is another: it is refused, or read within its bounds. */
static void test_payloads(void **state)
{
  (void)state;
  const struct hk_settled_event of[] = { { 2, 7 }, { 5, 8 } };
  const struct hk_logged_settled settled = { 9, 5, 77, 8, 6, 2.5, 11, 2, (const uint8_t *)of };
  const struct hk_logged_incident change = {
    .id = 7, .kind = HANKEL_INCIDENT_TOLD, .text = hk_string("text"), .about = hk_string("{}"), .sensors = { "a\0b", 4 }
  };
  const size_t sizes[] = { hk_logged_settled_size(&settled), hk_logged_incident_size(&change),
                           hk_logged_operation_size(&operation) };
  for (uint32_t type = 0; type < 3; type++) {
    static const uint32_t types[] = { HK_RECORD_SETTLED, HK_RECORD_INCIDENT, HK_RECORD_OPERATION };
    const size_t size = sizes[type];
    uint8_t *bytes = malloc(size);
    struct hk_logged_settled s;
    struct hk_logged_incident i;
    struct hk_logged_operation o;
    assert_non_null(bytes);
    for (size_t at = 0; at < size; at++) {
      for (int bit = 0; bit < 8; bit++) {
        if (type == 0)
          hk_logged_settled_write(&settled, bytes);
        else if (type == 1)
          hk_logged_incident_write(&change, bytes);
        else
          hk_logged_operation_write(&operation, bytes);
        assert_true(hk_log_record_valid(types[type], bytes, size));
        bytes[at] ^= (uint8_t)(1 << bit);
        if (type == 0 && hk_logged_settled_read(bytes, size, &s))
          assert_true(s.n == 2 && s.events + 32 == bytes + size && s.upto <= s.seen);
        if (type == 1 && hk_logged_incident_read(bytes, size, &i))
          assert_true(i.sensors.data + i.sensors.length == (const char *)bytes + size && i.kind >= 1 && i.kind <= 8);
        if (type == 2 && hk_logged_operation_read(bytes, size, &o))
          assert_true(o.text.data + o.text.length == (const char *)bytes + size && o.kind >= 1 && o.kind <= 4);
      }
    }
    for (size_t less = 0; less < size; less++)
      assert_false(hk_log_record_valid(types[type], bytes, less));
    assert_false(hk_log_record_valid(HK_RECORD_OPERATION + 1, bytes, size));
    free(bytes);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_shown),   cmocka_unit_test(test_replay),    cmocka_unit_test(test_collisions),
    cmocka_unit_test(test_bounded), cmocka_unit_test(test_kept),      cmocka_unit_test(test_restarts),
    cmocka_unit_test(test_cuts),    cmocka_unit_test(test_flips),     cmocka_unit_test(test_version),
    cmocka_unit_test(test_faults),  cmocka_unit_test(test_incidents), cmocka_unit_test(test_payloads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
