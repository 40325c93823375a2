/* Saver: takes the snapshots of one shard while scoring goes on.
 *
 *     shard's thread:  a slice after the other: some sensors are exported by a batch among those of points, which comes back like
 *                      them; what the daemon remembers of their alerts is put to it then, at the same place in the order
 *     saver's thread:  makes portable states of a slice, writes them; at the end syncs and renames, removes old files
 *
 * A slice leaves out sensors that have points in chains, for these are taken and not yet in a batch; they get their turn at the
 * end, when the shard takes no new chunk until chains are empty. So every point that was taken before a slice's position is in
 * the states of its sensors, and none that comes later.
 *
 * The next slice waits for three times as long as the last one took, so scoring keeps most of the device; where the whole would
 * take longer than half the time between two snapshots it waits less. One that is due gets the next place among the batches in
 * flight, however many points wait: else a daemon that is flooded would not get to its snapshots, and keep its journal for ever.
 * What the disk does delays nobody: there are two slices, and when both wait for it the snapshot waits.
 *
 * What goes wrong (no memory, the disk, the device) gives this snapshot up, is told, and the next one is tried when it is due.
 * The last two good ones are kept.
 *
 * Thread: the shard's, unless stated otherwise. */
#ifndef HK_SAVER_H
#define HK_SAVER_H

#include "daemon/scoring/delivery.h"

struct hk_saver;

/* Every turn. */
void hk_saver_turn(struct hk_saver *saver);
/* An export is back, and all that came back before it was published. */
void hk_saver_back(struct hk_saver *saver, struct hk_delivery *delivery);
/* It will not come back, or was refused. why: in words. */
void hk_saver_dropped(struct hk_saver *saver, struct hk_delivery *delivery, const char *why);
/* Whether one is due, and waits for a place among the batches in flight: one is to be left for it. */
bool hk_saver_due(const struct hk_saver *saver);
/* Whether one waits for the device to be idle: nothing is to be submitted before it. */
bool hk_saver_stuck(const struct hk_saver *saver);
/* Whether the shard is to take no new chunk now. */
bool hk_saver_pauses(const struct hk_saver *saver);

/* For any thread. Asks for a snapshot that begins after this call, whenever the next would be due, and as fast as can be if
 * `hurry`. Returns its number for hk_saver_finished, which says whether it, or a later one, has ended, well or not. */
uint64_t hk_saver_ask(struct hk_saver *saver, bool hurry);
bool hk_saver_finished(struct hk_saver *saver, uint64_t asked);

#endif
