/* Eigenpairs of small symmetric tridiagonal matrices T, as Lanczos makes them: the leading one by a group of lanes, where
 * everything waits for it, and all of them, one matrix a lane, where many are at hand.
 *
 * T: alpha on the diagonal, beta beside it, in shared memory. Order 1 .. K. Errors are relative to the largest eigenvalue, as the
 * errors of T are. All loops end, whatever is in T. */
#ifndef HK_TRIDIAGONAL_CUH
#define HK_TRIDIAGONAL_CUH

#include "gpu/sst/lane_group.cuh"

#define HK_PIVOT_LEAST 1e-30f /* smaller pivots are replaced by it; the matrices here have norms between about 1e-3 and 1e6 */
#define HK_CHUNK 3            /* rows between checks of the size of minors */
#define HK_LAGUERRE 24        /* maximum number of turns */
#define HK_LAGUERRE_LEAST 0x1p-14f /* after a step of this size, the next one would be below a bit of the last place */
#define HK_NEVER_ZERO 0x1p-50f     /* negligible for any T; makes a rotation defined where T has split */
#define HK_SWEEPS 40               /* maximum for one eigenvalue; three are usual */

static __device__ __forceinline__ float hk_pivot_single(float d)
{
  return fabsf(d) < HK_PIVOT_LEAST ? -HK_PIVOT_LEAST : d;
}

/* det(x - T) and its first two derivatives, up to a common factor. */
struct hk_minor {
  float value, slope, bend; /* bend: half of the second derivative */
};

/* By leading minors of x - T, side = 1, or x + T, side = -1. rows: for each row of T its diagonal element and the square of the
 * element beside it in the row before, `chunks` times HK_CHUNK of them. No eigenvalue is beyond 1 in magnitude, nor is |x| by
 * much: minors do not get large, and where they get small all are made larger. */
static __device__ __forceinline__ hk_minor hk_minor_at(const float2 *rows, uint32_t chunks, float side, float x)
{
  hk_minor before = { 0, 0, 0 }, minor = { 1, 0, 0 };
#pragma unroll 1
  for (uint32_t chunk = 0; chunk < chunks; chunk++, rows += HK_CHUNK) {
#pragma unroll
    for (int t = 0; t < HK_CHUNK; t++) {
      const float far = fmaf(-side, rows[t].x, x), square = -rows[t].y;
      const hk_minor next = { fmaf(far, minor.value, square * before.value),
                              fmaf(far, minor.slope, fmaf(square, before.slope, minor.value)),
                              fmaf(far, minor.bend, fmaf(square, before.bend, minor.slope)) };
      before = minor;
      minor = next;
    }
    if (fabsf(minor.value) + fabsf(minor.slope) < 0x1p-40f) {
      minor = { minor.value * 0x1p40f, minor.slope * 0x1p40f, minor.bend * 0x1p40f };
      before = { before.value * 0x1p40f, before.slope * 0x1p40f, before.bend * 0x1p40f };
    }
  }
  return minor;
}

/* The eigenvalue of largest magnitude (of two alike, the positive one) of each group's T, by Laguerre's iteration, which comes
 * down on the largest eigenvalue from above and passes none: half of the lanes for T, half for -T. Convergence is cubic; three to
 * five turns are usual. Called by the whole warp. rows: room for the order rounded up to a multiple of HK_CHUNK; eigenvalues of 0
 * are added up to there. */
template <int R, int L, bool F>
static __device__ __forceinline__ float hk_group_leading_value(const hk_group<R, L, F> &g, const float *alpha, const float *beta,
                                                               uint32_t order, float2 *rows)
{
  float bound = 0;
#pragma unroll 1
  for (uint32_t t = g.lane; t < order; t += L)
    bound = fmaxf(bound, fabsf(alpha[t]) + (t > 0 ? beta[t - 1] : 0) + (t + 1 < order ? beta[t] : 0));
  bound = hk_group_max(g, bound);
  const float scale = bound > 0 ? 1 / bound : 0, side = g.lane < L / 2 ? 1 : -1;
  const uint32_t chunks = (order + HK_CHUNK - 1) / HK_CHUNK;
  for (uint32_t t = g.lane; t < chunks * HK_CHUNK; t += L) {
    const float b = t > 0 && t < order ? beta[t - 1] * scale : 0;
    rows[t] = make_float2(t < order ? alpha[t] * scale : 0, b * b);
  }
  __syncwarp();
  const float n = (float)(chunks * HK_CHUNK), most = (n - 1) * (n - 1), less = 2 * n * (n - 1);
  float x = 1 + 0x1p-20f;
  bool found = false;
#pragma unroll 1
  for (uint32_t turn = 0; turn < HK_LAGUERRE && __any_sync(HK_ALL, !found); turn++) {
    const hk_minor m = hk_minor_at(rows, chunks, side, x);
    const float newton = __fdividef(m.value, m.slope), square = fmaf(-less * newton, __fdividef(m.bend, m.slope), most);
    const float root = square > 0 ? square * rsqrtf(square) : 0, step = __fdividef(n * newton, 1 + root);
    const bool moves = m.slope > 0 && !found; /* 0 at an eigenvalue of several split parts */
    x -= moves ? step : 0;
    found = !(moves && fabsf(step) > HK_LAGUERRE_LEAST);
  }
  const float mine = side * x * bound, other = __shfl_xor_sync(HK_ALL, mine, L / 2);
  const float largest = side > 0 ? mine : other, smallest = side > 0 ? other : mine;
  return fabsf(smallest) > fabsf(largest) ? smallest : largest;
}

