/* Counting the datagrams of one UDP feed: what was lost, repeated, reordered. PROTOCOL.md (POINTS over UDP) has the rule.
 * Owner and thread: the event loop that reads the datagrams. */
#ifndef HK_FEED_H
#define HK_FEED_H

#include <stdint.h>

#define HK_FEED_REACH 1024u       /* how far back a datagram is still told from a repeated one */
#define HK_FEED_JUMP (1ull << 32) /* no feed jumps farther ahead */

enum hk_udp_feed_verdict { HK_FEED_TAKE, HK_FEED_REPEATED, HK_FEED_TOO_LATE, HK_FEED_MALFORMED };

/* All zero is a feed of which nothing has come. */
struct hk_udp_feed {
  uint64_t highest;                  /* sequence number; 0 = none yet */
  uint64_t sent_points;              /* by the sender, up to and with datagram `highest` */
  uint64_t taken;                    /* datagrams */
  uint64_t taken_points;             /* points in them */
  uint64_t repeated;                 /* datagrams */
  uint64_t reordered;                /* datagrams taken after a later one */
  uint64_t too_late;                 /* datagrams */
  uint64_t malformed;                /* datagrams */
  uint64_t came[HK_FEED_REACH / 64]; /* bit sequence % HK_FEED_REACH: it has come */
};

/* A datagram (sequence, before, n as in POINTS) has come. HK_FEED_TAKE: its points are to be taken; otherwise it is dropped. */
enum hk_udp_feed_verdict hk_udp_feed_take(struct hk_udp_feed *f, uint64_t sequence, uint64_t before, uint32_t n);

/* BYE has told how many there were in all. Figures that contradict what has come are not believed. */
void hk_udp_feed_end(struct hk_udp_feed *f, uint64_t datagrams, uint64_t points);

/* Lost so far: datagrams, points. A datagram that is only late still counts until it comes. */
static inline uint64_t hk_udp_feed_lost(const struct hk_udp_feed *f)
{
  return f->highest - f->taken;
}
static inline uint64_t hk_udp_feed_lost_points(const struct hk_udp_feed *f)
{
  return f->sent_points > f->taken_points ? f->sent_points - f->taken_points : 0;
}

#endif
