/* Many band systems: a thread to each where they lie side by side, else a warp to each. */
#include "gpu/band/band_kernels.h"
#include "gpu/band/warp_solve.cuh"

#include <cuda_runtime_api.h>

#define HK_BAND_THREADS 32u /* so that few systems still spread over all multiprocessors */

struct band_batch {
  struct hk_band_shape shape;
  const double *a, *b;
  double *x, *done, *residual;
  struct hk_band_outcome *outcome;
};

template <int K> static __global__ void __launch_bounds__(HK_BAND_THREADS) by_thread(const __grid_constant__ band_batch all)
{
  __shared__ double ring[HK_BAND_AHEAD * HK_BAND_THREADS];
  const hk_band_shape &s = all.shape;
  const uint32_t system = blockIdx.x * HK_BAND_THREADS + threadIdx.x, lanes = hk_band_lanes(&s);
  if (system >= s.systems)
    return;
  const size_t at = hk_band_of(&s, system, 0);
  const hk_band_stored<K> rows = {
    s.n, s.below, s.above, lanes, all.a + hk_band_place(lanes, system, 0, (size_t)s.n * hk_band_width(&s)), all.b + at, nullptr,
  };
  const hk_band_thread t = { s.n,
                             lanes,
                             all.done + hk_band_place(lanes, system, 0, (size_t)s.n * hk_band_done<K>),
                             all.x + at,
                             all.residual + at,
                             ring + threadIdx.x };
  all.outcome[system] = hk_band_thread_solve(t, rows);
}

template <int K> static __global__ void __launch_bounds__(32) by_warp(const __grid_constant__ band_batch all)
{
  const hk_band_shape &s = all.shape;
  const uint32_t system = blockIdx.x;
  const size_t at = hk_band_of(&s, system, 0);
  const hk_band_warp<K> warp = {
    s.n,
    s.below,
    s.above,
    threadIdx.x,
    all.a + hk_band_place(1, system, 0, (size_t)s.n * hk_band_width(&s)),
    all.b + at,
    all.done + (size_t)system * s.n * hk_band_done<K>,
    all.x + at,
    all.residual + at,
  };
  const hk_band_outcome out = warp.solve();
  if (threadIdx.x == 0)
    all.outcome[system] = out;
}

/* The number of diagonals on each side that a kernel is compiled for, at least 1. */
static uint32_t half_of(const hk_band_shape *s)
{
  const uint32_t half = s->below > s->above ? s->below : s->above;
  return half <= 1 ? 1 : half <= HK_BAND_SIDE_BY_SIDE ? half : half <= 8 ? 8 : HK_BAND_THIN;
}

uint32_t hk_band_kept(const hk_band_shape *s)
{
  return 2 * half_of(s) + 2;
}

int hk_band_launch(const hk_band_shape *s, const double *a, const double *b, double *x, hk_band_outcome *outcome, double *done,
                   double *residual, CUstream_st *stream)
{
  const band_batch all = { *s, a, b, x, done, residual, outcome };
  const uint32_t blocks = (s->systems + HK_BAND_THREADS - 1) / HK_BAND_THREADS;
  switch (half_of(s)) {
  case 1:
    by_thread<1><<<blocks, HK_BAND_THREADS, 0, stream>>>(all);
    break;
  case 2:
    by_thread<2><<<blocks, HK_BAND_THREADS, 0, stream>>>(all);
    break;
  case 3:
    by_thread<3><<<blocks, HK_BAND_THREADS, 0, stream>>>(all);
    break;
  case 4:
    by_thread<4><<<blocks, HK_BAND_THREADS, 0, stream>>>(all);
    break;
  case 8:
    by_warp<8><<<s->systems, 32, 0, stream>>>(all);
    break;
  default:
    by_warp<16><<<s->systems, 32, 0, stream>>>(all);
  }
  return cudaGetLastError();
}
