/* Points as a batch of the CUDA kernels has them, and what a warp does with the runs that the rounds leave of a task
 * (run_rest.cuh): the same as the plain passes and rules do point by point. Include it behind emulated_warp.h. */
#ifndef HK_NOVELTY_REST_H
#define HK_NOVELTY_REST_H

#include "gpu/novelty/run_rest.cuh"

#include "tests/backend/emulated_sensor.h"

#include <cstdarg>
#include <cstddef>
#include <setjmp.h>

extern "C" {
#include <cmocka.h>
}

/* Points as a batch has them. */
struct batch {
  std::vector<int64_t> time;
  std::vector<double> value;
  std::vector<uint32_t> order;

  void add(int64_t at, double x)
  {
    order.push_back((uint32_t)time.size());
    time.push_back(at);
    value.push_back(x);
  }
};

/* A launch over a batch, whose results go to score and state: one for each point. */
static inline hk_cuda_launch launch_over(batch &b, std::vector<float> &score, std::vector<uint8_t> &state)
{
  hk_cuda_launch l = {};
  l.columns.time = b.time.data();
  l.columns.value = b.value.data();
  l.columns.order = b.order.data();
  l.columns.score = score.data();
  l.columns.state = state.data();
  return l;
}

/* A batch of one grown sensor, and its results. */
struct rest {
  emulated_sensor s;
  std::vector<float> score;
  std::vector<uint8_t> state;
  std::vector<hk_event> events;

  rest(const emulated_sensor &grown, uint32_t points) : s(grown), score(points, -1), state(points, 0x5a)
  {
    s.record = (hk_cuda_record *)s.memory.data();
  }

  /* By the emulated warp. Returns the task as it is afterwards. */
  hk_cuda_task warp(batch &b)
  {
    static rest_desk desk;
    static struct run run;
    memset((void *)&desk, 0x5a, sizeof desk);
    memset((void *)&run, 0x5a, sizeof run);
    hk_cuda_launch l = launch_over(b, score, state);
    uint32_t n = 0;
    events.resize(b.time.size());
    l.columns.event = events.data();
    l.columns.n_events = &n;
    l.columns.capacity = (uint32_t)events.size();
    hk_cuda_task task = { s.record, 0, (uint32_t)b.time.size() };
    emulated_warp::run([&] { rest_runs(&desk, l, &run, &task, &s.detector); });
    events.resize(n);
    return task;
  }

  /* The first n points, one by one. */
  void plain(const batch &b, uint32_t n)
  {
    const struct hk_novelty_view v = hk_cuda_novelty(s.record, &s.detector);
    float *const ring = hk_cuda_ring(s.record, &s.detector);
    hk_lag_groups_bring(&v, hk_cuda_lag_groups(s.record, &s.detector), ring, s.record->window.head, hk_novelty_bring_plain);
    for (uint32_t i = 0; i < n; i++) {
      hk_novelty_point p;
      const hk_step step = hk_novelty_take(&v, &s.record->window, ring, b.time[i], b.value[i], 0, &p);
      state[i] = step.state;
      score[i] = NAN;
      if (step.state == HK_STATE_LATE || step.state == HK_STATE_REJECTED)
        continue;
      hk_novelty_pass_plain(&v, ring, &p, 1);
      const hk_novelty_result r = hk_novelty_rate(v.novelty, &p);
      if (step.score)
        score[i] = (float)hk_novelty_score(r.s);
      hk_event event;
      if (hk_novelty_decide(&s.record->alert, &v, &s.record->window, ring, &p, step, &r, &event)) {
        event.index = i;
        event.slot = s.record->slot;
        events.push_back(event);
      }
    }
  }
};

/* A task of n points after `time`, of which the first `none` do not count, and one before which a hole is (n: none has). Returns
 * the number of events. */
static inline size_t rest_matches(const emulated_sensor &grown, int64_t time, uint32_t n, uint32_t none, uint32_t hole)
{
  batch b;
  for (uint32_t i = 0; i < n; i++) {
    const bool late = i < none || i % 13 == 9;
    time += INT64_C(1000000000) * (i == hole ? 300 : late ? 0 : 1);
    b.add(late ? time - INT64_C(5000000000) : time, i % 17 == 4 ? (double)NAN : 1e6 + (i % 40 > 20 ? 700 + 13 * i % 40 : i % 7));
  }
  rest warp(grown, n), plain(grown, n);
  const hk_cuda_task left = warp.warp(b);
  assert_int_equal(left.first + left.count, n);
  assert_true(left.first == hole || (left.first < hole && left.count <= 1));
  plain.plain(b, left.first);
  assert_memory_equal(warp.state.data(), plain.state.data(), n);
  for (uint32_t i = 0; i < n; i++)
    if (__float_as_uint(warp.score[i]) != __float_as_uint(plain.score[i]))
      fail_msg("point %u of %u: score %.9g, not %.9g", i, n, (double)warp.score[i], (double)plain.score[i]);
  assert_int_equal(warp.events.size(), plain.events.size());
  for (size_t i = 0; i < plain.events.size(); i++) {
    const hk_event &a = plain.events[i], &e = warp.events[i];
    assert_true(a.index == e.index && a.time == e.time && a.severity == e.severity);
    assert_memory_equal(&a.novelty, &e.novelty, sizeof a.novelty);
  }
  assert_memory_equal(&warp.s.record->alert, &plain.s.record->alert, sizeof plain.s.record->alert);
  assert_memory_equal(&warp.s.record->window, &plain.s.record->window, sizeof plain.s.record->window);
  assert_memory_equal(hk_cuda_ring(warp.s.record, &warp.s.detector), hk_cuda_ring(plain.s.record, &plain.s.detector),
                      hk_detector_span(&plain.s.detector) * sizeof(float));
  return plain.events.size();
}

#endif
