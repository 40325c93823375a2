/* Exchanges rows of block columns for bench_band_deal.c. */
#include "tests/bench/programs/band_exchange.h"

#include <cuda_runtime_api.h>

namespace
{

/* Each thread block exchanges the rows of one column, and each thread moves one row; all rows are read before any is
 * written. */
__global__ void exchange(const band_exchange_rows r)
{
  const uint32_t column = blockIdx.x, block = blockIdx.y, pair = threadIdx.x;
  double *const from = r.first + (ptrdiff_t)block * r.apart + (size_t)column * r.ld,
                value = pair < *r.pairs ? from[r.from[pair]] : 0;
  __syncthreads();
  if (pair >= *r.pairs)
    return;
  if (r.top && pair < r.size)
    r.top[(block * (size_t)r.size + column) * r.size + pair] = value;
  else
    from[r.to[pair]] = value;
}

} // namespace

int band_exchange(const band_exchange_rows *r, CUstream_st *stream)
{
  if (r->blocks > 0)
    exchange<<<dim3(r->size, r->blocks), 2 * r->size, 0, stream>>>(*r);
  return cudaGetLastError();
}
