/* Feeds: senders that outlive their connections.
 *
 * A client gives its feed a name, and numbers its points from the feed's beginning by sending them in order. The daemon remembers
 * how far it has got: when the client comes back it is told how many of its points are committed, and goes on from there; what it
 * sends again but the daemon has is left out. So each point counts once.
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
 * Thread: any, but for what says otherwise. Feeds are never forgotten. */
#ifndef HK_FEEDS_H
#define HK_FEEDS_H

#include "daemon/fill.h"
#include "daemon/wake.h"
#include "proto/message.h"

#include <pthread.h>

#define HK_FEEDS_MAX 65535u /* feeds; names are as those of sensors, but at most HK_FEED_NAME_MAX bytes */

/* What a shard has of a feed: points from its beginning on. */
struct hk_feed_part {
  atomic_uint_fast64_t taken, committed; /* taken: written by the shard alone, */
  uint64_t noted;                        /* and what it was when hk_feeds_note looked */
  uint64_t had;                          /* when the daemon was started, the shard with this number that there was then */
};

struct hk_feed {
  uint32_t number; /* 1.. */
  uint32_t shards;
  pthread_mutex_t lock;         /* held while points of a frame are put into chunks */
  uint64_t turn;                /* under lock: counts who had it; only the last one may go on */
  uint64_t received;            /* under lock: points that are in chunks, or were left out for a reason */
  uint64_t horizon;             /* beyond which no shard has any points of before a restart, */
  uint32_t before;              /* when there were so many shards */
  struct hk_wake *_Atomic loop; /* of the connection that has it: woken when more is committed; NULL: nobody */
  struct hk_string name;
  struct hk_feed_part part[HK_SHARDS_MAX];
};

struct hk_feeds;
struct hk_journal;

int hk_feeds_new(struct hk_feeds **out, uint32_t shards);
void hk_feeds_free(struct hk_feeds *feeds); /* NULL is fine */
/* New feeds are told to the journals of all shards from now on (NULL: to none any more). */
void hk_feeds_journal(struct hk_feeds *feeds, struct hk_journal *const *journals);

/* The feed of a valid name, a new one where there is none; it belongs to the caller's connection, and whoever had it before is
 * out. loop: of the connection, woken with HK_WAKE_WORK. 0, *out, and *turn for hk_feed_enter; -ENOSPC: there are HK_FEEDS_MAX;
 * -ENOMEM. */
int hk_feeds_take(struct hk_feeds *feeds, struct hk_string name, struct hk_wake *loop, struct hk_feed **out, uint64_t *turn);
/* Its connection ends. */
void hk_feed_give_up(struct hk_feed *feed, uint64_t turn);

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
/* The feed of a number; NULL: there is none. */
struct hk_feed *hk_feeds_get(struct hk_feeds *feeds, uint32_t number);
/* Feeds have the numbers 1.. to this one, with no holes but those that a restore has left. */
uint32_t hk_feeds_count(struct hk_feeds *feeds);

/* At the start, before there are connections: there was a feed with this number and name. 0; -ENOMEM; -EBADMSG: the number is
 * another feed's, or out of range. */
int hk_feeds_restore(struct hk_feeds *feeds, uint32_t number, struct hk_string name);
/* A shard of those that there were then had these points of it. */
void hk_feeds_restore_part(struct hk_feeds *feeds, uint32_t number, uint32_t shard, uint64_t upto);
/* All is restored. of: how many shards there were; where they were others the least that any of them has counts as taken and
 * committed by all. */
void hk_feeds_restored(struct hk_feeds *feeds, uint32_t of);

#endif
