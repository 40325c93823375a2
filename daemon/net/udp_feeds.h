/* Peer feeds: one for each possible TCP connection, with its UDP feed, if any. A feed's datagrams may arrive on a loop other
 * than the connection's, so its counters are under a lock, which is hardly ever contended. */
#ifndef HK_UDP_FEEDS_H
#define HK_UDP_FEEDS_H

#include "daemon/base/counters.h"
#include "daemon/intake/chunk.h"
#include "proto/wire/mac.h"
#include "proto/wire/udp_feed.h"

#include <pthread.h>

struct hk_peer_feed {
  pthread_mutex_t lock;
  uint64_t number;          /* number of the feed; 0: not open */
  struct hk_udp_feed feed;  /* of this connection */
  struct hk_mac *mac;       /* of its datagrams; NULL: it has no key */
  struct hk_source *source; /* of its points; valid while the feed is open */
  _Atomic int64_t heard;    /* ns: when a datagram last arrived */
  uint32_t index;
};

struct hk_peer_feeds {
  struct hk_peer_feed *peer_feeds;
  uint32_t n;
  pthread_mutex_t lock;
  uint32_t *free; /* a stack */
  uint32_t n_free;
  uint32_t high; /* one more than the highest index that was ever taken */
};

/* 0 or -ENOMEM. */
int hk_peer_feeds_open(struct hk_peer_feeds *peer_feeds, uint32_t n);
void hk_peer_feeds_close(struct hk_peer_feeds *peer_feeds); /* peer feeds: zeroed or open */

/* Takes a peer feed for a new connection; NULL: all are taken. Thread: any. */
struct hk_peer_feed *hk_peer_feeds_take(struct hk_peer_feeds *peer_feeds);
/* Returns a peer feed; adds the feed's counts to the thread's counters. */
void hk_peer_feeds_give(struct hk_peer_feeds *peer_feeds, struct hk_peer_feed *peer_feed, struct hk_counters *counters);
uint32_t hk_peer_feeds_taken(struct hk_peer_feeds *peer_feeds);
/* Adds the counts of open feeds. */
void hk_peer_feeds_sum(struct hk_peer_feeds *peer_feeds, struct hk_counters *sum);

/* Opens the feed of a connection; returns its number, 0 if random numbers are unavailable. */
uint64_t hk_peer_feed_open(struct hk_peer_feed *peer_feed, struct hk_source *source);
/* Gives an open feed a key. 0, or a negative errno: no random key. */
int hk_peer_feed_key(struct hk_peer_feed *peer_feed, uint8_t key[HK_MAC_KEY]);
/* Whether a datagram of the feed has arrived. */
bool hk_peer_feed_fed(struct hk_peer_feed *peer_feed);
/* As hk_udp_feed_end. */
void hk_peer_feed_end(struct hk_peer_feed *peer_feed, uint64_t datagrams, uint64_t points);
/* Closes the feed: further datagrams belong to no open feed. NULL is allowed. */
void hk_peer_feed_shut(struct hk_peer_feed *peer_feed);
/* Finds the open feed of a number and locks it until hk_peer_feed_leave; NULL: none. */
struct hk_peer_feed *hk_peer_feed_enter(struct hk_peer_feeds *peer_feeds, uint64_t number);
void hk_peer_feed_leave(struct hk_peer_feed *peer_feed);

#endif
