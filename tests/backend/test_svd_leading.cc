/* The leading eigenpairs that the CUDA kernel of SVD-SST finds (gpu/sst/svd.cuh), by a warp that is emulated, against LAPACK:
 * sizes, products with a given vector, and the first vector; with solver = krylov and full, whose T has as many rows as the
 * window: there components of leading vectors fall far below what a double holds. */
#include "tests/backend/emulated_warp.h"

#include "gpu/sst/span.cuh"
#include "gpu/sst/svd.cuh"

#include <cstdarg>
#include <cstddef>
#include <lapacke.h>
#include <setjmp.h>

extern "C" {
#include <cmocka.h>
}

namespace
{

/* Sample i of signal `kind`. */
double sample(uint32_t kind, uint32_t i)
{
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  const double noise = (double)(state >> 40) * 0x1p-24 - 0.5;
  switch (kind) {
  case 0: /* smooth: T falls off at once */
    return sin(0.11 * i) + 0.3 * cos(0.031 * i) + 1e-4 * noise;
  case 1:
    return noise;
  case 2: /* a step */
    return (i > 100) + 1e-3 * noise;
  default:
    return 0.01 * i + sin(0.7 * i) + 0.05 * noise;
  }
}

/* Eigenvalues and vectors of the Hankel matrix of x, the largest by magnitude first. */
void lapack(uint32_t w, const std::vector<float> &x, std::vector<double> *sizes, std::vector<double> *vectors)
{
  std::vector<double> h(w * w), values(w);
  for (uint32_t i = 0; i < w; i++)
    for (uint32_t j = 0; j < w; j++)
      h[i * w + j] = (double)x[i + j];
  assert_int_equal(LAPACKE_dsyev(LAPACK_COL_MAJOR, 'V', 'U', (int)w, h.data(), (int)w, values.data()), 0);
  std::vector<uint32_t> order(w);
  for (uint32_t i = 0; i < w; i++)
    order[i] = i;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return fabs(values[a]) > fabs(values[b]); });
  for (uint32_t i : order) {
    sizes->push_back(fabs(values[i]));
    vectors->insert(vectors->end(), &h[i * w], &h[i * w] + w);
  }
}

/* Compares sizes of singular values and products with their vectors with LAPACK's; mu: the first vector. */
void compare(uint32_t w, uint32_t rank, bool full, uint32_t kind, const std::vector<float> &x, float top, const double *size,
             const double *product, const float *given, const float *mu)
{
  std::vector<double> sizes, vectors;
  lapack(w, x, &sizes, &vectors);
  const double factor = (double)__uint_as_float((253u << 23) - (__float_as_uint(top) & 0x7f800000u)); /* as samples were scaled */
  double along_mu = 0;
  for (uint32_t e = 0; e < w; e++)
    along_mu += (double)mu[e] * vectors[e];
  if (!(fabs(fabs(along_mu) - 1) < 1e-5))
    fail_msg("w = %u, rank %u, %s, signal %u: the first vector times LAPACK's is %g", w, rank, full ? "full" : "krylov", kind,
             along_mu);
  for (uint32_t i = 0; i < rank; i++) {
    double expected = 0;
    for (uint32_t e = 0; e < w; e++)
      expected += (double)given[e] * vectors[i * w + e];
    const double gap = fmin(i > 0 ? sizes[i - 1] - sizes[i] : sizes[0], sizes[i] - sizes[i + 1]) / sizes[0];
    if (!(fabs(size[i] - factor * sizes[i]) <= 1e-5 * factor * sizes[0]))
      fail_msg("w = %u, rank %u, %s, signal %u: size %u is %g, not %g", w, rank, full ? "full" : "krylov", kind, i, size[i],
               factor * sizes[i]);
    if (gap > 1e-3 && !(fabs(fabs(product[i]) - fabs(expected)) <= 1e-4))
      fail_msg("w = %u, rank %u, %s, signal %u: product %u is %g, not %g", w, rank, full ? "full" : "krylov", kind, i, product[i],
               expected);
  }
}

template <int R> void leading_match(uint32_t w, uint32_t rank, bool full, uint32_t kind)
{
  std::vector<float> x(2 * w - 1);
  for (uint32_t i = 0; i < x.size(); i++)
    x[i] = (float)sample(kind, i);
  hk_detector d = {};
  d.window = w;
  d.scale = HK_SCALE_BASELINE;
  std::vector<float4> group(hk_group<R, HK_WARP>::size / 4 + 1);
  std::vector<double2> t(w + HK_ROWS_AT_ONCE);
  std::vector<float> along(w);
  std::vector<float2> basis((size_t)w * R / 2 * HK_WARP);
  float mu[R * HK_WARP] = {}, given[R * HK_WARP] = {}, top = 0;
  double size[HK_WARP], product[HK_WARP];
  emulated_warp::run([&] {
    const uint32_t lane = threadIdx.x;
    hk_svd_room<R> room;
    room.g.lane = lane;
    room.g.window = w;
    room.g.room = (float *)group.data();
    room.t = t.data();
    room.along = along.data();
    room.basis = basis.data() + lane;
    const hk_span span = { x.data(), 0, (uint32_t)x.size(), 0, 0 };
    float energy, held = 0, mine, a[R], v[R];
    hk_span_lay_out(room.g, span, d, 0, false, &energy, &mine, &held);
    hk_svd_random(room, 11, 0, a);
    for (int e = 0; e < R; e++)
      v[e] = a[e];
    const hk_svd_search search = { rank, full, true, 6, 0.5f, 0x1p-22f, 0x1p-16f };
    const hk_leading pair = hk_svd_leading(room, search, 11, a, v);
    size[lane] = pair.size;
    product[lane] = pair.along;
    top = mine;
    for (int e = 0; e < R; e++) {
      given[lane * R + (uint32_t)e] = a[e];
      mu[lane * R + (uint32_t)e] = v[e];
    }
  });
  compare(w, rank, full, kind, x, top, size, product, given, mu);
}

void pairs_match(void **)
{
  for (int full = 0; full < 2; full++)
    for (uint32_t kind = 0; kind < 4; kind++) {
      leading_match<2>(17, 3, full, kind);
      leading_match<2>(48, 5, full, kind);
      leading_match<6>(129, 5, full, kind);
      if (kind % 2 == 0)
        leading_match<10>(320, 12, full, kind);
    }
}

} // namespace

int main()
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(pairs_match) };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
