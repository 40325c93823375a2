/* Snapshot: the sensors of one shard in a file: names, states, memory of alerts; its machines; and the positions of its feeds.
 *
 *   hk_snapshot_create -> (detector, feed, sensors, ...)... -> hk_snapshot_finish      a file under another name, synced and
 * renamed last hk_snapshot_open -> hk_snapshot_next... until 0                                  the whole file is good only then
 *
 * Sensors come in sections, each copied at one moment between two points; the position says which. The position at which the
 * snapshot was begun is at most that of any of them: a journal that is read from there on has all that is missing, and points
 * below their sensor's position are in its state already.
 *
 * Epoch: counts how often the number of shards has changed. Slots are spread over shards by that number, so only snapshots of one
 * epoch belong together. The newest epoch of which every shard has a good snapshot counts. Where there is none, snapshots of some
 * shards count, the newest epoch's: of the other shards the journal may have everything. But not those that are to take the place
 * of another epoch, or of journals of another number of shards: until every shard has one (`together`) these are the whole ones.
 *
 * Errors: 0 or a negative errno; -EBADMSG: damaged, -EPROTONOSUPPORT: of another version; both with words. Thread: one at a time.
 */
#ifndef HK_SNAPSHOT_H
#define HK_SNAPSHOT_H

#include "cpu/rules/rate.h"
#include "daemon/base/disk.h"
#include "daemon/durable/journal_records.h"
#include "daemon/sensors/alert_memory.h"
#include "daemon/sensors/group_memory.h"
#include "proto/wire/message.h"

#define HK_SNAPSHOT_STEM "snapshot"
#define HK_SNAPSHOT_SUFFIX "hks"
#define HK_SNAPSHOT_UNFINISHED "tmp"

/* Whose a snapshot is. */
struct hk_snapshot_about {
  uint32_t shard, shards;
  uint64_t number; /* as in its name */
  uint64_t epoch;
  uint64_t begin; /* position */
  uint64_t order; /* of the last change of a sensor at its start; see journal_records.h */
  int64_t made;   /* ns since the epoch */
  bool together;  /* counts only where every shard of its epoch has a good one */
};

struct hk_snapshot_sensor {
  uint32_t slot; /* the registry's */
  uint8_t generation;
  uint16_t detector; /* the file's: a number that hk_snapshot_detector has given, or a DETECTOR section has */
  struct hk_string name;
  struct hk_alerts_memory alerts;
  const void *state; /* of cpu/rules/state.h */
  uint32_t state_size;
};

/* --- writing --------------------------------------------------------------------------------------------------------- */

struct hk_snapshot_writer;

/* folder: stays open. */
int hk_snapshot_create(struct hk_snapshot_writer **out, const struct hk_disk *disk, int folder,
                       const struct hk_snapshot_about *about);
/* The file's number of a detector's name, which is written when it is new. */
int hk_snapshot_detector(struct hk_snapshot_writer *writer, struct hk_string name, uint16_t *number);
/* The number of a feed's points, from its beginning, that the shard had taken at the start of the snapshot. */
int hk_snapshot_feed(struct hk_snapshot_writer *writer, const struct hk_record_feed *feed, uint64_t upto);
/* Sections: begun, filled with what is of its type (enum hk_snapshot_part_type), and written by hk_snapshot_end, unless nothing
 * was added. SENSORS were copied at a position, and at this time of the arrival clock; MACHINES are as they were at that of the
 * section before; of the others both are 0. */
void hk_snapshot_begin(struct hk_snapshot_writer *writer, uint32_t type, uint64_t position, int64_t arrival);
int hk_snapshot_add(struct hk_snapshot_writer *writer, const struct hk_snapshot_sensor *sensor);
int hk_snapshot_end(struct hk_snapshot_writer *writer);
/* OWNERS: of those sensors of the section before it that count for one. */
struct hk_snapshot_owner {
  uint32_t slot;
  uint8_t generation;
  uint64_t owner; /* of sensors/owners.h; not 0 */
};
int hk_snapshot_add_owner(struct hk_snapshot_writer *writer, const struct hk_snapshot_owner *owner);
/* COUNTERS: of those whose rates are made, how far that was at its position. */
struct hk_snapshot_counter {
  uint32_t slot;
  uint8_t generation;
  struct hk_rate rate; /* known */
};
int hk_snapshot_add_counter(struct hk_snapshot_writer *writer, const struct hk_snapshot_counter *counter);
/* MACHINES: those whose series are in the section of sensors before it. generation: of the series. What the memory points to has
 * a multiple of 8 bytes. */
int hk_snapshot_add_machine(struct hk_snapshot_writer *writer, const struct hk_machine_memory *machine, uint8_t generation);
/* Whole on the disk, and under its own name. Then, or after an error: close. */
int hk_snapshot_finish(struct hk_snapshot_writer *writer);
/* What was not finished is removed. NULL is allowed. */
void hk_snapshot_close(struct hk_snapshot_writer *writer);
uint64_t hk_snapshot_bytes(const struct hk_snapshot_writer *writer);

/* --- reading --------------------------------------------------------------------------------------------------------- */

enum hk_snapshot_part_type {
  HK_PART_DETECTOR = 1,
  HK_PART_FEED = 2,
  HK_PART_SENSORS = 3,
  HK_PART_END = 4,
  HK_PART_MACHINES = 5,
  HK_PART_OWNERS = 6,
  HK_PART_COUNTERS = 7,
};

/* A section; valid until the next call. */
struct hk_snapshot_part {
  uint32_t type, count; /* type: enum hk_snapshot_part_type */
  uint64_t at;          /* where it begins in the file */
  uint64_t position;
  int64_t arrival;
  uint64_t size;
  const uint8_t *payload; /* 8-byte aligned */
};

struct hk_snapshot_reader;

/* why: the error of this call and of hk_snapshot_next; at least 128 bytes, valid until close. */
int hk_snapshot_open(struct hk_snapshot_reader **out, const struct hk_disk *disk, int folder, const char *name, char *why,
                     size_t size);
const struct hk_snapshot_about *hk_snapshot_of(const struct hk_snapshot_reader *reader);
/* The next section, whose checksum is good: 1; 0 at the end of a file that is good as a whole; or a negative errno. */
int hk_snapshot_next(struct hk_snapshot_reader *reader, struct hk_snapshot_part *out);
void hk_snapshot_read_close(struct hk_snapshot_reader *reader); /* NULL is allowed */

/* What sections hold; pointers are into them. 0 or -EBADMSG: the checksum is good, the layout is not. */
int hk_snapshot_detector_read(const struct hk_snapshot_part *part, uint16_t *number, struct hk_string *name);
int hk_snapshot_feed_read(const struct hk_snapshot_part *part, struct hk_record_feed *feed, uint64_t *upto);
/* The sensor, machine, owner, or counter, at *at, 0 at first; *at moves on. 1, 0 at the end, or -EBADMSG. */
int hk_snapshot_sensor_next(const struct hk_snapshot_part *part, size_t *at, struct hk_snapshot_sensor *out);
int hk_snapshot_machine_next(const struct hk_snapshot_part *part, size_t *at, struct hk_machine_memory *out, uint8_t *generation);
int hk_snapshot_owner_next(const struct hk_snapshot_part *part, size_t *at, struct hk_snapshot_owner *out);
int hk_snapshot_counter_next(const struct hk_snapshot_part *part, size_t *at, struct hk_snapshot_counter *out);

#endif
