/* Leading eigenpairs of a symmetric tridiagonal matrix T, by a warp, in double.
 *
 * T comes from Lanczos: no off-diagonal number is zero, so eigenvalues are distinct. Magnitudes are found by Sturm counts at x
 * and -x at once, at several points at a time if there are more lanes than eigenvalues. An eigenvector is computed row by row
 * from both ends, which is stable while it grows; both meet where it is largest. Only sums over it are needed, so none is stored.
 *
 * All loops end, whatever is in T. */
#ifndef HK_LEADING_CUH
#define HK_LEADING_CUH

#include "gpu/sst/lane_group.cuh"

#define HK_ROWS_AT_ONCE 8u /* of T, between two scalings */

/* T: x on the diagonal, y off the diagonal; in shared memory. y of the last row is 0, and rows of zeros follow up to a
 * multiple of HK_ROWS_AT_ONCE. */
struct hk_tridiagonal {
  const double2 *t;
  uint32_t order;
};

/* The bracket of a lane's eigenvalue, which is number lane / each, counted by magnitude from the largest. */
struct hk_bracket {
  double low, high;             /* low <= |theta| <= high */
  uint32_t from_low, from_high; /* numbers of eigenvalues above low, and above high (<< 16), below -low, and below -high */
};

/* An eigenpair. The vector is of unit length. */
struct hk_pair {
  double theta;
  double along;       /* the product of the vector and a given one */
  double first, last; /* components; the last of many may be too small for a double, and then is 0 */
  double height;      /* the largest component, */
  uint32_t peak;      /* and its place, from the end */
};

/* Counts the eigenvalues above x (<< 16) and those below -x; x > 0. Uses leading principal minors, which are rescaled from
 * time to time. */
static __device__ __forceinline__ uint32_t hk_beyond(const hk_tridiagonal &m, double x)
{
  double up = 0, up_next = 1, down = 0, down_next = 1, square = 0;
  uint32_t below = 0, below_minus = 0;
  const uint32_t rows = (m.order + HK_ROWS_AT_ONCE - 1) / HK_ROWS_AT_ONCE * HK_ROWS_AT_ONCE;
#pragma unroll 1
  for (uint32_t i = 0; i < rows; i += HK_ROWS_AT_ONCE) {
#pragma unroll
    for (uint32_t k = 0; k < HK_ROWS_AT_ONCE; k++) {
      const double2 row = m.t[i + k];
      const double p = fma(row.x - x, up_next, -square * up), n = fma(row.x + x, down_next, -square * down);
      below += (uint32_t)(__double2hiint(p) ^ __double2hiint(up_next)) >> 31;
      below_minus += (uint32_t)(__double2hiint(n) ^ __double2hiint(down_next)) >> 31;
      up = up_next;
      up_next = p;
      down = down_next;
      down_next = n;
      square = row.y * row.y;
    }
    const double by = __hiloint2double(0x7fe00000 - (__double2hiint(fmax(fabs(up), fabs(up_next))) & 0x7ff00000), 0);
    const double minus = __hiloint2double(0x7fe00000 - (__double2hiint(fmax(fabs(down), fabs(down_next))) & 0x7ff00000), 0);
    up *= by;
    up_next *= by;
    down *= minus;
    down_next *= minus;
  }
  return (rows - below) << 16 | below_minus; /* the rows of zeros have eigenvalues 0, which are not counted */
}

/* Number of lanes for each eigenvalue. */
static __device__ __forceinline__ uint32_t hk_lanes_each(uint32_t wanted)
{
  return HK_WARP / wanted;
}

static __device__ __forceinline__ hk_bracket hk_bracket_begin(const hk_tridiagonal &m)
{
  double high = 0;
  for (uint32_t i = threadIdx.x % HK_WARP; i < m.order; i += HK_WARP)
    high = fmax(high, fabs(m.t[i].x) + (i > 0 ? fabs(m.t[i - 1].y) : 0) + fabs(m.t[i].y));
  for (uint32_t turn = HK_WARP / 2; turn > 0; turn /= 2)
    high = fmax(high, __shfl_xor_sync(HK_ALL, high, turn));
  const hk_bracket all = { 0, high * (1 + 0x1p-40), m.order << 16, 0 };
  return all;
}

/* Narrows the brackets of the `wanted` largest eigenvalues, at most HK_WARP, by `bits`. The whole warp. */
static __device__ __noinline__ hk_bracket hk_bracket_narrow(const hk_tridiagonal m, uint32_t wanted, float bits, hk_bracket b)
{
  __builtin_assume(__isShared(m.t));
  const uint32_t lane = threadIdx.x % HK_WARP, each = hk_lanes_each(wanted), number = min(lane / each, wanted - 1);
  const uint32_t first = number * each, place = min(lane - first, each - 1);
  const uint32_t mine = each == HK_WARP ? HK_ALL : ((1u << each) - 1) << first;
  const double part = 1.0 / (each + 1);
#pragma unroll 1
  for (float gain = log2f((float)(each + 1)), done = 0; done < bits; done += gain) {
    const double width = (b.high - b.low) * part;
    const uint32_t beyond = hk_beyond(m, b.low + width * (place + 1));
    const uint32_t n = __popc(__ballot_sync(HK_ALL, (beyond >> 16) + (beyond & 0xffff) > number) & mine);
    const uint32_t at_low = __shfl_sync(HK_ALL, beyond, first + n - 1), at_high = __shfl_sync(HK_ALL, beyond, first + n);
    b.from_low = n > 0 ? at_low : b.from_low;
    b.from_high = n < each ? at_high : b.from_high;
    b.high = n < each ? b.low + width * (n + 1) : b.high;
    b.low += width * n;
  }
  return b;
}

