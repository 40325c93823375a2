/* Vectors of the batched singular value decomposition: the orthonormal columns that the reflectors stand for, the rotations of
 * the QR iteration applied to them, and the iteration itself where it runs on the device.
 *
 * form: a column of H_0 H_1 ... I needs nothing of the others, so a warp takes some through all reflectors, without barriers.
 * rotate: rows need nothing of each other; a thread carries two down the columns, all sweeps of a group at once.
 * iterate: a warp a matrix. It waits for its own results all the time, so that it takes nothing from what runs next to it. */
#include "gpu/batched_svd/bidiagonal.h"
#include "gpu/batched_svd/bidiagonal_vectors.h"

#include <cuda_runtime.h>

#define WARP 32u
#define ALL 0xffffffffu
#define FORM_WARPS 8u
#define FORM_COLUMNS 4u /* of a warp at a time */
#define ROTATE_THREADS 64u

struct basis {
  const float *reflectors, *tau;
  uint32_t rows, ld, columns;
  uint32_t below; /* row of a reflector's leading 1, past its number */
};

static struct basis basis_of(const struct hk_bidiagonal *b, bool right)
{
  return right ? basis{ b->right, b->tau_right, b->columns, b->ld_right, b->columns, 1 }
               : basis{ b->left, b->tau_left, b->rows, b->ld_left, b->columns, 0 };
}

template <uint32_t CHUNKS>
__global__ void __launch_bounds__(FORM_WARPS *WARP)
    form(const struct basis of, float *out, uint32_t ld_out, uint32_t rows_out, const uint32_t *status)
{
  const uint32_t lane = threadIdx.x % WARP, from = (blockIdx.x * FORM_WARPS + threadIdx.x / WARP) * FORM_COLUMNS;
  const uint32_t chunks = of.ld / WARP;
  const float *reflectors = of.reflectors + (size_t)blockIdx.y * of.ld * of.columns,
              *tau = of.tau + (size_t)blockIdx.y * of.columns;
  out += (size_t)blockIdx.y * ld_out * of.columns;
  if (from >= of.columns)
    return;
  const bool fine = status[blockIdx.y] == HK_SVD_FINE;
  float value[FORM_COLUMNS][CHUNKS];
#pragma unroll
  for (uint32_t c = 0; c < CHUNKS; c++)
#pragma unroll
    for (uint32_t i = 0; i < FORM_COLUMNS; i++)
      value[i][c] = fine ? c * WARP + lane == from + i : NAN;
  /* reflector t does not change unit vector j if it begins below row j; the last right one does not exist */
  const uint32_t last = min(from + FORM_COLUMNS, of.columns - of.below);
  for (uint32_t t = fine ? last : 0; t-- > 0;) {
    const float *v = reflectors + (size_t)t * of.ld;
    const float scale = tau[t];
    const uint32_t begin = (t + of.below) / WARP;
    if (scale == 0)
      continue;
    float at[CHUNKS], dot[FORM_COLUMNS];
#pragma unroll
    for (uint32_t i = 0; i < FORM_COLUMNS; i++)
      dot[i] = 0;
#pragma unroll
    for (uint32_t c = 0; c < CHUNKS; c++)
      if (c >= begin && c < chunks) {
        at[c] = v[c * WARP + lane];
#pragma unroll
        for (uint32_t i = 0; i < FORM_COLUMNS; i++)
          dot[i] = fmaf(at[c], value[i][c], dot[i]);
      }
#pragma unroll
    for (uint32_t i = 0; i < FORM_COLUMNS; i++) {
      for (uint32_t l = WARP / 2; l > 0; l /= 2)
        dot[i] += __shfl_xor_sync(ALL, dot[i], l);
      dot[i] *= scale;
    }
#pragma unroll
    for (uint32_t c = 0; c < CHUNKS; c++)
      if (c >= begin && c < chunks) {
#pragma unroll
        for (uint32_t i = 0; i < FORM_COLUMNS; i++)
          value[i][c] = fmaf(-dot[i], at[c], value[i][c]);
      }
  }
#pragma unroll
  for (uint32_t i = 0; i < FORM_COLUMNS; i++)
    if (from + i < of.columns) {
#pragma unroll
      for (uint32_t c = 0; c < CHUNKS; c++)
        if (c * WARP + lane < rows_out)
          out[(size_t)(from + i) * ld_out + c * WARP + lane] = value[i][c];
    }
}