/* The unit eigenvector y of theta, by a twisted factorisation: T - theta is factored from the top and from the bottom, and the
 * vector is solved for outwards from the row where both meet with the smallest pivot (Parlett and Dhillon, "Fernando's solution
 * to Wilkinson's problem", 1997). One lane, one T; room: `length` floats, as y, which is filled up with zeros. */
static __device__ __forceinline__ void hk_lane_vector(const float *alpha, const float *beta, uint32_t order, float theta,
                                                      uint32_t length, float *y, float *room)
{
  float d = hk_pivot_single(alpha[0] - theta);
  room[0] = d;
#pragma unroll 1
  for (uint32_t t = 1; t < order; t++) {
    const float b = beta[t - 1];
    d = hk_pivot_single(alpha[t] - theta - __fdividef(b * b, d));
    room[t] = d;
  }
  uint32_t twist = order - 1;
  float meet = fabsf(d);
  d = hk_pivot_single(alpha[twist] - theta);
  y[twist] = d; /* y contains the pivots from the bottom until the vector replaces them */
#pragma unroll 1
  for (uint32_t t = order - 1; t-- > 0;) {
    const float b = beta[t], at = alpha[t] - theta;
    d = hk_pivot_single(at - __fdividef(b * b, d));
    y[t] = d;
    const float gap = fabsf(room[t] + d - at);
    if (gap < meet) {
      meet = gap;
      twist = t;
    }
  }
  float z = 1, sum = 1;
#pragma unroll 1
  for (uint32_t t = twist; t-- > 0;) {
    z = -beta[t] * __fdividef(z, room[t]);
    y[t] = z;
    sum = fmaf(z, z, sum);
  }
  z = 1;
#pragma unroll 1
  for (uint32_t t = twist + 1; t < order; t++) {
    z = -beta[t - 1] * __fdividef(z, y[t]);
    y[t] = z;
    sum = fmaf(z, z, sum);
  }
  y[twist] = 1;
  const float scale = rsqrtf(sum);
#pragma unroll 1
  for (uint32_t t = 0; t < length; t++)
    y[t] = t < order ? y[t] * scale : 0;
}

/* Rows of a T that hk_lane_outside takes apart: what stands where, HK_WARP numbers apart, so that each lane has a T. */
namespace hk_row
{
constexpr int alpha = 0, beta = HK_WARP, row = 2 * HK_WARP /* of the eigenvectors: their first components */, next = 3 * HK_WARP;
}

/* Bit i: T splits after row i. `most`: the largest order of all lanes. */
static __device__ __forceinline__ uint32_t hk_lane_splits(const float *t, uint32_t order, uint32_t most, float small)
{
  using namespace hk_row;
  uint32_t apart = 0;
#pragma unroll 1
  for (uint32_t i = 0; i + 1 < most; i++)
    apart |= (uint32_t)(i + 1 < order && fabsf(t[i * next + beta]) <= small) << i;
  return apart;
}

/* A QR sweep over the rows at..end, towards the eigenvalue at `end`. Returns the smallest number beside the diagonal, but the
 * last, or 1. */
