/* The CUDA kernel's passes of algorithm = novelty and its ratings, by a warp that is emulated: least distances, lags, V and M are
 * those of cpu/novelty/distances.h, results and tails those of cpu/novelty/tail.h, bit for bit, however points come in runs: with
 * rings that have gone round, young sensors, long holes, values that repeat, and NaN and late points between. */

#include "tests/backend/emulated_warp.h"

#include "gpu/novelty/passes.cuh"
#include "gpu/novelty/run_bundle.cuh"
#include "gpu/novelty/run_lags.cuh"
#include "gpu/novelty/run_pass.cuh"

#include "tests/backend/novelty_rest.h"

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

/* Takes up to `most` points that count, in one run: the point at which lags start over is the first of one. fed: all points that
 * were taken. */
uint32_t take(sensor &s, signal &from, uint32_t most, hk_novelty_point *points, batch *fed)
{
  const struct hk_novelty_view v = hk_cuda_novelty(s.record, &s.detector);
  uint32_t n = 0;
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
    fed->add(time, value);
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
  hk_lag_groups_bring(&vb, hk_cuda_lag_groups(late, &b.detector), hk_cuda_ring(late, &b.detector), late->window.head,
                      hk_novelty_bring_plain);
  const size_t bytes = hk_novelty_lags(&a.detector) * sizeof(float);
  if (memcmp(va.variance, vb.variance, bytes) != 0 || memcmp(va.mean, vb.mean, bytes) != 0)
    fail_msg("%s, point %u: V or M of a lag differ", what, point);
  if (memcmp(va.novelty->tail, vb.novelty->tail, sizeof va.novelty->tail) != 0 ||
      memcmp(va.novelty->seen, vb.novelty->seen, sizeof va.novelty->seen) != 0)
    fail_msg("%s, point %u: the tails differ", what, point);
}

/* What the kernels do with a run that takes all points of a batch, but for one that is added after a hole. */
struct run_kernels {
  struct run run;
  struct turn turn;
  take_desk taking;
  rows_desk rows;
  lags_desk<3> few;
  lags_desk<1> many;
  rate_desk<HK_RUN> rates;

  /* Takes a run. Returns how many points were taken; 0: they make none. */
  uint32_t take(sensor &s, batch b)
  {
    std::vector<float> score(b.time.size());
    std::vector<uint8_t> state(b.time.size());
    hk_cuda_launch l = launch_over(b, score, state);
    const hk_cuda_task task = { s.record, 0, (uint32_t)b.order.size() };
    memset((void *)this, 0x5a, sizeof *this);
    uint32_t taken[emulated_warp::lanes];
    bool fits = false;
    emulated_warp::run([&] {
      bool mine = threadIdx.x == 5 && task.count > 1;
      take_copy(&taking, mine, s.record, &s.detector, false);
      mine = mine && take_fits(&taking, l, task, &s.detector);
      fits |= mine;
      taken[threadIdx.x] = take_runs(&taking, l, mine, mine ? task : hk_cuda_task{}, &s.detector, mine ? &run : nullptr);
    });
    if (!fits)
      return 0;
    for (uint32_t k = 0; k < run.n; k++)
      assert_true(run.point[k].step.state == state[run.point[k].index] && b.time[run.point[k].index] == run.point[k].time);
    return taken[5];
  }

  /* Returns whether the points make a run. */
  bool go(sensor &s, batch b)
  {
    const uint32_t whole = (uint32_t)b.time.size();
    if (whole > 1 && s.record->window.holes + 1 < HK_HOLES_MANY)
      b.add(*std::max_element(b.time.begin(), b.time.end()) + INT64_C(300000000000), 1e6);
    const uint32_t taken = take(s, b);
    if (taken == 0)
      return false;
    assert_int_equal(taken, whole);
    turn = { run.record, hk_cuda_novelty(run.record, run.detector), run.point, run.n };
    emulated_warp::run([&] {
      run_values(&run);
      run_rows(&run, &rows);
    });
    if (!hk_novelty_value_alone(&s.detector))
      emulated_warp::run([&] {
        if (run.n <= HK_FEW || run.point->at % 3 == 0) /* as the rest of a task has them, whatever its points */
          lags_pass(&turn, &few);
        else
          run_lags(&turn, &many);
      });
    emulated_warp::run([&] {
      distances_end(&turn, &rates);
      rate(&turn, &rates);
    });
    return true;
  }
};

/* What the kernel for points one by one does with points that were taken: a part of them at a time. */
struct lone_kernel {
  struct station station;

