/* Band matrices as the CUDA kernels solve them: a thread to a system, and a warp to one, which is emulated. Backward errors of
 * many shapes and kinds of systems, and singular ones told with the column that LAPACK has. */
#include "tests/backend/emulated_warp.h"

#include "gpu/band/warp_solve.cuh"
#include "gpu/model/pipes_step.cuh"
#include "tests/backend/band_cases.h"

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <setjmp.h>

extern "C" {
#include <cmocka.h>
}

namespace
{

template <int K> hk_band_outcome by_thread(band_case &c, uint32_t system)
{
  const hk_band_shape &s = c.shape;
  const size_t stride = hk_band_lanes(&s), at = hk_band_of(&s, system, 0);
  std::vector<double> done((size_t)s.n * hk_band_done<K> * stride, NAN), residual(s.n * stride, NAN),
      ring(HK_BAND_AHEAD * 32, NAN);
  const size_t matrix = hk_band_place(stride, system, 0, (size_t)s.n * hk_band_width(&s));
  const hk_band_stored<K> rows = { s.n, s.below, s.above, stride, c.a + matrix, c.b + at, nullptr };
  const hk_band_thread t = { s.n, stride, done.data(), c.x + at, residual.data(), ring.data() };
  return hk_band_thread_solve(t, rows);
}

template <int K> hk_band_outcome by_warp(band_case &c, uint32_t system)
{
  const hk_band_shape &s = c.shape;
  std::vector<double> done((size_t)s.n * hk_band_done<K>, NAN), residual(s.n, NAN);
  hk_band_outcome outcome[32];
  emulated_warp::run([&] {
    const hk_band_warp<K> warp = { s.n,
                                   s.below,
                                   s.above,
                                   threadIdx.x,
                                   c.a + hk_band_place(1, system, 0, (size_t)s.n * hk_band_width(&s)),
                                   c.b + hk_band_of(&s, system, 0),
                                   done.data(),
                                   c.x + hk_band_of(&s, system, 0),
                                   residual.data() };
    outcome[threadIdx.x] = warp.solve();
  });
  for (const hk_band_outcome &o : outcome)
    if (memcmp(&o, outcome, sizeof o) != 0)
      fail_msg("lanes do not agree");
  return outcome[0];
}

void solve(band_case &c, uint32_t system)
{
  const uint32_t half = std::max(c.shape.below, c.shape.above);
  hk_band_outcome &o = c.outcome[system];
  switch (half) {
  case 0:
  case 1:
    o = by_thread<1>(c, system);
    break;
  case 2:
    o = by_thread<2>(c, system);
    break;
  case 3:
    o = by_thread<3>(c, system);
    break;
  case 4:
    o = by_thread<4>(c, system);
    break;
  default:
    o = half <= 8 ? by_warp<8>(c, system) : by_warp<16>(c, system);
  }
}

void every_shape_and_kind(void **)
{
  uint32_t solved = 0;
  for (size_t k = 0; k < BAND_SHAPE_COUNT; k++)
    for (int kind = 0; kind < BAND_KINDS; kind++) {
      band_case c;
      if (!band_suits(&BAND_SHAPES[k], (band_kind)kind))
        continue;
      assert_true(band_make(&c, BAND_SHAPES[k], (band_kind)kind, 1000 * k + kind));
      const bool warp =
          std::max(c.shape.below, c.shape.above) > HK_BAND_SIDE_BY_SIDE; /* each lies by itself, and one is slow enough */
      for (uint32_t i = warp ? c.shape.systems - 1 : 0; i < c.shape.systems; i++) {
        solve(c, i);
        const char *fault = band_fault(&c, i);
        if (fault)
          fail_msg("shape %zu, kind %d, system %u: %s (%.2f eps, said %.2f)", k, kind, i, fault, band_error(&c, i),
                   c.outcome[i].error / 2.220446049250313e-16);
        solved += c.outcome[i].status == 0;
      }
      band_drop(&c);
    }
  assert_true(solved > 1000);
}

void what_is_not_finite(void **)
{
  for (uint32_t half : { 2u, 8u }) {
    band_case c;
    const hk_band_shape shape = { 3, 20, half, half };
    assert_true(band_make(&c, shape, BAND_DOMINANT, 9));
    c.b[hk_band_of(&shape, 1, 7)] = INFINITY;
    c.a[hk_band_at(&shape, 2, 4, 5)] = NAN;
    for (uint32_t i = 0; i < 3; i++)
      solve(c, i);
    assert_int_equal(c.outcome[0].status, 0);
    assert_int_equal(c.outcome[1].status, -ERANGE);
    assert_true(c.outcome[2].status != 0);
    band_drop(&c);
  }
}

/* Steps of a line of pipes, beside other lines, against the host's; equations that are singular or have no solution. */
void pipes(void **)
{
  for (uint32_t cells : { 1u, 2u, 3u, 10u, 37u, 400u }) {
    const uint32_t n = 2 * cells + 2;
    std::vector<hk_pipeline_cell> cell(cells);
    std::vector<double> side(cells * HK_PIPES_CELL * HK_PIPES_STRIDE, NAN), state(n * HK_PIPES_STRIDE, NAN), next(state),
        change(state), residual(state), done((size_t)n * hk_band_done<2> * HK_PIPES_STRIDE, NAN), ring(HK_BAND_AHEAD * 32, NAN);
    for (uint32_t j = 0; j < cells; j++) {
      cell[j] = { 10 + 0.1 * (j % 7), 9 + 0.1 * (j % 5), 0.1, 1e-3 * (j % 3) };
      const double number[] = { cell[j].wave, cell[j].push, cell[j].friction, cell[j].lift };
      for (uint32_t k = 0; k < HK_PIPES_CELL; k++)
        side[(j * HK_PIPES_CELL + k) * HK_PIPES_STRIDE] = number[k];
    }
    const hk_pipes_line line = { cells,           4e6,         side.data(), state.data(), next.data(), change.data(),
                                 residual.data(), done.data(), ring.data() };
    struct hk_pipeline host;
    assert_int_equal(hk_pipeline_open(&host, cell.data(), cells, 4e6), 0);
    for (uint32_t i = 0; i < n; i++)
      state[i * HK_PIPES_STRIDE] = host.state[i] = i % 2 ? 0.3 : 0.5;
    for (uint32_t k = 0; k < 50; k++) {
      const hk_pipeline_end end[2] = { { 1, 0, 0, 3e6 + 1e5 * sin(k) },
                                       { k % 2 ? 1.0 : 0.0, k % 2 ? 0.0 : 1.0, 0, k % 2 ? 2e6 : 0.3 } };
      const hk_pipeline_end wrong[2] = { { 1, 0, 0, 1e300 }, end[1] }, none[2] = { { 0, 0, 0, 0 }, end[1] };
      const std::vector<double> before = state;
      uint32_t singular = UINT32_MAX;
      assert_int_equal(hk_pipes_step(line, wrong, 1, 1.1, &singular), hk_pipeline_step(&host, wrong, nullptr, 1, 1.1));
      assert_int_equal(hk_pipes_step(line, none, 1, 1.1, &singular), hk_pipeline_step(&host, none, nullptr, 1, 1.1));
      assert_int_equal(singular, host.singular);
      for (uint32_t i = 0; i < n; i++)
        assert_true(state[i * HK_PIPES_STRIDE] == before[i * HK_PIPES_STRIDE]);
      assert_int_equal(hk_pipes_step(line, end, 1, 1.1, &singular), 0);
      assert_int_equal(hk_pipeline_step(&host, end, nullptr, 1, 1.1), 0);
      for (uint32_t i = 0; i < n; i++)
        if (!(fabs(state[i * HK_PIPES_STRIDE] - host.state[i]) <= 1e-11 * fmax(1, fabs(host.state[i]))))
          fail_msg("%u cells, step %u, number %u: %.17g for %.17g", cells, k, i, state[i * HK_PIPES_STRIDE], host.state[i]);
    }
    hk_pipeline_close(&host);
    for (uint32_t i = 0; i < n * HK_PIPES_STRIDE; i++)
      if (i % HK_PIPES_STRIDE)
        assert_true(isnan(state[i]) && isnan(next[i]) && isnan(change[i]) && isnan(residual[i]));
  }
}

} // namespace

int main()
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_shape_and_kind),
    cmocka_unit_test(what_is_not_finite),
    cmocka_unit_test(pipes),
  };
  return cmocka_run_group_tests_name("band solve, emulated", tests, nullptr, nullptr);
}