static __device__ __forceinline__ float hk_lane_sweep(float *at, float *end)
{
  using namespace hk_row;
  const float near = end[beta - next], corner = end[alpha];
  float shift = __fdividef(end[alpha - next] - corner, 2 * near);
  const float root = fmaf(shift, shift, 1.0f);
  shift = __fdividef(near, shift + copysignf(root * rsqrtf(root), shift));
  float here = at[alpha], h = at[row], f = here - corner + shift, c = 1, s = 1, p = 0, least_beside = 1;
  bool inside = false;
#pragma unroll 1
  do {
    const float e = at[beta], along = s * e, b = c * e;
    f += HK_NEVER_ZERO;
    const float square = fmaf(along, along, f * f);
    float by = rsqrtf(square);
    by = by * fmaf(-0.5f * square * by, by, 1.5f); /* one Newton step: the last bit counts over a hundred rotations */
    if (inside) {
      const float beside = square * by;
      at[beta - next] = beside;
      least_beside = fminf(least_beside, beside);
    }
    inside = true;
    s = along * by;
    c = f * by;
    const float base = here - p, below = at[row + next];
    here = at[alpha + next];
    const float turn = fmaf(here - base, s, (c + c) * b);
    p = s * turn;
    at[alpha] = base + p;
    f = fmaf(c, turn, -b);
    at[row] = fmaf(s, below, c * h);
    h = fmaf(c, below, -s * h);
    at += next;
  } while (at != end);
  end[alpha] = here - p;
  end[beta - next] = f;
  end[row] = h;
  return least_beside;
}

/* What the `rank` leading eigenvectors leave of the first unit vector, once T is diagonal. */
static __device__ __forceinline__ float hk_lane_rest(const float *t, uint32_t order, uint32_t rank, float least)
{
  using namespace hk_row;
  float z = 1, top = 0;
  uint32_t taken = 0;
#pragma unroll 1
  for (uint32_t j = 0; j < rank && j < order; j++) {
    float largest = -1, weight = 0;
    uint32_t at = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < order; i++) {
      const float size = fabsf(t[i * next + alpha]);
      if (size > largest && !(taken >> i & 1)) {
        largest = size;
        at = i;
      }
    }
    taken |= 1u << at;
    if (j == 0)
      top = largest;
    if (!(largest > least * top))
      break;
    weight = t[at * next + row];
    z = fmaf(-weight, weight, z);
  }
  return fminf(fmaxf(z, 0.0f), 1.0f);
}

/* How much of the first unit vector lies outside the `rank` leading eigenvectors of T: 1 - sum of their first components squared,
 * over eigenvalues of largest magnitude, those above `least` of the largest. One lane, one T; called by the whole warp, with
 * order 0 where there is none. t: rows of three numbers, HK_WARP apart: of alpha, of beta, and room; they are overwritten.
 *
 * QR sweeps with implicit shifts (Francis; the form for tridiagonal matrices is that of Bowdler, Martin, Reinsch and Wilkinson
 * 1968, from the other end: T of a Lanczos run is large at its beginning). Of the eigenvectors the first row alone is carried
 * along (Golub and Welsch 1969). A number beside the diagonal is taken as zero below 2^-25 of the norm of T. The lanes sweep
 * together: one that has its eigenvalue waits until all have theirs, as lanes that went on alone would be served one after the
 * other. */
static __device__ __noinline__ float hk_lane_outside(float *t, uint32_t order, uint32_t rank, float least)
{
  using namespace hk_row;
  const uint32_t most = __reduce_max_sync(HK_ALL, order);
  float small = 0;
#pragma unroll 1
  for (uint32_t i = 0; i < order; i++) {
    small = fmaxf(small, fabsf(t[i * next + alpha]) + (i + 1 < order ? fabsf(t[i * next + beta]) : 0));
    t[i * next + row] = i == 0;
  }
  small *= 0x1p-25f;
  uint32_t apart = 0; /* bit i: T splits after row i */
  bool look = true;   /* for such places */
  __syncwarp();
#pragma unroll 1
  for (uint32_t last = most; last-- > 1;) {
    float *const end = t + last * next;
#pragma unroll 1
    for (uint32_t sweep = 0; sweep < HK_SWEEPS; sweep++) {
      if (__any_sync(HK_ALL, look)) {
        apart = hk_lane_splits(t, order, most, small);
        look = false;
      }
      const bool live = last < order && !(apart >> (last - 1) & 1);
      if (!__any_sync(HK_ALL, live))
        break;
      if (live) {
        const uint32_t start = 32 - __clz(apart & ((1u << last) - 1)); /* of the current block */
        look = hk_lane_sweep(t + start * next, end) <= small;
        apart |= (uint32_t)(fabsf(end[beta - next]) <= small) << (last - 1);
      }
      __syncwarp();
    }
  }
  return hk_lane_rest(t, order, rank, least);
}

#endif