  /* Returns how many of n points were processed. */
  uint32_t go(sensor &s, const hk_novelty_point *points, uint32_t n)
  {
    memset((void *)&station, 0x5a, sizeof station);
    n = turn_grown(&s.detector, points) ? 1 : std::min(n, HK_YOUNG);
    for (uint32_t k = 0; k < n; k++)
      (hk_novelty_point &)station.point[k] = points[k];
    station.turn = { s.record, hk_cuda_novelty(s.record, &s.detector), station.point, n };
    emulated_warp::run([&] {
      station_passes(&station);
      distances_end(&station.turn, &station.rates);
      rate(&station.turn, &station.rates);
    });
    return n;
  }
};

/* Whether the results of a point are the same. */
bool as_rated(const hk_novelty_result &a, const hk_novelty_result &b)
{
  return memcmp(&a.s, &b.s, sizeof a.s) == 0 && memcmp(&a.severity, &b.severity, sizeof a.severity) == 0 &&
         a.channel == b.channel && a.distance == b.distance && a.usual == b.usual;
}

/* Points, and their results by the emulated warp, against those of the plain passes. */
void points_match(const char *keys, const struct hk_novelty_view &v, const hk_novelty_point *expected, const struct taken *got,
                  uint32_t n, const std::function<hk_novelty_result(uint32_t)> &rated, uint32_t done, uint32_t *large)
{
  for (uint32_t k = 0; k < n; k++) {
    const hk_novelty_point *p = &expected[k], *q = &got[k];
    for (uint32_t c = 0; c < HK_NOVELTY_CHANNELS; c++)
      if (p->has[c] && __float_as_uint(p->nearest[c]) != __float_as_uint(q->nearest[c]))
        fail_msg("%s, point %u of %u from %u, distance %u: %.9g, not %.9g", keys, k, n, done, c, (double)q->nearest[c],
                 (double)p->nearest[c]);
    if (p->has[HK_NOVELTY_SHAPE] && p->lag != q->lag)
      fail_msg("%s, point %u of %u from %u: lag %u, not %u", keys, k, n, done, q->lag, p->lag);
    const hk_novelty_result wanted = hk_novelty_rate(v.novelty, p), result = rated(k);
    if (!as_rated(wanted, result))
      fail_msg("%s, point %u of %u from %u: S %.17g of channel %u, not %.17g of %u", keys, k, n, done, result.s, result.channel,
               wanted.s, wanted.channel);
    *large += wanted.distance > wanted.usual && wanted.s > 0;
  }
}

/* Runs of `most` points (0: of 1 to HK_RUN, at random). */
void passes_match(const char *keys, uint32_t most, uint32_t points)
{
  hk_detector d;
  char error[200];
  assert_int_equal(hk_detector_parse(keys, &d, error, sizeof error), 0);
  sensor plain(d), emulated(d);
  signal one = { 7 }, sizes = { most + 1 };
  static run_kernels several;
  static lone_kernel single;
  uint32_t runs = 0, lone = 0, large = 0;
  for (uint32_t done = 0; done < points;) {
    const uint32_t want = most > 0 ? most : 1 + sizes.random(HK_RUN);
    hk_novelty_point expected[HK_RUN], taken[HK_RUN];
    batch fed;
    if (one.points % 3 == 0) /* as if holes were rare */
      plain.record->window.holes = emulated.record->window.holes = 0;
    const uint32_t n = take(plain, one, want, expected, &fed);
    const struct hk_novelty_view v = hk_cuda_novelty(plain.record, &plain.detector);
    hk_novelty_pass_plain(&v, hk_cuda_ring(plain.record, &plain.detector), expected, n);
    if (several.go(emulated, fed)) {
      assert_int_equal(several.run.n, n);
      points_match(
          keys, v, expected, several.run.point, n, [&](uint32_t k) { return rate_result(&several.turn, &several.rates, k); },
          done, &large);
      runs++;
    } else {
      const struct hk_novelty_view w = hk_cuda_novelty(emulated.record, &emulated.detector);
      uint32_t k = 0;
      for (uint32_t i = 0; i < fed.time.size(); i++) {
        const hk_step step = hk_novelty_take(&w, &emulated.record->window, hk_cuda_ring(emulated.record, &emulated.detector),
                                             fed.time[i], fed.value[i], fed.time[i], &taken[k]);
        k += step.state != HK_STATE_LATE && step.state != HK_STATE_REJECTED;
      }
      assert_int_equal(k, n);
      for (uint32_t at = 0, part; at < n; at += part) {
        part = single.go(emulated, taken + at, n - at);
        points_match(
            keys, v, expected + at, single.station.point, part,
            [&](uint32_t j) { return rate_result(&single.station.turn, &single.station.rates, j); }, done + at, &large);
        lone += part == 1;
      }
    }
    same(plain, emulated, keys, done);
    done += n;
  }
  print_message("# %s: %u points, %u runs, %u points alone; %u distances larger than usual\n", keys, points, runs, lone, large);
  assert_true(large > points / 1000);
  assert_true(most == 1 ? runs < points / 100 : runs > points / HK_RUN / 4); /* also one of points of which but one counts */
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
  passes_match("algorithm=novelty,interval=1s,resident=1004", HK_FEW, 4000);
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
  static lone_kernel single;
  static run_kernels several;
  for (uint32_t done = 0, n; done < 1200; done += n) {
    const struct hk_novelty_view v = hk_cuda_novelty(s.record, &s.detector);
    hk_novelty_point points[HK_RUN];
    batch fed;
    if (done > 1100) {
      for (uint32_t i = 0; i < hk_novelty_lags(&d); i++)
        v.variance[i] = INFINITY;
      for (uint32_t g = 0; g < hk_lag_groups(&d); g++)
        hk_cuda_lag_groups(s.record, &d)[g].least = INFINITY;
    }
    const bool runs = done > 1100 && done % 3 != 0;
    if (runs) {
      hk_window after = s.record->window;
      int64_t time;
      double value;
      for (n = 0; n < 2 + done % 9; n++) {
        from.next(&time, &value);
        time = after.last_time += 1000000000;
        fed.add(time, 1e6);
      }
      from.time = time;
      assert_true(several.go(s, fed));
      std::copy(several.run.point, several.run.point + n, points);
    } else {
      n = take(s, from, done % 3 == 0 ? 1 : HK_YOUNG, points, &fed);
      for (uint32_t at = 0, part; at < n; at += part) {
        part = single.go(s, points + at, n - at);
        std::copy(single.station.point, single.station.point + part, points + at);
      }
    }
    assert_memory_equal((char *)s.record + bytes, behind.data(), behind.size());
    for (uint32_t k = 0; k < n; k++)
      assert_true(!points[k].has[HK_NOVELTY_SHAPE] ||
                  (points[k].lag >= HK_NOVELTY_LAG_MIN && points[k].lag <= hk_novelty_lag_max(&d)));
  }
}

