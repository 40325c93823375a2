/* Eigenpairs of small symmetric tridiagonal matrices T, as Lanczos makes them: the leading one by a group of lanes, where
 * everything waits for it, and all of them, one matrix a lane, where many are at hand.
 *
 * T: alpha on the diagonal, beta beside it, element t at [t * HK_WARP] in shared memory. Order 1 .. K. Errors are relative to the
 * largest eigenvalue, as those of T itself are. Everything ends, whatever is in T. */
#ifndef HK_TRIDIAGONAL_CUH
#define HK_TRIDIAGONAL_CUH

#include "gpu/group.cuh"

#define HK_PIVOT_LEAST 1e-30f /* smaller pivots are replaced by it; the matrices here have norms between about 1e-3 and 1e6 */
#define HK_CHUNK 4             /* rows between looks at the size of minors */
#define HK_SWEEPS 40          /* for one eigenvalue, at most; three are usual */

static __device__ __forceinline__ float hk_pivot_single(float d)
{
  return fabsf(d) < HK_PIVOT_LEAST ? -HK_PIVOT_LEAST : d;
}

/* Number of eigenvalues of T below x: the changes of sign in the sequence of its leading minors at x (Sturm). rows: for each row,
 * its diagonal element and the square of the element beside it in the row before, `chunks` times HK_CHUNK of them; a row of (3, 0)
 * changes nothing. No eigenvalue is beyond 1 in magnitude, nor is |x| by much, so that a row makes minors larger by a factor of 4 at
 * most; where they get small, both that count are made larger. */
static __device__ __forceinline__ uint32_t hk_eigenvalues_below(const float2 *rows, uint32_t chunks, float x)
{
  float before = 0, minor = 1;
  uint32_t below = 0;
#pragma unroll 1
  for (uint32_t chunk = 0; chunk < chunks; chunk++, rows += HK_CHUNK) {
    uint32_t signs = __float_as_uint(minor) >> 31;
#pragma unroll
    for (int t = 0; t < HK_CHUNK; t++) {
      const float next = fmaf(rows[t].x - x, minor, -rows[t].y * before);
      before = minor;
      minor = next;
      signs = __funnelshift_l(__float_as_uint(next), signs, 1); /* its sign comes in from below */
    }
    below += __popc((signs ^ signs >> 1) & ((1u << HK_CHUNK) - 1));
    const float up = fabsf(before) + fabsf(minor) < 0x1p-40f ? 0x1p40f : 1;
    before *= up;
    minor *= up;
  }
  return below;
}

/* The eigenvalue of largest magnitude (of two alike, the positive one) of each group's T: half of the lanes close in on the largest
 * eigenvalue, half on the smallest. Called by the whole warp. The beginning of the group's room is used. */
template <int R, int L>
static __device__ __forceinline__ float hk_group_leading_value(const hk_group<R, L> &g, const float *alpha, const float *beta, uint32_t order)
{
  float bound = 0;
#pragma unroll 1
  for (uint32_t t = 0; t < order; t++)
    bound = fmaxf(bound, fabsf(alpha[t * HK_WARP]) + (t > 0 ? beta[(t - 1) * HK_WARP] : 0) + (t + 1 < order ? beta[t * HK_WARP] : 0));
  constexpr uint32_t half = L / 2;
  const uint32_t end = g.lane / half, first = (threadIdx.x % HK_WARP) / half * half;
  const uint32_t index = end ? 0 : order - 1;
  const float scale = bound > 0 ? 1 / bound : 0;
  const uint32_t chunks = (order + HK_CHUNK - 1) / HK_CHUNK;
  float2 *const rows = (float2 *)g.room;
  __syncwarp();
  for (uint32_t t = g.lane; t < chunks * HK_CHUNK; t += L) {
    const float b = t > 0 && t < order ? beta[(t - 1) * HK_WARP] * scale : 0;
    rows[t] = t < order ? make_float2(alpha[t * HK_WARP] * scale, b * b) : make_float2(3, 0);
  }
  __syncwarp();
  float low = -(1 + 0x1p-20f), high = 1 + 0x1p-20f;
  /* half + 1 parts a turn: 25 bits */
  constexpr uint32_t turns = L == 2 ? 25 : L == 4 ? 16 : L == 8 ? 11 : L == 16 ? 8 : 7;
  const float part = 1 / (float)(half + 1);
#pragma unroll 1
  for (uint32_t turn = 0; turn < turns; turn++) {
    const float width = (high - low) * part, x = fmaf(width, (float)(g.lane % half + 1), low);
    const bool above = hk_eigenvalues_below(rows, chunks, x) <= index; /* the eigenvalue is not below x */
    const uint32_t all = __ballot_sync(HK_ALL, above) >> first & ((1u << half) - 1);
    const uint32_t n = __popc(all);
    high = n < half ? fmaf(width, (float)(n + 1), low) : high;
    low = fmaf(width, (float)n, low);
  }
  const float mine = 0.5f * (low + high) * bound, other = __shfl_xor_sync(HK_ALL, mine, half);
  const float largest = end ? other : mine, smallest = end ? mine : other;
  return fabsf(smallest) > fabsf(largest) ? smallest : largest;
}

/* The unit eigenvector y of theta, by a twisted factorisation: T - theta is factored from the top and from the bottom, and the
 * vector is solved for outwards from the row where both meet with the smallest pivot (Parlett and Dhillon, "Fernando's solution to
 * Wilkinson's problem", 1997). One lane, one T; room: `length` floats, as
 * y, which is filled up with zeros. */
