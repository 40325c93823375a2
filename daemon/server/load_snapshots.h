/* Restores sensors from snapshots at the start.
 *
 * The newest good snapshot of each former shard is used: a file is read and checked completely before any of it is used. A
 * damaged one is logged by name, and the one before it is used. A snapshot of an unknown version ends the start: the operator
 * must decide about the state.
 *
 * Sensors get their slots, handles, windows, alerts and sequences again, whatever the backend and the number of devices. If a
 * sensor's detector is gone, or has changed keys that determine its state (hk_state_read), the sensor starts over: its standing
 * alert is cleared, and the numbers of its alerts and events continue. Their number is logged.
 *
 * Thread: main; loops and shards do not run yet. */
#ifndef HK_LOAD_SNAPSHOTS_H
#define HK_LOAD_SNAPSHOTS_H

#include "daemon/server/replay_journals.h"

struct hk_restoration {
  struct hk_durable *durable;
  struct hk_registry *registry;
  struct hk_shard *shard; /* the present shards */
  uint32_t max_sensors;

  struct hk_restored restored;        /* out: from where the journals are read; skip is freed with free */
  uint64_t epoch;                     /* out: of the next snapshots */
  bool same[HK_SHARDS_MAX];           /* out: the shard continues from a snapshot of that epoch */
  bool renews;                        /* out: the restored state has another epoch */
  uint64_t position[HK_SHARDS_MAX];   /* out: for each former shard, the highest position of a sensor */
  uint64_t sensors, anew, gone, full; /* out: restored; of these, starting over; not restored: no detector matches, no room */
  uint64_t machines, machines_anew;   /* out: likewise, for groups */
};

/* Restores all sensors. Returns 0, or a negative errno with a message. */
int hk_snapshot_restore(struct hk_restoration *restoration, char *error, size_t size);

#endif
