/* A snapshot from arbitrary bytes: unchanged, and once more with all its checksums corrected, because hardly any input passes
 * them. It is read to its end or refused with a reason, and so is each state in it. An accepted state is written again with the
 * same bytes; so are the rows of a machine, which continues. */
#include "cpu/group/group.h"
#include "cpu/group/state.h"
#include "cpu/rules/state.h"
#include "daemon/durable/snapshot_format.h"
#include "daemon/durable/snapshot_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A state that a sensor of the detector takes comes out as one that goes in and comes out as it is: of the first one what there
 * is no room for was left out. Graphs and shifts are read by their backends. */
static void try_state(const struct hk_snapshot_sensor *s, const struct hk_detector *d)
{
  static float ring[HK_SPAN_MAX], feedback[HK_WINDOW_MAX];
  struct hk_window window;
  struct hk_alert alert;
  if (hk_state_read(s->state, s->state_size, d, &window, &alert, ring, feedback) != 0)
    return;
  struct hk_state_about about;
  const size_t size = hk_state_size(d, window.count); /* more than there was, if that is of an older version */
  uint8_t *again = malloc(size), *twice = malloc(size);
  if (!again || !twice)
    abort();
  hk_state_write(again, d, &window, &alert, ring, feedback);
  if (hk_state_look(again, size, &about) != 0 || about.count != window.count || about.window != d->window ||
      hk_state_read(again, size, d, &window, &alert, ring, feedback) != 0)
    abort();
  hk_state_write(twice, d, &window, &alert, ring, feedback);
  if (memcmp(again, twice, size) != 0 || hk_state_renumber(again, size, 77) != 0 ||
      hk_state_read(again, size, d, &window, &alert, ring, feedback) != 0 || alert.number != 77)
    abort();
  free(again);
  free(twice);
}

static void try_sensors(const struct hk_snapshot_part *part)
{
  struct hk_snapshot_sensor s;
  struct hk_state_about about;
  size_t at = 0;
  char error[256];
  while (hk_snapshot_sensor_next(part, &at, &s) == 1) {
    if (s.name.length == 0 || s.name.length > 512 || at > part->size)
      abort();
    if (hk_state_look(s.state, s.state_size, &about) != 0)
      continue;
    char text[96];
    struct hk_detector d;
    snprintf(text, sizeof text, "window=%u,gap=%u", about.window, about.gap);
    if (hk_detector_parse(text, &d, error, sizeof error) == 0)
      try_state(&s, &d);
  }
}

/* Rows that are taken come out as they went in, and take points. */
static void try_rows(const struct hk_machine_memory *m)
{
  struct hk_group *g;
  struct hk_group_tick tick;
  if (hk_group_read(&g, NULL, m->rows, m->rows_size) != 0)
    return;
  uint8_t *again = malloc(m->rows_size);
  if (!again || hk_group_state_size(g) != m->rows_size)
    abort();
  hk_group_write(g, again);
  if (memcmp(again, m->rows, m->rows_size) != 0)
    abort();
  free(again);
  for (uint32_t i = 0; i < 2 * HK_GROUP_MEMBERS_MAX; i++) {
    const uint32_t member = i / 2;
    if (!hk_group_has(g, member))
      continue;
    hk_group_put(g, member, i % 2 ? INT64_MAX - 7 : (int64_t)i, i);
    for (uint32_t n = 0; hk_group_next(g, &tick); n++)
      if (n > HK_GROUP_WAIT_MAX)
        abort();
  }
  hk_group_free(g);
}

static void try_machines(const struct hk_snapshot_part *part)
{
  struct hk_machine_memory m;
  uint8_t generation;
  uint64_t sum = 0;
  size_t at = 0;
  while (hk_snapshot_machine_next(part, &at, &m, &generation) == 1) {
    if (at > part->size || (uintptr_t)m.rows % 8 != 0)
      abort();
    for (uint32_t i = 0; i < m.n_members; i++)
      sum += m.members[i].handle;
    for (uint32_t i = 0; i < m.n_changes; i++)
      sum += m.changes[i].unit == 0;
    try_rows(&m);
  }
  __asm__ volatile("" : : "r"(sum)); /* it was read */
}

static void try_owners(const struct hk_snapshot_part *part)
{
  struct hk_snapshot_owner o;
  size_t at = 0;
  while (hk_snapshot_owner_next(part, &at, &o) == 1)
    if (o.owner == 0)
      abort();
}