/* Feeds points one by one until the sensor is grown. Returns the time of the last one. */
int64_t grow(sensor &s)
{
  static lone_kernel single;
  const struct hk_novelty_view v = hk_cuda_novelty(s.record, &s.detector);
  int64_t time = 0;
  for (uint32_t i = 0; i < 1300; i++) {
    hk_novelty_point point;
    time += 1000000000;
    (void)hk_novelty_take(&v, &s.record->window, hk_cuda_ring(s.record, &s.detector), time, 1e6 + i % 7, time, &point);
    assert_int_equal(single.go(s, &point, 1), 1);
  }
  return time;
}

/* A batch of a grown sensor that begins with a point that does not count, then has a hole: the run ends before the hole, as the
 * next points are young. */
void holes_after_none(void **)
{
  hk_detector d;
  char error[200];
  assert_int_equal(hk_detector_parse("algorithm=novelty,interval=1s,resident=1000", &d, error, sizeof error), 0);
  sensor s(d);
  static run_kernels several;
  const int64_t time = grow(s);
  const struct {
    int64_t later;
    double value;
  } first[] = { { INT64_C(-5000000000), 1e6 }, { 0, 1e6 }, { INT64_C(1000000000), (double)NAN } };
  for (const auto &f : first) {
    sensor copy(d);
    memcpy(copy.record, s.record, hk_cuda_record_bytes(&d));
    batch fed;
    fed.add(time + f.later, f.value);
    for (uint32_t k = 0; k < 8; k++)
      fed.add(time + INT64_C(1000000000) * (400 + k), 1e6 + k);
    assert_int_equal(several.take(copy, fed), 1);
    assert_int_equal(several.run.n, 0);
    fed.order.erase(fed.order.begin());
    assert_int_equal(several.take(copy, fed), 0); /* young after the hole: the kernel for points one by one has them */
  }
}

/* Tasks of which the rounds left several points, with events: up to a hole, or to the last point. */
void rests_of_tasks(void **)
{
  size_t events = 0;
  for (const char *keys :
       { "algorithm=novelty,interval=1s,resident=1000", "algorithm=novelty,channels=value,interval=1s,resident=1000" }) {
    hk_detector d;
    char error[200];
    assert_int_equal(hk_detector_parse(keys, &d, error, sizeof error), 0);
    sensor s(d);
    const int64_t time = grow(s);
    const struct {
      uint32_t points, none, hole;
    } tasks[] = { { 1, 0, 1 },    { 2, 0, 2 }, { HK_RUN + 1, 0, HK_RUN + 1 }, { 100, 0, 100 }, { 61, 0, 47 },
                  { 40, 25, 25 }, { 9, 0, 0 } };
    for (const auto &t : tasks)
      events += rest_matches(s, time, t.points, t.none, t.hole);
  }
  assert_true(events > 4);
}

