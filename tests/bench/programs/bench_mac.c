/* Measures the cost of the keyed checksum of datagrams: reads a datagram of points, checks its CRC and decodes it, without
 * and with a check of its keyed checksum, by turns in one run. Prints the best of each and their ratio.
 *
 *   build/tests/bench/bench_mac [POINTS] */
#include "daemon/intake/decode_points.h"
#include "proto/wire/columns.h"
#include "proto/wire/mac.h"
#include "proto/wire/message.h"
#include "tests/bench/programs/bench.h"

#include <stdio.h>
#include <stdlib.h>

#define POINTS 2000000 /* of a round, more or less */
#define ROUNDS 15

int main(int argc, char **argv)
{
  const uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 160;
  const uint8_t key[HK_MAC_KEY] = { 1 };
  static uint8_t bytes[65536];
  static uint32_t handle[8192], slot[8192];
  static float value32[8192];
  static int64_t time_[8192];
  static double value[8192];
  static atomic_uint of_slot[8193];
  for (uint32_t i = 0; i < 8192; i++) {
    of_slot[i] = handle[i] = i;
    value32[i] = (float)i;
  }
  const struct hk_points p = { .feed = 1,
                               .sequence = 1,
                               .n = n,
                               .time_kind = HK_TIME_ONE,
                               .value_kind = HK_VALUE_F32,
                               .base = 1,
                               .values = value32,
                               .handles = handle };
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes - HK_MAC_BYTES);
  struct hk_mac *mac = hk_mac_new(key);
  if (n < 1 || n > 5000 || !mac || hk_points_write(&w, 0, &p) != 0 || hk_mac_make(mac, bytes, w.size, bytes + w.size) != 0) {
    fprintf(stderr, "usage: bench_mac [POINTS], 1 to 5000; needs OpenSSL\n");
    return 1;
  }
  const struct hk_decoder d = { { of_slot, 8192 }, 1, INT64_MAX };
  const uint32_t datagrams = POINTS / (n + 20);
  double best[2] = { 1e9, 1e9 };
  uint64_t taken = 0;
  for (int round = 0; round < 2 * ROUNDS; round++) {
    const bool keyed = round & 1;
    const double begun = seconds(CLOCK_THREAD_CPUTIME_ID);
    for (uint32_t i = 0; i < datagrams; i++) {
      struct hk_frame f;
      struct hk_points q;
      if (hk_frame_read(bytes, w.size, 65536, &f) != HK_FRAME_WHOLE || hk_points_read(&f, &q) != 0)
        return 1;
      if (keyed && !hk_mac_good(mac, bytes, w.size, bytes + w.size))
        return 1;
      taken += hk_decode(&d, &q, 0, q.n, (struct hk_columns){ slot, time_, value }).n;
    }
    const double took = seconds(CLOCK_THREAD_CPUTIME_ID) - begun;
    best[keyed] = took < best[keyed] ? took : best[keyed];
  }
  if (taken != 2ull * ROUNDS * datagrams * n)
    return 1;
  printf("{\"points\":%u,\"bytes\":%zu,\"keyed_to_plain\":%.2f}\n", n, w.size, best[1] / best[0]);
  hk_mac_free(mac);
  return 0;
}
