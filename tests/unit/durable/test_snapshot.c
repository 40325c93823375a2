/* Snapshots: what was written is read back; changed, cut and mixed files are refused; a failing disk leaves no valid file. */
#include "daemon/durable/snapshot_format.h"
#include "daemon/durable/snapshot_read.h"
#include "daemon/durable/snapshot_write.h"

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

struct trouble {
  uint64_t at, calls; /* fails call number `at`, from 1 */
};

static int fault(void *arg, enum hk_disk_call call)
{
  struct trouble *t = arg;
  (void)call;
  return ++t->calls == t->at ? EIO : 0;
}

struct world {
  char path[64];
  int folder;
  struct trouble trouble;
  struct hk_disk disk;
};

static void begin(struct world *w)
{
  *w = (struct world){ .path = "/tmp/test-snapshot-XXXXXX" };
  assert_non_null(mkdtemp(w->path));
  w->disk = (struct hk_disk){ fault, &w->trouble };
  assert_int_equal(hk_disk_folder(&w->disk, AT_FDCWD, w->path, &w->folder), 0);
}

static void end(struct world *w)
{
  char command[128];
  close(w->folder);
  snprintf(command, sizeof command, "rm -r %s", w->path);
  assert_int_equal(system(command), 0);
}

static const struct hk_snapshot_about about = {
  .shard = 1, .shards = 3, .number = 7, .epoch = 2, .begin = 1000, .order = 5, .made = 99, .together = true
};

#define SENSORS 23u

static struct hk_snapshot_sensor sensor_of(uint32_t i, char *name, uint8_t *state)
{
  struct hk_snapshot_sensor s = { .slot = 1 + 3 * i, .generation = (uint8_t)(i * 7), .detector = (uint16_t)(i % 2) };
  s.name = (struct hk_string){ name, (size_t)snprintf(name, 64, "sensor/%0*u", (int)(1 + i % 9), i) };
  s.alerts = (struct hk_alerts_memory){ .points = 1000 + i, .events = 2 * i, .number = i, .stands = i % 4 == 3 };
  if (s.alerts.stands)
    s.alerts.standing.event = (struct hk_event){ .index = UINT32_MAX,
                                                 .slot = s.slot,
                                                 .number = i,
                                                 .kind = i % 8 == 3 ? HK_EVENT_RAISED : HK_EVENT_CORRECTED,
                                                 .time = 10 + i,
                                                 .from = 5,
                                                 .instant = 7,
                                                 .score = 0.5f,
                                                 .before = 1.25,
                                                 .after = -3,
                                                 .margin = 1.5f,
                                                 .spread_before = 2,
                                                 .spread_after = 0.25f,
                                                 .channel = HK_CHANNEL_SHIFT,
                                                 .marks = 1,
                                                 .held = i,
                                                 .similar = i / 2,
                                                 .similar_from = 3,
                                                 .likeness = 0.75f,
                                                 .severity = 3.125f };
  if (i % 8 == 7)
    s.alerts.standing.event.novelty = (struct hk_novelty_note){ i, -(int64_t)i - 9, 0.5, i * 3, i + 1, 64, 2, 0 };
  if (i % 8 == 3) {
    snprintf(s.alerts.standing.by, sizeof s.alerts.standing.by, "%.*s", (int)(1 + i % 64), "somebody");
    s.alerts.standing.acknowledged = 77;
  }
  s.alerts.raised = i % 3 ? (i * 5) % (HK_FLAP_MAX + 1) : 0;
  s.alerts.held = s.alerts.raised > 0 ? i : 0;
  s.alerts.segments = (struct hk_segments){ .n = i % (HK_SEGMENTS + 1) };
  if (s.alerts.segments.n > 0) {
    s.alerts.segments.number = i;
    s.alerts.segments.from = -(int64_t)i;
  }
  for (uint32_t k = 0; k < s.alerts.segments.n; k++) {
    struct hk_segment *segment = &s.alerts.segments.kept[k];
    *segment = (struct hk_segment){ .from = k + i, .level = k / 3.0, .spread = (float)k, .number = k + 7 };
    memset(&segment->sketch, (int)(k + 1), sizeof segment->sketch);
  }
  for (uint32_t k = 0; k < s.alerts.raised; k++)
    s.alerts.time[k] = (int64_t)k * 1000 + i;
  s.state = state;
  s.state_size = i % 5 == 4 ? 0 : 20 + i;
  memset(state, (int)i, s.state_size);
  return s;
}

