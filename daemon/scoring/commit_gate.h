/* A shard and its journal: points go in, and results come out when those are on the disk. */
#ifndef HK_COMMIT_GATE_H
#define HK_COMMIT_GATE_H

#include "daemon/scoring/shard.h"

/* A chunk is taken: it goes to the journal, its points count, and feeds are told. hk_shard_takes: whether the journal has room
 * for another one. */
void hk_shard_journal(struct hk_shard *shard, const struct hk_chunk *chunk);
bool hk_shard_takes(const struct hk_shard *shard);
/* Hands a batch over that has come back, as soon as the points that it may hold are committed; and those that have waited for
 * that. True when there was any. */
void hk_shard_show(struct hk_shard *shard, struct hk_parcel *parcel);
bool hk_shard_show_held(struct hk_shard *shard);
/* The end: nobody will see them. */
void hk_shard_drop_held(struct hk_shard *shard);

#endif
