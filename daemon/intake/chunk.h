/* Chunks: points on their way from the loop that read them to the shard that scores them, as columns in the order of arrival; and
 * sources, which send points.
 *
 * A chunk has one owner at a time: the loop that fills it, then the shard that empties it. It is handed over as a whole, through
 * a ring, so it needs no lock; the numbers of points by source (the runs) are part of it. Its memory is allocated when it is
 * made, and touched as far as it is filled.
 *
 * A source counts its points that are in chunks and not finished; back-pressure and farewells depend on that number. A source
 * exists as long as its opener or one of its points refers to it: the count of points is its reference count. */
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
/* Closes a source: no more points of it will come, and the caller no longer uses it. It is freed here, or with its last point.
 * NULL is allowed.
 */
void hk_source_close(struct hk_source *source);
/* Reports that n of its points are finished. Thread: any. */
void hk_source_done(struct hk_source *source, uint64_t n);

/* Counts late and rejected points among its unfinished ones. Thread: any. */
static inline void hk_source_note(struct hk_source *source, uint64_t late, uint64_t rejected)
{
  atomic_fetch_add_explicit(&source->late, late, memory_order_relaxed);
  atomic_fetch_add_explicit(&source->rejected, rejected, memory_order_relaxed);
}

/* Counts n points that are about to be put into a chunk. Thread: the one that opened it. */
static inline void hk_source_add(struct hk_source *source, uint64_t n)
{
  atomic_fetch_add_explicit(&source->held, n, memory_order_relaxed);
}
/* Returns the number of its unfinished points. The effects of finished ones are visible to the caller. Thread: the one that
 * opened it. */
static inline uint64_t hk_source_pending(const struct hk_source *source)
{
  return atomic_load_explicit(&source->held, memory_order_acquire) - 1;
}

/* Consecutive points of one source. */
struct hk_run {
  struct hk_source *source;
  uint32_t n;
};

/* The position of a durable feed (durable/named_feeds.h). */
struct hk_feed;
struct hk_feed_mark {
  struct hk_feed *feed;
  uint64_t upto; /* points since its beginning that are finished on this shard once this chunk is */
};

struct hk_chunk {
  uint32_t n;       /* points; at most HK_CHUNK_POINTS */
  uint32_t n_runs;  /* the sum of their n is the chunk's n */
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

/* Makes an empty chunk of loop number `loop`. NULL: no memory. */
struct hk_chunk *hk_chunk_new(uint32_t loop);
void hk_chunk_free(struct hk_chunk *chunk); /* NULL is allowed; its points do not count as finished */

static inline uint32_t hk_chunk_room(const struct hk_chunk *c)
{
  return HK_CHUNK_POINTS - c->n;
}

/* Adds n points of the source, which the caller has written to the columns from place c->n on; the source counts them. There
 * must be room. n may be 0. */
void hk_chunk_add(struct hk_chunk *chunk, struct hk_source *source, uint32_t n);

/* Adds one point; there must be room. */
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

/* Empties the chunk; its points are the caller's now. */
void hk_chunk_clear(struct hk_chunk *c);

#endif