/* The runs that a launch of one warp of the kernel KERNEL has, in their order. */
template <uint32_t KERNEL, runs_of OF> std::vector<run *> shared_out(const runs &all)
{
  std::vector<run *> out;
  emulated_warp::run([&] {
    share<KERNEL, OF> share(all);
    for (run *run; (run = share.begin()); share.end())
      if (threadIdx.x == 0)
        out.push_back(run);
  });
  return out;
}

/* Rounds of a bundle with room for one run of each kind: others wait for the next round, and nothing is lost. */
void full_rooms(void **)
{
  hk_detector d;
  char error[200];
  assert_int_equal(hk_detector_parse("algorithm=novelty,interval=1s,resident=1000", &d, error, sizeof error), 0);
  const uint32_t lane[] = { 2, 3, 9, 20, 21, 31 }, points[] = { 2, 1, HK_FEW, HK_FEW + 1, HK_RUN + 3, 2 };
  std::vector<sensor> sensors(6, sensor(d));
  int64_t time = 0;
  hk_cuda_task task[emulated_warp::lanes] = {};
  batch fed;
  for (uint32_t k = 0; k < 6; k++) {
    sensors[k].record = (hk_cuda_record *)sensors[k].memory.data();
    if (k < 5) /* the last one is young */
      time = grow(sensors[k]);
    task[lane[k]] = { sensors[k].record, (uint32_t)fed.order.size(), points[k] };
    for (uint32_t i = 0; i < points[k]; i++)
      fed.add(time + INT64_C(1000000000) * (1 + i), 1e6);
  }
  std::vector<float> score(fed.time.size());
  std::vector<uint8_t> state(fed.time.size());
  hk_cuda_launch l = launch_over(fed, score, state);
  static take_desk desk;
  static struct run room[4]; /* more than the launch is told */
  struct round rounds[5] = {};
  struct runs all = { rounds, room, nullptr, 1, true };
  const struct {
    uint32_t few, many; /* tasks that want a run */
    int first, then;    /* those that have one; -1: none */
    uint32_t left;      /* tasks with points left */
    uint32_t several;   /* of these, with several */
  } expected[] = { { 2, 2, 0, 3, 4, 3 }, { 1, 1, 2, 4, 3, 2 }, { 1, 0, 4, -1, 2, 1 }, { 0, 0, -1, -1, 2, 1 } };
  for (const auto &e : expected) {
    assert_false(!all.first && all.round[-1].few + all.round[-1].many == 0);
    emulated_warp::run([&] {
      hk_cuda_task *const mine = task[threadIdx.x].record ? &task[threadIdx.x] : nullptr;
      assert_false(runs_over(all));
      take_bundle(&desk, l, all, mine, &d);
    });
    assert_int_equal(all.round->few, e.few);
    assert_int_equal(all.round->many, e.many);
    assert_int_equal(all.round->left, e.left);
    assert_int_equal(all.round->several, e.several);
    const std::vector<run *> few = shared_out<2, RUNS_FEW>(all), many = shared_out<3, RUNS_MANY>(all),
                             both = shared_out<0, RUNS_ALL>(all);
    assert_true(few.size() == (e.first >= 0) && many.size() == (e.then >= 0) && both.size() == few.size() + many.size());
    if (e.first >= 0)
      assert_true(both[0] == few[0] && few[0]->record == sensors[e.first].record);
    if (e.then >= 0)
      assert_true(both.back() == many[0] && many[0]->record == sensors[e.then].record);
    all.round++;
    all.first = false;
  }
  emulated_warp::run([&] { assert_true(runs_over(all)); });
  assert_int_equal(all.round->left, 2); /* the single point and the young sensor's */
  assert_int_equal(all.round->several, 1);
  for (uint32_t k = 0; k < 6; k++)
    assert_int_equal(task[lane[k]].count, k == 1 ? 1 : k == 5 ? 2 : 0);
}

} // namespace

int main()
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(lone_points),    cmocka_unit_test(runs_of_points),     cmocka_unit_test(values_alone),
    cmocka_unit_test(largest_ring),   cmocka_unit_test(infinite_variances), cmocka_unit_test(holes_after_none),
    cmocka_unit_test(rests_of_tasks), cmocka_unit_test(full_rooms),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