#define MACHINES 3u

static struct hk_machine_memory machine_of(uint32_t i, struct hk_machine_change *changes, struct hk_machine_member *members,
                                           uint64_t *rows)
{
  for (uint32_t k = 0; k < 4; k++) {
    changes[k] = (struct hk_machine_change){ .time = k,
                                             .from = i,
                                             .instant = 9,
                                             .before = 0.5,
                                             .after = k,
                                             .statistic = 7,
                                             .unit = k % 2,
                                             .spread_before = 3,
                                             .spread_after = 4 };
    members[k] = (struct hk_machine_member){ 100 * i + k, k };
    rows[k] = k + i;
  }
  return (struct hk_machine_memory){
    .slot = 1 + 3 * i,
    .number = 5 + i,
    .told = i > 0,
    .stands = i == 1,
    .standing = { .kind = HK_EVENT_RAISED, .channel = HK_CHANNEL_GROUP, .number = 5, .score = 0.75f, .instant = 3 },
    .n_changes = i,
    .n_members = 2 * i,
    .changes = changes,
    .members = members,
    .rows = rows,
    .rows_size = 8 * (i + 1)
  };
}

static int write_machines(struct hk_snapshot_writer *writer)
{
  struct hk_machine_change changes[4];
  struct hk_machine_member members[4];
  uint64_t rows[4];
  int status = 0;
  hk_snapshot_begin(writer, HK_PART_MACHINES, 1012, 0);
  for (uint32_t i = 0; i < MACHINES && status == 0; i++) {
    const struct hk_machine_memory m = machine_of(i, changes, members, rows);
    status = hk_snapshot_add_machine(writer, &m, (uint8_t)(7 * i));
  }
  return status != 0 ? status : hk_snapshot_end(writer);
}

#define OWNERS 5u

static struct hk_snapshot_owner owner_of(uint32_t i)
{
  return (struct hk_snapshot_owner){ 1 + 3 * i, (uint8_t)(200 + i), UINT64_MAX - i };
}

static int write_owners(struct hk_snapshot_writer *writer)
{
  int status = 0;
  hk_snapshot_begin(writer, HK_PART_OWNERS, 0, 0);
  for (uint32_t i = 0; i < OWNERS && status == 0; i++) {
    const struct hk_snapshot_owner owner = owner_of(i);
    status = hk_snapshot_add_owner(writer, &owner);
  }
  return status != 0 ? status : hk_snapshot_end(writer);
}

/* Two sections of sensors, two detectors, a feed, a section of machines. Returns 0 or how it failed. */
static int write_one(const struct world *w)
{
  struct hk_snapshot_writer *writer;
  char name[64];
  uint8_t state[64];
  uint16_t number;
  int status = hk_snapshot_create(&writer, &w->disk, w->folder, &about);
  if (status != 0)
    return status;
  status = hk_snapshot_feed(writer, &(struct hk_record_feed){ 4, hk_string("plant/north"), 77, 88 }, 123456789012345u);
  for (uint32_t i = 0; i < SENSORS && status == 0; i++) {
    if (i == 0 || i == 12) {
      status = hk_snapshot_detector(writer, hk_string(i == 0 ? "fast" : "slow"), &number);
      assert_true(status != 0 || number == (i == 12));
      if (status == 0 && i == 12)
        status = hk_snapshot_detector(writer, hk_string("fast"), &number); /* known: not told again */
      assert_true(status != 0 || number == 0);
      hk_snapshot_begin(writer, HK_PART_SENSORS, 1000 + i, 5000 + i);
    }
    const struct hk_snapshot_sensor s = sensor_of(i, name, state);
    if (status == 0)
      status = hk_snapshot_add(writer, &s);
    if (status == 0 && (i == 11 || i == SENSORS - 1))
      status = hk_snapshot_end(writer);
  }
  if (status == 0)
    status = write_machines(writer);
  if (status == 0)
    status = write_owners(writer);
  if (status == 0)
    status = hk_snapshot_finish(writer);
  hk_snapshot_close(writer);
  return status;
}