static void try_counters(const struct hk_snapshot_part *part)
{
  struct hk_snapshot_counter c;
  size_t at = 0;
  while (hk_snapshot_counter_next(part, &at, &c) == 1)
    for (int i = 0; i < 80; i++)
      (void)hk_rate_next(&c.rate, HK_RATE_AUTO, c.rate.time + (c.rate.time < INT64_MAX), c.rate.value * (1 + i % 3));
}

/* As hk_provisional_restore reads it, which the small window's scorer is not linked for. */
static void try_provisional(const struct hk_snapshot_part *part)
{
  struct hk_detector d;
  char error[128];
  struct hk_window window;
  struct hk_alert alert;
  float ring[HK_PROVISIONAL_FIRST], feedback[HK_PROVISIONAL_WINDOW];
  struct hk_snapshot_provisional p;
  size_t at = 0;
  if (hk_detector_parse("window=12", &d, error, sizeof error) != 0)
    abort();
  while (hk_snapshot_provisional_next(part, &at, &p) == 1)
    if (p.size > 8 && hk_state_read((const uint8_t *)p.saved + 8, p.size - 8, &d, &window, &alert, ring, feedback) == 0 &&
        window.count > HK_PROVISIONAL_FIRST)
      abort();
}

static void read_all(int file)
{
  const struct hk_disk disk = { 0 };
  struct hk_snapshot_reader *reader;
  struct hk_snapshot_part part;
  struct hk_string name;
  char path[64], why[128] = "";
  uint16_t detector;
  struct hk_record_feed feed;
  uint64_t upto;
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  int status = hk_snapshot_open(&reader, &disk, -1, path, why, sizeof why);
  if (status != 0) {
    if (!why[0])
      abort();
    return;
  }
  while ((status = hk_snapshot_next(reader, &part)) == 1) {
    if ((uintptr_t)part.payload % 8 != 0)
      abort();
    if (part.type == HK_PART_SENSORS)
      try_sensors(&part);
    else if (part.type == HK_PART_MACHINES)
      try_machines(&part);
    else if (part.type == HK_PART_OWNERS)
      try_owners(&part);
    else if (part.type == HK_PART_COUNTERS)
      try_counters(&part);
    else if (part.type == HK_PART_PROVISIONAL)
      try_provisional(&part);
    else if (part.type == HK_PART_DETECTOR)
      (void)hk_snapshot_detector_read(&part, &detector, &name);
    else if (part.type == HK_PART_FEED)
      (void)hk_snapshot_feed_read(&part, &feed, &upto);
  }
  if (status != 0 && !why[0])
    abort();
  hk_snapshot_read_close(reader);
}

/* Makes every checksum that can be found right, those of states too. */
static void mend(uint8_t *data, size_t size)
{
  struct hk_snapshot_head head;
  struct hk_part_head part;
  uint64_t chain = 0, parts = 0, sensors = 0;
  memcpy(&head, data, sizeof head);
  head.checksum = hk_snapshot_checksum(&head);
  memcpy(data, &head, sizeof head);
  for (size_t at = sizeof head; size - at >= sizeof part; at += sizeof part + part.size) {
    memcpy(&part, data + at, sizeof part);
    uint8_t *payload = data + at + sizeof part;
    if (part.size > size - at - sizeof part)
      return;
    if (part.type == HK_PART_END && part.size == sizeof(struct hk_file_end)) {
      const struct hk_file_end end = { parts, sensors, at, chain };
      memcpy(payload, &end, sizeof end);
    }
    part.checksum = hk_part_checksum(&part, payload, head.salt);
    memcpy(data + at, &part, sizeof part);
    chain = hk_part_chain(chain, part.checksum);
    parts++;
    sensors += part.type == HK_PART_SENSORS ? part.count : 0;
  }
}

static void put(int file, const uint8_t *data, size_t size)
{
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size)
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  const int file = memfd_create("snapshot", MFD_CLOEXEC);
  uint8_t *copy = malloc(size + 1);
  if (file < 0 || !copy)
    abort();
  put(file, data, size);
  read_all(file);
  if (size >= sizeof(struct hk_snapshot_head)) {
    memcpy(copy, data, size);
    mend(copy, size);
    put(file, copy, size);
    read_all(file);
  }
  free(copy);
  close(file);
  return 0;
}
