/* Band matrices as the CUDA kernels solve them: a thread to a system, and a warp to one, which is emulated. Backward errors of
 * many shapes and kinds of systems, and singular ones told with the column that LAPACK has. */
#include "tests/backend/emulated_warp.h"

#include "gpu/band/warp_solve.cuh"
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
  std::vector<double> done((size_t)s.n * hk_band_done<K> * stride, NAN), residual(s.n * stride, NAN);
  const size_t matrix = hk_band_place(stride, system, 0, (size_t)s.n * hk_band_width(&s));
  const hk_band_stored<K, 4> rows = { s.n, s.below, s.above, stride, c.a + matrix, c.b + at, nullptr };
  const hk_band_thread t = { s.n, stride, done.data(), c.x + at, residual.data() };
  return hk_band_thread_solve<hk_band_stored<K, 4>, 4>(t, rows);
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
      for (uint32_t i = 0; i < c.shape.systems; i++) {
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

} // namespace

int main()
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_shape_and_kind),
    cmocka_unit_test(what_is_not_finite),
  };
  return cmocka_run_group_tests_name("band solve, emulated", tests, nullptr, nullptr);
}
