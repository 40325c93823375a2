/* Feeds: senders that outlive their connections.
 *
 * A client names its feed, and numbers its points from the feed's beginning by sending them in order. The daemon stores the
 * feed's position: a returning client gets the number of its committed points, and continues from there; repeated points are
 * skipped. So each point counts once.
 *
 *     loop:    hk_feeds_take -> (hk_feed_enter, points into chunks, hk_feed_leave)... and hk_feed_committed for acknowledgements
 *     shard:   hk_feed_taken for each mark of a chunk that it takes
 *     commit:  hk_feed_commit for each mark that is on the disk
 *
 * Points of one frame go to several shards. A mark in its chunk gives each shard the feed's position after that frame, even if
 * the shard got none of its points. So all shards have committed the minimum of their positions. After a restart the positions
 * may differ: points between the minimum and a shard's position are skipped when they are repeated for a sensor of that shard. If
 * the number of shards has changed, the former shards, whose journals have these points, determine this: a sensor's slot shows
 * which one had it. This is not stored again: if the next crash comes before the client has sent all of these points again, the
 * minimum counts for all shards, and those of these points that sensors have by then count as late.
 *
 * Without a journal a shard counts as committed what it has taken.
 *
 * A feed belongs to its owner: the peer that used its name first. Each owner has a limit of feeds, and all owners together
 * HK_FEEDS_MAX. A feed without a connection is forgotten when it is empty (none of its points ever came, so a later user of the
 * name sees no difference), or when it was not used for `expiry` and every shard has committed all of it. A feed with an
 * uncommitted point, or whose shards have differed since a restart, stays: it is needed to recognise repeated points.
 *
 * Journals and snapshots name feeds by numbers. These only ascend: no number is reused while a file has it.
 *
 * Thread: any, unless stated otherwise. */
#ifndef HK_NAMED_FEEDS_H
#define HK_NAMED_FEEDS_H

#include "daemon/base/limits.h"
#include "daemon/base/wake.h"
#include "proto/wire/message.h"

#include <pthread.h>

#define HK_FEEDS_MAX 65535u /* maximum number of feeds; names are as those of sensors, but at most HK_FEED_NAME_MAX bytes */

/* A shard's part of a feed: numbers of points from its beginning. */
struct hk_feed_part {
  atomic_uint_fast64_t taken, committed; /* taken: written by the shard alone, */
  uint64_t noted;                        /* and its value at hk_feeds_note */
  uint64_t had;                          /* at the start, of the shard with this number in the previous run */
};

struct hk_feed {
  uint32_t number; /* from 1 */
  uint32_t shards;
  pthread_mutex_t lock;         /* held while points of a frame are put into chunks */
  uint64_t turn;                /* under lock: counts its connections; only the last one may continue */
  uint64_t received;            /* under lock: points that are in chunks, or were skipped for a reason */
  uint64_t horizon;             /* no shard has points from before a restart beyond this, */
  uint32_t before;              /* when this was the number of shards */
  struct hk_wake *_Atomic loop; /* of its connection: woken when more is committed; NULL: none */
  atomic_bool awaited;          /* the connection waits for hk_feed_settled: woken when more is taken */
  atomic_uint holds;            /* connections, marks in chunks, current snapshots: not forgotten while there are any */
  _Atomic int64_t used;         /* ns, wall clock: when a connection last took it or gave it up */
  uint64_t owner;               /* under the lock of all feeds; 0: none, until a connection takes it */
  struct hk_feed *next_of_name, *next_of_number; /* under the lock of all feeds */
  struct hk_string name;
  struct hk_feed_part part[HK_SHARDS_MAX];
};

struct hk_feeds;
struct hk_journal;
struct hk_record_feed;

/* For status. */
struct hk_feeds_survey {
  uint32_t n;                /* number of feeds */
  uint64_t refused, expired; /* new ones refused for lack of room or by the owner's limit; non-empty ones that were forgotten */
};

int hk_feeds_new(struct hk_feeds **out, uint32_t shards);
void hk_feeds_free(struct hk_feeds *feeds); /* NULL is allowed */
/* From now on writes new feeds to the journals of all shards (NULL: to none). */
void hk_feeds_journal(struct hk_feeds *feeds, struct hk_journal *const *journals);

/* Sets limits. most: feeds of one owner, 0: any number; expiry: ns, 0: none expires. Initially there are no limits. */
void hk_feeds_limit(struct hk_feeds *feeds, uint32_t most, int64_t expiry);
/* Forgets the feeds that may be forgotten. now: ns, wall clock. Returns how many of them were not empty. To call every few
 * seconds. */
uint32_t hk_feeds_expire(struct hk_feeds *feeds, int64_t now);