#define NAME "snapshot-000000000007.hks"

/* Reads a whole file: 0 if it is good. *sensors: those that were seen. */
static int read_one(const struct world *w, const char *name, uint32_t *sensors, char *why, size_t size)
{
  struct hk_snapshot_reader *reader;
  struct hk_snapshot_part part;
  *sensors = 0;
  int status = hk_snapshot_open(&reader, &w->disk, w->folder, name, why, size);
  if (status != 0)
    return status;
  while ((status = hk_snapshot_next(reader, &part)) == 1) {
    struct hk_snapshot_sensor s;
    size_t at = 0;
    for (int more = part.type == HK_PART_SENSORS; more && (more = hk_snapshot_sensor_next(&part, &at, &s)) != 0; (*sensors)++)
      if (more < 0) {
        hk_snapshot_read_close(reader);
        return more;
      }
  }
  hk_snapshot_read_close(reader);
  return status;
}

static uint8_t *load(const struct world *w, const char *name, size_t *size)
{
  char path[128];
  struct stat now;
  snprintf(path, sizeof path, "%s/%s", w->path, name);
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  assert_int_equal(fstat(fileno(f), &now), 0);
  uint8_t *bytes = malloc((size_t)now.st_size);
  assert_non_null(bytes);
  *size = fread(bytes, 1, (size_t)now.st_size, f);
  assert_int_equal(*size, now.st_size);
  fclose(f);
  return bytes;
}

static void store(const struct world *w, const char *name, const uint8_t *bytes, size_t size)
{
  char path[128];
  snprintf(path, sizeof path, "%s/%s", w->path, name);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, size, f), size);
  fclose(f);
}

static void same_machines(const struct hk_snapshot_part *part)
{
  struct hk_machine_change changes[4];
  struct hk_machine_member members[4];
  struct hk_machine_memory m;
  uint64_t rows[4];
  uint8_t generation;
  size_t at = 0;
  assert_true(part->count == MACHINES && part->position == 1012);
  for (uint32_t i = 0; i < MACHINES; i++) {
    const struct hk_machine_memory want = machine_of(i, changes, members, rows);
    assert_int_equal(hk_snapshot_machine_next(part, &at, &m, &generation), 1);
    assert_true(generation == 7 * i && m.slot == want.slot && m.number == want.number && m.told == want.told &&
                m.stands == want.stands && m.n_changes == i && m.n_members == 2 * i && m.rows_size == want.rows_size);
    assert_memory_equal(m.changes, changes, i * sizeof *changes);
    assert_memory_equal(m.members, members, 2 * i * sizeof *members);
    assert_memory_equal(m.rows, rows, m.rows_size);
    if (m.stands)
      assert_true(m.standing.kind == HK_EVENT_RAISED && m.standing.channel == HK_CHANNEL_GROUP && m.standing.number == 5 &&
                  m.standing.score == 0.75f && m.standing.instant == 3);
  }
  assert_int_equal(hk_snapshot_machine_next(part, &at, &m, &generation), 0);
}