int hk_bidiagonal_form(const struct hk_bidiagonal *b, bool right, float *out, uint32_t ld, uint32_t count, const uint32_t *status,
                       struct CUstream_st *stream)
{
  const struct basis of = basis_of(b, right);
  const dim3 grid((of.columns + FORM_WARPS * FORM_COLUMNS - 1) / (FORM_WARPS * FORM_COLUMNS), count);
  const uint32_t threads = FORM_WARPS * WARP, rows = ld < of.ld ? ld : of.ld; /* rows past the end are zero */
  if (of.ld <= 128)
    form<4><<<grid, threads, 0, stream>>>(of, out, ld, rows, status);
  else if (of.ld <= 320)
    form<10><<<grid, threads, 0, stream>>>(of, out, ld, rows, status);
  else if (of.ld <= 512)
    form<16><<<grid, threads, 0, stream>>>(of, out, ld, rows, status);
  else
    form<32><<<grid, threads, 0, stream>>>(of, out, ld, rows, status);
  return cudaGetLastError();
}

static __global__ void __launch_bounds__(WARP) iterate(struct hk_qr *qr, float *d, float *e, uint32_t columns,
                                                       unsigned char *rotations, const uint32_t *status, uint32_t *unsolved)
{
  __shared__ float shared_d[HK_SVD_SIDE_MAX], shared_e[HK_SVD_SIDE_MAX];
  struct hk_rotations *out = rotations ? (struct hk_rotations *)(rotations + blockIdx.x * hk_qr_bytes(columns)) : NULL;
  struct hk_qr state = qr[blockIdx.x];
  if (state.end == 0 || status[blockIdx.x] != HK_SVD_FINE) {
    if (threadIdx.x == 0 && out)
      out->n_groups = 0;
    return;
  }
  d += (size_t)blockIdx.x * columns;
  e += (size_t)blockIdx.x * (columns - 1);
  for (uint32_t i = threadIdx.x; i < columns; i += WARP) {
    shared_d[i] = d[i];
    shared_e[i] = i + 1 < columns ? e[i] : 0;
  }
  __syncwarp();
  hk_qr_round(&state, shared_d, shared_e, columns, out);
  if (threadIdx.x == 0) {
    qr[blockIdx.x] = state;
    if (state.end > 0)
      atomicAdd(unsolved, 1u);
  }
  __syncwarp();
  for (uint32_t i = threadIdx.x; i < columns; i += WARP) {
    d[i] = shared_d[i];
    if (i + 1 < columns)
      e[i] = shared_e[i];
  }
}

int hk_bidiagonal_qr(struct hk_qr *qr, float *d, float *e, uint32_t columns, unsigned char *rotations, uint32_t count,
                     const uint32_t *status, uint32_t *unsolved, struct CUstream_st *stream)
{
  iterate<<<count, WARP, 0, stream>>>(qr, d, e, columns, rotations, status, unsolved);
  return cudaGetLastError();
}

/* Rotates rows `row` and the next of a basis through all groups of a round. */
static __device__ void rotate_rows(float *basis, uint32_t ld, uint32_t row, const struct hk_rotations *r,
                                   const struct hk_rotation *side)
{
  for (uint32_t g = 0; g < r->n_groups; g++) {
    const struct hk_rotation_group group = r->group[g];
    const float4 *turn = (const float4 *)(side + group.offset); /* two rotations */
    float *column = basis + (size_t)group.first * ld + row;
    float2 carried[HK_SWEEPS], passed[HK_SWEEPS]; /* of each sweep: its current column, and the last one it left */
#pragma unroll
    for (uint32_t s = 0; s < HK_SWEEPS; s++)
      carried[s] = passed[s] = make_float2(0, 0);
    carried[0] = *(const float2 *)column;
    const uint32_t last = group.last - group.first, lag = 2 * (HK_SWEEPS - 1);
    float2 ahead = *(const float2 *)(column + ld); /* a group has at least two columns */
    for (uint32_t t = 0; t < group.steps; t++, turn += HK_SWEEPS / 2) {
      float2 incoming = ahead;
      if (t + 2 <= last)
        ahead = *(const float2 *)(column + (size_t)(t + 2) * ld);
#pragma unroll
      for (uint32_t s = 0; s < HK_SWEEPS; s++) {
        const float4 two = turn[s / 2];
        const float c = s % 2 ? two.z : two.x, sine = s % 2 ? two.w : two.y;
        const float2 here = carried[s], next = incoming;
        incoming = passed[s]; /* of the step before: the next sweep begins with it */
        passed[s] = make_float2(fmaf(c, here.x, sine * next.x), fmaf(c, here.y, sine * next.y));
        carried[s] = make_float2(fmaf(c, next.x, -sine * here.x), fmaf(c, next.y, -sine * here.y));
      }
      if (t >= lag)
        *(float2 *)(column + (size_t)(t - lag) * ld) = passed[HK_SWEEPS - 1];
    }
  }
}

