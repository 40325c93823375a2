/* Counts the datagrams of a UDP feed: lost, repeated, reordered. PROTOCOL.md (POINTS over UDP) has the rule. Owner and thread:
 * the event loop that reads the datagrams. */
#ifndef HK_UDP_FEED_H
#define HK_UDP_FEED_H

#include <stdint.h>

#define HK_FEED_REACH 1024u       /* number of latest datagrams among which repeated ones are recognised */
#define HK_FEED_JUMP (1ull << 32) /* datagrams farther ahead are malformed */

enum hk_udp_feed_verdict { HK_FEED_TAKE, HK_FEED_REPEATED, HK_FEED_TOO_LATE, HK_FEED_MALFORMED };

/* Zero-initialise. */
struct hk_udp_feed {
  uint64_t highest;                  /* highest sequence number; 0: none yet */
  uint64_t sent_points;              /* points that the sender has sent, up to and including datagram `highest` */
  uint64_t taken;                    /* datagrams */
  uint64_t taken_points;             /* points in them */
  uint64_t repeated;                 /* datagrams */
  uint64_t reordered;                /* datagrams taken after a later one */
  uint64_t too_late;                 /* datagrams */
  uint64_t malformed;                /* datagrams */
  uint64_t came[HK_FEED_REACH / 64]; /* bit (sequence % HK_FEED_REACH): that datagram has arrived */
};

/* Counts an arrived datagram (sequence, before, n as in POINTS). Returns HK_FEED_TAKE if its points are accepted; otherwise
 * the datagram is dropped. */
enum hk_udp_feed_verdict hk_udp_feed_take(struct hk_udp_feed *f, uint64_t sequence, uint64_t before, uint32_t n);

/* Sets the totals that BYE gives. Totals that contradict the arrived datagrams are ignored. */
void hk_udp_feed_end(struct hk_udp_feed *f, uint64_t datagrams, uint64_t points);

/* Datagrams and points lost so far. A late datagram counts as lost until it arrives. */
static inline uint64_t hk_udp_feed_lost(const struct hk_udp_feed *f)
{
  return f->highest - f->taken;
}
static inline uint64_t hk_udp_feed_lost_points(const struct hk_udp_feed *f)
{
  return f->sent_points > f->taken_points ? f->sent_points - f->taken_points : 0;
}

#endif
