/* Lines of pipes, one thread for each: a time step of all lines, the values at their sensors, and the state of a line that
 * begins. */
#include "gpu/model/pipes_kernels.h"
#include "gpu/model/pipes_step.cuh"

#include <cuda_runtime_api.h>

static __global__ void __launch_bounds__(HK_PIPES_STRIDE)
    step(const __grid_constant__ hk_pipes_batch b, hk_pipelines_line *lines, double dt)
{
  __shared__ double ring[HK_BAND_AHEAD * HK_PIPES_STRIDE];
  const uint32_t i = blockIdx.x * HK_PIPES_STRIDE + threadIdx.x;
  if (i >= b.lines || !lines[i].active)
    return;
  hk_pipelines_line &line = lines[i];
  const uint64_t first = b.first[blockIdx.x], lane = threadIdx.x, column = 2 * b.points * HK_PIPES_STRIDE;
  const uint64_t at = 2 * first * HK_PIPES_STRIDE + lane;
  const hk_pipes_line of = {
    b.cells[i],
    b.impedance[i],
    b.cell + HK_PIPES_CELL * first * HK_PIPES_STRIDE + lane,
    b.state + at,
    b.work + at,
    b.work + column + at,
    b.work + 2 * column + at,
    b.work + 3 * column + hk_band_done<2> * 2 * first * HK_PIPES_STRIDE + lane,
    ring + lane,
  };
  const hk_pipeline_end end[2] = { line.end[0], line.end[1] };
  uint32_t singular = line.singular;
  line.status = hk_pipes_step(of, end, dt, line.friction, &singular);
  line.singular = singular;
}

static __global__ void see(const double *state, const uint64_t *place, const double *scale, double *seen, uint32_t n)
{
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    seen[i] = state[place[i]] * scale[i];
}

static __global__ void put(double *state, uint64_t place, const double *from, uint32_t n)
{
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    state[place + (uint64_t)i * HK_PIPES_STRIDE] = from[i];
}

int hk_pipes_launch_step(const hk_pipes_batch *b, hk_pipelines_line *line, double dt, CUstream_st *stream)
{
  step<<<(b->lines + HK_PIPES_STRIDE - 1) / HK_PIPES_STRIDE, HK_PIPES_STRIDE, 0, stream>>>(*b, line, dt);
  return cudaGetLastError();
}

int hk_pipes_launch_see(const double *state, const uint64_t *place, const double *scale, double *seen, uint32_t n,
                        CUstream_st *stream)
{
  see<<<(n + 127) / 128, 128, 0, stream>>>(state, place, scale, seen, n);
  return cudaGetLastError();
}

int hk_pipes_launch_put(double *state, uint64_t place, const double *from, uint32_t n, CUstream_st *stream)
{
  put<<<(n + 127) / 128, 128, 0, stream>>>(state, place, from, n);
  return cudaGetLastError();
}