static void same_owners(const struct hk_snapshot_part *part)
{
  struct hk_snapshot_owner o;
  size_t at = 0;
  assert_int_equal(part->count, OWNERS);
  for (uint32_t i = 0; i < OWNERS; i++) {
    const struct hk_snapshot_owner want = owner_of(i);
    assert_int_equal(hk_snapshot_owner_next(part, &at, &o), 1);
    assert_true(o.slot == want.slot && o.generation == want.generation && o.owner == want.owner);
  }
  assert_int_equal(hk_snapshot_owner_next(part, &at, &o), 0);
  struct hk_snapshot_part cut = *part;
  cut.size -= 8;
  for (at = 0; hk_snapshot_owner_next(&cut, &at, &o) > 0;)
    ;
  assert_int_equal(hk_snapshot_owner_next(&cut, &at, &o), -EBADMSG);
}

static void what_was_written_is_read(void **state)
{
  struct world w;
  (void)state;
  begin(&w);
  assert_int_equal(write_one(&w), 0);
  struct hk_snapshot_reader *reader;
  struct hk_snapshot_part part;
  char why[128] = "", name[64];
  uint8_t bytes[64];
  uint32_t seen = 0, parts = 0, detectors = 0;
  assert_int_equal(hk_snapshot_open(&reader, &w.disk, w.folder, NAME, why, sizeof why), 0);
  const struct hk_snapshot_about *a = hk_snapshot_of(reader);
  assert_true(a->shard == 1 && a->shards == 3 && a->number == 7 && a->epoch == 2 && a->begin == 1000 && a->order == 5 &&
              a->made == 99 && a->together);
  int status;
  while ((status = hk_snapshot_next(reader, &part)) == 1) {
    struct hk_string text;
    parts++;
    if (part.type == HK_PART_FEED) {
      struct hk_record_feed feed;
      uint64_t upto;
      assert_int_equal(hk_snapshot_feed_read(&part, &feed, &upto), 0);
      text = feed.name;
      assert_true(feed.number == 4 && upto == 123456789012345u && text.length == 11 && memcmp(text.data, "plant/north", 11) == 0);
      assert_true(feed.owner == 77 && feed.used == 88);
      struct hk_snapshot_part older = part; /* of before there were owners */
      older.size -= 16;
      assert_int_equal(hk_snapshot_feed_read(&older, &feed, &upto), 0);
      assert_true(feed.number == 4 && feed.name.length == 11 && feed.owner == 0 && feed.used == 0);
    } else if (part.type == HK_PART_DETECTOR) {
      uint16_t number;
      assert_int_equal(hk_snapshot_detector_read(&part, &number, &text), 0);
      assert_true(number == detectors && memcmp(text.data, detectors == 0 ? "fast" : "slow", 4) == 0 && text.length == 4);
      detectors++;
    } else if (part.type == HK_PART_MACHINES) {
      same_machines(&part);
    } else if (part.type == HK_PART_OWNERS) {
      same_owners(&part);
    } else if (part.type == HK_PART_SENSORS) {
      struct hk_snapshot_sensor s;
      size_t at = 0;
      assert_int_equal(part.count, seen == 0 ? 12 : SENSORS - 12);
      assert_int_equal(part.position, 1000 + seen);
      assert_int_equal(part.arrival, 5000 + seen);
      while ((status = hk_snapshot_sensor_next(&part, &at, &s)) == 1) {
        const struct hk_snapshot_sensor want = sensor_of(seen++, name, bytes);
        assert_true(s.slot == want.slot && s.generation == want.generation && s.detector == want.detector);
        assert_int_equal(s.name.length, want.name.length);
        assert_memory_equal(s.name.data, want.name.data, want.name.length);
        assert_int_equal(s.state_size, want.state_size);
        assert_memory_equal(s.state, want.state, want.state_size);
        assert_true((uintptr_t)s.state % 8 == 0);
        assert_true(s.alerts.points == want.alerts.points && s.alerts.events == want.alerts.events &&
                    s.alerts.number == want.alerts.number && s.alerts.stands == want.alerts.stands);
        assert_true(s.alerts.raised == want.alerts.raised && s.alerts.held == want.alerts.held);
        assert_memory_equal(s.alerts.time, want.alerts.time, s.alerts.raised * sizeof *s.alerts.time);
        assert_int_equal(s.alerts.segments.n, want.alerts.segments.n);
        assert_true(s.alerts.segments.number == want.alerts.segments.number &&
                    s.alerts.segments.from == want.alerts.segments.from);
        for (uint32_t k = 0; k < s.alerts.segments.n; k++) {
          const struct hk_segment *x = &s.alerts.segments.kept[k], *y = &want.alerts.segments.kept[k];
          assert_true(x->from == y->from && x->level == y->level && x->spread == y->spread && x->number == y->number);
          assert_memory_equal(&x->sketch, &y->sketch, sizeof x->sketch);
        }
        assert_string_equal(s.alerts.standing.by, want.alerts.standing.by);
        assert_int_equal(s.alerts.standing.acknowledged, want.alerts.standing.acknowledged);
        const struct hk_event *x = &s.alerts.standing.event, *y = &want.alerts.standing.event;
        if (s.alerts.stands)
          assert_true(x->index == y->index && x->slot == y->slot && x->number == y->number && x->kind == y->kind &&
                      x->time == y->time && x->from == y->from && x->instant == y->instant && x->score == y->score &&
                      x->before == y->before && x->after == y->after && x->margin == y->margin &&
                      x->spread_before == y->spread_before && x->spread_after == y->spread_after && x->channel == y->channel &&
                      x->marks == y->marks && x->held == y->held && x->similar == y->similar &&
                      x->similar_from == y->similar_from && x->likeness == y->likeness && x->severity == y->severity &&
                      memcmp(&x->novelty, &y->novelty, sizeof x->novelty) == 0);
      }
      assert_int_equal(status, 0);
    }
  }
  assert_int_equal(status, 0);
  assert_int_equal(hk_snapshot_next(reader, &part), 0);
  assert_int_equal(seen, SENSORS);
  assert_int_equal(parts, 8);
  hk_snapshot_read_close(reader);
  end(&w);
}

