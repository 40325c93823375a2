/* The CUDA kernel's passes of algorithm = novelty and its ratings, by a warp that is emulated: least distances, lags, V and M are
 * those of cpu/novelty/distances.h, results and tails those of cpu/novelty/tail.h, bit for bit, however points come in runs: with
 * rings that have gone round, young sensors, long holes, values that repeat, and NaN and late points between. */

#include "tests/backend/emulated_warp.h"

#include "gpu/novelty/passes.cuh"
#include "gpu/novelty/rate.cuh"

#include "tests/backend/emulated_sensor.h"

#include <cstdarg>
#include <cstddef>
#include <setjmp.h>

extern "C" {
#include <cmocka.h>
}

namespace
{

using sensor = emulated_sensor;

/* A series that begins constant, where all lags are as good; with levels that return, holes, and points that do not count. */
struct signal {
  uint64_t state;
  int64_t time = 1000000000;
  double level = 0;
  uint32_t points = 0;

  uint32_t random(uint32_t below) { return emulated_random(&state, below); }

  void next(int64_t *at, double *value)
  {
    const uint32_t what = random(1000);
    if (what < 4)
      level = (double)random(7) * 10;
    time += INT64_C(1000000000) * (what == 999 ? 300 : what == 998 ? 5 : 1);
    *at = what == 997 ? time - INT64_C(5000000000) : time;
    *value = what == 996 ? (double)NAN : 1e6 + level + (what % 2 ? (double)random(8) : (double)random(1000000) * 1e-5);
    if (points++ < 900 && what != 996)
      *value = 1e6;
  }
};

/* Takes up to `most` points that count, in one run: the point at which lags start over is the first of one. */
uint32_t take(sensor &s, signal &from, uint32_t most, hk_novelty_point *points)
{
  const struct hk_novelty_view v = hk_cuda_novelty(s.record, &s.detector);
  uint32_t n = 0;
  if (from.points % 3 == 0) /* as if holes were rare */
    s.record->window.holes = 0;
  while (n < most) {
    int64_t time;
    double value;
    signal before = from;
    from.next(&time, &value);
    /* a long hole ends a run, so it is looked for before the point is taken */
    hk_window after = s.record->window;
    if (n > 0 && after.started && hk_novelty_begins(&after, hk_window_missing(&after, &s.detector, time))) {
      from = before;
      break;
    }
    const hk_step step =
        hk_novelty_take(&v, &s.record->window, hk_cuda_ring(s.record, &s.detector), time, value, time, &points[n]);
    n += step.state != HK_STATE_LATE && step.state != HK_STATE_REJECTED;
  }
  return n;
}

/* a: by the plain passes. b: by the emulated warp, whose lags may be late: they are compared as they are when all are brought
 * along, in a copy. */
void same(const sensor &a, const sensor &b, const char *what, uint32_t point)
{
  std::vector<uint64_t> copy((hk_cuda_record_bytes(&b.detector) + 7) / 8);
  hk_cuda_record *const late = (hk_cuda_record *)copy.data();
  memcpy(late, b.record, hk_cuda_record_bytes(&b.detector));
  const struct hk_novelty_view va = hk_cuda_novelty(a.record, &a.detector), vb = hk_cuda_novelty(late, &b.detector);
  hk_lag_groups_bring(&vb, hk_cuda_lag_groups(late, &b.detector), hk_cuda_ring(late, &b.detector), late->window.head);
  const size_t bytes = hk_novelty_lags(&a.detector) * sizeof(float);
  if (memcmp(va.variance, vb.variance, bytes) != 0 || memcmp(va.mean, vb.mean, bytes) != 0)
    fail_msg("%s, point %u: V or M of a lag differ", what, point);
  if (memcmp(va.novelty->tail, vb.novelty->tail, sizeof va.novelty->tail) != 0 ||
      memcmp(va.novelty->seen, vb.novelty->seen, sizeof va.novelty->seen) != 0)
    fail_msg("%s, point %u: the tails differ", what, point);
}

/* What the kernel does between two points of all warps of a block that meet. */
void turn(station *s)
{
  const pass kind = pass_of(s);
  distances_begin(s, kind);
  distances_lags(s, kind);
  distances_rows(s, kind);
  distances_end(s);
  rate(s);
}

/* Whether the results of a point are the same. */
bool as_rated(const hk_novelty_result &a, const hk_novelty_result &b)
{
  return memcmp(&a.s, &b.s, sizeof a.s) == 0 && memcmp(&a.severity, &b.severity, sizeof a.severity) == 0 &&
         a.channel == b.channel && a.distance == b.distance && a.usual == b.usual;
}

/* Runs of `most` points (0: of 1 to HK_RUN, at random). */
void passes_match(const char *keys, uint32_t most, uint32_t points)
{
  hk_detector d;
  char error[200];
  assert_int_equal(hk_detector_parse(keys, &d, error, sizeof error), 0);
  sensor plain(d), emulated(d);
  signal one = { 7 }, other = { 7 }, sizes = { most + 1 };
  static station station;
  uint32_t runs = 0, lone = 0, large = 0;
  for (uint32_t done = 0; done < points; runs++) {
    const uint32_t want = most > 0 ? most : 1 + sizes.random(HK_RUN);
    hk_novelty_point expected[HK_RUN];
    const uint32_t n = take(plain, one, want, expected);
    const struct hk_novelty_view v = hk_cuda_novelty(plain.record, &plain.detector);
    hk_novelty_pass_plain(&v, hk_cuda_ring(plain.record, &plain.detector), expected, n);
    memset(&station, 0x5a, sizeof station);
    station.task.record = emulated.record;
    station.view = hk_cuda_novelty(emulated.record, &emulated.detector);
    station.n = take(emulated, other, want, station.point);
    assert_int_equal(station.n, n);
    emulated_warp::run([&] { turn(&station); });
    for (uint32_t k = 0; k < n; k++) {
      const hk_novelty_point *p = &expected[k], *q = &station.point[k];
      for (uint32_t c = 0; c < HK_NOVELTY_CHANNELS; c++)
        if (p->has[c] && __float_as_uint(p->nearest[c]) != __float_as_uint(q->nearest[c]))
          fail_msg("%s, run %u of %u points, point %u, distance %u: %.9g, not %.9g", keys, runs, n, done + k, c,
                   (double)q->nearest[c], (double)p->nearest[c]);
      if (p->has[HK_NOVELTY_SHAPE] && p->lag != q->lag)
        fail_msg("%s, run %u of %u points, point %u: lag %u, not %u", keys, runs, n, done + k, q->lag, p->lag);
      const hk_novelty_result wanted = hk_novelty_rate(v.novelty, p), got = rate_result(&station, k);
      if (!as_rated(wanted, got))
        fail_msg("%s, run %u of %u points, point %u: S %.17g of channel %u, not %.17g of %u", keys, runs, n, done + k, got.s,
                 got.channel, wanted.s, wanted.channel);
      large += wanted.distance > wanted.usual && wanted.s > 0;
    }
    same(plain, emulated, keys, done);
    done += n;
    lone += n == 1;
  }
  print_message("# %s: %u points in %u runs, %u of one point; %u distances larger than usual\n", keys, points, runs, lone, large);
  assert_true(large > points / 1000);
}

void lone_points(void **)
{
  passes_match("algorithm=novelty,interval=1s,resident=1000", 1, 3000);
  passes_match("algorithm=novelty,interval=1s,resident=1003", 1, 3000);
}

void runs_of_points(void **)
{
  passes_match("algorithm=novelty,interval=1s,resident=1000", 0, 6000);
  passes_match("algorithm=novelty,interval=1s,resident=1001", 0, 6000);
  passes_match("algorithm=novelty,interval=1s,resident=1002", HK_RUN, 6000);
  passes_match("algorithm=novelty,interval=1s,resident=1024", 2, 4000);
}

void values_alone(void **)
{
  passes_match("algorithm=novelty,channels=value,interval=1s,resident=1000", 1, 2000);
  passes_match("algorithm=novelty,channels=value,interval=1s,resident=1002", 0, 3000);
}

void largest_ring(void **)
{
  passes_match("algorithm=novelty,interval=1s", 0, 12000);
}

/* Lags all of whose variances are infinite, which no points leave and no state has that is taken: not even of these is one looked
 * for where there is none. */
void infinite_variances(void **)
{
  hk_detector d;
  char error[200];
  assert_int_equal(hk_detector_parse("algorithm=novelty,interval=1s,resident=1000", &d, error, sizeof error), 0);
  sensor s(d);
  const size_t bytes = hk_cuda_record_bytes(&d);
  s.memory.resize(s.memory.size() + 100, float4{ -1, -1, -1, -1 });
  s.record = (hk_cuda_record *)s.memory.data();
  memset((char *)s.record + bytes, 0x5a, s.memory.size() * sizeof(float4) - bytes);
  const std::vector<unsigned char> behind(s.memory.size() * sizeof(float4) - bytes, 0x5a);
  signal from = { 7 };
  static station station;
  for (uint32_t done = 0; done < 1200; done += station.n) {
    station.task.record = s.record;
    station.view = hk_cuda_novelty(s.record, &s.detector);
    station.n = take(s, from, done % 3 == 0 ? 1 : HK_FEW, station.point);
    if (done > 1100) {
      for (uint32_t i = 0; i < hk_novelty_lags(&d); i++)
        station.view.variance[i] = INFINITY;
      for (uint32_t g = 0; g < hk_lag_groups(&d); g++)
        hk_cuda_lag_groups(s.record, &d)[g].least = INFINITY;
    }
    emulated_warp::run([&] { turn(&station); });
    assert_memory_equal((char *)s.record + bytes, behind.data(), behind.size());
    for (uint32_t k = 0; k < station.n; k++)
      assert_true(!station.point[k].has[HK_NOVELTY_SHAPE] ||
                  (station.point[k].lag >= HK_NOVELTY_LAG_MIN && station.point[k].lag <= hk_novelty_lag_max(&d)));
  }
}

} // namespace

int main()
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(lone_points),  cmocka_unit_test(runs_of_points),     cmocka_unit_test(values_alone),
    cmocka_unit_test(largest_ring), cmocka_unit_test(infinite_variances),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