/* Finds the feed of a valid name, or makes one of this owner (0: none, without a limit). From now on it belongs to the caller's
 * connection, no longer to a former one. loop: of the connection, woken with HK_WAKE_WORK. Returns 0, *out, valid until
 * hk_feed_give_up, and *turn for hk_feed_enter; -ENOSPC: there are HK_FEEDS_MAX; -EDQUOT: the owner's limit is reached; -ENOMEM.
 * */
int hk_feeds_take(struct hk_feeds *feeds, struct hk_string name, uint64_t owner, struct hk_wake *loop, struct hk_feed **out,
                  uint64_t *turn);
/* Its connection ends. To call once for each hk_feed_take. */
void hk_feed_give_up(struct hk_feed *feed, uint64_t turn);

/* Whether shards have taken everything that any connection put into chunks before. Until then the connection that took the feed
 * must put nothing into chunks: a shard gets another loop's chunks in no order with these, and a mark in them would exceed what
 * the shard has. Wakes the connection's loop when it may be so. True also if another connection has the feed by now. Thread: the
 * connection's. */
bool hk_feed_settled(struct hk_feed *feed, uint64_t turn);

/* A connection's state of a feed. */
struct hk_feeding {
  struct hk_feed *feed; /* NULL: none */
  uint64_t turn;
  uint64_t at; /* points of the feed, from its beginning, before the next one on this connection */
};

/* To call before and after putting points of the feed into chunks (hk_intake_feed does that), on the connection's thread. False:
 * another connection has the feed now, and the lock is not held. */
bool hk_feed_enter(struct hk_feed *feed, uint64_t turn);
void hk_feed_leave(struct hk_feed *feed);

/* Number of points, from the beginning, that all shards have committed. */
uint64_t hk_feed_committed(const struct hk_feed *feed);
/* Whether all points that ever went into chunks are committed. Wakes the loop of its connection when more is committed. */
bool hk_feed_is_committed(struct hk_feed *feed);

/* A shard has taken, or has committed, all points of the feed up to `upto`. */
void hk_feed_taken(struct hk_feed *feed, uint32_t shard, uint64_t upto);
void hk_feed_commit(struct hk_feed *feed, uint32_t shard, uint64_t upto);

/* After a time without a journal: hk_feeds_note stores how much of each feed a shard has taken, and once all of that is on the
 * disk hk_feeds_commit_noted counts it as committed. Thread: the commit thread. */
void hk_feeds_note(struct hk_feeds *feeds, uint32_t shard);
void hk_feeds_commit_noted(struct hk_feeds *feeds, uint32_t shard);

static inline uint32_t hk_feed_number(const struct hk_feed *feed)
{
  return feed->number;
}
/* Hold an existing feed: it is not forgotten until it is released as often as it was held. */
static inline void hk_feed_hold(struct hk_feed *feed)
{
  atomic_fetch_add_explicit(&feed->holds, 1, memory_order_relaxed);
}
static inline void hk_feed_release(struct hk_feed *feed)
{
  atomic_fetch_sub_explicit(&feed->holds, 1, memory_order_release);
}
/* As hk_feed_commit, for the feed of a number, if it (still) exists. */
void hk_feeds_commit(struct hk_feeds *feeds, uint32_t number, uint32_t shard, uint64_t upto);
/* Visits all feeds, in no order; `each` may hold them, but neither takes nor gives up any. If it returns an error, the visit ends
 * and returns it. */
int hk_feeds_each(struct hk_feeds *feeds, int (*each)(void *arg, struct hk_feed *feed), void *arg);
struct hk_feeds_survey hk_feeds_survey(struct hk_feeds *feeds);

/* At the start, before there are connections: restores a feed with its number, name, owner and last use (0: unknown). If the name
 * has a higher number already, nothing happens; if it has a lower one, that feed is removed. Returns 0; -ENOMEM; -EBADMSG: the
 * number is another feed's, or 0. */
int hk_feeds_restore(struct hk_feeds *feeds, const struct hk_record_feed *record);
/* The feed was forgotten. */
void hk_feeds_restore_gone(struct hk_feeds *feeds, uint32_t number);
/* Points of the feed came, at some time up to now. */
void hk_feeds_restore_used(struct hk_feeds *feeds, uint32_t number, int64_t now);
/* A former shard had taken the points of the feed up to `upto`. The feed's record may come later, from another journal. */
void hk_feeds_restore_part(struct hk_feeds *feeds, uint32_t number, uint32_t shard, uint64_t upto);
/* After all is restored. of: the former number of shards; if it differs, the minimum of their positions counts as taken and
 * committed by all. */
void hk_feeds_restored(struct hk_feeds *feeds, uint32_t of);

#endif
