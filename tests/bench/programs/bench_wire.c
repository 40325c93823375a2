/* Measures the speed of the wire protocol on one core: checks POINTS frames and decodes them to columns, compared with
 * copying the same bytes in the same run. Prints the best processor time of several rounds. bench_line does the same for
 * lines. */
#include "proto/wire/columns.h"
#include "proto/wire/message.h"
#include "tests/bench/programs/bench.h"

#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 4096, FRAMES = 2000, ROUNDS = 7 };

/* Seconds to copy `bytes` bytes in pieces of `piece`. */
static double copy(const void *from, size_t bytes, size_t piece)
{
  static uint8_t to[1 << 20];
  volatile uint8_t sink = 0;
  const double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
  for (size_t done = 0; done + piece <= bytes; done += piece) {
    memcpy(to, from, piece);
    sink = (uint8_t)(sink + to[done % piece]);
  }
  return seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
}

static void bench_points(const char *name, uint8_t time_kind, uint8_t value_kind)
{
  static uint8_t data[1 << 17];
  static int64_t times[POINTS], time[POINTS];
  static uint32_t handles[POINTS], handle[POINTS];
  static double doubles[POINTS], value[POINTS];
  static float floats[POINTS];
  for (uint32_t i = 0; i < POINTS; i++) {
    times[i] = 1000 * (int64_t)i;
    handles[i] = i;
    doubles[i] = i;
    floats[i] = (float)i;
  }
  struct hk_writer w = HK_WRITER(data, sizeof data);
  const void *values = value_kind == HK_VALUE_F64 ? (const void *)doubles : floats;
  const struct hk_points p = { 0, 0, 0, POINTS, time_kind, value_kind, 5, 0, times, NULL, values, handles };
  require(hk_points_write(&w, 0, &p) == 0, "cannot write the frame");
  double best = 1e9, copied = 1e9, sum = 0;
  for (int round = 0; round < ROUNDS; round++) {
    const double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < FRAMES; i++) {
      struct hk_frame f;
      struct hk_points q;
      require(hk_frame_read(data, w.size, HK_FRAME_MAX, &f) == HK_FRAME_WHOLE && hk_points_read(&f, &q) == 0,
              "cannot read the frame");
      hk_points_handles(&q, 0, POINTS, handle);
      hk_points_times(&q, 0, POINTS, 0, time);
      hk_points_values(&q, 0, POINTS, value);
      sum += value[i % POINTS];
    }
    const double took = seconds(CLOCK_PROCESS_CPUTIME_ID) - start, took_copy = copy(data, FRAMES * w.size, w.size);
    best = took < best ? took : best;
    copied = took_copy < copied ? took_copy : copied;
  }
  printf("%-28s %8.1f M points/s, %5.2f GB/s, %.2f of plain copying (checksum %g)\n", name, 1e-6 * POINTS * FRAMES / best,
         1e-9 * FRAMES * (double)w.size / best, copied / best, sum);
}

int main(void)
{
  bench_points("POINTS, one time, f32", HK_TIME_ONE, HK_VALUE_F32);
  bench_points("POINTS, each time, f64", HK_TIME_EACH, HK_VALUE_F64);
  return 0;
}
