/* a b + c with one rounding, float32, on every processor: where a rule says so, all backends have the same bits.
 *
 * Where the compiler has an instruction for it, that one. Elsewhere by float64, in which the product is exact: the sum is rounded
 * to odd, so that rounding it once more, to float32, gives what one rounding would have given (S. Boldo, G. Melquiond, Emulation
 * of FMA and correctly rounded sums: proved algorithms using rounding to odd, IEEE Transactions on Computers 57, 2008).
 *
 * Cannot fail. Any thread. */
#ifndef HK_FUSED_H
#define HK_FUSED_H

#include "cpu/detector.h"

#include <float.h>
#include <stdint.h>
#include <string.h>

/* Of the x87, whose numbers have more digits, and of -ffast-math, which takes the error of a sum for 0, no exact sum can be had.
 */
#if FLT_EVAL_METHOD == 2 || defined(__FAST_MATH__)
#error "all backends must round alike: compile with SSE2 (-msse2 -mfpmath=sse) and without -ffast-math"
#endif

/* Without an instruction. The error of the sum is exact (D. E. Knuth's TwoSum). Rounded to odd: towards zero, and the last bit
 * set if that is not exact. Infinite and undefined results stay as they are. */
HK_INLINE float hk_fused_exactly(float a, float b, float c)
{
  const double product = (double)a * (double)b, sum = product + (double)c, part = sum - product;
  const double error = (product - (sum - part)) + ((double)c - part), side = sum * error; /* over 2^-550, or 0 */
  uint64_t bits;
  memcpy(&bits, &sum, sizeof bits);
  bits -= side < 0;
  bits |= side < 0 || side > 0;
  double odd;
  memcpy(&odd, &bits, sizeof odd);
  return (float)odd;
}

/* Whether the compiler has an instruction for it. */
#if defined(__FMA__) || defined(__FP_FAST_FMAF) || defined(__aarch64__)
#define HK_HAVE_FUSED
#endif

HK_INLINE float hk_fused(float a, float b, float c)
{
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#elif defined(HK_HAVE_FUSED)
  return __builtin_fmaf(a, b, c);
#else
  return hk_fused_exactly(a, b, c);
#endif
}

#endif