static void every_byte_counts(void **state)
{
  struct world w;
  size_t size;
  uint32_t seen;
  char why[128];
  (void)state;
  begin(&w);
  assert_int_equal(write_one(&w), 0);
  uint8_t *bytes = load(&w, NAME, &size);
  const int file = openat(w.folder, NAME, O_WRONLY);
  assert_true(file >= 0);
  for (size_t i = 0; i < size; i++)
    for (uint8_t flip = 1; flip; flip = flip == 1 ? 0x80 : 0) {
      bytes[i] ^= flip;
      assert_int_equal(pwrite(file, &bytes[i], 1, (off_t)i), 1);
      why[0] = 0;
      const int status = read_one(&w, NAME, &seen, why, sizeof why);
      if (status != -EBADMSG || !why[0])
        fail_msg("byte %zu of %zu changed: %d, %s", i, size, status, why);
      bytes[i] ^= flip;
      assert_int_equal(pwrite(file, &bytes[i], 1, (off_t)i), 1);
    }
  assert_int_equal(read_one(&w, NAME, &seen, why, sizeof why), 0);
  close(file);
  free(bytes);
  end(&w);
}

static void every_length_counts(void **state)
{
  struct world w;
  size_t size;
  uint32_t seen;
  char why[128];
  (void)state;
  begin(&w);
  assert_int_equal(write_one(&w), 0);
  uint8_t *bytes = load(&w, NAME, &size), *more = calloc(1, size + 64);
  assert_non_null(more);
  const int file = openat(w.folder, NAME, O_WRONLY);
  assert_true(file >= 0);
  for (size_t cut = size; cut-- > 0;) {
    assert_int_equal(ftruncate(file, (off_t)cut), 0);
    const int status = read_one(&w, NAME, &seen, why, sizeof why);
    if (status != -EBADMSG)
      fail_msg("cut to %zu of %zu bytes: %d", cut, size, status);
  }
  close(file);
  memcpy(more, bytes, size);
  for (size_t behind = 1; behind <= 64; behind++) {
    store(&w, NAME, more, size + behind);
    assert_int_equal(read_one(&w, NAME, &seen, why, sizeof why), -EBADMSG);
  }
  free(bytes);
  free(more);
  end(&w);
}

