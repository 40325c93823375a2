/* Machines in snapshots and in replay. */
#ifndef HK_GROUP_RESTORE_H
#define HK_GROUP_RESTORE_H

#include "daemon/scoring/groups.h"

/* Appends a machine's members and rows, as they are between two chunks, to a buffer; their places in *out are offsets in it.
 * False: no memory, or the slot is no machine's. slot: of its series, within the shard. */
bool hk_groups_save(struct hk_groups *groups, uint32_t slot, struct hk_buffer *buffer, struct hk_groups_saved *out);
/* All points made until hk_groups_save have finished: saves what was published of them. No other hk_groups_save is called in
 * between. */
bool hk_groups_save_told(struct hk_groups *groups, uint32_t slot, struct hk_buffer *buffer, struct hk_groups_saved *out,
                         struct hk_machine_memory *told);
/* Restores a snapshot's machine, whose series has been restored; it takes points from this position on. Returns 0; -EINVAL: it
 * starts over, because its group has other rows now; or another negative errno. Thread: main, before others run. */
int hk_groups_restore(struct hk_groups *groups, const struct hk_machine_memory *memory, uint64_t position);
/* During replay of the journal, on the replaying thread, for the shard that the slot is on now. hk_groups_replay: as
 * hk_groups_put, but slots are the registry's. hk_groups_registered: a series of any shard was registered. hk_groups_retired: a
 * sensor is about to be retired in the registry. */
uint32_t hk_groups_replay(struct hk_groups *groups, const struct hk_groups_replayed *point, const struct hk_columns *to,
                          uint32_t at);
/* Whether the point goes into a machine, and as which member. Under the lock of replay. */
struct hk_machine;
bool hk_groups_takes(struct hk_groups *groups, const struct hk_groups_replayed *point, struct hk_machine **machine,
                     uint32_t *member);
void hk_groups_registered(struct hk_groups *groups);
void hk_groups_retired(struct hk_groups *groups, uint32_t within);
/* After replay: members that are on another shard, or no longer members, leave, and series without members are retired. */
void hk_groups_go_on(struct hk_groups *groups);

#endif
