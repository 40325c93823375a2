/* Intake: puts the points of all protocols into chunks, or drops them and counts the reasons. Thread: the loop's. */
#ifndef HK_INTAKE_H
#define HK_INTAKE_H

#include "daemon/base/counters.h"
#include "daemon/base/log.h"
#include "daemon/durable/named_feeds.h"
#include "daemon/intake/chunk_pool.h"
#include "daemon/sensors/registry.h"
#include "proto/wire/columns.h"

struct hk_intake {
  struct hk_registry *registry;
  struct hk_chunk_pool *pool;
  struct hk_counters *counters;
  struct hk_log *log;
  int64_t max_ahead;    /* ns; 0 = accepts any time */
  uint32_t max_pending; /* points of one source */
  int64_t wall;         /* ns, hk_intake_clock: set by the reader of a socket, before it hands points over */
  int64_t offset;       /* ns: the maximum by which the wall clock was ahead of the monotonic clock */
  struct hk_log_quota full, no_detector, reserved, over_quota, ahead; /* log lines of each kind */
};

/* The time of arrival, ns: the wall clock, but never backwards. If it is set back, this continues from the later time, so that
 * points which get their time here are not late until the clock has caught up. */
int64_t hk_intake_clock(struct hk_intake *intake);

/* True when a source may hand over up to n points now. */
bool hk_intake_open(struct hk_intake *intake, struct hk_source *source, uint32_t n);

/* Takes all points of a payload; there must be room. Returns the number of points with invalid handles, which are dropped and
 * counted. */
uint32_t hk_intake_points(struct hk_intake *intake, struct hk_source *source, const struct hk_points *points);

/* The same for points of a named feed: points that the daemon already has are skipped and counted. Advances feeding->at by all of
 * them. *unknown: as above. False: another connection has the feed now, and nothing was taken. */
bool hk_intake_feed(struct hk_intake *intake, struct hk_source *source, struct hk_feeding *feeding,
                    const struct hk_points *points, uint32_t *unknown);

/* Takes n points whose slots are known, and that count as one point of the feed, if there is one: all of a shard's are in one
 * chunk. n may be 0, and is at most HK_CHUNK_POINTS; there must be room. Counts them as received; may change their values. False:
 * as above. */
bool hk_intake_together(struct hk_intake *intake, struct hk_source *source, struct hk_feeding *feeding, uint32_t n,
                        const struct hk_columns *points);

/* The slot of a valid name; a new name becomes a sensor of this owner (sensors/owners.h): 0 and *slot, or an enum hankel_refusal;
 * then a point of it was counted as dropped. */
int hk_intake_find(struct hk_intake *intake, uint64_t owner, const char *name, size_t length, uint32_t *slot);

/* Takes n points whose slots are known; there must be room, and the caller has counted them as received. May change their
 * values. */
void hk_intake_slots(struct hk_intake *intake, struct hk_source *source, uint32_t n, const struct hk_columns *points);

/* Counts that a name was refused, and logs it as often as is useful. refusal: enum hankel_refusal. */
void hk_intake_refused(struct hk_intake *intake, int refusal, const char *name, size_t length);

#endif
