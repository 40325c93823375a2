/* Fuzz target: datagrams of a feed, counted. The input is a list of orders of three bytes: which datagram comes next, how far
 * ahead or back, and its number of points. The numbers of lost, repeated and reordered datagrams must be those of a plain set of
 * the received ones. The unchanged bytes are also read as one datagram. */
#include "proto/wire/columns.h"
#include "proto/wire/message.h"
#include "proto/wire/udp_feed.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DATAGRAMS = 1 << 14 };

static void require(bool good)
{
  if (!good)
    abort();
}

static void count(const uint8_t *data, size_t size)
{
  static uint8_t came[DATAGRAMS];
  static uint32_t points[DATAGRAMS]; /* the contents of each: a sender repeats a datagram with the same contents */
  static uint64_t before[DATAGRAMS + 1];
  struct hk_udp_feed f = { 0 };
  uint64_t highest = 0, taken = 0, taken_points = 0, repeated = 0, reordered = 0, late = 0;
  memset(came, 0, sizeof came);
  for (uint32_t i = 0; i < DATAGRAMS; i++) {
    points[i] = 1 + (i * 7 + (size ? data[0] : 0)) % 50;
    before[i + 1] = before[i] + points[i];
  }
  for (size_t i = 0; i + 2 < size; i += 3) {
    const int64_t step = (int16_t)(data[i] | data[i + 1] << 8);
    const int64_t next = (int64_t)highest + (data[i + 2] & 1 ? step : 1 + step % 8);
    if (next < 1 || next >= DATAGRAMS)
      continue;
    const uint64_t s = (uint64_t)next;
    const enum hk_udp_feed_verdict verdict = hk_udp_feed_take(&f, s, before[s], points[s]);
    if (s + HK_FEED_REACH <= highest) {
      late++;
      require(verdict == HK_FEED_TOO_LATE);
    } else if (came[s]) {
      repeated++;
      require(verdict == HK_FEED_REPEATED);
    } else {
      reordered += s < highest;
      highest = s > highest ? s : highest;
      came[s] = 1;
      taken++;
      taken_points += points[s];
      require(verdict == HK_FEED_TAKE);
    }
    require(f.highest == highest && f.taken == taken && f.taken_points == taken_points);
    require(f.repeated == repeated && f.reordered == reordered && f.too_late == late && f.malformed == 0);
    require(hk_udp_feed_lost(&f) == highest - taken);
    require(hk_udp_feed_lost_points(&f) == before[highest + 1] - taken_points || highest == 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct hk_frame f;
  struct hk_points p;
  struct hk_udp_feed feed = { 0 };
  if (size < 1 || size > 60000)
    return 0;
  count(data + 1, size - 1);
  if (hk_frame_read(data, size, 65536, &f) == HK_FRAME_WHOLE && hk_frame_size(&f) == size && f.type == HK_POINTS &&
      hk_points_read(&f, &p) == 0)
    (void)hk_udp_feed_take(&feed, p.sequence, p.before, p.n);
  return 0;
}