static __device__ __forceinline__ double hk_inverse(double x)
{
  const double y = (double)(1 / (float)x);
  return y * (2 - x * y);
}

/* The eigenvector of theta. along: the given vector, in shared memory. deep: a component by this factor below the largest so far
 * means that further components would be growing noise. */
static __device__ __forceinline__ hk_pair hk_vector(const hk_tridiagonal &m, double theta, const float *along, double deep)
{
  hk_pair pair;
  double z = 1, after = 0, squares = 1, product = (double)along[m.order - 1], start = 1; /* row by row from the end */
  double peak = 1, peak_squares = 1, peak_product = product;
  bool noise = false;
  pair.peak = m.order - 1;
#pragma unroll 2
  for (uint32_t i = m.order - 1; i > 0; i--) {
    const double next = -fma(m.t[i].x - theta, z, m.t[i].y * after) * hk_inverse(m.t[i - 1].y);
    after = z;
    z = next;
    squares = fma(z, z, squares);
    product = fma(z, (double)along[i - 1], product);
    noise |= fabs(z) < deep * fabs(peak) && fabs(after) < deep * fabs(peak);
    if (fabs(z) >= fabs(peak) && !noise) {
      peak = z;
      peak_squares = squares;
      peak_product = product;
      pair.peak = i - 1;
      if (fabs(z) > 0x1p200) {
        z *= 0x1p-200;
        after *= 0x1p-200;
        start *= 0x1p-200;
        product *= 0x1p-200;
        squares *= 0x1p-400;
        peak = z;
        peak_squares = squares;
        peak_product = product;
      }
    }
  }
  z = 1; /* and from the beginning */
  after = 0;
  squares = product = 0;
  double beside = 0, begin = 1;
#pragma unroll 2
  for (uint32_t i = 0; i < pair.peak; i++) {
    const double next = -fma(m.t[i].x - theta, z, beside * after) * hk_inverse(m.t[i].y);
    squares = fma(z, z, squares);
    product = fma(z, (double)along[i], product);
    beside = m.t[i].y;
    after = z;
    z = next;
    if (fabs(z) > 0x1p200) {
      z *= 0x1p-200;
      after *= 0x1p-200;
      begin *= 0x1p-200;
      product *= 0x1p-200;
      squares *= 0x1p-400;
    }
  }
  const double meet = peak / z, by = rsqrt(peak_squares + squares * meet * meet);
  pair.theta = theta;
  pair.along = (peak_product + product * meet) * by;
  pair.first = begin * meet * by;
  pair.last = start * by;
  pair.height = peak * by;
  return pair;
}

/* Computes the eigenpairs of the brackets, number i in lane i; other lanes get zeros. bits: of the brackets. Called by the
 * whole warp. */
static __device__ __noinline__ hk_pair hk_vectors(const hk_tridiagonal m, uint32_t wanted, float bits, const hk_bracket b,
                                                  const float *along)
{
  __builtin_assume(__isShared(m.t));
  __builtin_assume(__isShared(along));
  const uint32_t lane = threadIdx.x % HK_WARP, each = hk_lanes_each(wanted), number = lane / each;
  hk_pair pair = { 0, 0, 0, 0, 0, 0 };
  if (lane % each == 0 && number < wanted) {
    /* Which of those in the bracket it is, the positive ones first. */
    const uint32_t above = b.from_high >> 16, below = b.from_high & 0xffff, at = number - above - below;
    const uint32_t positive = (b.from_low >> 16) - above;
    const double size = 0.5 * (b.low + b.high);
    pair = hk_vector(m, at < positive ? size : -size, along, exp2(-0.5 * bits));
    if (at > 0 && at != positive)
      pair.along = 0; /* it is numerically equal to the one before */
  }
  const uint32_t from = lane < wanted ? lane * each : lane;
  pair.theta = __shfl_sync(HK_ALL, pair.theta, from);
  pair.along = __shfl_sync(HK_ALL, pair.along, from);
  pair.first = __shfl_sync(HK_ALL, pair.first, from);
  pair.last = __shfl_sync(HK_ALL, pair.last, from);
  pair.height = __shfl_sync(HK_ALL, pair.height, from);
  pair.peak = __shfl_sync(HK_ALL, pair.peak, from);
  if (lane >= wanted)
    pair.theta = pair.along = pair.first = pair.last = pair.height = 0;
  return pair;
}

#endif
