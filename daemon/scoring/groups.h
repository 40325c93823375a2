/* Groups of a shard: the sensors of each machine (cpu/group/group.h), and the series that say whether they changed together.
 *
 *     next chunk: hk_groups_look: its sensors are found or made members of machines, whose series are made -> journal
 *     derive:     a member's point -> hk_groups_put -> rows -> a point of the machine's series for each score -> stage -> device
 *     reap:       hk_groups_mark: the scores of these points are their values, and changes are events of the series
 *
 * A machine's series is a derived sensor, NAME#CAPTURE, on the same shard. It provides the slot, order, sequence numbers and
 * alerts; its detector computes nothing, and the device has no part in the score. Without groups in the configuration a point
 * costs nothing.
 *
 * Members' points reach a machine in the order of its shard's journal: the order in which the shard's one thread takes the chunks
 * of all loops, and of points in a chunk. All members are on the machine's shard. A series is registered before the first chunk
 * with a point for its machine, and members leave between two chunks, where the journal records that they are retired. So the
 * journal determines everything: a restart that replays it (group_restore.c) makes the same rows, scores, events and numbers,
 * wherever chunks were cut and however many loops there are. A snapshot has each machine as it was at one position, by which it
 * had all its members; the journal's points from there on go into it.
 *
 * A reload may bring other groups. Machines of a group with unchanged keys stay as they are; those of a changed or removed group
 * are evicted with their series; a sensor that belongs to another machine now leaves its old one, and joins the new one with its
 * next point. The sensor's own window is not touched.
 *
 * Failure: without memory or room for a machine or another member, or if the machine is on another shard (the sensors existed
 * before the group was added, or the number of devices was different), that sensor is in no machine, which is logged.
 *
 * Thread: the shard's; during replay of a journal also the replaying one, as functions say: for that time there is a lock. */
#ifndef HK_GROUPS_H
#define HK_GROUPS_H

#include "daemon/intake/chunk.h"
#include "daemon/intake/decode_points.h"
#include "daemon/sensors/group_memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Maximum number of points of a series that one point of a member makes. */
#define HK_GROUPS_OF_ONE 65 /* HK_GROUP_WAIT_MAX + 1 */

struct hk_buffer;
struct hk_shard;
struct hk_groups;
struct hk_delivery;
struct hk_sections;

/* Numbers of machines and members, and of what models of fields do. Any thread may read. */
struct hk_groups_count {
  atomic_uint machines, members; /* members: of these machines */
  atomic_uint lines, running;    /* of models; running: those that compute */
  atomic_uint checks, poor;      /* checks with a known share of explained variance; poor: those below a half */
  atomic_ullong explained;       /* sum of these shares, each at least 0, in millionths */
};

/* Which machines: of groups; of second groups, the novelty of groups with statistic = both, whose sensors are in two machines; or
 * fields (field_rows.h). Each kind is an hk_groups of its own, and all else is the same. */
enum hk_groups_kind { HK_GROUPS_FIRST, HK_GROUPS_SECOND, HK_GROUPS_FIELDS };

/* Makes the groups of the configuration that the shard is started with. Returns 0 or a negative errno. */
int hk_groups_new(struct hk_groups **out, struct hk_shard *shard, uint32_t slots, enum hk_groups_kind kind);
/* The machines of a series with this detector. */
struct hk_config_detector;
struct hk_groups *hk_groups_with(const struct hk_shard *shard, const struct hk_config_detector *detector);
void hk_groups_free(struct hk_groups *groups); /* NULL is allowed */
const struct hk_groups_count *hk_groups_count(const struct hk_groups *groups);
/* Lists at most `most` handles of the members of the machine whose series has this slot of the shard. Returns the number of
 * members; 0 also if it is no machine's. */
uint32_t hk_groups_members(const struct hk_groups *groups, uint32_t within, uint32_t *handles, uint32_t most);
/* Whether the configuration has a group, or there are machines. */
bool hk_groups_any(const struct hk_groups *groups);

/* The next chunk is about to be journaled: releases members that have left, and finds the machines of the chunk's sensors. */
void hk_groups_look(struct hk_groups *groups, const struct hk_chunk *chunk);

/* A sensor is about to be evicted. True and *series: its machine has no other member, and the series (a slot of the registry) is
 * to be evicted, too. */
bool hk_groups_leaving(struct hk_groups *groups, uint32_t slot, uint32_t *series);
/* A slot of the shard is retired. If it is a machine's series, no points are made for it from the next chunk on: later points
 * could be taken for those of the slot's next sensor. */
void hk_groups_ending(struct hk_groups *groups, uint32_t slot);
/* The sensor, or series, of a slot is gone; slot: within the shard. */
void hk_groups_forget(struct hk_groups *groups, uint32_t slot);

/* A reload, between two chunks. hk_groups_prepare: these sections will be in force; machines without a section are no longer
 * made. hk_groups_adopt: they are in force; the series of other detectors were evicted. Returns 0 or -ENOMEM. hk_groups_review: a
 * sensor leaves its machine if it belongs to another one now. True and *series: as hk_groups_leaving. */
void hk_groups_prepare(struct hk_groups *groups, struct hk_sections *sections);
int hk_groups_adopt(struct hk_groups *groups);
bool hk_groups_review(struct hk_groups *groups, uint32_t slot, uint32_t *series);

/* --- snapshots and replay: group_restore.c ---------------------------------------------------------------------------- */

/* Where a saved machine's parts begin in its buffer. */
struct hk_groups_saved {
  uint32_t n_members, rows_size;
  bool told;
  size_t members, rows, changes; /* offsets */
};

/* A point of the journal. */
struct hk_groups_replayed {
  uint32_t slot;   /* the registry's */
  uint32_t shards; /* number of shards then: the point went into its machine if that was on its shard */
  uint64_t position;
  int64_t time;
  double value;
};

#endif
