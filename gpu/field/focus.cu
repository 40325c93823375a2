/* Focus, with the four passes of cpu/field/focus.h as four kernels: a thread is a sensor, or a place, and in the second and
 * fourth one of several rows, too. Threads of a warp are neighbours on the line, and so are what they read of a row of a ring,
 * since sensors that are evenly apart have the same lags. Passes one and three follow a sensor through the rows in their order.
 */
#include "gpu/field/focus_kernels.h"

#include <cuda_runtime_api.h>

#define THREADS 128u

/* The line as the passes of row `k` find it. */
static __device__ __forceinline__ struct hk_focus line_at(const struct hk_focus_rows &rows, uint32_t k)
{
  struct hk_focus f = rows.f;
  f.any |= k > 0;
  f.row = k > 0 ? rows.row + k - 1 : f.row;
  f.now.strength += (size_t)k * f.n * f.places;
  f.now.aimed += (size_t)k * f.n * f.places;
  f.now.top += (size_t)k * f.n;
  f.now.top_at += (size_t)k * f.n;
  f.now.value += k * rows.apart;
  f.now.blamed += k * rows.apart;
  return f;
}

static __global__ void __launch_bounds__(THREADS) focus_sense(const __grid_constant__ struct hk_focus_rows rows)
{
  const uint32_t j = blockIdx.x * THREADS + threadIdx.x;
  if (j < rows.rows)
    rows.most[j] = {};
  if (j >= rows.f.n)
    return;
  for (uint32_t k = 0; k < rows.rows; k++) {
    const struct hk_focus f = line_at(rows, k);
    hk_focus_sense(&f, rows.row + k, rows.x[(size_t)k * f.n + j], j);
  }
}

static __global__ void __launch_bounds__(THREADS) focus_aim(const __grid_constant__ struct hk_focus_rows rows)
{
  const uint32_t place = blockIdx.x * THREADS + threadIdx.x;
  if (place >= rows.f.n * rows.f.places)
    return;
  const struct hk_focus f = line_at(rows, blockIdx.y);
  hk_focus_aim(&f, rows.row + blockIdx.y, place);
}

static __global__ void __launch_bounds__(THREADS) focus_gather(const __grid_constant__ struct hk_focus_rows rows)
{
  const uint32_t j = blockIdx.x * THREADS + threadIdx.x;
  if (j >= rows.f.n)
    return;
  for (uint32_t k = 0; k < rows.rows; k++) {
    const struct hk_focus f = line_at(rows, k);
    hk_focus_gather(&f, rows.row + k, j);
  }
}

static __global__ void __launch_bounds__(THREADS) focus_judge(const __grid_constant__ struct hk_focus_rows rows)
{
  __shared__ uint32_t strongest;
  const uint32_t j = blockIdx.x * THREADS + threadIdx.x;
  struct hk_focus_most *most = &rows.most[blockIdx.y];
  if (threadIdx.x == 0)
    strongest = 0;
  __syncthreads();
  if (j < rows.f.n) {
    const struct hk_focus f = line_at(rows, blockIdx.y);
    hk_focus_judge(&f, rows.row + blockIdx.y, j);
    const float value = f.now.value[j];
    const uint32_t bits = __float_as_uint(value);
    if (value == value)
      atomicMax(&strongest, bits + 1);
    if (hk_focus_finds(&f, rows.row + blockIdx.y, j))
      atomicMax((unsigned long long *)&most->sensor, (unsigned long long)bits << 32 | (UINT32_MAX - j));
  }
  __syncthreads();
  if (threadIdx.x == 0 && strongest > 0)
    atomicMax(&most->strongest, strongest);
}

extern "C" int hk_focus_launch(const struct hk_focus_rows *rows, struct CUstream_st *stream)
{
  const uint32_t sensors = (rows->f.n + THREADS - 1) / THREADS, places = (rows->f.n * rows->f.places + THREADS - 1) / THREADS;
  focus_sense<<<sensors, THREADS, 0, stream>>>(*rows);
  focus_aim<<<dim3(places, rows->rows), THREADS, 0, stream>>>(*rows);
  focus_gather<<<sensors, THREADS, 0, stream>>>(*rows);
  focus_judge<<<dim3(sensors, rows->rows), THREADS, 0, stream>>>(*rows);
  return (int)cudaGetLastError();
}
