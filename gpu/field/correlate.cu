/* Who is whose neighbour, by correlation: the product of a matrix and its own transpose in tiles, of which only the q greatest
 * numbers of each row are kept. cpu/field/correlate.h says what is computed, to the last bit.
 *
 * A block has 32 members that choose in shared memory, all 512 numbers of each, and compares them with 32 others after 32 others.
 * Four threads share 4 x 4 pairs: each has 4 of the 16 partial sums of all of them in registers, so that a number read from
 * shared memory serves 4 products. Rows in shared memory are apart by an odd multiple of 16 numbers: what eight threads read at
 * once lies in different banks. */
#include "cpu/field/residual.h"
#include "gpu/field/correlate_kernels.h"

#include <cuda_runtime_api.h>

#define THREADS 256u
#define TILE HK_CORRELATE_TILE
#define CHUNK 32u                           /* rows of the others in shared memory at a time */
#define OWN_APART (HK_FIELD_RESIDENT + 16u) /* numbers from one member to the next */
#define OTHER_APART (CHUNK + 16u)
#define SIDE 4u /* pairs of four threads: SIDE x SIDE, whose numbers are TILE / SIDE apart */

static __global__ void __launch_bounds__(THREADS) correlate_normalise(const __grid_constant__ struct hk_correlate_there g)
{
  const struct hk_correlate_task &t = g.task;
  const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= g.tiles * TILE)
    return;
  float *out = g.z + (size_t)i * HK_FIELD_RESIDENT;
  double sum = 0, square = 0;
  uint32_t n = 0;
  for (uint32_t row = 0; i < t.n && row < t.kept; row++) {
    const float z = t.ring[(size_t)row * t.room + i];
    sum += z == z ? (double)z : 0;
    n += z == z;
  }
  const bool enough = n >= HK_CORRELATE_LEAST;
  const double mean = enough ? sum / n : 0;
  for (uint32_t row = 0; enough && row < t.kept; row++) {
    const float z = t.ring[(size_t)row * t.room + i];
    square += z == z ? ((double)z - mean) * ((double)z - mean) : 0;
  }
  const double length = sqrt(square);
  for (uint32_t row = 0; row < HK_FIELD_RESIDENT; row++) {
    const float z = square > 0 && row < t.kept ? t.ring[(size_t)row * t.room + i] : 0;
    out[row] = square > 0 && row < t.kept && z == z ? (float)(((double)z - mean) / length) : 0;
  }
  g.fit[i] = square > 0;
}

/* The greatest of a member, in order. */
struct best {
  float r[HK_RESIDUAL_NEIGHBOURS_MAX];
  uint32_t j[HK_RESIDUAL_NEIGHBOURS_MAX];
  uint32_t n;
};

static __device__ void correlate_take(struct best *b, uint32_t q, uint32_t j, float r)
{
  if (!(r > 0) || (b->n == q && !(r > b->r[q - 1])))
    return;
  uint32_t at = b->n < q ? b->n++ : q - 1;
  for (; at > 0 && r > b->r[at - 1]; at--) {
    b->r[at] = b->r[at - 1];
    b->j[at] = b->j[at - 1];
  }
  b->r[at] = r;
  b->j[at] = j;
}

struct shared {
  float own[TILE * OWN_APART];
  float other[TILE * OTHER_APART];
  float r[TILE][TILE + 1];
  struct best best[TILE];
};

/* Adds the products of a chunk of rows to the partial sums. */
static __device__ __forceinline__ void add_chunk(const struct shared &s, uint32_t chunk, float (&part)[SIDE][SIDE][4])
{
  const uint32_t quarter = threadIdx.x % 4, a = threadIdx.x / 32, b = threadIdx.x / 4 % 8;
#pragma unroll
  for (uint32_t row = 0; row < CHUNK; row += HK_CORRELATE_LANES) {
    float4 own[SIDE], other[SIDE];
#pragma unroll
    for (uint32_t k = 0; k < SIDE; k++) {
      own[k] = *(const float4 *)&s.own[(a + 8 * k) * OWN_APART + chunk + row + 4 * quarter];
      other[k] = *(const float4 *)&s.other[(b + 8 * k) * OTHER_APART + row + 4 * quarter];
    }
#pragma unroll
    for (uint32_t k = 0; k < SIDE; k++)
#pragma unroll
      for (uint32_t l = 0; l < SIDE; l++) {
        part[k][l][0] += own[k].x * other[l].x;
        part[k][l][1] += own[k].y * other[l].y;
        part[k][l][2] += own[k].z * other[l].z;
        part[k][l][3] += own[k].w * other[l].w;
      }
  }
}

