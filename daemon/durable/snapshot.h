/* Snapshot: the sensors of one shard in a file: names, states, alert memory; its machines; and the positions of its feeds.
 *
 *   hk_snapshot_create -> (detector, feed, sensors, ...)... -> hk_snapshot_finish
 *   hk_snapshot_open -> hk_snapshot_next... until 0
 *
 * A file is written under another name, synced, and renamed last. A reader knows that the whole file is valid only at its end.
 *
 * Sensors come in sections, each copied at one moment between two points, given by the section's position. The position at which
 * the snapshot was begun is at most that of any section: a journal that is read from there on has everything that is missing, and
 * points below their sensor's position are in its state already.
 *
 * Epoch: counts changes of the number of shards. That number distributes slots over shards, so only snapshots of one epoch belong
 * together. The newest epoch of which every shard has a good snapshot counts. If there is none, snapshots of some shards count,
 * those of the newest epoch: the journals may have everything of the other shards. But snapshots that are to replace those of
 * another epoch, or journals of another number of shards, count only once every shard has one (`together`).
 *
 * Errors: 0 or a negative errno; -EBADMSG: damaged, -EPROTONOSUPPORT: of another version; both with a text. Thread: one at a
 * time.
 */
#ifndef HK_SNAPSHOT_H
#define HK_SNAPSHOT_H

#include "cpu/provisional/provisional.h"
#include "cpu/rules/rate.h"
#include "daemon/base/disk.h"
#include "daemon/durable/journal_records.h"
#include "daemon/sensors/alert_memory.h"
#include "daemon/sensors/group_memory.h"
#include "proto/wire/message.h"

#define HK_SNAPSHOT_STEM "snapshot"
#define HK_SNAPSHOT_SUFFIX "hks"
#define HK_SNAPSHOT_UNFINISHED "tmp"

/* Description of a snapshot. */
struct hk_snapshot_about {
  uint32_t shard, shards;
  uint64_t number; /* as in its name */
  uint64_t epoch;
  uint64_t begin; /* position */
  uint64_t order; /* of the last change of a sensor when it was begun; see journal_records.h */
  int64_t made;   /* ns since the epoch */
  bool together;  /* counts only if every shard of its epoch has a good one */
  int64_t latest; /* how far its data were when it was begun, as of scoring/reach.h; a reader has it with END alone */
};

struct hk_snapshot_sensor {
  uint32_t slot; /* the registry's */
  uint8_t generation;
  uint16_t detector; /* number within the file, from hk_snapshot_detector or a DETECTOR section */
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
  HK_PART_PROVISIONAL = 8,
};

/* END: `arrival` of the section is `latest`; 0 in files of before. */

/* OWNERS: an owner of a sensor of the section before, if that counts for one. */
struct hk_snapshot_owner {
  uint32_t slot;
  uint8_t generation;
  uint64_t owner; /* of sensors/owners.h; not 0 */
};

/* COUNTERS: the rate of a sensor of the section before, if it has one, at that section's position. */
struct hk_snapshot_counter {
  uint32_t slot;
  uint8_t generation;
  struct hk_rate rate; /* known */
};

/* PROVISIONAL: what provisional/provisional.h saves of a sensor of the section before, if anything, at that section's position.
 */
struct hk_snapshot_provisional {
  uint32_t slot;
  uint8_t generation;
  const void *saved;
  uint32_t size; /* 1..HK_PROVISIONAL_SAVED */
};

#endif
