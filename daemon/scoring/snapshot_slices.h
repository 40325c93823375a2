/* Saver: takes the snapshots of one shard while scoring goes on.
 *
 *     shard's thread:  one slice after the other: a batch among those of points exports some sensors, and comes back like them;
 *                      the alert memory of these sensors is added then, at the same place in the order
 *     saver's thread:  makes portable states of a slice, writes them; at the end syncs and renames, removes old files
 *
 * A slice omits sensors that have points in chains, since these points are taken but not yet in a batch. These sensors follow at
 * the end, when the shard takes no new chunk until chains are empty. So every point that was taken before a slice's position is
 * in the states of its sensors, and no later point is.
 *
 * The next slice waits for three times the duration of the last one, so that scoring keeps most of the device; it waits less if
 * the whole would take longer than half the time between two snapshots. A due slice gets the next place among the batches in
 * flight, however many points wait: otherwise a flooded daemon would never finish a snapshot, and keep its journal for ever. The
 * disk delays no scoring: there are two slices, and when both wait for the disk the snapshot waits.
 *
 * A failure (no memory, the disk, the device) abandons the current snapshot and is logged; the next one is tried when it is due.
 * The last two good ones are kept.
 *
 * Thread: the shard's, unless stated otherwise. */
#ifndef HK_SNAPSHOT_SLICES_H
#define HK_SNAPSHOT_SLICES_H

#include "daemon/scoring/delivery.h"

struct hk_saver;

/* To call every turn. */
void hk_saver_turn(struct hk_saver *saver);
/* An export is back, and everything that came back before it was published. */
void hk_saver_back(struct hk_saver *saver, struct hk_delivery *delivery);
/* An export will not come back, or was refused. why: in words. */
void hk_saver_dropped(struct hk_saver *saver, struct hk_delivery *delivery, const char *why);
/* Whether an export is due, and waits for a place among the batches in flight: a place is to be left for it. */
bool hk_saver_due(const struct hk_saver *saver);
/* Whether an export waits for the device to be idle: nothing may be submitted before it. */
bool hk_saver_stuck(const struct hk_saver *saver);
/* Whether the shard may take no new chunk now. */
bool hk_saver_pauses(const struct hk_saver *saver);

/* For any thread. Requests a snapshot that begins after this call, regardless of when the next is due, and as fast as possible if
 * `hurry`. Returns its number for hk_saver_finished, which says whether it, or a later one, has ended, well or not. */
uint64_t hk_saver_ask(struct hk_saver *saver, bool hurry);
bool hk_saver_finished(struct hk_saver *saver, uint64_t asked);

#endif
