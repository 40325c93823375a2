/* Derived series: points that a shard derives from incoming ones, for sensors that get none from peers (registry.h).
 *
 *     chunk -> journal -> derive: pieces of points derived from it, and then the chunk itself -> stage
 *
 * Points are derived only here. This is after the journal, which has incoming points only: replaying it derives the same points
 * again (server/replay_journals.c), and their sensors may be in other slices of a snapshot than the sensors from which they are
 * derived. A derived point has the same source as the original: waiting for one is waiting for the other. It counts as `in`, and
 * as `derived`.
 *
 * What is made of one point is made by `derive` in derived_points.c. The sensors must be of the same shard. Companions get the
 * same point; the series of a machine gets one now and then (groups.h); the
 * derived sensors of a field get one each with every row (field_rows.h), which may be more than one piece holds.
 *
 * With no derived sensor in the registry a chunk costs one look. Thread: the shard's. */
#ifndef HK_DERIVE_H
#define HK_DERIVE_H

#include "daemon/scoring/shard.h"

/* 0 or -ENOMEM. */
int hk_derive_open(struct hk_derivation *derivation);
/* What is in it is done with that; `from` is freed. */
void hk_derive_close(struct hk_derivation *derivation);

/* A chunk has been taken, with no chunk before it under the cursor: the shard's cursor stands where hk_derive_go_on puts it. */
void hk_derive_begin(struct hk_shard *shard, struct hk_chunk *chunk);
/* A piece was taken whole, and the derivation does not rest: the cursor stands on the next, or on the chunk, or, where it rests
 * now, on nothing. */
void hk_derive_go_on(struct hk_shard *shard);

/* Whether the shard is within a chunk with derived points: some sensors have seen more of it than others. */
bool hk_derive_within(const struct hk_shard *shard);

#endif