/* A section left out, or come twice, is noticed, though each section that is there is good. */
static void sections_belong_together(void **state)
{
  struct world w;
  struct hk_snapshot_reader *reader;
  struct hk_snapshot_part part;
  size_t size, at[16], n = 0;
  uint32_t seen;
  char why[128];
  (void)state;
  begin(&w);
  assert_int_equal(write_one(&w), 0);
  uint8_t *bytes = load(&w, NAME, &size), *other = malloc(2 * size);
  assert_non_null(other);
  assert_int_equal(hk_snapshot_open(&reader, &w.disk, w.folder, NAME, why, sizeof why), 0);
  while (hk_snapshot_next(reader, &part) == 1)
    at[n++] = part.at;
  hk_snapshot_read_close(reader);
  at[n] = size;
  assert_int_equal(n, 8);
  for (size_t i = 0; i < n; i++) {
    memcpy(other, bytes, at[i]);
    memcpy(other + at[i], bytes + at[i + 1], size - at[i + 1]);
    store(&w, NAME, other, size - (at[i + 1] - at[i]));
    assert_int_equal(read_one(&w, NAME, &seen, why, sizeof why), -EBADMSG);
    memcpy(other, bytes, at[i + 1]);
    memcpy(other + at[i + 1], bytes + at[i], size - at[i]);
    store(&w, NAME, other, size + at[i + 1] - at[i]);
    assert_int_equal(read_one(&w, NAME, &seen, why, sizeof why), -EBADMSG);
  }
  free(bytes);
  free(other);
  end(&w);
}

/* Another version, with a good checksum, is told as such. */
static void versions_are_named(void **state)
{
  struct world w;
  (void)state;
  begin(&w);
  assert_int_equal(write_one(&w), 0);
  size_t size;
  uint32_t seen;
  char why[128];
  uint8_t *bytes = load(&w, NAME, &size);
  for (uint32_t version = 0; version < 5; version += 1 + (version == HK_SNAPSHOT_VERSION - 1)) {
    struct hk_snapshot_head head;
    memcpy(&head, bytes, sizeof head);
    head.version = version;
    head.checksum = hk_snapshot_checksum(&head);
    memcpy(bytes, &head, sizeof head);
    store(&w, NAME, bytes, size);
    assert_int_equal(read_one(&w, NAME, &seen, why, sizeof why), -EPROTONOSUPPORT);
    char number[16];
    snprintf(number, sizeof number, "version %u", version);
    assert_non_null(strstr(why, number));
  }
  free(bytes);
  end(&w);
}

/* Whatever call fails, there is no file under a snapshot's name that is not whole. */
static void a_failing_disk_leaves_nothing_bad(void **state)
{
  struct world w;
  uint32_t seen;
  char why[128];
  uint64_t *numbers;
  size_t n;
  int status = -1;
  (void)state;
  for (uint64_t at = 1; status != 0; at++) {
    begin(&w);
    w.trouble = (struct trouble){ .at = at };
    status = write_one(&w);
    assert_true(status == 0 || status == -EIO);
    w.trouble.at = 0;
    assert_int_equal(hk_disk_list(&w.disk, w.folder, HK_SNAPSHOT_STEM, HK_SNAPSHOT_SUFFIX, &numbers, &n), 0);
    free(numbers);
    assert_true(n == 1 || status != 0);
    if (n == 1) { /* the last call syncs the folder: the file is good by then */
      assert_int_equal(read_one(&w, NAME, &seen, why, sizeof why), 0);
      assert_int_equal(seen, SENSORS);
    }
    end(&w);
    assert_true(at < 100);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_was_written_is_read), cmocka_unit_test(every_byte_counts),
    cmocka_unit_test(every_length_counts),      cmocka_unit_test(sections_belong_together),
    cmocka_unit_test(versions_are_named),       cmocka_unit_test(a_failing_disk_leaves_nothing_bad),
  };
  return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
