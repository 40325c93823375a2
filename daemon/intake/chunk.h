/* Chunks: points on their way from the loop that read them to the shard that scores them, as columns in the order of arrival; and
 * sources, which send points.
 *
 * A chunk has one owner at a time: the loop that fills it, then the shard that empties it. It is handed over whole, through a
 * ring, so nothing in it needs a lock; the numbers of points by source (the runs) travel with it. Memory is taken when it is
 * made, and a chunk that is half full has touched half of it.
 *
 * A source counts its points that have been put into a chunk and are not dealt with yet: back-pressure and goodbyes go by that
 * number. It lives as long as somebody can still name it: whoever opened it, or a point of it. The count of points is the count
 * of those that hold it. */
#ifndef HK_CHUNK_H
#define HK_CHUNK_H

#include "daemon/base/limits.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One connection or UDP listener. It has a separate cache line: its loop counts up while a shard counts down. */
struct hk_source {
  _Alignas(64) atomic_uint_fast64_t held; /* points that are not done, + 1 while it is open */
  atomic_uint_fast64_t late, rejected;    /* of finished points; derived points are not counted */
};

/* NULL: no memory. Thread: any. */
struct hk_source *hk_source_new(void);
/* No more points of it will come, and the caller no longer uses it. It is freed here, or with its last point. NULL is
 * allowed.
 */
void hk_source_close(struct hk_source *source);
/* n of its points have been dealt with. Thread: any. */
void hk_source_done(struct hk_source *source, uint64_t n);

/* Of its points that are not done yet so many were late, and rejected. Thread: any. */
static inline void hk_source_note(struct hk_source *source, uint64_t late, uint64_t rejected)
{
  atomic_fetch_add_explicit(&source->late, late, memory_order_relaxed);
  atomic_fetch_add_explicit(&source->rejected, rejected, memory_order_relaxed);
}

/* n points of it are about to be put into a chunk. Thread: that which opened it. */
static inline void hk_source_add(struct hk_source *source, uint64_t n)
{
  atomic_fetch_add_explicit(&source->held, n, memory_order_relaxed);
}
/* Points of it that are not finished. The effects of finished ones are visible to the caller. Thread: that which opened it. */
static inline uint64_t hk_source_pending(const struct hk_source *source)
{
  return atomic_load_explicit(&source->held, memory_order_acquire) - 1;
}

/* Consecutive points of one source. */
struct hk_run {
  struct hk_source *source;
  uint32_t n;
};

/* How far a durable feed (durable/named_feeds.h) has got. */
struct hk_feed;
struct hk_feed_mark {
  struct hk_feed *feed;
  uint64_t upto; /* points of it, from its beginning, that are in all dealt with once this chunk is, as far as its shard goes */
};

struct hk_chunk {
  uint32_t n;       /* points; at most HK_CHUNK_POINTS */
  uint32_t n_runs;  /* their n adds up to the chunk's */
  uint32_t n_marks; /* at most HK_CHUNK_MARKS, one a feed; a chunk may have marks and no points */
  uint32_t *slot;   /* within the shard */
  int64_t *time;    /* ns */
  double *value;
  struct hk_run *runs;
  struct hk_feed_mark *marks;
  int64_t opened; /* ns, hk_now: when the first point was put in; meaningless while it is empty */
  int64_t sealed; /* and when it was handed to its shard */
  uint32_t loop;  /* its owner, to which it returns */
};

/* An empty one of loop number `loop`. NULL: no memory. */
struct hk_chunk *hk_chunk_new(uint32_t loop);
void hk_chunk_free(struct hk_chunk *chunk); /* NULL is allowed; its points are not done by that */

static inline uint32_t hk_chunk_room(const struct hk_chunk *c)
{
  return HK_CHUNK_POINTS - c->n;
}

/* The next n points in the columns, from place c->n on, were filled in by the caller and are the source's, which counts them.
 * There is room for them. n may be 0. */
void hk_chunk_add(struct hk_chunk *chunk, struct hk_source *source, uint32_t n);

/* Puts in one point; there is room. */
static inline void hk_chunk_put(struct hk_chunk *c, struct hk_source *source, uint32_t slot, int64_t time, double value)
{
  c->slot[c->n] = slot;
  c->time[c->n] = time;
  c->value[c->n] = value;
  hk_chunk_add(c, source, 1);
}

/* Notes the position of a feed. False: no room for another mark. */
bool hk_chunk_mark(struct hk_chunk *chunk, struct hk_feed *feed, uint64_t upto);

static inline bool hk_chunk_empty(const struct hk_chunk *c)
{
  return c->n == 0 && c->n_marks == 0;
}

/* Empties it; its points are the caller's now, and no longer counted by it. */
void hk_chunk_clear(struct hk_chunk *c);

#endif
