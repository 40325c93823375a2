/* The condition of the disk, and of durability when the disk fails. */
#ifndef HK_DISK_HEALTH_H
#define HK_DISK_HEALTH_H

#include "daemon/durable/durable.h"

/* Checks whether a commit takes too long. To call every second. */
void hk_durable_watch(struct hk_durable *durable);
/* The journals cannot continue, for a reason other than the disk. */
void hk_durable_give_up(struct hk_durable *durable, const char *why);
struct hk_durable_condition hk_durable_condition(struct hk_durable *durable);
/* Whether a snapshot of a shard is needed at once, regardless of when the next is due. True once for each request. */
bool hk_durable_wants_snapshot(struct hk_durable *durable, uint32_t shard);
/* Whether every shard has a snapshot of this run. */
bool hk_durable_saved(struct hk_durable *durable);
/* Whether a snapshot that begins now counts only together with those of all shards; see snapshot.h. */
bool hk_durable_together(struct hk_durable *durable);
/* A snapshot of a shard is on the disk, in its folder. It has all points up to `position`, at which the shard began it, and the
 * positions of feeds at that moment. Ends RECOVERING if this is the last snapshot needed for that. begun: ns, hk_now. before:
 * where the oldest kept snapshot began: the journal is needed from there on, and its older files are deleted; events: position of
 * the last event then, likewise for the event log. True: every shard has a snapshot of this run, so older ones may be deleted;
 * until then only those of the previous run are complete. Thread: any. */
bool hk_durable_snapshot_done(struct hk_durable *durable, uint32_t shard, uint64_t position, int64_t begun, uint64_t before,
                              uint64_t events);
/* hk_condition_commit: records the result of a commit, 0 or a negative errno. hk_condition_degraded: whether the disk is not to
 * be used. hk_condition_works, below: it works again. */
void hk_condition_commit(struct hk_durable *durable, int status, uint32_t shard, bool settles);
bool hk_condition_degraded(struct hk_durable *durable);
/* Written data is gone: durability is lost at once, since waiting does not restore it. */
void hk_condition_lost(struct hk_durable *durable, const char *why, const char *remedy);
void hk_condition_works(struct hk_durable *durable);
/* Whether committed points may be acknowledged. */
bool hk_condition_acknowledges(struct hk_durable *durable);
/* Whether the next commit counts everything that shards have taken as committed. */
bool hk_condition_settles(struct hk_durable *durable);

#endif
