/* Snapshots: written sections are read back; a failing disk leaves no valid file. */
#include "daemon/durable/snapshot_format.h"
#include "daemon/durable/snapshot_read.h"
#include "daemon/durable/snapshot_write.h"
#include "tests/unit/support/snapshot.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

static void same_feed(const struct hk_snapshot_part *part)
{
  struct hk_record_feed feed;
  uint64_t upto;
  assert_int_equal(hk_snapshot_feed_read(part, &feed, &upto), 0);
  assert_true(feed.number == 4 && upto == 123456789012345u && feed.name.length == 11 &&
              memcmp(feed.name.data, "plant/north", 11) == 0);
  assert_true(feed.owner == 77 && feed.used == 88);
  struct hk_snapshot_part older = *part; /* from a version without owners */
  older.size -= 16;
  assert_int_equal(hk_snapshot_feed_read(&older, &feed, &upto), 0);
  assert_true(feed.number == 4 && feed.name.length == 11 && feed.owner == 0 && feed.used == 0);
}

static void same_segments(const struct hk_segments *s, const struct hk_segments *want)
{
  assert_int_equal(s->n, want->n);
  assert_true(s->number == want->number && s->from == want->from);
  for (uint32_t k = 0; k < s->n; k++) {
    const struct hk_segment *x = &s->kept[k], *y = &want->kept[k];
    assert_true(x->from == y->from && x->level == y->level && x->spread == y->spread && x->number == y->number);
    assert_memory_equal(&x->sketch, &y->sketch, sizeof x->sketch);
  }
}

static void same_event(const struct hk_event *x, const struct hk_event *y)
{
  assert_true(x->index == y->index && x->slot == y->slot && x->number == y->number && x->kind == y->kind && x->time == y->time &&
              x->from == y->from && x->instant == y->instant && x->score == y->score && x->before == y->before &&
              x->after == y->after && x->margin == y->margin && x->spread_before == y->spread_before &&
              x->spread_after == y->spread_after && x->channel == y->channel && x->marks == y->marks && x->held == y->held &&
              x->similar == y->similar && x->similar_from == y->similar_from && x->likeness == y->likeness &&
              x->severity == y->severity && memcmp(&x->novelty, &y->novelty, sizeof x->novelty) == 0);
}

static void same_sensor(const struct hk_snapshot_sensor *s, const struct hk_snapshot_sensor *want)
{
  assert_true(s->slot == want->slot && s->generation == want->generation && s->detector == want->detector);
  assert_int_equal(s->name.length, want->name.length);
  assert_memory_equal(s->name.data, want->name.data, want->name.length);
  assert_int_equal(s->state_size, want->state_size);
  assert_memory_equal(s->state, want->state, want->state_size);
  assert_true((uintptr_t)s->state % 8 == 0);
  assert_true(s->alerts.points == want->alerts.points && s->alerts.events == want->alerts.events &&
              s->alerts.number == want->alerts.number && s->alerts.stands == want->alerts.stands);
  assert_true(s->alerts.raised == want->alerts.raised && s->alerts.held == want->alerts.held);
  assert_memory_equal(s->alerts.time, want->alerts.time, s->alerts.raised * sizeof *s->alerts.time);
  assert_string_equal(s->alerts.standing.by, want->alerts.standing.by);
  assert_int_equal(s->alerts.standing.acknowledged, want->alerts.standing.acknowledged);
  same_segments(&s->alerts.segments, &want->alerts.segments);
  if (s->alerts.stands)
    same_event(&s->alerts.standing.event, &want->alerts.standing.event);
}

/* Checks a section of sensors, whose first one is number `seen`. Returns the number after the last. */
static uint32_t same_sensors(const struct hk_snapshot_part *part, uint32_t seen)
{
  struct hk_snapshot_sensor s;
  char name[64];
  uint8_t bytes[64];
  size_t at = 0;
  int status;
  assert_int_equal(part->count, seen == 0 ? 12 : SENSORS - 12);
  assert_int_equal(part->position, 1000 + seen);
  assert_int_equal(part->arrival, 5000 + seen);
  while ((status = hk_snapshot_sensor_next(part, &at, &s)) == 1) {
    const struct hk_snapshot_sensor want = sensor_of(seen++, name, bytes);
    same_sensor(&s, &want);
  }
  assert_int_equal(status, 0);
  return seen;
}

static void what_was_written_is_read(void **state)
{
  struct world w;
  (void)state;
  begin(&w);
  assert_int_equal(write_one(&w), 0);
  struct hk_snapshot_reader *reader;
  struct hk_snapshot_part part;
  char why[128] = "";
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
      same_feed(&part);
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
      seen = same_sensors(&part, seen);
    } else if (part.type == HK_PART_END) {
      assert_int_equal(part.arrival, about.latest);
    }
  }
  assert_int_equal(status, 0);
  assert_int_equal(hk_snapshot_next(reader, &part), 0);
  assert_int_equal(seen, SENSORS);
  assert_int_equal(parts, 8);
  hk_snapshot_read_close(reader);
  end(&w);
}

/* Whichever call fails, no incomplete file has a snapshot's name. */
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
    cmocka_unit_test(what_was_written_is_read),
    cmocka_unit_test(a_failing_disk_leaves_nothing_bad),
  };
  return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
