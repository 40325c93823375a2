/* Feeds: senders that outlive their connections.
 *
 * A client gives its feed a name, and numbers its points from the feed's beginning by sending them in order. The daemon remembers
 * the feed's position: a returning client gets the number of its committed points, and continues from there; repeated points are
 * skipped. So each point counts once.
 *
 *     loop:    hk_feeds_take -> (hk_feed_enter, points into chunks, hk_feed_leave)... and hk_feed_committed for acknowledgements
 *     shard:   hk_feed_taken for each mark of a chunk that it takes
 *     commit:  hk_feed_commit for each mark that is on the disk
 *
 * Points of one frame go to several shards, and each shard is told (by a mark in its chunk) how far the feed is after that frame,
 * whether it got any of its points or not. So what all shards have committed is the least that any of them has. After a restart
 * they may differ: points between the least and what a shard has are left out when they come again for a sensor of that shard.
 * Where the number of shards is another one now, this goes by the shards that there were, in whose journals these points lie: a
 * sensor's slot says which was its. That is not written down again: if the next crash comes before the client has sent all of
 * these again, the least counts for all, and those of them that sensors have by then are late.
 *
 * Where there is no journal a shard counts as committed what it has taken.
 *
 * A feed belongs to its owner: the peer that was first to say its name. An owner may have so many feeds, and all of them together
 * HK_FEEDS_MAX. A feed that no connection has is forgotten when it is empty (none of its points ever came: whoever says the name
 * again sees no difference), or when it was not used for `expiry` and every shard has committed all of it. One of which a point
 * is not committed, or of which shards have differed since a restart, stays: what comes again is told from what is new by it.
 *
 * Feeds have numbers, in which journals and snapshots name them. They only go up: no number is given twice while a file has it.
 *
 * Thread: any, unless stated otherwise. */
#ifndef HK_FEEDS_H
#define HK_FEEDS_H

#include "daemon/base/limits.h"
#include "daemon/base/wake.h"
#include "proto/wire/message.h"

#include <pthread.h>

#define HK_FEEDS_MAX 65535u /* feeds at a time; names are as those of sensors, but at most HK_FEED_NAME_MAX bytes */

/* What a shard has of a feed: points from its beginning on. */
struct hk_feed_part {
  atomic_uint_fast64_t taken, committed; /* taken: written by the shard alone, */
  uint64_t noted;                        /* and its value at hk_feeds_note */
  uint64_t had;                          /* when the daemon was started, the shard with this number that there was then */
};

struct hk_feed {
  uint32_t number; /* 1.. */
  uint32_t shards;
  pthread_mutex_t lock;         /* held while points of a frame are put into chunks */
  uint64_t turn;                /* under lock: counts its connections; only the last one may continue */
  uint64_t received;            /* under lock: points that are in chunks, or were left out for a reason */
  uint64_t horizon;             /* beyond which no shard has any points of before a restart, */
  uint32_t before;              /* when there were so many shards */
  struct hk_wake *_Atomic loop; /* of its connection: woken when more is committed; NULL: none */
  atomic_bool awaited;          /* the connection waits for hk_feed_settled: woken when more is taken */
  atomic_uint holds;            /* connections, marks in chunks, snapshots under way: while there are any it is not forgotten */
  _Atomic int64_t used;         /* ns, wall clock: when a connection last took it or gave it up */
  uint64_t owner;               /* under the lock of all feeds; 0: none, until a connection takes it */
  struct hk_feed *next_of_name, *next_of_number; /* under that lock, too */
  struct hk_string name;
  struct hk_feed_part part[HK_SHARDS_MAX];
};

struct hk_feeds;
struct hk_journal;
struct hk_record_feed;

/* For status. */
struct hk_feeds_survey {
  uint32_t n;                /* there are */
  uint64_t refused, expired; /* new ones that were refused, for lack of room or by the owner's limit; not empty, and forgotten */
};

int hk_feeds_new(struct hk_feeds **out, uint32_t shards);
void hk_feeds_free(struct hk_feeds *feeds); /* NULL is allowed */
/* From now on new feeds are written to the journals of all shards (NULL: to none any more). */
void hk_feeds_journal(struct hk_feeds *feeds, struct hk_journal *const *journals);

/* most: feeds of one owner, 0: any number; expiry: ns, 0: none expires. At first there are no limits. */
void hk_feeds_limit(struct hk_feeds *feeds, uint32_t most, int64_t expiry);
/* Forgets the feeds that may be forgotten. now: ns, wall clock. How many of them were not empty. To be called every few seconds.
 */
uint32_t hk_feeds_expire(struct hk_feeds *feeds, int64_t now);

