/* Restore: at the start, snapshots become sensors again.
 *
 * Of each shard that there was the newest good snapshot is taken: a file is read whole and checked before anything of it is used.
 * One that is damaged is told by name and the one before it is taken. One of another version ends the start: whoever goes back to
 * an older hankeld, or forward over too many, is to say what becomes of his state.
 *
 * Sensors get their slots, handles, windows, alerts and sequences again, whatever backend there is now and however many devices.
 * Where the detector of a sensor is gone, or has other keys that say what is kept of a sensor (hk_state_read), the sensor starts
 * anew: its alert that stood is cleared, the numbers of its alerts and events go on. How many is told.
 *
 * Thread: main; loops and shards do not run yet. */
#ifndef HK_SNAPSHOT_RESTORE_H
#define HK_SNAPSHOT_RESTORE_H

#include "daemon/server/replay_journals.h"

struct hk_restoration {
  struct hk_durable *durable;
  struct hk_registry *registry;
  struct hk_shard *shard; /* as many as there are now */
  uint32_t max_sensors;

  struct hk_restored restored;        /* out: what the journals are read on from; skip is freed with free */
  uint64_t epoch;                     /* out: of the snapshots that are to be taken */
  bool same[HK_SHARDS_MAX];           /* out: the shard goes on from a snapshot of that epoch */
  bool renews;                        /* out: what was restored is of another epoch than that */
  uint64_t position[HK_SHARDS_MAX];   /* out: of each shard that there was, the highest position of a sensor */
  uint64_t sensors, anew, gone, full; /* out: restored; of them, that start over; not restored: no detector matches, no room */
  uint64_t machines, machines_anew;   /* out: likewise, of groups */
};

/* Restores what there is. 0, or a negative errno with a message. */
int hk_snapshot_restore(struct hk_restoration *restoration, char *error, size_t size);

#endif