/* The sum of the 16 partial sums of a pair, which four threads have, in their order. */
static __device__ __forceinline__ float correlate_sum_up(const float (&part)[4])
{
  float sum = 0;
#pragma unroll
  for (int turn = 0; turn < 4; turn++)
    sum = __shfl_sync(0xffffffff, (((sum + part[0]) + part[1]) + part[2]) + part[3], turn, 4);
  return sum;
}

static __global__ void __launch_bounds__(THREADS, 2)
    correlate_all(const __grid_constant__ struct hk_correlate_there g, uint32_t from)
{
  extern __shared__ float4 memory[];
  struct shared &s = *(struct shared *)memory;
  const struct hk_correlate_task &t = g.task;
  const uint32_t first = from + blockIdx.x * TILE, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (uint32_t k = 0; k < TILE; k++) {
    const uint32_t i = first + k < t.n_due ? t.due[first + k] : t.n;
    for (uint32_t row = threadIdx.x; row < HK_FIELD_RESIDENT; row += THREADS)
      s.own[k * OWN_APART + row] = i < t.n ? g.z[(size_t)i * HK_FIELD_RESIDENT + row] : 0;
  }
  if (threadIdx.x < TILE)
    s.best[threadIdx.x].n = 0;
  for (uint32_t tile = 0; tile < g.tiles; tile++) {
    const float *others = g.z + (size_t)tile * TILE * HK_FIELD_RESIDENT;
    float part[SIDE][SIDE][4] = {};
    for (uint32_t chunk = 0; chunk < HK_FIELD_RESIDENT; chunk += CHUNK) {
      __syncthreads(); /* all threads have used the chunk before */
#pragma unroll
      for (uint32_t k = warp; k < TILE; k += THREADS / 32)
        s.other[k * OTHER_APART + lane] = others[(size_t)k * HK_FIELD_RESIDENT + chunk + lane];
      __syncthreads();
      add_chunk(s, chunk, part);
    }
#pragma unroll
    for (uint32_t k = 0; k < SIDE; k++)
#pragma unroll
      for (uint32_t l = 0; l < SIDE; l++) {
        const float r = correlate_sum_up(part[k][l]);
        if (threadIdx.x % 4 == 0)
          s.r[threadIdx.x / 32 + 8 * k][threadIdx.x / 4 % 8 + 8 * l] = r;
      }
    __syncthreads();
    if (threadIdx.x < TILE && first + threadIdx.x < t.n_due) {
      const uint32_t i = t.due[first + threadIdx.x];
      for (uint32_t j = tile * TILE; g.fit[i] && j < (tile + 1) * TILE && j < t.n; j++)
        if (j != i && g.fit[j])
          correlate_take(&s.best[threadIdx.x], t.q, j, s.r[threadIdx.x][j % TILE]);
    }
  }
  if (threadIdx.x < TILE && first + threadIdx.x < t.n_due)
    for (uint32_t k = 0; k < t.q; k++)
      t.found[(size_t)(first + threadIdx.x) * t.q + k] = k < s.best[threadIdx.x].n ? s.best[threadIdx.x].j[k] : HK_RESIDUAL_NONE;
}

extern "C" int hk_correlate_launch_normalise(const struct hk_correlate_there *there, struct CUstream_st *stream)
{
  correlate_normalise<<<(there->tiles * TILE + THREADS - 1) / THREADS, THREADS, 0, stream>>>(*there);
  return (int)cudaGetLastError();
}

extern "C" int hk_correlate_launch(const struct hk_correlate_there *there, uint32_t from, uint32_t n, struct CUstream_st *stream)
{
  const cudaError_t failed =
      cudaFuncSetAttribute((const void *)correlate_all, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(struct shared));
  if (failed)
    return (int)failed;
  correlate_all<<<(n + TILE - 1) / TILE, THREADS, sizeof(struct shared), stream>>>(*there, from);
  return (int)cudaGetLastError();
}