/* The feed of a valid name, or a new one of this owner (0: none, without a limit); it belongs to the caller's connection from now
 * on, no longer to a former one. loop: of the connection, woken with HK_WAKE_WORK. 0, *out, valid until hk_feed_give_up, and
 * *turn for hk_feed_enter; -ENOSPC: there are HK_FEEDS_MAX; -EDQUOT: the owner's limit is reached; -ENOMEM. */
int hk_feeds_take(struct hk_feeds *feeds, struct hk_string name, uint64_t owner, struct hk_wake *loop, struct hk_feed **out,
                  uint64_t *turn);
/* Its connection ends. Once for each that was taken. */
void hk_feed_give_up(struct hk_feed *feed, uint64_t turn);

/* Whether all that went into chunks before, by whatever connection, was taken by the shards. Until then who has taken the feed
 * must put nothing into chunks: another loop's come to a shard in no order with these, and a mark in them would say more than the
 * shard has. Its loop is woken when it may be so. True, too, where another connection has the feed by now. Thread: the
 * connection's. */
bool hk_feed_settled(struct hk_feed *feed, uint64_t turn);

/* What a connection knows of a feed that it has. */
struct hk_feeding {
  struct hk_feed *feed; /* NULL: it has none */
  uint64_t turn;
  uint64_t at; /* points of the feed, from its beginning, that came before the next one on this connection */
};

/* Before and after points of the feed are put into chunks (hk_intake_feed does that), on the connection's thread. False: another
 * connection has the feed now, and the lock is not held. */
bool hk_feed_enter(struct hk_feed *feed, uint64_t turn);
void hk_feed_leave(struct hk_feed *feed);

/* How many of its points, from its beginning, are committed by all shards. */
uint64_t hk_feed_committed(const struct hk_feed *feed);
/* Whether that is all that ever went into chunks. The loop of its connection is woken whenever more is committed. */
bool hk_feed_is_committed(struct hk_feed *feed);

/* A shard has taken, or has committed, all of its points up to `upto`. */
void hk_feed_taken(struct hk_feed *feed, uint32_t shard, uint64_t upto);
void hk_feed_commit(struct hk_feed *feed, uint32_t shard, uint64_t upto);

/* After a time without a journal: hk_feeds_note remembers what a shard has taken of each feed, and once all of that is on the
 * disk hk_feeds_commit_noted counts it as committed. Thread: the one that commits. */
void hk_feeds_note(struct hk_feeds *feeds, uint32_t shard);
void hk_feeds_commit_noted(struct hk_feeds *feeds, uint32_t shard);

static inline uint32_t hk_feed_number(const struct hk_feed *feed)
{
  return feed->number;
}
/* A feed that the caller knows to be there is not forgotten until it is released as often as it was held. */
static inline void hk_feed_hold(struct hk_feed *feed)
{
  atomic_fetch_add_explicit(&feed->holds, 1, memory_order_relaxed);
}
static inline void hk_feed_release(struct hk_feed *feed)
{
  atomic_fetch_sub_explicit(&feed->holds, 1, memory_order_release);
}
/* hk_feed_commit for the feed of a number, if there is (still) one. */
void hk_feeds_commit(struct hk_feeds *feeds, uint32_t number, uint32_t shard, uint64_t upto);
/* All feeds, in no order; `each` may hold them, and takes and gives up none. Ends early where it returns an error, with that. */
int hk_feeds_each(struct hk_feeds *feeds, int (*each)(void *arg, struct hk_feed *feed), void *arg);
struct hk_feeds_survey hk_feeds_survey(struct hk_feeds *feeds);

/* At the start, before there are connections: there was a feed with this number and name, of this owner, used then (0: not
 * known). Where the name has a higher number by now nothing happens, and where it has a lower one that feed is gone. 0; -ENOMEM;
 * -EBADMSG: the number is another feed's, or 0. */
int hk_feeds_restore(struct hk_feeds *feeds, const struct hk_record_feed *record);
/* It was forgotten. */
void hk_feeds_restore_gone(struct hk_feeds *feeds, uint32_t number);
/* Points of it came, at some time up to now. */
void hk_feeds_restore_used(struct hk_feeds *feeds, uint32_t number, int64_t now);
/* A former shard had taken these points of it. */
void hk_feeds_restore_part(struct hk_feeds *feeds, uint32_t number, uint32_t shard, uint64_t upto);
/* All is restored. of: how many shards there were; where they were others the least that any of them has counts as taken and
 * committed by all. */
void hk_feeds_restored(struct hk_feeds *feeds, uint32_t of);

#endif
