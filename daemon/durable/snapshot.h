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

enum hk_snapshot_part_type {
  HK_PART_DETECTOR = 1,
  HK_PART_FEED = 2,
  HK_PART_SENSORS = 3,
  HK_PART_END = 4,
  HK_PART_MACHINES = 5,
  HK_PART_OWNERS = 6,
  HK_PART_COUNTERS = 7,
};

/* OWNERS: of those sensors of the section before it that count for one. */
struct hk_snapshot_owner {
  uint32_t slot;
  uint8_t generation;
  uint64_t owner; /* of sensors/owners.h; not 0 */
};

/* COUNTERS: of those whose rates are made, how far that was at its position. */
struct hk_snapshot_counter {
  uint32_t slot;
  uint8_t generation;
  struct hk_rate rate; /* known */
};

#endif
