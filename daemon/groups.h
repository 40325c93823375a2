/* Groups of a shard: the sensors of each machine (cpu/group.h), and the series that say whether they changed together.
 *
 *     derive: a member's point -> hk_groups_put -> rows -> a point of the machine's series for each score -> stage -> device
 *     reap:   hk_groups_mark: the scores of these points are their values, and changes are events of the series
 *
 * A sensor whose name matches the capture of a [group NAME] is looked at once, at its first point. Its machine's series is a
 * derived sensor, NAME#CAPTURE, on the same shard, which is there for its slot, order, sequence numbers and alerts; its detector
 * computes nothing, and the device has no part in the score. With no group in the configuration a point costs nothing.
 *
 * Nothing of it is kept over a restart: machines warm up again, and what is replayed of a journal is not looked at. The alert
 * that stood is cleared at the first score, and the numbers of alerts go on.
 *
 * Failure: where there is no memory or room for a machine or one more member, that sensor is of no machine, and the log says so.
 * Thread: the shard's, but for what says otherwise. */
#ifndef HK_GROUPS_H
#define HK_GROUPS_H

#include "daemon/chunk.h"
#include "daemon/log.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Points of a series that one point of a member makes, at most. */
#define HK_GROUPS_OF_ONE 65 /* HK_GROUP_WAIT_MAX + 1 */

struct hk_shard;
struct hk_groups;
struct hk_parcel;

/* What there is. Any thread may read. */
struct hk_groups_count {
  atomic_uint machines, members; /* members: of them all */
};

/* NULL and 0 where the configuration has no group. 0 or a negative errno. */
int hk_groups_new(struct hk_groups **out, struct hk_shard *shard, uint32_t slots);
void hk_groups_free(struct hk_groups *groups); /* NULL is fine */
const struct hk_groups_count *hk_groups_count(const struct hk_groups *groups);

/* Takes point i of a chunk; the points that are made of it are written to `to` from place `at` on, where there is room for
 * HK_GROUPS_OF_ONE. Returns the place behind them. */
uint32_t hk_groups_put(struct hk_groups *groups, const struct hk_chunk *from, uint32_t i, struct hk_chunk *to, uint32_t at);

/* A batch of points came back: fills in what it says of series. Before anything else looks at it. */
void hk_groups_mark(struct hk_groups *groups, struct hk_parcel *parcel);

/* A sensor is on its way out. True and *series: its machine has no other member, and the series (a slot of the registry) is to
 * go, too. */
bool hk_groups_leaving(struct hk_groups *groups, uint32_t slot, uint32_t *series);
/* It is gone, or a series is; slot: within the shard. */
void hk_groups_forget(struct hk_groups *groups, uint32_t slot);

#endif
