/* Derived series: points that a shard derives from incoming ones, for sensors that get none from peers (registry.h).
 *
 *     chunk -> journal -> derive: pieces of points derived from it, and then the chunk itself -> stage
 *
 * Points are derived only here, after the journal, which has incoming points only: replaying it derives the same points again
 * (server/replay_journals.c), and derived sensors may be in other slices of a snapshot than the sensors that they are derived
 * from. A derived point has the same source as the original: waiting for one is waiting for the other. It counts as `in`, and as
 * `derived`.
 *
 * `derive` in derived_points.c makes the points derived from one point. All sensors are of the same shard. Companions get the
 * same point; the series of a machine gets one now and then (groups.h); the derived sensors of a field get one each with every
 * row (field_rows.h), which may be more than one piece holds.
 *
 * Without derived sensors in the registry a chunk costs one check. Thread: the shard's. */
#ifndef HK_DERIVED_POINTS_H
#define HK_DERIVED_POINTS_H

#include "daemon/scoring/shard.h"

/* Returns 0 or -ENOMEM. */
int hk_derive_open(struct hk_derivation *derivation);
/* Releases its points to their sources; frees `from`. */
void hk_derive_close(struct hk_derivation *derivation);

/* A chunk has been taken while there was none under the cursor. Sets the shard's cursor as hk_derive_go_on does. */
void hk_derive_begin(struct hk_shard *shard, struct hk_chunk *chunk);
/* A whole piece was taken, and the derivation does not rest. Sets the cursor to the next piece, or to the chunk, or to nothing if
 * the derivation rests now. */
void hk_derive_go_on(struct hk_shard *shard);

/* Whether the shard is within a chunk with derived points, so that some sensors have seen more of it than others. */
bool hk_derive_within(const struct hk_shard *shard);

#endif
