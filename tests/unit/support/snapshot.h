/* A snapshot with sensors, machines and owners, and a disk that fails on demand, for its tests. */
#ifndef HK_TESTS_SNAPSHOT_H
#define HK_TESTS_SNAPSHOT_H

#include "daemon/durable/snapshot_format.h"
#include "daemon/durable/snapshot_read.h"
#include "daemon/durable/snapshot_write.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct trouble {
  uint64_t at, calls; /* fails call number `at`, from 1 */
};

static inline int fault(void *arg, enum hk_disk_call call)
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

static inline void begin(struct world *w)
{
  *w = (struct world){ .path = "/tmp/test-snapshot-XXXXXX" };
  assert_non_null(mkdtemp(w->path));
  w->disk = (struct hk_disk){ fault, &w->trouble };
  assert_int_equal(hk_disk_folder(&w->disk, AT_FDCWD, w->path, &w->folder), 0);
}

static inline void end(struct world *w)
{
  char command[128];
  close(w->folder);
  snprintf(command, sizeof command, "rm -r %s", w->path);
  assert_int_equal(system(command), 0);
}

static const struct hk_snapshot_about about = {
  .shard = 1, .shards = 3, .number = 7, .epoch = 2, .begin = 1000, .order = 5, .made = 99, .together = true, .latest = 77
};

#define SENSORS 23u

static inline struct hk_snapshot_sensor sensor_of(uint32_t i, char *name, uint8_t *state)
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

static inline struct hk_machine_memory machine_of(uint32_t i, struct hk_machine_change *changes,
                                                  struct hk_machine_member *members, uint64_t *rows)
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

static inline int write_machines(struct hk_snapshot_writer *writer)
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

static inline struct hk_snapshot_owner owner_of(uint32_t i)
{
  return (struct hk_snapshot_owner){ 1 + 3 * i, (uint8_t)(200 + i), UINT64_MAX - i };
}

static inline int write_owners(struct hk_snapshot_writer *writer)
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
static inline int write_one(const struct world *w)
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
        status = hk_snapshot_detector(writer, hk_string("fast"), &number); /* known: not reported again */
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
static inline int read_one(const struct world *w, const char *name, uint32_t *sensors, char *why, size_t size)
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

#endif