static __device__ __forceinline__ void hk_lane_vector(const float *alpha, const float *beta, uint32_t order, float theta,
                                                      uint32_t length, float *y, float *room)
{
  float d = hk_pivot_single(alpha[0] - theta);
  room[0] = d;
#pragma unroll 1
  for (uint32_t t = 1; t < order; t++) {
    const float b = beta[(t - 1) * HK_WARP];
    d = hk_pivot_single(alpha[t * HK_WARP] - theta - __fdividef(b * b, d));
    room[t] = d;
  }
  uint32_t twist = order - 1;
  float meet = fabsf(d);
  d = hk_pivot_single(alpha[twist * HK_WARP] - theta);
  y[twist] = d; /* y holds the pivots from the bottom until the vector takes their place */
#pragma unroll 1
  for (uint32_t t = order - 1; t-- > 0;) {
    const float b = beta[t * HK_WARP], at = alpha[t * HK_WARP] - theta;
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
    z = -beta[t * HK_WARP] * __fdividef(z, room[t]);
    y[t] = z;
    sum = fmaf(z, z, sum);
  }
  z = 1;
#pragma unroll 1
  for (uint32_t t = twist + 1; t < order; t++) {
    z = -beta[(t - 1) * HK_WARP] * __fdividef(z, y[t]);
    y[t] = z;
    sum = fmaf(z, z, sum);
  }
  y[twist] = 1;
  const float scale = rsqrtf(sum);
#pragma unroll 1
  for (uint32_t t = 0; t < length; t++)
    y[t] = t < order ? y[t] * scale : 0;
}

/* How much of the first unit vector lies outside the `rank` leading eigenvectors of T: 1 - sum of their first components squared,
 * over eigenvalues of largest magnitude, those above `least` of the largest. One lane, one T; alpha, beta and row (K numbers of
 * room, laid out alike) are overwritten.
 *
 * QR sweeps with implicit shifts (Francis; the form for tridiagonal matrices is that of Bowdler, Martin, Reinsch and Wilkinson
 * 1968, from the other end: T of a Lanczos run is large at its beginning). Of the eigenvectors the first row alone is carried
 * along (Golub and Welsch 1969). A number beside the diagonal is taken as zero below 2^-25 of the norm of T. */
static __device__ __noinline__ float hk_lane_outside(float *alpha, float *beta, float *row, uint32_t order, uint32_t rank, float least)
{
  float small = 0;
  for (uint32_t t = 0; t < order; t++) {
    small = fmaxf(small, fabsf(alpha[t * HK_WARP]) + (t + 1 < order ? fabsf(beta[t * HK_WARP]) : 0));
    row[t * HK_WARP] = t == 0;
  }
  small *= 0x1p-25f;
  for (uint32_t last = order - 1; last > 0; last--) {
    for (uint32_t sweep = 0; sweep < HK_SWEEPS; sweep++) {
      uint32_t start = last; /* the block to work on begins after the last place where T falls apart */
      while (start > 0 && fabsf(beta[(start - 1) * HK_WARP]) > small)
        start--;
      if (start == last)
        break;
      const float near = beta[(last - 1) * HK_WARP], corner = alpha[last * HK_WARP];
      float shift = __fdividef(alpha[(last - 1) * HK_WARP] - corner, 2 * near);
      shift = near / (shift + copysignf(sqrtf(fmaf(shift, shift, 1.0f)), shift));
      float here = alpha[start * HK_WARP], h = row[start * HK_WARP];
      float f = here - corner + shift, c = 1, s = 1, p = 0;
      bool apart = false;
      for (uint32_t i = start; i < last; i++) {
        const float e = beta[i * HK_WARP], along = s * e, b = c * e;
        const float square = fmaf(along, along, f * f);
        if (square < 0x1p-100f) { /* it falls apart here */
          apart = true;
          alpha[i * HK_WARP] = here - p;
          row[i * HK_WARP] = h;
          if (i > start)
            beta[(i - 1) * HK_WARP] = 0;
          break;
        }
        float by = rsqrtf(square);
        by = by * fmaf(-0.5f * square * by, by, 1.5f); /* one Newton step: the last bit counts over a hundred rotations */
        if (i > start)
          beta[(i - 1) * HK_WARP] = square * by;
        s = along * by;
        c = f * by;
        const float base = here - p;
        here = alpha[(i + 1) * HK_WARP];
        const float turn = fmaf(here - base, s, 2 * c * b);
        p = s * turn;
        alpha[i * HK_WARP] = base + p;
        f = fmaf(c, turn, -b);
        const float next = row[(i + 1) * HK_WARP];
        row[i * HK_WARP] = fmaf(s, next, c * h);
        h = fmaf(c, next, -s * h);
      }
      if (!apart) {
        alpha[last * HK_WARP] = here - p;
        beta[(last - 1) * HK_WARP] = f;
        row[last * HK_WARP] = h;
      }
    }
  }
  float z = 1, top = 0;
  uint32_t taken = 0;
  for (uint32_t j = 0; j < rank && j < order; j++) {
    float largest = -1, weight = 0;
    uint32_t at = 0;
    for (uint32_t t = 0; t < order; t++) {
      const float size = fabsf(alpha[t * HK_WARP]);
      if (size > largest && !(taken >> t & 1)) {
        largest = size;
        at = t;
      }
    }
    taken |= 1u << at;
    if (j == 0)
      top = largest;
    if (!(largest > least * top))
      break;
    weight = row[at * HK_WARP];
    z = fmaf(-weight, weight, z);
  }
  return fminf(fmaxf(z, 0.0f), 1.0f);
}

#endif
