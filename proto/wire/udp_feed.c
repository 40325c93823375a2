/* Counts the datagrams of a feed. See udp_feed.h. */
#include "proto/wire/udp_feed.h"

#include <string.h>

static uint64_t *udp_feed_word(struct hk_udp_feed *f, uint64_t sequence)
{
  return &f->came[sequence % HK_FEED_REACH / 64];
}
static uint64_t bit(uint64_t sequence)
{
  return 1ull << sequence % 64;
}

/* Clears the bits for the numbers highest+1..sequence, which older numbers used. */
static void udp_feed_advance(struct hk_udp_feed *f, uint64_t sequence)
{
  if (sequence - f->highest >= HK_FEED_REACH)
    memset(f->came, 0, sizeof f->came);
  else
    for (uint64_t i = f->highest + 1; i <= sequence; i++)
      *udp_feed_word(f, i) &= ~bit(i);
  f->highest = sequence;
}

enum hk_udp_feed_verdict hk_udp_feed_take(struct hk_udp_feed *f, uint64_t sequence, uint64_t before, uint32_t n)
{
  uint64_t points;
  const uint64_t ahead = sequence - f->highest; /* meaningful only if sequence > highest */
  if (sequence == 0 || __builtin_add_overflow(before, n, &points) || (sequence > f->highest && ahead > HK_FEED_JUMP)) {
    f->malformed++;
    return HK_FEED_MALFORMED;
  }
  if (sequence > f->highest) {
    if (points < f->sent_points + n) { /* a sender's count never decreases */
      f->malformed++;
      return HK_FEED_MALFORMED;
    }
    udp_feed_advance(f, sequence);
    f->sent_points = points;
  } else if (f->highest - sequence >= HK_FEED_REACH) {
    f->too_late++;
    return HK_FEED_TOO_LATE;
  } else if (*udp_feed_word(f, sequence) & bit(sequence)) {
    f->repeated++;
    return HK_FEED_REPEATED;
  } else {
    f->reordered++;
  }
  *udp_feed_word(f, sequence) |= bit(sequence);
  f->taken++;
  f->taken_points += n;
  return HK_FEED_TAKE;
}

void hk_udp_feed_end(struct hk_udp_feed *f, uint64_t datagrams, uint64_t points)
{
  if (datagrams < f->highest || points < f->sent_points || datagrams - f->highest > HK_FEED_JUMP)
    return;
  udp_feed_advance(f, datagrams);
  f->sent_points = points;
}
