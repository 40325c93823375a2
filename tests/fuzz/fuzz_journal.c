/* Fuzz target: a segment of a journal. If the first byte of the input is odd, heads and checksums are corrected first, so that
 * the code after them is reached. What is read of a segment and what is reported as damage together are the whole segment, in
 * order. */
#include "daemon/durable/journal_format.h"
#include "daemon/durable/journal_read.h"
#include "daemon/durable/journal_records.h"
#include "tests/fuzz/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 16 };

struct seen {
  uint64_t bytes, damaged;
  unsigned pieces;
  bool ended;
};

static void mend(uint8_t *bytes, size_t size)
{
  struct hk_segment_head head = { 0 };
  if (size < sizeof head)
    return;
  memcpy(&head, bytes, sizeof head);
  memcpy(head.magic, HK_SEGMENT_MAGIC, sizeof head.magic);
  head.version = HK_JOURNAL_VERSION;
  head.kind = HK_JOURNAL_POINTS;
  head.shard = 0;
  head.shards = 1;
  head.number = 1;
  head.begin %= 1ull << 40;
  head.checksum = hk_segment_checksum(&head);
  memcpy(bytes, &head, sizeof head);
  uint64_t position = head.begin;
  for (size_t at = sizeof head; at + sizeof(struct hk_record_head) <= size;) {
    struct hk_record_head record;
    memcpy(&record, bytes + at, sizeof record);
    record.size %= 4096;
    if (at + hk_record_bytes(record.size) > size)
      record.size = (uint32_t)(size - at - sizeof record) / 8 * 8;
    record.count %= 1024;
    record.position = position;
    position += record.count;
    record.reserved = 0;
    record.type = record.type % 6;
    uint8_t *payload = bytes + at + sizeof record;
    memset(payload + record.size, 0, hk_record_bytes(record.size) - sizeof record - record.size);
    record.checksum = hk_record_checksum(&record, payload, head.salt);
    memcpy(bytes + at, &record, sizeof record);
    at += hk_record_bytes(record.size);
  }
}

static void on_damage(void *arg, const struct hk_journal_damaged *d)
{
  struct seen *seen = arg;
  require(strlen(d->file) > 0 && d->number == 1 && strlen(d->why) > 0);
  require(seen->damaged == 0 || d->bytes == 0 || d->at > 0);
  require(!seen->ended); /* nothing follows a torn end */
  seen->ended = d->tail;
  seen->damaged += d->bytes;
}

/* Reads each byte of a payload. */
static void look(const struct hk_record *r)
{
  struct hk_record_points points;
  struct hk_record_sensor sensor;
  struct hk_record_feed feed;
  uint64_t sum = 0;
  require(r->size <= HK_RECORD_MAX && (uintptr_t)r->payload % 8 == 0);
  for (uint32_t i = 0; i < r->size; i++)
    sum += r->payload[i];
  if (hk_record_points_read(r, &points) == 0) {
    for (uint32_t i = 0; i < points.n; i++)
      sum += points.slot[i] + (uint64_t)points.time[i] + (points.value[i] > 0);
    for (uint32_t i = 0; i < points.n_marks; i++)
      sum += points.marks[i].upto;
  }
  if (hk_record_sensor_read(r, &sensor) == 0)
    for (size_t i = 0; i < sensor.name.length; i++)
      sum += (uint8_t)sensor.name.data[i];
  if (hk_record_feed_read(r, &feed) == 0)
    for (size_t i = 0; i < feed.name.length; i++)
      sum += (uint8_t)feed.name.data[i];
  __asm__ volatile("" : : "r"(sum)); /* so that the compiler does look */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static uint8_t bytes[MOST] __attribute__((aligned(8)));
  static const struct hk_disk disk = { 0 };
  if (size < 2 || size > MOST)
    return 0;
  memcpy(bytes, data + 1, size - 1);
  if (data[0] & 1)
    mend(bytes, size - 1);
  const int folder = fuzz_folder("journal-000000000001.hkj", bytes, size - 1);
  const struct hk_journal_place place = { &disk, folder, "journal", "hkj", HK_JOURNAL_POINTS, 0, 1, 1 << 20, NULL, 0 };
  struct hk_journal_reader *reader;
  struct hk_record record;
  struct seen seen = { 0 };
  char why[256] = "";
  int status = hk_journal_read(&reader, &place, 0, on_damage, &seen, why, sizeof why);
  if (status != 0) {
    require(why[0] != 0);
    return 0;
  }
  uint64_t position = 0;
  while ((status = hk_journal_next(reader, &record)) == 1) {
    require(seen.pieces++ == 0 || record.position >= position);
    position = record.position;
    seen.bytes += hk_record_bytes(record.size);
    look(&record);
  }
  if (status == 0 && seen.bytes > 0)
    require(hk_segment_head_bytes(bytes[8]) + seen.bytes + seen.damaged == size - 1);
  hk_journal_read_close(reader);
  return 0;
}
