/* Focus, with the four passes of cpu/field/focus.h as four kernels: a thread is a sensor, or a place, and in the second and
 * fourth one of several rows, too. Threads of a warp are neighbours on the line, and so are what they read of a row of a ring,
 * since sensors that are evenly apart have the same lags. Passes one and three follow a sensor through the rows in their order.
 *
 * Where four launches take longer than the work, all passes are one kernel, whose blocks wait for each other between passes. It
 * also reads the values from the host and writes the results there, so that a row is one operation. */
#include "gpu/field/focus_kernels.h"

#include <cooperative_groups.h>
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

/* The last pass for a sensor in row k. Returns bits of its value, and 1; 0: it has none. */
static __device__ __forceinline__ uint32_t judge_sensor(const struct hk_focus_rows &rows, uint32_t k, uint32_t j)
{
  const struct hk_focus f = line_at(rows, k);
  hk_focus_judge(&f, rows.row + k, j);
  const float value = f.now.value[j];
  const uint32_t bits = __float_as_uint(value);
  if (hk_focus_finds(&f, rows.row + k, j))
    atomicMax((unsigned long long *)&rows.most[k].sensor, (unsigned long long)bits << 32 | (UINT32_MAX - j));
  return value == value ? bits + 1 : 0;
}

static __global__ void __launch_bounds__(THREADS) focus_judge(const __grid_constant__ struct hk_focus_rows rows)
{
  __shared__ uint32_t strongest;
  const uint32_t j = blockIdx.x * THREADS + threadIdx.x;
  if (threadIdx.x == 0)
    strongest = 0;
  __syncthreads();
  const uint32_t own = j < rows.f.n ? judge_sensor(rows, blockIdx.y, j) : 0;
  if (own > 0)
    atomicMax(&strongest, own);
  __syncthreads();
  if (threadIdx.x == 0 && strongest > 0)
    atomicMax(&rows.most[blockIdx.y].strongest, strongest);
}

/* --- all passes by one launch ------------------------------------------------------------------------------------------- */

/* Pass 1 of all rows, with the values of the host, if any. */
static __device__ __forceinline__ void sense_all(const struct hk_focus_rows &rows, uint32_t first, uint32_t step)
{
  for (uint32_t j = first; j < rows.f.n; j += step)
    for (uint32_t k = 0; k < rows.rows; k++) {
      const struct hk_focus f = line_at(rows, k);
      const size_t at = (size_t)k * rows.f.n + j;
      const double x = rows.from ? rows.from[at] : rows.x[at];
      hk_focus_sense(&f, rows.row + k, x, j);
      if (rows.from)
        rows.x[at] = x;
    }
}

/* Pass 4 of all rows. */
static __device__ __forceinline__ void judge_all(const struct hk_focus_rows &rows, uint32_t first, uint32_t step)
{
  __shared__ uint32_t strongest[HK_FOCUS_AT_ONCE];
  if (threadIdx.x < HK_FOCUS_AT_ONCE)
    strongest[threadIdx.x] = 0;
  __syncthreads();
  for (uint32_t at = first; at < rows.rows * rows.f.n; at += step) {
    const uint32_t own = judge_sensor(rows, at / rows.f.n, at % rows.f.n);
    if (own > 0)
      atomicMax(&strongest[at / rows.f.n], own);
  }
  __syncthreads();
  if (threadIdx.x < rows.rows && strongest[threadIdx.x] > 0)
    atomicMax(&rows.most[threadIdx.x].strongest, strongest[threadIdx.x]);
}

static __global__ void __launch_bounds__(THREADS) focus_whole(const __grid_constant__ struct hk_focus_rows rows)
{
  const cooperative_groups::grid_group all = cooperative_groups::this_grid();
  const uint32_t first = blockIdx.x * THREADS + threadIdx.x, step = gridDim.x * THREADS, n = rows.f.n, places = n * rows.f.places;
  if (first < rows.rows)
    rows.most[first] = {};
  sense_all(rows, first, step);
  all.sync();
  for (uint32_t at = first; at < rows.rows * places; at += step) {
    const struct hk_focus f = line_at(rows, at / places);
    hk_focus_aim(&f, rows.row + at / places, at % places);
  }
  all.sync();
  for (uint32_t j = first; j < n; j += step)
    for (uint32_t k = 0; k < rows.rows; k++) {
      const struct hk_focus f = line_at(rows, k);
      hk_focus_gather(&f, rows.row + k, j);
    }
  all.sync();
  judge_all(rows, first, step);
  if (!rows.to)
    return;
  all.sync();
  for (size_t at = first; at < rows.back; at += step)
    rows.to[at] = ((const uint64_t *)rows.most)[at];
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

extern "C" int hk_focus_launch_whole(const struct hk_focus_rows *rows, struct CUstream_st *stream)
{
  const uint64_t places = (uint64_t)rows->rows * rows->f.n * rows->f.places, blocks = (places + THREADS - 1) / THREADS;
  cudaLaunchAttribute together = {};
  cudaLaunchConfig_t how = {};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  how.gridDim = dim3((uint32_t)(blocks < rows->blocks ? blocks : rows->blocks));
  how.blockDim = dim3(THREADS);
  how.stream = stream;
  how.attrs = &together;
  how.numAttrs = 1;
  return (int)cudaLaunchKernelEx(&how, focus_whole, *rows);
}