static __global__ void __launch_bounds__(ROTATE_THREADS)
    rotate(const struct hk_bidiagonal b, const unsigned char *rotations, float *left, float *right, uint32_t left_blocks)
{
  const struct hk_rotations *r = (const struct hk_rotations *)(rotations + blockIdx.y * hk_qr_bytes(b.columns));
  const bool is_left = blockIdx.x < left_blocks;
  const uint32_t ld = is_left ? b.ld_left : b.ld_right;
  const uint32_t row = 2 * ((is_left ? blockIdx.x : blockIdx.x - left_blocks) * ROTATE_THREADS + threadIdx.x);
  float *basis = (is_left ? left : right) + (size_t)blockIdx.y * ld * b.columns;
  if (row < (is_left ? b.rows : b.columns))
    rotate_rows(basis, ld, row, r, hk_qr_side((struct hk_rotations *)r, b.columns, is_left));
}

int hk_bidiagonal_rotate(const struct hk_bidiagonal *b, const unsigned char *rotations, float *left, float *right, uint32_t count,
                         struct CUstream_st *stream)
{
  const uint32_t rows = 2 * ROTATE_THREADS, left_blocks = (b->rows + rows - 1) / rows,
                 right_blocks = (b->columns + rows - 1) / rows;
  rotate<<<dim3(left_blocks + right_blocks, count), ROTATE_THREADS, 0, stream>>>(*b, rotations, left, right, left_blocks);
  return cudaGetLastError();
}

/* The place of each value in falling order. */
static __global__ void order(const struct hk_bidiagonal b, const struct hk_qr *qr, const float *d, float *s, int32_t *place,
                             uint32_t *status)
{
  const uint32_t columns = b.columns;
  d += (size_t)blockIdx.x * columns;
  s += (size_t)blockIdx.x * columns;
  place += (size_t)blockIdx.x * columns;
  const bool failed = qr[blockIdx.x].failed, fine = status[blockIdx.x] == HK_SVD_FINE && !failed;
  if (threadIdx.x == 0 && failed)
    status[blockIdx.x] = HK_SVD_UNSOLVED;
  for (uint32_t i = threadIdx.x; i < columns; i += blockDim.x) {
    const float value = fabsf(d[i]);
    uint32_t before = 0;
    for (uint32_t j = 0; j < columns; j++) {
      const float other = fabsf(d[j]);
      before += other > value || (other == value && j < i);
    }
    place[i] = fine ? (int32_t)before : -1;
    s[fine ? before : i] = fine ? value * b.scale[blockIdx.x] : NAN;
  }
}

/* Copies a column of vectors to its place, with the opposite sign if its value is negative and `turned`. */
static __global__ void put_in_order(const float *from, uint32_t ld, uint32_t rows, uint32_t columns, const float *d, bool turned,
                                    const int32_t *place, float *to)
{
  const size_t column = (size_t)blockIdx.y * columns + blockIdx.x;
  const int32_t at = place[column];
  const float factor = at < 0 ? NAN : turned && d[column] < 0 ? -1 : 1;
  to += ((size_t)blockIdx.y * columns + (at < 0 ? blockIdx.x : (uint32_t)at)) * rows;
  for (uint32_t i = threadIdx.x; i < rows; i += blockDim.x)
    to[i] = from[column * ld + i] * factor;
}

int hk_bidiagonal_arrange(const struct hk_bidiagonal *b, const struct hk_qr *qr, const float *d, const float *left,
                          const float *right, float *s, float *out_left, float *out_right, int32_t *place, uint32_t count,
                          uint32_t *status, struct CUstream_st *stream)
{
  order<<<count, 128, 0, stream>>>(*b, qr, d, s, place, status);
  cudaError_t failed = cudaGetLastError();
  const dim3 grid(b->columns, count);
  if (!failed && out_left) {
    put_in_order<<<grid, 128, 0, stream>>>(left, b->ld_left, b->rows, b->columns, d, false, place, out_left);
    put_in_order<<<grid, 128, 0, stream>>>(right, b->ld_right, b->columns, b->columns, d, true, place, out_right);
    failed = cudaGetLastError();
  }
  return failed;
}
