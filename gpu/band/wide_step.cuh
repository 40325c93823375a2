/* What the kernels of a step of wide bands share: its columns, and products by the tensor cores. */
#ifndef HK_WIDE_STEP_CUH
#define HK_WIDE_STEP_CUH

#include "gpu/band/wide_layout.h"

#include <cuda_runtime_api.h>

namespace
{

#define WIDTH HK_WIDE_PANEL

__device__ double *band_at(const hk_wide_layout &all, const hk_wide_segment &s, uint32_t row, uint32_t column)
{
  return s.band + row + column * (all.stride - 1);
}

/* First column of those that a step works on from `columns` of a segment. */
__device__ uint32_t extra_from(const hk_wide_step &step, const hk_wide_segment &s)
{
  return step.extra == HK_WIDE_ALL ? 0 : step.extra == HK_WIDE_RIGHT ? s.border : s.border + 1;
}

/* Columns of the band on which a step works. Those beside the block begin where the segment's own equations end. */
struct range {
  uint32_t from, count;
};

__device__ range band_range(const hk_wide_step &step, const hk_wide_segment &s)
{
  const uint32_t to = min(step.to, step.extra == HK_WIDE_OWN ? s.n : s.n + s.after),
                 from = step.from == step.row + step.width ? min(step.from, s.n) : step.from;
  return { from, to > from ? to - from : 0 };
}

/* c += a b, 16 x 8 numbers by a warp; a: 16 x 8, b: 8 x 8, as the tensor cores deal them to lanes. */
__device__ void multiply(double (&c)[4], const double (&a)[4], const double (&b)[2])
{
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
  for (int half = 0; half < 2; half++)
    for (int k = 0; k < 2; k++)
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
          : "+d"(c[2 * half]), "+d"(c[2 * half + 1])
          : "d"(a[half + 2 * k]), "d"(b[k]));
#endif
}

/* Copies 8 bytes to shared memory without waiting; zero if there is no such number. */
__device__ void copy_number(double &to, const double *from, bool exists)
{
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"((uint32_t)__cvta_generic_to_shared(&to)), "l"(from),
               "r"(exists ? 8 : 0));
}

/* value / diagonal, faster than a division if its inverse is at hand: after one correction it is right except for the last bit.
 * If the inverse is not a normal number, it divides. */
__device__ double quotient(double value, double diagonal, double inverse)
{
  const double first = value * inverse;
  return fabs(inverse) < 1e300 && fabs(inverse) > 1e-300 ? fma(fma(-first, diagonal, value), inverse, first) : value / diagonal;
}

/* --- kernels that begin early ------------------------------------------------------------------------------------------- */

/* Lets the next kernel of launch_early begin; here this kernel waits until the one before it has ended. */
__device__ void begin_next()
{
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

__device__ void wait_for_last()
{
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* --- on the host -------------------------------------------------------------------------------------------------------- */

inline uint32_t parts(uint32_t all, uint32_t part)
{
  return (all + part - 1) / part;
}

/* Launches a kernel that calls wait_for_last before all else that others write or read. early: the device can, and so did those
 * before it in the stream; clusters: thread blocks of each, along x. */
template <class... Of, class... With>
cudaError_t launch_early(void (*kernel)(Of...), dim3 grid, uint32_t threads, size_t bytes, CUstream_st *stream, bool early,
                         uint32_t clusters, const With &...with)
{
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = early;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim.x = clusters;
  attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t how = {};
  how.gridDim = grid;
  how.blockDim = dim3(threads);
  how.dynamicSmemBytes = bytes;
  how.stream = stream;
  how.attrs = early ? attributes : attributes + 1;
  how.numAttrs = early + (clusters > 1);
  return cudaLaunchKernelEx(&how, kernel, with...);
}

/* The largest number of columns that a step has in any segment. */
inline uint32_t band_most(const hk_wide_layout *all, const hk_wide_step *step)
{
  const uint32_t from = step->from == step->row + step->width ? step->row + 1 : step->from,
                 to = step->to < all->longest + all->after ? step->to : all->longest + all->after;
  return to > from ? to - from : 0;
}

inline uint32_t extra_most(const hk_wide_layout *all, const hk_wide_step *step)
{
  return step->extra == HK_WIDE_ALL ? all->border + 1 : step->extra == HK_WIDE_RIGHT;
}

} // namespace

#endif
